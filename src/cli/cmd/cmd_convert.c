/* convert: writes a model to another folder with another weight type, in shards, with a merged adapter, or as
 * the mean of several models. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/arena.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "convert_model.h"
#include "model/model_desc.h"
#include "model/reduce/sparse_blocks.h"
#include "model/sentence/sentence_impl.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"
#include "tensor/device_impl.h"
#include "text/legacy/legacy_files.h"
#include "text/tokenizer_files.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

typedef struct args {
    int dtype; /* index in dtypes; -1: unchanged */
    int64_t shard;
    ses_dtype embedding_dtype; /* set by quantize */
    const char *adapter, *class_name, *exit_rule;
    ses_opt_list average;
    bool keep, overwrite, strict, json;
} args;

static const ses_dtype dtypes[] = { SES_F32, SES_F16, SES_BF16, SES_I8 };

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        args, dtype, "dtype", NULL, "f32|f16|bf16|int8",
        "weight type; default: unchanged, of an int8 model and of a mean of several types f32; int8 "
        "applies to dense weights (see quantize)",
        .letter = 'd'),
    SES_OPT_SIZE(args, shard, "shard-size", "0", 0, 0, "maximum size of a weight file; 0: one file"),
    SES_OPT_TEXT(args, adapter, "merge-adapter", "DIR",
                 "merge this LoRA adapter into the weights; an adapter folder as DIR is always merged",
                 .is_model = true),
    SES_OPT_FLAG(
        args, keep, "keep-adapter",
        "DIR is an adapter and OUT becomes one: weights in --dtype, the base model as \"../NAME\" if it "
        "is next to OUT, the tokenizer only if it differs from that of the base model"),
    SES_OPT_LIST(
        args, average, "average", "DIR2",
        "write the mean of the weights of DIR and of this model of the same architecture, such as another "
        "checkpoint of the run or a run with another seed from the same start (a model soup)",
        .is_model = true),
    SES_OPT_TEXT(
        args, class_name, "class", "NAME",
        "model class, such as BertModel; default: the class in config.json. ElectraForMaskedLM is the "
        "generator in a TensorFlow checkpoint of ELECTRA"),
    SES_OPT_TEXT(
        args, exit_rule, "exit-rule", "RULE",
        "a model with exits: the rule of predictions that name none, as --exit of eval has it; never: "
        "all layers"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace a model in OUT"),
    SES_OPT_STRICT(args, strict),
    SES_OPT_JSON(args, json),
};

typedef struct rounding_error {
    double error;  /* maximum absolute difference */
    int64_t zeros; /* values rounded to 0 */
} rounding_error;

typedef struct convert_job {
    ses_convert_source in;
    ses_convert_open_options open; /* base: of --merge-adapter */
    ses_opt_list average;          /* --average */
    ses_convert_output out;
    ses_save_options save;
    rounding_error rounding;
    ses_buf copied, files; /* names joined by ", " */
    uint64_t bytes;        /* size of the tensors */
    uint64_t file_bytes;   /* size of the files with their headers */
    ses_quantize_scores scores;
    double sparse; /* see ses_convert_options */
    ses_sparse_blocks blocks;
} convert_job;

/* ---- rounding ---- */

/* A tensor in pieces of SES_PARAM_PIECE elements. */
typedef struct tensor_check {
    const ses_param_source *from;
    pthread_mutex_t lock;    /* held while adding the results of a piece */
    rounding_error rounding; /* sum of the pieces */
    int64_t lost;            /* values out of range */
    double max_lost;
    ses_err error;
} tensor_check;

static void add_piece(tensor_check *t, const tensor_check *piece)
{
    pthread_mutex_lock(&t->lock);
    t->rounding.error = fmax(t->rounding.error, piece->rounding.error);
    t->rounding.zeros += piece->rounding.zeros;
    t->lost += piece->lost;
    t->max_lost = fmax(t->max_lost, piece->max_lost);
    if (piece->error.code) t->error = piece->error;
    pthread_mutex_unlock(&t->lock);
}

