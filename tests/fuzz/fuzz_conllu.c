/* Dependency trees in CoNLL-U: the first byte selects the options. Every returned sentence is a tree. */
#include "fuzz.h"
#include "io/conllu.h"

static void check_sentence(const ses_conllu_sentence *s)
{
    size_t roots = 0;
    for (size_t i = 0; i < s->n; i++) {
        const ses_conllu_word *w = &s->word[i];
        MUST(w->head >= 0 && (size_t)w->head <= s->n && w->line >= s->line);
        roots += !w->head;
        size_t steps = 0;
        for (int h = w->head; h; h = s->word[h - 1].head) MUST(++steps <= s->n);
        const ses_string field[] = { w->form, w->upos, w->xpos, w->feats, w->deprel };
        for (size_t k = 0; k < 5; k++) MUST(field[k].n && strlen(field[k].p) == field[k].n);
        ses_string number = ses_conllu_feature(w->feats, "Number");
        MUST(!number.p || number.p + number.n <= w->feats.p + w->feats.n);
        MUST(ses_conllu_relation(w->deprel).n <= w->deprel.n);
    }
    MUST(roots == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    ses_conllu_options o = { .skip_invalid = data[0] & 1, .max_sentence = data[0] & 2 ? 90 : 0 };
    ses_err e = { 0 };
    ses_conllu *c = ses_conllu_from_text((const char *)data + 1, n - 1, &o, &e);
    ses_conllu_sentence s;
    size_t words = 0;
    bool ok = c != NULL;
    while (ok && (ok = ses_conllu_next(c, &s, &e)) && s.n) {
        MUST((words += s.n) <= n);
        check_sentence(&s);
    }
    MUST(ok || e.code == SES_EFORMAT);
    MUST(!ses_conllu_skipped(c) == !*ses_conllu_first_skipped(c));
    ses_conllu_free(c);
    return 0;
}
