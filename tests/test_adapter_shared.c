/* Adapters that share the weights of their base model: the bits of an adapter opened alone, in all types of
 * weights, and memory of their own only for what they change. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "sesame/model.h"
#include "sesame/unstable/store.h"

#include <math.h>
#include <unistd.h>

static char tmp[] = "/tmp/sesame-shared-XXXXXX";
static const char fixtures[] = "tests/fixtures/adapters";

enum { TOKENS = 6, MAX_LOGITS = 4096, RUNS = 3 };

/* Logits of the last of several runs: weights are packed on their second use. */
static size_t logits_of(const ses_model *m, ses_device *dev, float *to)
{
    static const int32_t ids[TOKENS] = { 1, 5, 4, 7, 3, 2 }, cu[] = { 0, 4, TOKENS },
                         target_cu[] = { 0, 1, 2 };
    static const int32_t labels[TOKENS] = { 0 };
    ses_batch b = { .seqs = 2, .tokens = TOKENS, .cu_seqlens = cu, .ids = ids };
    if (!strcmp(ses_model_type(m), "t5")) b.labels = labels, b.target_cu_seqlens = target_cu;
    size_t n = 0;
    for (int i = 0; i < RUNS; i++) {
        ses_err e = { 0 };
        ses_outputs out;
        ses_tape *t = ses_tape_new(dev, NULL, &e);
        bool ok = t && ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e);
        const ses_output *x = ok ? ses_outputs_find(&out, "logits") : NULL;
        if (!CHECK_MSG(x && ses_count(x->tensor) <= MAX_LOGITS, "%s", e.msg))
            n = 0;
        else
            memcpy(to, x->tensor->f, (n = (size_t)ses_count(x->tensor)) * sizeof *to);
        ses_tape_free(t);
    }
    return n;
}

/* Elements whose memory is another store's. */
static int64_t count_borrowed(const ses_model *m)
{
    int64_t n = 0;
    const ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *p = ses_store_at(s, i);
        if (p->borrowed) n += ses_count(p->tensor);
        CHECK(!p->owned || !p->mapped); /* else the values would be released after packing */
    }
    return n;
}

static void check_pair(const char *adapter, const char *base, ses_device *dev)
{
    ses_err e = { 0 };
    static float alone[MAX_LOGITS], shared[MAX_LOGITS], first[MAX_LOGITS], again[MAX_LOGITS];
    ses_model *owner = ses_model_open(base, dev, NULL, &e);
    ses_model *one = ses_model_open(adapter, dev, &(ses_model_options){ .base = base }, &e);
    if (!CHECK_MSG(owner && one, "%s: %s", base, e.msg)) return;
    size_t n = logits_of(one, dev, alone), n_base = logits_of(owner, dev, first);
    for (int i = 0; i < 2; i++) { /* two adapters on one base model */
        ses_model *m =
            ses_model_open(adapter, dev, &(ses_model_options){ .base = base, .shared = owner }, &e);
        if (!CHECK_MSG(m, "%s: %s", base, e.msg)) break;
        CHECK(logits_of(m, dev, shared) == n && !memcmp(shared, alone, n * sizeof *alone));
        int64_t all = ses_store_element_count(ses_model_store(m)), borrowed = count_borrowed(m);
        CHECK_MSG(borrowed > all / 5 && borrowed < all, "%s: %lld of %lld", base, (long long)borrowed,
                  (long long)all);
        ses_model_free(m);
    }
    ses_model *twin = ses_model_open(base, dev, &(ses_model_options){ .shared = owner }, &e);
    if (CHECK_MSG(twin, "%s: %s", base, e.msg))
        CHECK(logits_of(twin, dev, again) == n_base && !memcmp(first, again, n_base * sizeof *first));
    ses_model_free(twin);
    CHECK(logits_of(owner, dev, again) == n_base && !memcmp(first, again, n_base * sizeof *first));
    ses_model_free(one);
    ses_model_free(owner);
}

static double sum_of(const ses_param *p)
{
    double sum = 0;
    for (int64_t k = 0; p->owned && k < ses_count(p->tensor); k++) sum += fabs((double)p->tensor->f[k]);
    return sum;
}

