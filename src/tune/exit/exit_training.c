/* Early exit: options of a fine-tuning run, and how they change its model and its trainer. */
#include "tune/finetune_impl.h"
#include "tune/finetune_options.h"

#include "base/json/json_helpers.h"
#include "model/model_desc.h"

#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        ses_exit_options, train, "exits", "auto", "auto|none|joint|frozen",
        "classify: train a classifier after each inner layer, so that texts can leave early (--exit): "
        "joint: with the model; frozen: alone, of a model that is trained already; auto: joint if the "
        "model has exits, else none"),
    SES_OPT_TEXT(ses_exit_options, layers, "exit-layers", "N,...",
                 "layers with an exit, as 2-10 or 3,6,9; default: all but the last"),
    SES_OPT_CHOICE(
        ses_exit_options, head, "exit-head", "pooled", "pooled|linear",
        "pooled: a dense layer and tanh before the scores, as BERT's pooler; linear: the scores only"),
    SES_OPT_CHOICE(
        ses_exit_options, targets, "exit-targets", "labels", "labels|last",
        "with --exits frozen: learn the labels, or the probabilities of the last layer (FastBERT)"),
};
const ses_opt_table ses_exit_option_table = { opt, SES_LEN(opt), "compress" };

/* ---- checks ---- */

static bool is_on(const ses_exit_options *o)
{
    return o->train == SES_TRAIN_EXITS_JOINT || o->train == SES_TRAIN_EXITS_FROZEN;
}

/* The setting that excludes exits in this run; NULL: none. */
static const char *excluded_by(const ses_finetune_options *o)
{
    const ses_transfer_options *t = &o->transfer;
    bool frozen = o->exits.train == SES_TRAIN_EXITS_FROZEN;
    if (ses_transfer_has_adapter(t)) return "an adapter, which keeps the model's exits unchanged";
    if (o->teacher.model) return "a teacher, which teaches the last layer only";
    if (o->label_smoothing > 0) return "label smoothing, which applies to the last layer only";
    if (o->n_also) return "several data sets";
    if (frozen && (t->freeze || t->unfreeze)) return "freeze and unfreeze: the model is frozen already";
    return NULL;
}

static bool check(const ses_finetune *f, ses_err *e)
{
    const ses_exit_options *o = &f->o.exits;
    const char *why = excluded_by(&f->o);
    if (!f->task->has_exits)
        return ses_fail(e, SES_EUSAGE,
                        "exits: the task %s has none: only classify, where the scores of a text tell when it "
                        "can leave",
                        f->task->name);
    if (why)
        return ses_fail(e, SES_EUSAGE, "exits cannot be trained with %s%s", why,
                        o->train ? "" : "; exits none removes the exits of the model");
    if (o->targets && o->train != SES_TRAIN_EXITS_FROZEN)
        return ses_fail(e, SES_EUSAGE,
                        "exit-targets last needs exits frozen: the last layer must be trained");
    if (o->train == SES_TRAIN_EXITS_FROZEN && !f->o.model && !f->o.open_model)
        return ses_fail(e, SES_EUSAGE, "exits frozen needs a model with a trained classifier, not a config");
    return true;
}

/* ---- config.json ---- */

/* Bits of the layers of --exit-layers. */
static bool choose_layers(const ses_exit_options *o, int64_t depth, bool *exit, ses_err *e)
{
    int64_t layer[SES_MAX_LAYERS];
    size_t n = 0;
    if (!o->layers) {
        for (int64_t i = 1; i < depth; i++) exit[i] = true;
        return true;
    }
    if (!ses_int_ranges_parse(o->layers, layer, SES_LEN(layer), &n, e)) return ses_wrap(e, "exit-layers");
    for (size_t i = 0; i < n; i++) {
        if (layer[i] < 1 || layer[i] >= depth)
            return ses_fail(
                e, SES_EUSAGE,
                "exit-layers: %lld is not from 1 to %lld: the model has %lld layers, and the last "
                "has its own classifier",
                (long long)layer[i], (long long)depth - 1, (long long)depth);
        exit[layer[i]] = true;
    }
    return n || ses_fail(e, SES_EUSAGE, "exit-layers: no layer");
}

