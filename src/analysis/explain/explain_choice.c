/* The target of multiple choice: the score of one choice. The model reads the text with each choice alone;
 * the probability compares the scores. */
#include "explain.h"

#include "base/suggest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A choice by its text or its number from 0, as the pipeline numbers them. */
static bool find_choice(const ses_explain *x, const char *text, int64_t n, int64_t *choice, ses_err *e)
{
    char *end;
    ses_suggestion near = { .word = text };
    for (*choice = 0; *choice < n; ++*choice) {
        const char *other = x->call->operands[*choice + 1];
        if (!strcmp(other, text)) return true;
        ses_suggest_offer(&near, other, strlen(other));
    }
    long long number = strtoll(text, &end, 10);
    if (end != text && !*end && number >= 0 && number < n) return *choice = number, true;
    ses_fail(e, SES_EUSAGE, "--label %s: expected a choice, or its number from 0 to %lld", text,
             (long long)n - 1);
    return ses_suggest_add(&near, "", e);
}

/* The text and choice i as the model's input; --pair is the beginning that all choices share. */
static bool encode_choice(ses_explain *x, int64_t i, ses_err *e)
{
    ses_buf b = { 0 };
    if (x->args->pair) ses_buf_appendf(&b, "%s ", x->args->pair);
    ses_buf_puts(&b, x->call->operands[i + 1]);
    x->pair = ses_buf_ok(&b, e) ? ses_arena_strndup(&x->mem, b.data ? b.data : "", b.len, e) : NULL;
    ses_buf_free(&b);
    if (!x->pair) return false;
    if (!*x->pair) return ses_fail(e, SES_EUSAGE, "choice %lld is empty", (long long)i);
    return ses_explain_encode(x, e);
}

bool ses_explain_choose_choice(ses_explain *x, ses_err *e)
{
    ses_explain_target *g = &x->target;
    int64_t n = x->call->n_operands - 1, rows, cols, n_rivals = 0;
    if (n < 2)
        return ses_fail(e, SES_EUSAGE,
                        "%s compares choices: give at least two after the text (sesame explain TEXT CHOICE "
                        "CHOICE)",
                        ses_model_class_name(x->m));
    if (x->args->token || x->args->word)
        return ses_fail(e, SES_EUSAGE, "--token, --word: choose what to explain as --label CHOICE");
    if (x->args->foil)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "--foil: the model reads each choice alone, so the difference of two scores belongs "
                        "to two inputs; explain each choice with --label");
    double *score = ses_arena_array(&x->mem, (size_t)n, sizeof *score, e);
    double *rival = ses_arena_array(&x->mem, (size_t)n, sizeof *rival, e);
    if (!score || !rival) return false;
    for (int64_t i = 0; i < n; i++) {
        const ses_real *z = encode_choice(x, i, e) ? ses_explain_logits(x, g->output, &rows, &cols, e) : NULL;
        if (!z) return false;
        score[i] = (double)z[0];
    }
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    if (x->args->label && !find_choice(x, x->args->label, n, &best, e)) return false;
    for (int64_t i = 0; i < n; i++)
        if (i != best) rival[n_rivals++] = score[i];
    g->kind = SES_EXPLAIN_SEQUENCE, g->classes = 1, g->label = 0, g->foil = -1;
    g->rival = rival, g->n_rivals = n_rivals;
    g->name = x->call->operands[best + 1];
    if (!encode_choice(x, best, e)) return false;
    ses_explain_note_window(x, "its beginning");
    return true;
}
