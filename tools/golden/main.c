/* golden CASE...: compares Sesame with transformers' outputs, gradients, losses and texts, one line per
 * case. */
#include "../checker.h"
#include "base/alloc.h"
#include "compare.h"
#include "model/model_desc.h"
#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const ses_opt options[] = {
    CHECKER_OPTIONS("tensor"),
};

enum { GPU_LIMITS = 5 }; /* a GPU sums in another order, and its functions round differently */

static double scalar(ses_tape *t, const ses_tensor *x)
{
    ses_real y = NAN;
    if (x) ses_tape_read(t, x, &y);
    return (double)y;
}

static bool within(const golden_score *s) { return !s->any || s->fraction <= 1; }

static const ses_output_request everything = {
    .logits = true, .hidden_states = true, .attentions = true, .mems = true
};

/* Opens the model of a case and restores lost position tables. */
static ses_model *open_model(golden_case *c, ses_device *dev, bool train, ses_err *e)
{
    ses_outputs out;
    bool ok = true;
    ses_model *m = ses_model_open(c->dir, dev, &(ses_model_options){ .train = train }, e);
    if (m && c->positions_count_pads && (m->c.position.skips_pad || m->c.position.from_mask))
        c->batch.positions = NULL;
    if (!m || !c->lost_positions) return m;
    ses_tape *t = ses_tape_new(dev, NULL, e);
    ok = t && ses_model_forward(m, t, &c->batch, &everything, &out, e) &&
         golden_restore(c, m, t, &out, &c->lost_positions, e);
    ses_tape_free(t);
    if (ok) return m;
    ses_model_free(m);
    return NULL;
}

/* Inference: mapped weights, nothing recorded. */
static bool check_inference(golden_case *c, ses_device *dev, golden_result *r, ses_err *e)
{
    ses_outputs out;
    bool ok = false;
    ses_model *m = open_model(c, dev, false, e);
    ses_tape *t = m ? ses_tape_new(dev, NULL, e) : NULL;
    if (!t || !ses_model_forward(m, t, &c->batch, &everything, &out, e)) goto done;
    r->norm_limit =
        c->batch.target_cu_seqlens || m->c.attention.causal || m->c.norm.kind != SES_NORM_LAYER ? 1e-2 : 2e-3;
    if (dev->activation_dtype != SES_REAL || dev->exec.bf16)
        r->norm_limit = r->norm_limit > 2e-3 ? 1e-1 : 3e-2; /* and bf16 activations or operands */
    if (!golden_compare_outputs(c, t, &out, r, e)) goto done;
    ses_tensor *loss = c->first_loss_only ? out.head[0].loss : out.loss;
    if (r->quantized && loss && !golden_compare_loss(c, scalar(t, loss), r, e)) goto done;
    if (!isfinite(r->out.fraction) && !ses_model_check_finite(m, e))
        goto done; /* the weights are at fault, not the arithmetic */
    ok = true;
done:
    ses_tape_free(t);
    ses_model_free(m);
    return ok;
}

/* Compares outputs; if they differ and a position table had to be computed, again with the table read off the
 * outputs. */
static bool check_outputs(golden_case *c, ses_device *dev, golden_result *r, ses_err *e)
{
    golden_result first = { .slack = r->slack, .quantized = r->quantized };
    if (!check_inference(c, dev, &first, e)) return false;
    c->lost_positions = !within(&first.out);
    if (c->lost_positions) { /* does the model have such a table? */
        ses_model *m = open_model(c, dev, false, e);
        ses_model_free(m);
        if (!m) return false;
    }
    if (c->lost_positions)
        fprintf(
            stderr,
            "golden: %s: the checkpoint lacks its position table; it is read off the first hidden state\n",
            c->name);
    return check_inference(c, dev, r, e);
}

/* Loss and gradients of one step. */
static bool step(golden_case *c, ses_model *m, ses_tape *t, double *loss, ses_err *e)
{
    ses_outputs out;
    ses_batch b = c->batch;
    if (c->first_loss_only) b.pair_labels = NULL;
    ses_tape_reset(t, NULL);
    ses_store_zero_grad(ses_model_store(m));
    if (!ses_model_forward(m, t, &b, &(ses_output_request){ 0 }, &out, e)) return false;
    if (!out.loss)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: a loss is given, but no labels for it");
    ses_backward(t, out.loss);
    *loss = scalar(t, out.loss);
    return ses_tape_ok(t, e);
}

