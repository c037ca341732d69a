/* factorize: replaces dense weights and the token table by products of two smaller matrices. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cmd/convert_model.h"
#include "cli/command.h"
#include "cli/train/option_setting.h"
#include "cli/train/predictor_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "sesame/sentence.h"
#include "text/legacy/legacy_files.h"
#include "text/tokenizer_files.h"
#include "tune/low_rank/factorize.h"

#include <ctype.h>
#include <string.h>

typedef struct args {
    ses_predictor_args tune;
    int64_t rank, embeddings, examples;
    double ratio, energy;
    int only; /* 0: both */
    const char *data, *output;
    bool even_if_larger, overwrite, json;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(args, rank, "rank", NULL, 1, 1 << 20, "the same rank for every weight", .value = "R"),
    SES_OPT_REAL(args, ratio, "ratio", NULL, 1e-6, 1 - 1e-6,
                 "parameters of the factors / parameters of the weight, for every weight", .value = "X"),
    SES_OPT_REAL(args, energy, "energy", NULL, 1e-6, 1,
                 "the least rank of each weight that keeps this share of its squared singular values",
                 .value = "E"),
    SES_OPT_CHOICE(args, only, "only", "all", "all|attention|ffn", "layers to factorize"),
    SES_OPT_INT(args, embeddings, "embeddings", NULL, 1, 1 << 20, "factorize the token table, with this rank",
                .value = "R"),
    SES_OPT_TEXT(args, data, "data", "FILE",
                 "texts of the task: factors approximate the outputs of the layers on them, not the weights; "
                 "labels are not read",
                 .is_path = true),
    SES_OPT_INT(args, examples, "examples", "512", 1, 1e9,
                "examples of --data that are read, chosen at random", .value = "N"),
    SES_OPT_TASK(args, tune.data, false),
    SES_OPT_TEXT(args, output, "output", "DIR", "folder to write the model to", .letter = 'o',
                 .required = true, .is_path = true, .alias = "to"),
    SES_OPT_FLAG(args, even_if_larger, "even-if-larger", "factorize weights that become larger, too"),
    SES_OPT_THREADS(args, tune.compute.threads),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace a model in the output folder"),
    SES_OPT_JSON(args, json),
    SES_OPT_INCLUDE(args, tune, ses_predictor_option_table),
};

/* ---- output ---- */

/* Weights that differ in the layer's number only. */
typedef struct kind {
    char name[200]; /* digits are '#' */
    const ses_factors *first;
    int64_t n, dense, least, most, before, after;
    double energy; /* sum over the factorized ones */
} kind;

static void name_of_kind(char *to, const char *name)
{
    for (const char *at = name; *at; at++) {
        bool digit = isdigit((unsigned char)*at), first = at == name || at[-1] == '.';
        if (digit && first) *to++ = '#';
        bool of_number = digit && at > name && isdigit((unsigned char)at[-1]);
        if (!(digit && first) && !of_number) *to++ = *at;
    }
    *to = 0;
}

static void count_weight(kind *k, const ses_factors *x)
{
    int64_t all = x->out * x->in;
    k->n++;
    k->dense += !x->rank;
    k->before += all;
    k->after += x->rank ? x->rank * (x->out + x->in) : all;
    if (!x->rank) return;
    k->energy += x->energy;
    if (!k->least || x->rank < k->least) k->least = x->rank;
    if (x->rank > k->most) k->most = x->rank;
}

static void print_kind(ses_text_table *t, const kind *k)
{
    char a[SES_NUMBER_TEXT];
    const ses_factors *x = k->first;
    ses_text_table_cell(t, "%s", k->name);
    ses_text_table_cell(t, "%lld", (long long)k->n);
    ses_text_table_cell(t, "%lld x %lld", (long long)x->out, (long long)x->in);
    if (!k->most)
        ses_text_table_cell(t, "dense");
    else if (k->least == k->most)
        ses_text_table_cell(t, "%lld", (long long)k->most);
    else
        ses_text_table_cell(t, "%lld to %lld", (long long)k->least, (long long)k->most);
    ses_text_table_cell(t, "%lld", (long long)k->dense);
    if (k->most)
        ses_text_table_cell(t, "%.4f", k->energy / (double)(k->n - k->dense));
    else
        ses_text_table_cell(t, "-");
    ses_text_table_cell(t, "%s", ses_grouped_text(a, k->after));
    ses_text_table_cell(t, "%.2f", (double)k->after / (double)k->before);
}

