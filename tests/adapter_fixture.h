/* Runs of the peft library (run.json of tests/fixtures/adapters and adapter_kinds), and their comparison with
 * a model: logits, tensors of the adapter, training steps. */
#ifndef SES_TESTS_ADAPTER_FIXTURE_H
#define SES_TESTS_ADAPTER_FIXTURE_H

#include "check.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"

#include <math.h>

typedef struct run { /* run.json */
    ses_json_doc *doc;
    const ses_json *losses, *logits;
    double rate;
    int32_t ids[64], cu[8], labels[64], target_cu[8];
    ses_batch batch;
} run;

static bool read_run(run *r, const char *path, ses_err *e)
{
    r->doc = ses_json_load(path, 1 << 20, e);
    if (!r->doc) return false;
    const ses_json *root = ses_json_root(r->doc), *ids = ses_json_get(root, "ids"),
                   *labels = ses_json_get(root, "labels");
    const char *task = ses_json_string(ses_json_get(root, "task"), NULL);
    int64_t x;
    int32_t at = 0, said = 0;
    for (size_t s = 0; s < ses_json_len(ids); s++) {
        for (size_t i = 0; i < ses_json_len(ses_json_at(ids, s)); i++)
            ses_json_int(ses_json_at(ses_json_at(ids, s), i), &x), r->ids[at++] = (int32_t)x;
        r->cu[s + 1] = at;
        const ses_json *l = ses_json_at(labels, s);
        for (size_t i = 0; i < ses_json_len(l); i++)
            ses_json_int(ses_json_at(l, i), &x), r->labels[said++] = (int32_t)x;
        if (ses_json_int(l, &x)) r->labels[said++] = (int32_t)x;
        r->target_cu[s + 1] = said;
    }
    ses_json_real(ses_json_get(root, "rate"), &r->rate);
    r->losses = ses_json_get(root, "losses");
    r->logits = ses_json_get(root, "logits");
    r->batch = (ses_batch){ .seqs = (int64_t)ses_json_len(ids), .tokens = at };
    r->batch.cu_seqlens = r->cu, r->batch.ids = r->ids, r->batch.labels = r->labels;
    if (!strcmp(task, "SEQ_2_SEQ_LM")) r->batch.target_cu_seqlens = r->target_cu;
    return true;
}

/* The largest difference between the logits of the model and of the run. */
static double logits_apart(const ses_model *m, ses_device *dev, const run *r, ses_err *e)
{
    ses_outputs out;
    double worst = INFINITY;
    ses_tape *t = ses_tape_new(dev, NULL, e);
    bool ok = t && ses_model_forward(m, t, &r->batch, &(ses_output_request){ .logits = true }, &out, e);
    const ses_output *logits = ok ? ses_outputs_find(&out, "logits") : NULL;
    if (logits) {
        size_t n = (size_t)ses_count(logits->tensor);
        CHECK(n == ses_json_len(r->logits));
        worst = 0;
        for (size_t i = 0; i < n && i < ses_json_len(r->logits); i++) {
            double want = NAN;
            ses_json_real(ses_json_at(r->logits, i), &want);
            double d = fabs((double)logits->tensor->f[i] - want);
            if (!(d <= worst)) worst = d;
        }
    }
    ses_tape_free(t);
    return worst;
}

/* Every tensor of the adapter's file is in the model, and vice versa. */
static bool pass(ses_model *m, const char *dir, bool take, double *apart, ses_err *e)
{
    size_t n = 0;
    ses_safetensors *f = ses_model_open_saved(m, dir, e);
    *apart = 0;
    for (size_t i = 0; f && i < ses_store_count(ses_model_store(m)); i++) {
        char name[256];
        ses_tensor *x = ses_store_at(ses_model_store(m), i)->tensor;
        if (!ses_model_saved_name(m, i, name, sizeof name)) continue;
        const ses_tensor_entry *from = ses_safetensors_find(f, name);
        if (!from || from->count != ses_count(x)) return ses_fail(e, SES_EFORMAT, "%s", name);
        n++;
        if (take) memcpy(x->f, from->data, from->bytes);
        if (strstr(name, ".key.bias")) continue; /* its gradient is 0 up to rounding, which AdamW enlarges */
        for (int64_t j = 0; j < from->count; j++)
            *apart = fmax(*apart, fabs((double)x->f[j] - (double)((const float *)from->data)[j]));
    }
    bool ok = f && n == ses_safetensors_count(f);
    ses_safetensors_free(f);
    return ok || ses_fail(e, SES_EFORMAT, "%zu tensors", n);
}

static void step(ses_model *m, ses_tape *t, ses_optim *o, const run *r, size_t i, ses_err *e)
{
    ses_outputs out;
    double want = 0;
    ses_real loss = 0;
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    ses_store_zero_grad(ses_model_store(m));
    if (!CHECK(ses_model_forward(m, t, &r->batch, &(ses_output_request){ 0 }, &out, e) && out.loss)) return;
    ses_backward(t, out.loss);
    CHECK(ses_tape_ok(t, e) && ses_tape_read(t, out.loss, &loss));
    ses_json_real(ses_json_at(r->losses, i), &want);
    CHECK_MSG(fabs((double)loss - want) < 2e-5 * fmax(1, want), "step %zu: loss %.7f, peft's %.7f", i,
              (double)loss, want);
    ses_optim_step(o, -1, 1);
}

#endif
