/* fastText models: whatever opens has vectors and predictions. */
#include "fuzz.h"
#include "vectors/fasttext/fasttext_model.h"

enum { GUESSES = 3 };

static void use(const ses_fasttext_model *m)
{
    static const char text[] = "a b unknown __label__x \xc3\xa9\xff";
    float x[64];
    ses_err e = { 0 };
    ses_fasttext_line line = { 0 };
    ses_fasttext_guess guess[GUESSES];
    size_t n = 0, rows, id;
    if (ses_fasttext_dim(m) <= SES_LEN(x)) {
        MUST(ses_fasttext_word_vector(m, "unknown", 7, x, &rows, &e));
        for (size_t i = 0; i < ses_fasttext_n_words(m) && i < 4; i++) {
            ses_string w = ses_fasttext_word_at(m, i);
            MUST(ses_fasttext_find(m, w.p, w.n, &id) && id < ses_fasttext_n_words(m));
            MUST(ses_fasttext_word_vector(m, w.p, w.n, x, &rows, &e) && rows > 0);
        }
    }
    MUST(ses_fasttext_line_of(m, text, sizeof text - 1, &line, &e));
    for (size_t i = 0; i < line.rows.n; i++) MUST(line.rows.row[i] >= 0 && line.rows.row[i] < m->in.rows);
    if (ses_fasttext_predict(m, &line, GUESSES, 0, guess, &n, &e))
        for (size_t i = 0; i < n; i++)
            MUST(guess[i].label >= 0 && (size_t)guess[i].label < ses_fasttext_n_labels(m));
    ses_fasttext_line_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_fasttext_model *m = ses_fasttext_from_bytes(data, n, &e);
    MUST(m || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    if (m) use(m);
    ses_fasttext_free(m);
    return 0;
}
