/* Stopping criteria: an EOS token, a stop string, the maximum length. */
#include "base/alloc.h"
#include "generate_impl.h"

#include <string.h>

static bool contains(ses_ids ids, int32_t id)
{
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] == id) return true;
    return false;
}

/* Stop strings are searched in the text of the last tokens only. */
enum { MAX_TAIL = 512 };

/* Decodes the last MAX_TAIL of n tokens; ids beyond the tokenizer's vocabulary have no text. */
static bool decode_tail(const ses_prompt_state *p, const int32_t *id, int64_t n, const char **text,
                        size_t *len, ses_err *e)
{
    int32_t known[MAX_TAIL];
    size_t m = 0;
    for (int64_t i = n < MAX_TAIL ? 0 : n - MAX_TAIL; i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(p->o.tokenizer)) known[m++] = id[i];
    *text = "", *len = 0;
    return !m || ses_decode(p->tokens, known, m, true, text, len, e);
}

/* Does the last token complete a stop string? */
static bool completes_stop_string(const ses_prompt_state *p, const int32_t *id, int64_t n, bool *found,
                                  ses_err *e)
{
    const ses_generate_options *o = &p->o;
    size_t longest = 0, before, len;
    const char *text;
    for (int64_t i = 0; i < o->n_stop_strings; i++) {
        size_t m = strlen(o->stop_strings[i]);
        if (m > longest) longest = m;
    }
    /* nearly every token has at least one byte */
    int64_t tail = longest + 4 < MAX_TAIL ? (int64_t)longest + 4 : MAX_TAIL;
    if (tail < n) id += n - tail, n = tail;
    if (!decode_tail(p, id, n - 1, &text, &before, e) || !decode_tail(p, id, n, &text, &len, e)) return false;
    for (int64_t i = 0; i < o->n_stop_strings && !*found; i++) {
        size_t m = strlen(o->stop_strings[i]);
        for (size_t at = 0; m && at + m <= len && !*found; at++)
            *found = at + m > before && !memcmp(text + at, o->stop_strings[i], m);
    }
    return true;
}

bool ses_generate_check_stop(const ses_prompt_state *p, const int32_t *id, int64_t n, ses_finish_reason *why,
                             bool *stops, ses_err *e)
{
    bool stop_string = false;
    if (p->o.n_stop_strings && !completes_stop_string(p, id, n, &stop_string, e)) return false;
    bool eos = contains(p->o.eos, id[n - 1]);
    *stops = eos || stop_string || n >= p->max_length;
    *why = eos ? SES_FINISH_EOS : stop_string ? SES_FINISH_STOP : SES_FINISH_LENGTH;
    return true;
}
