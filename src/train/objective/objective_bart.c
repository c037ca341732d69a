/* Denoising (BART, Lewis et al. 2020): reconstruct a text from a noised copy. The noises of --noise are
 * applied in this order: permute sentences, delete tokens, mask tokens, infill (one mask per span), rotate
 * the text. If the corpus has a control code, both sides have mBART's format TEXT </s> CODE. */
#include "objective.h"

#include <string.h>

enum { PERMUTE = 1, DELETE = 2, HIDE = 4, INFILL = 8, ROTATE = 16 };

/* Parses "infill,permute" to bits; 0: failed. */
static int parse_noises(const char *list, ses_err *e)
{
    static const struct {
        const char *name;
        int bit;
    } known[] = { { "permute", PERMUTE },
                  { "delete", DELETE },
                  { "mask", HIDE },
                  { "infill", INFILL },
                  { "rotate", ROTATE } };
    int bits = 0;
    if (!list) return INFILL | PERMUTE;
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < SES_LEN(known) && (strlen(known[i].name) != n || strncmp(known[i].name, p, n))) i++;
        if (i == SES_LEN(known)) {
            ses_fail(e, SES_EARG, "unknown noise \"%.*s\"; choose from mask, delete, infill, permute, rotate",
                     (int)(n < 40 ? n : 40), p);
            return 0;
        }
        bits |= known[i].bit;
        p += n;
        if (!*p) return bits;
    }
}

static bool corrupt(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_err *e)
{
    ses_noised_text *t = &ctx->noised;
    ses_rng_stream d = ses_passage_rng(ctx, p, SES_RNG_MASK);
    double rate = ses_mask_rate_at(ctx, o),
           mean = ctx->o.span_length >= 0 ? ctx->o.span_length : o->span_length;
    bool tokens = ctx->o.mask_unit == SES_MASK_TOKENS;
    int32_t mask = ctx->special_tokens->mask;
    int which = parse_noises(ctx->o.noise, e);
    if (!which || !ses_noised_text_init(t, p, e)) return false;
    if ((which & PERMUTE) && !ses_noise_permute(t, &d, e)) return false;
    if ((which & DELETE) && !ses_noise_delete(t, rate, &d, e)) return false;
    if ((which & HIDE) && !ses_noise_mask(t, rate, mask, &d, e)) return false;
    if ((which & INFILL) && !ses_noise_infill(t, rate, mean, tokens, mask, &d, e)) return false;
    return !(which & ROTATE) || ses_noise_rotate(t, &d, e);
}

static bool put(const ses_build_ctx *ctx, const int32_t *id, int64_t n, int32_t code, ses_ints *to,
                ses_err *e)
{
    const ses_template_part *first = &ctx->special_tokens->before, *last = &ctx->special_tokens->after;
    int32_t end = ctx->special_tokens->eos >= 0 ? ctx->special_tokens->eos : ctx->special_tokens->sep;
    if (code >= 0)
        return ses_ints_append(to, id, n, e) && (end < 0 || ses_ints_push(to, end, e)) &&
               ses_ints_push(to, code, e);
    return ses_ints_append(to, first->id, first->n, e) && ses_ints_append(to, id, n, e) &&
           ses_ints_append(to, last->id, last->n, e);
}

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    if (!corrupt(ctx, o, p, e)) return false;
    int32_t code = ses_control_code_of(ctx, p);
    int64_t n = (int64_t)ctx->noised.id.n, max = ses_framed_max_passage(ctx);
    return put(ctx, ctx->noised.id.p, n < max ? n : max, code, &d->ids, e) &&
           put(ctx, p->id, p->n, code, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static bool check(const ses_build_ctx *ctx, ses_err *e) { return parse_noises(ctx->o.noise, e) != 0; }

const ses_objective ses_objective_bart = { .name = "bart",
                                           .description = "denoising (BART; mBART with control codes)",
                                           .needs = SES_NEEDS_MASK | SES_NEEDS_DECODER,
                                           .head = "conditional-generation",
                                           .mask_rate = 0.3,
                                           .span_length = 3,
                                           .build = build,
                                           .check = check };
