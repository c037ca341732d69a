/* Chooses the number to explain: by the model's head, the options, and the model's own prediction for what
 * they leave open. */
#include "explain.h"

#include "base/number.h"
#include "base/str.h"
#include "base/suggest.h"
#include "sesame/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t argmax(const ses_real *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* ---- labels ---- */

static const char *label_name(ses_explain *x, int64_t i, ses_err *e)
{
    char number[32];
    snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
    const char *name = ses_model_label_name(x->m, i);
    return ses_arena_strndup(&x->mem, name ? name : number, strlen(name ? name : number), e);
}

/* Index of a label by name or number. */
static bool find_label(ses_explain *x, const char *option, const char *text, int64_t n, int64_t *label,
                       ses_err *e)
{
    ses_suggestion s = { .word = text };
    char *end;
    for (int64_t i = 0; i < n; i++) {
        const char *name = label_name(x, i, e);
        if (!name) return false;
        if (!strcmp(name, text)) return *label = i, true;
        ses_suggest_offer(&s, name, strlen(name));
    }
    long long number = strtoll(text, &end, 10);
    if (end != text && !*end && number >= 0 && number < n) return *label = number, true;
    ses_buf list = { 0 };
    for (int64_t i = 0; i < n && i < 20; i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", label_name(x, i, e));
    ses_fail(e, SES_EUSAGE, "%s %s: the model has no such label; labels: %s%s", option, text,
             list.data ? list.data : "none", n > 20 ? ", ..." : "");
    ses_buf_free(&list);
    return ses_suggest_add(&s, "", e);
}

/* Label and foil of n classes with these logits. */
static bool choose_labels(ses_explain *x, const ses_real *logit, int64_t n, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_args *a = x->args;
    g->classes = n;
    g->label = argmax(logit, n), g->foil = -1;
    if (a->token)
        return ses_fail(e, SES_EUSAGE, "--token: %s predicts labels, not tokens; use --label",
                        ses_model_class_name(x->m));
    if (a->label && !find_label(x, "--label", a->label, n, &g->label, e)) return false;
    if (a->foil && !find_label(x, "--foil", a->foil, n, &g->foil, e)) return false;
    g->name = label_name(x, g->label, e);
    g->foil_name = a->foil ? label_name(x, g->foil, e) : NULL;
    return g->name && (!a->foil || g->foil_name);
}

/* ---- tokens of the vocabulary ---- */

/* The id of a token given as the vocabulary's string or as a text of one token. */
static bool find_token(ses_explain *x, const char *option, const char *text, int64_t *id, ses_err *e)
{
    static const char *const before[] = { "", " " };
    size_t n_best = 0;
    *id = ses_tokenizer_token_to_id(x->call->tokenizer, text, strlen(text));
    for (size_t i = SES_LEN(before); i-- > 0 && *id < 0;) {
        char word[256];
        const int32_t *ids;
        size_t n;
        if ((size_t)snprintf(word, sizeof word, "%s%s", before[i], text) >= sizeof word) break;
        if (!ses_encode_ids(x->tokens, word, strlen(word), false, &ids, &n, e)) return false;
        bool known = n == 1 && ids[0] != x->config.role[SES_ROLE_UNK];
        if (known) *id = ids[0];
        if (!n_best || n < n_best) n_best = n;
    }
    if (*id < 0)
        return ses_fail(e, SES_EUSAGE, "%s %s: expected one token of the vocabulary, this text has %zu",
                        option, text, n_best);
    int64_t rows = ses_model_vocab_size(x->m);
    return *id < rows || ses_fail(e, SES_EUSAGE, "%s %s: id %lld, but the model has %lld tokens", option,
                                  text, (long long)*id, (long long)rows);
}

static bool choose_tokens(ses_explain *x, const ses_real *logit, int64_t n, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_args *a = x->args;
    const char *plus = a->token ? a->token : a->label;
    g->classes = n;
    g->label = argmax(logit, n), g->foil = -1;
    if (plus && !find_token(x, a->token ? "--token" : "--label", plus, &g->label, e)) return false;
    if (a->foil && !find_token(x, "--foil", a->foil, &g->foil, e)) return false;
    if (g->label >= n || g->foil >= n)
        return ses_fail(e, SES_EUSAGE, "the head of the model scores %lld tokens only", (long long)n);
    g->name = ses_explain_token_name(x, (int32_t)g->label, e);
    g->foil_name = a->foil ? ses_explain_token_name(x, (int32_t)g->foil, e) : NULL;
    return g->name && (!a->foil || g->foil_name);
}

/* ---- positions ---- */

static int64_t first_token(const ses_explain_side *s, int64_t word)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->word[i] == word) return i;
    return -1;
}

static const char *word_text(ses_explain *x, const ses_explain_side *s, int64_t word, ses_err *e)
{
    int64_t begin = first_token(s, word), end = begin;
    while (end < s->n && s->word[end] == word) end++;
    return ses_explain_text_of(x, SES_EXPLAIN_SOURCE, begin, end, e);
}

