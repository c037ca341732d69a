/* The trainers pv-dbow and pv-dm. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "paragraph.h"
#include "vectors/train/run_text.h"
#include "vectors/train/vector_trainer.h"
#include "vectors/vector_table.h"

#include <stdio.h>
#include <string.h>

enum { DIM, WINDOW, NEGATIVE, SAMPLE, EPOCHS, LR, MIN_COUNT, MAX_VOCAB, WORDS, SEED, VARIANT, N_SETTINGS };

#define SETTINGS(window_idle, option, def, choices)                                                    \
    {                                                                                                  \
        [DIM] = { "dim", "100", SES_VECTOR_INTEGER, 1, SES_PV_MAX_DIM, NULL },                         \
        [WINDOW] = { "window", "5", SES_VECTOR_INTEGER, 1, SES_PV_MAX_WINDOW, NULL, window_idle },     \
        [NEGATIVE] = { "negative", "5", SES_VECTOR_INTEGER, 1, SES_PV_MAX_NEGATIVE, NULL },            \
        [SAMPLE] = { "sample", "1e-3", SES_VECTOR_REAL, 0, 1, NULL }, [EPOCHS] = { "epochs",           \
                                                                                   "10",               \
                                                                                   SES_VECTOR_INTEGER, \
                                                                                   1,                  \
                                                                                   1 << 20,            \
                                                                                   NULL },             \
        [LR] = { "lr", "0.025", SES_VECTOR_REAL, 0, 100, NULL }, [MIN_COUNT] = { "min-count",          \
                                                                                 "5",                  \
                                                                                 SES_VECTOR_INTEGER,   \
                                                                                 1,                    \
                                                                                 1 << 30,              \
                                                                                 NULL },               \
        [MAX_VOCAB] = { "max-vocab", "0", SES_VECTOR_INTEGER, 0, 1 << 30, NULL },                      \
        [WORDS] = { "words", "blank", SES_VECTOR_CHOICE, 0, 0, SES_WORDS_RULE_NAMES },                 \
        [SEED] = { "seed", "1", SES_VECTOR_INTEGER, 0, 4294967295.0, NULL },                           \
        [VARIANT] = { option, def, SES_VECTOR_CHOICE, 0, 0, choices },                                 \
    }
static const ses_vector_setting dbow[N_SETTINGS] = SETTINGS("train-words=no", "train-words", "no", "no|yes");
static const ses_vector_setting dm[N_SETTINGS] = SETTINGS(NULL, "inputs", "mean", "mean|concat");

typedef struct trainer {
    ses_vector_job *job;
    ses_documents docs;
    ses_pv_model model;
    ses_thread_pool *pool;
    char *run, *checkpoint;
    double saved; /* time of the last checkpoint */
    bool due;     /* the epoch was stopped to write a checkpoint, not by the user */
} trainer;

static bool report_reading(void *ctx, int64_t words)
{
    const ses_vector_job *job = ((const trainer *)ctx)->job;
    return !job->progress ||
           job->progress(job->ctx, &(ses_vector_report){ .phase = "reading", .words = words });
}

static bool read_text(trainer *t, ses_err *e)
{
    ses_vector_job *job = t->job;
    ses_documents_options o = { .rule = (ses_words_rule)job->value[WORDS],
                                .min_count = (int64_t)job->value[MIN_COUNT],
                                .max_words = (size_t)job->value[MAX_VOCAB],
                                .encoding = job->encoding,
                                .progress = report_reading,
                                .ctx = t };
    bool ok = ses_documents_read(&t->docs, job->corpus, job->n_corpus, &o, e);
    job->skipped = t->docs.skipped;
    job->words = (int64_t)t->docs.vocab.n;
    job->tokens = t->docs.vocab.kept_tokens;
    return ok;
}

static bool set_up(trainer *t, ses_pv_method method, ses_err *e)
{
    const double *value = t->job->value;
    ses_pv_settings o = { .method = method,
                          .rule = (ses_words_rule)value[WORDS],
                          .dim = (int64_t)value[DIM],
                          .window = (int64_t)value[WINDOW],
                          .negative = (int64_t)value[NEGATIVE],
                          .epochs = (int64_t)value[EPOCHS],
                          .min_count = (int64_t)value[MIN_COUNT],
                          .rate = value[LR],
                          .sample = value[SAMPLE],
                          .seed = (uint64_t)value[SEED] };
    const ses_documents *d = &t->docs;
    if (!(t->run = ses_vector_run_text(t->job, &d->vocab, d->id, d->start[d->n], NULL, e)) ||
        !(t->checkpoint = ses_vector_checkpoint_path(t->job, e)) ||
        !ses_pv_init(&t->model, &t->docs.vocab, d->n, &o, e))
        return false;
    if (!t->job->resume) return true;
    if (!ses_path_exists(t->checkpoint))
        return ses_fail(e, SES_EUSAGE, "%s does not exist: nothing to resume", t->checkpoint);
    return ses_pv_resume(&t->model, t->checkpoint, t->run, e);
}

