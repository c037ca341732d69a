/* sentence: a word is labeled by its whole sentence (Collobert et al. 2011, sentence approach). For each word
 * t a convolution reads the windows around all words i, with vectors of the distances to t; the maximum over
 * i, a linear layer and a hard tanh follow:
 *     h(t) = hardtanh(W max_i (A x(i - 1 .. i + 1) + B d(i - 1 - t .. i + 1 - t) + b) + c) */
#include "tagger_encoder.h"

enum { MAX_DISTANCE = 16, LONGEST = 256 /* words of a sentence: all pairs of words are compared */ };

static bool check(ses_config *c, ses_err *e)
{
    if (!ses_tagger_check_window(c, e)) return false;
    c->layers = 1;
    c->position.max = LONGEST;
    return true;
}

static void add(ses_tagger_params *g, ses_store *s, const ses_config *c, int64_t width)
{
    int64_t conv = c->tagger.conv_width, distance = c->tagger.distance_width;
    g->pad = ses_store_add(s, "pad", SES_DIM(1, width), SES_INIT_NORMAL);
    g->distance = ses_store_add(s, "distance", SES_DIM(2 * MAX_DISTANCE + 1, distance), SES_INIT_NORMAL);
    g->conv = ses_dense_add(s, conv, c->tagger.window * width, SES_BIAS, "conv");
    g->conv_distance = ses_dense_add(s, conv, c->tagger.window * distance, SES_NO_BIAS, "conv_distance");
    g->out = ses_dense_add(s, c->hidden, conv, SES_BIAS, "hidden");
}

static int64_t clamp(int64_t x, int64_t limit) { return x < -limit ? -limit : x > limit ? limit : x; }

/* [distances, conv]: what the distance of a window from the labeled word adds to the convolution; row 0 is
 * the distance -far, and larger distances are equal. */
static ses_tensor *distance_scores(const ses_tagger_params *g, ses_forward_ctx *p, int64_t far)
{
    ses_tape *t = p->tape;
    int64_t window = p->c->tagger.window, n = 2 * far + 1;
    ses_tensor *part[SES_MAX_TAGGER_WINDOW];
    for (int64_t k = 0; k < window; k++) {
        int32_t *row = ses_tape_host_alloc(t, (size_t)n, sizeof *row);
        if (!row) return NULL;
        for (int64_t d = -far; d <= far; d++)
            row[d + far] = (int32_t)(clamp(d + k - window / 2, MAX_DISTANCE) + MAX_DISTANCE);
        part[k] = ses_gather(t, g->distance, ses_tape_ints(t, row, n));
    }
    ses_tensor *x = window > 1 ? ses_concat(t, (int)window, part) : part[0];
    return x ? ses_dense_run(t, g->conv_distance, x, SES_ACT_NONE) : NULL;
}

/* [T, conv]: the maximum over all words of a sentence, for each of its words. */
static ses_tensor *max_over_time(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *words,
                                 ses_tensor *distances, int64_t far)
{
    ses_tape *t = p->tape;
    int64_t pairs = 0, n = 0;
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t len = q->host_cu_seqlens[s + 1] - q->host_cu_seqlens[s];
        pairs += len * len;
    }
    int32_t *word = ses_tape_host_alloc(t, (size_t)pairs, sizeof *word),
            *distance = ses_tape_host_alloc(t, (size_t)pairs, sizeof *distance),
            *cu = ses_tape_host_alloc(t, (size_t)q->tokens + 1, sizeof *cu);
    if (!word || !distance || !cu) return NULL;
    for (int64_t s = 0; s < q->seqs; s++)
        for (int32_t i = q->host_cu_seqlens[s]; i < q->host_cu_seqlens[s + 1]; i++) {
            for (int32_t j = q->host_cu_seqlens[s]; j < q->host_cu_seqlens[s + 1]; j++) {
                word[n] = j;
                distance[n++] = (int32_t)(clamp(j - i, far) + far);
            }
            cu[i + 1] = (int32_t)n;
        }
    ses_tensor *sum = ses_add(t, ses_gather(t, words, ses_tape_ints(t, word, n)),
                              ses_gather(t, distances, ses_tape_ints(t, distance, n)));
    return sum ? ses_pool_rows(t, sum, ses_tape_ints(t, cu, q->tokens + 1), SES_POOL_MAX) : NULL;
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x,
                       ses_tensor *late)
{
    const ses_tagger_params *g = k->priv;
    ses_tape *t = p->tape;
    int64_t far = MAX_DISTANCE + p->c->tagger.window / 2;
    (void)late;
    ses_tensor *windows = ses_tagger_windows(p, q, x, g->pad, p->c->tagger.window),
               *distances = distance_scores(g, p, far);
    if (!windows || !distances) return NULL;
    x = max_over_time(p, q, ses_dense_run(t, g->conv, windows, SES_ACT_NONE), distances, far);
    return x ? ses_tagger_hard_tanh(t, ses_dense_run(t, g->out, x, SES_ACT_NONE)) : NULL;
}

const ses_tagger_encoder ses_tagger_sentence = { .name = "sentence", .check = check, .add = add, .run = run };