/* The word that --word names, by its text or its number from 1. */
static bool find_word(ses_explain *x, int64_t *word, ses_err *e)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    const char *text = x->args->word;
    ses_suggestion near = { .word = text };
    char *end;
    for (*word = 0; *word < s->words; ++*word) {
        const char *name = word_text(x, s, *word, e);
        if (!name) return false;
        if (!strcmp(name, text)) return true;
        ses_suggest_offer(&near, name, strlen(name));
    }
    long long number = strtoll(text, &end, 10);
    if (end != text && !*end && number >= 1 && number <= s->words) return *word = number - 1, true;
    ses_fail(e, SES_EUSAGE, "--word %s: the text has no such word; it has %lld words", text,
             (long long)s->words);
    return ses_suggest_add(&near, "", e);
}

/* ---- heads ---- */

static bool needs_pair(const ses_explain *x, const char *what, ses_err *e)
{
    return x->args->pair || ses_fail(e, SES_EUSAGE, "%s needs a second text: --pair TEXT (%s)",
                                     ses_model_class_name(x->m), what);
}

static bool choose_sequence(ses_explain *x, ses_err *e)
{
    int64_t rows, cols;
    const ses_real *z = ses_explain_logits(x, x->target.output, &rows, &cols, e);
    if (x->args->word)
        return ses_fail(e, SES_EUSAGE, "--word: %s labels the whole text", ses_model_class_name(x->m));
    return z && choose_labels(x, z, cols, e);
}

/* A tag: of the chosen word, or of the first word whose tag is not the most frequent one ("O"). */
static bool choose_tag(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols, word = 0;
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    if (!z) return false;
    if (x->args->word) {
        if (!find_word(x, &word, e)) return false;
    } else {
        int64_t w = 0;
        while (w < s->words && cols > 1) {
            const char *name = ses_model_label_name(x->m, argmax(z + first_token(s, w) * cols, cols));
            if (name && strcmp(name, "O") != 0) break;
            w++;
        }
        word = w < s->words ? w : 0;
    }
    g->kind = SES_EXPLAIN_TOKEN;
    g->position = first_token(s, word);
    g->at = word_text(x, s, word, e);
    return g->at && choose_labels(x, z + g->position * cols, cols, e);
}

/* Tokens of the second text whose bytes overlap [begin, end). */
static bool span_of_text(ses_explain *x, const char *answer, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    const char *found = strstr(x->args->pair, answer);
    if (!*answer || !found)
        return ses_fail(e, SES_EUSAGE, "--label %s: the second text does not contain this answer", answer);
    size_t begin = (size_t)(found - x->args->pair), end = begin + strlen(answer);
    g->start = g->end = -1;
    for (int64_t i = 0; i < s->n; i++) {
        if (!s->pair[i] || s->special[i] || s->bytes[i].end <= begin || s->bytes[i].begin >= end) continue;
        if (g->start < 0) g->start = i;
        g->end = i;
    }
    return g->start >= 0 || ses_fail(e, SES_EUSAGE, "--label %s: no token of this answer", answer);
}

static bool choose_span(ses_explain *x, ses_err *e)
{
    enum { LONGEST = 30 };
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols;
    if (!needs_pair(x, "the text is the question, --pair the passage", e)) return false;
    if (x->args->foil) return ses_fail(e, SES_EUNSUPPORTED, "--foil: a span of an answer has no foil");
    if (x->args->word || x->args->token)
        return ses_fail(e, SES_EUSAGE, "--word, --token: give the answer to explain as --label TEXT");
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    if (!z) return false;
    double best = -1e300;
    for (int64_t i = 0; i < s->n && !x->args->label; i++)
        for (int64_t j = i; j < s->n && j < i + LONGEST; j++) {
            double score = (double)z[2 * i] + (double)z[2 * j + 1];
            if (!s->pair[i] || !s->pair[j] || s->special[i] || s->special[j] || score <= best) continue;
            best = score, g->start = i, g->end = j;
        }
    if (x->args->label && !span_of_text(x, x->args->label, e)) return false;
    size_t begin = s->bytes[g->start].begin, end = s->bytes[g->end].end;
    g->name = ses_arena_strndup(&x->mem, x->args->pair + begin, end - begin, e);
    g->label = 0, g->foil = -1;
    return g->name != NULL;
}

/* A masked LM: the token at the first mask. */
static bool choose_masked(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols, at = -1, masks = 0;
    int32_t mask = x->config.role[SES_ROLE_MASK];
    if (x->m->c.xl.permutation_lm)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s predicts tokens in a permuted order, not at mask tokens: use a model with another "
            "head",
            ses_model_class_name(x->m));
    for (int64_t i = s->n; i-- > 0;)
        if (mask >= 0 && s->id[i] == mask) at = i, masks++;
    if (at < 0)
        return ses_fail(e, SES_EUSAGE, "the text has no mask: write %s where the model predicts a token",
                        mask >= 0 ? ses_explain_token_name(x, mask, e) : "a mask token");
    if (masks > 1)
        ses_report_note(x->call->report, "The text has %lld masks: the first one is explained.",
                        (long long)masks);
    g->kind = SES_EXPLAIN_LM;
    g->position = at, g->at = "mask";
    s->special[at] = 1; /* the question itself */
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    return z && choose_tokens(x, z + at * cols, cols, e);
}

