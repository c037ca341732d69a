/* Commands that make a candidate. Words of a step, as in compress_methods.def:
 *   {in}          folder of the model that the method changes
 *   {out}         folder of the result; {out1}, {out2}: of earlier steps
 *   {original}    folder of the model that is compressed: the teacher
 *   {data}, {eval} the files of --data and --eval
 *   {value}       the parameter; {1-value}: 1 less the parameter
 *   {layers}      number of layers: the parameter, below 1 as a part of the model's layers
 *   {loss}        after --teacher: weights of the loss; nothing if the defaults fit the task
 *   {task}        options of task and data, without a file
 *   {device}      --device of training
 *   {training}    the same with --train and the options of training */
#include "compress.h"

#include "base/alloc.h"
#include "base/str.h"
#include "tune/finetuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct step {
    const ses_compress *z;
    const ses_candidate *x;
    size_t index, number; /* index of the candidate; number of the step, from 1 */
    bool is_last;
} step;

/* ---- words ---- */

static bool parse_value(const step *s, double *out, ses_err *e)
{
    char *end;
    *out = strtod(s->x->value, &end);
    return (end != s->x->value && !*end && isfinite(*out) && *out > 0) ||
           ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a number above 0", s->x->name, s->x->value);
}

static bool put_layers(const step *s, ses_buf *out, ses_err *e)
{
    double v, all = (double)s->z->layers;
    if (!parse_value(s, &v, e)) return false;
    if (!s->z->layers) return ses_fail(e, SES_EUNSUPPORTED, "this model has no single number of layers");
    double n = v < 1 ? fmax(1, rint(v * all)) : v;
    if (n != rint(n) || n > all || (n == all && v < 1) || (n >= all && all > 0))
        return ses_fail(e, SES_EUNSUPPORTED, "%s layer%s of %g: expected fewer, or a part below 1",
                        s->x->value, v == 1 ? "" : "s", all);
    ses_buf_appendf(out, "%g", n);
    return true;
}

static bool put_folder(const step *s, bool is_out, size_t number, ses_buf *out, ses_err *e)
{
    char ending[24] = "";
    if (is_out && number) snprintf(ending, sizeof ending, ",%zu", number);
    char *path = is_out ? ses_compress_path(s->z, s->index, ending, e) : NULL;
    if (is_out && !path) return false;
    ses_buf_puts(out, is_out ? path : s->z->candidate[s->x->parent].dir);
    ses_free(path);
    return true;
}

/* Appends the value of a word in braces, of n bytes. */
static bool put_word(const step *s, const char *word, size_t n, ses_buf *out, ses_err *e)
{
    double v = 0;
    if (ses_equal(word, n, "in")) return put_folder(s, false, 0, out, e);
    if (ses_equal(word, n, "out")) return put_folder(s, true, s->is_last ? 0 : s->number, out, e);
    if (n == 4 && !strncmp(word, "out", 3)) return put_folder(s, true, (size_t)(word[3] - '0'), out, e);
    if (ses_equal(word, n, "layers")) return put_layers(s, out, e);
    if (ses_equal(word, n, "1-value")) {
        if (!parse_value(s, &v, e)) return false;
        ses_buf_appendf(out, "%.6g", 1 - v);
        return true;
    }
    const char *text = ses_equal(word, n, "original") ? s->z->candidate[0].dir
                       : ses_equal(word, n, "data")   ? s->z->train
                       : ses_equal(word, n, "eval")   ? s->z->eval
                       : ses_equal(word, n, "value")  ? s->x->value
                                                      : NULL;
    if (!text)
        return ses_fail(e, SES_EARG, "method %s: unknown word {%.*s}", s->x->method->name, (int)n, word);
    ses_buf_puts(out, text);
    return true;
}

static void put_option(ses_buf *out, const char *name, const char *value)
{
    ses_buf_appendf(out, " --%s ", name);
    ses_shell_word_put(out, value, strlen(value));
}

static void put_task(const ses_compress *z, ses_buf *out)
{
    const ses_predictor_args *t = &z->a->tune;
    put_option(out, "task", t->data.task);
    ses_options_put_command_line(ses_predictor_option_table.opt, ses_predictor_option_table.n, t, out);
}

