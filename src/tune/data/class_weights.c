/* Weights of classes in the loss. */
#include "class_weights.h"

#include "base/alloc.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static void set_balanced(const ses_examples *rows, double *weight, size_t n)
{
    size_t total = 0, classes = 0;
    for (size_t i = 0; i < n; i++) weight[i] = 0;
    for (size_t i = 0; i < ses_examples_count(rows); i++) {
        int32_t label = ses_examples_at(rows, i)->label;
        if (label < 0 || (size_t)label >= n) continue;
        classes += weight[label]++ < 0.5;
        total++;
    }
    for (size_t i = 0; i < n; i++)
        weight[i] = weight[i] > 0 ? (double)total / ((double)classes * weight[i]) : 1;
}

static bool set_from(const ses_json *root, const ses_examples *rows, double *weight, size_t n, ses_err *e)
{
    size_t labels = ses_examples_label_count(rows), known = 0;
    for (size_t i = 0; i < n; i++) weight[i] = 1;
    for (size_t i = 0; i < labels && i < n; i++) {
        const char *name = ses_examples_label_name(rows, i);
        const ses_json *v = ses_json_get(root, name);
        if (!v)
            return ses_fail(e, SES_EARG, "no weight of label \"%s\"", ses_quoted_of(name, strlen(name)).s);
        if (!ses_json_real(v, &weight[i]) || !isfinite(weight[i]) || weight[i] < 0)
            return ses_fail(e, SES_EARG, "the weight of \"%s\" is not a number of at least 0",
                            ses_quoted_of(name, strlen(name)).s);
        known++;
    }
    for (size_t k = 0; known < ses_json_len(root) && k < ses_json_len(root); k++) {
        size_t len, i = 0;
        const char *key = ses_json_key(root, k, &len);
        while (i < labels && !ses_equal(key, len, ses_examples_label_name(rows, i))) i++;
        if (i == labels) return ses_fail(e, SES_EARG, "unknown label \"%s\"", ses_quoted_of(key, len).s);
    }
    for (size_t i = 0; i < labels && i < n; i++)
        if (weight[i] > 0) return true;
    return ses_fail(e, SES_EARG, "all weights are 0: nothing would be learned");
}

double *ses_class_weights_read(const char *from, const ses_examples *rows, size_t n, ses_err *e)
{
    enum { MAX_BYTES = 64 << 20 };
    double *weight = ses_alloc_array(n, sizeof *weight, e);
    if (!weight) return NULL;
    if (!strcmp(from, "balanced")) return set_balanced(rows, weight, n), weight;
    ses_json_doc *d = ses_json_load_object(from, MAX_BYTES, e);
    bool ok = d && (set_from(ses_json_root(d), rows, weight, n, e) || ses_wrap(e, "%s", from));
    ses_json_free(d);
    if (ok) return weight;
    ses_free(weight);
    return NULL;
}

bool ses_class_weights_check(const ses_finetune_options *o, ses_data_kind kind, bool own_loss, ses_err *e)
{
    const char *why = kind != SES_DATA_CLASSIFY ? "apply to the task classify"
                      : o->teacher.model        ? "do not apply to the loss of a teacher"
                      : o->label_smoothing > 0  ? "are not combined with label smoothing"
                      : o->n_also               ? "apply to one data set"
                      : o->task.inputs || own_loss
                          ? "do not apply to inputs gpt1 and methods, which have other losses"
                      : o->exits.train == SES_TRAIN_EXITS_JOINT || o->exits.train == SES_TRAIN_EXITS_FROZEN
                          ? "do not apply to the losses of exits"
                          : NULL;
    return !why || ses_fail(e, SES_EUSAGE, "class-weights %s", why);
}
