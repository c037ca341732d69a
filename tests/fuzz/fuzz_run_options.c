/* run.json of a stopped run: the options that --resume restores. Restored options are written and restored
 * again without a change. The first byte selects the command and a length that replaces the stored one. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"
#include "train/train_folder.h"

/* Parses the words over stored options; returns the options as JSON, to free with ses_json_free. */
static ses_json_doc *restore(const ses_command *c, const ses_json *stored, char *const *words, ses_err *e)
{
    char *copy[8] = { 0 };
    int n_operands;
    void *args = calloc(1, c->args_size);
    ses_opt_group g = { c->opt, c->n_opt, args };
    ses_json_doc *doc = NULL;
    MUST(args);
    for (size_t i = 0; words[i]; i++) copy[i] = words[i];
    if (ses_options_parse_stored(&g, 1, stored, copy, &n_operands, e)) {
        size_t n;
        ses_buf line = { 0 };
        ses_json_writer *w = ses_json_writer_new(0, e);
        MUST(w);
        ses_options_put_json(c->opt, c->n_opt, args, w);
        const char *text = ses_json_writer_text(w, &n, e);
        MUST(text && (doc = ses_json_parse(text, n, e)));
        ses_json_writer_free(w);
        ses_options_put_command_line(c->opt, c->n_opt, args, &line);
        MUST(ses_buf_ok(&line, e));
        ses_buf_free(&line);
    } else {
        MUST(e->code);
    }
    ses_options_free(&g, 1);
    free(args);
    return doc;
}

static bool is_same(const ses_json *a, const ses_json *b)
{
    bool same = false;
    ses_err e = { 0 };
    size_t n, k;
    ses_json_writer *x = ses_json_writer_new(0, &e), *y = ses_json_writer_new(0, &e);
    MUST(x && y);
    ses_json_put_value(x, a);
    ses_json_put_value(y, b);
    const char *s = ses_json_writer_text(x, &n, &e), *t = ses_json_writer_text(y, &k, &e);
    MUST(s && t);
    same = n == k && !memcmp(s, t, n);
    if (!same) fprintf(stderr, "%s\n%s\n", s, t);
    ses_json_writer_free(x);
    ses_json_writer_free(y);
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    char dir[40], path[64], *list[8];
    const char *words[8] = { "-o", dir, "--resume" };
    if (data[0] & 6) words[3] = data[0] & 2 ? "--steps" : "--epochs", words[4] = "7";
    for (size_t i = 0; i < 8; i++) list[i] = (char *)(uintptr_t)words[i];
    const ses_command *c = ses_command_find(data[0] & 1 ? "pretrain" : "finetune");
    ses_err e = { 0 };
    fuzz_folder(dir);
    snprintf(path, sizeof path, "%s/%s", dir, SES_RUN_INFO);
    fuzz_file(path, data + 1, n - 1);
    MUST(c);
    char *operands[8];
    memcpy(operands, list, sizeof list);
    void *args = calloc(1, c->args_size);
    ses_opt_group g = { c->opt, c->n_opt, args };
    ses_call call = { .command = c, .args = args, .operands = operands, .quiet = true };
    MUST(args && ses_options_parse(&g, 1, operands, false, &call.n_operands, &e));
    ses_json_doc *stored = c->open_stored(&call, &e);
    ses_options_free(&g, 1);
    free(args);
    MUST(stored || e.code);
    ses_json_doc *one = stored ? restore(c, ses_json_get(ses_json_root(stored), "options"), list, &e) : NULL;
    ses_json_doc *two = one ? restore(c, ses_json_root(one), list, &e) : NULL;
    MUST(!one || (two && is_same(ses_json_root(one), ses_json_root(two))));
    ses_json_free(stored);
    ses_json_free(one);
    ses_json_free(two);
    unlink(path);
    rmdir(dir);
    return 0;
}
