/* Files of word vectors. The first byte selects: m: a file in memory, whose format is detected; F: a folder's
 * config.json, a NUL and vocab.txt; Q: analogy questions; P: a list of word pairs. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "fuzz_folder.h"
#include "vectors/analogies.h"
#include "vectors/vectors_impl.h"
#include "vectors/word_pairs.h"

#include <math.h>

static const char three[] = "a 1 2\nb 2 -1\nc 0 1\n";
static char dir[40], folder[64], list[64];
static ses_vectors *fixed;

static void clean(void)
{
    ses_vectors_free(fixed);
    ses_dir_remove(folder, NULL);
    ses_dir_remove(dir, NULL);
}

static void start(void)
{
    ses_err e = { 0 };
    fuzz_folder(dir);
    snprintf(folder, sizeof folder, "%s/vectors", dir);
    snprintf(list, sizeof list, "%s/list", dir);
    MUST(!atexit(clean));
    MUST(fixed = ses_vectors_from_memory(three, strlen(three), "three", &e));
    MUST(ses_vectors_read_words(fixed, 0, &e) && ses_vectors_save(fixed, "safetensors", folder, NULL, &e));
}

/* Every word is found, and every vector is finite or refused. */
static void check(ses_vectors *v, ses_err *e)
{
    MUST(!v == (e->code != SES_OK));
    if (!v) return;
    int64_t dim = ses_vectors_dim(v);
    MUST(dim >= 1 && dim <= SES_VECTORS_MAX_DIM);
    bool ok = ses_vectors_read_words(v, 2, e);
    MUST(ses_vectors_count(v) <= 2);
    ok = ok && ses_vectors_read_words(v, 0, e);
    MUST(ok == (e->code == SES_OK));
    float *x = ses_alloc_array((size_t)dim, sizeof *x, NULL);
    for (int64_t i = 0; x && i < ses_vectors_count(v); i++) {
        ses_string w = ses_vectors_word(v, i);
        ses_err own = { 0 };
        MUST(w.n && ses_vectors_find(v, w.p, w.n) == i);
        if (!ses_vectors_get(v, i, x, &own)) {
            MUST(own.code == SES_EFORMAT);
            continue;
        }
        for (int64_t k = 0; k < dim; k++) MUST(isfinite(x[k]));
    }
    ses_free(x);
    ses_vectors_free(v);
}

static void read_folder(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    char path[96];
    const uint8_t *end = memchr(data, 0, n);
    size_t config = end ? (size_t)(end - data) : n;
    snprintf(path, sizeof path, "%s/config.json", folder);
    fuzz_file(path, data, config);
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    fuzz_file(path, end ? end + 1 : data, end ? n - config - 1 : 0);
    check(ses_vectors_open(folder, &e), &e);
}

static void read_questions(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_analogy_result r;
    ses_analogy_options o = { .rules = n % 2 ? SES_ANALOGY_GENSIM : SES_ANALOGY_WORD2VEC, .threads = 1 };
    fuzz_file(list, data, n);
    bool ok = ses_analogies_score(&r, fixed, list, &o, &e);
    MUST(ok == (e.code == SES_OK));
    for (size_t i = 0; ok && i < r.n; i++)
        MUST(r.section[i].correct <= r.section[i].scored && r.section[i].scored <= r.section[i].questions);
    ses_analogy_result_free(&r);
}

static void read_pairs(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_folded_words words;
    ses_word_pairs_score s;
    fuzz_file(list, data, n);
    MUST(ses_folded_words_build(&words, fixed, 3, SES_FOLD_UNICODE, &e));
    bool ok = ses_word_pairs_evaluate(&s, fixed, &words, list, &(ses_word_pairs_options){ 0 }, &e);
    MUST(ok == (e.code == SES_OK));
    if (ok) MUST(s.known <= s.pairs && !(s.spearman > 1.0001) && !(s.spearman < -1.0001));
    ses_folded_words_free(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    if (!fixed) start();
    if (!n) return 0;
    if (*data == 'F')
        read_folder(data + 1, n - 1);
    else if (*data == 'Q')
        read_questions(data + 1, n - 1);
    else if (*data == 'P')
        read_pairs(data + 1, n - 1);
    else
        check(ses_vectors_from_memory(data + 1, n - 1, "vectors", &e), &e);
    return 0;
}
