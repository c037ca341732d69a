/* IA3 (Liu et al. 2022): a learned factor for each output of key and value projections, and for each input
 * of the layers after an activation ("feedforward" in the peft library). */
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

static const char *const parts[2] = { ".ia3_l", NULL };
/* "output.dense" is BERT's, for which peft's default also selects the output of attention. */
static const char defaults[] = "key,value,qkv,ffn.down,output.dense";

static bool check(const ses_adapter_options *o, ses_err *e)
{
    (void)o, (void)e;
    return true;
}

static bool read(ses_adapter *a, const ses_json *c, ses_err *e)
{
    (void)a, (void)c, (void)e; /* the tensors' shapes tell which side they scale */
    return true;
}

/* Does a new adapter scale the layer's inputs? */
static bool scales_input(const ses_adapter_target *d)
{
    if (d->x[0]) return d->x[0]->rank == 2 && d->x[0]->dim[0] == 1;
    return ses_adapter_name_ends(d->name, "ffn.down", 8) || ses_adapter_name_ends(d->name, "out", 3);
}

static void dense(ses_adapter *a, ses_store *s, ses_dense *d, const char *base, int64_t out, int64_t in)
{
    char name[160];
    if (!ses_adapter_add_target(a, base, d->layout, parts, defaults) || !a->is_new) return;
    bool input = scales_input(&a->dense[a->n - 1]);
    snprintf(name, sizeof name, "%s%s", base, parts[0]);
    ses_tensor *l = ses_store_add(s, name, input ? SES_DIM(1, in) : SES_DIM(out, 1), SES_INIT_ONE);
    ses_store_set_role(s, l, SES_PARAM_TRAINED);
    *(input ? &d->in_gain : &d->out_gain) = l;
}

static bool end(ses_adapter *a, ses_err *e) { return ses_adapter_check_targets(a, defaults, e); }

/* x[i] *= gain[i / inner % n] */
static bool scale(ses_device *dev, ses_tensor *x, const ses_real *gain, int64_t n, int64_t inner, ses_err *e)
{
    int64_t count = ses_count(x);
    ses_real *v = ses_alloc_array((size_t)count, sizeof *v, e);
    if (!v) return false;
    dev->mem->download(dev, v, ses_master_data(x), (size_t)count * sizeof *v);
    for (int64_t i = 0; i < count; i++) v[i] *= gain[i / inner % n];
    dev->mem->upload(dev, ses_master_data(x), v, (size_t)count * sizeof *v);
    ses_free(v);
    return true;
}

static bool merge(ses_adapter *a, ses_model *m, const ses_adapter_target *d, ses_tensor *w, ses_tensor *bias,
                  bool check_only, ses_err *e)
{
    (void)a;
    const ses_tensor_entry *x = d->x[0];
    int64_t out = w->dim[d->layout == SES_IN_OUT], in = w->dim[d->layout != SES_IN_OUT];
    bool input = scales_input(d);
    if (x->rank != 2 || x->dim[!input] != 1 || x->dim[input] != (input ? in : out))
        return ses_fail(e, SES_EFORMAT,
                        "tensor \"%s\" must be [%lld, 1] or [1, %lld] for a layer from %lld to %lld",
                        ses_quoted_of(x->name, strlen(x->name)).s, (long long)out, (long long)in,
                        (long long)in, (long long)out);
    if (check_only) return true;
    ses_real *gain = ses_alloc_array((size_t)x->count, sizeof *gain, e);
    bool ok = gain && ses_convert(gain, SES_REAL, x->data, x->dtype, (size_t)x->count, e);
    bool rows = input == (d->layout == SES_IN_OUT); /* one factor for each row of w */
    ok = ok && scale(m->dev, w, gain, x->count, rows ? w->dim[1] : 1, e) &&
         (input || !bias || scale(m->dev, bias, gain, x->count, 1, e));
    ses_free(gain);
    return ok;
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    ses_adapter_put_targets(a, "target_modules", NULL, w);
    ses_adapter_put_targets(a, "feedforward_modules", scales_input, w);
    ses_json_member_bool(w, "fan_in_fan_out", m->c.weights_in_out);
    ses_json_member_bool(w, "init_ia3_weights", true);
    ses_json_member_string(w, "exclude_modules", NULL);
}

const ses_adapter_desc ses_adapter_ia3 = {
    .name = "ia3",
    .title = "IA3",
    .settings = "lora-targets",
    .python = SES_PEFT_PYTHON,
    .peft_type = "IA3",
    .file = SES_PEFT_FILES,
    .prefix = SES_ADAPTER_PREFIX,
    .merges = true,
    .merges_bias = true,
    .check = check,
    .read = read,
    .dense = dense,
    .end = end,
    .merge = merge,
    .put = put,
};