static void put_training(const ses_compress *z, ses_buf *out)
{
    const ses_compress_args *a = z->a;
    put_task(z, out);
    put_option(out, "train", z->train);
    ses_buf_appendf(out, " --epochs %g --lr %g --batch-size %lld --seed %lld", a->epochs, a->lr,
                    (long long)a->batch_size, (long long)a->seed);
    if (a->train_size) ses_buf_appendf(out, " --train-size %lld", (long long)a->train_size);
    ses_buf_puts(out, " --save-every -1");
    ses_options_put_command_line(ses_device_option_table.opt, ses_device_option_table.n, &a->tune.compute,
                                 out);
}

/* ---- steps ---- */

/* A word of the step with its parts in braces replaced, quoted. */
static bool put_token(const step *s, const char *token, size_t n, ses_buf *out, ses_err *e)
{
    ses_buf word = { 0 };
    bool ok = true;
    if (ses_equal(token, n, "{loss}")) { /* without scores of the teacher: its last hidden states */
        if (!s->z->teaches_scores) ses_buf_puts(out, " --soft-weight 0 --hard-weight 1 --cosine-weight 1");
        return true;
    }
    if (ses_equal(token, n, "{device}")) {
        const char *device = s->z->a->tune.compute.device;
        if (strcmp(device, "cpu") != 0) put_option(out, "device", device);
        return true;
    }
    if (ses_equal(token, n, "{task}")) return put_task(s->z, out), true;
    if (ses_equal(token, n, "{training}")) return put_training(s->z, out), true;
    for (size_t i = 0; ok && i < n;) {
        const char *end = token[i] == '{' ? memchr(token + i, '}', n - i) : NULL;
        if (end) {
            ok = put_word(s, token + i + 1, (size_t)(end - token) - i - 1, &word, e);
            i = (size_t)(end - token) + 1;
        } else
            ses_buf_put(&word, token[i++]);
    }
    ok = ok && ses_buf_ok(&word, e);
    if (ok) ses_buf_put(out, ' ');
    if (ok) ses_shell_word_put(out, word.data ? word.data : "", word.len);
    ses_buf_free(&word);
    return ok;
}

static bool put_step(const step *s, const char *text, size_t n, ses_buf *out, ses_err *e)
{
    ses_buf_puts(out, "sesame");
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        while (i + len < n && text[i + len] != ' ') len++;
        if (len && !put_token(s, text + i, len, out, e)) return false;
        i += len + 1;
    }
    ses_buf_put(out, '\n');
    return true;
}

bool ses_compress_original(const ses_compress *z, ses_buf *out, ses_err *e)
{
    char *dir = ses_compress_path(z, 0, "", e);
    if (!dir) return false;
    ses_buf_puts(out, z->is_new ? "sesame finetune --model " : "sesame convert ");
    ses_shell_word_put(out, z->model, strlen(z->model));
    if (z->is_new) {
        put_training(z, out);
        ses_buf_puts(out, " --output");
    }
    ses_buf_put(out, ' ');
    ses_shell_word_put(out, dir, strlen(dir));
    ses_buf_puts(out, z->is_new ? "\n" : " --dtype f32\n");
    ses_free(dir);
    return ses_buf_ok(out, e);
}

bool ses_compress_put_steps(const ses_compress *z, size_t candidate, ses_buf *out, ses_err *e)
{
    step s = { .z = z, .x = &z->candidate[candidate], .index = candidate };
    if (!candidate) return ses_compress_original(z, out, e);
    for (const char *at = s.x->method->steps; *at;) {
        size_t n = strcspn(at, ";");
        s.number++;
        s.is_last = !at[n];
        if (!put_step(&s, at, n, out, e)) return false;
        at += n + (at[n] == ';');
    }
    return ses_buf_ok(out, e);
}

/* ---- lines to words ---- */

const char *ses_compress_step_end(const char *line) { return line + strcspn(line, "\n"); }

/* Words as ses_shell_word_put writes them: bare, or in single quotes. */
char **ses_compress_split(const char *line, size_t n, ses_err *e)
{
    size_t max = 2;
    for (size_t i = 0; i < n; i++) max += line[i] == ' ';
    char **word = ses_alloc(max * sizeof *word + n + 2, e), *to = word ? (char *)(word + max) : NULL;
    size_t count = 0;
    for (size_t i = 0; word && i < n; i++) {
        if (line[i] == ' ') continue;
        bool quoted = false;
        word[count++] = to;
        for (; i < n && (quoted || line[i] != ' '); i++) {
            if (line[i] == '\'')
                quoted = !quoted;
            else if (!quoted && line[i] == '\\' && i + 1 < n)
                *to++ = line[++i];
            else
                *to++ = line[i];
        }
        *to++ = 0;
    }
    return word;
}
