/* Softmax, sigmoid, argmax and top-k of one row of logits. */
#include "logit_scores.h"

#include <math.h>
#include <stdbool.h>

void ses_softmax_row(float *y, const float *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if ((double)x[i] > max) max = (double)x[i];
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    for (int64_t i = 0; i < n; i++) y[i] = (float)(exp((double)x[i] - max) / sum);
}

void ses_sigmoid_row(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(1 / (1 + exp(-(double)x[i])));
}

int64_t ses_argmax(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* A heap of the k best so far with the worst on top; of equal values the later one is worse. */
static bool worse(const float *x, int32_t a, int32_t b) { return x[a] < x[b] || (x[a] == x[b] && a > b); }

static void sift(const float *x, int32_t *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t low = i, left = 2 * i + 1;
        if (left < n && worse(x, heap[left], heap[low])) low = left;
        if (left + 1 < n && worse(x, heap[left + 1], heap[low])) low = left + 1;
        if (low == i) return;
        int32_t swap = heap[i];
        heap[i] = heap[low];
        heap[low] = swap;
        i = low;
    }
}

int64_t ses_top_k(const float *x, int64_t n, int64_t k, int32_t *at)
{
    if (k > n) k = n;
    for (int64_t i = 0; i < k; i++) at[i] = (int32_t)i;
    for (int64_t i = k / 2; i-- > 0;) sift(x, at, k, i);
    for (int64_t i = k; i < n; i++)
        if (k && worse(x, at[0], (int32_t)i)) {
            at[0] = (int32_t)i;
            sift(x, at, k, 0);
        }
    for (int64_t left = k; left > 1; left--) { /* heapsort: move the worst to the end */
        int32_t low = at[0];
        at[0] = at[left - 1];
        at[left - 1] = low;
        sift(x, at, left - 1, 0);
    }
    return k;
}
