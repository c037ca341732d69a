/* The units that occlusion and its kin remove: pieces, words, n-grams of words. */
#include "explain.h"

#include <math.h>

enum { PIECE, WORD, NGRAM };

/* The n-gram of words that begins at token `at`; *end: after its last token. False: too few words follow. */
static bool unit_at(const ses_explain_side *s, int64_t at, int64_t words, int64_t *end)
{
    int64_t i = at;
    for (int64_t w = 0; w < words; w++) {
        if (i >= s->n || s->special[i] || s->pair[i] != s->pair[at]) return false;
        for (int32_t word = s->word[i]; i < s->n && s->word[i] == word;) i++;
    }
    *end = i;
    return true;
}

const ses_explain_unit *ses_explain_units(ses_explain *x, size_t *n, ses_err *e)
{
    const ses_explain_args *a = x->args;
    size_t most = (size_t)(x->side[0].n + x->side[1].n) + 1;
    ses_explain_unit *u = ses_arena_array(&x->mem, most, sizeof *u, e);
    *n = 0;
    for (int k = 0; u && k < SES_EXPLAIN_SIDES; k++) {
        const ses_explain_side *s = &x->side[k];
        size_t before = *n;
        for (int64_t i = 0, end; i < s->n; i++) {
            bool inside = i && s->word[i] == s->word[i - 1];
            if (s->special[i] || (inside && a->unit != PIECE)) continue;
            if (a->unit == PIECE)
                end = i + 1;
            else if (!unit_at(s, i, a->unit == NGRAM ? a->ngram : 1, &end))
                continue;
            u[(*n)++] = (ses_explain_unit){ k, i, end };
        }
        /* fewer words than an n-gram: all of them together */
        int64_t first = 0, last = s->n;
        while (first < s->n && s->special[first]) first++;
        while (last > first && s->special[last - 1]) last--;
        if (*n == before && first < last) u[(*n)++] = (ses_explain_unit){ k, first, last };
    }
    return u;
}

void ses_explain_spread(ses_explain *x, const ses_explain_unit *u, const double *value, size_t n)
{
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++)
        for (int64_t t = 0; t < x->side[k].n; t++) {
            double sum = 0;
            int64_t covers = 0;
            for (size_t i = 0; i < n; i++)
                if (u[i].side == k && t >= u[i].begin && t < u[i].end)
                    sum += value[i] / (double)(u[i].end - u[i].begin), covers++;
            x->value[k][t] = covers ? sum / (double)covers : NAN;
        }
}

int32_t ses_explain_filler(const ses_explain *x, const char **role)
{
    static const ses_token_role order[] = { SES_ROLE_MASK, SES_ROLE_PAD, SES_ROLE_UNK, SES_ROLE_EOS };
    static const char *const name[] = { "mask", "padding", "unknown", "end" };
    for (size_t i = 0; i < SES_LEN(order); i++)
        if (x->config.role[order[i]] >= 0) {
            *role = name[i];
            return x->config.role[order[i]];
        }
    *role = "padding";
    return (int32_t)x->m->c.pad_id;
}
