/* Transfer learning: see transfer.h. */
#include "transfer.h"

#include "base/opt_table.h"
#include "base/str.h"
#include "model/adapter/adapter_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_recurrent(const ses_transfer_options *o) { return o->head >= SES_HEAD_BILSTM; }

/* Number of frozen levels (embeddings, then layers); INT64_MAX: all; -1: o->freeze is invalid. Recurrent
 * heads freeze all by default. */
static int64_t frozen_levels(const ses_transfer_options *o)
{
    char *end;
    if (!o->freeze) return is_recurrent(o) && !o->unfreeze && o->adapter == SES_ADAPT_NONE ? INT64_MAX : 0;
    if (!strcmp(o->freeze, "all")) return INT64_MAX;
    long long n = strtoll(o->freeze, &end, 10);
    return end == o->freeze || *end || n < 0 ? -1 : (int64_t)n;
}

/* Parses "256,128". A layer without a number is as wide as the one before. */
static bool parse_sizes(const ses_transfer_options *o, ses_config_patch *c, ses_err *e)
{
    enum { DEFAULT_WIDTH = 256, MAX_WIDTH = 1 << 16 };
    const char *at = o->head_sizes ? o->head_sizes : "";
    size_t max_layers = is_recurrent(o) ? SES_LEN(c->sizes) : (size_t)(o->head - SES_HEAD_LINEAR);
    while (*at) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || n < 1 || n > MAX_WIDTH)
            return ses_fail(e, SES_EUSAGE, "head-sizes: \"%s\" is not a list of numbers from 1 to %d",
                            ses_quoted_of(o->head_sizes, strlen(o->head_sizes)).s, MAX_WIDTH);
        if (c->n_sizes == max_layers)
            return ses_fail(e, SES_EUSAGE, "head-sizes: this head has at most %zu hidden layers", max_layers);
        c->sizes[c->n_sizes++] = n;
        at = *end ? end + 1 : end;
    }
    size_t min_layers = is_recurrent(o) ? 1 : max_layers;
    for (; c->n_sizes < min_layers; c->n_sizes++)
        c->sizes[c->n_sizes] = c->n_sizes ? c->sizes[c->n_sizes - 1] : DEFAULT_WIDTH;
    return true;
}

static bool parse_layers(const ses_transfer_options *o, ses_config_patch *c, ses_err *e)
{
    c->combine = ses_combine_names[o->combine];
    return !o->layers || ses_int_ranges_parse(o->layers, c->layers, SES_LEN(c->layers), &c->n_layers, e) ||
           ses_wrap(e, "layers");
}

static bool check_layers(const ses_transfer_options *o, ses_err *e)
{
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    if (!o->layers && o->combine)
        return ses_fail(e, SES_EUSAGE, "combine has no effect without layers: name the layers, as 9-12");
    if (!o->layers) return true;
    if (o->mix_layers)
        return ses_fail(e, SES_EUSAGE,
                        "mix-layers reads all layers; for a weighted sum of some, use combine mix");
    if (!parse_layers(o, &c, e)) return false;
    if (o->combine != SES_COMBINE_CONCAT || c.n_layers < 2 || o->head != SES_HEAD_DEFAULT) return true;
    return ses_fail(e, SES_EUSAGE,
                    "combine concat: concatenated layers are wider than the model's head: choose one with "
                    "head (linear, mlp1, mlp2, bilstm, bigru)");
}

bool ses_transfer_has_adapter(const ses_transfer_options *o)
{
    return o->adapter != SES_ADAPT_NONE && o->adapter != SES_ADAPT_AUTO;
}

static const char kinds[] = SES_ADAPTER_KINDS;

/* The name of a kind of adapter, with its length. */
static ses_string kind_name(int kind)
{
    const char *at = kinds;
    while (kind-- > 0 && strchr(at, '|')) at = strchr(at, '|') + 1;
    return (ses_string){ at, strcspn(at, "|") };
}

/* The kind with this name. */
static int kind_named(const char *name)
{
    for (int i = 0; i <= SES_ADAPT_LAST; i++) {
        ses_string x = kind_name(i);
        if (strlen(name) == x.n && !memcmp(name, x.p, x.n)) return i;
    }
    return SES_ADAPT_NONE;
}

