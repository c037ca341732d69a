/* detokenize: decodes token ids to text. */
#include "base/alloc.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/map_lines.h"
#include "sesame/tokenizer.h"
#include "token_ids.h"
#include "token_json.h"

typedef struct args {
    const char *model;
    ses_text_files files;
    bool json, keep_special, clean_up;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOKENIZER(args, model),
    SES_OPT_TEXT_FILES(args, files),
    SES_OPT_FLAG(args, keep_special, "keep-special", "write special tokens such as [CLS], too"),
    SES_OPT_FLAG(args, clean_up, "clean-up",
                 "clean up tokenization spaces: no space before punctuation, \"do n't\" as \"don't\""),
    SES_OPT_FLAG(args, json, "json", "write each text as a JSON string", .letter = 'j'),
};

typedef struct decode_job {
    const args *a;
    ses_encode_ctx *k;
    ses_token_ids ids;
    ses_buf text;
} decode_job;

static bool decode_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    (void)worker;
    decode_job *j = ctx;
    const char *text;
    size_t len;
    bool ok = ses_token_ids_read(&j->ids, line, n, e) &&
              ses_decode(j->k, j->ids.id, j->ids.n, j->a->keep_special, &text, &len, e);
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
    ses_free(j.ids.id);
    ses_buf_free(&j.text);
    ses_encode_ctx_free(j.k);
    ses_tokenizer_free(t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame tokenize --json \"A fine day.\" | sesame detokenize", "a fine day ." },
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
        "input is also the default. An id outside the vocabulary is an error.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .default_model_of = "fill-mask",
    .run = run,
};
