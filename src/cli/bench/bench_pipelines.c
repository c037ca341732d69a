/* bench pipelines: random texts through a small BERT with random weights, end to end. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "bench.h"
#include "cli/standard_output.h"
#include "cli/ui/text_table.h"
#include "sesame/pipeline.h"
#include "task/task.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 2000, TEXTS = 64, MAX_WORDS = 60, FIRST_WORD = 5 /* id */ };

typedef struct subject {
    const char *task, *class_name;
    ses_setting set;
} subject;

static const subject subjects[] = {
    { "fill-mask", "BertForMaskedLM", { 0 } },
    { "text-classification", "BertForSequenceClassification", { 0 } },
    { "token-classification", "BertForTokenClassification", { "aggregation_strategy", "simple" } },
    { "question-answering", "BertForQuestionAnswering", { 0 } },
    { "zero-shot-classification", "BertForSequenceClassification", { "candidate_labels", "bafa,dodu,gilo" } },
    { "feature-extraction", "BertModel", { 0 } },
    { "embed", "BertModel", { 0 } },
};

typedef struct result {
    double texts, tokens; /* per second */
} result;

/* ---- model folder ---- */

static void put_word(ses_buf *b, uint32_t i)
{
    static const char consonants[] = "bdfgklmnprst", vowels[] = "aeiou";
    for (int n = 0; n < 3; n++, i /= 60) {
        ses_buf_put(b, consonants[i % 12]);
        ses_buf_put(b, vowels[i / 12 % 5]);
    }
}

static bool write_tokenizer(const char *dir, ses_err *e)
{
    ses_buf b = { 0 };
    char *path = ses_path_join(dir, "tokenizer.json", e);
    ses_buf_puts(
        &b, "{\"added_tokens\":[{\"id\":4,\"content\":\"[MASK]\",\"special\":true,\"single_word\":false,"
            "\"lstrip\":false,\"rstrip\":false,\"normalized\":false}],"
            "\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
            "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"
            "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
            "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,"
            "\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4");
    for (uint32_t i = 0; i < WORDS; i++) {
        ses_buf_puts(&b, ",\"");
        put_word(&b, i);
        ses_buf_appendf(&b, "\":%" PRIu32, i + FIRST_WORD);
    }
    ses_buf_puts(&b, "}}}");
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, true, e);
    ses_buf_free(&b);
    ses_free(path);
    return ok;
}

static bool write_model(const ses_bench *b, const char *dir, const char *class_name, ses_err *e)
{
    char text[512];
    int n = snprintf(
        text, sizeof text,
        "{\"model_type\": \"bert\", \"architectures\": [\"%s\"], \"vocab_size\": %d, \"hidden_size\": "
        "256, \"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"intermediate_size\": 1024, "
        "\"max_position_embeddings\": 512, \"id2label\": {\"0\": \"contradiction\", \"1\": "
        "\"neutral\", \"2\": \"entailment\"}}",
        class_name, WORDS + FIRST_WORD);
    ses_json_doc *doc = ses_json_parse(text, (size_t)n, e);
    ses_model *m =
        doc ? ses_model_new(ses_json_root(doc), b->dev, &(ses_model_options){ .seed = 1 }, e) : NULL;
    bool ok = m && ses_model_save(m, dir, &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, e);
    ses_model_free(m);
    ses_json_free(doc);
    return ok;
}

static bool remove_file(void *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    if (path) ses_file_remove(path, NULL);
    ses_free(path);
    return true;
}

/* ---- measurement ---- */

typedef struct workload {
    ses_pipeline *p;
    ses_buf text[TEXTS];
    bool mask, pair, failed;
} workload;

static void fill_texts(workload *l)
{
    uint32_t state = 7;
    for (int i = 0; i < TEXTS; i++) {
        uint32_t words = 5 + (uint32_t)(i * 37 % MAX_WORDS);
        l->text[i].len = 0;
        for (uint32_t k = 0; k < words; k++) {
            state = state * 1664525 + 1013904223;
            put_word(&l->text[i], (state >> 8) % WORDS);
            ses_buf_put(&l->text[i], ' ');
        }
        if (l->mask) ses_buf_puts(&l->text[i], "[MASK]");
        l->failed |= !ses_buf_ok(&l->text[i], NULL);
    }
}

