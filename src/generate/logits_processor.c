/* Running the processors, and what several of them need. */
#include "logits_processor.h"

#include <math.h>
#include <stdlib.h>

static const ses_logits_processor *const all[] = {
#define SES_PROCESSOR(name) &ses_process_##name,
#include "processors.def"
#undef SES_PROCESSOR
};

void ses_logits_process(ses_logits_ctx *s)
{
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i]->wanted(s->o)) all[i]->run(s);
}

void ses_logits_ban(ses_logits_ctx *s, int32_t id)
{
    if (id >= 0 && id < s->vocab) s->score[id] = -INFINITY;
}

void ses_logits_ban_all(ses_logits_ctx *s, ses_ids ids)
{
    for (int64_t i = 0; i < ids.n; i++) ses_logits_ban(s, ids.id[i]);
}

static int better_first(const void *a, const void *b)
{
    const ses_ranked_token *x = a, *y = b;
    if (x->x != y->x) return x->x > y->x ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void ses_ranked_sort(ses_ranked_token *r, int64_t n) { qsort(r, (size_t)n, sizeof *r, better_first); }

int64_t ses_logits_rank(ses_logits_ctx *s)
{
    int64_t n = 0;
    for (int32_t i = 0; i < s->vocab; i++)
        if (s->score[i] > -INFINITY) s->rank[n++] = (ses_ranked_token){ s->score[i], i };
    ses_ranked_sort(s->rank, n);
    return n;
}

/* Exchanges until the k best stand before the others, in any order (Hoare's selection). */
static void select_best(ses_ranked_token *r, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    for (int turns = 0; low < high; turns++) {
        if (turns > 64) { /* an order that defeats the choice of the middle one */
            ses_ranked_sort(r + low, high - low + 1);
            return;
        }
        ses_ranked_token middle = r[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (better_first(&r[i], &middle) < 0) i++;
            while (better_first(&middle, &r[j]) < 0) j--;
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

float ses_logits_kth_score(ses_logits_ctx *s, int64_t k)
{
    int64_t n = 0;
    float least = INFINITY;
    for (int32_t i = 0; i < s->vocab; i++)
        if (s->score[i] > -INFINITY) s->rank[n++] = (ses_ranked_token){ s->score[i], i };
    if (n <= k) return -INFINITY;
    select_best(s->rank, n, k - 1);
    for (int64_t i = 0; i < k; i++)
        if (s->rank[i].x < least) least = s->rank[i].x;
    return least;
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

/* ---- the whole distribution ---- */

static bool want_invalid(const ses_generate_options *o) { return o->remove_invalid_values; }

static void remove_invalid(ses_logits_ctx *s)
{
    for (int64_t i = 0; i < s->vocab; i++) {
        float x = s->score[i];
        s->score[i] = isnan(x) ? 0 : x == INFINITY ? 0x1.fffffep127f : x == -INFINITY ? -0x1.fffffep127f : x;
    }
}
const ses_logits_processor ses_process_remove_invalid = { want_invalid, remove_invalid };

static bool want_temperature(const ses_generate_options *o) { return o->do_sample && o->temperature != 1; }

static void temperature(ses_logits_ctx *s)
{
    float t = (float)s->o->temperature;
    for (int64_t i = 0; i < s->vocab; i++) s->score[i] /= t;
}
const ses_logits_processor ses_process_temperature = { want_temperature, temperature };

static bool want_renormalize(const ses_generate_options *o) { return o->renormalize_logits; }

static void renormalize(ses_logits_ctx *s)
{
    double lse = ses_log_sum_exp(s->score, s->vocab);
    for (int64_t i = 0; i < s->vocab; i++) s->score[i] = (float)((double)s->score[i] - lse);
}
const ses_logits_processor ses_process_renormalize = { want_renormalize, renormalize };
