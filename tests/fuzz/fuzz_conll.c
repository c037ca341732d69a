/* CoNLL columns: the first byte selects the options. */
#include "fuzz.h"
#include "sesame/unstable/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    static const int columns[] = { 2, -2, 1 };
    ses_conll_options o = { .conllu = data[0] & 1,
                            .keep_documents = data[0] & 2,
                            .max_sentence = data[0] & 4 ? 9 : 0 };
    if (data[0] & 8) o.columns = columns, o.n_columns = 3;
    ses_err e = { 0 };
    ses_conll *c = ses_conll_from_text((const char *)data + 1, n - 1, &o, &e);
    ses_conll_sentence s;
    size_t tokens = 0;
    bool ok = c != NULL;
    while (ok && (ok = ses_conll_next(c, &s, &e)) && s.n) {
        MUST((tokens += s.n) <= n);
        for (size_t i = 0; i < s.n * s.n_columns; i++) MUST(strlen(s.field[i].p) == s.field[i].n);
    }
    MUST(ok || e.code == SES_EFORMAT);
    ses_conll_free(c);
    return 0;
}
