/* The trainer glove. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "glove_device.h"
#include "glove_model.h"
#include "vectors/train/run_text.h"
#include "vectors/train/vector_trainer.h"
#include "vectors/vector_table.h"

enum {
    DIM,
    WINDOW,
    SYMMETRIC,
    X_MAX,
    ALPHA,
    EPOCHS,
    LR,
    MIN_COUNT,
    MAX_VOCAB,
    WORDS,
    SEED,
    MEMORY,
    VECTORS,
    N_SETTINGS
};
static const ses_vector_setting setting[N_SETTINGS] = {
    [DIM] = { "dim", "50", SES_VECTOR_INTEGER, 1, 1 << 15, NULL },
    [WINDOW] = { "window", "15", SES_VECTOR_INTEGER, 1, 1 << 10, NULL },
    [SYMMETRIC] = { "symmetric", "1", SES_VECTOR_INTEGER, 0, 1, NULL },
    [X_MAX] = { "x-max", "100", SES_VECTOR_REAL, 1e-6, 1e12, NULL },
    [ALPHA] = { "alpha", "0.75", SES_VECTOR_REAL, 0, 100, NULL },
    [EPOCHS] = { "epochs", "25", SES_VECTOR_INTEGER, 1, 1 << 20, NULL },
    [LR] = { "lr", "0.05", SES_VECTOR_REAL, 0, 100, NULL },
    [MIN_COUNT] = { "min-count", "5", SES_VECTOR_INTEGER, 1, 1 << 30, NULL },
    [MAX_VOCAB] = { "max-vocab", "0", SES_VECTOR_INTEGER, 0, 1 << 30, NULL },
    [WORDS] = { "words", "blank", SES_VECTOR_CHOICE, 0, 0, SES_WORDS_RULE_NAMES },
    [SEED] = { "seed", "1", SES_VECTOR_INTEGER, 0, 4294967295.0, NULL },
    [MEMORY] = { "memory", "2", SES_VECTOR_REAL, 1e-5, 1 << 20, NULL },
    [VECTORS] = { "vectors", "sum", SES_VECTOR_CHOICE, 0, 0, "words|sum|both" }, /* as ses_glove_output */
};
#define GIGABYTE 1073741824.0

typedef struct trainer {
    ses_vector_job *job;
    ses_word_corpus corpus;
    ses_glove_pairs pairs;
    ses_glove_model model;
    ses_thread_pool *pool;
    ses_glove_engine engine;
    char *run, *checkpoint;
} trainer;

/* ---- text ---- */

static bool report_reading(void *ctx, int64_t words)
{
    const ses_vector_job *job = ((const trainer *)ctx)->job;
    return !job->progress ||
           job->progress(job->ctx, &(ses_vector_report){ .phase = "reading", .words = words });
}

static bool report_counting(void *ctx, int64_t words)
{
    const ses_vector_job *job = ((const trainer *)ctx)->job;
    return !job->progress ||
           job->progress(job->ctx, &(ses_vector_report){ .phase = "counting", .words = words });
}

static bool read_text(trainer *t, ses_err *e)
{
    ses_vector_job *job = t->job;
    size_t memory = (size_t)(job->value[MEMORY] * GIGABYTE);
    ses_word_corpus_options o = { .rule = (ses_words_rule)job->value[WORDS],
                                  .min_count = (int64_t)job->value[MIN_COUNT],
                                  .max_words = (size_t)job->value[MAX_VOCAB],
                                  .max_memory =
                                      memory < SES_GLOVE_LEAST_MEMORY ? SES_GLOVE_LEAST_MEMORY : memory,
                                  .beside = job->output,
                                  .encoding = job->encoding,
                                  .progress = report_reading,
                                  .ctx = t };
    bool ok = ses_word_corpus_read(&t->corpus, job->corpus, job->n_corpus, &o, e);
    job->skipped = t->corpus.skipped;
    job->words = (int64_t)t->corpus.vocab.n;
    job->tokens = t->corpus.vocab.kept_tokens;
    return ok;
}

static bool count(trainer *t, ses_err *e)
{
    const ses_vector_job *job = t->job;
    ses_glove_tiles tiles = ses_glove_tiles_of((int64_t)t->corpus.vocab.n,
                                               job->device ? SES_GLOVE_MAX_GROUPS : SES_GLOVE_CPU_GROUPS,
                                               (uint64_t)job->value[SEED]);
    ses_glove_count_options o = { .window = (int64_t)job->value[WINDOW],
                                  .symmetric = job->value[SYMMETRIC] > 0,
                                  .memory = (size_t)(job->value[MEMORY] * GIGABYTE),
                                  .x_max = job->value[X_MAX],
                                  .alpha = job->value[ALPHA],
                                  .beside = job->output,
                                  .progress = report_counting,
                                  .ctx = t };
    ses_glove_settings s = { .dim = (int64_t)job->value[DIM],
                             .rate = job->value[LR],
                             .seed = (uint64_t)job->value[SEED] };
    return ses_glove_count_pairs(&t->pairs, t->corpus.id, t->corpus.n, &tiles, &o, t->pool, e) &&
           ses_glove_model_init(&t->model, &tiles, &s, e);
}

