/* Bottleneck adapters in the format of adapter-hub (the Python package adapters): adapter_config.json with
 * "config", adapter.safetensors or pytorch_adapter.bin, head_config.json, model_head.safetensors or
 * pytorch_model_head.bin. Models whose layers end in "output.dense" (BERT, RoBERTa, ELECTRA, ...) can have
 * them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "adapter_impl.h"

#include "base/json/json_helpers.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool after_attn;
    ses_bottleneck shape;
} placements[] = {
    { "seq", false, { .act = SES_ACT_RELU, .scale = 1, .reads_normed = true } },
    { "double", true, { .act = SES_ACT_SILU, .scale = 1 } },
    { "parallel", false, { .act = SES_ACT_RELU, .scale = 4, .parallel = true } },
};

static int placement_of(const ses_adapter_options *o)
{
    for (int i = 0; i < (int)SES_LEN(placements); i++)
        if (!strcmp(placements[i].name, o->placement ? o->placement : "seq")) return i;
    return -1;
}

static bool check(const ses_adapter_options *o, ses_err *e)
{
    if (!(o->reduction > 0))
        return ses_fail(e, SES_EARG, "reduction %g, expected a number above 0", o->reduction);
    return placement_of(o) >= 0 || ses_fail(e, SES_EARG, "placement \"%s\", expected seq, double or parallel",
                                            ses_quoted_of(o->placement, strlen(o->placement)).s);
}

static bool recognizes(const ses_json *c)
{
    const ses_json *config = ses_json_get(c, "config");
    return !ses_json_get(c, "peft_type") && ses_json_get(config, "mh_adapter") &&
           ses_json_get(config, "output_adapter");
}

/* Rejects settings that change the computation and are not implemented. */
static bool check_supported(const ses_json *c, ses_err *e)
{
    static const char *const off[] = { "ln_before", "ln_after",      "use_gating",
                                       "phm_layer", "cross_adapter", "adapter_residual_before_ln" };
    bool on = false;
    for (size_t i = 0; i < SES_LEN(off); i++)
        if (ses_json_bool(ses_json_get(c, off[i]), &on) && on)
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is true: not supported in bottleneck adapters",
                            off[i]);
    if (ses_json_string(ses_json_get(c, "inv_adapter"), NULL))
        return ses_fail(e, SES_EUNSUPPORTED, "\"inv_adapter\": invertible adapters are not supported");
    if (ses_json_bool(ses_json_get(c, "original_ln_after"), &on) && !on)
        return ses_fail(e, SES_EUNSUPPORTED, "\"original_ln_after\" is false: not supported");
    if (ses_json_string(ses_json_get(c, "residual_before_ln"), NULL))
        return ses_fail(e, SES_EUNSUPPORTED, "\"residual_before_ln\" must be true or false");
    return true;
}

static bool read(ses_adapter *a, const ses_json *all, ses_err *e)
{
    const ses_json *c = ses_json_get(all, "config");
    const char *act = ses_json_string(ses_json_get(c, "non_linearity"), NULL),
               *name = ses_json_string(ses_json_get(all, "name"), NULL);
    ses_bottleneck *s = &a->shape;
    bool before = true;
    s->scale = 1;
    if (!check_supported(c, e)) return false;
    if (!name || strlen(name) >= sizeof a->name || strchr(name, '.'))
        return ses_fail(e, SES_EFORMAT, "\"name\" is missing, too long, or has a dot");
    snprintf(a->name, sizeof a->name, "%s", name);
    if (!act || !ses_act_from_name(strcmp(act, "swish") ? act : "silu", &s->act))
        return ses_fail(e, SES_EUNSUPPORTED, "\"non_linearity\" is not an activation that is known here");
    const ses_json *scale = ses_json_get(c, "scaling");
    if (scale && !ses_json_real(scale, &s->scale))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"scaling\" must be a number: learned scales are not supported");
    ses_json_real(ses_json_get(c, "dropout"), &s->dropout);
    ses_json_bool(ses_json_get(c, "original_ln_before"), &s->reads_normed);
    ses_json_bool(ses_json_get(c, "is_parallel"), &s->parallel);
    ses_json_bool(ses_json_get(c, "residual_before_ln"), &before);
    s->keeps_normed = !before && !s->parallel;
    ses_json_bool(ses_json_get(c, "mh_adapter"), &a->after_attn);
    ses_json_bool(ses_json_get(c, "output_adapter"), &a->after_ffn);
    if (!ses_json_real(ses_json_get(c, "reduction_factor"), &a->o.reduction)) a->o.reduction = 0; /* a map */
    return (s->dropout >= 0 && s->dropout < 1) ||
           ses_fail(e, SES_EFORMAT, "\"dropout\" is %g, expected a rate from 0 to below 1", s->dropout);
}

/* Tensors: "adapter.NUMBER.layer.0.attn.down.weight" is "bert.encoder.layer.0.attention.output.adapters.NAME.
 * adapter_down.0.weight", beside the dense layer "layer.0.attn.out". */