/* The description of a kind; NULL: none, auto. */
static const ses_adapter_desc *desc_of(int kind)
{
    char name[32];
    ses_string x = kind_name(kind);
    snprintf(name, sizeof name, "%.*s", (int)x.n, x.p);
    return ses_adapter_kind_named(name, NULL);
}

/* Whether a kind has an option. */
static bool has_setting(int kind, const char *option)
{
    const ses_adapter_desc *d = desc_of(kind);
    return d && d->settings && ses_list_has(d->settings, option);
}

/* Settings of one kind of adapter, with another value than the default, need it. */
static bool check_kind(const ses_transfer_options *o, ses_err *e)
{
    ses_transfer_options d = ses_finetune_defaults().transfer;
    int k = o->adapter;
    if (k == SES_ADAPT_AUTO) return true;
    if (!has_setting(k, "virtual-tokens") && o->virtual_tokens && o->virtual_tokens != d.virtual_tokens)
        return ses_fail(e, SES_EUSAGE, "virtual-tokens needs adapter prompt, ptuning or prefix");
    if (has_setting(k, "reduction")) return true;
    if (o->reduction > 0 && (o->reduction < d.reduction || o->reduction > d.reduction))
        return ses_fail(e, SES_EUSAGE, "reduction needs adapter bottleneck");
    return o->placement == d.placement || ses_fail(e, SES_EUSAGE, "placement needs adapter bottleneck");
}

bool ses_transfer_check(const ses_transfer_options *o, const char *model, bool allows_head, ses_err *e)
{
    bool adapter = ses_transfer_has_adapter(o);
    ses_string kind = kind_name(o->adapter);
    if (frozen_levels(o) < 0)
        return ses_fail(e, SES_EUSAGE, "freeze: \"%s\" is neither a number nor all",
                        ses_quoted_of(o->freeze, strlen(o->freeze)).s);
    if (adapter && !model)
        return ses_fail(e, SES_EUSAGE, "adapter %.*s needs a pretrained model", (int)kind.n, kind.p);
    if (adapter && (o->unfreeze || frozen_levels(o)))
        return ses_fail(e, SES_EUSAGE, "adapter %.*s freezes the model: freeze and unfreeze do not apply",
                        (int)kind.n, kind.p);
    if (!has_setting(o->adapter, "lora-targets") && o->lora_targets)
        return ses_fail(e, SES_EUSAGE, "lora-targets needs adapter lora or ia3");
    if (o->projection && !has_setting(o->adapter, "projection"))
        return ses_fail(e, SES_EUSAGE, "projection needs adapter prefix or ptuning");
    if (o->head == SES_HEAD_DEFAULT && o->head_sizes) return ses_fail(e, SES_EUSAGE, "head-sizes needs head");
    if (o->head != SES_HEAD_DEFAULT && !allows_head)
        return ses_fail(e, SES_EUSAGE, "head applies to classify, multi_label, regress, tag and answer only");
    if (o->unfreeze && frozen_levels(o) == INT64_MAX)
        return ses_fail(e, SES_EUSAGE, "freeze all excludes unfreeze");
    return check_kind(o, e) && check_layers(o, e);
}

const ses_adapter_options *ses_transfer_adapter(const ses_transfer_options *o, ses_transfer_adapter_of *a)
{
    static const char *const placements[] = { "seq", "double", "parallel" };
    ses_string kind = kind_name(o->adapter);
    snprintf(a->kind, sizeof a->kind, "%.*s", (int)kind.n, kind.p);
    a->o = (ses_adapter_options){ .rank = o->lora_rank,
                                  .alpha = o->lora_alpha,
                                  .dropout = o->lora_dropout,
                                  .targets = o->lora_targets,
                                  .kind = a->kind,
                                  .virtual_tokens = o->virtual_tokens,
                                  .projection = o->projection,
                                  .reduction = o->reduction,
                                  .placement = placements[o->placement] };
    if (!ses_transfer_has_adapter(o)) return NULL;
    if (!a->o.projection) a->o.projection = desc_of(o->adapter)->projection;
    return &a->o;
}

