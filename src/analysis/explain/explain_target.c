/* Chooses the number to explain: by the model's head, the options, and the model's own prediction for what
 * they leave open. */
#include "explain.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
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
    char buf[SES_LABEL_TEXT];
    const char *name = ses_model_label_text(x->m, i, buf);
    return ses_arena_strndup(&x->mem, name, strlen(name), e);
}

static bool find_label(ses_explain *x, const char *option, const char *text, int64_t n, int64_t *label,
                       ses_err *e)
{
    bool ok = ses_model_find_label(x->m, (ses_string){ text, strlen(text) }, label, e) && *label < n;
    if (!ok && e) e->code = SES_EUSAGE;
    return ok || ses_wrap(e, "%s", option);
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

/* The token is given as the vocabulary's string or as a text of one token. */
bool ses_explain_find_token(ses_explain *x, const char *option, const char *text, int64_t *id, ses_err *e)
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

/* ---- heads ---- */

static bool needs_pair(const ses_explain *x, const char *what, ses_err *e)
{
    return x->pair || ses_fail(e, SES_EUSAGE, "%s needs a second text: --pair TEXT (%s)",
                               ses_model_class_name(x->m), what);
}

static bool choose_sequence(ses_explain *x, ses_err *e)
{
    int64_t rows, cols;
    ses_explain_note_window(x, "its beginning");
    const ses_real *z = ses_explain_logits(x, x->target.output, &rows, &cols, e);
    if (x->args->word)
        return ses_fail(e, SES_EUSAGE, "--word: %s labels the whole text", ses_model_class_name(x->m));
    x->target.independent = x->m->c.head.problem == SES_PROBLEM_MULTI && cols > 1;
    return z && choose_labels(x, z, cols, e);
}

/* The word that --word names, in the window around it. */
static bool find_tagged_word(ses_explain *x, int64_t *word, ses_err *e)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE], *f = &x->full;
    if (!ses_explain_find_word(x, f, word, e)) return false;
    if (!ses_explain_excess(x)) return true;
    int64_t t = ses_explain_word_begin(f, *word);
    if (!ses_explain_window_around(x, t, e)) return false;
    ses_explain_note_window(x, "the part around the word");
    for (int64_t i = 0; i < s->n; i++)
        if (s->pair[i] == f->pair[t] && s->bytes[i].begin == f->bytes[t].begin && s->word[i] >= 0)
            return *word = s->word[i], true;
    return ses_fail(e, SES_EARG, "--word %s: the window does not contain it", x->args->word);
}

/* A tag: of the chosen word, or of the first word whose tag is not the most frequent one ("O"). */
static bool choose_tag(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols, word = 0;
    if (x->args->word ? !find_tagged_word(x, &word, e) : false) return false;
    if (!x->args->word) ses_explain_note_window(x, "its beginning");
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    if (!z) return false;
    for (int64_t w = 0; w < s->words && cols > 1 && !x->args->word; w++) {
        int64_t tag = argmax(z + ses_explain_word_begin(s, w) * cols, cols);
        const char *name = ses_model_label_name(x->m, tag);
        if (!name || !strcmp(name, "O")) continue;
        word = w;
        break;
    }
    g->kind = SES_EXPLAIN_TOKEN;
    g->position = ses_explain_word_begin(s, word);
    g->at = ses_explain_word_text(x, s, word, e);
    return g->at && choose_labels(x, z + g->position * cols, cols, e);
}

/* Has a token of the text been replaced? One logit a token. */
static bool choose_replaced(ses_explain *x, ses_err *e)
{
    x->target.independent = true;
    if (x->args->label || x->args->foil)
        return ses_fail(e, SES_EUSAGE, "--label, --foil: %s has one score a token; choose a word with --word",
                        ses_model_class_name(x->m));
    if (!choose_tag(x, e)) return false;
    x->target.name = "replaced";
    return true;
}

