/* LoRA (Hu et al. 2021): y = x W' + alpha / rank (x A') B' in chosen dense layers. */
#include "adapter_impl.h"

#include "base/str.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const parts[2] = { ".lora_A.weight", ".lora_B.weight" };
/* Query and value projections, or the matrix that holds both. */
static const char defaults[] = "query,value,qkv";

static bool check(const ses_adapter_options *o, ses_err *e)
{
    return (o->rank >= 1 && o->dropout >= 0 && o->dropout < 1) ||
           ses_fail(e, SES_EARG,
                    "rank %lld and dropout %g, expected a rank of at least 1 and a dropout rate from 0 to "
                    "below 1",
                    (long long)o->rank, o->dropout);
}

/* Rejects peft options that change the computation and are not implemented. */
static bool check_supported(const ses_json *c, ses_err *e)
{
    static const char *const off[] = { "use_dora", "use_qalora", "use_bdlora", "lora_bias" };
    static const char *const empty[] = { "alpha_pattern", "layer_replication", "target_parameters",
                                         "trainable_token_indices", "alora_invocation_tokens" };
    const ses_json *init = ses_json_get(c, "init_lora_weights");
    const char *how = ses_json_string(init, NULL);
    bool on = false;
    for (size_t i = 0; i < SES_LEN(off); i++)
        if (ses_json_bool(ses_json_get(c, off[i]), &on) && on)
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is true: only plain LoRA is supported", off[i]);
    for (size_t i = 0; i < SES_LEN(empty); i++)
        if (ses_json_len(ses_json_get(c, empty[i])))
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is not empty: only plain LoRA is supported",
                            empty[i]);
    if (how && strcmp(how, "gaussian"))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "\"init_lora_weights\" is \"%s\", which changes the base model's weights: not supported",
            ses_quoted_of(how, strlen(how)).s);
    return true;
}

static bool read(ses_adapter *a, const ses_json *c, ses_err *e)
{
    if (!check_supported(c, e)) return false;
    if (!ses_json_real(ses_json_get(c, "lora_alpha"), &a->o.alpha))
        return ses_fail(e, SES_EFORMAT, "\"lora_alpha\" is missing or not a number");
    ses_json_bool(ses_json_get(c, "use_rslora"), &a->use_rslora);
    a->o.rank = 1; /* each layer's rank follows from its tensors */
    return true;
}

/* The rank of all LoRA matrices. */
static bool common_rank(const ses_adapter *a, int64_t *rank, ses_err *e)
{
    *rank = 0;
    for (size_t i = 0; i < ses_safetensors_count(a->file); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(a->file, i);
        if (!strstr(x->name, parts[0]) || x->rank != 2) continue;
        if (*rank && x->dim[0] != *rank)
            return ses_fail(
                e, SES_EUNSUPPORTED,
                "the layers have ranks %lld and %lld: only an adapter with one rank can be trained "
                "further; merge it first (sesame convert)",
                (long long)*rank, (long long)x->dim[0]);
        *rank = x->dim[0];
    }
    return *rank || ses_fail(e, SES_EFORMAT, "no LoRA matrices found");
}

static bool resume(ses_adapter *a, ses_err *e)
{
    if (a->o.dropout < 0 || a->o.dropout >= 1)
        return ses_fail(e, SES_EARG, "dropout %g, expected a rate from 0 to below 1", a->o.dropout);
    if (!common_rank(a, &a->o.rank, e)) return false;
    if (a->use_rslora) a->o.alpha *= sqrt((double)a->o.rank); /* the same scale as plain LoRA */
    a->use_rslora = false;
    return true;
}

/* Adds the matrices: A random, B zero, so that the initial output is unchanged. */
static void dense(ses_adapter *a, ses_store *s, ses_dense *d, const char *base, int64_t out, int64_t in)
{
    char name[160];
    if (!ses_adapter_add_target(a, base, d->layout, parts, defaults) || !a->is_new) return;
    snprintf(name, sizeof name, "%s%s", base, parts[0]);
    d->lora_a = ses_store_add(s, name, SES_DIM(a->o.rank, in), SES_INIT_FAN_IN);
    ses_store_set_role(s, d->lora_a, SES_PARAM_TRAINED);
    snprintf(name, sizeof name, "%s%s", base, parts[1]);
    d->lora_b = ses_store_add(s, name, SES_DIM(out, a->o.rank), SES_INIT_ZERO);
    ses_store_set_role(s, d->lora_b, SES_PARAM_TRAINED);
    d->lora_scale = a->o.alpha / (double)a->o.rank;
    d->lora_dropout = a->o.dropout;
}