bool ses_transfer_resolve(ses_transfer_options *o, const char *dir)
{
    bool freezes = o->unfreeze || frozen_levels(o);
    const char *kind = dir && ses_model_is_adapter(dir) ? ses_model_adapter_kind(dir) : NULL;
    if (o->adapter == SES_ADAPT_AUTO) o->adapter = kind && !freezes ? kind_named(kind) : SES_ADAPT_NONE;
    return true;
}

bool ses_transfer_continue(ses_transfer_options *o, const ses_model *m, ses_err *e)
{
    const ses_transfer_options plain = ses_finetune_defaults().transfer;
    const ses_adapter_options *a = ses_model_adapter(m);
    if (!a) return true;
    if (a->kind && kind_named(a->kind) != o->adapter)
        return ses_fail(e, SES_EUSAGE,
                        "the model is an adapter of the kind %s, which is trained further: adapter cannot be "
                        "%.*s; merge it first (sesame convert) to train another adapter",
                        a->kind, (int)kind_name(o->adapter).n, kind_name(o->adapter).p);
    if (has_setting(o->adapter, "virtual-tokens"))
        o->virtual_tokens = a->virtual_tokens, o->projection = a->projection;
    if (!has_setting(o->adapter, "lora-rank")) return true;
    if ((o->lora_rank != a->rank && o->lora_rank != plain.lora_rank) ||
        (o->lora_alpha != a->alpha && o->lora_alpha != plain.lora_alpha) ||
        (o->lora_targets && strcmp(o->lora_targets, a->targets)))
        return ses_fail(e, SES_EUSAGE,
                        "the model is an adapter of rank %lld, alpha %g, on %s, which is trained further: "
                        "lora-rank, lora-alpha and lora-targets cannot change; merge it first (sesame "
                        "convert) to train another adapter",
                        (long long)a->rank, a->alpha, a->targets);
    o->lora_rank = a->rank;
    o->lora_alpha = a->alpha;
    if (a->targets && *a->targets) o->lora_targets = a->targets; /* the model outlives the options */
    return true;
}

bool ses_transfer_config(const ses_transfer_options *o, ses_json_doc **config, ses_err *e)
{
    static const char *const heads[] = { NULL, "linear", "mlp", "mlp", "lstm", "gru" };
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    c.dropout = o->dropout;
    c.attention_dropout = o->attention_dropout;
    c.head_dropout = o->classifier_dropout;
    c.scalar_mix = o->mix_layers;
    c.head = heads[o->head];
    if ((c.head && !parse_sizes(o, &c, e)) || !parse_layers(o, &c, e)) return false;
    bool changes_head = c.head || c.scalar_mix || c.n_layers;
    if (c.dropout < 0 && c.attention_dropout < 0 && c.head_dropout < 0 && !changes_head) return true;
    ses_json_doc *d = ses_model_config_patch(ses_json_root(*config), &c, e);
    if (!d) return false;
    ses_json_free(*config);
    *config = d;
    return true;
}

bool ses_transfer_groups(const ses_transfer_options *o, const ses_model *m, double weight_decay,
                         ses_layer_groups *l, ses_optim_options *optim, ses_layer_groups **unfreezing,
                         ses_err *e)
{
    int64_t max_layers = SES_MAX_GROUPS / 2 - 2, n = ses_model_layer_count(m);
    l->layers = n > max_layers ? max_layers : n; /* the layers above share a group */
    int64_t frozen = frozen_levels(o);
    l->frozen = l->min_frozen = frozen > l->layers + 1 ? l->layers + 1 : frozen;
    *unfreezing = o->unfreeze ? l : NULL;
    return ses_optim_set_layer_groups(optim, l, weight_decay, o->layer_decay, e);
}

