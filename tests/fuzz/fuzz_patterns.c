/* Pattern files of cloze classifiers. */
#include "fuzz.h"
#include "task/prompt/pattern_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_patterns *p = ses_patterns_parse((const char *)data, n, &e);
    MUST(p || e.code == SES_EFORMAT || e.code == SES_ENOMEM);
    for (size_t i = 0; p && i < p->n_patterns; i++) {
        size_t masks = 0;
        for (size_t k = 0; k < p->pattern[i].n; k++) masks += p->pattern[i].piece[k].kind == SES_PIECE_MASK;
        MUST(masks == 1);
    }
    for (size_t i = 0; p && i < p->n_verbalizers; i++)
        MUST(p->verbalizer[i].n > 0 && p->verbalizer[i].word[0]);
    for (size_t i = 0; p && i < p->n_demonstrations; i++) MUST(p->demonstration[i].label);
    ses_patterns_free(p);
    return 0;
}
