/* Paragraph vectors: start, epochs, inference. */
#include "paragraph.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

/* ROUND_WORDS: words of a shard in a round. Larger rounds merge less often, but the shards then add up more
 * changes that do not know of each other. */
enum { LANES = 16, ROUND_WORDS = 300, MERGE_PARTS = 8, SITE_START = 0x50560001, SITE_EPOCH = 0x50560002 };
enum { SITE_ORDER = 0x50560003, START_DOC = 0, START_WORD = 1, START_NEW = 2 };
#define STEP 0.1f /* size of the step of one pair at the learning rate 1, as in word2vec_round.c */
static const double LEAST_RATE = 1e-4; /* last learning rate over the first */

/* ---- start ---- */

/* Values in (-1, 1) / dim, as in gensim: half of it begins to learn later, and few passes notice it. */
static void start_row(const ses_pv_model *m, uint32_t kind, uint64_t number, float *to)
{
    ses_rng_key key = { m->o.seed, kind, SITE_START };
    int64_t dim = m->o.dim;
    memset(to, 0, (size_t)m->stride * sizeof *to);
    for (int64_t i = 0; i < dim; i++)
        to[i] = (2 * ses_rand_unit(key, number * (uint64_t)dim + (uint64_t)i) - 1) / (float)dim;
}

void ses_pv_start(const ses_pv_model *m, uint64_t number, float *doc)
{
    start_row(m, START_NEW, number, doc);
}

/* Subsampling as in word2vec: kept with probability (sqrt(f / t) + 1) t / f, f: frequency. */
static void set_keep(ses_pv_model *m)
{
    double threshold = m->o.sample * (double)m->vocab.kept_tokens;
    for (size_t i = 0; i < m->vocab.n; i++) {
        double count = (double)m->vocab.word[i].count,
               p = m->o.sample > 0 ? (sqrt(count / threshold) + 1) * threshold / count : 1;
        m->keep[i] = p >= 1 ? UINT32_MAX : (uint32_t)(p * 4294967295.0);
    }
}

bool ses_pv_init(ses_pv_model *m, ses_word_vocab *vocab, int64_t docs, const ses_pv_settings *o, ses_err *e)
{
    *m = (ses_pv_model){ .o = *o, .vocab = *vocab, .docs = docs };
    *vocab = (ses_word_vocab){ 0 };
    int64_t words = (int64_t)m->vocab.n;
    m->stride = (o->dim + LANES - 1) / LANES * LANES;
    m->out_cols = o->method == SES_PV_DM_CONCAT ? m->stride * (2 * o->window + 1) : m->stride;
    size_t n_doc, n_word, n_out;
    if (!ses_mul_size((size_t)docs, (size_t)m->stride, &n_doc) ||
        !ses_mul_size((size_t)words + 1, (size_t)m->stride, &n_word) ||
        !ses_mul_size((size_t)words, (size_t)m->out_cols, &n_out))
        return ses_fail(e, SES_ENOMEM, "too many weights");
    m->doc = ses_alloc_huge(n_doc, sizeof *m->doc, e);
    if (o->method != SES_PV_DBOW) m->word = ses_alloc_huge(n_word, sizeof *m->word, e);
    m->out = ses_alloc_huge(n_out, sizeof *m->out, e);
    m->keep = ses_alloc_array((size_t)words, sizeof *m->keep, e);
    m->noise = ses_sampling_table(&m->vocab, 0.75, e);
    if (!m->doc || (o->method != SES_PV_DBOW && !m->word) || !m->out || !m->keep || !m->noise) return false;
    set_keep(m);
    for (int64_t i = 0; i < docs; i++) start_row(m, START_DOC, (uint64_t)i, m->doc + i * m->stride);
    for (int64_t i = 0; m->word && i <= words; i++)
        start_row(m, START_WORD, (uint64_t)i, m->word + i * m->stride);
    return true;
}

void ses_pv_free(ses_pv_model *m)
{
    void *own[] = { m->doc, m->word, m->out, m->keep, m->noise };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    ses_word_vocab_free(&m->vocab);
    *m = (ses_pv_model){ 0 };
}

/* ---- epochs ---- */

typedef struct pass {
    ses_pv_model *m;
    const ses_documents *d;
    ses_pv_worker *worker;           /* [SES_PV_SHARDS] */
    int32_t *order;                  /* documents in random order */
    int64_t part[SES_PV_SHARDS + 1]; /* documents of the shards in this round: numbers of `order` */
    float rate;
} pass;

