/* tokenize: texts to tokens, ids and offsets. */
#include "base/alloc.h"
#include "base/json_list.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/map_lines.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "token_json.h"

#include <string.h>

typedef struct args {
    const char *model;
    int64_t max_length, stride, threads;
    int truncation, side;
    bool json, jsonl, no_special, stored;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOKENIZER(args, model),
    { .name = "jsonl",
      .letter = 'l',
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, jsonl),
      .help = "each line is an object: {\"text\": ...} or {\"words\": [...]}, with \"text_pair\" or "
              "\"words_pair\" perhaps" },
    { .name = "json",
      .letter = 'j',
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, json),
      .help = "write one object a line instead of tokens" },
    { .name = "max-length",
      .type = SES_OPT_INT,
      .offset = offsetof(args, max_length),
      .def = "-1",
      .min = -1,
      .max = INT32_MAX,
      .help = "cut to this many tokens, special ones included; -1: do not" },
    { .name = "stride",
      .type = SES_OPT_INT,
      .offset = offsetof(args, stride),
      .def = "0",
      .min = 0,
      .max = INT32_MAX,
      .help = "tokens a cut-off part repeats of the one before" },
    { .name = "truncation",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, truncation),
      .choices = "longest_first|only_first|only_second",
      .help = "which of two texts to cut; with --max-length, without this: longest_first" },
    { .name = "truncation-side",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, side),
      .choices = "left|right",
      .help = "where to cut; without it right" },
    { .name = "no-special",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, no_special),
      .help = "leave out special tokens such as [CLS] and [SEP]" },
    { .name = "stored-limits",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, stored),
      .help = "truncate and pad as the tokenizer's file says" },
    SES_OPT_THREADS(args, threads),
};

typedef struct job {
    const args *a;
    const ses_term *term;
    ses_encode_options options;
    ses_tokens **tokens; /* one a worker */
    bool *failed;        /* a line of this worker has */
} job;

/* ---- tokens for a person ---- */

static void put_name(ses_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            ses_buf_appendf(out, "\\x%02x", (unsigned char)s[i]);
        else
            ses_buf_put(out, s[i]);
}

/* On a terminal words change color, so that one sees which pieces belong together. */
static void put_tokens(const job *j, const ses_tokens *k, const ses_encoding *e, ses_buf *out)
{
    static const ses_style cycle[] = { SES_GREEN, SES_BLUE, SES_YELLOW };
    for (size_t i = 0; i < e->n; i++) {
        size_t n;
        const char *s = ses_tokens_string(k, e, i, &n);
        if (i) ses_buf_put(out, ' ');
        ses_buf_puts(out, ses_style_on(j->term, e->special_mask[i]
                                                    ? SES_DIM
                                                    : cycle[(size_t)e->word_id[i] % SES_LEN(cycle)]));
        put_name(out, s ? s : "", s ? n : 0);
        ses_buf_puts(out, ses_style_on(j->term, SES_PLAIN));
    }
    ses_buf_put(out, '\n');
}

static bool show(const job *j, ses_tokens *k, ses_buf *out, ses_err *e)
{
    if (j->a->json) return ses_token_json(k, out, e);
    put_tokens(j, k, ses_tokens_result(k), out);
    for (size_t i = 0; i < ses_tokens_overflow_count(k); i++) {
        const ses_encoding *part = ses_tokens_overflow(k, i, e);
        if (!part) return false;
        ses_buf_puts(out, "  + ");
        put_tokens(j, k, part, out);
    }
    return true;
}

/* ---- lines ---- */

static bool need_text(const ses_json *v, const char *key, ses_string *out, ses_err *e)
{
    out->p = ses_json_string(ses_json_get(v, key), &out->n);
    return out->p || ses_fail(e, SES_EFORMAT, "key \"%s\" must be a string, not %s", key,
                              ses_json_type_name(ses_json_type_of(ses_json_get(v, key))));
}

/* The strings of an array; free them with ses_free. */
static ses_string *read_words(const ses_json *object, const char *key, size_t *n, ses_err *e)
{
    ses_string *words = ses_json_strings(ses_json_get(object, key), n, e);
    if (!words) ses_wrap(e, "key \"%s\"", key);
    return words;
}

static bool present(const ses_json *v, const char *key)
{
    const ses_json *member = ses_json_get(v, key);
    return member && ses_json_type_of(member) != SES_JSON_NULL;
}

/* words: to be freed, both. */
static bool read_object(const ses_json *v, ses_input *in, ses_string *words[2], ses_err *e)
{
    if (ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "a line must be an object, not %s",
                        ses_json_type_name(ses_json_type_of(v)));
    bool split = present(v, "words"), split_pair = present(v, "words_pair");
    if (split && (present(v, "text") || present(v, "text_pair")))
        return ses_fail(e, SES_EFORMAT, "\"words\" goes without \"text\" and \"text_pair\"");
    if (split_pair && !split) return ses_fail(e, SES_EFORMAT, "\"words_pair\" needs \"words\"");
    if (!split && !ses_json_get(v, "text"))
        return ses_fail(e, SES_EFORMAT, "key \"text\" is missing, or \"words\"");
    if (!split)
        return need_text(v, "text", &in->text, e) &&
               (!present(v, "text_pair") || need_text(v, "text_pair", &in->pair, e));
    in->words = words[0] = read_words(v, "words", &in->n_words, e);
    if (in->words && split_pair)
        in->pair_words = words[1] = read_words(v, "words_pair", &in->n_pair_words, e);
    return in->words && (in->pair_words || !split_pair);
}

