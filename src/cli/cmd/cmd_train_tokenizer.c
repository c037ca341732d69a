/* train-tokenizer: trains a vocabulary on texts. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/map_lines.h"
#include "cli/text_operands.h"
#include "io/table_text.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

#include <stdlib.h>
#include <string.h>

typedef struct args {
    int type, encoding;
    int64_t vocab_size, min_frequency, alphabet, threads;
    const char *output, *stages;
    ses_opt_list special;
    bool lowercase, characters, overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(args, type, "type", NULL, "wordpiece|bpe|unigram|wordlevel", "tokenizer model",
                   .required = true),
    SES_OPT_INT(args, vocab_size, "vocab-size", "30000", 1, 1 << 23,
                "vocabulary size, special tokens included"),
    SES_OPT_TEXT(args, output, "output", "FILE", "output tokenizer.json", .letter = 'o', .required = true,
                 .alias = "to"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_INT(args, min_frequency, "min-frequency", "0", 0, 1e15, "minimum word or pair count"),
    SES_OPT_INT(args, alphabet, "limit-alphabet", "0", 0, 0x110000,
                "number of initial characters, the most frequent; 0: all"),
    SES_OPT_LIST(args, special, "special-tokens", "A,B",
                 "special tokens, first in the vocabulary; separated by commas or by repeating the option; "
                 "default: depends on the type"),
    SES_OPT_FLAG(args, lowercase, "lowercase", "lowercase the text"),
    SES_OPT_FLAG(args, characters, "characters",
                 "bpe: characters instead of bytes; words split at white space and punctuation"),
    SES_OPT_TEXT(
        args, stages, "stages", "FILE",
        "JSON object with normalizer, pre_tokenizer, post_processor and decoder as in tokenizer.json; "
        "replaces the default stages"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace an existing output file"),
    SES_OPT_THREADS(args, threads),
};

typedef struct train_job {
    ses_call *call;
    ses_tokenizer_trainer *trainer;
    ses_progress progress;
    const char *stage; /* training stage; NULL: not started */
    int64_t texts, bytes;
} train_job;

static bool show_progress(void *ctx, const char *stage, int64_t done, int64_t total)
{
    train_job *j = ctx;
    if (j->stage != stage) {
        if (j->stage) ses_progress_end(&j->progress);
        j->progress = ses_progress_start(stderr, &j->call->err, j->call->quiet, stage, total);
        j->stage = stage;
    }
    ses_progress_show(&j->progress, done);
    return true;
}

static bool feed_line(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e)
{
    train_job *j = ctx;
    (void)worker, (void)out;
    j->texts++;
    j->bytes += (int64_t)n;
    return ses_tokenizer_trainer_feed(j->trainer, line, n, e);
}

/* Splits the items of the list at commas. */
static ses_string *special_tokens(const ses_opt_list *list, size_t *n, ses_err *e)
{
    size_t cap = 0;
    for (size_t i = 0; i < list->n; i++) cap += strlen(list->item[i]) + 1;
    ses_string *s = ses_alloc_array(cap, sizeof *s, e);
    *n = 0;
    for (size_t i = 0; s && i < list->n; i++)
        for (const char *p = list->item[i];; p++) {
            size_t len = strcspn(p, ",");
            if (len) s[(*n)++] = (ses_string){ p, len };
            p += len;
            if (!*p) break;
        }
    return s;
}

/* Returns the members of the object in the file, without its braces. */
static char *read_stages(const char *path, ses_err *e)
{
    size_t n;
    char *text = ses_file_read(path, 64 << 20, &n, e), *first, *last;
    if (!text) return NULL;
    first = strchr(text, '{');
    last = strrchr(text, '}');
    ses_json_doc *doc = ses_json_parse(text, n, e);
    if (doc && (!first || !last || ses_json_type_of(ses_json_root(doc)) != SES_JSON_OBJECT ||
                !ses_json_len(ses_json_root(doc))))
        ses_fail(e, SES_EFORMAT, "expected an object with tokenizer stages");
    bool ok = doc && (!e || !e->code);
    ses_json_free(doc);
    if (!ok) {
        ses_wrap(e, "%s", path);
        ses_free(text);
        return NULL;
    }
    *last = 0;
    memmove(text, first + 1, (size_t)(last - first));
    return text;
}

