/* Evaluates expressions of chat templates: literals, members, filters, operators. */
#include "chat_expression.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 4 };

bool ses_chat_fail(ses_chat_run *r, const char *what)
{
    size_t line = 1;
    for (size_t i = 0; i < r->at && i < r->n; i++) line += r->s[i] == '\n';
    return ses_fail(r->e, SES_EUNSUPPORTED, "chat template, line %zu: %s", line, what);
}

/* ---- tokens inside a tag ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_space(ses_chat_run *r)
{
    while (r->at < r->n && (r->s[r->at] == ' ' || (r->s[r->at] >= '\t' && r->s[r->at] <= '\r'))) r->at++;
}

static bool sees(ses_chat_run *r, const char *text)
{
    size_t n = strlen(text);
    skip_space(r);
    return r->n - r->at >= n && !memcmp(r->s + r->at, text, n);
}

bool ses_chat_takes(ses_chat_run *r, const char *text)
{
    if (!sees(r, text)) return false;
    r->at += strlen(text);
    return true;
}

static ses_string peek_name(ses_chat_run *r)
{
    skip_space(r);
    size_t n = 0;
    while (r->at + n < r->n && is_name_char(r->s[r->at + n])) n++;
    if (n && r->s[r->at] >= '0' && r->s[r->at] <= '9') n = 0;
    return (ses_string){ r->s + r->at, n };
}

bool ses_chat_takes_word(ses_chat_run *r, const char *word)
{
    ses_string name = peek_name(r);
    if (!ses_equal(name.p, name.n, word)) return false;
    r->at += name.n;
    return true;
}

bool ses_chat_name_of(ses_chat_run *r, ses_string *name)
{
    *name = peek_name(r);
    r->at += name->n;
    return name->n || ses_chat_fail(r, "expected a name");
}

/* ---- variables ---- */

static ses_chat_variable *find(ses_chat_run *r, ses_string name, int64_t space, size_t from)
{
    for (size_t i = r->n_vars; i > from; i--) {
        ses_chat_variable *v = &r->var[i - 1];
        if (v->space == space && v->name.n == name.n && !memcmp(v->name.p, name.p, name.n)) return v;
    }
    return NULL;
}

bool ses_chat_add(ses_chat_run *r, ses_string name, int64_t space, const ses_chat_value *value)
{
    if (!ses_array_reserve(&r->var, &r->var_capacity, r->n_vars + 1, sizeof *r->var, r->e)) return false;
    r->var[r->n_vars++] = (ses_chat_variable){ name, *value, space };
    return true;
}

/* A variable of a loop ends with its round; the variables of a namespace stay. */
bool ses_chat_set(ses_chat_run *r, ses_string name, int64_t space, const ses_chat_value *value)
{
    ses_chat_variable *v = find(r, name, space, space ? 0 : r->scope);
    if (!v) return ses_chat_add(r, name, space, value);
    v->value = *value;
    return true;
}

bool ses_chat_lookup(ses_chat_run *r, ses_string name, ses_chat_value *out)
{
    const ses_chat_variable *v = find(r, name, 0, 0);
    ses_chat_value given = { .kind = SES_CHAT_OBJECT, .object = r->given };
    if (!v) return ses_chat_member(&r->mem, &given, name, out, r->e);
    *out = v->value;
    return true;
}

/* ---- expressions ---- */