static void check_piece(void *ctx, int64_t i, void *scratch)
{
    enum { PIECE = SES_PARAM_PIECE };
    tensor_check *t = ctx, p = { 0 };
    (void)scratch;
    uint64_t converted[PIECE]; /* large enough for any dtype */
    float back[PIECE], scale[PIECE];
    size_t at = (size_t)i * PIECE, left = (size_t)ses_count(t->from->t) - at, n = left < PIECE ? left : PIECE;
    const float *x = t->from->t->f + at;
    bool ok = ses_param_convert(t->from, converted, scale, at, n, &p.error) &&
              ses_convert(back, SES_F32, converted, t->from->dtype, n, &p.error);
    for (size_t k = 0; ok && k < n; k++) {
        if (t->from->scale) back[k] *= scale[k];
        if (isinf(back[k])) p.lost++, p.max_lost = fmax(p.max_lost, fabs((double)x[k]));
        p.rounding.zeros += back[k] == 0 && x[k] != 0;
        p.rounding.error = fmax(p.rounding.error, isinf(back[k]) ? 0 : fabs((double)back[k] - (double)x[k]));
    }
    add_piece(t, &p);
}

/* Checks that the values fit the new type and accumulates the rounding error. The tensor is on the CPU. */
static bool check_tensor(convert_job *j, const ses_param_source *from, const char *name, ses_err *e)
{
    tensor_check t = { .from = from, .lock = PTHREAD_MUTEX_INITIALIZER };
    int64_t pieces = (ses_count(from->t) + SES_PARAM_PIECE - 1) / SES_PARAM_PIECE;
    ses_parallel_for(from->dev->exec.pool, pieces, check_piece, &t);
    j->rounding.zeros += t.rounding.zeros;
    j->rounding.error = fmax(j->rounding.error, t.rounding.error);
    if (t.error.code) return ses_fail(e, t.error.code, "%s", t.error.msg);
    if (!t.lost) return true;
    return ses_fail(e, SES_EARG,
                    "%s: tensor \"%s\": %" PRId64 " values up to %.4g exceed the range of %s; use bf16",
                    j->in.dir, name, t.lost, t.max_lost, ses_dtype_name(from->dtype));
}

/* Checks the modules of a sentence encoder after the model. */
static bool check_modules(convert_job *j, ses_err *e)
{
    const ses_store *s = j->in.sentence ? ses_sentence_store(j->in.sentence) : NULL;
    for (size_t i = 0; s && i < ses_store_count(s); i++) {
        ses_param_source from = { .dev = ses_store_device(s),
                                  .t = ses_store_at(s, i)->tensor,
                                  .dtype = j->save.dtype == SES_I8 ? SES_F16 : j->save.dtype };
        if (!check_tensor(j, &from, ses_store_at(s, i)->name, e)) return false;
    }
    return true;
}

static bool check_rounding(convert_job *j, ses_err *e)
{
    const ses_store *s = ses_model_store(j->in.model);
    if (!ses_model_check_finite(j->in.model, e)) return ses_wrap(e, "%s", j->in.dir);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        char name[256];
        ses_arena mem = { 0 };
        ses_param_source from;
        if (!ses_model_tensor_name(j->in.model, i, name, sizeof name)) name[0] = 0;
        bool ok = ses_param_source_init(&from, j->in.model, ses_store_at(s, i), &j->save, &mem, e) &&
                  check_tensor(j, &from, name, e);
        ses_arena_free(&mem);
        if (!ok) return false;
    }
    return check_modules(j, e);
}

/* ---- files ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool copy_file(const char *from, const char *to, bool overwrite, ses_err *e)
{
    enum { MAX = 1 << 28 };
    size_t n;
    char *data = ses_file_read(from, MAX, &n, e);
    bool ok = data && ses_file_write(to, data, n, overwrite, e);
    ses_free(data);
    return ok;
}

bool ses_convert_copy(const char *from, const char *to, const char *name, bool overwrite, ses_buf *copied,
                      ses_err *e)
{
    char *a = ses_path_join(from, name, e), *b = ses_path_join(to, name, e);
    bool ok = a && b;
    if (ok && ses_path_exists(a) && !same_file(a, b)) {
        ok = copy_file(a, b, overwrite, e);
        ses_buf_appendf(copied, "%s%s", copied->len ? ", " : "", name);
    }
    ses_free(a);
    ses_free(b);
    return ok;
}

static bool copy_named(convert_job *j, const char *dir, const char *name, ses_err *e)
{
    return ses_convert_copy(dir, j->out.dir, name, j->save.overwrite, &j->copied, e);
}

/* Generation settings of the folder, or of an adapter's base model. */
static bool copy_generation_config(convert_job *j, ses_err *e)
{
    static const char name[] = "generation_config.json";
    char *own = ses_path_join(j->in.dir, name, e), *base = NULL;
    if (!own) return false;
    if (!ses_path_exists(own)) base = ses_model_base_dir(j->in.dir, j->open.base, NULL);
    ses_free(own);
    bool ok = copy_named(j, base ? base : j->in.dir, name, e);
    ses_free(base);
    return ok;
}

