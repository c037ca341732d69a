/* tokenize: converts texts to tokens, ids and offsets. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/map_lines.h"
#include "cli/standard_output.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "text/tokenizer_config.h"
#include "token_json.h"

#include <string.h>

typedef struct args {
    const char *model;
    int64_t max_length, stride, threads;
    int truncation, side, padding;
    ses_text_files files;
    bool json, jsonl, no_special, stored;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOKENIZER(args, model),
    SES_OPT_TEXT_FILES(args, files),
    SES_OPT_FLAG(
        args, jsonl, "jsonl",
        "input lines are objects: {\"text\": ...} or {\"words\": [...]}, with an optional \"text_pair\" "
        "or \"words_pair\"",
        .letter = 'l'),
    SES_OPT_FLAG(args, json, "json", "write an object per line instead of tokens", .letter = 'j'),
    SES_OPT_INT(args, max_length, "max-length", "-1", -1, INT32_MAX,
                "truncate to this many tokens, special tokens included; -1: no truncation"),
    SES_OPT_INT(args, stride, "stride", "0", 0, INT32_MAX,
                "number of tokens by which overflowing parts overlap"),
    SES_OPT_CHOICE(args, truncation, "truncation", NULL, "longest_first|only_first|only_second",
                   "which text of a pair to truncate; default with --max-length: longest_first"),
    SES_OPT_CHOICE(args, side, "truncation-side", NULL, "left|right", "side to truncate; default: right"),
    SES_OPT_CHOICE(
        args, padding, "padding", NULL, "longest|max",
        "pad to the longest text of the input, or to --max-length (default: the tokenizer's); --json then "
        "has attention_mask"),
    SES_OPT_FLAG(args, no_special, "no-special", "do not add special tokens such as [CLS] and [SEP]"),
    SES_OPT_FLAG(args, stored, "stored-limits",
                 "apply the truncation and padding settings stored in the tokenizer file"),
    SES_OPT_THREADS(args, threads),
};

typedef struct tokenize_job {
    const args *a;
    const ses_term *term;
    ses_encode_options options;
    ses_encode_ctx **tokens; /* one per worker */
    bool *failed;            /* per worker: a line failed */
    int64_t longest;         /* tokens of the longest text so far, while measuring */
    bool measuring;          /* nothing is written */
    ses_buf lines;           /* the texts that were measured, each after its length */
} tokenize_job;

enum { PAD_LONGEST, PAD_MAX };

/* ---- text output ---- */

static void put_token(ses_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            ses_buf_appendf(out, "\\x%02x", (unsigned char)s[i]);
        else
            ses_buf_put(out, s[i]);
}

/* On a terminal the tokens of a word share a color. */
static void put_tokens(const tokenize_job *j, const ses_encode_ctx *k, const ses_encoding *x, ses_buf *out)
{
    static const ses_style cycle[] = { SES_GREEN, SES_BLUE, SES_YELLOW };
    for (size_t i = 0; i < x->n; i++) {
        size_t n;
        const char *s = ses_encode_ctx_string(k, x, i, &n);
        if (i) ses_buf_put(out, ' ');
        ses_buf_puts(out, ses_style_on(j->term, x->special_mask[i]
                                                    ? SES_DIM
                                                    : cycle[(size_t)x->word_id[i] % SES_LEN(cycle)]));
        put_token(out, s ? s : "", s ? n : 0);
        ses_buf_puts(out, ses_style_on(j->term, SES_PLAIN));
    }
    ses_buf_put(out, '\n');
}

static bool measure(tokenize_job *j, ses_encode_ctx *k, ses_err *e)
{
    const ses_encoding *x = ses_encode_ctx_result(k);
    for (size_t i = 0; x; x = ses_encode_ctx_overflow(k, i++, e)) {
        if ((int64_t)x->n > j->longest) j->longest = (int64_t)x->n;
        if (i == ses_encode_ctx_overflow_count(k)) return true;
    }
    return false;
}

static bool show(tokenize_job *j, ses_encode_ctx *k, ses_buf *out, ses_err *e)
{
    if (j->measuring) return measure(j, k, e);
    if (j->a->json) return ses_token_json(k, j->a->padding >= 0, out, e);
    put_tokens(j, k, ses_encode_ctx_result(k), out);
    for (size_t i = 0; i < ses_encode_ctx_overflow_count(k); i++) {
        const ses_encoding *part = ses_encode_ctx_overflow(k, i, e);
        if (!part) return false;
        ses_buf_puts(out, "  + ");
        put_tokens(j, k, part, out);
    }
    return true;
}

