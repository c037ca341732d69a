/* fastText's supervised training on one thread, bit for bit, with its deviations from a textbook version:
 * only the first tenth of the weights is initialized, the rest is zero; examples come in the order of the
 * file; lines without a label count as read but train nothing. */
#include "fasttext_train.h"

#include "base/alloc.h"
#include "logistic_group.h"
#include "vectors/exact/libstdcxx.h"

#include <math.h>
#include <string.h>

enum { INITIALIZED = 10 /* one of ten blocks */, PROGRESS_EVERY = 256 };

typedef struct trainer {
    const ses_fasttext_options *o;
    ses_fasttext_model *m;
    ses_string text;
    ses_fasttext_line line;
    float *hidden, *gradient, *output;
    int32_t *negative;
    size_t n_negative, labels;
    ses_minstd random;
    ses_logistic_group group;
} trainer;

static bool read_dictionary(const ses_fasttext_options *o, ses_string text, const char *path,
                            ses_fasttext_model *m, ses_err *e)
{
    m->d.label = o->label;
    if (!ses_fasttext_count(&m->d, ses_fasttext_reader_of(text.p, text.n), e) ||
        !ses_fasttext_drop_rare(&m->d, o->set.min_count, o->min_count_label, e))
        return false;
    if (o->pretrained && (!ses_fasttext_count_pretrained(&m->d, o->pretrained, o->set.dim, e) ||
                          !ses_fasttext_drop_rare(&m->d, 1, 0, e)))
        return false;
    size_t labels = ses_fasttext_n_labels(m);
    const char *prefix = o->label ? o->label : "__label__";
    if (!labels)
        return ses_fail(e, SES_EARG, "%s: no labels; each line needs one or more words that begin with %s",
                        path, prefix);
    if (!m->d.n_words) return ses_fail(e, SES_EARG, "%s: no words besides labels", path);
    if (labels < 2 && o->set.loss == SES_FASTTEXT_NEGATIVE && o->set.neg)
        return ses_fail(e, SES_EARG, "%s: one label only; negative samples need two", path);
    return ses_fasttext_add_ngrams(&m->d, o->set.minn, o->set.maxn, o->set.bucket, e);
}

static bool make_weights(const ses_fasttext_options *o, ses_fasttext_model *m, ses_err *e)
{
    size_t dim = (size_t)o->set.dim, rows = m->d.n_words + (size_t)o->set.bucket, all;
    ses_minstd g = ses_minstd_of((uint64_t)o->seed);
    if (!ses_mul_size(rows, dim, &all)) return ses_fail(e, SES_ENOMEM, "too many weights");
    m->in = (ses_fasttext_matrix){ .rows = (int64_t)rows,
                                   .columns = o->set.dim,
                                   .own = ses_alloc_array(all, sizeof(float), e) };
    m->out =
        (ses_fasttext_matrix){ .rows = (int64_t)ses_fasttext_n_labels(m),
                               .columns = o->set.dim,
                               .own = ses_alloc_array(ses_fasttext_n_labels(m) * dim, sizeof(float), e) };
    if (!m->in.own || !m->out.own) return false;
    float limit = (float)(1.0 / o->set.dim);
    for (size_t i = 0; i < all / INITIALIZED; i++) m->in.own[i] = (float)ses_minstd_real(&g, -limit, limit);
    return !o->pretrained || ses_fasttext_copy_pretrained(&m->d, o->pretrained, m->in.own, dim, e);
}

/* ---- losses ---- */

static float *out_row(const trainer *t, size_t i) { return t->m->out.own + i * (size_t)t->o->set.dim; }

static void step_softmax(trainer *t, int32_t target)
{
    float *p = t->output, sum = 0, most;
    int dim = t->o->set.dim;
    for (size_t i = 0; i < t->labels; i += 4) {
        const float *row[4];
        float dot[4];
        for (size_t k = 0; k < 4; k++) row[k] = out_row(t, i + k < t->labels ? i + k : i);
        ses_dot_four(row, t->hidden, dim, dot);
        for (size_t k = 0; k < 4 && i + k < t->labels; k++) {
            p[i + k] = dot[k];
            t->group.diverged |= dot[k] != dot[k];
        }
    }
    if (t->group.diverged) return;
    most = p[0];
    for (size_t i = 0; i < t->labels; i++)
        if (p[i] > most) most = p[i];
    for (size_t i = 0; i < t->labels; i++) sum += p[i] = (float)exp((double)(p[i] - most));
    for (size_t i = 0; i < t->labels; i++) {
        float alpha = t->group.rate * ((i == (size_t)target ? 1.0f : 0.0f) - p[i] / sum);
        float *restrict row = out_row(t, i), *restrict gradient = t->gradient;
        const float *x = t->hidden;
        for (int k = 0; k < dim; k++) {
            gradient[k] += alpha * row[k];
            row[k] += alpha * x[k];
        }
    }
}

static bool has(const ses_fasttext_rows *labels, int32_t label)
{
    size_t i = 0;
    while (i < labels->n && labels->row[i] != label) i++;
    return i < labels->n;
}