static void notify_done(const train_job *j, const args *a, size_t bytes, double seconds)
{
    char read[SES_NUMBER_TEXT], wrote[SES_NUMBER_TEXT];
    if (j->call->quiet) return;
    fprintf(stderr, "%lld texts, %s in %.1f s\n%s: %s\nTry it: sesame tokenize --model %s \"some text\"\n",
            (long long)j->texts, ses_bytes_text(read, (uint64_t)j->bytes), seconds, a->output,
            ses_bytes_text(wrote, bytes), a->output);
}

static bool check_files(const ses_call *c, ses_err *e)
{
    for (int i = 0; i < c->n_operands; i++)
        if (!ses_refuse_table(c->operands[i], SES_TEXTS_ALONE, e)) return ses_wrap(e, "%s", c->operands[i]);
    return true;
}

static bool run(ses_call *c, ses_err *e)
{
    static const ses_tokenizer_type types[] = { SES_TOKENIZER_WORDPIECE, SES_TOKENIZER_BPE,
                                                SES_TOKENIZER_UNIGRAM, SES_TOKENIZER_WORDLEVEL };
    const args *a = c->args;
    train_job j = { .call = c };
    size_t n = 0, n_special = 0;
    double start = ses_seconds();
    if (!a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EARG, "%s: already exists; use --overwrite to replace it", a->output);
    if (!ses_operands_require_files(c, 0, "arguments are files; '-' is standard input", e) ||
        !check_files(c, e))
        return false;
    char *stages = a->stages ? read_stages(a->stages, e) : NULL, *text = NULL;
    ses_string *special = special_tokens(&a->special, &n_special, e);
    if (!special || (a->stages && !stages)) goto done;
    ses_tokenizer_train_options o = { .type = types[a->type],
                                      .vocab_size = a->vocab_size,
                                      .min_frequency = a->min_frequency,
                                      .limit_alphabet = a->alphabet,
                                      .byte_level = !a->characters,
                                      .lowercase = a->lowercase,
                                      .special = n_special ? special : NULL,
                                      .n_special = n_special,
                                      .stages = stages,
                                      .threads = (int)a->threads,
                                      .progress = show_progress,
                                      .ctx = &j };
    j.trainer = ses_tokenizer_trainer_new(&o, e);
    if (j.trainer && ses_map_lines(c->operands, (ses_text_encoding)a->encoding, 1, feed_line, &j, e))
        text = ses_tokenizer_trainer_finish(j.trainer, &n, e);
    if (j.stage) ses_progress_end(&j.progress);
    if (text && ses_file_write(a->output, text, n, a->overwrite, e))
        notify_done(&j, a, n, ses_seconds() - start);
done:
    ses_free(text);
    ses_free(special);
    ses_free(stages);
    ses_tokenizer_trainer_free(j.trainer);
    return !e->code;
}

static const ses_usage_example examples[] = {
    { "sesame train-tokenizer --type wordpiece --lowercase --vocab-size 8000 -o tokenizer.json corpus.txt",
      "a WordPiece tokenizer like BERT's" },
    { "sesame train-tokenizer --type bpe -o tokenizer.json corpus.txt.xz",
      "a byte-level BPE tokenizer like GPT-2's, from a compressed file" },
    { 0 }
};

const ses_command ses_command_train_tokenizer = {
    .name = "train-tokenizer",
    .usage = "[FILE...]",
    .summary = "train a tokenizer",
    .description =
        "Counts words and builds a vocabulary of the given size with the algorithms of the tokenizers "
        "library. The result does not depend on the number of threads. Files are read once, line by "
        "line; files compressed with gzip, xz or zstd are decompressed. '-' or no file: standard input.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .run = run,
};