/* ---- lines ---- */

static bool read_text(const ses_json *v, const char *key, ses_string *out, ses_err *e)
{
    out->p = ses_json_string(ses_json_get(v, key), &out->n);
    return out->p || ses_fail(e, SES_EFORMAT, "key \"%s\": expected a string, found %s", key,
                              ses_json_type_name(ses_json_type_of(ses_json_get(v, key))));
}

/* The strings of an array; free them with ses_free. */
static ses_string *read_words(const ses_json *object, const char *key, size_t *n, ses_err *e)
{
    ses_string *words = ses_json_strings(ses_json_get(object, key), n, e);
    if (!words) ses_wrap(e, "key \"%s\"", key);
    return words;
}

static bool has_value(const ses_json *v, const char *key)
{
    const ses_json *member = ses_json_get(v, key);
    return member && ses_json_type_of(member) != SES_JSON_NULL;
}

/* The caller frees words[0] and words[1]. */
static bool read_object(const ses_json *v, ses_input *in, ses_string *words[2], ses_err *e)
{
    if (ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "expected an object, found %s",
                        ses_json_type_name(ses_json_type_of(v)));
    bool pretokenized = has_value(v, "words"), pair_pretokenized = has_value(v, "words_pair");
    if (pretokenized && (has_value(v, "text") || has_value(v, "text_pair")))
        return ses_fail(e, SES_EFORMAT, "\"words\" cannot be combined with \"text\" or \"text_pair\"");
    if (pair_pretokenized && !pretokenized)
        return ses_fail(e, SES_EFORMAT, "\"words_pair\" requires \"words\"");
    if (!pretokenized && !ses_json_get(v, "text"))
        return ses_fail(e, SES_EFORMAT, "expected a key \"text\" or \"words\"");
    if (!pretokenized)
        return read_text(v, "text", &in->text, e) &&
               (!has_value(v, "text_pair") || read_text(v, "text_pair", &in->pair, e));
    in->words = words[0] = read_words(v, "words", &in->n_words, e);
    if (in->words && pair_pretokenized)
        in->pair_words = words[1] = read_words(v, "words_pair", &in->n_pair_words, e);
    return in->words && (in->pair_words || !pair_pretokenized);
}

static bool encode_object(tokenize_job *j, ses_encode_ctx *k, const char *line, size_t n, ses_buf *out,
                          ses_err *e)
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

static bool encode_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    tokenize_job *j = ctx;
    ses_encode_ctx *k = j->tokens[worker];
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

/* ---- padding ---- */

/* Sets the length, side and token of padding; PAD_LONGEST: without the length. */
static bool set_padding(tokenize_job *j, const ses_tokenizer *t, ses_err *e)
{
    const args *a = j->a;
    ses_encode_options *o = &j->options;
    ses_tokenizer_config c;
    if (a->padding < 0) return true;
    if (!ses_path_is_dir(a->model))
        ses_tokenizer_config_from_json(&c, NULL, NULL, NULL, NULL, t);
    else if (!ses_tokenizer_config_read(&c, a->model, NULL, NULL, t, e))
        return false;
    if (c.role[SES_ROLE_PAD] < 0)
        return ses_fail(e, SES_EFORMAT,
                        "%s: the tokenizer has no padding token: set \"pad_token\" in tokenizer_config.json",
                        a->model);
    o->has_pad_id = true;
    o->pad_id = c.role[SES_ROLE_PAD];
    o->pad_left = c.pad_left;
    if (a->padding == PAD_LONGEST) return true;
    o->pad_to = a->max_length > 0 ? a->max_length : c.model_max_length;
    return o->pad_to > 0 || ses_fail(e, SES_EUSAGE,
                                     "--padding max: the tokenizer stores no maximum length; "
                                     "give --max-length");
}

static bool measure_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    tokenize_job *j = ctx;
    size_t at = out->len, len = n;
    if (!encode_line(ctx, worker, line, n, out, e)) return false;
    out->len = at;
    j->failed[worker] = false; /* a line that fails fails again when it is written */
    ses_buf_append(&j->lines, &len, sizeof len);
    ses_buf_append(&j->lines, line, n);
    return ses_buf_ok(&j->lines, e);
}