static bool print_table(const ses_factorization *f, const ses_call *c, ses_err *e)
{
    kind *all = ses_alloc_array(f->n, sizeof *all, e);
    size_t n = 0;
    ses_text_table *t =
        all ? ses_text_table_new("weight|>number|>shape|>rank|>stay dense|>energy|>parameters|>ratio", e)
            : NULL;
    for (size_t i = 0; t && i < f->n; i++) {
        size_t k = 0;
        name_of_kind(all[n].name, f->item[i].name);
        while (strcmp(all[k].name, all[n].name)) k++;
        if (k == n) all[n++].first = &f->item[i];
        count_weight(&all[k], &f->item[i]);
    }
    for (size_t k = 0; t && k < n; k++) print_kind(t, &all[k]);
    bool ok = t && ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    ses_free(all);
    return ok;
}

static bool show(const ses_factorization *f, const ses_call *c, const args *a, ses_err *e)
{
    char before[SES_NUMBER_TEXT], after[SES_NUMBER_TEXT];
    size_t dense = 0;
    for (size_t i = 0; i < f->n; i++) dense += !f->item[i].rank;
    if (!print_table(f, c, e)) return false;
    ses_show_line(&c->out, "Wrote", "%s: %s parameters of %s (%.1f %%)", a->output,
                  ses_grouped_text(after, f->after), ses_grouped_text(before, f->before),
                  100 * (double)f->after / (double)f->before);
    if (dense)
        ses_show_line(&c->out, "Dense",
                      "%zu weights stay as they are: two factors of this %s are not smaller", dense,
                      a->energy ? "energy" : "rank");
    return true;
}

