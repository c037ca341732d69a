/* Occlusion (Zeiler and Fergus 2014): the score minus the score without a piece, a word or an n-gram, which
 * the mask token replaces, or which is deleted. */
#include "explain.h"

#include <math.h>
#include <string.h>

enum { MASK, DELETE };

/* Does the target read a token of this unit? It cannot be deleted. */
static bool is_read(const ses_explain *x, const ses_explain_unit *u)
{
    const ses_explain_target *g = &x->target;
    if (g->kind == SES_EXPLAIN_SEQUENCE || u->side != (int)g->of_decoder) return false;
    if (g->kind != SES_EXPLAIN_SPAN) return g->position >= u->begin && g->position < u->end;
    return (g->start >= u->begin && g->start < u->end) || (g->end >= u->begin && g->end < u->end);
}

static bool change(ses_explain *x, const ses_explain_unit *u, int32_t filler, ses_explain_variant *v,
                   ses_err *e)
{
    const ses_explain_side *s = &x->side[u->side];
    size_t n = (size_t)s->n;
    if (x->args->occlude == DELETE) {
        uint8_t *absent = ses_arena_array(&x->mem, n, 1, e);
        if (absent) memset(absent + u->begin, 1, (size_t)(u->end - u->begin));
        v->absent[u->side] = absent;
        return absent != NULL;
    }
    int32_t *id = ses_arena_array(&x->mem, n, sizeof *id, e);
    if (id) memcpy(id, s->id, n * sizeof *id);
    for (int64_t i = u->begin; id && i < u->end; i++) id[i] = filler;
    v->id[u->side] = id;
    return id != NULL;
}

static bool run(ses_explain *x, ses_err *e)
{
    size_t n, left_out = 0;
    const char *role;
    const ses_explain_unit *u = ses_explain_units(x, &n, e);
    int32_t filler = ses_explain_filler(x, &role);
    ses_explain_variant *v = u ? ses_arena_array(&x->mem, n + 1, sizeof *v, e) : NULL;
    double *score = v ? ses_arena_array(&x->mem, n + 1, sizeof *score, e) : NULL;
    if (!score) return false;
    if (x->args->occlude == MASK && filler < 0)
        return ses_fail(e, SES_EARG, "the tokenizer has no token to occlude with: use --occlude delete");
    for (size_t i = 0; i < n; i++)
        if (!(x->args->occlude == DELETE && is_read(x, &u[i])) && !change(x, &u[i], filler, &v[i + 1], e))
            return false;
    if (!ses_explain_run(
            x, &(ses_explain_pass){ .n = (int64_t)n + 1, .variant = v, .label = "occluding", .score = score },
            e))
        return false;
    x->score = score[0];
    for (size_t i = 0; i < n; i++) {
        bool kept = x->args->occlude == DELETE && is_read(x, &u[i]);
        left_out += kept;
        score[i + 1] = kept ? NAN : score[0] - score[i + 1];
    }
    ses_explain_spread(x, u, score + 1, n);
    if (left_out && !x->repeated)
        ses_report_note(x->call->report, "The explained position cannot be deleted: no value.");
    if (x->args->occlude == MASK && filler != x->config.role[SES_ROLE_MASK] && !x->repeated)
        ses_report_note(x->call->report, "The tokenizer has no mask token: the %s token replaces it.", role);
    return true;
}

const ses_explain_method ses_explain_occlude = {
    .description = "Occlusion: how much the score falls without a token.",
    .run = run,
};