static void put_exits(const ses_exit_options *o, const bool *exit, int64_t depth, ses_json_writer *w)
{
    ses_json_member_object(w, SES_EXITS_KEY);
    ses_json_member_string(w, "head", o->head ? "linear" : "pooled");
    ses_json_member_array(w, "layers");
    for (int64_t i = 1; i < depth; i++)
        if (exit[i]) ses_json_put_int(w, i);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

/* f->config with the exits of the options; depth 0: without exits. */
static bool replace(ses_finetune *f, const bool *exit, int64_t depth, ses_err *e)
{
    const ses_json *config = ses_json_root(f->config);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        if (!strcmp(key, SES_EXITS_KEY)) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    if (depth) put_exits(&f->o.exits, exit, depth, w);
    ses_json_end_object(w);
    ses_json_doc *d = ses_json_writer_parse(w, e);
    if (!d) return false;
    ses_json_free(f->config);
    f->config = d;
    return true;
}

/* Removes a rule from f->config: it was chosen for the classifiers before this training. */
static bool drop_rule(ses_finetune *f, ses_err *e)
{
    const ses_json *exits = f->config ? ses_json_get(ses_json_root(f->config), SES_EXITS_KEY) : NULL;
    if (ses_json_type_of(ses_json_get(exits, "rule")) == SES_JSON_NULL) return true;
    ses_json_doc *d = ses_exit_rule_drop(ses_json_root(f->config), e);
    if (!d) return false;
    ses_json_free(f->config);
    f->config = d;
    return true;
}

bool ses_exit_training_config(ses_finetune *f, ses_err *e)
{
    if (!drop_rule(f, e)) return false;
    ses_exit_options *o = &f->o.exits;
    bool exit[SES_MAX_LAYERS] = { 0 };
    ses_config c;
    bool classifies = f->task->has_exits;
    const ses_json *config = ses_finetune_base_config(f);
    bool has = ses_json_type_of(ses_json_get(config, SES_EXITS_KEY)) == SES_JSON_OBJECT && classifies;
    if (!is_on(o) && (o->layers || o->head || o->targets) && !(has && !o->train))
        return ses_fail(e, SES_EUSAGE, "exit-layers, exit-head and exit-targets need exits joint or frozen");
    if (o->train == SES_TRAIN_EXITS_NONE) return f->o.open_model || !has || replace(f, exit, 0, e);
    if (!is_on(o) && !has) return true;
    if (!check(f, e)) return false;
    if (o->train == SES_TRAIN_EXITS_FROZEN && !f->o.metric)
        f->o.metric = "loss";                   /* the scores of the last layer do not change */
    bool keeps = has && !o->layers && !o->head; /* the exits that the model has */
    if (f->o.open_model || keeps) return true;
    const ses_model_desc *d = ses_config_find_model(config, e);
    if (!d || (!d->read_parts && !ses_config_read(d, config, &c, e))) return false;
    const char *reason = ses_exits_unsupported(d, &c);
    if (reason)
        return ses_fail(e, SES_EUNSUPPORTED, "exits: a model of the type %s cannot have exits: %s", d->name,
                        reason);
    return choose_layers(o, c.layers, exit, e) && replace(f, exit, c.layers, e);
}

/* ---- the run ---- */

/* Are parameters new that do not belong to exits? */
static bool has_other_new_keys(const ses_model *m)
{
    const char *at = ses_model_missing_keys(m);
    while (*at) {
        if (strncmp(at, SES_EXITS_KEY, strlen(SES_EXITS_KEY))) return true;
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return false;
}

bool ses_exit_training_begin(ses_finetune *f, ses_err *e)
{
    const ses_exit_options *o = &f->o.exits;
    ses_model *m = f->tuner->model;
    bool frozen = o->train == SES_TRAIN_EXITS_FROZEN;
    if (o->train == SES_TRAIN_EXITS_NONE || !f->task->has_exits) return true;
    if (!ses_model_exit_count(m))
        return !is_on(o) ||
               ses_fail(e, SES_EUSAGE,
                        "exits: the open model has none: set \"" SES_EXITS_KEY "\" in its config");
    if (frozen && (has_other_new_keys(m) || (f->base_has_names && !f->keeps_labels)))
        return ses_fail(e, SES_EUSAGE,
                        "exits frozen: the model has no trained classifier for the labels of the data: "
                        "fine-tune it first, or use exits joint");
    if (!o->train && excluded_by(&f->o)) return true; /* an open model: its exits stay as they are */
    ses_model_train_exits(m, frozen ? SES_EXITS_FROZEN : SES_EXITS_JOINT, o->targets != 0);
    return true;
}

static int group_of_exits(void *ctx, const ses_param *p)
{
    bool exit = !strncmp(p->name, SES_EXIT_PARAMS, strlen(SES_EXIT_PARAMS));
    return exit ? ses_group_by_layer(ctx, p) : -1;
}

void ses_exit_training_groups(const ses_finetune *f, ses_optim_options *optim)
{
    if (f->o.exits.train == SES_TRAIN_EXITS_FROZEN) optim->group_of = group_of_exits;
}

void ses_exit_training_put_settings(const ses_finetune *f, ses_json_writer *w)
{
    const ses_model *m = f->tuner->model;
    if (!m || !ses_model_exit_count(m)) return;
    ses_json_member_int(w, "exits", f->o.exits.train);
    ses_json_member_int(w, "exit_targets", f->o.exits.targets);
    ses_json_member_int(w, "exit_count", ses_model_exit_count(m));
}
