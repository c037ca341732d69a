/* Renders chat templates while reading them. Parts that do not apply are read with `dead` set, so that their
 * expressions have no effect. */
#include "chat_template.h"

#include "base/alloc.h"
#include "chat_expression.h"

#include <string.h>

enum { MAX_BYTES = 256 << 20 };

/* ---- text and tags ---- */

/* The text from r->at to the next tag, without the whitespace that the tags around it take. Stops behind the
 * opening of the tag; 0: the end. */
static char next_tag(ses_chat_run *r)
{
    size_t begin = r->at, end = begin;
    while (end < r->n &&
           !(r->s[end] == '{' && end + 1 < r->n && r->s[end + 1] && strchr("{%#", r->s[end + 1])))
        end++;
    char kind = 0;
    if (end < r->n) kind = r->s[end + 1];
    r->at = end + (kind ? 2 : 0);
    bool minus = kind && r->at < r->n && r->s[r->at] == '-',
         plus = kind && r->at < r->n && r->s[r->at] == '+';
    if (minus || plus) r->at++;
    if (r->after_minus)
        while (begin < end && (r->s[begin] == ' ' || (r->s[begin] >= '\t' && r->s[begin] <= '\r'))) begin++;
    else if (r->after_block && begin < end && r->s[begin] == '\n')
        begin++;
    if (minus)
        while (end > begin && (r->s[end - 1] == ' ' || (r->s[end - 1] >= '\t' && r->s[end - 1] <= '\r')))
            end--;
    else if ((kind == '%' || kind == '#') && !plus) {
        size_t blank = end;
        while (blank > begin && (r->s[blank - 1] == ' ' || r->s[blank - 1] == '\t')) blank--;
        if (!blank || r->s[blank - 1] == '\n') end = blank;
    }
    if (!r->dead && end > begin) ses_buf_append(r->out, r->s + begin, end - begin);
    return kind;
}

/* The end of a tag; "+" keeps the line break after it. */
static bool close_tag(ses_chat_run *r, char kind)
{
    r->after_minus = ses_chat_takes(r, "-");
    r->after_block = kind != '{' && (r->after_minus || !ses_chat_takes(r, "+"));
    if (ses_chat_takes(r, kind == '{' ? "}}" : "%}")) return true;
    return ses_chat_fail(r, kind == '{' ? "expected }}" : "expected %}");
}

static bool skip_comment(ses_chat_run *r)
{
    while (r->at + 1 < r->n && !(r->s[r->at] == '#' && r->s[r->at + 1] == '}')) r->at++;
    if (r->at + 1 >= r->n) return ses_chat_fail(r, "a comment does not end");
    r->after_minus = r->s[r->at - 1] == '-';
    r->after_block = true;
    r->at += 2;
    return true;
}

/* Renders until a statement of the list, whose name is stored; its tag is still open. ends NULL: to the end
 * of the template. */
static bool block(ses_chat_run *r, const char *ends, ses_string *found);

static bool for_statement(ses_chat_run *r)
{
    ses_string name;
    ses_chat_value list = { 0 };
    if (!ses_chat_name_of(r, &name) || !ses_chat_takes_word(r, "in"))
        return ses_chat_fail(r, "expected: for NAME in LIST");
    size_t before = r->at;
    r->dead++;
    bool ok = ses_chat_logical(r, &list, true);
    r->dead--;
    if (!ok) return false;
    if (ses_chat_takes_word(r, "if")) return ses_chat_fail(r, "a loop with a condition is not supported");
    r->at = before;
    if (!ses_chat_expression(r, &list) || !close_tag(r, '%')) return false;
    if (!r->dead && list.kind != SES_CHAT_LIST) return ses_chat_fail(r, "a loop needs a list");
    size_t begin = r->at, scope = r->scope, rounds = r->dead ? 0 : list.n;
    bool minus = r->after_minus;
    ses_string end = { 0 };
    for (size_t i = 0; i < rounds || !i; i++) {
        size_t vars = r->n_vars;
        ses_chat_value loop = list;
        loop.kind = SES_CHAT_LOOP, loop.number = (int64_t)i;
        r->at = begin, r->after_minus = minus, r->after_block = true;
        r->scope = vars;
        bool dead = i >= rounds;
        if (!dead && (!ses_chat_add(r, name, 0, &list.item[i]) ||
                      !ses_chat_add(r, (ses_string){ "loop", 4 }, 0, &loop)))
            return false;
        r->dead += dead;
        ok = block(r, "endfor", &end);
        r->dead -= dead;
        if (!ok) return false;
        size_t kept = vars; /* members of namespaces that began outside stay */
        for (size_t k = vars; k < r->n_vars; k++)
            if (r->var[k].space) r->var[kept++] = r->var[k];
        r->n_vars = kept, r->scope = scope;
    }
    return close_tag(r, '%');
}

