/* SQuAD's JSON: the first byte selects the handling of misplaced answers. */
#include "fuzz.h"
#include "sesame/unstable/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    ses_squad_options o = { .skip_bad_answers = data[0] & 1, .search_context = data[0] & 2 };
    ses_err e = { 0 };
    ses_squad *q = ses_squad_from_text((const char *)data + 1, n - 1, &o, &e);
    MUST(q || e.code == SES_EFORMAT);
    ses_question x;
    bool end = false, ok = q != NULL;
    while (ok && (ok = ses_squad_next(q, &x, &end, &e)) && !end)
        for (size_t k = 0; k < x.n_answers; k++) {
            const ses_answer *a = &x.answers[k];
            MUST(a->text.n && a->byte_start + a->text.n <= x.context.n);
            MUST(!memcmp(x.context.p + a->byte_start, a->text.p, a->text.n));
        }
    MUST(ok || e.code == SES_EFORMAT);
    if (q) MUST(o.skip_bad_answers || !ses_squad_skipped(q));
    ses_squad_free(q);
    return 0;
}