static uint64_t random_start(const ses_pv_model *m, int64_t epoch, uint64_t document)
{
    uint32_t b[4];
    ses_philox(b, (ses_rng_key){ m->o.seed, (uint32_t)epoch, SITE_EPOCH }, document);
    return (uint64_t)b[0] << 32 | b[1];
}

static void train_shard(void *ctx, int64_t shard, void *scratch)
{
    pass *p = ctx;
    ses_pv_worker *w = &p->worker[shard];
    (void)scratch;
    for (int64_t i = p->part[shard]; i < p->part[shard + 1] && w->err.code == SES_OK; i++) {
        int64_t k = p->order[i], from = p->d->start[k];
        ses_pv_train_document(w, p->d->id + from, p->d->start[k + 1] - from, p->m->doc + k * p->m->stride,
                              p->rate, random_start(p->m, p->m->epoch, (uint64_t)k));
    }
}

static void merge_chunk(void *ctx, int64_t chunk, void *scratch)
{
    pass *p = ctx;
    const ses_row_copies *copies[SES_PV_SHARDS];
    (void)scratch;
    for (int i = 0; i < SES_PV_SHARDS; i++) copies[i] = &p->worker[i].out;
    /* an output is trained with all inputs of a step: one, or the document and its context words */
    float pairs = p->m->o.method == SES_PV_DBOW_WORDS ? (float)p->m->o.window + 1 : 1;
    ses_row_copies_merge(copies, SES_PV_SHARDS, chunk, MERGE_PARTS, STEP * p->rate * pairs, p->worker[0].k);
    if (!p->m->word) return;
    for (int i = 0; i < SES_PV_SHARDS; i++) copies[i] = &p->worker[i].word;
    ses_row_copies_merge(copies, SES_PV_SHARDS, chunk, MERGE_PARTS,
                         STEP * p->rate * (float)(p->m->o.negative + 1), p->worker[0].k);
}

/* Distributes documents from number `at` of the order on; returns their end. Adds their words to *words. */
static int64_t plan_round(pass *p, int64_t at, int64_t *words)
{
    for (int i = 0; i < SES_PV_SHARDS; i++) {
        int64_t n = 0;
        p->part[i] = at;
        for (; at < p->d->n && n < ROUND_WORDS; at++)
            n += p->d->start[p->order[at] + 1] - p->d->start[p->order[at]];
        *words += n;
    }
    return p->part[SES_PV_SHARDS] = at;
}

static bool run_round(pass *p, ses_thread_pool *pool, ses_err *e)
{
    ses_parallel_for(pool, SES_PV_SHARDS, train_shard, p);
    for (int i = 0; i < SES_PV_SHARDS; i++)
        if (p->worker[i].err.code != SES_OK) return *e = p->worker[i].err, false;
    ses_parallel_for(pool, MERGE_PARTS, merge_chunk, p);
    for (int i = 0; i < SES_PV_SHARDS; i++) {
        ses_row_copies_drop(&p->worker[i].out);
        if (p->m->word) ses_row_copies_drop(&p->worker[i].word);
    }
    return true;
}

static bool begin_pass(pass *p, const ses_kernels *k, ses_err *e)
{
    const ses_pv_model *m = p->m;
    ses_rng_key key = { m->o.seed, (uint32_t)m->epoch, SITE_ORDER };
    if (!(p->worker = ses_alloc_array(SES_PV_SHARDS, sizeof *p->worker, e)) ||
        !(p->order = ses_alloc_array((size_t)p->d->n, sizeof *p->order, e)))
        return false;
    for (int64_t i = 0; i < p->d->n; i++) {
        int64_t other = (int64_t)((uint64_t)ses_rand32(key, (uint64_t)i) * (uint64_t)(i + 1) >> 32);
        p->order[i] = p->order[other];
        p->order[other] = (int32_t)i;
    }
    for (int i = 0; i < SES_PV_SHARDS; i++)
        if (!ses_pv_worker_init(&p->worker[i], m, k, false, e)) return false;
    return true;
}

static void end_pass(pass *p)
{
    for (int i = 0; p->worker && i < SES_PV_SHARDS; i++) ses_pv_worker_free(&p->worker[i]);
    ses_free(p->worker);
    ses_free(p->order);
}

