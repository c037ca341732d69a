/* FLOPs of a model, counted from its config. */
#include "flops_info.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number_text.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "model/model_desc.h"
#include "train/model_presets.h"
#include "train/objective/objective_mix.h"

#include <inttypes.h>
#include <string.h>

#define AT(field) offsetof(ses_flops_args, field)
static const ses_opt opt[] = {
    SES_OPT_INT(ses_flops_args, length, "length", "0", 0, 1 << 24,
                "--flops: tokens of a text; 0: 512, or the model's maximum if lower", .was_set = AT(given)),
    SES_OPT_INT(ses_flops_args, target_length, "target-length", "0", 0, 1 << 24,
                "--flops, encoder-decoder: tokens of the decoder; 0: as the text", .was_set = AT(given)),
    SES_OPT_INT(ses_flops_args, batch_size, "batch-size", "1", 1, 1e12, "--flops: texts of an update",
                .was_set = AT(given)),
    SES_OPT_INT(ses_flops_args, steps, "steps", "1", 1, 1e12, "--flops: updates", .was_set = AT(given)),
    SES_OPT_REAL(ses_flops_args, masked, "masked", "0.15", 0, 1,
                 "--flops: fraction of the tokens that a masked or permuted language model predicts",
                 .was_set = AT(given)),
    SES_OPT_TEXT(ses_flops_args, class, "class", "NAME",
                 "--flops: class of transformers; default: the config's, or one with a language model head",
                 .was_set = AT(given)),
    SES_OPT_REAL(ses_flops_args, generator, "generator", "0", 0, 1,
                 "--flops: adds ELECTRA's generator, of this fraction of the model's width; 0: none",
                 .was_set = AT(given)),
    SES_OPT_FLAG(ses_flops_args, recompute, "recompute", "--flops: training recomputes the activations",
                 .was_set = AT(given)),
};
const ses_opt_table ses_flops_options = { opt, SES_LEN(opt) };

static const char *const kind_name[SES_FLOP_KINDS] = {
    [SES_FLOP_LOOKUP] = "lookups",      [SES_FLOP_EMBED] = "embeddings",  [SES_FLOP_WEIGHT] = "weights",
    [SES_FLOP_ATTENTION] = "attention", [SES_FLOP_OTHER] = "elementwise", [SES_FLOP_HEAD] = "heads",
};

/* The printed numbers. */
typedef struct counts {
    ses_flops forward; /* one text, generator included */
    int64_t length, parameters;
    const char *class;
} counts;

static ses_json_doc *open_config(const char *name, ses_err *e)
{
    char *dir = ses_model_resolve(name, NULL, NULL);
    ses_json_doc *d =
        dir && ses_path_is_dir(dir) ? ses_model_config_open(dir, NULL, e) : ses_preset_load(name, e);
    ses_free(dir);
    return d;
}

static bool predicts_tokens(const ses_class *c)
{
    ses_head_rows rows = c->head[0].head ? c->head[0].head->scores : SES_SCORES_BY_AXIS;
    return rows == SES_SCORES_LABELED || rows == SES_SCORES_LABELED_TWICE;
}

/* The class of a config without "architectures": one with a language model head, if there is one. */
static const char *default_class(const ses_json *config)
{
    const ses_model_desc *d = ses_config_find_model(config, NULL);
    if (!d || ses_json_get(config, "architectures")) return NULL;
    for (size_t i = 0; i < d->n_classes; i++)
        if (predicts_tokens(&d->class[i])) return d->class[i].name;
    return NULL;
}

/* Does the first head predict a part of the tokens, which the objective chooses? */
static bool predicts_some(const ses_model *m)
{
    const ses_head *h = m->class->head[0].head;
    return h && h->scores == SES_SCORES_LABELED && !h->shifts_labels && h->axis == SES_LABEL_PER_TOKEN &&
           !m->stack[0].causal;
}

static ses_flops_units units_of(const ses_model *m, const ses_flops_args *a, int64_t length)
{
    bool decoder = m->stack[1].c != NULL;
    double n = (double)length, some = a->masked * n,
           target = a->target_length         ? (double)a->target_length
                    : m->c.xl.permutation_lm ? some
                                             : n,
           labeled = predicts_some(m) ? some
                     : decoder        ? target
                                      : n;
    return ses_model_flops_units(m, 1, n, target, labeled);
}

