/* Suggested commands after a training run. */
#include "next_commands.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/option_parser.h"
#include "sesame/json.h"
#include "tune/data/held_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct list {
    const ses_run_record *r;
    ses_next_command *out;
    size_t n;
} list;

static const char *option(const list *l, const char *name)
{
    return l->r->options ? ses_json_string(ses_json_get(l->r->options, name), NULL) : NULL;
}

/* Starts a command; words are added to the returned buffer. NULL: the list is full. */
static ses_buf *add(list *l, const char *what)
{
    if (l->n == SES_MAX_NEXT_COMMANDS) return NULL;
    ses_next_command *c = &l->out[l->n++];
    *c = (ses_next_command){ 0 };
    snprintf(c->what, sizeof c->what, "%s", what);
    return &c->line;
}

/* Appends a text as it is, then words, quoted if needed: put(b, "sesame eval", dir, file, NULL). */
static void put(ses_buf *b, const char *plain, ...)
{
    va_list ap;
    const char *word;
    if (!b) return;
    ses_buf_puts(b, plain);
    va_start(ap, plain);
    while ((word = va_arg(ap, const char *))) {
        ses_buf_put(b, ' ');
        ses_shell_word_put(b, word, strlen(word));
    }
    va_end(ap);
}

/* Options that tell how a file is read, as they were given. */
static void put_data_options(ses_buf *b, const list *l)
{
    static const char *const names[] = { "text", "pair", "label", "choices", "labels" };
    for (size_t i = 0; b && i < SES_LEN(names); i++) {
        const char *value = option(l, names[i]);
        if (!value) continue;
        ses_buf_appendf(b, " --%s ", names[i]);
        ses_shell_word_put(b, value, strlen(value));
    }
}

/* The folder's path with a suffix; free it. */
static char *beside(const list *l, const char *suffix)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s%s", l->r->dir, suffix);
    return b.data;
}

/* ---- fine-tuning ---- */

static const struct {
    const char *class_suffix, *pipeline, *sample;
} uses[] = {
    { "ForSequenceClassification", "text-classification", "'some text'" },
    { "ForTokenClassification", "token-classification", "'some text'" },
    { "ForQuestionAnswering", "question-answering", "'some question' 'some passage'" },
    { "ForMultipleChoice", "multiple-choice", "'a prompt' 'one choice' 'another'" },
    { "ForCausalLM", "text-generation", "'a prompt'" },
    { "LMHeadModel", "text-generation", "'a prompt'" },
    { "ForConditionalGeneration", "text2text-generation", "'some text'" },
    { "ForMaskedLM", "fill-mask", "'a text with one [MASK]'" },
};

static void add_use(list *l)
{
    const char *class =
        l->r->run ? ses_json_string(ses_json_get(ses_json_root(l->r->run), "class"), NULL) : NULL,
               *task = option(l, "task");
    size_t n = class ? strlen(class) : 0;
    if (task && (!strcmp(task, "embed") || !strcmp(task, "similarity"))) {
        put(add(l, "Use the model"), "sesame similarity --model", l->r->dir, "some text", "another text",
            NULL);
        return;
    }
    for (size_t i = 0; i < SES_LEN(uses); i++) {
        size_t k = strlen(uses[i].class_suffix);
        if (n < k || strcmp(class + n - k, uses[i].class_suffix)) continue;
        ses_buf *b = add(l, "Use the model");
        ses_buf_appendf(b, "sesame %s --model ", uses[i].pipeline);
        ses_shell_word_put(b, l->r->dir, strlen(l->r->dir));
        ses_buf_appendf(b, " %s", uses[i].sample);
        return;
    }
}

/* The run's command with another folder, and three learning rates. */
static void add_search(list *l)
{
    const ses_json *root = l->r->run ? ses_json_root(l->r->run) : NULL;
    const char *command = ses_json_string(ses_json_get(root, "command"), NULL), *output = option(l, "output");
    char *folder = beside(l, "-search");
    double lr = 0;
    ses_buf old = { 0 };
    put(&old, " --output", output ? output : "", NULL);
    const char *at = command && output && ses_buf_ok(&old, NULL) ? strstr(command, old.data) : NULL;
    if (at && folder && ses_json_real(ses_json_get(l->r->options, "lr"), &lr) && lr > 0) {
        ses_buf *b = add(l, "Search for a better learning rate");
        ses_buf_append(b, command, (size_t)(at - command));
        put(b, " --output", folder, NULL);
        ses_buf_appendf(b, "%s --grid lr=%.3g,%.3g,%.3g", at + old.len, lr / 2, lr, 2 * lr);
    }
    ses_buf_free(&old);
    ses_free(folder);
}

static void add_finetuned(list *l)
{
    const char *task = option(l, "task"), *eval = option(l, "eval");
    char *smaller = beside(l, "-int8");
    if (ses_held_out_is(eval)) eval = NULL; /* 10%: no file has these rows */
    if (!task || !smaller) {
        ses_free(smaller);
        return;
    }
    ses_buf *b = add(l, "Predict the rows of a file");
    put(b, "sesame predict", l->r->dir, eval ? eval : "FILE", "--task", task, NULL);
    put_data_options(b, l);
    if (eval) {
        b = add(l, "Evaluate with confidence intervals");
        put(b, "sesame eval", l->r->dir, eval, "--task", task, "--bootstrap", "1000", NULL);
        put_data_options(b, l);
        b = add(l, "Make a smaller model, if its score stays within a point");
        put(b, "sesame quantize", l->r->dir, smaller, "--dtype", "int8", "--task", task, "--eval", eval,
            NULL);
        put_data_options(b, l);
    }
    add_search(l);
    ses_free(smaller);
}

/* ---- pretraining ---- */

static void add_pretrained(list *l)
{
    char *folder = beside(l, "-classify");
    if (folder)
        put(add(l, "Fine-tune it on labeled texts"), "sesame finetune --model", l->r->dir, "--task",
            "classify", "--train", "train.tsv", "--eval", "dev.tsv", "--output", folder, NULL);
    put(add(l, "Show the model's size and settings"), "sesame info", l->r->dir, NULL);
    ses_free(folder);
}

size_t ses_next_commands(const ses_run_record *r, ses_next_command out[SES_MAX_NEXT_COMMANDS])
{
    list l = { .r = r, .out = out };
    const char *command =
        r->run ? ses_json_string(ses_json_get(ses_json_root(r->run), "command"), NULL) : NULL;
    bool pretrained = command && !strncmp(command, "sesame pretrain", 15);
    if (!r->outcome) { /* interrupted, or not ours */
        if (command)
            put(add(&l, "Continue from the last checkpoint"),
                pretrained ? "sesame pretrain --output" : "sesame finetune --output", r->dir, "--resume",
                NULL);
        return l.n;
    }
    add_use(&l);
    pretrained ? add_pretrained(&l) : add_finetuned(&l);
    return l.n;
}
