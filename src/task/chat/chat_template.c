/* Renders chat templates while reading them. Parts that do not apply are read with `dead` set, so that their
 * expressions have no effect. */
#include "chat_template.h"

#include "base/alloc.h"
#include "chat_value.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_STEPS = 1 << 20, MAX_ARGUMENTS = 4, MAX_BYTES = 256 << 20 };

typedef struct variable {
    ses_string name;
    ses_chat_value value;
    int64_t space; /* number of its namespace; 0: none */
} variable;

typedef struct run {
    const char *s;
    size_t n, at;
    ses_buf *out;
    ses_arena mem;
    const ses_json *given;
    variable *var;
    size_t n_vars, var_capacity, scope; /* scope: the first variable of the innermost loop */
    int64_t spaces;
    int dead, depth, steps;
    bool after_block, after_minus; /* the tag before the text */
    ses_err *e;
} run;

static bool expression(run *r, ses_chat_value *v);

static bool fail(run *r, const char *what)
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

static void skip_space(run *r)
{
    while (r->at < r->n && (r->s[r->at] == ' ' || (r->s[r->at] >= '\t' && r->s[r->at] <= '\r'))) r->at++;
}

static bool sees(run *r, const char *text)
{
    size_t n = strlen(text);
    skip_space(r);
    return r->n - r->at >= n && !memcmp(r->s + r->at, text, n);
}

static bool takes(run *r, const char *text)
{
    if (!sees(r, text)) return false;
    r->at += strlen(text);
    return true;
}

static ses_string peek_name(run *r)
{
    skip_space(r);
    size_t n = 0;
    while (r->at + n < r->n && is_name_char(r->s[r->at + n])) n++;
    if (n && r->s[r->at] >= '0' && r->s[r->at] <= '9') n = 0;
    return (ses_string){ r->s + r->at, n };
}

static bool takes_word(run *r, const char *word)
{
    ses_string name = peek_name(r);
    if (!ses_equal(name.p, name.n, word)) return false;
    r->at += name.n;
    return true;
}

static bool name_of(run *r, ses_string *name)
{
    *name = peek_name(r);
    r->at += name->n;
    return name->n || fail(r, "expected a name");
}

/* ---- variables ---- */

static variable *find(run *r, ses_string name, int64_t space, size_t from)
{
    for (size_t i = r->n_vars; i > from; i--) {
        variable *v = &r->var[i - 1];
        if (v->space == space && v->name.n == name.n && !memcmp(v->name.p, name.p, name.n)) return v;
    }
    return NULL;
}

static bool add(run *r, ses_string name, int64_t space, const ses_chat_value *value)
{
    if (!ses_array_reserve(&r->var, &r->var_capacity, r->n_vars + 1, sizeof *r->var, r->e)) return false;
    r->var[r->n_vars++] = (variable){ name, *value, space };
    return true;
}

/* A variable of a loop ends with its round; the variables of a namespace stay. */
static bool set(run *r, ses_string name, int64_t space, const ses_chat_value *value)
{
    variable *v = find(r, name, space, space ? 0 : r->scope);
    if (!v) return add(r, name, space, value);
    v->value = *value;
    return true;
}

static bool lookup(run *r, ses_string name, ses_chat_value *out)
{
    const variable *v = find(r, name, 0, 0);
    ses_chat_value given = { .kind = SES_CHAT_OBJECT, .object = r->given };
    if (!v) return ses_chat_member(&r->mem, &given, name, out, r->e);
    *out = v->value;
    return true;
}

/* ---- expressions ---- */

