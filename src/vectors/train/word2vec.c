/* The trainers skipgram and cbow. */
#include "word2vec.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include <math.h>

enum { MAX_DIM = 1 << 16, MAX_WINDOW = 1 << 10, ALIGN = 16, SITE_INIT = 3 };
enum { REPORT_ROUNDS = 8, MAX_ROWS = 1 << 30 };

#define INTEGER(name, def, low, high, idle)                  \
    {                                                        \
        name, def, SES_VECTOR_INTEGER, low, high, NULL, idle \
    }
#define REAL(name, def, high)                     \
    {                                             \
        name, def, SES_VECTOR_REAL, 0, high, NULL \
    }
#define SETTINGS(rate)                                                                                     \
    {                                                                                                      \
        [SES_W2V_DIM] = INTEGER("dim", "100", 1, MAX_DIM, NULL),                                           \
        [SES_W2V_WINDOW] = INTEGER("window", "5", 1, MAX_WINDOW, NULL),                                    \
        [SES_W2V_NEGATIVE] = INTEGER("negative", "5", 1, SES_W2V_MAX_NEGATIVE, "loss=hs"),                 \
        [SES_W2V_SAMPLE] = REAL("sample", "1e-3", 1), [SES_W2V_LOSS] = { "loss", "ns", SES_VECTOR_CHOICE,  \
                                                                         0,      0,    "ns|hs" },          \
        [SES_W2V_EPOCHS] = INTEGER("epochs", "5", 1, 1 << 20, NULL), [SES_W2V_LR] = REAL("lr", rate, 100), \
        [SES_W2V_MIN_COUNT] = INTEGER("min-count", "5", 1, 1 << 30, NULL),                                 \
        [SES_W2V_MAX_VOCAB] = INTEGER("max-vocab", "0", 0, 1 << 30, NULL),                                 \
        [SES_W2V_MINN] = INTEGER("minn", "3", 1, 100, "maxn=0"),                                           \
        [SES_W2V_MAXN] = INTEGER("maxn", "0", 0, 100, NULL),                                               \
        [SES_W2V_BUCKET] = INTEGER("bucket", "2000000", 1, 1 << 30, "maxn=0"),                             \
        [SES_W2V_WORDS] = { "words", "blank", SES_VECTOR_CHOICE, 0, 0, SES_WORDS_RULE_NAMES },             \
        [SES_W2V_SEED] = INTEGER("seed", "1", 0, 4294967295.0, NULL),                                      \
        [SES_W2V_SHARDS] = INTEGER("shards", "8", 1, SES_W2V_MAX_SHARDS, NULL),                            \
    }

static const ses_vector_setting skipgram[SES_W2V_SETTINGS] = SETTINGS("0.025");
static const ses_vector_setting cbow[SES_W2V_SETTINGS] = SETTINGS("0.05");

/* ---- set-up ---- */

static bool report_reading(void *ctx, int64_t words)
{
    const ses_w2v *w = ctx;
    return !w->job->progress ||
           w->job->progress(w->job->ctx, &(ses_vector_report){ "reading", words, 0, 0, 0, 0, 0 });
}

static bool read_corpus(ses_w2v *w, ses_err *e)
{
    const double *value = w->job->value;
    ses_word_corpus_options o = { .rule = (ses_words_rule)value[SES_W2V_WORDS],
                                  .min_count = (int64_t)value[SES_W2V_MIN_COUNT],
                                  .max_words = (size_t)value[SES_W2V_MAX_VOCAB],
                                  .beside = w->job->output,
                                  .encoding = w->job->encoding,
                                  .progress = report_reading,
                                  .ctx = w };
    bool ok = ses_word_corpus_read(&w->corpus, w->job->corpus, w->job->n_corpus, &o, e);
    w->job->skipped = w->corpus.skipped;
    if (!ok) return false;
    if (w->corpus.vocab.n < 2)
        return ses_fail(e, SES_EARG, "%s: a vocabulary of one word; at least two are needed (--min-count)",
                        w->job->corpus[0]);
    w->job->words = (int64_t)w->corpus.vocab.n;
    w->job->tokens = w->corpus.vocab.kept_tokens;
    return true;
}

/* Probability to keep a word of frequency f: sqrt(t / f) + t / f. */
static bool make_keep(ses_w2v *w, ses_err *e)
{
    const ses_word_vocab *v = &w->corpus.vocab;
    double sample = w->job->value[SES_W2V_SAMPLE];
    w->keep = ses_alloc_array(v->n, sizeof *w->keep, e);
    for (size_t i = 0; w->keep && i < v->n; i++) {
        double ratio = sample * (double)v->kept_tokens / (double)v->word[i].count, p = sqrt(ratio) + ratio;
        w->keep[i] = sample <= 0 || p >= 1 ? UINT32_MAX : (uint32_t)(p * 4294967295.0);
    }
    return w->keep != NULL;
}

static bool make_weights(ses_w2v *w, ses_err *e)
{
    int64_t rows = w->in_rows + w->out_rows, all;
    if (rows > MAX_ROWS || !ses_mul_i64(rows + 1, w->stride, &all))
        return ses_fail(e, SES_ENOMEM, "%lld rows of weights, expected at most %d", (long long)rows,
                        MAX_ROWS);
    w->weight = ses_alloc_huge((size_t)all, sizeof *w->weight, e); /* one more, see ses_w2v_write */
    if (!w->weight) return false;
    float range = 1 / (float)w->dim;
    ses_rng_key key = { w->seed, 0, SITE_INIT };
    for (int64_t i = 0; i < w->in_rows; i++) {
        float *row = w->weight + i * w->stride;
        for (int64_t c = 0; c < w->dim; c += 4) {
            uint32_t random[4];
            ses_philox(random, key, (uint64_t)(i * w->stride + c) >> 2);
            for (int64_t k = 0; k < 4 && c + k < w->dim; k++)
                row[c + k] = ((float)(random[k] >> 8) * 0x1p-24f - 0.5f) * range;
        }
    }
    return true;
}

