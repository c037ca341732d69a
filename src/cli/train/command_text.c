/* A command with its options as a command line and as JSON. */
#include "command_text.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "cli/option_parser.h"
#include "cli/ui/show_values.h"

#include <string.h>

/* Takes both texts; w may be NULL. */
static bool finish(ses_command_text *out, ses_buf *line, ses_json_writer *w, ses_err *e)
{
    out->options = w ? ses_json_writer_take(w, NULL, e) : NULL;
    out->line = w && ses_buf_ok(line, e) ? ses_strdup(line->data, e) : NULL;
    bool ok = out->line && out->options;
    if (!ok) ses_command_text_free(out);
    ses_json_writer_free(w);
    ses_buf_free(line);
    return ok;
}

bool ses_command_text_make(const ses_command *c, const void *args, ses_command_text *out, ses_err *e)
{
    ses_buf line = { 0 };
    *out = (ses_command_text){ 0 };
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_buf_appendf(&line, "sesame %s", c->name);
    ses_options_put_command_line(c->opt, c->n_opt, args, &line);
    if (w) ses_options_put_json(c->opt, c->n_opt, args, w);
    return finish(out, &line, w, e);
}

bool ses_command_text_with_values(const ses_call *c, const ses_command_value *value, size_t n,
                                  ses_command_text *out, ses_err *e)
{
    const ses_command *cmd = c->command;
    ses_buf line = { 0 };
    *out = (ses_command_text){ 0 };
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_buf_appendf(&line, "sesame %s", cmd->name);
    for (int i = 0; i < c->n_operands; i++) {
        ses_buf_put(&line, ' ');
        ses_shell_word_put(&line, c->operands[i], strlen(c->operands[i]));
    }
    ses_options_put_command_line(cmd->opt, cmd->n_opt, c->args, &line);
    if (w) {
        ses_json_begin_object(w);
        for (size_t i = 0; i < n; i++)
            value[i].text ? ses_json_member_string(w, value[i].name, value[i].text)
                          : ses_json_member_int(w, value[i].name, value[i].number);
        ses_options_put_members(cmd->opt, cmd->n_opt, c->args, w);
        ses_json_end_object(w);
    }
    return finish(out, &line, w, e);
}

void ses_command_text_put_settings(const char *options, ses_json_writer *w)
{
    ses_json_doc *d = ses_json_parse(options, strlen(options), NULL);
    ses_json_put_key(w, "settings");
    d ? ses_json_put_value(w, ses_json_root(d)) : ses_json_put_null(w);
    ses_json_free(d);
}

void ses_command_text_free(ses_command_text *t)
{
    ses_free(t->line);
    ses_free(t->options);
    *t = (ses_command_text){ 0 };
}

/* *equal: the values have the same JSON text; NULL is null. */
static bool compare(const ses_json *a, const ses_json *b, bool *equal, ses_err *e)
{
    ses_json_writer *x = ses_json_writer_new(0, e), *y = x ? ses_json_writer_new(0, e) : NULL;
    if (y) a ? ses_json_put_value(x, a) : ses_json_put_null(x);
    if (y) b ? ses_json_put_value(y, b) : ses_json_put_null(y);
    const char *s = y ? ses_json_writer_text(x, NULL, e) : NULL,
               *t = s ? ses_json_writer_text(y, NULL, e) : NULL;
    *equal = t && !strcmp(s, t);
    ses_json_writer_free(x);
    ses_json_writer_free(y);
    return t != NULL;
}

bool ses_settings_check(const ses_json *was, const char *now, const char *ignored, const char *dir,
                        const char *hint, ses_err *e)
{
    ses_json_doc *doc = ses_json_parse(now, strlen(now), e);
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    bool ok = doc != NULL;
    for (size_t i = 0; ok && i < ses_json_len(root); i++) {
        const char *key = ses_json_key(root, i, NULL);
        const ses_json *a = ses_json_get(was, key), *b = ses_json_at(root, i);
        bool equal = true;
        char x[200], y[200]; /* shortened, for the message */
        if (!ses_list_has(ignored, key)) ok = compare(a, b, &equal, e);
        if (!ok || equal) continue;
        ses_json_value_text(x, sizeof x, a);
        ses_json_value_text(y, sizeof y, b);
        ok = ses_fail(e, SES_EARG, "%s: was run with %s %s, not %s; %s", dir, key, x, y, hint);
    }
    ses_json_free(doc);
    return ok;
}