static bool text_literal(run *r, char quote, ses_chat_value *v)
{
    ses_buf b = { 0 };
    for (r->at++; r->at < r->n && r->s[r->at] != quote; r->at++) {
        char c = r->s[r->at];
        if (c == '\\' && r->at + 1 < r->n) {
            c = r->s[++r->at];
            if (strchr("xuUNabfv01234567", c)) return ses_buf_free(&b), fail(r, "an escape is not supported");
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        ses_buf_put(&b, c);
    }
    bool ok = r->at++ < r->n || fail(r, "a text does not end");
    char *copy =
        ok && ses_buf_ok(&b, r->e) ? ses_arena_strndup(&r->mem, b.data ? b.data : "", b.len, r->e) : NULL;
    if (copy) *v = ses_chat_string((ses_string){ copy, b.len });
    ses_buf_free(&b);
    return copy != NULL;
}

/* The arguments of a call, after "(". */
static bool arguments(run *r, ses_chat_value *list, size_t *n)
{
    for (*n = 0; !takes(r, ")");) {
        if (*n == MAX_ARGUMENTS || (*n && !takes(r, ","))) return fail(r, "expected , or )");
        if (!expression(r, &list[(*n)++])) return false;
    }
    return true;
}

static bool call(run *r, ses_string name, ses_chat_value *v)
{
    *v = (ses_chat_value){ 0 };
    if (ses_equal(name.p, name.n, "namespace")) {
        *v = (ses_chat_value){ .kind = SES_CHAT_SPACE, .number = ++r->spaces };
        for (size_t i = 0; !takes(r, ")"); i++) {
            ses_string key;
            ses_chat_value value;
            if ((i && !takes(r, ",")) || !name_of(r, &key) || !takes(r, "="))
                return fail(r, "expected name = value");
            if (!expression(r, &value) || (!r->dead && !add(r, key, v->number, &value))) return false;
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

static bool list_literal(run *r, ses_chat_value *v)
{
    enum { MOST = 64 };
    ses_chat_value *list = ses_arena_array(&r->mem, MOST, sizeof *list, r->e);
    size_t n = 0;
    for (; list && !takes(r, "]"); n++) {
        if (n == MOST || (n && !takes(r, ","))) return fail(r, "expected , or ]");
        if (!expression(r, &list[n])) return false;
    }
    *v = (ses_chat_value){ .kind = SES_CHAT_LIST, .item = list, .n = n };
    return list != NULL;
}

static bool primary(run *r, ses_chat_value *v)
{
    skip_space(r);
    char c = r->at < r->n ? r->s[r->at] : 0;
    *v = (ses_chat_value){ 0 };
    if (c == '"' || c == '\'') return text_literal(r, c, v);
    if (c >= '0' && c <= '9') {
        int64_t x = 0;
        for (; r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9'; r->at++) {
            x = 10 * x + (r->s[r->at] - '0');
            if (x > 1000000000) return fail(r, "a number is too large");
        }
        *v = ses_chat_int(x);
        return true;
    }
    if (takes(r, "(")) return expression(r, v) && (takes(r, ")") || fail(r, "expected )"));
    if (takes(r, "[")) return list_literal(r, v);
    ses_string name;
    if (!name_of(r, &name)) return false;
    bool yes = ses_equal(name.p, name.n, "true") || ses_equal(name.p, name.n, "True");
    if (yes || ses_equal(name.p, name.n, "false") || ses_equal(name.p, name.n, "False"))
        return *v = ses_chat_bool(yes), true;
    if (ses_equal(name.p, name.n, "none") || ses_equal(name.p, name.n, "None"))
        return v->kind = SES_CHAT_NONE, true;
    if (takes(r, "(")) return call(r, name, v);
    return r->dead || lookup(r, name, v);
}

/* v[i] or v[i:j], after "[". */
static bool subscript(run *r, ses_chat_value *v)
{
    ses_chat_value begin = ses_chat_int(0), end = ses_chat_int(INT32_MAX), old = *v;
    bool whole = !sees(r, ":");
    if (whole && !expression(r, &begin)) return false;
    bool slice = takes(r, ":");
    if (slice && sees(r, ":")) return fail(r, "slices with a step are not supported");
    if (slice && !sees(r, "]") && !expression(r, &end)) return false;
    if (!takes(r, "]")) return fail(r, "expected ]");
    if (r->dead) return true;
    if (slice)
        return begin.kind == SES_CHAT_INT && end.kind == SES_CHAT_INT
                   ? ses_chat_slice(&old, begin.number, end.number, v, r->e)
                   : fail(r, "a slice needs integers");
    if (begin.kind == SES_CHAT_STRING) return ses_chat_member(&r->mem, &old, begin.s, v, r->e);
    if (begin.kind != SES_CHAT_INT) return fail(r, "an index must be an integer or a text");
    *v = ses_chat_element(&old, begin.number);
    return true;
}

/* v.name or v.name(...), after the dot; v | name(...), after the bar. */
static bool member(run *r, ses_chat_value *v, bool filter)
{
    ses_chat_value arg[MAX_ARGUMENTS] = { { 0 } }, old = *v;
    ses_string name;
    size_t n = 0;
    if (!name_of(r, &name)) return false;
    bool called = takes(r, "(");
    if (called && !arguments(r, arg, &n)) return false;
    if (r->dead) return true;
    if (called || filter) return ses_chat_apply(&r->mem, name, &old, arg, n, v, r->e);
    if (old.kind != SES_CHAT_SPACE) return ses_chat_member(&r->mem, &old, name, v, r->e);
    const variable *x = find(r, name, old.number, 0);
    *v = x ? x->value : (ses_chat_value){ 0 };
    return true;
}

static bool postfix(run *r, ses_chat_value *v)
{
    bool minus = takes(r, "-");
    if (!primary(r, v)) return false;
    for (;;) {
        bool ok = true;
        if (takes(r, "."))
            ok = member(r, v, false);
        else if (takes(r, "["))
            ok = subscript(r, v);
        else if (takes(r, "|"))
            ok = member(r, v, true);
        else
            break;
        if (!ok) return false;
    }
    if (minus && !r->dead && v->kind != SES_CHAT_INT) return fail(r, "- needs an integer");
    if (minus) v->number = -v->number;
    return true;
}

static bool concatenate(run *r, ses_chat_value *a, const ses_chat_value *b)
{
    ses_buf text = { 0 };
    bool ok = ses_chat_write(a, &text, r->e) && ses_chat_write(b, &text, r->e) && ses_buf_ok(&text, r->e);
    char *copy = ok ? ses_arena_strndup(&r->mem, text.data ? text.data : "", text.len, r->e) : NULL;
    if (copy) *a = ses_chat_string((ses_string){ copy, text.len });
    ses_buf_free(&text);
    return copy != NULL;
}

static bool product(run *r, ses_chat_value *v)
{
    if (!postfix(r, v)) return false;
    while (sees(r, "%") && !sees(r, "%}") && !sees(r, "%-")) {
        ses_chat_value b;
        takes(r, "%");
        if (!postfix(r, &b)) return false;
        if (r->dead) continue;
        if (v->kind != SES_CHAT_INT || b.kind != SES_CHAT_INT || b.number <= 0)
            return fail(r, "% needs integers");
        *v = ses_chat_int((v->number % b.number + b.number) % b.number);
    }
    return true;
}

static bool sum(run *r, ses_chat_value *v)
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
            return fail(r, "a number is too large");
    }
}

static bool is_in(run *r, const ses_chat_value *a, const ses_chat_value *b, bool *found)
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
        return fail(r, "\"in\" needs a list, an object or texts");
    return true;
}

/* The operator of a comparison; NULL: none. */
static const char *take_operator(run *r)
{
    static const char *const list[] = { "==", "!=", "<=", ">=", "<", ">" };
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (takes(r, list[i])) return list[i];
    if (takes_word(r, "is")) return takes_word(r, "not") ? "is not" : "is";
    if (takes_word(r, "in")) return "in";
    size_t before = r->at;
    if (takes_word(r, "not") && takes_word(r, "in")) return "not in";
    r->at = before;
    return NULL;
}

static bool compare(run *r, const char *op, ses_chat_value *v, const ses_chat_value *b)
{
    bool yes = false;
    int64_t x = v->number, y = b->number;
    if (!strcmp(op, "==") || !strcmp(op, "!="))
        yes = ses_chat_equal(v, b) == (*op == '=');
    else if (!strcmp(op, "in") || !strcmp(op, "not in")) {
        if (!is_in(r, v, b, &yes)) return false;
        yes = yes == (*op == 'i');
    } else if (v->kind != SES_CHAT_INT || b->kind != SES_CHAT_INT)
        return fail(r, "< and > need integers");
    else
        yes = op[0] == '<' ? (op[1] ? x <= y : x < y) : (op[1] ? x >= y : x > y);
    *v = ses_chat_bool(yes);
    return true;
}

static bool comparison(run *r, ses_chat_value *v)
{
    if (!sum(r, v)) return false;
    for (const char *op; (op = take_operator(r));) {
        ses_chat_value b = { 0 };
        if (op[0] == 'i' && op[1] == 's') {
            ses_string name;
            bool yes = false;
            if (!name_of(r, &name)) return false;
            if (r->dead) continue;
            if (!ses_chat_test(name, v, &yes, r->e)) return false;
            *v = ses_chat_bool(yes == !op[2]);
            continue;
        }
        if (!sum(r, &b) || (!r->dead && !compare(r, op, v, &b))) return false;
    }
    return true;
}

static bool negation(run *r, ses_chat_value *v)
{
    if (!takes_word(r, "not")) return comparison(r, v);
    if (++r->depth > MAX_DEPTH || !negation(r, v)) return r->depth > MAX_DEPTH ? fail(r, "too deep") : false;
    r->depth--;
    *v = ses_chat_bool(!ses_chat_is_true(v));
    return true;
}

/* and, or: the side that is not needed is read without effect, as in Python. */
static bool logical(run *r, ses_chat_value *v, bool any)
{
    if (any ? !logical(r, v, false) : !negation(r, v)) return false;
    while (takes_word(r, any ? "or" : "and")) {
        ses_chat_value b;
        bool decided = ses_chat_is_true(v) == any;
        r->dead += decided;
        bool ok = any ? logical(r, &b, false) : negation(r, &b);
        r->dead -= decided;
        if (!ok) return false;
        if (!decided) *v = b;
    }
    return true;
}

/* The rest of a if c else b, after "if": a is read again from `begin` if c holds. */
static bool choice(run *r, size_t begin, ses_chat_value *v)
{
    ses_chat_value condition = { 0 }, other = { 0 };
    if (!logical(r, &condition, true)) return false;
    bool yes = !r->dead && ses_chat_is_true(&condition);
    if (takes_word(r, "else")) {
        r->dead += yes;
        bool ok = expression(r, &other);
        r->dead -= yes;
        if (!ok) return false;
    }
    *v = other;
    if (!yes) return true;
    size_t end = r->at;
    r->at = begin;
    if (!logical(r, v, true)) return false;
    r->at = end;
    return true;
}

/* The value of a if c else b comes before its condition, so it is first read without effect. */
static bool expression(run *r, ses_chat_value *v)
{
    if (++r->depth > MAX_DEPTH) return fail(r, "expressions are nested too deeply");
    if (++r->steps > MAX_STEPS) return fail(r, "the template takes too long");
    skip_space(r);
    size_t begin = r->at;
    *v = (ses_chat_value){ 0 };
    r->dead++;
    bool ok = logical(r, v, true);
    r->dead--;
    if (ok && takes_word(r, "if")) {
        ok = choice(r, begin, v);
    } else if (ok && !r->dead) {
        r->at = begin;
        ok = logical(r, v, true);
    }
    r->depth--;
    return ok;
}

/* ---- text and tags ---- */

/* The text from r->at to the next tag, without the whitespace that the tags around it take. Stops behind the
 * opening of the tag; 0: the end. */
static char next_tag(run *r)
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
static bool close_tag(run *r, char kind)
{
    r->after_minus = takes(r, "-");
    r->after_block = kind != '{' && (r->after_minus || !takes(r, "+"));
    if (takes(r, kind == '{' ? "}}" : "%}")) return true;
    return fail(r, kind == '{' ? "expected }}" : "expected %}");
}

static bool skip_comment(run *r)
{
    while (r->at + 1 < r->n && !(r->s[r->at] == '#' && r->s[r->at + 1] == '}')) r->at++;
    if (r->at + 1 >= r->n) return fail(r, "a comment does not end");
    r->after_minus = r->s[r->at - 1] == '-';
    r->after_block = true;
    r->at += 2;
    return true;
}

/* Renders until a statement of the list, whose name is stored; its tag is still open. ends NULL: to the end
 * of the template. */
static bool block(run *r, const char *ends, ses_string *found);

static bool for_statement(run *r)
{
    ses_string name;
    ses_chat_value list = { 0 };
    if (!name_of(r, &name) || !takes_word(r, "in")) return fail(r, "expected: for NAME in LIST");
    size_t before = r->at;
    r->dead++;
    bool ok = logical(r, &list, true);
    r->dead--;
    if (!ok) return false;
    if (takes_word(r, "if")) return fail(r, "a loop with a condition is not supported");
    r->at = before;
    if (!expression(r, &list) || !close_tag(r, '%')) return false;
    if (!r->dead && list.kind != SES_CHAT_LIST) return fail(r, "a loop needs a list");
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
        if (!dead && (!add(r, name, 0, &list.item[i]) || !add(r, (ses_string){ "loop", 4 }, 0, &loop)))
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

static bool if_statement(run *r)
{
    ses_chat_value condition = { 0 };
    ses_string end = { 0 };
    if (!expression(r, &condition) || !close_tag(r, '%')) return false;
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
            ok = expression(r, &condition);
            r->dead -= done;
            if (!ok) return false;
        }
        now = !done && !r->dead && (other || ses_chat_is_true(&condition));
        done |= now;
        if (!close_tag(r, '%')) return false;
    }
}

