/* fastText's skip-gram and CBOW with negative sampling and its supervised training (fasttext_exact.c), one
 * thread, bit for bit. Skip-gram and CBOW have these deviations from a
 * textbook version: only the first tenth of the weights is initialized, the rest is zero; words that begin
 * with "__label__" are labels; "</s>" is a word; lines end after 1,025 words; the sigmoid is a table of 512
 * steps. */
#include "exact.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "libstdcxx.h"
#include "vectors/fasttext/fasttext_train.h"
#include "vectors/fasttext/logistic_group.h"

#include <math.h>
#include <string.h>

enum {
    MODEL,
    DIM,
    WS,
    EPOCH,
    MIN_COUNT,
    NEG,
    MINN,
    MAXN,
    BUCKET,
    T,
    LR,
    LR_UPDATE_RATE,
    SEED,
    MIN_COUNT_LABEL,
    WORD_NGRAMS,
    LOSS,
    LABEL,
    PRETRAINED,
    N_SETTINGS
};
static const ses_exact_setting setting[N_SETTINGS] = {
    [MODEL] = { "model", "skipgram", SES_EXACT_WORD },
    [DIM] = { "dim", "100", SES_EXACT_INTEGER },
    [WS] = { "ws", "5", SES_EXACT_INTEGER },
    [EPOCH] = { "epoch", "5", SES_EXACT_INTEGER },
    [MIN_COUNT] = { "minCount", NULL, SES_EXACT_INTEGER },
    [NEG] = { "neg", "5", SES_EXACT_INTEGER },
    [MINN] = { "minn", NULL, SES_EXACT_INTEGER },
    [MAXN] = { "maxn", NULL, SES_EXACT_INTEGER },
    [BUCKET] = { "bucket", "2000000", SES_EXACT_INTEGER },
    [T] = { "t", "1e-4", SES_EXACT_REAL },
    [LR] = { "lr", NULL, SES_EXACT_REAL },
    [LR_UPDATE_RATE] = { "lrUpdateRate", "100", SES_EXACT_INTEGER },
    [SEED] = { "seed", "0", SES_EXACT_INTEGER },
    [MIN_COUNT_LABEL] = { "minCountLabel", "0", SES_EXACT_INTEGER },
    [WORD_NGRAMS] = { "wordNgrams", "1", SES_EXACT_INTEGER },
    [LOSS] = { "loss", NULL, SES_EXACT_WORD },
    [LABEL] = { "label", "__label__", SES_EXACT_WORD },
    [PRETRAINED] = { "pretrainedVectors", NULL, SES_EXACT_WORD },
};
enum { MAX_LINE = 1024, MAX_DIM = 1 << 16 };
enum { PROGRESS_EVERY = 256, INITIALIZED = 10 /* one of ten blocks */ };

typedef struct trainer {
    ses_exact_job *job;
    ses_mmap file;
    ses_fasttext_dictionary d;
    int dim, window, negatives;
    bool cbow;
    int64_t buckets;
    size_t in_rows;
    float *in, *out, *keep, *hidden, *gradient;
    ses_logistic_group group;
    int32_t *negative; /* table of samples */
    size_t n_negative;
    ses_minstd random;
    int32_t line[MAX_LINE + 1];
    int length;
    int32_t *bag; /* rows of a context */
    size_t bag_capacity;
} trainer;

static bool make_weights(trainer *t, ses_err *e)
{
    size_t dim = (size_t)t->dim, all;
    ses_minstd g = ses_minstd_of((uint64_t)(int64_t)t->job->value[SEED]);
    t->in_rows = t->d.n_words + (size_t)t->buckets;
    if (!ses_mul_size(t->in_rows, dim, &all)) return ses_fail(e, SES_ENOMEM, "too many weights");
    t->in = ses_alloc_array(all, sizeof *t->in, e);
    t->out = ses_alloc_array(t->d.n_words * dim, sizeof *t->out, e);
    t->keep = ses_alloc_array(t->d.n_words, sizeof *t->keep, e);
    t->hidden = ses_alloc_array(dim, sizeof *t->hidden, e);
    t->gradient = ses_alloc_array(dim, sizeof *t->gradient, e);
    if (!t->in || !t->out || !t->keep || !t->hidden || !t->gradient) return false;
    float limit = (float)(1.0 / t->dim);
    for (size_t i = 0; i < all / INITIALIZED; i++) t->in[i] = (float)ses_minstd_real(&g, -limit, limit);
    for (size_t i = 0; i < t->d.n_words; i++) {
        float f = (float)t->d.word[i].count / (float)t->d.tokens;
        t->keep[i] = (float)(sqrt(t->job->value[T] / f) + t->job->value[T] / f);
    }
    t->negative = ses_fasttext_negatives(&t->d, 0, t->d.n_words, &t->n_negative, e);
    ses_logistic_group_init(&t->group, t->dim, t->hidden, t->gradient);
    return t->negative;
}

