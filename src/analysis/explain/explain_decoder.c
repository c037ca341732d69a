/* Targets of encoder-decoders: the tokens of a given or generated text, each after the tokens before it. */
#include "explain.h"

#include "base/suggest.h"
#include "sesame/generate.h"

#include <string.h>

/* --target behind the start token. */
static bool given_ids(ses_explain *x, int32_t **id, int64_t *n, ses_err *e)
{
    const int32_t *ids;
    size_t k;
    if (!*x->args->target) return ses_fail(e, SES_EUSAGE, "--target is empty: write the text to explain");
    if (!ses_encode_ids(x->tokens, x->args->target, strlen(x->args->target), true, &ids, &k, e))
        return ses_wrap(e, "--target");
    if (x->m->c.decoder.start_id < 0)
        return ses_fail(e, SES_EARG, "the model's config has no decoder_start_token_id");
    *id = ses_arena_array(&x->mem, k + 1, sizeof **id, e);
    if (!*id) return false;
    (*id)[0] = (int32_t)x->m->c.decoder.start_id;
    memcpy(*id + 1, ids, k * sizeof *ids);
    *n = (int64_t)k + 1;
    return true;
}

static bool generated_ids(ses_explain *x, int32_t **id, int64_t *n, ses_err *e)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    ses_generation_config *config = ses_generation_config_open(x->m, e);
    if (!config) return false;
    ses_generate_options o = *ses_generation_config_options(config);
    o.do_sample = false, o.num_return_sequences = 1;
    ses_generated *r = ses_generate(x->m, &(ses_prompt){ .ids = { s->id, s->n } }, 1, &o, e);
    bool ok = r && r->n;
    *n = ok ? r->sequence[0].ids.n : 0;
    *id = ok ? ses_arena_array(&x->mem, (size_t)*n + 1, sizeof **id, e) : NULL;
    if (*id) memcpy(*id, r->sequence[0].ids.id, (size_t)*n * sizeof **id);
    ses_generated_free(r);
    ses_generation_config_free(config);
    return *id != NULL;
}

/* The tokens to explain: *begin to *end - 1: --token, the tokens of --word, or all. */
static bool choose_tokens(ses_explain *x, int64_t *begin, int64_t *end, ses_err *e)
{
    const ses_explain_side *s = &x->written;
    int64_t word;
    *begin = 1, *end = s->n;
    if (s->n < 2) return ses_fail(e, SES_EARG, "the target has no tokens");
    if (x->args->word) {
        if (!ses_explain_find_word(x, s, &word, e)) return ses_wrap(e, "target");
        *begin = *end = ses_explain_word_begin(s, word);
        while (*end < s->n && s->word[*end] == word) ++*end;
        return true;
    }
    if (!x->args->token) return true;
    ses_suggestion near = { .word = x->args->token };
    for (*begin = 1; *begin < s->n; ++*begin) {
        if (!strcmp(s->name[*begin], x->args->token)) return *end = *begin + 1, true;
        ses_suggest_offer(&near, s->name[*begin], strlen(s->name[*begin]));
    }
    ses_fail(e, SES_EUSAGE, "--token %s: the target has no such token", x->args->token);
    return ses_suggest_add(&near, "", e);
}

bool ses_explain_choose_written(ses_explain *x, ses_err *e)
{
    int32_t *id = NULL;
    int64_t n = 0, begin, end, foil = -1, most = ses_model_max_target_tokens(x->m);
    if (x->args->label) return ses_fail(e, SES_EUSAGE, "--label: use --token for a token of the target");
    if (x->args->foil && !ses_explain_find_token(x, "--foil", x->args->foil, &foil, e)) return false;
    ses_explain_note_window(x, "its beginning");
    if (x->args->target ? !given_ids(x, &id, &n, e) : !generated_ids(x, &id, &n, e)) return false;
    if (n > most + 1) {
        ses_report_note(x->call->report,
                        "The target has %lld tokens, the model reads %lld: its end is left out.",
                        (long long)n, (long long)most);
        n = most + 1;
    }
    if (!ses_explain_side_of_ids(x, id, n, &x->written, e) || !choose_tokens(x, &begin, &end, e))
        return false;
    if (foil >= 0 && end - begin > 1)
        return ses_fail(e, SES_EUSAGE, "--foil: choose the token that it is compared with: --token TOKEN");
    x->n_columns = end - begin;
    x->column = ses_arena_array(&x->mem, (size_t)x->n_columns, sizeof *x->column, e);
    for (int64_t i = 0; x->column && i < x->n_columns; i++) x->column[i].at = begin + i;
    x->target.foil = foil;
    x->target.foil_name = foil >= 0 ? ses_explain_token_name(x, (int32_t)foil, e) : NULL;
    return x->column && (foil < 0 || x->target.foil_name) && ses_explain_set_column(x, 0, e);
}

bool ses_explain_set_column(ses_explain *x, int64_t i, ses_err *e)
{
    ses_explain_target *g = &x->target;
    ses_explain_side *s = &x->side[SES_EXPLAIN_TARGET];
    int64_t at = x->column[i].at;
    *s = x->written;
    s->n = at;
    g->kind = SES_EXPLAIN_LM, g->of_decoder = true;
    g->position = at - 1, g->label = x->written.id[at];
    g->name = x->written.name[at];
    g->at = x->args->target ? "target" : "generated text";
    int64_t rows = ses_model_vocab_size(x->m);
    return g->label < rows ||
           ses_fail(e, SES_EARG, "target: token %s has id %lld, but the model has %lld tokens", g->name,
                    (long long)g->label, (long long)rows);
}