/* ---- training ---- */

static bool report(trainer *t)
{
    const ses_glove_model *m = &t->model;
    const ses_vector_job *job = t->job;
    int64_t passes = (int64_t)job->value[EPOCHS];
    double part = (double)m->iteration + (double)m->phases / (double)m->tiles.groups;
    ses_vector_report r = { .phase = "training",
                            .words = (int64_t)(part * (double)job->tokens),
                            .total = passes * job->tokens,
                            .rate = m->o.rate,
                            .loss = m->loss,
                            .pass = (int)(m->iteration < passes ? m->iteration + 1 : passes),
                            .passes = (int)passes };
    return !job->progress || job->progress(job->ctx, &r);
}

static bool save(trainer *t, ses_err *e)
{
    const ses_glove_engine *n = &t->engine;
    return (!n->fetch || n->fetch(n->state, &t->model, e)) &&
           ses_glove_model_save(&t->model, t->run, t->checkpoint, e);
}

static bool train(trainer *t, ses_err *e)
{
    ses_glove_model *m = &t->model;
    ses_vector_job *job = t->job;
    double saved = ses_seconds();
    while (m->iteration < (int64_t)job->value[EPOCHS]) {
        if (!ses_glove_model_step(m, &t->pairs, &t->engine, e)) return false;
        if (!report(t)) {
            if (!save(t, e)) return false;
            job->stopped = true;
            return ses_fail(e, SES_EIO, "interrupted");
        }
        if (job->checkpoint_every > 0 && ses_seconds() - saved >= job->checkpoint_every) {
            if (!save(t, e)) return false;
            saved = ses_seconds();
        }
    }
    return !t->engine.fetch || t->engine.fetch(t->engine.state, m, e);
}

static bool train_on_threads(trainer *t, ses_err *e)
{
    ses_kernels k = ses_kernels_cpu(SES_ISA_BEST);
    ses_glove_threads threads = { &k, t->pool };
    t->engine = ses_glove_on_threads(&threads);
    return train(t, e);
}

static bool train_on_device(trainer *t, ses_err *e)
{
    ses_glove_device *d = ses_glove_device_new(t->job->device, &t->model, &t->pairs, e);
    if (!d) return false;
    t->engine = ses_glove_on_device(d);
    bool ok = train(t, e);
    ses_glove_device_free(d);
    return ok;
}

static bool resume(trainer *t, ses_err *e)
{
    if (!t->job->resume) return true;
    if (!ses_path_exists(t->checkpoint))
        return ses_fail(e, SES_EUSAGE, "%s does not exist: nothing to resume", t->checkpoint);
    return ses_glove_model_resume(&t->model, t->run, t->checkpoint, e);
}

/* ---- output ---- */

static void word_row(const void *ctx, int64_t i, float *out)
{
    const trainer *t = ctx;
    ses_glove_model_vector(&t->model, i, (ses_glove_output)t->job->value[VECTORS], out);
}

static bool write_output(const trainer *t, ses_err *e)
{
    const ses_vector_job *job = t->job;
    bool both = (ses_glove_output)job->value[VECTORS] == SES_GLOVE_BOTH;
    ses_vector_table f = {
        .vocab = &t->corpus.vocab, .dim = t->model.o.dim * (both ? 2 : 1), .row = word_row, .ctx = t
    };
    return ses_vector_table_save(&f, job->format ? job->format : "word2vec", job->output, job->overwrite,
                                 e) &&
           ses_file_remove(t->checkpoint, e);
}

static bool run(ses_vector_job *job, ses_err *e)
{
    trainer t = { .job = job };
    bool ok = (t.pool = ses_thread_pool_new(job->threads, e)) && read_text(&t, e) &&
              (t.run = ses_vector_run_text(job, &t.corpus.vocab, t.corpus.id, t.corpus.n,
                                           "epochs|memory|vectors", e)) &&
              (t.checkpoint = ses_vector_checkpoint_path(job, e)) && count(&t, e) && resume(&t, e) &&
              (job->device ? train_on_device(&t, e) : train_on_threads(&t, e)) && write_output(&t, e);
    job->loss = t.model.loss;
    ses_glove_model_free(&t.model);
    ses_glove_pairs_free(&t.pairs);
    ses_word_corpus_free(&t.corpus);
    ses_thread_pool_free(t.pool);
    ses_free(t.run);
    ses_free(t.checkpoint);
    return ok;
}

const ses_vector_trainer ses_vector_trainer_glove = { "glove", "word vectors from counts of word pairs",
                                                      setting, N_SETTINGS,
                                                      run,     true };
