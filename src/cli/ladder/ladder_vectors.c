/* Word vectors of a ladder: --vectors FILE, or skip-gram vectors of the training texts. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number_text.h"
#include "cli/train/train_monitor.h"
#include "sesame/vectors.h"
#include "train/energy/energy_meter.h"
#include "vectors/train/vector_trainer.h"
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

static bool should_continue(void *ctx, const ses_vector_report *r)
{
    ses_progress *bar = ctx;
    if (!bar->total && r->total) bar->total = r->total;
    ses_progress_show(bar, r->words);
    return !ses_train_monitor_should_stop();
}

static bool train_vectors(const ses_ladder *l, const char *texts, const char *vectors, int64_t seed,
                          ses_err *e)
{
    char seed_text[SES_NUMBER_TEXT];
    const char *const name[] = { "min-count", "epochs", "seed" }, *const value[] = { "2", "10", seed_text };
    const ses_vector_trainer *t = ses_vector_trainer_find("skipgram", e);
    ses_progress bar = ses_progress_start(stderr, &l->x.c->err, l->x.c->quiet, "word vectors", 0);
    ses_vector_job job = { .corpus = &texts,
                           .n_corpus = 1,
                           .output = vectors,
                           .format = "word2vec-binary",
                           .overwrite = true,
                           .threads = ses_compute_threads(&l->a->compute),
                           .progress = should_continue,
                           .ctx = &bar };
    snprintf(seed_text, sizeof seed_text, "%u", (unsigned)seed);
    bool ok = t && ses_vector_job_set(&job, t, name, value, SES_LEN(name), e) && t->run(&job, e);
    ses_progress_end(&bar);
    char *checkpoint = job.stopped ? ses_vector_checkpoint_path(&job, NULL) : NULL;
    if (checkpoint) ses_file_remove(checkpoint, NULL); /* a resumed ladder repeats the method */
    ses_free(checkpoint);
    return ok;
}

bool ses_ladder_check_vectors(const ses_ladder_args *a, ses_err *e)
{
    if (!a->vectors) return true;
    ses_vectors *v = ses_vectors_open(a->vectors, e);
    float *first = v ? ses_alloc_array((size_t)ses_vectors_dim(v), sizeof *first, e) : NULL;
    bool ok = first && ses_vectors_read_words(v, 1, e) &&
              (!ses_vectors_count(v) || ses_vectors_get(v, 0, first, e));
    ses_free(first);
    ses_vectors_free(v);
    return ok || ses_wrap(e, "--vectors");
}

bool ses_ladder_with_vectors(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                             ses_vectors_method *run, ses_err *e)
{
    ses_energy_meter meter;
    if (l->a->vectors) return run(l, r, dir, seed, l->a->vectors, e);
    char *texts = ses_path_join(l->root, "texts.txt", e), *vectors = ses_path_join(l->root, "vectors.bin", e);
    double begin = ses_seconds();
    ses_energy_meter_start(&meter, &(ses_energy_sources){ 0 });
    bool ok = texts && vectors && write_texts(l, texts, e) && train_vectors(l, texts, vectors, seed, e);
    double joules = ses_energy_meter_stop(&meter, l->a->energy.core_watts).joules,
           seconds = ses_seconds() - begin;
    ok = ok && ses_ladder_write_extra(dir, seconds, joules, 0, e) && run(l, r, dir, seed, vectors, e);
    if (texts) ses_file_remove(texts, NULL);
    if (vectors) ses_file_remove(vectors, NULL);
    ses_free(texts);
    ses_free(vectors);
    return ok;
}
