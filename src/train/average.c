/* Sums and multiples of the weights of models, see average.h. */
#include "average.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "model/model_desc.h"
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
        if (!ses_same_shape(p->tensor, q->tensor)) {
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
    int64_t i = ses_model_labels_differ(m, other);
    return i < 0 || ses_fail(e, SES_EARG, "label %" PRId64 " is \"%s\" instead of \"%s\"", i,
                             ses_model_label_name(other, i), ses_model_label_name(m, i));
}

/* ---- config.json ---- */

/* Keys that do not change inference, and labels, which check_labels compares. */
static bool is_ignored(const char *key)
{
    static const char *const keys[] = { "_name_or_path",
                                        "architectures",
                                        "dtype",
                                        "id2label",
                                        "initializer_factor",
                                        "initializer_range",
                                        "init_std",
                                        "label2id",
                                        "quantization_config",
                                        "torch_dtype",
                                        "transformers_version",
                                        "use_cache" };
    for (size_t i = 0; i < SES_LEN(keys); i++)
        if (!strcmp(key, keys[i])) return true;
    return strstr(key, "drop") != NULL;
}

/* The text of a value; free it with ses_free. */
static char *value_text(const ses_json *v, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_json_put_value(w, v);
    char *text = w ? ses_json_writer_take(w, NULL, e) : NULL;
    ses_json_writer_free(w);
    return text;
}

static bool check_value(const char *key, const ses_json *a, const ses_json *b, ses_err *e)
{
    double x, y;
    bool numbers = ses_json_real(a, &x) && ses_json_real(b, &y);
    char *s = value_text(a, e), *t = s ? value_text(b, e) : NULL;
    bool ok = t != NULL;
    if (ok && (numbers ? x != y : strcmp(s, t) != 0))
        ok = ses_fail(e, SES_EARG, "config.json: \"%s\" is %.60s instead of %.60s", key, t, s);
    ses_free(s);
    ses_free(t);
    return ok;
}

/* Compares the keys that both have; null is as good as absent. Nested: the configs of encoder and decoder. */
static bool check_config(const ses_json *a, const ses_json *b, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(a); i++) {
        const char *key = ses_json_key(a, i, NULL);
        const ses_json *x = ses_json_at(a, i), *y = ses_json_get(b, key);
        ses_json_type s = ses_json_type_of(x), t = ses_json_type_of(y);
        if (s == SES_JSON_NULL || t == SES_JSON_NULL || is_ignored(key)) continue;
        bool nested = s == SES_JSON_OBJECT && t == SES_JSON_OBJECT;
        if (!(nested ? check_config(x, y, e) : check_value(key, x, y, e))) return false;
    }
    return true;
}

bool ses_model_add_weights(ses_model *m, const ses_model *other, ses_err *e)
{
    ses_store *s = ses_model_store(m);
    if (strcmp(ses_model_class_name(m), ses_model_class_name(other)) != 0)
        return ses_fail(e, SES_EARG, "is a %s instead of a %s", ses_model_class_name(other),
                        ses_model_class_name(m));
    if (!check_labels(m, other, e) || !check_shapes(m, other, e) ||
        !check_config(ses_model_config(m), ses_model_config(other), e))
        return false;
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
