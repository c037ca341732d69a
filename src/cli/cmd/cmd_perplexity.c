/* perplexity: computes the perplexity of texts. */
#include "base/str.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "io/input_stream.h"
#include "io/table_text.h"
#include "io/text_decoder.h"
#include "metric/word_ids.h"
#include "task/scoring_args.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT_MAX = 1 << 30, CHUNK = 1 << 16 };

typedef struct args {
    ses_compute_args compute;
    ses_scoring_args scoring;
    const char *model;
    ses_opt_list texts, files;
    int64_t stride, window;
    int encoding;
    bool lines, tokens, start;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, model, "model", "DIR",
                 "model folder, or a name listed by 'sesame models'; default: the bundled generator",
                 .letter = 'm', .is_model = true),
    SES_OPT_LIST(args, files, "file", "FILE",
                 "compute the perplexity of this file, or with --lines of each of its lines; -: standard "
                 "input",
                 .letter = 'f'),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_LIST(args, texts, "text", "TEXT",
                 "compute the perplexity of this text, even if a file of this name exists"),
    SES_OPT_INT(args, stride, "stride", "0", 0, 1 << 24,
                "causal models: distance between the starts of windows, in tokens; 0: half a window"),
    SES_OPT_INT(args, window, "max-length", "0", 0, 1 << 24,
                "window length in tokens; 0: the model's maximum"),
    SES_OPT_FLAG(args, start, "add-start-token",
                 "prepend the start token, so that the first token is scored, too"),
    SES_OPT_FLAG(args, lines, "lines", "score each line of a file as a text"),
    SES_OPT_FLAG(args, tokens, "tokens", "with --json: write the log-probability of each token"),
    SES_OPT_INCLUDE(args, scoring, ses_scoring_option_table),
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
};

/* The scores of a text, or of all texts. */
typedef struct text_sums {
    double logprob;
    int64_t tokens, bytes, words;
} text_sums;

typedef struct perplexity_job {
    const args *a;
    const ses_tokenizer *tokenizer;
    ses_scorer *scorer;
    text_sums all;
    int64_t texts;
} perplexity_job;

