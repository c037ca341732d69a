/* Texts as word ids and the trainers of word vectors with every allocation failing in turn. */
#define _POSIX_C_SOURCE 200809L
#include "oom.h"

#include "base/dir.h"
#include "base/file.h"
#include "vectors/train/vector_trainer.h"

#include <unistd.h>

static char folder[] = "/tmp/sesame-word-corpus-oom-XXXXXX";
static char corpus[64], output[64];

static bool read_corpus(void *ctx, ses_err *e)
{
    const char *path = corpus;
    ses_word_corpus c = { 0 };
    ses_word_corpus_options o = { .rule = *(ses_words_rule *)ctx, .min_count = 1 };
    bool ok = ses_word_corpus_read(&c, &path, 1, &o, e);
    ses_word_corpus_free(&c);
    return ok;
}

typedef struct run {
    const char *model, *format, *option, *value;
    bool bucket;
} run;

/* Not part of the run: no allocation fails. */
static void remove_output(void)
{
    long from = oom.fail_from;
    oom.fail_from = 0;
    if (ses_path_is_dir(output)) ses_dir_remove(output, NULL);
    unlink(output);
    oom.calls = 0;
    oom.fail_from = from;
}

/* A run that fails leaves no output: nothing is allocated after it has its name. */
static bool train(void *ctx, ses_err *e)
{
    const run *r = ctx;
    remove_output();
    const char *path = corpus, *name[] = { "min-count", "dim", "epochs", r->option, "bucket" },
               *value[] = { "1", "2", "1", r->value, "9" };
    const ses_vector_trainer *t = ses_vector_trainer_find(r->model, e);
    ses_vector_job job = {
        .corpus = &path, .n_corpus = 1, .output = output, .format = r->format, .threads = 1
    };
    bool ok = t &&
              ses_vector_job_set(&job, t, name, value,
                                 r->bucket   ? 5
                                 : r->option ? 4
                                             : 3,
                                 e) &&
              t->run(&job, e);
    CHECK_MSG(ok || !ses_path_exists(output), "%s: failed, but %s exists", r->model, output);
    return ok;
}

int main(void)
{
    static const char text[] = "The cat, the DOG.\nThe cat!\n\na dog of a cat";
    static const run runs[] = { { "skipgram", "word2vec" },
                                { "skipgram", "safetensors", "loss", "hs" },
                                { "cbow", "fasttext", "maxn", "3", true },
                                { "glove", "glove" },
                                { "pv-dbow", "vec" },
                                { "pv-dm", NULL } };
    ses_words_rule rules[] = { SES_WORDS_BLANK, SES_WORDS_TEXT };
    if (!mkdtemp(folder)) return 1;
    snprintf(corpus, sizeof corpus, "%s/corpus", folder);
    CHECK(ses_file_write(corpus, text, sizeof text - 1, true, NULL));
    for (size_t i = 0; i < SES_LEN(rules); i++) oom_sweep("corpus", read_corpus, &rules[i]);
    for (size_t i = 0; i < SES_LEN(runs); i++) {
        run r = runs[i];
        snprintf(output, sizeof output, "%s/out%zu", folder, i);
        oom_sweep(r.model, train, &r);
        CHECK(ses_path_is_dir(output) ? ses_dir_remove(output, NULL) : !unlink(output));
    }
    unlink(corpus);
    CHECK(!rmdir(folder)); /* nothing else is left */
    return check_report();
}
