/* Builds, updates and opens the vector index of a text file. */
#define _POSIX_C_SOURCE 200809L
#include "text_index.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "cli/input_size.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "hub/hub_name.h"
#include "io/records_range.h"
#include "io/text_decoder.h"
#include "line_reader.h"
#include "model/bundled_models.h"
#include "sesame/sentence.h"
#include "sesame/unstable/table.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

static const char probe_text[] = "The quick brown fox jumps over the lazy dog; 0 1 2 3.";
static const float probe_tolerance = 1e-3f; /* distance of unit vectors; devices differ by 1e-6 */

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_text_index_args, model, "model", "DIR",
        "sentence encoder: model folder, or a name listed by 'sesame models'; default: the bundled one",
        .letter = 'm', .is_model = true),
    SES_OPT_TEXT(ses_text_index_args, column, "column", "NAME|N",
                 "read the texts from this column of a CSV, TSV or JSON-lines file, chosen by its suffix"),
    SES_OPT_TEXT(ses_text_index_args, jsonl, "jsonl", "KEY", "read the texts from this key of JSON lines"),
    SES_OPT_ENCODING(ses_text_index_args, encoding),
    SES_OPT_FLAG(ses_text_index_args, no_header, "no-header",
                 "with --column: the first line is a row, columns are numbers"),
    SES_OPT_TEXT(ses_text_index_args, output, "output", "INDEX", "index file; default: FILE.sesame-index",
                 .letter = 'o', .alias = "to"),
    SES_OPT_TEXT(ses_text_index_args, text_prompt, "text-prompt", "TEXT",
                 "put TEXT before each text; default: the folder's prompt \"document\", \"passage\" or "
                 "\"corpus\", otherwise its default prompt"),
    SES_OPT_CHOICE(ses_text_index_args, dtype, "dtype", NULL, "f16|int8",
                   "type of the stored vectors; default: that of the existing index, otherwise f16"),
    SES_OPT_FLAG(ses_text_index_args, rebuild, "rebuild",
                 "build the index again, also if it is damaged or from another model"),
    SES_OPT_TEXT(ses_text_index_args, device, "device", "DEVICE", "device of the model: cpu, cuda or cuda:N",
                 .def = "cpu", .env = "SESAME_DEVICE"),
    SES_OPT_THREADS(ses_text_index_args, threads),
    SES_OPT_JSON(ses_text_index_args, json),
};
const ses_opt_table ses_text_index_options = { opt, SES_LEN(opt) };

typedef struct build_job {
    const ses_call *call;
    const ses_text_index_args *a;
    ses_text_index *t;
    const char *file;
    const ses_vector_index *old; /* NULL: none whose vectors can be reused */
    ses_strmap old_texts;        /* text to its number in `old` */
    ses_index_builder *builder;
    ses_progress progress;
} build_job;

const char *ses_text_index_unit(const ses_text_index_args *a)
{
    return a->column || a->jsonl ? "row" : "line";
}

/* Blocks signals: threads that start now inherit the mask, so only the main thread receives them. */
static sigset_t block_signals(void)
{
    sigset_t s, before;
    sigemptyset(&s);
    sigaddset(&s, SIGINT);
    sigaddset(&s, SIGTERM);
    sigaddset(&s, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s, &before);
    return before;
}

/* ---- the file of texts ---- */

static bool stat_file(const char *file, struct stat *s, ses_err *e)
{
    if (stat(file, s)) return ses_fail(e, SES_EIO, "%s: %s", file, strerror(errno));
    return S_ISREG(s->st_mode) || ses_fail(e, SES_EARG, "%s: expected a regular file", file);
}

