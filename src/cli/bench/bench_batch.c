/* Batches of invented ids and labels, by the heads of a model class. */
#include "bench_batch.h"

#include "base/alloc.h"

#include "model/model_desc.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 7919 }; /* ids change from token to token */

static int32_t *ints(ses_bench_batch *b, int64_t n, ses_err *e)
{
    return ses_arena_array(&b->mem, (size_t)n, sizeof(int32_t), e);
}

static int32_t *ids(ses_bench_batch *b, int64_t n, int64_t vocab, ses_err *e)
{
    int32_t *x = ints(b, n, e);
    for (int64_t i = 0; x && i < n; i++) x[i] = (int32_t)(i * STEP % vocab);
    return x;
}

/* Labels of tokens: for language models the tokens, of which masked ones predict a part. */
static int32_t *token_labels(ses_bench_batch *b, const ses_head *h, int64_t classes, ses_err *e)
{
    bool decoder = h->axis == SES_LABEL_PER_TARGET;
    int64_t n = b->batch.tokens; /* targets are as long */
    const int32_t *id = decoder && b->batch.target_ids ? b->batch.target_ids : b->batch.ids;
    bool some = h->scores == SES_SCORES_LABELED && !h->shifts_labels && !decoder;
    int32_t *x = ints(b, n, e);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = some && i % SES_BENCH_LABEL_EVERY ? SES_IGNORE_INDEX : (int32_t)(id[i] % classes);
    return x;
}

/* Answers are the first tokens of their sequences; heads that find none ignore them. */
static bool span_labels(ses_bench_batch *b, ses_err *e)
{
    b->batch.starts = ints(b, b->batch.seqs, e); /* zeros */
    b->batch.ends = b->batch.starts;
    return b->batch.starts != NULL;
}

static int32_t *sequence_labels(ses_bench_batch *b, int64_t classes, ses_err *e)
{
    int32_t *x = ints(b, b->batch.seqs, e);
    for (int64_t s = 0; x && s < b->batch.seqs; s++) x[s] = (int32_t)(s % classes);
    return x;
}

static bool head_labels(ses_bench_batch *b, const ses_model *m, const ses_head_use *use, ses_err *e)
{
    const ses_head *h = use->head;
    int64_t classes = h->class_count(&m->c);
    int32_t *x = NULL;
    switch (h->axis) {
    case SES_LABEL_PER_TOKEN:
    case SES_LABEL_PER_TARGET: x = token_labels(b, h, classes, e); break;
    case SES_LABEL_PER_SEQUENCE: x = sequence_labels(b, classes, e); break;
    case SES_LABEL_PER_QUESTION: x = sequence_labels(b, 1, e); break; /* one question: the first choice */
    case SES_LABEL_SPAN: return true;
    }
    *(const int32_t **)(void *)((char *)&b->batch + use->labels_offset) = x;
    return x != NULL;
}

/* Heads of sequences also read numbers: regression, several labels. */
static bool number_labels(ses_bench_batch *b, const ses_model *m, ses_err *e)
{
    bool several = m->c.head.problem == SES_PROBLEM_MULTI,
         number = m->c.head.problem == SES_PROBLEM_REGRESSION || m->c.labels == 1;
    if (!several && !number) return true;
    b->batch.targets =
        ses_arena_array(&b->mem, (size_t)(b->batch.seqs * m->c.labels), sizeof *b->batch.targets, e);
    return b->batch.targets != NULL;
}

static bool all_labels(ses_bench_batch *b, const ses_model *m, ses_err *e)
{
    if (!span_labels(b, e))
        return false; /* also of heads with other labels: question answering by beam search */
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++) {
        const ses_head_use *use = &m->class->head[i];
        if (use->head->axis == SES_LABEL_PER_QUESTION) b->batch.choices = b->batch.seqs;
        if (!head_labels(b, m, use, e)) return false;
        if (use->head->axis == SES_LABEL_PER_SEQUENCE && !number_labels(b, m, e)) return false;
    }
    return true;
}

bool ses_bench_batch_fill(ses_bench_batch *b, const ses_model *m, const int64_t *length, int64_t seqs,
                          bool labels, ses_err *e)
{
    ses_bench_batch_free(b);
    int64_t tokens = 0;
    for (int64_t s = 0; s < seqs; s++) tokens += length[s];
    bool decodes = m->stack[1].layer && !m->c.decoder.input_from_source;
    const int32_t *source = ids(b, tokens, ses_model_source_vocab_size(m), e),
                  *target = source && decodes ? ids(b, tokens, ses_model_vocab_size(m), e) : NULL;
    if (!source || (decodes && !target)) return false;
    for (int64_t s = 0, at = 0; s < seqs; at += length[s++])
        if (!ses_batch_builder_add(&b->in, source + at, NULL, length[s], e) ||
            (target && (!ses_ints_append(&b->in.target_ids, target + at, length[s], e) ||
                        !ses_batch_builder_end_target(&b->in, e))))
            return false;
    b->batch = ses_batch_builder_batch(&b->in);
    return !labels || all_labels(b, m, e);
}

void ses_bench_batch_free(ses_bench_batch *b)
{
    ses_arena_free(&b->mem);
    ses_batch_builder_free(&b->in);
    *b = (ses_bench_batch){ 0 };
}

bool ses_bench_load_parse(const char *text, ses_bench_load *l, int64_t **lengths, ses_err *e)
{
    enum { MAX_TOKENS = 1 << 20 };
    const char *at = text;
    size_t n = 1;
    char mark = strchr(text, 'x') ? 'x' : '+';
    for (const char *c = text; *c; c++) n += *c == mark;
    int64_t *x = *lengths = ses_alloc_array(n, sizeof *x, e), T = 0;
    if (!x) return false;
    for (size_t i = 0; at && i < n; i++) {
        char *end;
        x[i] = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        bool valid =
            x[i] > 0 && x[i] <= MAX_TOKENS && (T += x[i]) <= MAX_TOKENS && *end == (i + 1 < n ? mark : 0);
        at = valid ? end + 1 : NULL;
    }
    if (!at || (mark == 'x' && (n != 2 || x[0] * x[1] > MAX_TOKENS)))
        return ses_fail(e, SES_EUSAGE,
                        "--load %s: expected COUNTxLENGTH such as 8x128, or lengths such as 12+7+30", text);
    *l = mark == 'x' ? (ses_bench_load){ .seqs = x[0], .len = x[1] }
                     : (ses_bench_load){ .seqs = (int64_t)n, .lengths = x };
    return true;
}