void ses_transfer_put_settings(const ses_transfer_options *o, ses_json_writer *w)
{
    ses_json_member_real(w, "layer_decay", o->layer_decay);
    ses_json_member_int(w, "freeze", frozen_levels(o) == INT64_MAX ? -1 : frozen_levels(o));
    ses_json_member_int(w, "head", o->head);
    ses_json_member_string(w, "head_sizes", o->head_sizes);
    ses_json_member_bool(w, "mix_layers", o->mix_layers);
    if (o->layers) ses_json_member_string(w, "layers", o->layers);
    if (o->layers) ses_json_member_int(w, "combine", o->combine);
    ses_json_member_bool(w, "unfreeze", o->unfreeze);
    ses_json_member_real(w, "dropout", o->dropout);
    ses_json_member_real(w, "attention_dropout", o->attention_dropout);
    ses_json_member_real(w, "classifier_dropout", o->classifier_dropout);
    if (has_setting(o->adapter, "lora-targets")) ses_json_member_string(w, "lora_targets", o->lora_targets);
    if (o->adapter > SES_ADAPT_AUTO) ses_json_member_int(w, "adapter", o->adapter);
    if (has_setting(o->adapter, "reduction")) {
        ses_json_member_real(w, "reduction", o->reduction);
        ses_json_member_int(w, "placement", o->placement);
    }
    if (has_setting(o->adapter, "virtual-tokens")) {
        ses_json_member_int(w, "virtual_tokens", o->virtual_tokens);
        ses_json_member_int(w, "projection", o->projection);
    }
    if (!has_setting(o->adapter, "lora-rank")) return;
    ses_json_member_int(w, "lora_rank", o->lora_rank);
    ses_json_member_real(w, "lora_alpha", o->lora_alpha);
    ses_json_member_real(w, "lora_dropout", o->lora_dropout);
}

void ses_transfer_put_card(const ses_transfer_options *o, ses_buf *b)
{
    if (has_setting(o->adapter, "lora-rank"))
        ses_buf_appendf(b, "| trained | LoRA: rank %lld, alpha %g, dropout %g, on %s |\n",
                        (long long)o->lora_rank, o->lora_alpha, o->lora_dropout,
                        o->lora_targets ? o->lora_targets : "queries and values");
    else if (ses_transfer_has_adapter(o))
        ses_buf_appendf(b, "| trained | an adapter of the kind %.*s, and the head |\n",
                        (int)kind_name(o->adapter).n, kind_name(o->adapter).p);
    else if (o->unfreeze)
        ses_buf_appendf(b, "| trained | gradual unfreezing: one more layer each epoch, from the top |\n");
    else if (frozen_levels(o) == INT64_MAX)
        ses_buf_appendf(b, "| trained | the head only |\n");
    else if (frozen_levels(o))
        ses_buf_appendf(b, "| trained | all except the lowest %lld levels |\n", (long long)frozen_levels(o));
    if (o->layer_decay < 1) ses_buf_appendf(b, "| layer-wise decay | %g |\n", o->layer_decay);
}

/* transformers has no class for Sesame's heads. */
static void put_custom_head(const ses_model *m, ses_buf *b)
{
    if (!ses_json_get(ses_model_config(m), "sesame_head")) return;
    ses_buf_puts(
        b, "\nThe head is one of Sesame's: `sesame_head` in config.json describes it, its weights are "
           "`sesame_head.*`. `sesame` opens this folder directly. transformers loads the encoder without "
           "the head: `transformers.AutoModel.from_pretrained(FOLDER)`.\n");
}

void ses_transfer_put_usage(const ses_transfer_options *o, const ses_model *m, ses_buf *b)
{
    put_custom_head(m, b);
    if (!ses_transfer_has_adapter(o)) return;
    const ses_adapter_desc *d = desc_of(o->adapter);
    ses_buf_appendf(b, "\nThis folder is an adapter: `sesame` opens it directly%s.",
                    d->merges ? ", `sesame convert` merges it into its base model" : "");
    if (d->python)
        ses_buf_appendf(b,
                        " In Python:\n\n```python\nbase = transformers.%s.from_pretrained(BASE, "
                        "num_labels=%lld)\n%s\n```",
                        ses_model_class_name(m), (long long)ses_model_label_count(m), d->python);
    ses_buf_puts(b, "\n");
    if (ses_model_dtype(m) == SES_I8)
        ses_buf_puts(b,
                     "\nThe base model is in 8 bits, which transformers does not read: `sesame convert BASE "
                     "OUT --dtype f32` restores it.\n");
}
