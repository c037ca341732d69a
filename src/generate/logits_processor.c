/* Runs the logits processors; ranking helpers; the processors that change all scores alike. */
#include "logits_processor.h"

#include <math.h>
#include <stdlib.h>

static const ses_logits_processor *const all[] = {
#define SES_PROCESSOR(name) &ses_processor_##name,
#include "processors.def"
#undef SES_PROCESSOR
};

void ses_logits_process(ses_logits_ctx *c)
{
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i]->is_active(c->o)) all[i]->run(c);
}

void ses_logits_ban(ses_logits_ctx *c, int32_t id)
{
    if (id >= 0 && id < c->vocab_size) c->score[id] = -INFINITY;
}

void ses_logits_ban_all(ses_logits_ctx *c, ses_ids ids)
{
    for (int64_t i = 0; i < ids.n; i++) ses_logits_ban(c, ids.id[i]);
}

static int better_first(const void *a, const void *b)
{
    const ses_ranked_token *x = a, *y = b;
    if (x->x != y->x) return x->x > y->x ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void ses_ranked_sort(ses_ranked_token *r, int64_t n) { qsort(r, (size_t)n, sizeof *r, better_first); }

int64_t ses_logits_rank(ses_logits_ctx *c)
{
    int64_t n = 0;
    for (int32_t i = 0; i < c->vocab_size; i++)
        if (c->score[i] > -INFINITY) c->rank[n++] = (ses_ranked_token){ c->score[i], i };
    ses_ranked_sort(c->rank, n);
    return n;
}

/* Moves the k best to the front, in any order (Hoare's quickselect). */
static void select_best(ses_ranked_token *r, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    for (int rounds = 0; low < high; rounds++) {
        if (rounds > 64) { /* bad pivots: sort instead */
            ses_ranked_sort(r + low, high - low + 1);
            return;
        }
        ses_ranked_token pivot = r[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (better_first(&r[i], &pivot) < 0) i++;
            while (better_first(&pivot, &r[j]) < 0) j--;
            if (i > j) break;
            ses_ranked_token t = r[i];
            r[i++] = r[j], r[j--] = t;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

float ses_logits_kth_score(ses_logits_ctx *c, int64_t k)
{
    int64_t n = 0;
    float kth = INFINITY;
    for (int32_t i = 0; i < c->vocab_size; i++)
        if (c->score[i] > -INFINITY) c->rank[n++] = (ses_ranked_token){ c->score[i], i };
    if (n <= k) return -INFINITY;
    select_best(c->rank, n, k - 1);
    for (int64_t i = 0; i < k; i++)
        if (c->rank[i].x < kth) kth = c->rank[i].x;
    return kth;
}

double ses_log_sum_exp(const float *x, int64_t n)
{
    float max = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > max) max = x[i];
    if (!isfinite(max)) return (double)max;
    for (int64_t i = 0; i < n; i++) sum += (double)expf(x[i] - max);
    return (double)max + log(sum);
}

/* ---- processors of all scores ---- */

static bool has_invalid(const ses_generate_options *o) { return o->remove_invalid_values; }

static void remove_invalid(ses_logits_ctx *c)
{
    for (int64_t i = 0; i < c->vocab_size; i++) {
        float x = c->score[i];
        c->score[i] = isnan(x) ? 0 : x == INFINITY ? 0x1.fffffep127f : x == -INFINITY ? -0x1.fffffep127f : x;
    }
}
const ses_logits_processor ses_processor_remove_invalid = { has_invalid, remove_invalid };

static bool has_temperature(const ses_generate_options *o) { return o->do_sample && o->temperature != 1; }

static void temperature(ses_logits_ctx *c)
{
    float t = (float)c->o->temperature;
    for (int64_t i = 0; i < c->vocab_size; i++) c->score[i] /= t;
}
const ses_logits_processor ses_processor_temperature = { has_temperature, temperature };

static bool has_renormalize(const ses_generate_options *o) { return o->renormalize_logits; }

static void renormalize(ses_logits_ctx *c)
{
    double lse = ses_log_sum_exp(c->score, c->vocab_size);
    for (int64_t i = 0; i < c->vocab_size; i++) c->score[i] = (float)((double)c->score[i] - lse);
}
const ses_logits_processor ses_processor_renormalize = { has_renormalize, renormalize };
