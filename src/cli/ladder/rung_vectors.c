/* vectors: logistic regression on the mean of word vectors, from --vectors FILE or trained on the training
 * texts (skip-gram, as word2vec.c). */
#include "ladder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/energy/energy_meter.h"
#include "base/file.h"
#include "cli/train/train_monitor.h"
#include "vectors/exact/exact.h"
#include "vectors/word_split.h"

/* One text per line, its words separated by blanks. */
static bool write_texts(const ses_ladder *l, const char *path, ses_err *e)
{
    ses_words w = { 0 };
    ses_file_writer *f = ses_file_writer_open(path, true, e);
    bool ok = f != NULL;
    for (size_t i = 0; ok && i < ses_examples_count(l->train); i++) {
        const ses_labeled_example *x = ses_examples_at(l->train, i);
        ok = ses_words_split(&w, x->text_a, SES_WORDS_TEXT, e) &&
             ses_file_writer_put(f, w.text.data ? w.text.data : "", w.text.len, e) &&
             ses_file_writer_put(f, "\n", 1, e);
    }
    ok = ok && ses_file_writer_commit(f, e);
    ses_file_writer_free(f);
    ses_words_free(&w);
    return ok;
}

static bool should_continue(void *ctx, int64_t done, int64_t total)
{
    (void)ctx, (void)done, (void)total;
    return !ses_train_monitor_should_stop();
}

static bool train_vectors(const char *texts, const char *vectors, ses_err *e)
{
    static const char *const name[] = { "size", "cbow", "min-count", "iter" };
    static const char *const value[] = { "100", "0", "2", "10" };
    const ses_exact_program *p = ses_exact_find("word2vec", e);
    ses_exact_job job = {
        .corpus = texts, .output = vectors, .overwrite = true, .progress = should_continue
    };
    return p && ses_exact_set(p, name, value, SES_LEN(name), &job, e) && p->run(&job, e);
}

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    ses_energy_meter meter;
    if (l->a->vectors) return ses_ladder_run_classifier(l, r, dir, seed, l->a->vectors, e);
    char *texts = ses_path_join(l->root, "texts.txt", e), *vectors = ses_path_join(l->root, "vectors.txt", e);
    double begin = ses_seconds();
    ses_energy_meter_start(&meter, &(ses_energy_sources){ 0 });
    bool ok = texts && vectors && write_texts(l, texts, e) && train_vectors(texts, vectors, e);
    double joules = ses_energy_meter_stop(&meter, l->a->energy.core_watts).joules,
           seconds = ses_seconds() - begin;
    ok = ok && ses_ladder_write_extra(dir, seconds, joules, 0, e) &&
         ses_ladder_run_classifier(l, r, dir, seed, vectors, e);
    if (texts) ses_file_remove(texts, NULL);
    if (vectors) ses_file_remove(vectors, NULL);
    ses_free(texts);
    ses_free(vectors);
    return ok;
}

const ses_rung ses_rung_vectors = {
    .name = "vectors", .summary = "mean of word vectors, logistic regression", .method = "cbow", .run = run
};
