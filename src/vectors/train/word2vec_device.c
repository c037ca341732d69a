/* Rounds of skip-gram and CBOW on a device: text, tables and weights are in its memory, and the kernel
 * word_rounds trains many rounds per call. All steps of a round start from the same weights, and their
 * gradients are added up. The words of a round are far apart in the text: neighbouring words use the same
 * rows, which costs quality. */
#include "word2vec.h"

#include "base/alloc.h"
#include "tensor/device_impl.h"

#include <math.h>

/* A call has at most CALL_ROUNDS rounds and, unless it is a single one, CALL_ENTRIES uses of rows; a report
 * follows after REPORT_WORDS words at the latest. */
enum { CALL_ROUNDS = 64, CALL_ENTRIES = 1 << 21, REPORT_WORDS = 1 << 20, MAX_KEY = 0x7fffffff };
/* Uses of the most frequent word in a round: training may diverge if all words have several hundred. */
enum { MAX_USES = 64, LEAST_PARTS = 32 };

typedef struct on_device {
    ses_device *d;
    ses_word_rounds r; /* pointers to the memory of the device */
    float rate[CALL_ROUNDS];
    int64_t call_rounds;
} on_device;

/* Copies bytes to new memory of the device; from NULL: leaves them as they are. */
static void *put(ses_device *d, const void *from, size_t n, size_t size, ses_err *e)
{
    void *to = d->mem->alloc(d, n * size, e);
    if (to && from) d->mem->upload(d, to, from, n * size);
    return to;
}

static int32_t longest_path(const ses_huffman_tree *t, size_t words)
{
    int64_t most = 1;
    for (size_t i = 0; i < words; i++)
        if (t->start[i + 1] - t->start[i] > most) most = t->start[i + 1] - t->start[i];
    return (int32_t)most;
}

static bool put_outputs(const ses_w2v *w, on_device *o, ses_err *e)
{
    size_t words = w->corpus.vocab.n;
    ses_word_rounds *r = &o->r;
    if (!w->hs) return (r->negatives = put(o->d, w->negatives, words, sizeof *w->negatives, e)) != NULL;
    return (r->path_start = put(o->d, w->tree.start, words + 1, sizeof *w->tree.start, e)) &&
           (r->path = put(o->d, w->tree.node, (size_t)w->tree.start[words], sizeof *w->tree.node, e));
}

/* Rounds of a call: as many as the limits of the kernel and of its memory allow. */
static bool choose_call(const ses_w2v *w, on_device *o, ses_err *e)
{
    const ses_word_rounds *r = &o->r;
    int64_t entries = r->parts * (2 * (int64_t)w->window + r->outputs);
    int64_t by_rows = MAX_KEY / (r->rows + 1) - 1;
    o->call_rounds = CALL_ENTRIES / entries < CALL_ROUNDS ? CALL_ENTRIES / entries : CALL_ROUNDS;
    if (o->call_rounds > by_rows) o->call_rounds = by_rows;
    if (o->call_rounds < 1) o->call_rounds = 1;
    return by_rows > 0 ||
           ses_fail(e, SES_EUNSUPPORTED, "%lld rows of weights are too many for a GPU: use --device cpu",
                    (long long)r->rows);
}

/* Share of the most frequent word in the text after subsampling. */
static double largest_share(const ses_w2v *w)
{
    double most = 0;
    for (size_t i = 0; i < w->corpus.vocab.n; i++)
        most = fmax(most, (double)w->corpus.vocab.word[i].count * ((double)w->keep[i] / UINT32_MAX));
    return most / (double)w->corpus.n;
}

static bool divide(ses_w2v *w, ses_err *e)
{
    on_device *o = w->state = ses_alloc(sizeof *o, e);
    int64_t parts = w->shards * SES_W2V_SHARD_WORDS;
    double uses = largest_share(w) * (w->window + 1);
    while (parts > LEAST_PARTS && (parts > w->corpus.n || uses * (double)parts > MAX_USES)) parts /= 2;
    w->rounds = (w->corpus.n + parts - 1) / parts;
    if (o) o->r.parts = parts;
    return o != NULL;
}