/* Reads all texts, then writes them padded to the longest. */
static bool pad_to_longest(tokenize_job *j, ses_call *c, ses_err *e)
{
    ses_buf out = { 0 };
    j->measuring = true;
    bool ok = ses_map_texts(c, &j->a->files, j->a->jsonl, 1, measure_line, j, e);
    j->measuring = false;
    j->options.pad_to = j->longest;
    for (size_t at = 0, n; ok && at < j->lines.len; at += sizeof n + n) {
        memcpy(&n, j->lines.data + at, sizeof n);
        out.len = 0;
        ok = encode_line(j, 0, j->lines.data + at + sizeof n, n, &out, e) && ses_buf_ok(&out, e) &&
             ses_stdout_write(out.data, out.len, e);
    }
    ses_buf_free(&out);
    ses_buf_free(&j->lines);
    return ok;
}

static bool set_options(const args *a, ses_encode_options *o, ses_err *e)
{
    *o = (ses_encode_options){ .no_special = a->no_special, .use_stored_limits = a->stored };
    if (a->padding >= 0 && a->stored)
        return ses_fail(e, SES_EUSAGE, "--padding and --stored-limits are mutually exclusive");
    if (a->max_length < 0) {
        if (a->stride) return ses_fail(e, SES_EUSAGE, "--stride requires --max-length");
        if (a->truncation >= 0) return ses_fail(e, SES_EUSAGE, "--truncation requires --max-length");
        if (a->side >= 0) return ses_fail(e, SES_EUSAGE, "--truncation-side requires --max-length");
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
    tokenize_job j = { .a = a, .term = &c->out };
    if (!set_options(a, &j.options, e)) return false;
    ses_tokenizer *t = ses_tokenizer_open(a->model, e);
    j.tokens = t ? ses_alloc_array((size_t)threads, sizeof *j.tokens, e) : NULL;
    j.failed = j.tokens ? ses_alloc_array((size_t)threads, sizeof *j.failed, e) : NULL;
    bool ok = j.failed != NULL && set_padding(&j, t, e);
    for (int i = 0; ok && i < threads; i++) ok = (j.tokens[i] = ses_encode_ctx_new(t, e)) != NULL;
    if (ok && a->padding == PAD_LONGEST)
        ok = pad_to_longest(&j, c, e);
    else if (ok)
        ok = ses_map_texts(c, &a->files, a->jsonl, threads, encode_line, &j, e);
    for (int i = 0; i < threads; i++) {
        if (j.tokens) ses_encode_ctx_free(j.tokens[i]);
        if (j.failed && j.failed[i]) ok = false;
    }
    ses_free(j.tokens);
    ses_free(j.failed);
    ses_tokenizer_free(t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame tokenize \"Hello world\"", "print the tokens of a text, with the bundled encoder's tokenizer" },
    { "sesame tokenize -m tokenizer.json --json -f book.txt",
      "ids, tokens and offsets, a JSON line per text" },
    { "sesame tokenize -m DIR --jsonl --json --max-length 384 --stride 128 pairs.jsonl",
      "truncate pairs and write the overflowing tokens" },
    { "sesame tokenize --json --padding longest \"A long text.\" Short", "padded, with attention_mask" },
    { 0 },
};

const ses_command ses_command_tokenize = {
    .name = "tokenize",
    .usage = "[TEXT...]",
    .summary = "tokenize text",
    .description =
        "Writes the tokens of each text on a line. Arguments are texts, '-' is standard input, -f FILE "
        "reads files, one text per line. Standard input is also the default. On a terminal the tokens of a "
        "word share a color. "
        "Files compressed with gzip, xz or "
        "zstd are decompressed.\n\n"
        "With --json each output line is an object: ids, tokens, offsets (in code points), "
        "byte_offsets, word_ids, type_ids, special_tokens_mask and, after truncation, overflowing. With "
        "--padding it also has attention_mask, 0 for padding; the padding token and its side are set in "
        "tokenizer_config.json. --padding longest reads all texts first.\n\n"
        "With --jsonl each input line is an object, and arguments are files. A failed line gives {\"error\": "
        "...}; processing "
        "continues, and the exit status is 1.\n\n"
        "In a folder, tokenizer.json takes precedence over older formats. Invalid UTF-8 is replaced by "
        "U+FFFD.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .default_model_of = "fill-mask",
    .run = run,
};
