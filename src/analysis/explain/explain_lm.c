/* Targets of language models: the token at a mask, at a hidden position of a permutation LM, or the next
 * one. */
#include "explain.h"

#include <string.h>

static bool choose_tokens(ses_explain *x, const ses_real *logit, int64_t n, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_args *a = x->args;
    const char *plus = a->token ? a->token : a->label;
    g->classes = n, g->foil = -1;
    if (g->label < 0) {
        g->label = 0;
        for (int64_t i = 1; i < n; i++)
            if (logit[i] > logit[g->label]) g->label = i;
    }
    if (plus && !ses_explain_find_token(x, a->token ? "--token" : "--label", plus, &g->label, e))
        return false;
    if (a->foil && !ses_explain_find_token(x, "--foil", a->foil, &g->foil, e)) return false;
    if (g->label >= n || g->foil >= n)
        return ses_fail(e, SES_EUSAGE, "the head of the model scores %lld tokens only", (long long)n);
    g->name = ses_explain_token_name(x, (int32_t)g->label, e);
    g->foil_name = a->foil ? ses_explain_token_name(x, (int32_t)g->foil, e) : NULL;
    return g->name && (!a->foil || g->foil_name);
}

/* The first mask of the text, in the window around it; -1: none. */
static bool find_mask(ses_explain *x, int64_t *at, ses_err *e)
{
    const ses_explain_side *s = &x->full;
    int32_t mask = x->config.role[SES_ROLE_MASK];
    int64_t masks = 0;
    *at = -1;
    for (int64_t i = s->n; i-- > 0;)
        if (mask >= 0 && s->id[i] == mask) *at = i, masks++;
    if (masks > 1)
        ses_report_note(x->call->report, "The text has %lld masks: the first one is explained.",
                        (long long)masks);
    if (*at < 0 || !ses_explain_excess(x)) return true;
    ses_offset bytes = s->bytes[*at];
    if (!ses_explain_window_around(x, *at, e)) return false;
    ses_explain_note_window(x, "the part around the mask");
    s = &x->side[SES_EXPLAIN_SOURCE];
    for (*at = 0; *at < s->n - 1; ++*at)
        if (s->id[*at] == mask && s->bytes[*at].begin == bytes.begin) break;
    return true;
}

static bool fail_no_mask(ses_explain *x, const char *or_else, ses_err *e)
{
    int32_t mask = x->config.role[SES_ROLE_MASK];
    return ses_fail(e, SES_EUSAGE, "the text has no mask: write %s where the model predicts a token%s",
                    mask >= 0 ? ses_explain_token_name(x, mask, e) : "a mask token", or_else);
}

/* A permutation LM (XLNet) predicts a position that no token attends to: a mask, or the first token of a
 * word of the text, whose tokens are all hidden. The default target is the word's own token. */
static bool choose_hidden(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols, at, word;
    if (x->args->word ? !ses_explain_find_word(x, s, &word, e) : !find_mask(x, &at, e)) return false;
    if (x->args->word) at = ses_explain_word_begin(s, word);
    if (at < 0) return fail_no_mask(x, ", or choose a word that is hidden with --word", e);
    g->kind = SES_EXPLAIN_LM;
    g->position = g->hide_begin = at, g->hide_end = at + 1;
    while (x->args->word && g->hide_end < s->n && s->word[g->hide_end] == s->word[at]) g->hide_end++;
    g->at = x->args->word ? ses_explain_word_text(x, s, word, e) : "mask";
    g->label = x->args->word ? s->id[at] : -1;
    for (int64_t i = g->hide_begin; i < g->hide_end; i++) s->special[i] = 1; /* the question itself */
    const ses_real *z = g->at ? ses_explain_logits(x, g->output, &rows, &cols, e) : NULL;
    return z && choose_tokens(x, z, cols, e);
}

bool ses_explain_choose_masked(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    int64_t rows, cols, at;
    if (x->m->c.xl.permutation_lm) return choose_hidden(x, e);
    if (x->args->word)
        return ses_fail(e, SES_EUSAGE, "--word: write the mask where the model predicts a token");
    if (!find_mask(x, &at, e)) return false;
    if (at < 0) return fail_no_mask(x, "", e);
    g->kind = SES_EXPLAIN_LM;
    g->position = at, g->at = "mask", g->label = -1;
    x->side[SES_EXPLAIN_SOURCE].special[at] = 1; /* the question itself */
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    return z && choose_tokens(x, z + at * cols, cols, e);
}

bool ses_explain_choose_next(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    int64_t rows, cols;
    if (x->args->word)
        return ses_fail(e, SES_EUSAGE, "--word: a decoder predicts the next token; choose it with --token");
    ses_explain_note_window(x, "its end");
    g->kind = SES_EXPLAIN_LM;
    g->position = x->side[SES_EXPLAIN_SOURCE].n - 1, g->at = "next token", g->label = -1;
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    return z && choose_tokens(x, z + g->position * cols, cols, e);
}