/* Tokens of the passage whose bytes overlap the answer: in the window around it. */
static bool span_of_text(ses_explain *x, const char *answer, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->full;
    const char *found = strstr(x->pair, answer);
    if (!*answer || !found)
        return ses_fail(e, SES_EUSAGE, "--label %s: the second text does not contain this answer", answer);
    size_t begin = (size_t)(found - x->pair), end = begin + strlen(answer);
    for (int pass = 0; pass < 2; pass++) {
        g->start = g->end = -1;
        for (int64_t i = 0; i < s->n; i++) {
            if (!s->pair[i] || s->special[i] || s->bytes[i].end <= begin || s->bytes[i].begin >= end)
                continue;
            if (g->start < 0) g->start = i;
            g->end = i;
        }
        if (g->start < 0) return ses_fail(e, SES_EUSAGE, "--label %s: no token of this answer", answer);
        if (!pass && ses_explain_excess(x) && !ses_explain_window_around(x, g->start, e)) return false;
        s = &x->side[SES_EXPLAIN_SOURCE];
    }
    return true;
}

/* The best span of the window; *best: its score, if it is better than that. */
static bool best_span(ses_explain *x, double *best, ses_err *e)
{
    enum { LONGEST = 30 };
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    int64_t rows, cols;
    const ses_real *z = ses_explain_logits(x, g->output, &rows, &cols, e);
    for (int64_t i = 0; z && i < s->n; i++)
        for (int64_t j = i; j < s->n && j < i + LONGEST; j++) {
            double score = (double)z[2 * i] + (double)z[2 * j + 1];
            if (!s->pair[i] || !s->pair[j] || s->special[i] || s->special[j] || !(score > *best)) continue;
            *best = score, g->start = i, g->end = j;
        }
    return z != NULL;
}

/* The best span of the passage; of a long one, in overlapping windows. */
static bool span_of_model(ses_explain *x, ses_err *e)
{
    int64_t excess = ses_explain_excess(x), chosen = 0, step = x->side[SES_EXPLAIN_SOURCE].n / 2;
    double best = -HUGE_VAL;
    ses_explain_target found = x->target;
    for (int64_t first = 0;; first += step) {
        double before = best;
        ses_mark mark = ses_arena_mark(&x->mem);
        if (first && !ses_explain_window(x, first, e)) return false;
        if (!best_span(x, &best, e)) return false;
        if (best > before) chosen = first, found = x->target;
        if (excess) ses_arena_rewind(&x->mem, mark);
        if (first >= excess) break;
    }
    x->target = found;
    if (best == -HUGE_VAL)
        return ses_fail(e, SES_EARG, "no span of the passage has a score: the weights may not be numbers");
    return !excess || ses_explain_window(x, chosen, e);
}

static bool choose_span(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    if (!needs_pair(x, "the text is the question, --pair the passage", e)) return false;
    if (x->args->foil) return ses_fail(e, SES_EUNSUPPORTED, "--foil: a span of an answer has no foil");
    if (x->args->word || x->args->token)
        return ses_fail(e, SES_EUSAGE, "--word, --token: give the answer to explain as --label TEXT");
    bool passage = false;
    for (int64_t i = 0; i < s->n; i++) passage |= s->pair[i] && !s->special[i];
    if (!passage) return ses_fail(e, SES_EUSAGE, "--pair: the passage has no words");
    if (x->args->label ? !span_of_text(x, x->args->label, e) : !span_of_model(x, e)) return false;
    ses_explain_note_window(x, "the part with the answer");
    size_t begin = s->bytes[g->start].begin, end = s->bytes[g->end].end;
    g->name = ses_arena_strndup(&x->mem, x->pair + begin, end - begin, e);
    g->label = 0, g->foil = -1;
    return g->name != NULL;
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
    { &ses_head_replaced_tokens, choose_replaced },
    { &ses_head_question_answering, choose_span },
    { &ses_head_masked_lm, ses_explain_choose_masked },
    { &ses_head_causal_lm, ses_explain_choose_next },
    { &ses_head_seq2seq_lm, ses_explain_choose_written },
    { &ses_head_multiple_choice, ses_explain_choose_choice },
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
            if (x->call->n_operands > 1 && use[i].head != &ses_head_multiple_choice)
                return ses_fail(e, SES_EUSAGE, "unexpected argument '%s': %s does not choose between texts",
                                x->call->operands[1], ses_model_class_name(x->m));
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
