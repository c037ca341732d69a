/* The losses of the supervised trainer: softmax, negative sampling, hierarchical softmax, one against all. */
#include "fasttext_trainer_impl.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

static float *out_row(const ses_fasttext_trainer *t, size_t i) { return t->out + i * t->stride; }

static float draw(const ses_fasttext_trainer *t, uint32_t site, uint64_t i)
{
    return ses_rand_unit((ses_rng_key){ (uint64_t)t->o->seed, (uint32_t)t->epoch, site }, i);
}

static float softmax(ses_fasttext_trainer *t, int32_t target, const float *x, float *gradient)
{
    float most = -INFINITY, sum = 0, *p = t->score;
    for (size_t i = 0; i < t->labels; i++) {
        p[i] = t->steps->dot(out_row(t, i), x, t->stride);
        if (p[i] > most) most = p[i];
    }
    for (size_t i = 0; i < t->labels; i++) sum += p[i] = expf(p[i] - most);
    for (size_t i = 0; i < t->labels; i++) {
        p[i] /= sum;
        float alpha = t->rate * ((i == (size_t)target ? 1.0f : 0.0f) - p[i]);
        t->steps->step(out_row(t, i), gradient, x, alpha, t->stride);
    }
    return -logf(p[target] + 1e-5f);
}

/* One row towards 0 or 1; returns its loss. */
static float logistic(ses_fasttext_trainer *t, size_t row, bool label, const float *x, float *gradient)
{
    float f = t->steps->dot(out_row(t, row), x, t->stride), p = 1 / (1 + expf(-f));
    t->steps->step(out_row(t, row), gradient, x, t->rate * ((label ? 1.0f : 0.0f) - p), t->stride);
    return -logf((label ? p : 1 - p) + 1e-5f);
}

static float one_against_all(ses_fasttext_trainer *t, size_t example, const float *x, float *gradient)
{
    float loss = 0;
    size_t from = t->bags.label_start[example], to = t->bags.label_start[example + 1];
    for (size_t i = 0; i < t->labels; i++) {
        bool is = false;
        for (size_t k = from; k < to; k++) is |= (size_t)t->bags.label[k] == i;
        loss += logistic(t, i, is, x, gradient);
    }
    return loss;
}

static float negatives(ses_fasttext_trainer *t, size_t example, int32_t target, const float *x,
                       float *gradient)
{
    enum { TRIES = 64 };
    float loss = logistic(t, (size_t)target, true, x, gradient);
    for (int k = 0; k < t->o->set.neg; k++) {
        uint64_t at = ((uint64_t)example * (uint64_t)t->o->set.neg + (uint64_t)k) * TRIES;
        int32_t label = target;
        for (int i = 0; i < TRIES && label == target; i++) {
            size_t pick =
                (size_t)(draw(t, SES_FASTTEXT_SITE_NEGATIVE, at + (uint64_t)i) * (float)t->n_negative);
            label = t->negative[pick < t->n_negative ? pick : t->n_negative - 1];
        }
        if (label != target) loss += logistic(t, (size_t)label, false, x, gradient);
    }
    return loss;
}

static float hierarchical(ses_fasttext_trainer *t, int32_t target, const float *x, float *gradient)
{
    const ses_fasttext_node *tree = t->m->tree;
    float loss = 0;
    for (int32_t i = target; tree[i].parent >= 0; i = tree[i].parent)
        loss += logistic(t, (size_t)tree[i].parent - t->labels, tree[i].is_right, x, gradient);
    return loss;
}

void ses_fasttext_train_output(ses_fasttext_trainer *t, size_t example, float *hidden, float *gradient)
{
    size_t from = t->bags.label_start[example], n = t->bags.label_start[example + 1] - from;
    const ses_fasttext_hot *hot = t->bags.hot + t->bags.hot_start[example],
                           *end = t->bags.hot + t->bags.hot_start[example + 1];
    int32_t rows = t->bags.size[example];
    float loss = 0;
    int32_t target = 0;
    memset(gradient, 0, t->stride * sizeof *gradient);
    if (!n || !rows) return;
    if (t->o->set.loss != SES_FASTTEXT_ONE_VS_ALL) {
        size_t pick = n == 1 ? 0 : (size_t)(draw(t, SES_FASTTEXT_SITE_LABEL, example) * (float)n);
        target = t->bags.label[from + (pick < n ? pick : n - 1)];
    }
    float share = 1 / (float)rows;
    for (const ses_fasttext_hot *h = hot; h < end; h++)
        t->steps->axpy(hidden, t->frequent + (size_t)h->index * t->stride, (float)h->count, t->stride);
    for (size_t k = 0; k < t->stride; k++) hidden[k] *= share;
    switch (t->o->set.loss) {
    case SES_FASTTEXT_SOFTMAX: loss = softmax(t, target, hidden, gradient); break;
    case SES_FASTTEXT_NEGATIVE: loss = negatives(t, example, target, hidden, gradient); break;
    case SES_FASTTEXT_HIERARCHICAL: loss = hierarchical(t, target, hidden, gradient); break;
    default: loss = one_against_all(t, example, hidden, gradient);
    }
    if (!(loss < INFINITY)) t->diverged = true;
    t->loss += loss;
    t->trained++;
    for (size_t k = 0; k < t->stride; k++) gradient[k] *= share;
    for (const ses_fasttext_hot *h = hot; h < end; h++)
        t->steps->axpy(t->frequent + (size_t)h->index * t->stride, gradient, (float)h->count, t->stride);
}