/* Adds the FLOPs of a text; the length is that of the first model. */
static bool add_model(counts *k, const ses_json *config, const char *class, const ses_flops_args *a,
                      ses_device *dev, ses_err *e)
{
    ses_model_options o = { .check_only = true, .class_name = class };
    ses_model *m = ses_model_new(config, dev, &o, e);
    if (!m) return false;
    int64_t most = ses_model_max_tokens(m);
    if (!k->length) {
        k->length = a->length ? a->length : most < 512 ? most : 512;
        k->class = m->class->name;
    }
    bool ok = k->length <= most ||
              ses_fail(e, SES_EUSAGE, "--length: %" PRId64 " exceeds the model's maximum of %" PRId64,
                       k->length, most);
    ses_flops_units u = units_of(m, a, k->length);
    ses_flops f = ses_model_flops(m, &u, true);
    for (int i = 0; i < SES_FLOP_KINDS; i++) k->forward.kind[i] += f.kind[i];
    k->parameters += ses_store_element_count(ses_model_store(m));
    ses_model_free(m);
    return ok;
}

static double training(const counts *k, const ses_flops_args *a)
{
    return ses_train_passes(a->recompute) * (double)a->batch_size * (double)a->steps *
           ses_flops_sum(&k->forward);
}

static bool print_json(const char *name, const counts *k, const ses_flops_args *a, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    double sum = ses_flops_sum(&k->forward);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model", name);
    ses_json_member_string(w, "class", k->class);
    ses_json_member_int(w, "parameters", k->parameters);
    ses_json_member_int(w, "length", k->length);
    ses_json_member_int(w, "batch_size", a->batch_size);
    ses_json_member_int(w, "steps", a->steps);
    ses_json_member_real(w, "forward_flops_per_token", sum / (double)k->length);
    ses_json_member_real(w, "forward_flops", sum);
    ses_json_member_object(w, "forward_parts");
    for (int i = 0; i < SES_FLOP_KINDS; i++) ses_json_member_real(w, kind_name[i], k->forward.kind[i]);
    ses_json_end_object(w);
    ses_json_member_real(w, "train_flops", training(k, a));
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool show(const char *name, const counts *k, const ses_flops_args *a, const ses_term *t, ses_err *e)
{
    char n[SES_NUMBER_TEXT], part[SES_NUMBER_TEXT];
    double sum = ses_flops_sum(&k->forward);
    ses_text_table *table = ses_text_table_new("|>|>", e);
    if (!table) return false;
    ses_show_line(t, "Model", "%s (%s)%s", name, k->class, a->generator > 0 ? " and generator" : "");
    ses_show_line(t, "Parameters", "%s", ses_grouped_text(n, k->parameters));
    ses_show_line(t, "Forward", "%s FLOPs per text of %" PRId64 " tokens, %s per token",
                  ses_flops_text(n, sum), k->length, ses_flops_text(part, sum / (double)k->length));
    for (int i = 0; i < SES_FLOP_KINDS; i++) {
        ses_text_table_cell(table, "%s", kind_name[i]);
        ses_text_table_cell(table, "%s", ses_flops_text(n, k->forward.kind[i]));
        ses_text_table_cell(table, "%.1f %%", 100 * k->forward.kind[i] / sum);
    }
    bool ok = ses_text_table_print(table, stdout, t, 14, e);
    ses_text_table_free(table);
    ses_show_line(t, "Training",
                  "%s FLOPs: %" PRId64 " update%s of %" PRId64 " text%s, %g forward passes each",
                  ses_flops_text(n, training(k, a)), a->steps, a->steps == 1 ? "" : "s", a->batch_size,
                  a->batch_size == 1 ? "" : "s", ses_train_passes(a->recompute));
    return ok;
}

bool ses_flops_info_print(const char *name, const ses_flops_args *a, bool json, const ses_term *t, ses_err *e)
{
    counts k = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, e);
    ses_json_doc *config = dev ? open_config(name, e) : NULL, *generator = NULL;
    const ses_json *root = config ? ses_json_root(config) : NULL;
    bool ok = config && add_model(&k, root, a->class ? a->class : default_class(root), a, dev, e);
    if (ok && a->generator > 0) {
        generator = ses_generator_config(root, a->generator, e);
        const char *class =
            generator ? ses_model_class_for_head(ses_json_root(generator), "masked-lm", e) : NULL;
        ok = class && (add_model(&k, ses_json_root(generator), class, a, dev, e) || ses_wrap(e, "generator"));
    }
    ok = ok && (json ? print_json(name, &k, a, e) : show(name, &k, a, t, e));
    ses_json_free(generator);
    ses_json_free(config);
    ses_device_free(dev);
    return ok || ses_wrap(e, "%s", name);
}

double ses_flops_per_token(const ses_model *m, int64_t length)
{
    ses_flops_units u = units_of(m, &(ses_flops_args){ .masked = 0.15 }, length);
    ses_flops f = ses_model_flops(m, &u, false);
    return ses_flops_sum(&f) / (double)length;
}
