/* Access to the outputs of a batch, and helpers of the views. */
#include "run_model.h"

#include "base/alloc.h"
#include "tensor/device_impl.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const ses_output *ses_run_find(const ses_run_view *r, const char *name)
{
    return ses_outputs_find(&r->out, name);
}

const ses_output *ses_run_output(const ses_run_view *r, const char *name)
{
    const ses_output *o = ses_run_find(r, name);
    assert(o);
    return o;
}

bool ses_model_reads_target(const ses_model *m)
{
    return m->stack[1].layer && !m->c.decoder.input_from_source;
}

static ses_token_slice slice(const ses_ints *ids, const ses_ints *cu, int64_t s)
{
    int32_t at = cu->p[s];
    return (ses_token_slice){ ids->p + at, at, cu->p[s + 1] - at };
}

ses_token_slice ses_run_input_tokens(const ses_run_view *r, int64_t s)
{
    return slice(&r->batch.in.ids, &r->batch.in.cu_seqlens, s);
}

ses_token_slice ses_run_target_tokens(const ses_run_view *r, int64_t s)
{
    const ses_batch_builder *b = &r->batch.in;
    return ses_model_reads_target(r->model) ? slice(&b->target_ids, &b->target_cu_seqlens, s)
                                            : ses_run_input_tokens(r, s);
}

ses_token_slice ses_run_output_tokens(const ses_run_view *r, const ses_output *o, int64_t s)
{
    return o->axis == SES_PER_TARGET ? ses_run_target_tokens(r, s) : ses_run_input_tokens(r, s);
}

int64_t ses_run_cols(const ses_output *o) { return o->cols ? o->cols : ses_cols(o->tensor); }

static float *reserve_row(ses_run_view *r, int64_t n, ses_err *e)
{
    if (!ses_array_reserve(&r->row, &r->row_cap, (size_t)n, sizeof *r->row, e)) return NULL;
    return r->row;
}

const float *ses_run_values(ses_run_view *r, const ses_output *o, int64_t first, int64_t n, ses_err *e)
{
    assert(first + n <= ses_count(o->tensor));
    float *to = reserve_row(r, n, e);
    return to && ses_device_read(r->dev, o->tensor, first, n, to, e) ? to : NULL;
}

const float *ses_run_rows(ses_run_view *r, const ses_output *o, int64_t first, int64_t n, ses_err *e)
{
    int64_t stride = ses_cols(o->tensor), cols = ses_run_cols(o);
    float *x = (float *)(uintptr_t)ses_run_values(r, o, first * stride, n * stride, e);
    if (x && cols != stride) /* compact some columns of a wider tensor */
        for (int64_t i = 0; i < n; i++)
            memmove(x + i * cols, x + i * stride + o->col, (size_t)cols * sizeof *x);
    return x;
}

const char *ses_run_token_text(const ses_run_view *r, int32_t id, char buf[SES_TOKEN_TEXT])
{
    size_t n = 0;
    const char *text = r->tokenizer ? ses_tokenizer_id_to_token(r->tokenizer, id, &n) : NULL;
    snprintf(buf, SES_TOKEN_TEXT, text ? "%d %.*s" : "%d", (int)id, n < 60 ? (int)n : 60, text ? text : "");
    return buf;
}

void ses_json_member_token(const ses_run_view *r, const char *key, int64_t id)
{
    size_t n = 0;
    const char *text = r->tokenizer ? ses_tokenizer_id_to_token(r->tokenizer, (int32_t)id, &n) : NULL;
    if (!text) return;
    ses_json_member_stringn(r->w, key, text, n);
}

double ses_run_log_sum_exp(const float *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if ((double)x[i] > max) max = (double)x[i];
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return max + log(sum);
}

void ses_top_scores_offer(ses_top_score *best, int64_t *n, int64_t cap, ses_top_score x)
{
    if (*n == cap && !(x.score > best[cap - 1].score)) return;
    int64_t at = *n < cap ? (*n)++ : cap - 1;
    for (; at > 0 && x.score > best[at - 1].score; at--) best[at] = best[at - 1];
    best[at] = x;
}

int64_t ses_top_scores(ses_top_score *best, int64_t cap, const float *x, int64_t n)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        ses_top_scores_offer(best, &k, cap, (ses_top_score){ i, 0, (double)x[i] });
    return k;
}