static bool ignore_result(void *ctx, const ses_result *r, ses_err *e)
{
    (void)ctx, (void)r, (void)e;
    return true;
}

static void run_texts(void *ctx, int64_t call)
{
    workload *l = ctx;
    (void)call;
    for (int i = 0; i < TEXTS && !l->failed; i++) {
        ses_item item = { .text = { l->text[i].data, l->text[i].len }, .number = i };
        if (l->pair) item.pair = item.text, item.text = ses_str("bafa dodu gilo");
        l->failed |= !ses_pipeline_feed(l->p, &item, NULL);
    }
    l->failed |= !ses_pipeline_flush(l->p, NULL);
}

static bool measure(ses_bench *b, const char *dir, const subject *s, result *r, ses_err *e)
{
    ses_setting set[] = { s->set, { 0 } };
    workload l = { .mask = !strcmp(s->task, "fill-mask"), .pair = !strcmp(s->task, "question-answering") };
    if (!write_model(b, dir, s->class_name, e)) return false;
    l.p = ses_pipeline_open(s->task, dir, b->dev, set, e);
    bool ok = l.p != NULL;
    if (ok) {
        fill_texts(&l);
        ses_pipeline_set_callback(l.p, ignore_result, NULL);
        ses_bench_case timed = { .fn = run_texts, .ctx = &l };
        run_texts(&l, 0);
        double tokens = (double)ses_pipeline_get_stats(l.p).tokens_read;
        ses_bench_time(b, &timed, 1);
        ok = !l.failed || ses_fail(e, SES_EARG, "%s failed", s->task);
        if (timed.best > 0) *r = (result){ TEXTS / timed.best, tokens / timed.best };
    }
    ses_pipeline_free(l.p);
    for (int i = 0; i < TEXTS; i++) ses_buf_free(&l.text[i]);
    return ok;
}

static bool show(const ses_bench *b, const result *r, size_t n, ses_err *e)
{
    if (b->json) {
        bool ok = true;
        for (size_t i = 0; i < n && ok; i++)
            ok = ses_bench_row(b, "pipelines", subjects[i].task, r[i].texts, "texts/s", -1, e) &&
                 ses_bench_row(b, "pipelines", subjects[i].task, r[i].tokens, "tokens/s", -1, e);
        return ok;
    }
    ses_text_table *t = ses_text_table_new("Pipeline|>Texts/s|>Tokens/s", e);
    if (!t) return false;
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(t, "%s", subjects[i].task);
        ses_text_table_cell(t, "%.0f", r[i].texts);
        ses_text_table_cell(t, "%.0f", r[i].tokens);
    }
    ses_bench_heading(b, "pipelines",
                      "  BERT with 4 layers, hidden size 256; texts of 5 to 64 words; %d thread%s",
                      b->threads, b->threads == 1 ? "" : "s");
    bool ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
    putchar('\n');
    ok = ok && ses_stdout_flush(e);
    ses_text_table_free(t);
    return ok;
}

static bool run_all(ses_bench *b, ses_err *e)
{
    const char *tmp = getenv("TMPDIR");
    char dir[1024];
    result r[SES_LEN(subjects)] = { { 0 } };
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s/sesame-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) return ses_fail(e, SES_EIO, "%s: cannot create a temporary folder", dir);
    b->total = SES_LEN(subjects);
    bool ok = write_tokenizer(dir, e);
    for (; ok && n < SES_LEN(subjects) && !ses_bench_stopped(); n++)
        ok = measure(b, dir, &subjects[n], &r[n], e);
    ses_progress_end(&b->progress);
    ok = ok && show(b, r, n, e);
    ses_dir_each(dir, remove_file, dir, NULL);
    rmdir(dir);
    return ok;
}

const ses_bench_kind ses_bench_pipelines = {
    .name = "pipelines", .run = run_all, .both_thread_counts = true, .cpu_only = true
};