static bool set_statement(run *r)
{
    ses_string name, key = { 0 };
    ses_chat_value value, space = { 0 };
    if (!name_of(r, &name)) return false;
    if (takes(r, ".") && !name_of(r, &key)) return false;
    if (!takes(r, "=")) return fail(r, "set without = is not supported");
    if (!expression(r, &value)) return false;
    if (r->dead) return close_tag(r, '%');
    if (key.n && !lookup(r, name, &space)) return false;
    if (key.n && space.kind != SES_CHAT_SPACE) return fail(r, "only members of a namespace can be set");
    return set(r, key.n ? key : name, key.n ? space.number : 0, &value) && close_tag(r, '%');
}

static bool statement(run *r, const char *ends, ses_string *found, bool *ended)
{
    ses_string name;
    const char *word;
    size_t n;
    if (!name_of(r, &name)) return false;
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

static bool block(run *r, const char *ends, ses_string *found)
{
    if (++r->depth > MAX_DEPTH) return fail(r, "statements are nested too deeply");
    for (;;) {
        if (++r->steps > MAX_STEPS) return fail(r, "the template takes too long");
        if (r->out->len > MAX_BYTES) return fail(r, "the text is too long");
        char kind = next_tag(r);
        bool ok = true, ended = false;
        ses_chat_value v;
        if (!kind)
            ok = !ends || fail(r, "a statement does not end");
        else if (kind == '#')
            ok = skip_comment(r);
        else if (kind == '{')
            ok = expression(r, &v) && (r->dead || ses_chat_write(&v, r->out, r->e)) && close_tag(r, '{');
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
    run r = { .s = source.p, .n = source.n, .out = out, .mem.limit = MAX_BYTES, .given = variables, .e = e };
    ses_string end = { 0 };
    if (r.n && r.s[r.n - 1] == '\n') r.n--; /* as Jinja without keep_trailing_newline */
    bool ok = block(&r, NULL, &end);
    ses_arena_free(&r.mem);
    ses_free(r.var);
    return ok;
}