/* Copies the tokenizer files, the generation settings and the configuration of a cross-encoder's scores. */
static bool copy_other_files(convert_job *j, ses_err *e)
{
    char *dir = ses_convert_tokenizer_dir(&j->in, j->open.base, e);
    if (!dir) return false;
    bool ok = j->in.sentence ||
              (copy_named(j, dir, "config_sentence_transformers.json", e) && copy_generation_config(j, e));
    bool done = false;
    ok = ok && ses_tokenizer_convert_original(dir, j->out.dir, j->save.overwrite, &done, e);
    for (size_t i = 0; i < SES_TOKENIZER_FILES && ok && !done; i++)
        ok = copy_named(j, dir, ses_tokenizer_file_names[i], e);
    if (ok && done)
        ses_buf_appendf(&j->copied, "%stokenizer.json, tokenizer_config.json", j->copied.len ? ", " : "");
    ses_free(dir);
    return ok;
}

static void add_file(convert_job *j, const char *name)
{
    struct stat st;
    char *path = ses_path_join(j->out.dir, name, NULL);
    if (path && stat(path, &st) == 0) j->file_bytes += (uint64_t)st.st_size;
    ses_buf_appendf(&j->files, "%s%s", j->files.len ? ", " : "", name);
    ses_free(path);
}

/* Lists the files by opening the written checkpoint. */
static bool list_files(convert_job *j, ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(j->out.dir, e);
    const char *last = "";
    for (size_t i = 0; s && i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(s, i);
        j->bytes += x->bytes;
        if (!strcmp(x->file, last)) continue;
        last = x->file;
        add_file(j, last);
    }
    bool ok = s && ses_buf_ok(&j->files, e) && ses_buf_ok(&j->copied, e);
    ses_safetensors_free(s);
    return ok;
}

/* Checks before anything is written; ses_model_save would fail after the first files. */
static bool check_output(const convert_job *j, ses_err *e)
{
    char *config = ses_path_join(j->out.dir, "config.json", e);
    bool ok = config != NULL;
    if (ok && !j->save.overwrite && ses_path_exists(config))
        ok = ses_fail(e, SES_EIO, "%s: already contains a model; use --overwrite to replace it", j->out.to);
    ses_free(config);
    return ok;
}

/* ---- output ---- */

/* As counted by info: the model, and the modules of a sentence encoder. */
static int64_t parameters(const convert_job *j)
{
    return ses_store_element_count(ses_model_store(j->in.model)) +
           (j->in.sentence ? ses_store_element_count(ses_sentence_store(j->in.sentence)) : 0);
}

static void show(const ses_call *c, const convert_job *j)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    const ses_term *t = &c->out;
    const char *first = j->files.data, *end = strstr(first, ", "), *last = strrchr(first, ' ');
    if (end)
        ses_show_line(t, "Wrote", "%s: config.json, %.*s to %s and their index", j->out.to,
                      (int)(end - first), first, last + 1);
    else
        ses_show_line(t, "Wrote", "%s: config.json, %s", j->out.to, first);
    if (j->in.sentence)
        ses_show_line(t, "", "modules.json and %zu module%s after the model",
                      ses_sentence_module_count(j->in.sentence) - 1,
                      ses_sentence_module_count(j->in.sentence) == 2 ? "" : "s");
    ses_dtype was = ses_model_dtype(j->in.model), now = j->save.dtype;
    ses_show_line(t, "Weights", "%s parameters, %s%s%s, %s", ses_grouped_text(a, parameters(j)),
                  ses_dtype_name(was), was == now ? "" : " to ", was == now ? "" : ses_dtype_name(now),
                  ses_bytes_text(b, j->file_bytes));
    if (j->average.n) ses_show_line(t, "Average", "of %zu models", j->average.n + 1);
    if (j->rounding.error > 0)
        ses_show_line(t, "Rounding", "at most %.2g; %s rounded to 0", j->rounding.error,
                      j->rounding.zeros ? ses_grouped_text(a, j->rounding.zeros) : "none");
    if (j->blocks.zero && j->sparse > 0)
        ses_show_line(t, "Sparse", "%.1f %% of the blocks of four inputs are 0",
                      100 * (double)j->blocks.zero / (double)j->blocks.blocks);
    if (j->copied.len) ses_show_line(t, "Copied", "%s", j->copied.data);
    if (*ses_model_unexpected_keys(j->in.model))
        ses_show_line(t, "Left out", "%s (not part of a %s)", ses_model_unexpected_keys(j->in.model),
                      ses_model_class_name(j->in.model));
}