static bool describe_source(const ses_text_index_args *a, const char *file, ses_index_source *s, ses_err *e)
{
    struct stat st;
    if (!stat_file(file, &st, e)) return false;
    const char *name = a->column ? a->column : a->jsonl ? a->jsonl : "";
    uint64_t kind = (a->column ? 1 + a->no_header : a->jsonl ? 3 : 0) + 4 * (uint64_t)a->encoding;
    *s = (ses_index_source){ .size = (uint64_t)st.st_size,
                             .mtime_ns =
                                 (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
                             .settings = ses_checksum_join(kind, ses_checksum(name, strlen(name))) };
    return true;
}

static bool is_same_stat(const ses_index_source *a, const ses_index_source *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

static bool is_blank(ses_string s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!memchr(" \t\r\n\v\f", s.p[i], 6)) return false;
    return true;
}

/* ---- building ---- */

static bool on_vector(void *ctx, const ses_result *r, ses_err *e)
{
    build_job *j = ctx;
    j->t->embedded++;
    return ses_index_builder_set(j->builder, r->item->number, r->vectors, e);
}

static bool add_text(build_job *j, ses_string text, int64_t number, ses_err *e)
{
    int64_t at = ses_index_builder_count(j->builder), from;
    if (is_blank(text)) return true;
    if (!ses_index_builder_add(j->builder, text.p, text.n, number, e)) return false;
    if (j->old && ses_strmap_find(&j->old_texts, text.p, text.n, &from)) {
        j->t->reused++;
        return ses_index_builder_copy(j->builder, at, j->old, from, e);
    }
    sigset_t before = block_signals(); /* the first full batch starts a thread */
    bool ok = ses_pipeline_feed(j->t->embed, &(ses_item){ .text = text, .number = at }, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok || ses_wrap(e, "%s: %s %lld", j->file, ses_text_index_unit(j->a), (long long)number);
}

static bool add_lines(build_job *j, ses_err *e)
{
    ses_span whole = ses_line_whole_file(j->file);
    ses_line_reader in = { .span = j->t->part ? j->t->part : &whole,
                           .n_spans = 1,
                           .encoding = (ses_text_encoding)j->a->encoding };
    const char *line;
    size_t n;
    ses_line_status got = SES_LINE_END;
    bool ok = true;
    while (ok && (got = ses_line_next(&in, &line, &n, e)) == SES_LINE_OK) {
        ok = ses_text_check(line, n, e) || ses_wrap(e, "%s: line %lld", j->file, (long long)in.line);
        ok = ok && add_text(j, (ses_string){ line, n }, j->t->records = in.line, e);
        ses_progress_show(&j->progress, ses_line_progress(&in));
    }
    ses_line_reader_close(&in);
    return ok && got != SES_LINE_ERROR;
}

static bool add_rows(build_job *j, ses_err *e)
{
    const char *column = j->a->column ? j->a->column : j->a->jsonl;
    ses_records_options o = { .columns = &column,
                              .n_columns = 1,
                              .no_header = j->a->no_header,
                              .encoding = (ses_text_encoding)j->a->encoding,
                              .format = j->a->jsonl ? SES_TABLE_JSONL : SES_TABLE_AUTO };
    const ses_string *row;
    ses_records *r = ses_records_open(j->file, &o, e);
    const ses_span *part = j->t->part;
    bool ok = r && (!part || ses_records_set_range(r, j->file, part->begin, part->end, e) ||
                    ses_wrap(e, "%s", j->file));
    for (int64_t number = 1; ok; number++) {
        if (!ses_records_next(r, &row, e)) ok = ses_wrap(e, "%s", j->file);
        if (!ok || !row) break;
        ok = add_text(j, row[0], j->t->records = number, e);
        ses_progress_show(&j->progress, (int64_t)ses_records_consumed(r));
    }
    ses_records_free(r);
    return ok;
}

static bool map_old_texts(build_job *j, ses_err *e)
{
    int64_t n = ses_vector_index_info_of(j->old)->count;
    bool fresh;
    if (!ses_strmap_reserve(&j->old_texts, (size_t)n, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        ses_string s = ses_vector_index_text(j->old, i);
        if (!ses_strmap_insert(&j->old_texts, s.p, s.n, i, &fresh, e)) return false;
    }
    return true;
}

/* Writes the index with signals blocked: an interrupted write would leave its temporary file. */
static bool write_index(build_job *j, const ses_index_source *source, ses_err *e)
{
    ses_index_source now;
    if (!describe_source(j->a, j->file, &now, e)) return false;
    if (!is_same_stat(&now, source))
        return ses_fail(e, SES_EIO, "%s: changed while it was read; run the command again", j->file);
    sigset_t before = block_signals();
    bool ok =
        ses_index_builder_write(j->builder, source, ses_model_label_of(j->a->model).s, j->t->probe, true, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static bool build(build_job *j, ses_index_source *source, ses_err *e)
{
    ses_text_index *t = j->t;
    bool table = j->a->column || j->a->jsonl;
    const ses_vector_index_info *old = t->index ? ses_vector_index_info_of(t->index) : NULL;
    ses_dtype dtype = j->a->dtype == 1 || (j->a->dtype < 0 && old && old->dtype == SES_I8) ? SES_I8 : SES_F16;
    if (old && old->dtype == dtype) j->old = t->index;
    j->progress =
        ses_progress_start(stderr, &j->call->err, j->call->quiet, "index", ses_input_size(&j->file, 1));
    ses_pipeline_set_callback(t->embed, on_vector, j);
    j->builder = ses_index_builder_new(t->path, dtype, t->dim, e);
    bool ok = j->builder && (!j->old || map_old_texts(j, e)) &&
              ses_index_hash_file(j->file, &source->hash, e) && (table ? add_rows(j, e) : add_lines(j, e)) &&
              ses_pipeline_flush(t->embed, e);
    ses_progress_end(&j->progress);
    ses_pipeline_set_callback(t->embed, NULL, NULL);
    t->truncated = ses_pipeline_get_stats(t->embed).truncated;
    t->is_written = ok = ok && write_index(j, source, e);
    ses_index_builder_free(j->builder);
    ses_strmap_free(&j->old_texts);
    return ok;
}

/* ---- opening ---- */

bool ses_text_index_embed(ses_text_index *t, ses_string text, float *out, ses_err *e)
{
    const ses_result *r = ses_pipeline_run(t->queries, &(ses_item){ .text = text }, e);
    if (!r) return false;
    memcpy(out, r->vectors, (size_t)t->dim * sizeof *out);
    return true;
}

/* A pipeline with a prompt; NULL: the default prompt of the folder. */
static ses_pipeline *open_with_prompt(const ses_text_index *t, const char *prompt, ses_err *e)
{
    ses_setting settings[] = { { prompt ? "prompt" : NULL, prompt }, { 0 } };
    ses_pipeline_options o = { .settings = settings,
                               .encoder = ses_pipeline_encoder(t->encoder),
                               .tokenizer = ses_pipeline_tokenizer(t->encoder) };
    return ses_pipeline_open_with("embed", NULL, NULL, &o, e);
}

/* Prompts of queries and texts by their names, as encode_query and encode_document of sentence-transformers
 * choose them. */
static bool open_pipelines(ses_text_index *t, const ses_text_index_args *a, ses_err *e)
{
    static const char *const names[] = { "document", "passage", "corpus" };
    const ses_sentence *s = ses_pipeline_encoder(t->encoder);
    const char *text = a->text_prompt, *query = a->prompt;
    for (size_t i = 0; i < SES_LEN(names) && !text; i++) text = ses_sentence_prompt(s, names[i]);
    if (!query) query = ses_sentence_prompt(s, a->prompt_name ? a->prompt_name : "query");
    if (!query && a->prompt_name)
        return ses_fail(e, SES_EARG, "--prompt-name: the model has no prompt \"%s\"", a->prompt_name);
    t->embed = open_with_prompt(t, text, e);
    t->queries = t->embed ? open_with_prompt(t, query, e) : NULL;
    return t->queries != NULL;
}

static bool open_model(ses_text_index *t, const ses_text_index_args *a, ses_err *e)
{
    static const ses_setting normalized[] = { { "normalize", "true" }, { 0 } };
    ses_compute_args compute = { .threads = a->threads, .isa = -1, .device = a->device };
    ses_device_options o = ses_compute_device_options(&compute);
    t->pool = ses_thread_pool_new(ses_compute_threads(&compute), e);
    t->dev = t->pool ? ses_device_open(a->device, &o, e) : NULL;
    t->encoder = t->dev ? ses_pipeline_open("embed", a->model, t->dev, normalized, e) : NULL;
    if (!t->encoder || !open_pipelines(t, a, e)) return false;
    const ses_result *r = ses_pipeline_run(t->embed, &(ses_item){ .text = ses_str(probe_text) }, e);
    if (!r) return false;
    t->dim = r->vector_size;
    t->probe = ses_alloc_array((size_t)t->dim, sizeof *t->probe, e);
    if (t->probe) memcpy(t->probe, r->vectors, (size_t)t->dim * sizeof *t->probe);
    return t->probe != NULL;
}

static bool check_model(const ses_text_index *t, const ses_text_index_args *a, ses_err *e)
{
    const ses_vector_index_info *info = ses_vector_index_info_of(t->index);
    const float *probe = ses_vector_index_probe(t->index);
    float distance = 0;
    for (int64_t i = 0; info->dim == t->dim && i < t->dim; i++)
        distance += (probe[i] - t->probe[i]) * (probe[i] - t->probe[i]);
    if (info->dim == t->dim && sqrtf(distance) <= probe_tolerance) return true;
    char model[512];
    ses_model_spelling(a->model, model, sizeof model);
    return ses_fail(
        e, SES_EARG,
        "%s: built with another model or prompt (%s, %lld numbers), not %s (%lld); use the same --model, "
        "another -o, or --rebuild",
        t->path, ses_quoted_of(info->model_name, strlen(info->model_name)).s, (long long)info->dim, model,
        (long long)t->dim);
}

/* --rebuild replaces an index, whatever its state, but no other file. */
static bool check_replaceable(const ses_text_index *t, const ses_text_index_args *a, ses_err *e)
{
    ses_mmap m;
    if (!a->output || !ses_path_exists(t->path)) return true;
    if (!ses_mmap_open(&m, t->path, e)) return false;
    bool is_index = m.size >= 8 && !memcmp(m.data, SES_VECTOR_INDEX_MAGIC, 8);
    ses_mmap_free(&m);
    return is_index ||
           ses_fail(e, SES_EARG, "%s: exists and is not an index; remove it or choose another -o", t->path);
}

static bool open_index(ses_text_index *t, ses_err *e)
{
    t->index = ses_vector_index_open(t->path, e);
    return t->index && (ses_vector_index_verify(t->index, t->pool, e) || ses_wrap(e, "%s", t->path));
}

/* Whether the open index has the texts of the file. */
static bool is_current(const ses_text_index *t, const ses_text_index_args *a, const char *file,
                       const ses_index_source *now, bool *current, ses_err *e)
{
    const ses_vector_index_info *info = ses_vector_index_info_of(t->index);
    uint64_t hash;
    *current = now->settings == info->source.settings && now->size == info->source.size &&
               (a->dtype < 0 || (a->dtype == 1) == (info->dtype == SES_I8));
    if (!*current || is_same_stat(now, &info->source)) return true;
    if (!ses_index_hash_file(file, &hash, e)) return false;
    *current = hash == info->source.hash;
    return true;
}

static bool set_path(ses_text_index *t, const ses_text_index_args *a, const char *file, ses_err *e)
{
    ses_buf name = { 0 };
    if (a->output)
        ses_buf_puts(&name, a->output);
    else
        ses_buf_appendf(&name, "%s.sesame-index", file);
    t->path = ses_buf_ok(&name, e) ? ses_strdup(name.data, e) : NULL;
    ses_buf_free(&name);
    return t->path != NULL;
}

bool ses_text_index_open(ses_text_index *t, const ses_call *c, const ses_text_index_args *a, const char *file,
                         ses_err *e)
{
    ses_index_source source;
    bool current = false;
    if (a->column && a->jsonl) return ses_fail(e, SES_EUSAGE, "--column and --jsonl exclude each other");
    if (a->no_header && !a->column) return ses_fail(e, SES_EUSAGE, "--no-header needs --column");
    if (!describe_source(a, file, &source, e) || !set_path(t, a, file, e)) return false;
    sigset_t before = block_signals();
    bool ok = open_model(t, a, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!ok) return false;
    if (a->rebuild || t->part) {
        if (!check_replaceable(t, a, e)) return false;
    } else if (ses_path_exists(t->path)) {
        if (!open_index(t, e) || !check_model(t, a, e) || !is_current(t, a, file, &source, &current, e))
            return false;
    }
    if (current) return true;
    if (!a->column && !a->jsonl) ses_hint_table_lines(c, file);
    build_job j = { .call = c, .a = a, .t = t, .file = file };
    if (!build(&j, &source, e)) return false;
    ses_vector_index_free(t->index);
    return open_index(t, e);
}

void ses_text_index_close(ses_text_index *t)
{
    ses_vector_index_free(t->index);
    ses_pipeline_free(t->queries);
    ses_pipeline_free(t->embed);
    ses_pipeline_free(t->encoder);
    ses_device_free(t->dev);
    ses_thread_pool_free(t->pool);
    ses_free(t->path);
    ses_free(t->probe);
}