/* Training: loss, gradients, five steps of AdamW. */
static bool check_training(golden_case *c, ses_device *dev, golden_result *r, ses_err *e)
{
    static const ses_optim_options adamw = { .lr = 1e-3,
                                             .beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .eps = 1e-8,
                                             .group = { { .lr_scale = 1, .weight_decay = 0.01 } } };
    const ses_tensor_entry *losses = ses_safetensors_find(c->golden, "adamw.losses");
    double loss;
    bool ok = false;
    ses_optim *o = NULL;
    ses_tape *t = NULL;
    ses_model *m = open_model(c, dev, true, e);
    if (!m || !(t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, e))) goto done;
    if (!step(c, m, t, &loss, e) || !golden_compare_loss(c, loss, r, e) || !golden_compare_grads(c, m, r, e))
        goto done;
    if (losses && !(o = ses_optim_new(ses_model_store(m), &adamw, e))) goto done;
    for (int64_t i = 0; losses && i < losses->count; i++) {
        if (!step(c, m, t, &loss, e) || !golden_compare_adamw(c, i, loss, r, e)) goto done;
        ses_optim_step(o, -1, 1);
    }
    ok = true;
done:
    ses_optim_free(o);
    ses_tape_free(t);
    ses_model_free(m);
    return ok;
}

/* Generated texts, if the case has some. */
static bool check_texts(golden_case *c, ses_device *dev, golden_result *r, ses_err *e)
{
    if (!ses_safetensors_find(c->golden, "generate.input_ids")) return true;
    ses_model *m = open_model(c, dev, false, e);
    bool ok = m && golden_compare_texts(c, m, r, e);
    ses_model_free(m);
    return ok;
}

static void put_score(const char *key, const golden_score *s, bool named)
{
    if (!s->any)
        printf(" %s=-", key);
    else if (named)
        printf(" %s=%.4f(%s)", key, s->fraction, s->name);
    else
        printf(" %s=%.4f", key, s->fraction);
}

/* Exit code: 0 pass, 1 fail, 3 unreadable. */
static int check_case(const char *dir, ses_device *dev, bool verbose)
{
    ses_err e = { 0 };
    golden_case c;
    golden_result r = { .verbose = verbose,
                        .slack = dev->is_host || dev->activation_dtype != SES_REAL ? 1 : GPU_LIMITS,
                        .quantized = ses_device_dtype(dev) != SES_REAL || dev->activation_dtype != SES_REAL };
    int code = 3;
    bool ok = golden_case_open(&c, dir, &e) && check_outputs(&c, dev, &r, &e);
    bool train = ok && (ses_safetensors_find(c.golden, "output.loss") ||
                        ses_safetensors_find(c.golden, "adamw.losses"));
    if (train && !r.quantized) ok = check_training(&c, dev, &r, &e);
    ok = ok && (r.quantized || check_texts(&c, dev, &r, &e));
    if (ok) {
        if (verbose) printf("  %-60s %016llx\n", "bits", (unsigned long long)r.bits);
        code = within(&r.out) && within(&r.grad) && within(&r.norm) && within(&r.adamw) && within(&r.texts)
                   ? 0
                   : 1;
        printf("%s", c.name);
        put_score("out", &r.out, true);
        put_score("grad", &r.grad, true);
        put_score("grad_norm", &r.norm, false);
        put_score("adamw", &r.adamw, false);
        if (r.texts.any) put_score("generate", &r.texts, false);
        puts(code ? " FAIL" : " PASS");
    } else if (e.code == SES_EUNSUPPORTED) {
        printf("%s unsupported: %s\n", c.name, e.msg);
        code = 0;
    } else {
        fprintf(stderr, "golden: %s: %s\n", dir, e.msg);
        if (e.code == SES_ENOMEM) code = 1;
    }
    fflush(stdout);
    golden_case_free(&c);
    return code;
}

static const char usage[] =
    "usage: golden [options] CASE...\n\n"
    "Compare Sesame with transformers' outputs, gradients, losses and generated texts in each CASE folder.\n"
    "One line per case: each error as a fraction of its limit, and its location. --dtype compares only "
    "final\n"
    "outputs, by the norm of the difference (2e-3 relative for encoders with layer norm, 1e-2\n"
    "for others), and the loss (2 %).\n"
    "Exit 0: none failed, 1: some failed, 2: wrong usage, 3: a folder could not be read.\n";

int main(int argc, char **argv)
{
    (void)argc;
    const checker c = { "golden", usage, "no case folder given", options, SES_LEN(options), check_case };
    return checker_main(&c, argv);
}
