/* Common parts of adapters with virtual tokens. */
#include "virtual_adapter.h"

#include "base/arena.h"
#include "base/str.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

enum { MAX_VIRTUAL = 1 << 16 };
#define VALUES "prompt_embeddings" /* in peft's files */
#define COMPUTED "prompt_encoder." /* Sesame's tensors of the layers that compute them */

bool ses_virtual_check_options(const ses_adapter_options *o, ses_err *e)
{
    return (o->virtual_tokens >= 1 && o->virtual_tokens <= MAX_VIRTUAL && o->projection >= 0) ||
           ses_fail(e, SES_EARG,
                    "%lld virtual tokens and a projection of %lld units, expected 1 to %d and at least 0",
                    (long long)o->virtual_tokens, (long long)o->projection, MAX_VIRTUAL);
}

bool ses_virtual_read(ses_adapter *a, const ses_json *c, ses_err *e)
{
    int64_t n = 0;
    bool projected = false;
    if (!ses_json_int(ses_json_get(c, "num_virtual_tokens"), &n) || n < 1 || n > MAX_VIRTUAL)
        return ses_fail(e, SES_EFORMAT, "\"num_virtual_tokens\" is missing or not a number from 1 to %d",
                        MAX_VIRTUAL);
    a->o.virtual_tokens = n;
    ses_json_bool(ses_json_get(c, "prefix_projection"), &projected);
    if (projected || a->desc->mlp.hidden > 1)
        ses_json_int(ses_json_get(c, "encoder_hidden_size"), &a->o.projection);
    return true;
}

bool ses_virtual_check(const ses_adapter *a, const ses_model *m, int stack, ses_err *e)
{
    const ses_config *c = m->stack[stack].c;
    int64_t max = c->position.max + c->position.extra_rows - c->position.offset;
    if (a->o.virtual_tokens >= max)
        return ses_fail(e, SES_EARG, "%lld virtual tokens leave no room for text: %s has %lld positions",
                        (long long)a->o.virtual_tokens, m->desc->name, (long long)max);
    return !m->stack[stack].virt.tokens ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "two adapters with virtual tokens cannot be combined: %s is the second",
                    a->dir ? a->dir : a->desc->title);
}

static bool is_computed(const ses_tensor_entry *x) { return !strncmp(x->name, COMPUTED, strlen(COMPUTED)); }

bool ses_virtual_declare(ses_adapter *a, ses_model *m, int64_t rows, int64_t in, int64_t out, ses_virtual *v,
                         ses_tensor **x, ses_err *e)
{
    int64_t n = 0, width = in;
    char name[64];
    for (size_t i = 0; a->file && i < ses_safetensors_count(a->file); i++)
        if (is_computed(ses_safetensors_at(a->file, i))) {
            n++;
            if (!a->is_new) a->used[i] = true;
        }
    bool computed = a->is_new && (a->file ? n > 0 : a->o.projection > 0);
    if (computed && a->o.projection < 1)
        return ses_fail(e, SES_EFORMAT, "\"encoder_hidden_size\" is missing or not positive");
    if (!computed && a->is_new) a->o.projection = 0;
    *x = ses_store_add(m->store, computed ? "adapter.virtual.input" : "adapter.virtual",
                       SES_DIM(rows, computed ? in : out), SES_INIT_NORMAL);
    ses_store_set_role(m->store, *x, SES_PARAM_TRAINED);
    v->n_dense = computed ? (int)a->desc->mlp.hidden + 1 : 0, v->act = a->desc->mlp.act;
    for (int i = 0; i < v->n_dense; i++) {
        int64_t to = i + 1 < v->n_dense ? a->o.projection : out;
        snprintf(name, sizeof name, "adapter.virtual.%d.weight", 2 * i);
        v->dense[i].w = ses_store_add(m->store, name, SES_DIM(to, width), SES_INIT_FAN_IN);
        snprintf(name, sizeof name, "adapter.virtual.%d.bias", 2 * i);
        v->dense[i].b = ses_store_add(m->store, name, SES_DIM(to), SES_INIT_ZERO);
        ses_store_set_role(m->store, v->dense[i].w, SES_PARAM_TRAINED);
        ses_store_set_role(m->store, v->dense[i].b, SES_PARAM_TRAINED);
        width = to;
    }
    const ses_tensor_entry *flat = computed && a->file ? ses_safetensors_find(a->file, VALUES) : NULL;
    if (flat) ses_adapter_mark_used(a, flat); /* it is computed again */
    return ses_store_ok(m->store, e);
}

bool ses_virtual_tensor_name(const ses_adapter *a, const ses_model *m, const char *name, char *buf, size_t n)
{
    (void)a, (void)m;
    static const char *const names[][2] = {
        { "adapter.virtual", VALUES },
        { "adapter.virtual.input", COMPUTED "embedding.weight" },
        { "adapter.virtual.0.weight", COMPUTED "mlp.0.weight" },
        { "adapter.virtual.0.bias", COMPUTED "mlp.0.bias" },
        { "adapter.virtual.2.weight", COMPUTED "mlp.2.weight" },
        { "adapter.virtual.2.bias", COMPUTED "mlp.2.bias" },
        { "adapter.virtual.4.weight", COMPUTED "mlp.4.weight" },
        { "adapter.virtual.4.bias", COMPUTED "mlp.4.bias" },
    };
    for (size_t i = 0; i < SES_LEN(names); i++)
        if (!strcmp(names[i][0], name)) return (size_t)snprintf(buf, n, "%s", names[i][1]) < n;
    return false;
}

bool ses_virtual_save(const ses_model *m, ses_safetensors_writer *w, ses_arena *mem, ses_err *e)
{
    const ses_virtual *v = NULL;
    for (size_t i = 0; i < SES_LEN(m->stack); i++)
        if (m->stack[i].virt.n_dense) v = &m->stack[i].virt;
    if (!v) return true; /* a parameter has the values */
    ses_tape *t = ses_tape_new(m->dev, NULL, e);
    ses_tensor *x = t ? ses_virtual_values(v, t, v->keys ? v->keys : v->embed) : NULL;
    bool ok = t && ses_tape_ok(t, e);
    size_t n = ok ? (size_t)ses_count(x) : 0;
    ses_real *values = ok ? ses_arena_array(mem, n, sizeof *values, e) : NULL;
    ok = values && ses_tape_read(t, x, values) &&
         ses_safetensors_writer_add(w, VALUES, SES_REAL, 2, SES_DIM(ses_rows(x), ses_cols(x)), values, e);
    ses_tape_free(t);
    return ok;
}

void ses_virtual_put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    const ses_config *c = m->stack[0].c;
    ses_json_member_int(w, "num_virtual_tokens", a->o.virtual_tokens);
    ses_json_member_int(w, "num_transformer_submodules", m->stack[1].layer ? 2 : 1);
    ses_json_member_int(w, "num_attention_heads", m->stack[0].heads);
    ses_json_member_int(w, "num_layers", m->stack[0].depth);
    ses_json_member_int(w, "token_dim", c->hidden);
}