static bool end(ses_adapter *a, ses_err *e) { return ses_adapter_check_targets(a, defaults, e); }

static bool check_shapes(const ses_adapter_target *d, const ses_tensor *w, ses_err *e)
{
    const ses_tensor_entry *A = d->x[0], *B = d->x[1];
    int64_t out = w->dim[d->layout == SES_IN_OUT], in = w->dim[d->layout != SES_IN_OUT];
    if (A->rank == 2 && B->rank == 2 && A->dim[0] == B->dim[1] && A->dim[1] == in && B->dim[0] == out)
        return true;
    return ses_fail(e, SES_EFORMAT,
                    "tensors \"%s\" and \"%s\" must be [rank, %lld] and [%lld, rank] for a layer from "
                    "%lld to %lld",
                    ses_quoted_of(A->name, strlen(A->name)).s, ses_quoted_of(B->name, strlen(B->name)).s,
                    (long long)in, (long long)out, (long long)in, (long long)out);
}

/* w += scale B A, or its transpose if w is stored [in, out]. */
static bool merge(ses_adapter *a, ses_model *m, const ses_adapter_target *d, ses_tensor *w, ses_tensor *bias,
                  bool check_only, ses_err *e)
{
    (void)bias;
    ses_device *dev = m->dev;
    if (!check_shapes(d, w, e)) return false;
    if (check_only) return true;
    int64_t rank = d->x[0]->dim[0], in = d->x[0]->dim[1], out = d->x[1]->dim[0];
    double scale = a->o.alpha / (a->use_rslora ? sqrt((double)rank) : (double)rank);
    ses_real *A = ses_adapter_upload(dev, d->x[0], 1, e),
             *B = A ? ses_adapter_upload(dev, d->x[1], scale, e) : NULL;
    if (B) {
        ses_gemm g = ses_gemm_nn(ses_master_data(w), B, A, out, in, rank);
        if (d->layout == SES_IN_OUT) {
            g = ses_gemm_tn(ses_master_data(w), A, B, in, out, rank);
            g.b_row = 1, g.b_col = rank;
        }
        g.accumulate = true;
        ses_exec x = ses_exec_f32(dev);
        dev->k_f32.gemm(&x, &g);
    }
    if (A) dev->mem->free(dev, A);
    if (B) dev->mem->free(dev, B);
    return B != NULL;
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    static const char *const nothing[] = { "layer_replication", "layers_pattern", "layers_to_transform" };
    static const char *const empty[] = { "alpha_pattern", "loftq_config", "rank_pattern" };
    ses_json_member_int(w, "r", a->o.rank);
    ses_json_member_real(w, "lora_alpha", a->o.alpha);
    ses_json_member_real(w, "lora_dropout", a->o.dropout);
    ses_adapter_put_targets(a, "target_modules", NULL, w);
    ses_json_member_bool(w, "fan_in_fan_out", m->c.weights_in_out);
    ses_json_member_bool(w, "init_lora_weights", true);
    ses_json_member_string(w, "bias", "none");
    ses_json_member_bool(w, "use_dora", false);
    ses_json_member_bool(w, "use_rslora", false);
    for (size_t i = 0; i < SES_LEN(nothing); i++) ses_json_member_string(w, nothing[i], NULL);
    for (size_t i = 0; i < SES_LEN(empty); i++) {
        ses_json_member_object(w, empty[i]);
        ses_json_end_object(w);
    }
}

const ses_adapter_desc ses_adapter_lora = {
    .name = "lora",
    .title = "LoRA",
    .settings = "lora-rank|lora-alpha|lora-dropout|lora-targets",
    .python = SES_PEFT_PYTHON,
    .peft_type = "LORA",
    .file = SES_PEFT_FILES,
    .prefix = SES_ADAPTER_PREFIX,
    .merges = true,
    .check = check,
    .read = read,
    .resume = resume,
    .dense = dense,
    .end = end,
    .merge = merge,
    .put = put,
};