static bool print_json(const convert_job *j, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "from", j->in.dir);
    ses_json_member_string(w, "to", j->out.to);
    if (j->average.n) ses_json_member_int(w, "models", (int64_t)j->average.n + 1);
    ses_json_member_string(w, "model_type", ses_model_type(j->in.model));
    ses_json_member_string(w, "class", ses_model_class_name(j->in.model));
    ses_json_member_int(w, "parameters", parameters(j));
    ses_json_member_string(w, "dtype", ses_dtype_name(j->save.dtype));
    ses_json_member_list(w, "files", j->files.data);
    ses_json_member_int(w, "bytes", (int64_t)j->bytes);
    ses_json_member_real(w, "rounding", j->rounding.error);
    ses_json_member_int(w, "became_zero", j->rounding.zeros);
    if (j->blocks.blocks)
        ses_json_member_real(w, "zero_blocks", (double)j->blocks.zero / (double)j->blocks.blocks);
    ses_json_member_list(w, "copied", j->copied.len ? j->copied.data : "");
    ses_json_member_list(w, "left_out", ses_model_unexpected_keys(j->in.model));
    if (j->scores.metric) {
        ses_json_member_string(w, "metric", j->scores.metric);
        ses_json_member_real(w, "original", j->scores.original);
        ses_json_member_real(w, "quantized", j->scores.quantized);
        ses_json_member_real(w, "drop", j->scores.drop);
    }
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool save(const convert_job *j, ses_err *e)
{
    ses_save_options again = j->save;
    again.overwrite |= j->in.sentence != NULL; /* the model was written with it */
    if (j->in.sentence && !ses_sentence_save(j->in.sentence, j->out.dir, &j->save, e)) return false;
    return ses_model_save(j->in.model, j->out.dir, &again, e);
}

/* F16 or BF16 if all real weights are; F32 represents every other mixture. */
static ses_dtype unchanged_dtype(const ses_model *m)
{
    ses_dtype all = ses_model_dtype(m);
    for (size_t i = 0; i < ses_safetensors_count(m->file); i++) {
        ses_dtype d = ses_safetensors_at(m->file, i)->dtype;
        if (d != all && (d == SES_F32 || d == SES_F64 || d == SES_F16 || d == SES_BF16)) return SES_F32;
    }
    return all == SES_F16 || all == SES_BF16 ? all : SES_F32;
}

static bool convert(convert_job *j, int dtype, ses_err *e)
{
    bool same_dtype;
    if (!check_output(j, e) || !ses_convert_open(&j->in, &j->open, e) ||
        !ses_convert_average(&j->in, &j->open, &j->average, &same_dtype, e))
        return false;
    j->save.dtype = dtype >= 0 ? dtypes[dtype] : same_dtype ? unchanged_dtype(j->in.model) : SES_F32;
    ses_store *s = ses_model_store(j->in.model);
    if (j->sparse > 0 && !ses_prune_blocks(s, j->sparse, e)) return ses_wrap(e, "%s", j->in.dir);
    if (j->save.dtype == SES_I8) j->blocks = ses_count_blocks(s);
    return check_rounding(j, e) && save(j, e) && copy_other_files(j, e) && list_files(j, e);
}

/* --exit-rule: the rule fits the model and is part of its config. */
static bool store_rule(const convert_job *j, const char *rule, ses_err *e)
{
    ses_exit_policy policy;
    return ses_exit_policy_parse(rule, &policy, e) && ses_exit_policy_check(&policy, j->in.model, e) &&
           ses_exit_rule_store(j->out.dir, rule, e);
}

