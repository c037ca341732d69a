/* Layers of a frozen model among the vectors of words: a scalar mix, trained with the tagger, replaces them
 * (Peters et al. 2018; BERT's feature-based tagger, Devlin et al. 2018, table 7). */
#include "tagger_encoder.h"

#include "base/json/json_helpers.h"

#include <stdio.h>

/* One entry of "vector_mix". */
static bool read_mix(ses_config *c, const ses_json *x, size_t i, ses_err *e)
{
    int64_t column = -1, layers = 0, size = 0, end = 0;
    if (i) end = c->tagger.mix[i - 1].column + c->tagger.mix[i - 1].layers * c->tagger.mix[i - 1].size;
    if (ses_json_int(ses_json_get(x, "column"), &column) &&
        ses_json_int(ses_json_get(x, "layers"), &layers) && ses_json_int(ses_json_get(x, "size"), &size) &&
        column >= end && layers >= 1 && layers <= SES_MAX_LAYER_CHOICE && size >= 1 &&
        size <= SES_MAX_WIDTH && column <= c->embed.modal_width &&
        layers * size <= c->embed.modal_width - column) {
        c->tagger.mix[i].column = column, c->tagger.mix[i].layers = layers, c->tagger.mix[i].size = size;
        return true;
    }
    return ses_fail(
        e, SES_EFORMAT,
        "\"vector_mix\"[%zu]: expected \"column\", \"layers\" and \"size\" of columns in rising order "
        "within \"vector_size\", %lld",
        i, (long long)c->embed.modal_width);
}

bool ses_tagger_mix_read(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *list = ses_json_get(config, "vector_mix");
    int64_t late = c->embed.modal_width - c->tagger.late_width;
    if (ses_json_type_of(list) == SES_JSON_NULL) return true;
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_json_wrong_type("vector_mix", list, "an array", e);
    if (ses_json_len(list) > SES_MAX_VECTOR_MIXES)
        return ses_fail(e, SES_EFORMAT, "\"vector_mix\" has %zu entries, expected at most %d",
                        ses_json_len(list), SES_MAX_VECTOR_MIXES);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!read_mix(c, ses_json_at(list, i), i, e)) return false;
        int64_t from = c->tagger.mix[i].column, to = from + c->tagger.mix[i].layers * c->tagger.mix[i].size;
        if (from < late && to > late)
            return ses_fail(e, SES_EFORMAT,
                            "\"vector_mix\"[%zu]: its columns are on both sides of \"lm_size\"", i);
        c->tagger.n_mix = (int64_t)i + 1;
    }
    return true;
}

int64_t ses_tagger_mix_width(const ses_config *c, int64_t from, int64_t to)
{
    int64_t width = to - from;
    for (int64_t i = 0; i < c->tagger.n_mix; i++)
        if (c->tagger.mix[i].column >= from && c->tagger.mix[i].column < to)
            width -= (c->tagger.mix[i].layers - 1) * c->tagger.mix[i].size;
    return width;
}

void ses_tagger_mix_add(ses_tagger_params *g, ses_store *s, const ses_config *c)
{
    for (int64_t i = 0; i < c->tagger.n_mix; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "vector_mix.%lld.", (long long)i);
        g->mix[i] = ses_scalar_mix_add(s, prefix, c->tagger.mix[i].layers);
    }
}

static ses_tensor *run_mix(const ses_scalar_mix *m, ses_tape *t, ses_tensor *x, int64_t column,
                           int64_t layers, int64_t size)
{
    ses_tensor *h[SES_MAX_LAYER_CHOICE];
    for (int64_t k = 0; k < layers; k++) h[k] = ses_columns(t, x, column + k * size, size);
    return ses_scalar_mix_run(m, t, h, layers);
}

ses_tensor *ses_tagger_mix_run(const ses_tagger_params *g, ses_forward_ctx *p, ses_tensor *x, int64_t from,
                               int64_t to)
{
    ses_tensor *part[2 * SES_MAX_VECTOR_MIXES + 1];
    ses_tape *t = p->tape;
    int n = 0;
    int64_t at = from;
    for (int64_t i = 0; i < p->c->tagger.n_mix; i++) {
        int64_t column = p->c->tagger.mix[i].column, layers = p->c->tagger.mix[i].layers,
                size = p->c->tagger.mix[i].size;
        if (column < from || column >= to) continue;
        if (column > at) part[n++] = ses_columns(t, x, at, column - at);
        part[n++] = run_mix(&g->mix[i], t, x, column, layers, size);
        at = column + layers * size;
    }
    if (!n && from == 0 && to == ses_cols(x)) return x;
    if (at < to) part[n++] = ses_columns(t, x, at, to - at);
    return n > 1 ? ses_concat(t, n, part) : n ? part[0] : NULL;
}
