/* detokenize: decodes token ids to text. */
#include "base/alloc.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/map_lines.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "token_json.h"

#include <string.h>

#define SEPARATORS " \t\r,"

typedef struct args {
    const char *model;
    ses_opt_list files;
    bool json, keep_special, clean_up;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOKENIZER(args, model),
    SES_OPT_TEXT_FILES(args, files),
    { .name = "keep-special",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, keep_special),
      .help = "write special tokens such as [CLS], too" },
    { .name = "clean-up",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, clean_up),
      .help = "clean up tokenization spaces: no space before punctuation, \"do n't\" as \"don't\"" },
    { .name = "json",
      .letter = 'j',
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, json),
      .help = "write each text as a JSON string" },
};

typedef struct decode_job {
    const args *a;
    ses_encode_ctx *k;
    int32_t *id;
    size_t n, cap;
    ses_buf text;
} decode_job;

static bool add_id(decode_job *j, int64_t id, ses_err *e)
{
    if (id < INT32_MIN || id > INT32_MAX)
        return ses_fail(e, SES_EARG, "id %lld is not in the vocabulary", (long long)id);
    if (!ses_array_reserve(&j->id, &j->cap, j->n + 1, sizeof *j->id, e)) return false;
    j->id[j->n++] = (int32_t)id;
    return true;
}

/* An array of ids, or an object of `sesame tokenize --json` with "ids". */
static bool read_array(decode_job *j, const ses_json *v, ses_err *e)
{
    bool object = ses_json_type_of(v) == SES_JSON_OBJECT;
    if (object) v = ses_json_get(v, "ids");
    if (ses_json_type_of(v) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT,
                        object ? "no array \"ids\" in the object" : "expected an array of ids");
    for (size_t i = 0; i < ses_json_len(v); i++) {
        int64_t id;
        if (!ses_json_int(ses_json_at(v, i), &id))
            return ses_fail(e, SES_EFORMAT, "element %zu: expected an integer, found %s", i,
                            ses_json_type_name(ses_json_type_of(ses_json_at(v, i))));
        if (!add_id(j, id, e)) return false;
    }
    return true;
}

/* Reads "101 7592 102": decimal numbers separated by white space or commas. */
static bool read_plain(decode_job *j, const char *line, size_t n, ses_err *e)
{
    const char *end = line + n;
    for (const char *p = line; p < end;) {
        if (memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) {
            p++;
            continue;
        }
        const char *word = p;
        int64_t id = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++) id = id > INT32_MAX ? id : id * 10 + (*p - '0');
        if (p < end && !memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) {
            while (p < end && !memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) p++;
            return ses_fail(e, SES_EFORMAT, "%s: expected ids such as 101 7592 102, or a JSON array of ids",
                            ses_quoted_of(word, (size_t)(p - word)).s);
        }
        if (!add_id(j, id, e)) return false;
    }
    return true;
}

static bool read_ids(decode_job *j, const char *line, size_t n, ses_err *e)
{
    size_t at = 0;
    j->n = 0;
    while (at < n && memchr(SEPARATORS, line[at], sizeof SEPARATORS - 1)) at++;
    if (at == n || (line[at] != '[' && line[at] != '{')) return read_plain(j, line, n, e);
    ses_json_doc *doc = ses_json_parse_line(line, n, e);
    bool ok = doc && read_array(j, ses_json_root(doc), e);
    ses_json_free(doc);
    return ok;
}

static bool decode_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    (void)worker;
    decode_job *j = ctx;
    const char *text;
    size_t len;
    bool ok = read_ids(j, line, n, e) && ses_decode(j->k, j->id, j->n, j->a->keep_special, &text, &len, e);
    if (ok && j->a->clean_up) {
        j->text.len = 0;
        ok = ses_buf_append(&j->text, text, len) || ses_buf_ok(&j->text, e);
        text = j->text.data;
        len = ok ? ses_clean_up_tokenization(j->text.data, len) : 0;
    }
    if (ok && j->a->json)
        ses_buf_put_json_string(out, text, len);
    else if (ok)
        ses_buf_append(out, text, len);
    if (ok) ses_buf_put(out, '\n');
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    decode_job j = { .a = c->args };
    ses_tokenizer *t = ses_tokenizer_open(j.a->model, e);
    j.k = t ? ses_encode_ctx_new(t, e) : NULL;
    bool ok = j.k && ses_map_texts(c, &j.a->files, false, 1, decode_line, &j, e);
    ses_free(j.id);
    ses_buf_free(&j.text);
    ses_encode_ctx_free(j.k);
    ses_tokenizer_free(t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame detokenize -m bert-base-uncased \"101 7592 2088 102\"", "hello world" },
    { "echo '[101, 7592, 2088, 102]' | sesame detokenize -m bert-base-uncased", "hello world" },
    { 0 },
};

const ses_command ses_command_detokenize = {
    .name = "detokenize",
    .usage = "[IDS...]",
    .summary = "decode token ids to text",
    .description =
        "Decodes the ids of each text: numbers separated by spaces, a JSON array, or an object of "
        "'sesame tokenize --json'. Arguments are texts "
        "(quote the ids of a text), '-' is standard input, -f FILE reads files, one text per line. Standard "
        "input is also the default. An argument that names an existing file is read as a file, with a "
        "notice. An id outside the vocabulary is an error.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .run = run,
};