static void put_tokens(ses_json_writer *w, const perplexity_job *j, const ses_text_score *x)
{
    ses_json_member_array(w, "tokens_logprob");
    for (int64_t i = 0; i < x->n; i++) {
        size_t n = 0;
        const char *s = ses_tokenizer_id_to_token(j->tokenizer, x->id[i], &n);
        ses_json_begin_array(w);
        ses_json_put_stringn(w, s ? s : "", n);
        ses_json_put_real(w, isnan(x->token_logprob[i]) ? NAN : (double)x->token_logprob[i]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

static bool put(const perplexity_job *j, const char *name, text_sums s, const ses_text_score *x, ses_err *e)
{
    double loss = s.tokens ? -s.logprob / (double)s.tokens : NAN,
           bits = s.bytes ? -s.logprob / log(2) / (double)s.bytes : NAN,
           per_word = s.words ? exp(-s.logprob / (double)s.words) : NAN;
    if (!j->a->compute.json) {
        printf("perplexity %.4f  loss %.4f  bits per byte %.4f  per word %.2f  %" PRId64 " token%s  ",
               exp(loss), loss, bits, per_word, s.tokens, s.tokens == 1 ? "" : "s");
        ses_put_escaped(stdout, name);
        putchar('\n');
        return true;
    }
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_put_key(w, "name"), ses_json_put_string(w, name);
    ses_json_put_key(w, "perplexity"), ses_json_put_real(w, exp(loss));
    ses_json_put_key(w, "loss"), ses_json_put_real(w, loss);
    ses_json_put_key(w, "logprob"), ses_json_put_real(w, s.logprob);
    ses_json_put_key(w, "bits_per_byte"), ses_json_put_real(w, bits);
    ses_json_member_real(w, "word_perplexity", per_word);
    ses_json_put_key(w, "tokens"), ses_json_put_int(w, s.tokens);
    ses_json_member_int(w, "words", s.words);
    if (x && j->a->tokens) put_tokens(w, j, x);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool score_text(perplexity_job *j, const char *name, const char *text, size_t n, ses_err *e)
{
    ses_text_score x;
    if (!n)
        return ses_fail(e, SES_EARG, "%s: the text is empty, so that nothing can be scored",
                        *name ? name : "\"\"");
    if (!ses_scorer_score_text(j->scorer, text, n, &x, e)) return ses_wrap(e, "%s", name);
    if (!x.n_scored) return ses_fail(e, SES_EARG, "%s: too short: needs at least two tokens", name);
    text_sums s = { x.logprob, x.n_scored, (int64_t)n, (int64_t)ses_words_count(text, n) };
    j->all.logprob += s.logprob, j->all.tokens += s.tokens, j->all.bytes += s.bytes, j->all.words += s.words;
    j->texts++;
    return put(j, name, s, &x, e);
}

/* Reads a file or standard input completely. */
static bool read_whole(const char *path, ses_text_encoding encoding, ses_buf *text, ses_err *e)
{
    ses_input_stream *in = ses_input_stream_open_text(path, encoding, e);
    size_t got = 1;
    bool ok = in != NULL;
    while (ok && got) {
        ses_buf_reserve(text, CHUNK);
        ok = ses_buf_ok(text, e) && ses_input_stream_read(in, text->data + text->len, CHUNK, &got, e);
        if (ok) text->len += got;
        if (ok && text->len > TEXT_MAX)
            ok = ses_fail(e, SES_EFORMAT, "longer than the maximum of %d bytes", TEXT_MAX);
    }
    ses_input_stream_free(in);
    ok = ok && (!text->len || ses_text_check_lines(text->data, text->len, 1, e));
    return ok || ses_wrap(e, "%s", path);
}

static bool score_lines(perplexity_job *j, const char *path, const ses_buf *text, ses_err *e)
{
    int64_t line = 0;
    for (size_t at = 0, len; at < text->len; at += len + 1) {
        const char *begin = text->data + at, *end = memchr(begin, '\n', text->len - at);
        len = end ? (size_t)(end - begin) : text->len - at;
        size_t n = len - (end && len && end[-1] == '\r');
        char name[300];
        snprintf(name, sizeof name, "%s: line %" PRId64, path, ++line);
        if (n && !score_text(j, name, begin, n, e)) return false;
    }
    return true;
}

static bool score_file(perplexity_job *j, const char *path, ses_err *e)
{
    ses_buf text = { 0 };
    if (!ses_refuse_table(path, "give a file with the text alone, or pass it by standard input (-)", e))
        return ses_wrap(e, "%s", path);
    bool ok = read_whole(path, (ses_text_encoding)j->a->encoding, &text, e) &&
              (j->a->lines ? score_lines(j, path, &text, e)
                           : score_text(j, path, text.data ? text.data : "", text.len, e));
    ses_buf_free(&text);
    return ok;
}

static bool score_operand(perplexity_job *j, const char *s, ses_err *e)
{
    return ses_operand_is_stdin(s) ? score_file(j, s, e) : score_text(j, s, s, strlen(s), e);
}

static bool run_all(perplexity_job *j, const ses_call *c, ses_err *e)
{
    for (size_t i = 0; i < j->a->texts.n; i++)
        if (!score_text(j, j->a->texts.item[i], j->a->texts.item[i], strlen(j->a->texts.item[i]), e))
            return false;
    for (size_t i = 0; i < j->a->files.n; i++)
        if (!score_file(j, j->a->files.item[i], e)) return false;
    ses_hint_file_operand(c, "-f FILE reads the text in it");
    for (int i = 0; i < c->n_operands; i++)
        if (!score_operand(j, c->operands[i], e)) return false;
    if (!j->texts) return ses_fail(e, SES_EARG, "no text: all lines are empty");
    return j->texts < 2 || put(j, "all", j->all, NULL, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    perplexity_job j = { .a = a };
    if (!c->n_operands && !a->texts.n && !a->files.n)
        return ses_fail(e, SES_EUSAGE, "expected a text or -f FILE; -: standard input");
    ses_device_options o = ses_compute_device_options(&a->compute);
    ses_device *dev = ses_device_open(a->compute.device, &o, e);
    ses_model *m = dev ? ses_model_open(a->model, dev, NULL, e) : NULL;
    ses_tokenizer *t = m ? ses_tokenizer_open(a->model, e) : NULL;
    ses_scorer_options s = { .window = a->window, .stride = a->stride, .prepend_bos = a->start };
    j.tokenizer = t;
    j.scorer = t ? ses_scoring_args_new_scorer(&a->scoring, m, t, a->model, s, e) : NULL;
    bool ok = j.scorer && run_all(&j, c, e);
    ses_scorer_free(j.scorer);
    ses_tokenizer_free(t);
    ses_model_free(m);
    ses_device_free(dev);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame perplexity \"The cat sat on the mat.\"", "a text, with the bundled generator" },
    { "sesame perplexity -m gpt2 --stride 512 -f wiki.txt", "a whole file in windows that overlap by half" },
    { "sesame perplexity -m bert-base-uncased --lines -f sentences.txt",
      "pseudo-perplexity of each line and of all lines" },
    { 0 },
};

const ses_command ses_command_perplexity = {
    .name = "perplexity",
    .usage = "[TEXT...]",
    .summary = "compute perplexity of texts",
    .description =
        "Prints the perplexity of texts. Arguments are texts, '-' is standard input, -f FILE reads "
        "files.\n\n"
        "Perplexity is exp(mean negative log-likelihood per token); \"per word\" divides by the words "
        "between "
        "white space. (Task files of eval count words as the evaluation harness does: white space at the "
        "beginning or end of a text adds an empty one.) A causal model processes a long text in "
        "windows: each token is scored once, with "
        "at least window minus stride tokens of context. A masked model predicts each token with a "
        "mask at its position (pseudo-perplexity).",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .default_model_of = "text-generation",
    .run = run,
};