/* ---- steps ---- */

static float *out_row(const trainer *t, int32_t word) { return t->out + (size_t)word * (size_t)t->dim; }

static void train_step(trainer *t, const int32_t *rows, size_t n, int32_t target, float rate)
{
    size_t dim = (size_t)t->dim;
    if (!n) return;
    memset(t->hidden, 0, dim * sizeof *t->hidden);
    memset(t->gradient, 0, dim * sizeof *t->gradient);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < dim; i++) t->hidden[i] += t->in[(size_t)rows[k] * dim + i];
    float share = (float)(1.0 / (double)n);
    for (size_t i = 0; i < dim; i++) t->hidden[i] *= share;
    t->group.rate = rate;
    ses_logistic_group_add(&t->group, out_row(t, target), 1);
    for (int k = 0; k < t->negatives; k++) {
        int32_t word;
        do word = t->negative[ses_minstd_upto(&t->random, t->n_negative - 1)];
        while (word == target);
        ses_logistic_group_add(&t->group, out_row(t, word), 0);
    }
    ses_logistic_group_end(&t->group);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < dim; i++) t->in[(size_t)rows[k] * dim + i] += t->gradient[i];
}

static bool train_cbow(trainer *t, int at, int from, int to, float rate, ses_err *e)
{
    size_t n = 0;
    for (int p = from; p < to; p++) {
        if (p == at) continue;
        const ses_fasttext_word *w = &t->d.word[t->line[p]];
        if (!ses_array_reserve(&t->bag, &t->bag_capacity, n + w->n_rows, sizeof *t->bag, e)) return false;
        memcpy(t->bag + n, t->d.rows.row + w->first_row, w->n_rows * sizeof *t->bag);
        n += w->n_rows;
    }
    train_step(t, t->bag, n, t->line[at], rate);
    return true;
}

static bool train_line(trainer *t, float rate, ses_err *e)
{
    bool ok = true;
    for (int at = 0; ok && at < t->length; at++) {
        int half = 1 + (int)ses_minstd_upto(&t->random, (uint64_t)t->window - 1);
        int from = at - half < 0 ? 0 : at - half, to = at + half + 1 > t->length ? t->length : at + half + 1;
        const ses_fasttext_word *w = &t->d.word[t->line[at]];
        if (t->cbow) ok = train_cbow(t, at, from, to, rate, e);
        for (int p = from; !t->cbow && p < to; p++)
            if (p != at) train_step(t, t->d.rows.row + w->first_row, w->n_rows, t->line[p], rate);
    }
    return ok;
}

/* Reads a line; returns how many words of the dictionary it took. Starts over at the end of the file. */
static int64_t read_line(trainer *t, ses_fasttext_reader *r)
{
    int64_t read = 0, id;
    if (r->ended) *r = ses_fasttext_reader_of(t->file.data, t->file.size);
    t->length = 0;
    while (ses_fasttext_read(r)) {
        if (!ses_strmap_find(&t->d.id, r->word, r->len, &id)) continue;
        read++;
        if (!t->d.word[id].is_label && !((float)ses_minstd_real(&t->random, 0, 1) > t->keep[id]))
            t->line[t->length++] = (int32_t)id;
        if (read > MAX_LINE || ses_equal(r->word, r->len, "</s>")) break;
    }
    return read;
}

static bool train(trainer *t, ses_err *e)
{
    ses_fasttext_reader r = ses_fasttext_reader_of(t->file.data, t->file.size);
    const double *value = t->job->value;
    int64_t done = 0, read = 0, all = (int64_t)value[EPOCH] * t->d.tokens;
    t->random = ses_minstd_of((uint64_t)(int64_t)value[SEED]);
    for (int64_t lines = 0; done < all; lines++) {
        float progress = (float)done / (float)all;
        read += read_line(t, &r);
        if (!train_line(t, (float)(value[LR] * (1.0 - progress)), e)) return false;
        if (t->group.diverged)
            return ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large (--lr)",
                            value[LR]);
        if (read > (int64_t)value[LR_UPDATE_RATE]) {
            done += read;
            read = 0;
        }
        if (lines % PROGRESS_EVERY == 0 && t->job->progress && !t->job->progress(t->job->ctx, done, all))
            return ses_fail(e, SES_EIO, "interrupted; nothing was written");
    }
    return true;
}

