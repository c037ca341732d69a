/* Targets of encoder-decoders: the tokens of a given or generated text, each after the tokens before it. */
#include "explain.h"

#include "base/suggest.h"
#include "sesame/generate.h"

#include <string.h>

/* --target behind the start token. */
static bool read_target(ses_explain *x, ses_err *e)
{
    if (!*x->args->target) return ses_fail(e, SES_EUSAGE, "--target is empty: write the text to explain");
    return ses_explain_side_of_target(x, x->args->target, &x->written, e) || ses_wrap(e, "--target");
}

static bool generate_target(ses_explain *x, ses_err *e)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    ses_generation_config *config = ses_generation_config_open(x->m, e);
    if (!config) return false;
    ses_generate_options o = *ses_generation_config_options(config);
    o.do_sample = false, o.num_return_sequences = 1;
    ses_generated *r = ses_generate(x->m, &(ses_prompt){ .ids = { s->id, s->n } }, 1, &o, e);
    bool ok =
        r && r->n && ses_explain_side_of_ids(x, r->sequence[0].ids.id, r->sequence[0].ids.n, &x->written, e);
    ses_generated_free(r);
    ses_generation_config_free(config);
    return ok;
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
    int64_t begin, end, foil = -1, most = ses_model_max_target_tokens(x->m);
    if (x->args->label) return ses_fail(e, SES_EUSAGE, "--label: use --token for a token of the target");
    if (x->args->foil && !ses_explain_find_token(x, "--foil", x->args->foil, &foil, e)) return false;
    ses_explain_note_window(x, "its beginning");
    if (x->args->target ? !read_target(x, e) : !generate_target(x, e)) return false;
    if (x->written.n > most + 1) {
        ses_report_note(x->call->report,
                        "The target has %lld tokens, the model reads %lld: its end is left out.",
                        (long long)x->written.n, (long long)most);
        x->written.n = most + 1;
    }
    if (!choose_tokens(x, &begin, &end, e)) return false;
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