static bool text_literal(ses_chat_run *r, char quote, ses_chat_value *v)
{
    ses_buf b = { 0 };
    for (r->at++; r->at < r->n && r->s[r->at] != quote; r->at++) {
        char c = r->s[r->at];
        if (c == '\\' && r->at + 1 < r->n) {
            c = r->s[++r->at];
            if (strchr("xuUNabfv01234567", c))
                return ses_buf_free(&b), ses_chat_fail(r, "an escape is not supported");
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        ses_buf_put(&b, c);
    }
    bool ok = r->at++ < r->n || ses_chat_fail(r, "a text does not end");
    char *copy =
        ok && ses_buf_ok(&b, r->e) ? ses_arena_strndup(&r->mem, b.data ? b.data : "", b.len, r->e) : NULL;
    if (copy) *v = ses_chat_string((ses_string){ copy, b.len });
    ses_buf_free(&b);
    return copy != NULL;
}

/* The arguments of a call, after "(". */
static bool arguments(ses_chat_run *r, ses_chat_value *list, size_t *n)
{
    for (*n = 0; !ses_chat_takes(r, ")");) {
        if (*n == MAX_ARGUMENTS || (*n && !ses_chat_takes(r, ",")))
            return ses_chat_fail(r, "expected , or )");
        if (!ses_chat_expression(r, &list[(*n)++])) return false;
    }
    return true;
}

static bool call(ses_chat_run *r, ses_string name, ses_chat_value *v)
{
    *v = (ses_chat_value){ 0 };
    if (ses_equal(name.p, name.n, "namespace")) {
        *v = (ses_chat_value){ .kind = SES_CHAT_SPACE, .number = ++r->spaces };
        for (size_t i = 0; !ses_chat_takes(r, ")"); i++) {
            ses_string key;
            ses_chat_value value;
            if ((i && !ses_chat_takes(r, ",")) || !ses_chat_name_of(r, &key) || !ses_chat_takes(r, "="))
                return ses_chat_fail(r, "expected name = value");
            if (!ses_chat_expression(r, &value) || (!r->dead && !ses_chat_add(r, key, v->number, &value)))
                return false;
        }
        return true;
    }
    ses_chat_value arg[MAX_ARGUMENTS] = { { 0 } };
    size_t n = 0;
    if (!arguments(r, arg, &n)) return false;
    if (r->dead) return true;
    if (ses_equal(name.p, name.n, "raise_exception"))
        return ses_fail(r->e, SES_EARG, "the chat template refuses the messages: %.*s",
                        (int)(arg[0].s.n < 400 ? arg[0].s.n : 400), arg[0].s.n ? arg[0].s.p : "");
    return ses_fail(r->e, SES_EUNSUPPORTED, "the chat template calls %.*s(), which is not supported",
                    (int)(name.n < 64 ? name.n : 64), name.p);
}

static bool list_literal(ses_chat_run *r, ses_chat_value *v)
{
    enum { MOST = 64 };
    ses_chat_value *list = ses_arena_array(&r->mem, MOST, sizeof *list, r->e);
    size_t n = 0;
    for (; list && !ses_chat_takes(r, "]"); n++) {
        if (n == MOST || (n && !ses_chat_takes(r, ","))) return ses_chat_fail(r, "expected , or ]");
        if (!ses_chat_expression(r, &list[n])) return false;
    }
    *v = (ses_chat_value){ .kind = SES_CHAT_LIST, .item = list, .n = n };
    return list != NULL;
}

static bool primary(ses_chat_run *r, ses_chat_value *v)
{
    skip_space(r);
    char c = r->at < r->n ? r->s[r->at] : 0;
    *v = (ses_chat_value){ 0 };
    if (c == '"' || c == '\'') return text_literal(r, c, v);
    if (c >= '0' && c <= '9') {
        int64_t x = 0;
        for (; r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9'; r->at++) {
            x = 10 * x + (r->s[r->at] - '0');
            if (x > 1000000000) return ses_chat_fail(r, "a number is too large");
        }
        *v = ses_chat_int(x);
        return true;
    }
    if (ses_chat_takes(r, "("))
        return ses_chat_expression(r, v) && (ses_chat_takes(r, ")") || ses_chat_fail(r, "expected )"));
    if (ses_chat_takes(r, "[")) return list_literal(r, v);
    ses_string name;
    if (!ses_chat_name_of(r, &name)) return false;
    bool yes = ses_equal(name.p, name.n, "true") || ses_equal(name.p, name.n, "True");
    if (yes || ses_equal(name.p, name.n, "false") || ses_equal(name.p, name.n, "False"))
        return *v = ses_chat_bool(yes), true;
    if (ses_equal(name.p, name.n, "none") || ses_equal(name.p, name.n, "None"))
        return v->kind = SES_CHAT_NONE, true;
    if (ses_chat_takes(r, "(")) return call(r, name, v);
    return r->dead || ses_chat_lookup(r, name, v);
}

/* v[i] or v[i:j], after "[". */
static bool subscript(ses_chat_run *r, ses_chat_value *v)
{
    ses_chat_value begin = ses_chat_int(0), end = ses_chat_int(INT32_MAX), old = *v;
    bool whole = !sees(r, ":");
    if (whole && !ses_chat_expression(r, &begin)) return false;
    bool slice = ses_chat_takes(r, ":");
    if (slice && sees(r, ":")) return ses_chat_fail(r, "slices with a step are not supported");
    if (slice && !sees(r, "]") && !ses_chat_expression(r, &end)) return false;
    if (!ses_chat_takes(r, "]")) return ses_chat_fail(r, "expected ]");
    if (r->dead) return true;
    if (slice)
        return begin.kind == SES_CHAT_INT && end.kind == SES_CHAT_INT
                   ? ses_chat_slice(&old, begin.number, end.number, v, r->e)
                   : ses_chat_fail(r, "a slice needs integers");
    if (begin.kind == SES_CHAT_STRING) return ses_chat_member(&r->mem, &old, begin.s, v, r->e);
    if (begin.kind != SES_CHAT_INT) return ses_chat_fail(r, "an index must be an integer or a text");
    *v = ses_chat_element(&old, begin.number);
    return true;
}

/* v.name or v.name(...), after the dot; v | name(...), after the bar. */
static bool member(ses_chat_run *r, ses_chat_value *v, bool filter)
{
    ses_chat_value arg[MAX_ARGUMENTS] = { { 0 } }, old = *v;
    ses_string name;
    size_t n = 0;
    if (!ses_chat_name_of(r, &name)) return false;
    bool called = ses_chat_takes(r, "(");
    if (called && !arguments(r, arg, &n)) return false;
    if (r->dead) return true;
    if (called || filter) return ses_chat_apply(&r->mem, name, &old, arg, n, v, r->e);
    if (old.kind != SES_CHAT_SPACE) return ses_chat_member(&r->mem, &old, name, v, r->e);
    const ses_chat_variable *x = find(r, name, old.number, 0);
    *v = x ? x->value : (ses_chat_value){ 0 };
    return true;
}

static bool postfix(ses_chat_run *r, ses_chat_value *v)
{
    bool minus = ses_chat_takes(r, "-");
    if (!primary(r, v)) return false;
    for (;;) {
        bool ok = true;
        if (ses_chat_takes(r, "."))
            ok = member(r, v, false);
        else if (ses_chat_takes(r, "["))
            ok = subscript(r, v);
        else if (ses_chat_takes(r, "|"))
            ok = member(r, v, true);
        else
            break;
        if (!ok) return false;
    }
    if (minus && !r->dead && v->kind != SES_CHAT_INT) return ses_chat_fail(r, "- needs an integer");
    if (minus) v->number = -v->number;
    return true;
}

static bool concatenate(ses_chat_run *r, ses_chat_value *a, const ses_chat_value *b)
{
    ses_buf text = { 0 };
    bool ok = ses_chat_write(a, &text, r->e) && ses_chat_write(b, &text, r->e) && ses_buf_ok(&text, r->e);
    char *copy = ok ? ses_arena_strndup(&r->mem, text.data ? text.data : "", text.len, r->e) : NULL;
    if (copy) *a = ses_chat_string((ses_string){ copy, text.len });
    ses_buf_free(&text);
    return copy != NULL;
}

static bool product(ses_chat_run *r, ses_chat_value *v)
{
    if (!postfix(r, v)) return false;
    while (sees(r, "%") && !sees(r, "%}") && !sees(r, "%-")) {
        ses_chat_value b;
        ses_chat_takes(r, "%");
        if (!postfix(r, &b)) return false;
        if (r->dead) continue;
        if (v->kind != SES_CHAT_INT || b.kind != SES_CHAT_INT || b.number <= 0)
            return ses_chat_fail(r, "% needs integers");
        *v = ses_chat_int((v->number % b.number + b.number) % b.number);
    }
    return true;
}

static bool sum(ses_chat_run *r, ses_chat_value *v)
{
    if (!product(r, v)) return false;
    for (;;) {
        ses_chat_value b;
        bool minus = sees(r, "-") && !sees(r, "-%}") && !sees(r, "-}}"), tilde = sees(r, "~");
        if (!minus && !tilde && (!sees(r, "+") || sees(r, "+%}"))) return true;
        r->at++;
        if (!product(r, &b)) return false;
        if (r->dead) continue;
        bool numbers = v->kind == SES_CHAT_INT && b.kind == SES_CHAT_INT;
        bool texts = v->kind == SES_CHAT_STRING && b.kind == SES_CHAT_STRING;
        if (tilde || (texts && !minus)) {
            if (!concatenate(r, v, &b)) return false;
        } else if (!numbers)
            return ses_fail(r->e, SES_EARG, "the chat template adds %s and %s", ses_chat_kind_name(v),
                            ses_chat_kind_name(&b));
        else
            *v = ses_chat_int(minus ? v->number - b.number : v->number + b.number);
        if (v->kind == SES_CHAT_INT && llabs(v->number) > SES_CHAT_MAX_INT)
            return ses_chat_fail(r, "a number is too large");
    }
}

static bool is_in(ses_chat_run *r, const ses_chat_value *a, const ses_chat_value *b, bool *found)
{
    *found = false;
    if (b->kind == SES_CHAT_LIST)
        for (size_t i = 0; i < b->n && !*found; i++) *found = ses_chat_equal(a, &b->item[i]);
    else if (b->kind == SES_CHAT_OBJECT && a->kind == SES_CHAT_STRING) {
        ses_chat_value v;
        if (!ses_chat_member(&r->mem, b, a->s, &v, r->e)) return false;
        *found = v.kind != SES_CHAT_UNDEFINED;
    } else if (b->kind == SES_CHAT_STRING && a->kind == SES_CHAT_STRING)
        for (size_t i = 0; i + a->s.n <= b->s.n && !*found; i++)
            *found = !a->s.n || !memcmp(b->s.p + i, a->s.p, a->s.n);
    else
        return ses_chat_fail(r, "\"in\" needs a list, an object or texts");
    return true;
}

/* The operator of a comparison; NULL: none. */
static const char *take_operator(ses_chat_run *r)
{
    static const char *const list[] = { "==", "!=", "<=", ">=", "<", ">" };
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (ses_chat_takes(r, list[i])) return list[i];
    if (ses_chat_takes_word(r, "is")) return ses_chat_takes_word(r, "not") ? "is not" : "is";
    if (ses_chat_takes_word(r, "in")) return "in";
    size_t before = r->at;
    if (ses_chat_takes_word(r, "not") && ses_chat_takes_word(r, "in")) return "not in";
    r->at = before;
    return NULL;
}

static bool compare(ses_chat_run *r, const char *op, ses_chat_value *v, const ses_chat_value *b)
{
    bool yes = false;
    int64_t x = v->number, y = b->number;
    if (!strcmp(op, "==") || !strcmp(op, "!="))
        yes = ses_chat_equal(v, b) == (*op == '=');
    else if (!strcmp(op, "in") || !strcmp(op, "not in")) {
        if (!is_in(r, v, b, &yes)) return false;
        yes = yes == (*op == 'i');
    } else if (v->kind != SES_CHAT_INT || b->kind != SES_CHAT_INT)
        return ses_chat_fail(r, "< and > need integers");
    else
        yes = op[0] == '<' ? (op[1] ? x <= y : x < y) : (op[1] ? x >= y : x > y);
    *v = ses_chat_bool(yes);
    return true;
}

static bool comparison(ses_chat_run *r, ses_chat_value *v)
{
    if (!sum(r, v)) return false;
    for (const char *op; (op = take_operator(r));) {
        ses_chat_value b = { 0 };
        if (op[0] == 'i' && op[1] == 's') {
            ses_string name;
            bool yes = false;
            if (!ses_chat_name_of(r, &name)) return false;
            if (r->dead) continue;
            if (!ses_chat_test(name, v, &yes, r->e)) return false;
            *v = ses_chat_bool(yes == !op[2]);
            continue;
        }
        if (!sum(r, &b) || (!r->dead && !compare(r, op, v, &b))) return false;
    }
    return true;
}

static bool negation(ses_chat_run *r, ses_chat_value *v)
{
    if (!ses_chat_takes_word(r, "not")) return comparison(r, v);
    if (++r->depth > SES_CHAT_MAX_DEPTH || !negation(r, v))
        return r->depth > SES_CHAT_MAX_DEPTH ? ses_chat_fail(r, "too deep") : false;
    r->depth--;
    *v = ses_chat_bool(!ses_chat_is_true(v));
    return true;
}

/* and, or: the side that is not needed is read without effect, as in Python. */
bool ses_chat_logical(ses_chat_run *r, ses_chat_value *v, bool any)
{
    if (any ? !ses_chat_logical(r, v, false) : !negation(r, v)) return false;
    while (ses_chat_takes_word(r, any ? "or" : "and")) {
        ses_chat_value b;
        bool decided = ses_chat_is_true(v) == any;
        r->dead += decided;
        bool ok = any ? ses_chat_logical(r, &b, false) : negation(r, &b);
        r->dead -= decided;
        if (!ok) return false;
        if (!decided) *v = b;
    }
    return true;
}

/* The rest of a if c else b, after "if": a is read again from `begin` if c holds. */
static bool choice(ses_chat_run *r, size_t begin, ses_chat_value *v)
{
    ses_chat_value condition = { 0 }, other = { 0 };
    if (!ses_chat_logical(r, &condition, true)) return false;
    bool yes = !r->dead && ses_chat_is_true(&condition);
    if (ses_chat_takes_word(r, "else")) {
        r->dead += yes;
        bool ok = ses_chat_expression(r, &other);
        r->dead -= yes;
        if (!ok) return false;
    }
    *v = other;
    if (!yes) return true;
    size_t end = r->at;
    r->at = begin;
    if (!ses_chat_logical(r, v, true)) return false;
    r->at = end;
    return true;
}

/* The value of a if c else b comes before its condition, so it is first read without effect. */
bool ses_chat_expression(ses_chat_run *r, ses_chat_value *v)
{
    if (++r->depth > SES_CHAT_MAX_DEPTH) return ses_chat_fail(r, "expressions are nested too deeply");
    if (++r->steps > SES_CHAT_MAX_STEPS) return ses_chat_fail(r, "the template takes too long");
    skip_space(r);
    size_t begin = r->at;
    *v = (ses_chat_value){ 0 };
    r->dead++;
    bool ok = ses_chat_logical(r, v, true);
    r->dead--;
    if (ok && ses_chat_takes_word(r, "if")) {
        ok = choice(r, begin, v);
    } else if (ok && !r->dead) {
        r->at = begin;
        ok = ses_chat_logical(r, v, true);
    }
    r->depth--;
    return ok;
}
