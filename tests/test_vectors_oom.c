/* Files of word vectors with every allocation failing in turn. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/dir.h"
#include "base/file.h"
#include "vectors/analogies.h"
#include "vectors/vectors_impl.h"
#include "vectors/word_pairs.h"
#include "vectors/word_search.h"

static char dir[] = "/tmp/test_vectors_oom.XXXXXX", questions[64], pairs[64];
static const char words[] = "4 2\na 1 2 \nb 2 -1 \nA 0 1 \nd 3 3 \n";

static ses_vectors *open_words(ses_err *e)
{
    ses_vectors *v = ses_vectors_from_memory(words, strlen(words), "words", e);
    if (v && ses_vectors_read_words(v, 0, e)) return v;
    ses_vectors_free(v);
    return NULL;
}

static bool read_file(void *ctx, ses_err *e)
{
    ses_vectors *v = ses_vectors_open(ctx, e);
    bool ok = v && ses_vectors_read_words(v, 0, e);
    ses_vectors_free(v);
    return ok;
}

static bool save(void *ctx, ses_err *e)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, (const char *)ctx);
    ses_vectors *v = open_words(e);
    bool ok = v && ses_vectors_save(v, ctx, path, &(ses_vectors_save_options){ .overwrite = true }, e);
    ses_vectors_free(v);
    return ok;
}

static bool score(void *ctx, ses_err *e)
{
    (void)ctx;
    ses_analogy_result r = { 0 };
    ses_word_pairs_score s;
    ses_folded_words f = { 0 };
    ses_vectors *v = open_words(e);
    bool ok = v && ses_analogies_score(&r, v, questions, &(ses_analogy_options){ .threads = 1 }, e) &&
              ses_folded_words_build(&f, v, 4, SES_FOLD_UNICODE, e) &&
              ses_word_pairs_evaluate(&s, v, &f, pairs, &(ses_word_pairs_options){ 0 }, e);
    ses_folded_words_free(&f);
    ses_analogy_result_free(&r);
    ses_vectors_free(v);
    return ok;
}

int main(void)
{
    static char kv[] = "tests/fixtures/vectors/plain.kv", apart[] = "tests/fixtures/vectors/apart.kv",
                binary[] = "word2vec-binary", folder[] = "safetensors";
    ses_err e = { 0 };
    if (!CHECK(mkdtemp(dir))) return check_report();
    snprintf(questions, sizeof questions, "%s/questions", dir);
    snprintf(pairs, sizeof pairs, "%s/pairs", dir);
    CHECK(ses_file_write(questions, ": s\na b d a\n", 12, true, &e));
    CHECK(ses_file_write(pairs, "a\tb\t1\na\td\t2\n", 12, true, &e));
    oom_sweep("kv", read_file, kv);
    oom_sweep("kv and npy", read_file, apart);
    oom_sweep("binary", save, binary);
    oom_sweep("folder", save, folder);
    oom_sweep("scores", score, NULL);
    char path[96];
    snprintf(path, sizeof path, "%s/safetensors", dir);
    ses_dir_remove(path, NULL);
    ses_dir_remove(dir, NULL);
    return check_report();
}