static bool print_json(const ses_factorization *f, const args *a, const char *from, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "from", from);
    ses_json_member_string(w, "to", a->output);
    ses_json_member_int(w, "parameters_before", f->before);
    ses_json_member_int(w, "parameters", f->after);
    ses_json_member_array(w, "weights");
    for (size_t i = 0; i < f->n; i++) {
        const ses_factors *x = &f->item[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", x->name);
        ses_json_member_int(w, "out", x->out);
        ses_json_member_int(w, "in", x->in);
        ses_json_member_int(w, "rank", x->rank);
        ses_json_member_real(w, "energy", x->rank ? x->energy : 1);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* ---- files ---- */

/* dir: the folder of the model. */
static bool check_output(const args *a, const char *dir, ses_err *e)
{
    char *config = ses_path_join(a->output, "config.json", e);
    bool ok = config != NULL;
    if (ok && ses_path_same(a->output, dir))
        ok = ses_fail(e, SES_EUSAGE, "--output %s is the folder of the model: choose another one", a->output);
    if (ok && !a->overwrite && ses_path_exists(config))
        ok = ses_fail(e, SES_EIO, "%s: already contains a model; use --overwrite to replace it", a->output);
    ses_free(config);
    return ok;
}

/* The tokenizer and the settings of pipelines. */
static bool copy_files(const char *from, const char *to, bool overwrite, ses_err *e)
{
    static const char *const others[] = { "config_sentence_transformers.json", "generation_config.json" };
    char *home = ses_tokenizer_home(from, NULL, e);
    ses_buf copied = { 0 };
    bool done = false, ok = home && ses_tokenizer_convert_original(home, to, overwrite, &done, e);
    for (size_t i = 0; ok && !done && i < SES_TOKENIZER_FILES; i++)
        ok = ses_convert_copy(home, to, ses_tokenizer_file_names[i], overwrite, &copied, e);
    for (size_t i = 0; ok && i < SES_LEN(others); i++)
        ok = ses_convert_copy(from, to, others[i], overwrite, &copied, e);
    ses_buf_free(&copied);
    ses_free(home);
    return ok;
}

static void on_progress(void *ctx, int64_t done, int64_t total)
{
    ses_progress *p = ctx;
    p->total = total;
    ses_progress_show(p, done);
}

static bool factorize(const ses_call *c, const ses_model *m, const ses_input_moments *moments,
                      ses_factorization *f, ses_err *e)
{
    const args *a = c->args;
    ses_progress p = ses_progress_start(stderr, &c->err, c->quiet, "Factorizing", 0);
    ses_factorize_options o = { .rank = a->rank,
                                .ratio = a->ratio,
                                .energy = a->energy,
                                .only = (ses_factorize_part)a->only,
                                .embeddings = a->embeddings,
                                .even_if_larger = a->even_if_larger,
                                .moments = moments,
                                .progress = on_progress,
                                .progress_ctx = &p };
    bool ok = ses_factorize(f, m, &o, e) || ses_wrap(e, "%s", c->operands[0]);
    ses_progress_end(&p);
    return ok;
}

/* Runs the model over --data. */
static bool read_inputs(const ses_call *c, const char *dir, ses_input_moments *moments, ses_err *e)
{
    const args *a = c->args;
    ses_predictor_args tune = a->tune;
    ses_open_predictor p;
    tune.compute.device = "cpu";
    tune.compute.isa = -1; /* the best */
    bool ok = ses_open_predictor_open(&p, &tune, dir, c, e) &&
              ses_input_moments_collect(moments, p.predictor, a->data, a->examples, e);
    ses_open_predictor_free(&p);
    return ok;
}

static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    return a->data ? ses_predictor_args_open_stored(&a->tune, c, NULL, e) : NULL;
}

static bool write_model(const ses_call *c, const char *from, const ses_factorization *f, ses_err *e)
{
    const args *a = c->args;
    ses_convert_output out;
    bool ok = ses_convert_output_open(&out, a->output, e) &&
              ses_factorization_save(f, out.dir, a->overwrite, e) &&
              copy_files(from, out.dir, a->overwrite, e);
    return ses_convert_output_close(&out, ok, e);
}

static bool check_args(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    int chosen = (a->rank != 0) + (a->ratio != 0) + (a->energy != 0);
    if (chosen > 1) return ses_fail(e, SES_EUSAGE, "--rank, --ratio and --energy exclude each other");
    if (!chosen && !a->embeddings)
        return ses_fail(e, SES_EUSAGE, "one of --rank, --ratio, --energy and --embeddings is required");
    if (!chosen && a->data) return ses_fail(e, SES_EUSAGE, "--data needs --rank, --ratio or --energy");
    if (!chosen && a->only) return ses_fail(e, SES_EUSAGE, "--only needs --rank, --ratio or --energy");
    const ses_opt_table *data = &ses_predictor_option_table;
    const char *unused = a->data ? NULL : ses_option_changed(opt, SES_LEN(opt), "examples|task", a);
    if (!a->data && !unused) unused = ses_option_changed(data->opt, data->n, NULL, &a->tune);
    return !unused || ses_fail(e, SES_EUSAGE, "--%s has no effect without --data FILE", unused);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_factorization f = { 0 };
    ses_input_moments moments = { 0 };
    if (!check_args(c, e)) return false;
    char *dir = ses_model_resolve(c->operands[0], NULL, e);
    if (!dir || !check_output(a, dir, e)) return ses_free(dir), false;
    if (ses_sentence_is_encoder_dir(dir)) {
        ses_free(dir);
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s is a sentence encoder of several modules (modules.json): factorize the model in "
                        "the folder of its first module",
                        c->operands[0]);
    }
    ses_device *dev =
        ses_device_open("cpu", &(ses_device_options){ .threads = (int)a->tune.compute.threads }, e);
    ses_model *m = dev ? ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, e) : NULL;
    bool ok = m && ses_model_check_finite(m, e) && (!a->data || read_inputs(c, dir, &moments, e)) &&
              factorize(c, m, a->data ? &moments : NULL, &f, e) && write_model(c, dir, &f, e);
    if (ok && a->json)
        ok = print_json(&f, a, c->operands[0], e);
    else if (ok && !c->quiet)
        ok = show(&f, c, a, e);
    ses_factorization_free(&f);
    ses_input_moments_free(&moments);
    ses_model_free(m);
    ses_device_free(dev);
    ses_free(dir);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame factorize sst2 --ratio 0.5 --output sst2-half", "half of the layers' parameters" },
    { "sesame factorize sst2 --ratio 0.5 --data SST-2/train.tsv --output sst2-half",
      "the same, for the inputs that the layers have on these texts" },
    { "sesame factorize sst2 --energy 0.9 --only ffn --output sst2-ffn", "ranks by energy" },
    { "sesame finetune --model sst2-half --task sst2 --train train.tsv --output sst2-tuned",
      "recover the score: both factors are trained" },
    { 0 },
};

const ses_command ses_command_factorize = {
    .name = "factorize",
    .usage = "MODEL",
    .summary = "factorize weights by SVD",
    .description =
        "Writes the model with low-rank weights to the folder --output: a weight [out, in] of a layer "
        "becomes "
        "two, [rank, in] and [out, rank], by truncated singular value decomposition. This makes "
        "the layer smaller and faster if the rank is below out in / (out + in); other weights stay dense. "
        "With --embeddings the token table becomes two matrices, too.\n\n"
        "With --data the factors have the least error of the layers' outputs on these texts, instead of the "
        "least error of the weights. This keeps far more of the score.\n\n"
        "Every command reads such a model; other programs do not. Fine-tune it afterwards "
        "(sesame finetune --model DIR), with --teacher if the original model is at hand, to recover the "
        "score, then quantize it: both factors become int8. docs/COMPRESSION.md has figures.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .open_stored = open_stored,
    .has_model_operand = true,
    .run = run,
};
