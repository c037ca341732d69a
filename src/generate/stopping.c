/* When a text ends: a token that says so, its length, a stop string. */
#include "generate_impl.h"

#include "base/alloc.h"

#include <string.h>

static bool has(ses_ids ids, int32_t id)
{
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] == id) return true;
    return false;
}

/* What the last tokens say, as many as a stop string can cover; ids beyond the tokenizer's say nothing. */
enum { TAIL = 512 };
static bool say(ses_generate_ctx *w, const int32_t *id, int64_t n, const char **text, size_t *len, ses_err *e)
{
    int32_t known[TAIL];
    size_t m = 0;
    for (int64_t i = n < TAIL ? 0 : n - TAIL; i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(w->o.tokenizer)) known[m++] = id[i];
    *text = "", *len = 0;
    return !m || ses_decode(w->tokens, known, m, true, text, len, e);
}

/* Does one of the strings stand in the text, reaching into its last token? */
static bool completes(ses_generate_ctx *w, const int32_t *id, int64_t n, bool *found, ses_err *e)
{
    const ses_generate_options *o = &w->o;
    size_t longest = 0, before, len;
    const char *text;
    for (int64_t i = 0; i < o->n_stop_strings; i++) {
        size_t m = strlen(o->stop_strings[i]);
        if (m > longest) longest = m;
    }
    /* Nearly every token has a byte or more. */
    int64_t tail = longest + 4 < TAIL ? (int64_t)longest + 4 : TAIL;
    if (tail < n) id += n - tail, n = tail;
    if (!say(w, id, n - 1, &text, &before, e) || !say(w, id, n, &text, &len, e)) return false;
    for (int64_t i = 0; i < o->n_stop_strings && !*found; i++) {
        size_t m = strlen(o->stop_strings[i]);
        for (size_t at = 0; m && at + m <= len && !*found; at++)
            *found = at + m > before && !memcmp(text + at, o->stop_strings[i], m);
    }
    return true;
}

bool ses_generate_check_stop(ses_generate_ctx *w, const ses_prompt_state *k, const int32_t *id, int64_t n,
                             ses_finish_reason *why, bool *ends, ses_err *e)
{
    bool stop = false;
    if (w->o.n_stop_strings && !completes(w, id, n, &stop, e)) return false;
    bool eos = has(w->o.eos, id[n - 1]);
    *ends = eos || stop || n >= k->max_length;
    *why = eos ? SES_FINISH_EOS : stop ? SES_FINISH_STOP : SES_FINISH_LENGTH;
    return true;
}

bool ses_generated_sequence_copy(ses_generated_sequence *out, const ses_prompt_state *k, const int32_t *id,
                                 int64_t n, const float *logprob, ses_err *e)
{
    int32_t *ids = ses_alloc_array((size_t)n + 1, sizeof *ids, e);
    float *logs = ses_alloc_array((size_t)(n - k->given) + 1, sizeof *logs, e);
    *out = (ses_generated_sequence){
        .prompt = k->index, .ids = { ids, n }, .prompt_len = k->given, .logprob = logs
    };
    if (!ids || !logs) return false;
    memcpy(ids, id, (size_t)n * sizeof *ids);
    memcpy(logs, logprob, (size_t)(n - k->given) * sizeof *logs);
    return true;
}