static bool encode_object(job *j, ses_tokens *k, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    ses_input in = { 0 };
    ses_string *words[2] = { 0 };
    ses_json_doc *doc = ses_json_parse(line, n, e);
    bool ok = doc && read_object(ses_json_root(doc), &in, words, e) && ses_encode(k, &in, &j->options, e) &&
              show(j, k, out, e);
    ses_free(words[0]);
    ses_free(words[1]);
    ses_json_free(doc);
    return ok;
}

static bool one_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    job *j = ctx;
    ses_tokens *k = j->tokens[worker];
    if (!j->a->jsonl)
        return ses_encode(k, &(ses_input){ .text = { line, n } }, &j->options, e) && show(j, k, out, e);
    size_t at = out->len;
    if (encode_object(j, k, line, n, out, e)) return true;
    if (e->code == SES_ENOMEM) return false;
    out->len = at;
    ses_buf_puts(out, "{\"error\":");
    ses_buf_put_json_string(out, e->msg, strlen(e->msg));
    ses_buf_puts(out, "}\n");
    ses_err_clear(e);
    j->failed[worker] = true;
    return true;
}

static bool set_options(const args *a, ses_encode_options *o, ses_err *e)
{
    *o = (ses_encode_options){ .no_special = a->no_special, .use_stored_limits = a->stored };
    if (a->max_length < 0) {
        if (a->stride) return ses_fail(e, SES_EUSAGE, "--stride needs --max-length");
        if (a->truncation >= 0) return ses_fail(e, SES_EUSAGE, "--truncation needs --max-length");
        if (a->side >= 0) return ses_fail(e, SES_EUSAGE, "--truncation-side needs --max-length");
        return true;
    }
    if (a->stride && a->stride >= a->max_length)
        return ses_fail(e, SES_EUSAGE, "--stride %lld must be less than --max-length %lld",
                        (long long)a->stride, (long long)a->max_length);
    o->truncation = a->truncation < 0 ? SES_TRUNCATE_LONGEST_FIRST
                                      : (ses_truncation)(SES_TRUNCATE_LONGEST_FIRST + a->truncation);
    o->max_length = a->max_length;
    o->stride = a->stride;
    o->truncate_left = a->side == 0;
    return true;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    int threads = a->threads ? (int)a->threads : ses_cpu_count();
    job j = { .a = a, .term = &c->out };
    if (!set_options(a, &j.options, e)) return false;
    ses_tokenizer *t = ses_tokenizer_open(a->model, e);
    j.tokens = t ? ses_alloc_array((size_t)threads, sizeof *j.tokens, e) : NULL;
    j.failed = j.tokens ? ses_alloc_array((size_t)threads, sizeof *j.failed, e) : NULL;
    bool ok = j.failed != NULL;
    for (int i = 0; ok && i < threads; i++) ok = (j.tokens[i] = ses_tokens_new(t, e)) != NULL;
    ok = ok && ses_map_lines(c->operands, threads, one_line, &j, e);
    for (int i = 0; i < threads; i++) {
        if (j.tokens) ses_tokens_free(j.tokens[i]);
        if (j.failed && j.failed[i]) ok = false;
    }
    ses_free(j.tokens);
    ses_free(j.failed);
    ses_tokenizer_free(t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "echo 'Hello world' | sesame tokenize -m bert-base-uncased", "tokens of a line" },
    { "sesame tokenize -m tokenizer.json --json book.txt", "ids, tokens and offsets, one object a line" },
    { "sesame tokenize -m DIR --jsonl --json --max-length 384 --stride 128 pairs.jsonl",
      "pairs cut to length, with what was cut off" },
    { 0 },
};

const ses_command ses_command_tokenize = {
    .name = "tokenize",
    .usage = "[FILE...]",
    .summary = "tokenize text",
    .description =
        "Reads files, or standard input, one text a line, and writes the tokens of each on a line. On a "
        "terminal the pieces of a word have one color. Files packed with gzip, xz or zstd are unpacked on "
        "the way.\n\n"
        "With --json each line is an object: ids, tokens, offsets (in code points), byte_offsets, word_ids, "
        "type_ids, special_tokens_mask, and overflowing, the parts cut off, where there are any.\n\n"
        "With --jsonl each input line is an object. One that fails gives {\"error\": ...}; the rest go on, "
        "and the exit status is 1.\n\n"
        "In a folder, tokenizer.json wins over older files. Bytes that are not UTF-8 count as U+FFFD.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .run = run,
};