static bool report(void *ctx, int64_t words)
{
    trainer *t = ctx;
    const ses_pv_model *m = &t->model;
    const ses_vector_job *job = t->job;
    ses_vector_report r = { .phase = "training",
                            .words = m->epoch * job->tokens + words,
                            .total = m->o.epochs * job->tokens,
                            .rate = m->o.rate,
                            .loss = m->steps ? m->loss_sum / (double)m->steps : 0,
                            .pass = (int)m->epoch + 1,
                            .passes = (int)m->o.epochs };
    t->due = job->checkpoint_every > 0 && ses_seconds() - t->saved >= job->checkpoint_every;
    if (job->progress && !job->progress(job->ctx, &r)) return t->due = false;
    return !t->due;
}

static bool train(trainer *t, ses_err *e)
{
    ses_kernels k = ses_kernels_cpu(SES_ISA_BEST);
    ses_pv_model *m = &t->model;
    t->saved = ses_seconds();
    while (m->epoch < m->o.epochs) {
        bool stopped;
        if (!ses_pv_epoch(m, &t->docs, &k, t->pool, report, t, &stopped, e)) return false;
        if (!stopped) continue;
        if (!ses_pv_save(m, t->checkpoint, t->run, true, e)) return false;
        t->saved = ses_seconds();
        if (t->due) continue;
        t->job->stopped = true;
        return ses_fail(e, SES_EIO, "interrupted");
    }
    return true;
}

/* ---- output ---- */

static void document_row(const void *ctx, int64_t i, float *out)
{
    const ses_pv_model *m = ctx;
    memcpy(out, m->doc + i * m->stride, (size_t)m->o.dim * sizeof *out);
}

/* The documents as words "1", "2", ... of a file of word vectors. */
static bool write_documents(const trainer *t, ses_err *e)
{
    ses_word_vocab names = { 0 };
    ses_vector_table f = { .vocab = &names, .dim = t->model.o.dim, .row = document_row, .ctx = &t->model };
    bool ok = true;
    for (int64_t i = 0; ok && i < t->model.docs; i++) {
        char name[24];
        int n = snprintf(name, sizeof name, "%lld", (long long)i + 1);
        ok = ses_word_vocab_count(&names, name, (size_t)n, e) >= 0;
    }
    ok = ok && ses_vector_table_save(&f, t->job->format, t->job->output, t->job->overwrite, e);
    ses_word_vocab_free(&names);
    return ok;
}

static bool write_output(const trainer *t, ses_err *e)
{
    return t->job->format ? write_documents(t, e)
                          : ses_pv_save(&t->model, t->job->output, NULL, t->job->overwrite, e);
}

static bool run(ses_vector_job *job, ses_pv_method method, ses_err *e)
{
    trainer t = { .job = job };
    bool ok = (t.pool = ses_thread_pool_new(job->threads, e)) && read_text(&t, e) && set_up(&t, method, e) &&
              train(&t, e) && write_output(&t, e) && ses_file_remove(t.checkpoint, e);
    job->loss = t.model.loss;
    ses_pv_free(&t.model);
    ses_documents_free(&t.docs);
    ses_thread_pool_free(t.pool);
    ses_free(t.run);
    ses_free(t.checkpoint);
    return ok;
}

static bool run_dbow(ses_vector_job *job, ses_err *e)
{
    return run(job, job->value[VARIANT] > 0 ? SES_PV_DBOW_WORDS : SES_PV_DBOW, e);
}
static bool run_dm(ses_vector_job *job, ses_err *e)
{
    return run(job, job->value[VARIANT] > 0 ? SES_PV_DM_CONCAT : SES_PV_DM_MEAN, e);
}

const ses_vector_trainer ses_vector_trainer_pv_dbow = { "pv-dbow", "vectors of documents predict their words",
                                                        dbow,      N_SETTINGS,
                                                        run_dbow,  false };
const ses_vector_trainer ses_vector_trainer_pv_dm = {
    "pv-dm", "vectors of documents and neighbors predict a word", dm, N_SETTINGS, run_dm, false
};