static bool choose_next(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    int64_t rows, cols;
    g->kind = SES_EXPLAIN_LM;
    g->position = x->side[SES_EXPLAIN_SOURCE].n - 1, g->at = "next token";
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    return z && choose_tokens(x, z + g->position * cols, cols, e);
}

/* ---- encoder-decoders ---- */

/* The target's ids behind the start token: given, or generated. */
static bool target_ids(ses_explain *x, int32_t **id, int64_t *n, ses_err *e)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    if (x->args->target) {
        const int32_t *ids;
        size_t k;
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

/* Index of the explained token of the target: --token, or the first one that is not special. */
static bool target_position(ses_explain *x, const ses_explain_side *all, int64_t *at, ses_err *e)
{
    ses_suggestion near = { .word = x->args->token ? x->args->token : "" };
    for (*at = 1; *at < all->n; ++*at) {
        if (x->args->token ? !strcmp(all->name[*at], x->args->token) : !all->special[*at]) return true;
        ses_suggest_offer(&near, all->name[*at], strlen(all->name[*at]));
    }
    *at = 1;
    if (!x->args->token && all->n > 1) return true;
    if (all->n < 2) return ses_fail(e, SES_EARG, "the target has no tokens");
    ses_fail(e, SES_EUSAGE, "--token %s: the target has no such token", x->args->token);
    return ses_suggest_add(&near, "", e);
}

static bool choose_generated(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    ses_explain_side all;
    int32_t *id = NULL;
    int64_t n = 0, at = 0, foil = -1;
    if (x->args->label) return ses_fail(e, SES_EUSAGE, "--label: use --token for a token of the target");
    if (!target_ids(x, &id, &n, e) || !ses_explain_side_of_ids(x, id, n, &all, e) ||
        !target_position(x, &all, &at, e) ||
        !ses_explain_side_of_ids(x, id, at, &x->side[SES_EXPLAIN_TARGET], e))
        return false;
    if (x->args->foil && !find_token(x, "--foil", x->args->foil, &foil, e)) return false;
    g->kind = SES_EXPLAIN_LM, g->of_decoder = true;
    g->position = at - 1, g->label = id[at], g->foil = foil;
    g->name = all.name[at];
    g->foil_name = foil >= 0 ? ses_explain_token_name(x, (int32_t)foil, e) : NULL;
    g->at = x->args->target ? "target" : "generated text";
    return foil < 0 || g->foil_name;
}

/* ---- by head ---- */

typedef struct chooser {
    const ses_head *head;
    bool (*choose)(ses_explain *x, ses_err *e);
} chooser;

static bool choose_pair(ses_explain *x, ses_err *e)
{
    return needs_pair(x, "does it follow the first?", e) && choose_sequence(x, e);
}

static const chooser choosers[] = {
    { &ses_head_sequence_classification, choose_sequence },
    { &ses_head_token_classification, choose_tag },
    { &ses_head_replaced_tokens, choose_tag },
    { &ses_head_question_answering, choose_span },
    { &ses_head_masked_lm, choose_masked },
    { &ses_head_causal_lm, choose_next },
    { &ses_head_seq2seq_lm, choose_generated },
    { &ses_head_next_sentence, choose_pair },
    { &ses_head_sentence_order, choose_pair },
};

bool ses_explain_choose_target(ses_explain *x, ses_err *e)
{
    const ses_head_use *use = x->m->class->head;
    for (size_t i = 0; i < SES_LEN(x->m->class->head) && use[i].head; i++)
        for (size_t j = 0; j < SES_LEN(choosers); j++) {
            if (use[i].head != choosers[j].head) continue;
            bool span = use[i].head == &ses_head_question_answering;
            x->target = (ses_explain_target){ .kind = span ? SES_EXPLAIN_SPAN : SES_EXPLAIN_SEQUENCE,
                                              .output = span ? "start_logits" : use[i].output };
            if (x->args->target && use[i].head != &ses_head_seq2seq_lm)
                return ses_fail(e, SES_EUSAGE, "--target: %s has no decoder that writes a text",
                                ses_model_class_name(x->m));
            if (!choosers[j].choose(x, e)) return false;
            return x->target.foil != x->target.label ||
                   ses_fail(e, SES_EUSAGE, "--foil %s is the explained label itself: choose another one",
                            x->args->foil);
        }
    const ses_head *head = use[0].head;
    return ses_fail(e, SES_EUNSUPPORTED,
                    "%s has no prediction to explain: %s; expected a classifier, tagger, question answering "
                    "or language model",
                    ses_model_class_name(x->m), head ? head->description : "no head");
}