static bool begin(ses_w2v *w, ses_err *e)
{
    on_device *o = w->state;
    const double sums[] = { w->pass_loss, (double)w->pass_pairs };
    size_t words = w->corpus.vocab.n;
    o->d = w->job->device;
    o->r = (ses_word_rounds){ .n = w->corpus.n,
                              .parts = o->r.parts,
                              .part_words = 1,
                              .words = (int64_t)words,
                              .window = w->window,
                              .outputs = w->hs ? longest_path(&w->tree, words) : w->negative + 1,
                              .bags = w->bags,
                              .in_rows = w->in_rows,
                              .rows = w->in_rows + w->out_rows,
                              .cols = w->stride,
                              .in_step = ses_w2v_in_step(w, 1),
                              .out_step = ses_w2v_out_step(w, 1),
                              .rate = o->rate };
    ses_word_rounds *r = &o->r;
    bool ok = choose_call(w, o, e) &&
              (r->id = put(o->d, w->corpus.id, (size_t)w->corpus.n, sizeof *w->corpus.id, e)) &&
              (r->keep = put(o->d, w->keep, words, sizeof *w->keep, e)) && put_outputs(w, o, e) &&
              (r->weight = put(o->d, w->weight, (size_t)(r->rows * r->cols), sizeof *w->weight, e)) &&
              (r->sums = put(o->d, sums, SES_LEN(sums), sizeof *sums, e));
    if (!ok) return ses_wrap(e, "text and weights on the device");
    r->count = o->call_rounds;
    r->scratch = put(o->d, NULL, (size_t)o->d->k_f32.word_rounds_size(&o->d->exec, r), 1, e);
    return r->scratch != NULL;
}

/* Sums of losses and pairs, of the pass and since the last report. */
static bool read_sums(ses_w2v *w, on_device *o, ses_err *e)
{
    double sums[2];
    o->d->mem->download(o->d, sums, o->r.sums, sizeof sums);
    if (o->d->mem->ok && !o->d->mem->ok(o->d, e)) return false;
    w->loss += sums[0] - w->pass_loss, w->pairs += (int64_t)sums[1] - w->pass_pairs;
    w->pass_loss = sums[0], w->pass_pairs = (int64_t)sums[1];
    return ses_w2v_check_loss(w, e);
}

static bool advance(ses_w2v *w, ses_err *e)
{
    on_device *o = w->state;
    ses_word_rounds *r = &o->r;
    int64_t pass = w->round / w->rounds, words = 0;
    if (w->round % w->rounds == 0) {
        w->pass_loss = 0, w->pass_pairs = 0;
        o->d->mem->zero(o->d, r->sums, 2 * sizeof *r->sums);
    }
    r->keep_start = ses_w2v_keep_start(w, (uint32_t)pass);
    r->step_start = ses_w2v_step_start(w, (uint32_t)pass);
    while (w->round < (pass + 1) * w->rounds && words < REPORT_WORDS) {
        int64_t left = (pass + 1) * w->rounds - w->round;
        r->first = w->round % w->rounds;
        r->count = left < o->call_rounds ? left : o->call_rounds;
        for (int64_t k = 0; k < r->count; k++) o->rate[k] = ses_w2v_rate(w, w->round + k);
        w->rate = o->rate[0];
        o->d->k_f32.word_rounds(&o->d->exec, r);
        w->round += r->count;
        words += r->count * r->parts;
    }
    return read_sums(w, o, e);
}

static bool fetch(ses_w2v *w, ses_err *e)
{
    on_device *o = w->state;
    o->d->mem->download(o->d, w->weight, o->r.weight, (size_t)(o->r.rows * o->r.cols) * sizeof *w->weight);
    return !o->d->mem->ok || o->d->mem->ok(o->d, e);
}

static void end(ses_w2v *w)
{
    on_device *o = w->state;
    if (!o) return;
    const ses_word_rounds *r = &o->r;
    const void *own[] = {
        r->id, r->keep, r->negatives, r->path_start, r->path, r->weight, r->sums, r->scratch
    };
    for (size_t i = 0; i < SES_LEN(own); i++)
        if (own[i]) o->d->mem->free(o->d, (void *)(uintptr_t)own[i]);
    ses_free(o);
}

const ses_w2v_engine ses_w2v_device = { divide, begin, advance, fetch, end };
