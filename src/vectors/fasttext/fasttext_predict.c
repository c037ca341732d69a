/* Labels of a line by a supervised fastText model, with the order of equal scores of the original, which
 * depends on the heaps of GNU's C++ library. */
#include "fasttext_model.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { SIGMOID = 512, MAX_SIGMOID = 8 };

typedef struct predictor {
    const ses_fasttext_model *m;
    float *hidden, *output;
    size_t k, n; /* heap: at most k guesses, the worst first */
    float threshold;
    ses_fasttext_guess *heap; /* [k + 1] */
} predictor;

static float log_of(float p) { return (float)log(p + 1e-5); }

/* ---- heap: the front has the least score ---- */

static bool worse(const ses_fasttext_guess *a, const ses_fasttext_guess *b) { return a->score > b->score; }

static void rise(ses_fasttext_guess *heap, size_t hole, size_t top, ses_fasttext_guess value)
{
    while (hole > top && worse(&heap[(hole - 1) / 2], &value)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

/* Moves the front to position n - 1; the others stay a heap. */
static void pop(ses_fasttext_guess *heap, size_t n)
{
    if (n < 2) return;
    ses_fasttext_guess value = heap[n - 1];
    size_t len = n - 1, hole = 0, child = 0;
    heap[n - 1] = heap[0];
    while (len > 0 && child < (len - 1) / 2) {
        child = 2 * (child + 1);
        if (worse(&heap[child], &heap[child - 1])) child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (len % 2 == 0 && len >= 2 && child == (len - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    rise(heap, hole, 0, value);
}

static void add_guess(predictor *p, float score, int32_t label)
{
    rise(p->heap, p->n, 0, (ses_fasttext_guess){ score, label });
    p->n++;
    if (p->n > p->k) pop(p->heap, p->n--);
}

/* ---- scores ---- */

static void hidden_of(predictor *p, const ses_fasttext_line *line)
{
    size_t dim = ses_fasttext_dim(p->m), n = line->rows.n;
    float share = (float)(1.0 / (double)n);
    memset(p->hidden, 0, dim * sizeof *p->hidden);
    for (size_t i = 0; i < n; i++) ses_fasttext_add_row(&p->m->in, line->rows.row[i], p->hidden);
    for (size_t k = 0; k < dim; k++) p->hidden[k] *= share;
}

static float sigmoid(float x) /* a table of 512 steps, as in training */
{
    if (x < -MAX_SIGMOID) return 0;
    if (!(x <= MAX_SIGMOID)) return 1;
    int64_t i = (int64_t)((x + MAX_SIGMOID) * SIGMOID / MAX_SIGMOID / 2);
    return (float)(1.0 / (1.0 + expf(-((float)(i * 2 * MAX_SIGMOID) / SIGMOID - MAX_SIGMOID))));
}

static void outputs_of(predictor *p)
{
    size_t n = ses_fasttext_n_labels(p->m);
    float most, sum = 0;
    for (size_t i = 0; i < n; i++) p->output[i] = ses_fasttext_dot_row(&p->m->out, (int64_t)i, p->hidden);
    if (p->m->set.loss != SES_FASTTEXT_SOFTMAX) {
        for (size_t i = 0; i < n; i++) p->output[i] = sigmoid(p->output[i]);
        return;
    }
    most = n ? p->output[0] : 0;
    for (size_t i = 0; i < n; i++)
        if (p->output[i] > most) most = p->output[i];
    for (size_t i = 0; i < n; i++) sum += p->output[i] = (float)exp((double)(p->output[i] - most));
    for (size_t i = 0; i < n; i++) p->output[i] /= sum;
}

static void best_of_outputs(predictor *p)
{
    size_t n = ses_fasttext_n_labels(p->m);
    for (size_t i = 0; i < n; i++) {
        if (p->output[i] < p->threshold) continue;
        float score = log_of(p->output[i]);
        if (p->n == p->k && score < p->heap[0].score) continue;
        add_guess(p, score, (int32_t)i);
    }
}

/* ---- hierarchical softmax: from the root, left first ---- */

typedef struct visit {
    int32_t node;
    float score;
} visit;

static bool best_of_tree(predictor *p, ses_err *e)
{
    const ses_fasttext_node *tree = p->m->tree;
    size_t labels = ses_fasttext_n_labels(p->m), n = 0, capacity = 0;
    visit *stack = NULL;
    bool ok = ses_array_reserve(&stack, &capacity, 2, sizeof *stack, e);
    if (ok && labels) stack[n++] = (visit){ (int32_t)(2 * labels - 2), 0 };
    while (ok && n) {
        visit v = stack[--n];
        if (v.score < log_of(p->threshold)) continue;
        if (p->n == p->k && v.score < p->heap[0].score) continue;
        if (tree[v.node].left < 0) {
            add_guess(p, v.score, v.node);
            continue;
        }
        float f = ses_fasttext_dot_row(&p->m->out, v.node - (int64_t)labels, p->hidden);
        f = (float)(1. / (1 + expf(-f)));
        ok = ses_array_reserve(&stack, &capacity, n + 2, sizeof *stack, e);
        if (!ok) break;
        stack[n++] = (visit){ tree[v.node].right, v.score + log_of(f) };
        stack[n++] = (visit){ tree[v.node].left, v.score + log_of((float)(1.0 - f)) };
    }
    ses_free(stack);
    return ok;
}

/* ---- predictions ---- */

static bool start(predictor *p, const ses_fasttext_model *m, size_t k, ses_err *e)
{
    size_t labels = ses_fasttext_n_labels(m);
    if (m->set.model != SES_FASTTEXT_SUPERVISED)
        return ses_fail(e, SES_EARG, "the model has word vectors, not labels; train one with labels");
    p->m = m;
    p->k = k < labels ? k : labels;
    p->hidden = ses_alloc_array(ses_fasttext_dim(m), sizeof *p->hidden, e);
    p->output = ses_alloc_array(labels, sizeof *p->output, e);
    p->heap = ses_alloc_array(p->k + 1, sizeof *p->heap, e);
    return p->hidden && p->output && p->heap;
}

static void end(predictor *p)
{
    ses_free(p->hidden);
    ses_free(p->output);
    ses_free(p->heap);
}

bool ses_fasttext_predict(const ses_fasttext_model *m, const ses_fasttext_line *line, size_t k,
                          float threshold, ses_fasttext_guess *guess, size_t *n, ses_err *e)
{
    predictor p = { .threshold = threshold };
    *n = 0;
    bool ok = start(&p, m, k, e);
    if (ok && line->rows.n && p.k) {
        hidden_of(&p, line);
        if (m->tree) {
            ok = best_of_tree(&p, e);
        } else {
            outputs_of(&p);
            best_of_outputs(&p);
        }
        for (size_t i = p.n; i > 1; i--) pop(p.heap, i);
        memcpy(guess, p.heap, p.n * sizeof *guess);
        *n = p.n;
    }
    end(&p);
    return ok;
}

bool ses_fasttext_probabilities(const ses_fasttext_model *m, const ses_fasttext_line *line, float *p,
                                ses_err *e)
{
    size_t labels = ses_fasttext_n_labels(m);
    predictor s = { .threshold = 0 };
    bool ok = start(&s, m, labels, e);
    memset(p, 0, labels * sizeof *p);
    if (ok && line->rows.n) {
        hidden_of(&s, line);
        if (!m->tree)
            outputs_of(&s);
        else
            ok = best_of_tree(&s, e);
        for (size_t i = 0; !m->tree && i < labels; i++) p[i] = s.output[i];
        for (size_t i = 0; m->tree && i < s.n; i++) p[s.heap[i].label] = expf(s.heap[i].score);
    }
    end(&s);
    return ok;
}