/* Merged matrices of several pages: packing releases pages of files only, so their values remain. */
static void check_values(ses_device *dev)
{
    enum { MAX_PARAMS = 256 };
    ses_err e = { 0 };
    char base[96];
    double before[MAX_PARAMS];
    static float logits[MAX_LOGITS];
    snprintf(base, sizeof base, "%s/f32", tmp);
    ses_model *m = ses_model_open("models/sesame-small", dev, &(ses_model_options){ .no_packing = true }, &e);
    bool saved = m && ses_model_save(m, base, &(ses_save_options){ .dtype = SES_F32 }, &e);
    ses_model_free(m);
    m = saved ? ses_model_open("models/sesame-sentiment", dev, &(ses_model_options){ .base = base }, &e)
              : NULL;
    if (CHECK_MSG(m && ses_store_count(ses_model_store(m)) <= MAX_PARAMS, "%s", e.msg)) {
        const ses_store *s = ses_model_store(m);
        int merged = 0;
        for (size_t i = 0; i < ses_store_count(s); i++) before[i] = sum_of(ses_store_at(s, i));
        logits_of(m, dev, logits);
        for (size_t i = 0; i < ses_store_count(s); i++) {
            merged += ses_store_at(s, i)->owned && ses_rank(ses_store_at(s, i)->tensor) > 1;
            CHECK_MSG(sum_of(ses_store_at(s, i)) == before[i], "%s: %g, not %g", ses_store_at(s, i)->name,
                      sum_of(ses_store_at(s, i)), before[i]);
        }
        CHECK_MSG(merged > 20, "%d merged matrices", merged);
    }
    ses_model_free(m);
    ses_dir_remove(base, &e);
}

static void family(const char *name, ses_device *dev)
{
    static const ses_dtype types[] = { SES_F32, SES_F16, SES_BF16, SES_I8 };
    char adapter[96], base[96], copy[96];
    ses_err e = { 0 };
    snprintf(adapter, sizeof adapter, "%s/%s/adapter", fixtures, name);
    snprintf(base, sizeof base, "%s/%s/base", fixtures, name);
    check_pair(adapter, base, dev);
    for (size_t i = 0; i < SES_LEN(types); i++) {
        snprintf(copy, sizeof copy, "%s/%s-%s", tmp, name, ses_dtype_name(types[i]));
        ses_model *m = ses_model_open(base, dev, &(ses_model_options){ .no_packing = true }, &e);
        bool saved = m && ses_model_save(m, copy, &(ses_save_options){ .dtype = types[i] }, &e);
        ses_model_free(m);
        if (CHECK_MSG(saved, "%s: %s", copy, e.msg)) check_pair(adapter, copy, dev);
        ses_dir_remove(copy, &e);
    }
}

static void refuse(const char *dir, const ses_model_options *o, ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, o, &e);
    CHECK(!m);
    CHECK_MSG(strstr(e.msg, "cannot share weights with"), "%s", e.msg);
    ses_model_free(m);
}

static void refusals(ses_device *dev)
{
    ses_err e = { 0 };
    const char *base = "tests/fixtures/adapters/bert/base", *adapter = "tests/fixtures/adapters/bert/adapter";
    ses_model *other = ses_model_open("tests/fixtures/adapters/roberta/base", dev, NULL, &e),
              *merged = ses_model_open(adapter, dev, NULL, &e), *same = ses_model_open(base, dev, NULL, &e);
    if (!CHECK_MSG(other && merged && same, "%s", e.msg)) return;
    refuse(adapter, &(ses_model_options){ .shared = other }, dev);
    refuse(adapter, &(ses_model_options){ .shared = merged }, dev);
    refuse(base, &(ses_model_options){ .shared = same, .train = true }, dev);
    ses_model_free(other);
    ses_model_free(merged);
    ses_model_free(same);
}

int main(void)
{
    static const char *const names[] = { "bert", "gpt2", "roberta", "deberta", "t5" };
    static const ses_dtype weights[] = { SES_F32, SES_F16, SES_I8 }; /* as --dtype */
    if (!mkdtemp(tmp)) return 1;
    for (size_t k = 0; k < SES_LEN(weights); k++) {
        ses_err e = { 0 };
        ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .dtype = weights[k] }, &e);
        if (!CHECK_MSG(dev, "%s", e.msg)) return check_report();
        for (size_t i = 0; i < SES_LEN(names); i++) family(names[i], dev);
        if (!k) refusals(dev), check_values(dev);
        ses_device_free(dev);
    }
    rmdir(tmp);
    return check_report();
}