/* ---- output ---- */

static bool write_text(const ses_fasttext_model *m, ses_file_writer *w, ses_err *e)
{
    size_t dim = ses_fasttext_dim(m), n = ses_fasttext_n_words(m);
    float *x = ses_alloc_array(dim, sizeof *x, e);
    ses_buf line = { 0 };
    bool ok = x;
    ses_buf_appendf(&line, "%zu %zu\n", n, dim);
    for (size_t i = 0; ok && i < n; i++) {
        ses_string word = ses_fasttext_word_at(m, i);
        ok = ses_fasttext_word_vector(m, word.p, word.n, x, NULL, e);
        ses_buf_append(&line, word.p, word.n);
        ses_buf_put(&line, ' ');
        for (size_t c = 0; c < dim; c++) ses_buf_appendf(&line, "%.9g ", (double)x[c]);
        ses_buf_put(&line, '\n');
        ok = ok && ses_buf_ok(&line, e) && ses_file_writer_put(w, line.data, line.len, e);
        line.len = 0;
    }
    ses_buf_free(&line);
    ses_free(x);
    return ok;
}

static bool write_model(const ses_exact_job *job, const ses_fasttext_model *m, ses_err *e)
{
    ses_file_writer *w = ses_file_writer_open(job->output, job->overwrite, e);
    bool ok = w && (job->binary ? ses_fasttext_write(m, w, e) : write_text(m, w, e)) &&
              ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}

static bool write_vectors(const trainer *t, ses_err *e)
{
    const double *value = t->job->value;
    ses_fasttext_model m = { .set = { .dim = t->dim,
                                      .ws = t->window,
                                      .epoch = (int32_t)value[EPOCH],
                                      .min_count = (int32_t)value[MIN_COUNT],
                                      .neg = t->negatives,
                                      .word_ngrams = 1,
                                      .loss = SES_FASTTEXT_NEGATIVE,
                                      .model = t->cbow ? SES_FASTTEXT_CBOW : SES_FASTTEXT_SKIPGRAM,
                                      .bucket = (int32_t)t->buckets,
                                      .minn = (int32_t)value[MINN],
                                      .maxn = (int32_t)value[MAXN],
                                      .lr_update_rate = (int32_t)value[LR_UPDATE_RATE],
                                      .t = value[T] },
                             .d = t->d,
                             .n_pruned = -1,
                             .in = { .rows = (int64_t)t->in_rows, .columns = t->dim, .own = t->in },
                             .out = { .rows = (int64_t)t->d.n_words, .columns = t->dim, .own = t->out } };
    return write_model(t->job, &m, e);
}

/* Defaults that depend on the model. */
static void set_defaults(ses_exact_job *job, const char *min_count, const char *minn, const char *maxn,
                         const char *lr)
{
    const int which[] = { MIN_COUNT, MINN, MAXN, LR };
    const char *const text[] = { min_count, minn, maxn, lr };
    for (size_t i = 0; i < SES_LEN(which); i++) {
        if (job->text[which[i]]) continue;
        job->text[which[i]] = text[i];
        ses_parse_number(text[i], strlen(text[i]), &job->value[which[i]]);
    }
}

/* Fails for a setting of the supervised model: the original reads it, but it changes nothing here. */
static bool check_unsupervised(const ses_exact_job *job, ses_err *e)
{
    static const int supervised[] = { MIN_COUNT_LABEL, WORD_NGRAMS, LABEL, PRETRAINED };
    for (size_t i = 0; i < SES_LEN(supervised); i++) {
        const ses_exact_setting *s = &setting[supervised[i]];
        if (job->text[supervised[i]] != s->def)
            return ses_fail(e, SES_EUSAGE, "--%s belongs to --model supervised, not to --model %s", s->name,
                            job->text[MODEL]);
    }
    return true;
}