static bool tensor_name(const ses_adapter *a, const ses_model *m, const char *ours, char *buf, size_t n)
{
    static const char *const parts[][2] = { { "down.weight", "adapter_down.0.weight" },
                                            { "down.bias", "adapter_down.0.bias" },
                                            { "up.weight", "adapter_up.weight" },
                                            { "up.bias", "adapter_up.bias" } };
    static const char *const dense[][2] = { { ".attn.", ".attn.out.weight" },
                                            { ".ffn.", ".ffn.down.weight" } };
    static const char end[] = "output.dense.weight";
    char layer[96], hf[200];
    int number = -1, at = 0;
    if (sscanf(ours, "adapter.%d.%n", &number, &at) != 1 || number != a->number || !at) return false;
    for (size_t d = 0; d < SES_LEN(dense); d++)
        for (size_t p = 0; p < SES_LEN(parts); p++) {
            const char *in = strstr(ours + at, dense[d][0]);
            if (!in || strcmp(in + strlen(dense[d][0]), parts[p][0])) continue;
            snprintf(layer, sizeof layer, "%.*s%s", (int)(in - ours - at), ours + at, dense[d][1]);
            if (!ses_name_to_hf(m, layer, hf, sizeof hf)) return false;
            size_t len = strlen(hf), tail = strlen(end);
            if (len < tail || strcmp(hf + len - tail, end)) return false;
            len -= strlen("dense.weight");
            return (size_t)snprintf(buf, n, "%.*sadapters.%s.%s", (int)len, hf, a->name, parts[p][1]) < n;
        }
    return false;
}

/* Units of the hidden layer: of the file, or new; 0: the layer has no adapter. */
static int64_t units(ses_adapter *a, const char *ours, int64_t width)
{
    char name[256];
    if (!tensor_name(a, a->declaring, ours, name, sizeof name)) {
        ses_fail(&a->err, SES_EUNSUPPORTED,
                 "%s cannot have bottleneck adapters: its layers do not end in \"output.dense\"",
                 a->declaring->desc->name);
        return 0;
    }
    const ses_tensor_entry *x = a->file ? ses_safetensors_find(a->file, name) : NULL;
    if (a->file) return x && x->rank == 2 ? x->dim[0] : 0;
    int64_t n = (int64_t)((double)width / a->o.reduction);
    return n < 1 ? 1 : n;
}

static ses_dense add_dense(ses_store *s, const char *at, const char *part, int64_t out, int64_t in,
                           ses_init init)
{
    char name[160];
    ses_dense d = { .layout = SES_OUT_IN };
    snprintf(name, sizeof name, "%s.%s.weight", at, part);
    d.w = ses_store_add(s, name, SES_DIM(out, in), init);
    snprintf(name, sizeof name, "%s.%s.bias", at, part);
    d.b = ses_store_add(s, name, SES_DIM(out), SES_INIT_ZERO);
    ses_store_set_role(s, d.w, SES_PARAM_TRAINED);
    ses_store_set_role(s, d.b, SES_PARAM_TRAINED);
    return d;
}

static void add(ses_adapter *a, ses_store *s, ses_bottlenecks *to, const char *layer, const char *block,
                int64_t width)
{
    char at[128], first[160];
    snprintf(at, sizeof at, "adapter.%d.%s.%s", a->number, layer, block);
    snprintf(first, sizeof first, "%s.down.weight", at);
    int64_t n = a->err.code ? 0 : units(a, first, width);
    if (!n) return;
    if (to->n == SES_MAX_BOTTLENECKS || (to->n && (a->shape.parallel || to->item[0].parallel))) {
        ses_fail(&a->err, SES_EUNSUPPORTED,
                 "%s: at most %d bottleneck adapters can follow each other, and parallel ones cannot",
                 a->dir ? a->dir : a->desc->title, SES_MAX_BOTTLENECKS);
        return;
    }
    ses_bottleneck *b = &to->item[to->n++];
    *b = a->shape;
    b->down = add_dense(s, at, "down", n, width, SES_INIT_NORMAL);
    b->up = add_dense(s, at, "up", width, n, a->shape.parallel ? SES_INIT_ZERO : SES_INIT_NORMAL);
}

static void layer(ses_adapter *a, ses_store *s, ses_layer *l, const char *name, int64_t width)
{
    if (!a->file) { /* new */
        int i = placement_of(&a->o);
        a->shape = placements[i].shape, a->after_attn = placements[i].after_attn, a->after_ffn = true;
        snprintf(a->name, sizeof a->name, "sesame");
    }
    if (a->after_attn) add(a, s, &l->after_attn, name, "attn", width);
    if (a->after_ffn) add(a, s, &l->after_ffn, name, "ffn", width);
    a->n++;
}

static bool stacks(ses_adapter *a, ses_model *m, ses_err *e)
{
    const ses_stack_vtable *v = m->stack[0].vtable;
    bool plain = a->n && !(v && (v->layer || v->run));
    a->n = 0;
    if (a->err.code) return true; /* reported at the end */
    return plain || ses_fail(e, SES_EUNSUPPORTED,
                             "%s cannot have bottleneck adapters: its layers are its own", m->desc->name);
}

