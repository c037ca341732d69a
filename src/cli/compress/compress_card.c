/* The card of the chosen model: the one of the last training in its chain, with the title, usage and figures
 * of the whole chain. */
#include "compress.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "hub/card.h"

#include <string.h>

enum { FILE_MAX = 1 << 28 };

/* ---- parts of the card ---- */

static void put_title(const ses_compress *z, ses_buf *out)
{
    const ses_candidate *x = &z->candidate[z->chosen];
    ses_buf_appendf(out, "# %s", ses_path_name_of(z->model).s);
    if (z->chosen) ses_buf_appendf(out, ", compressed: %s", x->name);
    ses_buf_put(out, '\n');
}

/* Copies an older card: another title; for a form of our own without the lines for transformers. */
static void put_older(const ses_compress *z, const char *old, size_t size, bool own, ses_buf *out)
{
    static const char library[] = "library_name: transformers", python[] = "```python";
    bool has_title = false, in_python = false;
    for (size_t i = 0, n; i < size; i += n + 1) {
        const char *s = old + i;
        const char *end = memchr(s, '\n', size - i);
        n = end ? (size_t)(end - s) : size - i;
        if (own && ses_equal(s, n, python)) in_python = true;
        if (in_python) {
            in_python = !ses_equal(s, n, "```");
            continue;
        }
        if (!has_title && n > 2 && !strncmp(s, "# ", 2)) {
            put_title(z, out);
            has_title = true;
            continue;
        }
        if (own && ses_equal(s, n, library))
            ses_buf_puts(out, "library_name: sesame");
        else
            ses_buf_append(out, s, n);
        ses_buf_put(out, '\n');
    }
}

static void put_chain(const ses_compress *z, size_t i, ses_buf *out)
{
    const ses_candidate *x = &z->candidate[i];
    if (i) put_chain(z, x->parent, out);
    if (x->commands.data) ses_buf_append(out, x->commands.data, x->commands.len);
}

static void put_card(const ses_compress *z, bool own, ses_buf *out)
{
    const ses_candidate *x = &z->candidate[z->chosen], *o = &z->candidate[0];
    char rule[80];
    ses_buf_appendf(out,
                    "\n## Compression\n\nMade from %s by `%s`: the form %s of %zu, the one with the least %s "
                    "that loses at most %g %s.\n\n",
                    z->model, z->x.command, x->name, z->n, ses_compress_measure_name(z->a->by),
                    z->a->max_drop,
                    z->lower_is_better    ? "%"
                    : z->a->max_drop == 1 ? "point"
                                          : "points");
    if (own) ses_buf_puts(out, "Only Sesame reads the files of this form; other programs do not.\n\n");
    ses_buf_appendf(
        out,
        "| | original | this model |\n|---|---|---|\n| %s | %.4f | %.4f |\n| one text | %.2f ms | "
        "%.2f ms (%.2f times as fast) |\n| files | %.1f MB | %.1f MB |\n\n```sh\n",
        z->metric, o->score, x->score, 1e3 * o->cost.latency, 1e3 * x->cost.latency, x->speed,
        1e-6 * o->cost.bytes, 1e-6 * x->cost.bytes);
    put_chain(z, z->chosen, out);
    ses_buf_puts(out, "```\n");
    if (ses_compress_rule_of(x, rule, sizeof rule))
        ses_buf_appendf(out,
                        "\nTexts leave the model early by the rule %s of config.json; `--exit` names another "
                        "one, `--exit never` uses all layers.\n",
                        rule);
}

bool ses_compress_write_card(const ses_compress *z, const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, "README.md", e);
    size_t n = 0;
    char *old = path && ses_path_exists(path) ? ses_file_read(path, FILE_MAX, &n, e) : NULL;
    ses_buf text = { 0 }, forms = { 0 }; /* forms: what only Sesame reads */
    bool listed = ses_card_list_own_forms(dir, &forms, e), own = forms.len > 0;
    old ? put_older(z, old, n, own, &text) : put_title(z, &text);
    put_card(z, own, &text);
    bool ok = path && listed && ses_buf_ok(&text, e) && ses_file_write(path, text.data, text.len, true, e);
    ses_buf_free(&text);
    ses_buf_free(&forms);
    ses_free(old);
    ses_free(path);
    return ok;
}