/* The next round. *words: words of the epoch so far. */
static bool next_round(pass *p, int64_t *words, ses_thread_pool *pool, ses_err *e)
{
    ses_pv_model *m = p->m;
    double all = (double)p->d->start[p->d->n],
           part = ((double)m->epoch + (double)*words / all) / (double)m->o.epochs;
    p->rate = (float)(m->o.rate * fmax(1 - part, LEAST_RATE));
    m->next_doc = plan_round(p, m->next_doc, words);
    if (!run_round(p, pool, e)) return false;
    for (int i = 0; i < SES_PV_SHARDS; i++) {
        m->loss_sum += p->worker[i].loss, m->steps += p->worker[i].steps;
        p->worker[i].loss = 0, p->worker[i].steps = 0;
    }
    return isfinite(m->loss_sum) ||
           ses_fail(e, SES_EARG, "the loss is not finite in epoch %lld: give a smaller --lr",
                    (long long)m->epoch + 1);
}

bool ses_pv_epoch(ses_pv_model *m, const ses_documents *d, const ses_kernels *k, ses_thread_pool *pool,
                  ses_pv_progress *progress, void *ctx, bool *stopped, ses_err *e)
{
    pass p = { .m = m, .d = d };
    int64_t words = 0;
    bool ok = begin_pass(&p, k, e);
    *stopped = false;
    for (int64_t i = 0; ok && i < m->next_doc; i++) words += d->start[p.order[i] + 1] - d->start[p.order[i]];
    while (ok && !*stopped && m->next_doc < d->n) {
        ok = next_round(&p, &words, pool, e);
        *stopped = ok && progress && !progress(ctx, words);
    }
    end_pass(&p);
    if (ok && m->next_doc == d->n) {
        m->loss = m->steps ? m->loss_sum / (double)m->steps : 0;
        m->loss_sum = 0, m->steps = 0, m->next_doc = 0;
        m->epoch++;
    }
    return ok;
}

/* ---- inference ---- */

typedef struct inference {
    const ses_pv_model *m;
    const ses_documents *d;
    int64_t epochs, parts;
    ses_pv_worker *worker; /* [parts] */
    float *doc;            /* [parts][stride] */
    float *out;
} inference;

/* The random numbers depend on the epoch, not on the number of the document. */
static void infer_document(inference *p, ses_pv_worker *w, int64_t k, float *doc)
{
    const ses_pv_model *m = p->m;
    int64_t from = p->d->start[k], n = p->d->start[k + 1] - from;
    ses_pv_start(m, 0, doc);
    for (int64_t epoch = 0; n && epoch < p->epochs && w->err.code == SES_OK; epoch++) {
        float rate = (float)(m->o.rate * fmax(1 - (double)epoch / (double)p->epochs, LEAST_RATE));
        ses_pv_train_document(w, p->d->id + from, n, doc, rate, random_start(m, epoch, 0));
    }
    for (int64_t i = 0; i < m->o.dim; i++) p->out[k * m->o.dim + i] = n ? doc[i] : 0;
}

static void infer_part(void *ctx, int64_t part, void *scratch)
{
    inference *p = ctx;
    (void)scratch;
    for (int64_t k = part; k < p->d->n; k += p->parts)
        infer_document(p, &p->worker[part], k, p->doc + part * p->m->stride);
}

bool ses_pv_infer(const ses_pv_model *m, const ses_documents *d, int64_t epochs, const ses_kernels *k,
                  ses_thread_pool *pool, float *out, ses_err *e)
{
    inference p = { .m = m, .d = d, .epochs = epochs, .parts = ses_thread_pool_size(pool), .out = out };
    size_t parts = (size_t)p.parts;
    bool ok = (p.worker = ses_alloc_array(parts, sizeof *p.worker, e)) &&
              (p.doc = ses_alloc_array(parts, (size_t)m->stride * sizeof *p.doc, e));
    for (size_t i = 0; ok && i < parts; i++) ok = ses_pv_worker_init(&p.worker[i], m, k, true, e);
    if (ok) ses_parallel_for(pool, p.parts, infer_part, &p);
    for (size_t i = 0; p.worker && i < parts; i++) {
        if (ok && p.worker[i].err.code != SES_OK) ok = (*e = p.worker[i].err, false);
        ses_pv_worker_free(&p.worker[i]);
    }
    ses_free(p.worker);
    ses_free(p.doc);
    return ok;
}