static bool set_up(trainer *t, ses_err *e)
{
    ses_exact_job *job = t->job;
    static const struct {
        int setting;
        double low, high;
    } range[] = { { DIM, 1, MAX_DIM },
                  { WS, 1, 1 << 20 },
                  { EPOCH, 1, 1 << 20 },
                  { MIN_COUNT, 0, 1 << 30 },
                  { NEG, 0, 1 << 16 },
                  { MINN, 0, 1 << 16 },
                  { MAXN, 0, 1 << 16 },
                  { BUCKET, 0, 2147483647 },
                  { LR_UPDATE_RATE, 1, 2147483647 },
                  { SEED, -2147483648.0, 2147483647 } };
    set_defaults(t->job, "5", "3", "6", "0.05");
    for (size_t i = 0; i < SES_LEN(range); i++)
        if (!ses_exact_range(&ses_exact_fasttext, job, (size_t)range[i].setting, range[i].low, range[i].high,
                             e))
            return false;
    t->cbow = !strcmp(job->text[MODEL], "cbow");
    if (!t->cbow && strcmp(job->text[MODEL], "skipgram") != 0)
        return ses_fail(e, SES_EUSAGE, "--model \"%s\": expected skipgram, cbow or supervised",
                        job->text[MODEL]);
    if (!check_unsupervised(job, e)) return false;
    if (job->text[LOSS] && strcmp(job->text[LOSS], "ns") != 0)
        return ses_fail(e, SES_EUSAGE, "--loss %s: only --model supervised has losses other than ns",
                        job->text[LOSS]);
    t->dim = (int)job->value[DIM];
    t->window = (int)job->value[WS];
    t->negatives = (int)job->value[NEG];
    t->buckets =
        job->value[MAXN] > 0 ? (int64_t)job->value[BUCKET] : 0; /* as the original, without n-grams */
    if (job->value[MAXN] > 0 && !t->buckets) return ses_fail(e, SES_EUSAGE, "--bucket 0 needs --maxn 0");
    return true;
}

static bool count_words(trainer *t, ses_err *e)
{
    int64_t least = (int64_t)t->job->value[MIN_COUNT];
    if (!ses_fasttext_count(&t->d, ses_fasttext_reader_of(t->file.data, t->file.size), e) ||
        !ses_fasttext_drop_rare(&t->d, least, 0, e))
        return false;
    return t->d.n_words >= 2 ||
           ses_fail(e, SES_EARG, "%s: fewer than two words occur at least %lld times (--minCount)",
                    t->job->corpus, (long long)least);
}

static int32_t whole(double x) /* out of range: refused later */
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static bool run_supervised(ses_exact_job *job, ses_err *e)
{
    const double *value = job->value;
    set_defaults(job, "1", "0", "0", "0.1");
    if (!ses_exact_range(&ses_exact_fasttext, job, SEED, -2147483648.0, 2147483647, e)) return false;
    ses_fasttext_options o = { .set = { .dim = whole(value[DIM]),
                                        .ws = whole(value[WS]),
                                        .epoch = whole(value[EPOCH]),
                                        .min_count = whole(value[MIN_COUNT]),
                                        .neg = whole(value[NEG]),
                                        .word_ngrams = whole(value[WORD_NGRAMS]),
                                        .model = SES_FASTTEXT_SUPERVISED,
                                        .bucket = whole(value[BUCKET]),
                                        .minn = whole(value[MINN]),
                                        .maxn = whole(value[MAXN]),
                                        .lr_update_rate = whole(value[LR_UPDATE_RATE]),
                                        .t = value[T] },
                               .lr = value[LR],
                               .min_count_label = whole(value[MIN_COUNT_LABEL]),
                               .seed = (int64_t)value[SEED],
                               .label = job->text[LABEL],
                               .pretrained = job->text[PRETRAINED],
                               .progress = job->progress,
                               .ctx = job->ctx };
    ses_fasttext_model m = { 0 };
    bool ok = ses_fasttext_loss_of(job->text[LOSS] ? job->text[LOSS] : "softmax", &o.set.loss, e) &&
              ses_fasttext_check(&o, e) && ses_fasttext_train_exact(&o, job->corpus, &m, e) &&
              write_model(job, &m, e);
    job->words = (int64_t)m.d.n_words;
    ses_fasttext_clear(&m);
    return ok;
}

static bool run(ses_exact_job *job, ses_err *e)
{
    if (!strcmp(job->text[MODEL], "supervised")) return run_supervised(job, e);
    trainer *t = ses_alloc(sizeof *t, e);
    if (!t) return false;
    t->job = job;
    bool ok = set_up(t, e) && ses_mmap_open(&t->file, job->corpus, e) && count_words(t, e) &&
              ses_fasttext_add_ngrams(&t->d, (int)job->value[MINN], (int)job->value[MAXN], t->buckets, e) &&
              make_weights(t, e) && train(t, e) && write_vectors(t, e);
    job->words = (int64_t)t->d.n_words;
    ses_fasttext_dictionary_free(&t->d);
    ses_mmap_free(&t->file);
    void *own[] = { t->in, t->out, t->keep, t->hidden, t->gradient, t->negative, t->bag, t };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    return ok;
}

const ses_exact_program ses_exact_fasttext = { "fasttext", setting, N_SETTINGS, run };
