/* Sums and multiples of the weights of models, see average.h. */
#include "average.h"

#include "nn/store_impl.h"
#include "tensor/shape_text.h"

#include <inttypes.h>
#include <string.h>

static bool check_shapes(const ses_model *m, const ses_model *other, ses_err *e)
{
    const ses_store *a = ses_model_store(m), *b = ses_model_store(other);
    for (size_t i = 0; i < ses_store_count(a); i++) {
        const ses_param *p = ses_store_at(a, i), *q = ses_store_find(b, p->name);
        if (!q) return ses_fail(e, SES_EARG, "has no weight %s", p->name);
        if (memcmp(p->tensor->dim, q->tensor->dim, sizeof p->tensor->dim) != 0) {
            char was[100], is[100];
            return ses_fail(e, SES_EARG, "%s has the shape %s instead of %s", p->name,
                            ses_shape_text(is, sizeof is, q->tensor->dim, ses_rank(q->tensor)),
                            ses_shape_text(was, sizeof was, p->tensor->dim, ses_rank(p->tensor)));
        }
        if (!p->tensor->f || !q->tensor->f) return ses_fail(e, SES_EARG, "%s has no f32 values", p->name);
    }
    if (ses_store_count(a) == ses_store_count(b)) return true;
    return ses_fail(e, SES_EARG, "has %zu weights instead of %zu", ses_store_count(b), ses_store_count(a));
}

static bool check_labels(const ses_model *m, const ses_model *other, ses_err *e)
{
    if (ses_model_label_count(m) != ses_model_label_count(other))
        return ses_fail(e, SES_EARG, "has %" PRId64 " labels instead of %" PRId64,
                        ses_model_label_count(other), ses_model_label_count(m));
    for (int64_t i = 0; i < ses_model_label_count(m); i++) {
        const char *a = ses_model_label_name(m, i), *b = ses_model_label_name(other, i);
        if (a && b && strcmp(a, b) != 0)
            return ses_fail(e, SES_EARG, "label %" PRId64 " is \"%s\" instead of \"%s\"", i, b, a);
    }
    return true;
}

bool ses_model_add_weights(ses_model *m, const ses_model *other, ses_err *e)
{
    ses_store *s = ses_model_store(m);
    if (strcmp(ses_model_class_name(m), ses_model_class_name(other)) != 0)
        return ses_fail(e, SES_EARG, "is a %s instead of a %s", ses_model_class_name(other),
                        ses_model_class_name(m));
    if (!check_labels(m, other, e) || !check_shapes(m, other, e)) return false;
    for (size_t i = 0; i < ses_store_count(s); i++)
        if (!ses_store_make_writable(s, i, e)) return false;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *p = ses_store_at(s, i);
        const ses_real *x = ses_store_find(ses_model_store(other), p->name)->tensor->f;
        for (int64_t k = 0; k < ses_count(p->tensor); k++) p->tensor->f[k] += x[k];
    }
    return true;
}

bool ses_model_scale_weights(ses_model *m, double factor, ses_err *e)
{
    ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        if (!ses_store_make_writable(s, i, e)) return false;
        ses_tensor *t = ses_store_at(s, i)->tensor;
        for (int64_t k = 0; k < ses_count(t); k++) t->f[k] = (ses_real)((double)t->f[k] * factor);
    }
    return true;
}