static bool set_up(ses_w2v *w, ses_err *e)
{
    const double *value = w->job->value;
    const ses_word_vocab *v = &w->corpus.vocab;
    bool subwords = value[SES_W2V_MAXN] > 0;
    if (subwords && value[SES_W2V_MINN] > value[SES_W2V_MAXN])
        return ses_fail(e, SES_EUSAGE, "--minn %s is larger than --maxn %s", w->job->text[SES_W2V_MINN],
                        w->job->text[SES_W2V_MAXN]);
    if (subwords && w->job->device)
        return ses_fail(e, SES_EUNSUPPORTED, "--maxn: subwords are trained on a CPU only: use --device cpu");
    if (!read_corpus(w, e)) return false;
    w->dim = (int64_t)value[SES_W2V_DIM];
    w->stride = (w->dim + ALIGN - 1) / ALIGN * ALIGN;
    w->window = (int)value[SES_W2V_WINDOW], w->negative = (int)value[SES_W2V_NEGATIVE];
    w->epochs = (int)value[SES_W2V_EPOCHS], w->lr = value[SES_W2V_LR];
    w->seed = (uint64_t)value[SES_W2V_SEED], w->shards = (int64_t)value[SES_W2V_SHARDS];
    w->hs = value[SES_W2V_LOSS] > 0, w->bags = w->cbow || subwords;
    w->in_rows = (int64_t)v->n + (subwords ? (int64_t)value[SES_W2V_BUCKET] : 0);
    w->out_rows = (int64_t)v->n - (w->hs ? 1 : 0);
    w->kernel = ses_kernels_cpu(SES_ISA_BEST);
    w->engine = w->job->device ? &ses_w2v_device : &ses_w2v_threads;
    return make_weights(w, e) && make_keep(w, e) && w->engine->divide(w, e) &&
           (w->hs ? ses_huffman_tree_build(&w->tree, v, e)
                  : (w->negatives = ses_sampling_table(v, 0.75, e)) != NULL) &&
           (!subwords || ses_subwords_build(&w->sub, v, (int)value[SES_W2V_MINN], (int)value[SES_W2V_MAXN],
                                            (int64_t)value[SES_W2V_BUCKET], e));
}

/* ---- training ---- */

static bool report(ses_w2v *w)
{
    int64_t all = w->rounds * w->epochs, tokens = w->corpus.vocab.kept_tokens;
    ses_vector_report r = { .phase = "training",
                            .words = (int64_t)((double)w->round / (double)all * (double)tokens * w->epochs),
                            .total = tokens * w->epochs,
                            .rate = (double)w->rate,
                            .loss = w->pairs ? w->loss / (double)w->pairs : 0,
                            .pass = (int)(w->round / w->rounds) + 1,
                            .passes = w->epochs };
    w->loss = 0, w->pairs = 0, w->reported = w->round;
    return !w->job->progress || w->job->progress(w->job->ctx, &r);
}

static bool save(ses_w2v *w, ses_err *e) { return w->engine->fetch(w, e) && ses_w2v_save(w, e); }

static bool train(ses_w2v *w, ses_err *e)
{
    double every = w->job->checkpoint_every;
    w->saved_at = ses_seconds();
    w->reported = w->round;
    if (!w->engine->begin(w, e)) return false;
    while (w->round < w->rounds * w->epochs) {
        if (!w->engine->advance(w, e)) return false;
        if (w->round - w->reported >= REPORT_ROUNDS && !report(w)) {
            w->job->stopped = true;
            return save(w, e) && ses_fail(e, SES_EIO, "interrupted");
        }
        if (every > 0 && ses_seconds() - w->saved_at >= every && !save(w, e)) return false;
    }
    return w->engine->fetch(w, e);
}

/* ---- the trainers ---- */

static bool run(ses_vector_job *job, bool is_cbow, ses_err *e)
{
    ses_w2v w = { .job = job, .cbow = is_cbow };
    bool ok = (w.checkpoint = ses_vector_checkpoint_path(job, e)) && set_up(&w, e) &&
              (!job->resume || ses_w2v_resume(&w, e)) && train(&w, e) && ses_w2v_write(&w, e) &&
              ses_file_remove(w.checkpoint, e); /* allocates nothing: the output is complete */
    job->loss = w.pass_pairs ? w.pass_loss / (double)w.pass_pairs : 0;
    if (w.engine) w.engine->end(&w);
    ses_huffman_tree_free(&w.tree);
    ses_subwords_free(&w.sub);
    ses_word_corpus_free(&w.corpus);
    void *own[] = { w.weight, w.keep, w.negatives, w.shard, w.checkpoint };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    return ok;
}

static bool run_skipgram(ses_vector_job *job, ses_err *e) { return run(job, false, e); }
static bool run_cbow(ses_vector_job *job, ses_err *e) { return run(job, true, e); }

const ses_vector_trainer ses_vector_trainer_skipgram = { "skipgram",   "words predict their neighbors",
                                                         skipgram,     SES_W2V_SETTINGS,
                                                         run_skipgram, true };
const ses_vector_trainer ses_vector_trainer_cbow = { "cbow",   "neighbors predict a word",
                                                     cbow,     SES_W2V_SETTINGS,
                                                     run_cbow, true };