/* o: of quantize; NULL: none. */
static bool run_job(ses_call *c, const args *a, const ses_convert_options *o, ses_err *e)
{
    ses_device_options d = { .threads = o ? o->threads : 0 };
    ses_device *dev = ses_device_open("cpu", &d, e);
    convert_job j = {
        .in.dir = a->adapter ? a->adapter : c->operands[0],
        .open = { .dev = dev,
                  .base = a->adapter ? c->operands[0] : NULL,
                  .class_name = a->class_name,
                  .strict = a->strict },
        .average = a->average,
        .save = { .tables = a->embedding_dtype, .shard_bytes = (size_t)a->shard, .overwrite = a->overwrite }
    };
    if (o) j.scores = o->scores, j.sparse = o->sparse;
    bool ok = ses_convert_output_open(&j.out, c->operands[1], e) && dev && convert(&j, a->dtype, e);
    if (ok && a->exit_rule) ok = store_rule(&j, a->exit_rule, e);
    if (ok && o && o->check) ok = o->check(o->ctx, j.out.dir, &j.scores, e);
    ok = ses_convert_output_close(&j.out, ok, e);
    if (ok && !c->quiet) ses_notify_unused_tensors(j.in.model);
    if (ok && a->json)
        ok = print_json(&j, e);
    else if (ok && !c->quiet)
        show(c, &j);
    ses_buf_free(&j.files);
    ses_buf_free(&j.copied);
    ses_convert_close(&j.in);
    ses_device_free(dev);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    if (!a->keep) return run_job(c, a, NULL, e);
    if (a->exit_rule) return ses_fail(e, SES_EUSAGE, "--exit-rule: an adapter has no exits");
    if (a->adapter || a->average.n || a->shard || a->strict || a->class_name)
        return ses_fail(e, SES_EUSAGE,
                        "--keep-adapter cannot be combined with --merge-adapter, --average, --shard-size, "
                        "--strict or --class");
    return ses_convert_adapter(c, c->operands[0], c->operands[1], a->dtype >= 0 ? dtypes[a->dtype] : SES_F32,
                               a->overwrite, a->json, e);
}

bool ses_convert_model(ses_call *c, const ses_convert_options *o, ses_err *e)
{
    args a = { .overwrite = o->overwrite, .embedding_dtype = o->embedding_dtype, .json = o->json };
    while (dtypes[a.dtype] != o->dtype) a.dtype++;
    return run_job(c, &a, o, e);
}

static const ses_usage_example examples[] = {
    { "sesame convert bert-base-uncased bert-base-f16 --dtype f16", "half the size" },
    { "sesame convert sesame-small small-f32 --dtype f32", "an int8 model for transformers" },
    { "sesame convert bert-base-uncased sst2 --merge-adapter sst2-lora", "merge an adapter into the model" },
    { "sesame convert sst2-lora sentiment --keep-adapter --dtype f16", "convert an adapter to f16" },
    { "sesame convert run1 mean --average run2 --average run3", "the mean of three models" },
    { "sesame convert uncased_L-12_H-768_A-12 bert-base-uncased",
      "a TensorFlow checkpoint for transformers" },
    { "sesame convert bert-large bert-large-shards --shard-size 500M", "weight files of at most 500 MiB" },
    { 0 },
};

const ses_command ses_command_convert = {
    .name = "convert",
    .usage = "DIR OUT",
    .summary = "convert weight type, shards, adapters",
    .description =
        "Reads the model in folder DIR (safetensors, pytorch_model.bin or a TensorFlow checkpoint of "
        "google-research) and writes it to folder OUT: "
        "config.json and safetensors weights in the format of transformers, the tokenizer files and "
        "generation_config.json. "
        "int8 weights are written to model.sesame-int8, which only Sesame reads. A "
        "LoRA adapter is merged into the weights unless --keep-adapter. A sentence encoder "
        "(modules.json) keeps its modules.\n\n"
        "Values are rounded to nearest. Values out of the range of the new type, and NaN or infinity, "
        "are an error, and nothing is written. Each file is written atomically. Existing files in OUT "
        "are kept unless --overwrite is given; with it, OUT may be DIR.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .has_model_operand = true,
    .run = run,
};
