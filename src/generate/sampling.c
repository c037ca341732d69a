/* The likeliest token, or one drawn by its probability. Every sequence goes its own way. */
#include "base/rng.h"
#include "generate_impl.h"

#include <math.h>

static int64_t lanes(const ses_generate_options *o) { return o->num_return_sequences; }

static bool begin(ses_generate_ctx *w, ses_prompt_state *k, ses_err *e)
{
    (void)w, (void)k, (void)e;
    return true;
}

static int32_t likeliest(const float *score, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    return best;
}

/* The draw is the lane's own at this place: a function of the seed, the prompt, the sequence and the
 * place. */
static int32_t draw(const ses_generate_ctx *w, const ses_prompt_state *k, int64_t lane, int64_t place)
{
    ses_rng_key key = { .seed = w->o.seed, .step = (uint32_t)place, .site = k->mark };
    uint32_t x[4];
    ses_philox(x, key, (uint64_t)lane);
    double u = ((double)(((uint64_t)x[0] << 21) ^ (x[1] >> 11))) * 0x1p-53, sum = 0;
    double lse = ses_log_sum_exp(w->score, w->vocab);
    int32_t last = likeliest(w->score, w->vocab);
    for (int32_t i = 0; i < w->vocab; i++) {
        if (!(w->score[i] > -INFINITY)) continue;
        sum += exp((double)w->score[i] - lse);
        last = i;
        if (u < sum) break;
    }
    return last;
}

static bool step(ses_generate_ctx *w, ses_prompt_state *k, const ses_real *const *raw, ses_err *e)
{
    bool open = false;
    for (int64_t i = 0; i < k->lanes; i++) {
        ses_hypothesis *l = &k->lane[i];
        if (l->done) continue;
        double lse = ses_generate_next_scores(w, k, l, raw[i], false);
        int32_t id = w->o.do_sample ? draw(w, k, i, l->n - k->given) : likeliest(w->score, w->vocab);
        float logprob = (float)((double)raw[i][id] - lse);
        l->logprob[l->n - k->given] = logprob;
        l->id[l->n++] = id;
        if (!ses_generate_check_stop(w, k, l->id, l->n, &l->finish, &l->done, e)) return false;
        open |= !l->done;
        ses_token_event event = { k->index, i, l->id, l->n, k->given, logprob };
        if (w->o.on_token && !w->o.on_token(w->o.ctx, &event)) {
            w->out->cancelled = true;
            if (!l->done) l->finish = SES_FINISH_CANCELLED;
            break;
        }
    }
    k->done = !open;
    return true;
}

static bool finish(ses_generate_ctx *w, ses_prompt_state *k, ses_generated_sequence *out, ses_err *e)
{
    (void)w;
    for (int64_t i = 0; i < k->lanes; i++) {
        const ses_hypothesis *l = &k->lane[i];
        if (!ses_generated_sequence_copy(&out[i], k, l->id, l->n, l->logprob, e)) return false;
        out[i].finish = l->done ? l->finish : SES_FINISH_CANCELLED;
        for (int64_t t = 0; t < l->n - k->given; t++) out[i].score += (double)l->logprob[t];
    }
    return true;
}

const ses_decoding ses_decoding_sample = { lanes, begin, step, finish };