static bool if_statement(ses_chat_run *r)
{
    ses_chat_value condition = { 0 };
    ses_string end = { 0 };
    if (!ses_chat_expression(r, &condition) || !close_tag(r, '%')) return false;
    bool done = !r->dead && ses_chat_is_true(&condition), now = done;
    for (;;) {
        r->dead += !now;
        bool ok = block(r, "elif|else|endif", &end);
        r->dead -= !now;
        if (!ok) return false;
        if (ses_equal(end.p, end.n, "endif")) return close_tag(r, '%');
        bool other = ses_equal(end.p, end.n, "else");
        if (!other) {
            r->dead += done;
            ok = ses_chat_expression(r, &condition);
            r->dead -= done;
            if (!ok) return false;
        }
        now = !done && !r->dead && (other || ses_chat_is_true(&condition));
        done |= now;
        if (!close_tag(r, '%')) return false;
    }
}

static bool set_statement(ses_chat_run *r)
{
    ses_string name, key = { 0 };
    ses_chat_value value, space = { 0 };
    if (!ses_chat_name_of(r, &name)) return false;
    if (ses_chat_takes(r, ".") && !ses_chat_name_of(r, &key)) return false;
    if (!ses_chat_takes(r, "=")) return ses_chat_fail(r, "set without = is not supported");
    if (!ses_chat_expression(r, &value)) return false;
    if (r->dead) return close_tag(r, '%');
    if (key.n && !ses_chat_lookup(r, name, &space)) return false;
    if (key.n && space.kind != SES_CHAT_SPACE)
        return ses_chat_fail(r, "only members of a namespace can be set");
    return ses_chat_set(r, key.n ? key : name, key.n ? space.number : 0, &value) && close_tag(r, '%');
}

static bool statement(ses_chat_run *r, const char *ends, ses_string *found, bool *ended)
{
    ses_string name;
    const char *word;
    size_t n;
    if (!ses_chat_name_of(r, &name)) return false;
    for (size_t i = 0; ends && ses_list_at(ends, i, &word, &n); i++)
        if (name.n == n && !memcmp(name.p, word, n)) return *found = name, *ended = true, true;
    if (ses_equal(name.p, name.n, "if")) return if_statement(r);
    if (ses_equal(name.p, name.n, "for")) return for_statement(r);
    if (ses_equal(name.p, name.n, "set")) return set_statement(r);
    if (ses_equal(name.p, name.n, "generation") || ses_equal(name.p, name.n, "endgeneration"))
        return close_tag(r, '%');
    return ses_fail(r->e, SES_EUNSUPPORTED,
                    "the chat template has the statement \"%.*s\", which is not supported",
                    (int)(name.n < 64 ? name.n : 64), name.p);
}

static bool block(ses_chat_run *r, const char *ends, ses_string *found)
{
    if (++r->depth > SES_CHAT_MAX_DEPTH) return ses_chat_fail(r, "statements are nested too deeply");
    for (;;) {
        if (++r->steps > SES_CHAT_MAX_STEPS) return ses_chat_fail(r, "the template takes too long");
        if (r->out->len > MAX_BYTES) return ses_chat_fail(r, "the text is too long");
        char kind = next_tag(r);
        bool ok = true, ended = false;
        ses_chat_value v;
        if (!kind)
            ok = !ends || ses_chat_fail(r, "a statement does not end");
        else if (kind == '#')
            ok = skip_comment(r);
        else if (kind == '{')
            ok = ses_chat_expression(r, &v) && (r->dead || ses_chat_write(&v, r->out, r->e)) &&
                 close_tag(r, '{');
        else
            ok = statement(r, ends, found, &ended);
        if (!ok) return false;
        if (!kind || ended) break;
    }
    r->depth--;
    return ses_buf_ok(r->out, r->e);
}

bool ses_chat_template_render(ses_string source, const ses_json *variables, ses_buf *out, ses_err *e)
{
    ses_chat_run r = {
        .s = source.p, .n = source.n, .out = out, .mem.limit = MAX_BYTES, .given = variables, .e = e
    };
    ses_string end = { 0 };
    if (r.n && r.s[r.n - 1] == '\n') r.n--; /* as Jinja without keep_trailing_newline */
    bool ok = block(&r, NULL, &end);
    ses_arena_free(&r.mem);
    ses_free(r.var);
    return ok;
}