/* Tensors "heads.NAME.I.weight" of adapter-hub's own classes: the last is the output layer, the one before
 * the dense layer of the head, or the pooler. */
static const ses_tensor_entry *head(const ses_adapter *a, const char *name)
{
    int first = -1, last = -1, i;
    char want[128], form[96];
    const char *part = strrchr(name, '.');
    bool dense = strstr(name, "pooler.") || strstr(name, ".dense.");
    static const char *const heads[] = { "pooler.", "classify.", "tag.", "span.", "choice." };
    bool known = false;
    for (size_t k = 0; k < SES_LEN(heads); k++) known |= !strncmp(name, heads[k], strlen(heads[k]));
    snprintf(form, sizeof form, "heads.%s.", a->name);
    for (size_t k = 0; known && k < ses_safetensors_count(a->file); k++) {
        const char *x = ses_safetensors_at(a->file, k)->name;
        if (strncmp(x, form, strlen(form)) || sscanf(x + strlen(form), "%d", &i) != 1) continue;
        if (first < 0 || i < first) first = i;
        if (i > last) last = i;
    }
    if (first < 0 || !part || (dense && first == last)) return NULL;
    snprintf(want, sizeof want, "%s%d%s", form, dense ? first : last, part);
    return ses_safetensors_find(a->file, want);
}

static void put_names(const ses_model *m, const ses_adapter *a, const char *name, ses_json_writer *w)
{
    char *absolute = realpath(a->base, NULL);
    ses_json_member_int(w, "hidden_size", m->c.hidden);
    ses_json_member_string(w, "model_class", m->class->name);
    ses_json_member_string(w, "model_name", absolute ? absolute : a->base);
    ses_json_member_string(w, "model_type", m->desc->name);
    ses_json_member_string(w, "name", name);
    ses_json_member_string(w, "version", "adapters.1.2.0");
    free(absolute);
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    const ses_bottleneck *s = &a->shape;
    ses_json_member_object(w, "config");
    ses_json_member_bool(w, "adapter_residual_before_ln", false);
    ses_json_member_bool(w, "cross_adapter", false);
    ses_json_member_real(w, "dropout", s->dropout);
    ses_json_member_string(w, "init_weights", s->parallel ? "mam_adapter" : "bert");
    ses_json_member_string(w, "inv_adapter", NULL);
    ses_json_member_string(w, "inv_adapter_reduction_factor", NULL);
    ses_json_member_bool(w, "is_parallel", s->parallel);
    ses_json_member_array(w, "leave_out");
    ses_json_end_array(w);
    ses_json_member_bool(w, "ln_after", false);
    ses_json_member_bool(w, "ln_before", false);
    ses_json_member_bool(w, "mh_adapter", a->after_attn);
    ses_json_member_string(w, "non_linearity", s->act == SES_ACT_SILU ? "swish" : ses_act_name(s->act));
    ses_json_member_bool(w, "original_ln_after", true);
    ses_json_member_bool(w, "original_ln_before", s->reads_normed);
    ses_json_member_bool(w, "output_adapter", a->after_ffn);
    ses_json_member_bool(w, "phm_layer", false);
    ses_json_member_real(w, "reduction_factor", a->o.reduction);
    ses_json_member_bool(w, "residual_before_ln", !s->keeps_normed);
    ses_json_member_real(w, "scaling", s->scale);
    ses_json_member_real(w, "stochastic_depth", 0);
    ses_json_member_bool(w, "use_gating", false);
    ses_json_end_object(w);
    put_names(m, a, a->name, w);
}

static bool save_files(const ses_model *m, const ses_adapter *a, const char *dir, bool overwrite, ses_err *e)
{
    char text[SES_LABEL_TEXT];
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "config", NULL);
    ses_json_member_object(w, "label2id");
    for (int64_t i = 0; i < m->c.labels; i++) ses_json_member_int(w, ses_model_label_text(m, i, text), i);
    ses_json_end_object(w);
    ses_json_member_int(w, "num_labels", m->c.labels);
    put_names(m, a, NULL, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, "head_config.json", overwrite, e);
}

const ses_adapter_desc ses_adapter_bottleneck = {
    .name = "bottleneck",
    .title = "a bottleneck adapter",
    .settings = "reduction|placement",
    .python = "adapters.init(base)\nbase.load_adapter(FOLDER, set_active=True)",
    .prefix = "",
    .file = { { "adapter.safetensors", "pytorch_adapter.bin" },
              { "model_head.safetensors", "pytorch_model_head.bin" } },
    .no_meta = true,
    .recognizes = recognizes,
    .check = check,
    .read = read,
    .layer = layer,
    .stacks = stacks,
    .tensor_name = tensor_name,
    .head = head,
    .put = put,
    .whole = true,
    .save_files = save_files,
};