static void step_logistic(trainer *t, int32_t target)
{
    ses_logistic_group *g = &t->group;
    const ses_fasttext_node *tree = t->m->tree;
    switch (t->o->set.loss) {
    case SES_FASTTEXT_ONE_VS_ALL:
        for (size_t i = 0; i < t->labels; i++)
            ses_logistic_group_add(g, out_row(t, i), has(&t->line.labels, (int32_t)i));
        break;
    case SES_FASTTEXT_HIERARCHICAL:
        for (int32_t i = target; tree[i].parent >= 0; i = tree[i].parent)
            ses_logistic_group_add(g, out_row(t, (size_t)tree[i].parent - t->labels), tree[i].is_right);
        break;
    default:
        ses_logistic_group_add(g, out_row(t, (size_t)target), 1);
        for (int k = 0; k < t->o->set.neg; k++) {
            int32_t label;
            do label = t->negative[ses_minstd_upto(&t->random, t->n_negative - 1)];
            while (label == target);
            ses_logistic_group_add(g, out_row(t, (size_t)label), 0);
        }
    }
    ses_logistic_group_end(g);
}

/* ---- steps ---- */

static void train_line(trainer *t)
{
    size_t dim = (size_t)t->o->set.dim, n = t->line.rows.n;
    const ses_fasttext_rows *labels = &t->line.labels;
    int32_t target = 0;
    float *in = t->m->in.own, share = (float)(1.0 / (double)n);
    if (!n || !labels->n) return;
    if (t->o->set.loss != SES_FASTTEXT_ONE_VS_ALL)
        target = labels->row[ses_minstd_upto(&t->random, labels->n - 1)];
    memset(t->hidden, 0, dim * sizeof *t->hidden);
    memset(t->gradient, 0, dim * sizeof *t->gradient);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < dim; i++) t->hidden[i] += in[(size_t)t->line.rows.row[k] * dim + i];
    for (size_t i = 0; i < dim; i++) t->hidden[i] *= share;
    if (t->o->set.loss == SES_FASTTEXT_SOFTMAX)
        step_softmax(t, target);
    else
        step_logistic(t, target);
    for (size_t i = 0; i < dim; i++) t->gradient[i] *= share;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < dim; i++) in[(size_t)t->line.rows.row[k] * dim + i] += t->gradient[i];
}

static bool train(trainer *t, ses_err *e)
{
    const ses_fasttext_options *o = t->o;
    ses_fasttext_reader r = ses_fasttext_reader_of(t->text.p, t->text.n);
    int64_t done = 0, read = 0, all = o->set.epoch * t->m->d.tokens;
    bool more;
    t->random = ses_minstd_of((uint64_t)o->seed);
    for (int64_t lines = 0; done < all; lines++) {
        float progress = (float)done / (float)all;
        t->group.rate = (float)(o->lr * (1.0 - progress));
        if (r.ended) r = ses_fasttext_reader_of(t->text.p, t->text.n);
        if (!ses_fasttext_read_line(t->m, &r, &t->line, &more, e)) return false;
        read += t->line.tokens;
        train_line(t);
        if (t->group.diverged)
            return ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large (--lr)",
                            o->lr);
        if (read > o->set.lr_update_rate) {
            done += read;
            read = 0;
        }
        if (lines % PROGRESS_EVERY == 0 && o->progress && !o->progress(o->ctx, done, all))
            return ses_fail(e, SES_EIO, "interrupted; nothing was written");
    }
    return true;
}

static bool run(trainer *t, ses_err *e)
{
    size_t dim = (size_t)t->o->set.dim;
    t->labels = ses_fasttext_n_labels(t->m);
    t->hidden = ses_alloc_array(dim, sizeof *t->hidden, e);
    t->gradient = ses_alloc_array(dim, sizeof *t->gradient, e);
    t->output = ses_alloc_array(t->labels, sizeof *t->output, e);
    if (t->o->set.loss == SES_FASTTEXT_NEGATIVE)
        t->negative = ses_fasttext_negatives(&t->m->d, t->m->d.n_words, t->m->d.n, &t->n_negative, e);
    bool ok = t->hidden && t->gradient && t->output &&
              (t->negative || t->o->set.loss != SES_FASTTEXT_NEGATIVE) && ses_fasttext_index(t->m, e);
    if (ok) ses_logistic_group_init(&t->group, t->o->set.dim, t->hidden, t->gradient);
    ok = ok && train(t, e);
    void *own[] = { t->hidden, t->gradient, t->output, t->negative };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    ses_fasttext_line_free(&t->line);
    return ok;
}

bool ses_fasttext_train_exact(const ses_fasttext_options *o, const char *path, ses_fasttext_model *m,
                              ses_err *e)
{
    ses_mmap file = { 0 };
    if (!ses_mmap_open(&file, path, e)) return false;
    trainer t = { .o = o, .m = m, .text = { (const char *)file.data, file.size } };
    m->set = o->set;
    m->n_pruned = -1;
    bool ok = read_dictionary(o, t.text, path, m, e) && make_weights(o, m, e) && run(&t, e);
    ses_mmap_free(&file);
    return ok;
}

bool ses_fasttext_retrain_exact(const ses_fasttext_options *o, ses_string text, ses_fasttext_model *m,
                                ses_err *e)
{
    trainer t = { .o = o, .m = m, .text = text };
    return run(&t, e);
}
