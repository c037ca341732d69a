/* Everything a batch may get wrong, said before a kernel reads it. */
#include "desc.h"

static bool check_offsets(const ses_model *m, const ses_batch *b, ses_err *e)
{
    if (b->seqs < 1 || b->tokens < 1 || !b->cu || !b->ids) return ses_fail(e, SES_EARG, "empty batch");
    if (b->tokens > INT32_MAX) return ses_fail(e, SES_EARG, "%lld tokens in one batch", (long long)b->tokens);
    if (b->cu[0] != 0 || b->cu[b->seqs] != b->tokens)
        return ses_fail(e, SES_EARG, "offsets go from %d to %d, expected 0 to %lld", (int)b->cu[0],
                        (int)b->cu[b->seqs], (long long)b->tokens);
    for (int64_t s = 0; s < b->seqs; s++) {
        int64_t len = (int64_t)b->cu[s + 1] - b->cu[s];
        if (len < 1) return ses_fail(e, SES_EARG, "sequence %lld is empty", (long long)s);
        if (len > m->c.positions && !b->positions)
            return ses_fail(e, SES_EARG, "sequence %lld has %lld tokens, the model takes at most %lld",
                            (long long)s, (long long)len, (long long)m->c.positions);
    }
    if (b->choices < 0 || (b->choices && b->seqs % b->choices))
        return ses_fail(e, SES_EARG, "%lld sequences do not make questions of %lld choices",
                        (long long)b->seqs, (long long)b->choices);
    return true;
}

/* Each of n values in 0 .. limit - 1, or SES_IGNORE where that is allowed. */
static bool check_range(const int32_t *x, int64_t n, int64_t limit, bool ignore, const char *what, ses_err *e)
{
    for (int64_t i = 0; x && i < n; i++)
        if ((x[i] < 0 || x[i] >= limit) && !(ignore && x[i] == SES_IGNORE))
            return ses_fail(e, SES_EARG, "%s %d at place %lld, expected 0 to %lld", what, (int)x[i],
                            (long long)i, (long long)limit - 1);
    return true;
}

static bool check_labels(const ses_model *m, const ses_head_use *use, const ses_batch *b, ses_err *e)
{
    const int32_t *labels = ses_head_labels(use, b);
    int64_t classes = use->head->classes(&m->c), choices = b->choices ? b->choices : 1;
    switch (use->head->axis) {
    case SES_LABEL_PER_TOKEN: return check_range(labels, b->tokens, classes, true, "label", e);
    case SES_LABEL_PER_SEQUENCE: return check_range(labels, b->seqs, classes, true, "label", e);
    case SES_LABEL_PER_QUESTION: return check_range(labels, b->seqs / choices, choices, true, "label", e);
    case SES_LABEL_SPAN: return true; /* positions outside the sequence count for nothing */
    }
    return true;
}

bool ses_model_check_batch(const ses_model *m, const ses_batch *b, ses_err *e)
{
    const ses_config *c = &m->c;
    if (!check_offsets(m, b, e) || !check_range(b->ids, b->tokens, c->vocab, false, "token id", e) ||
        !check_range(b->segments, b->tokens, c->segments, false, "segment id", e) ||
        !check_range(b->positions, b->tokens, c->positions, false, "position", e))
        return false;
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++)
        if (!check_labels(m, &m->class->head[i], b, e)) return false;
    return true;
}
