/* Compiles a pattern to a program in one pass. Code is emitted while the pattern is read, and moved when
 * an alternative or a repetition turns out to enclose it (all jumps are relative). Open groups are kept on
 * an explicit stack, without recursion. */
#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "regex_parse.h"

#include <string.h>

enum { MAX_INST = 20000, MAX_GROUPS = 64, MAX_SLOTS = 64 };

typedef enum {
    PLAIN,
    OPTION,
    LOOKAHEAD,
    NEGATIVE_LOOKAHEAD,
    LOOKBEHIND,
    NEGATIVE_LOOKBEHIND,
    ATOMIC
} group_kind;

typedef struct group {
    group_kind kind;
    size_t begin;   /* start of its code, including its own LOOKAROUND or ATOMIC */
    size_t alt;     /* start of the current alternative */
    int32_t jumps;  /* last JUMP to its end, chained by x; -1: none */
    bool fold, dot; /* options of the enclosing group */
} group;

/* Kind of the last item, which a repetition applies to. */
typedef enum { NOTHING, CHARACTER, GROUP, ASSERTION } atom_kind;

typedef struct compiler {
    ses_re_parser r;
    ses_re_inst *inst;
    size_t n, cap;
    size_t *set; /* start of the items of each set */
    size_t sets, cap_sets;
    ses_re_repeat *run;
    size_t runs, cap_runs;
    group open[MAX_GROUPS];
    size_t depth;
    size_t n_slots;
    atom_kind atom;
    size_t atom_at;
    uint32_t folded; /* previous letter if case is ignored; 0: none */
} compiler;

bool ses_re_syntax_error(ses_re_parser *r, const char *what)
{
    return ses_fail(r->e, SES_EFORMAT, "regular expression: %s, at byte %zu", what, r->i);
}

bool ses_re_unsupported(ses_re_parser *r, const char *what)
{
    r->unsupported = what;
    return false;
}

/* ---- code generation ---- */

/* Capacity for one more element; limit: maximum that the matcher supports. */
static bool grow(compiler *c, void *array, size_t n, size_t *cap, size_t size, size_t limit)
{
    void *p;
    if (n < *cap) return true;
    if (n >= limit) return ses_re_unsupported(&c->r, "a pattern of this length");
    size_t more = *cap ? 2 * *cap : 64;
    memcpy(&p, array, sizeof p);
    p = ses_realloc_array(p, more, size, c->r.e);
    if (!p) return false;
    memcpy(array, &p, sizeof p);
    *cap = more;
    return true;
}

static bool emit(compiler *c, ses_re_op op, int32_t x, int32_t y)
{
    if (!grow(c, &c->inst, c->n, &c->cap, sizeof *c->inst, MAX_INST)) return false;
    c->inst[c->n++] = (ses_re_inst){ op, x, y };
    return true;
}

static bool insert(compiler *c, size_t at, ses_re_op op, int32_t x, int32_t y)
{
    if (!emit(c, op, x, y)) return false;
    memmove(c->inst + at + 1, c->inst + at, (c->n - 1 - at) * sizeof *c->inst);
    c->inst[at] = (ses_re_inst){ op, x, y };
    return true;
}

static bool begin_set(compiler *c)
{
    if (!grow(c, &c->set, c->sets, &c->cap_sets, sizeof *c->set, MAX_INST)) return false;
    c->set[c->sets++] = c->r.items;
    return true;
}

/* Emit the set started last. */
static bool end_set(compiler *c)
{
    c->atom = CHARACTER;
    c->atom_at = c->n;
    c->folded = 0;
    return emit(c, SES_RE_SET, (int32_t)c->sets - 1, 0);
}

/* Letter pairs that fold to a single character: ss and sharp s, st, ff, fi, fl. */
static bool ligature(uint32_t a, uint32_t b)
{
    return (a == 's' && (b == 's' || b == 't')) || (a == 'f' && (b == 'f' || b == 'i' || b == 'l'));
}

static bool literal(compiler *c, uint32_t cp)
{
    ses_re_parser *r = &c->r;
    uint32_t before = c->folded, low[2];
    if (!begin_set(c) || !ses_char_set_add(r, SES_CHAR_SET_RANGE, cp, cp)) return false;
    if (r->fold && cp < 0x80) {
        if (!ses_char_set_add_case(r, cp)) return false;
        if (ligature(before, cp | 0x20)) return ses_re_unsupported(r, "letters that fold into one character");
    } else if (r->fold &&
               (ses_gc_in(cp, SES_GCS_L | SES_GCS_M) || ses_cp_lower(cp, low) != 1 || low[0] != cp)) {
        return ses_re_unsupported(r, "case-insensitive non-ASCII characters");
    }
    if (!end_set(c)) return false;
    c->folded = r->fold ? cp | 0x20 : 0;
    return true;
}

static bool assertion(compiler *c, ses_re_op op)
{
    c->atom = ASSERTION;
    c->folded = 0;
    return emit(c, op, 0, 0);
}

/* ---- escapes ---- */

static bool escape(compiler *c)
{
    ses_re_parser *r = &c->r;
    if (r->i >= r->n) return ses_re_syntax_error(r, "\\ at the end");
    switch (r->p[r->i]) {
    case 'A': return r->i++, assertion(c, SES_RE_TEXT_BEGIN);
    case 'z': return r->i++, assertion(c, SES_RE_TEXT_END);
    case 'Z': return r->i++, assertion(c, SES_RE_LAST_LINE);
    case 'b': return r->i++, assertion(c, SES_RE_WORD_BOUNDARY);
    case 'B': return r->i++, assertion(c, SES_RE_NOT_WORD_BOUNDARY);
    default: break;
    }
    bool is_class;
    size_t items = r->items;
    if (!begin_set(c) || !ses_char_set_escape(r, false, &is_class)) return false;
    if (is_class) return end_set(c);
    c->sets--;
    r->items = items;
    uint32_t cp;
    return ses_re_char_escape(r, &cp) && literal(c, cp);
}

static bool dot(compiler *c)
{
    ses_re_parser *r = &c->r;
    bool ok = begin_set(c) && ses_char_set_add(r, SES_CHAR_SET_RANGE, 0, r->dot ? 0x10FFFF : '\n' - 1);
    if (ok && !r->dot) ok = ses_char_set_add(r, SES_CHAR_SET_RANGE, '\n' + 1, 0x10FFFF);
    return ok && end_set(c);
}

/* ---- groups ---- */

/* Number of characters that code [begin, n) consumes, if all paths agree; -1: they differ. */
static int64_t fixed_length(const compiler *c, size_t begin)
{
    int64_t length = 0;
    for (size_t i = begin; i < c->n; i++) {
        const ses_re_inst *t = &c->inst[i];
        if (t->op == SES_RE_SET) {
            length++;
        } else if (t->op == SES_RE_REPEAT) {
            const ses_re_repeat *run = &c->run[t->x];
            if (run->min != run->max) return -1;
            length += run->min;
        } else if (t->op == SES_RE_LOOKAROUND || t->op == SES_RE_NEGATIVE_LOOKAROUND) {
            i += (size_t)t->x - 1;
        } else if (t->op == SES_RE_SPLIT || t->op == SES_RE_JUMP) {
            return -1;
        }
    }
    return length;
}

static bool is_behind(const group *g) { return g->kind == LOOKBEHIND || g->kind == NEGATIVE_LOOKBEHIND; }

/* End of an alternative. In a lookbehind, it starts by stepping back. */
static bool end_alternative(compiler *c, const group *g)
{
    if (!is_behind(g)) return true;
    int64_t length = fixed_length(c, g->alt);
    if (length < 0 || length > INT32_MAX) return ses_re_unsupported(&c->r, "variable-length lookbehind");
    return insert(c, g->alt, SES_RE_STEP_BACK, (int32_t)length, 0);
}

static bool alternative(compiler *c)
{
    group *g = &c->open[c->depth - 1];
    if (!end_alternative(c, g)) return false;
    if (!insert(c, g->alt, SES_RE_SPLIT, 1, (int32_t)(c->n - g->alt + 2))) return false;
    if (!emit(c, SES_RE_JUMP, g->jumps, 0)) return false;
    g->jumps = (int32_t)c->n - 1;
    g->alt = c->n;
    c->atom = NOTHING;
    c->folded = 0;
    return true;
}

static bool open_group(compiler *c, group_kind kind)
{
    ses_re_parser *r = &c->r;
    if (c->depth == MAX_GROUPS) return ses_re_unsupported(r, "groups nested this deep");
    group *g = &c->open[c->depth++];
    *g = (group){ .kind = kind, .begin = c->n, .jumps = -1, .fold = r->fold, .dot = r->dot };
    bool ok = true;
    if (kind == LOOKAHEAD || kind == LOOKBEHIND) ok = emit(c, SES_RE_LOOKAROUND, 0, 0);
    if (kind == NEGATIVE_LOOKAHEAD || kind == NEGATIVE_LOOKBEHIND)
        ok = emit(c, SES_RE_NEGATIVE_LOOKAROUND, 0, 0);
    if (kind == ATOMIC) ok = emit(c, SES_RE_ATOMIC, 0, 0);
    g->alt = c->n;
    c->atom = NOTHING;
    c->folded = 0;
    return ok;
}

static bool close_group(compiler *c)
{
    group *g = &c->open[--c->depth];
    if (!end_alternative(c, g)) return false;
    for (int32_t j = g->jumps, next; j >= 0; j = next) {
        next = c->inst[j].x;
        c->inst[j].x = (int32_t)c->n - j;
    }
    c->r.fold = g->fold;
    c->r.dot = g->dot;
    c->folded = 0;
    c->atom = GROUP;
    c->atom_at = g->begin;
    if (g->kind == ATOMIC) return emit(c, SES_RE_ATOMIC_END, 0, 0);
    if (g->kind == PLAIN || g->kind == OPTION) return true;
    c->atom = ASSERTION;
    if (!emit(c, SES_RE_LOOKAROUND_END, 0, 0)) return false;
    c->inst[g->begin].x = (int32_t)(c->n - g->begin);
    return true;
}

/* (?imx-imx) and (?imx-imx:...): after the (?. */
static bool options(compiler *c)
{
    ses_re_parser *r = &c->r;
    bool on = true, fold = r->fold, dot_all = r->dot;
    for (; r->i < r->n; r->i++) {
        char o = r->p[r->i];
        if (o == '-')
            on = false;
        else if (o == 'i')
            fold = on;
        else if (o == 'm')
            dot_all = on;
        else
            break;
    }
    bool rest = r->i < r->n && r->p[r->i] == ')'; /* applies up to the end of the enclosing group */
    if (r->i >= r->n || !(rest || r->p[r->i] == ':')) return ses_re_unsupported(r, "this kind of (? group");
    r->i++;
    if (!open_group(c, rest ? OPTION : PLAIN)) return false;
    r->fold = fold;
    r->dot = dot_all;
    return true;
}

static bool named_group(compiler *c)
{
    ses_re_parser *r = &c->r;
    while (r->i < r->n && r->p[r->i] != '>') r->i++;
    if (r->i >= r->n) return ses_re_syntax_error(r, "(?< without >");
    r->i++;
    return open_group(c, PLAIN);
}

/* After the (. */
static bool group_begin(compiler *c)
{
    static const struct {
        const char *text;
        group_kind kind;
    } kind[] = { { "?:", PLAIN },
                 { "?=", LOOKAHEAD },
                 { "?!", NEGATIVE_LOOKAHEAD },
                 { "?<=", LOOKBEHIND },
                 { "?<!", NEGATIVE_LOOKBEHIND },
                 { "?>", ATOMIC } };
    ses_re_parser *r = &c->r;
    const char *p = r->p + r->i;
    size_t left = r->n - r->i;
    if (left && *p == '*') return ses_re_unsupported(r, "(*");
    if (!left || *p != '?') return open_group(c, PLAIN);
    for (size_t i = 0; i < SES_LEN(kind); i++) {
        size_t k = strlen(kind[i].text);
        if (left < k || memcmp(p, kind[i].text, k) != 0) continue;
        r->i += k;
        return open_group(c, kind[i].kind);
    }
    if (left > 1 && p[1] == '#') {
        const char *close = memchr(p, ')', left);
        if (!close) return ses_re_syntax_error(r, "(?# without )");
        r->i = (size_t)(close + 1 - r->p);
        return true;
    }
    r->i++;
    if (left > 1 && p[1] == '<') return r->i++, named_group(c);
    return options(c);
}

static bool group_end(compiler *c)
{
    while (c->depth > 1 && c->open[c->depth - 1].kind == OPTION)
        if (!close_group(c)) return false;
    if (c->depth == 1) return ses_re_syntax_error(&c->r, ") without (");
    return close_group(c);
}

/* ---- repetition ---- */

/* Turn the code from `at` on into a loop. greedy: repeat before continuing. */
static bool loop(compiler *c, size_t at, bool once, bool greedy)
{
    if (c->n_slots == MAX_SLOTS) return ses_re_unsupported(&c->r, "this many loops");
    int32_t slot = (int32_t)c->n_slots++, body;
    if (!insert(c, at, SES_RE_SAVE_POSITION, slot, 0) || !emit(c, SES_RE_CHECK_PROGRESS, slot, 2))
        return false;
    body = (int32_t)(c->n - at);
    if (once) return emit(c, SES_RE_SPLIT, greedy ? -body : 1, greedy ? 1 : -body);
    return insert(c, at, SES_RE_SPLIT, greedy ? 1 : body + 2, greedy ? body + 2 : 1) &&
           emit(c, SES_RE_JUMP, -(body + 1), 0);
}

/* Copy a body: `min` times, then optional copies up to `max`. */
static bool repeat_group(compiler *c, uint32_t min, uint32_t max, bool greedy)
{
    size_t at = c->atom_at, n = c->n - at;
    ses_re_inst *body = ses_alloc_array(n + 1, sizeof *body, c->r.e);
    if (!body) return false;
    if (n) memcpy(body, c->inst + at, n * sizeof *body);
    c->n = at;
    bool ok = true, endless = max == UINT32_MAX;
    uint32_t copies = endless && min ? min - 1 : min, more = endless ? 0 : max - min;
    for (uint32_t k = 0; ok && k < copies; k++)
        for (size_t i = 0; ok && i < n; i++) ok = emit(c, body[i].op, body[i].x, body[i].y);
    for (uint32_t k = more; ok && k; k--) {
        size_t rest = (size_t)k * (n + 1);
        if (rest > MAX_INST) ok = ses_re_unsupported(&c->r, "a repetition count of this size");
        if (ok) ok = emit(c, SES_RE_SPLIT, greedy ? 1 : (int32_t)rest, greedy ? (int32_t)rest : 1);
        for (size_t i = 0; ok && i < n; i++) ok = emit(c, body[i].op, body[i].x, body[i].y);
    }
    if (ok && endless) {
        size_t start = c->n;
        for (size_t i = 0; ok && i < n; i++) ok = emit(c, body[i].op, body[i].x, body[i].y);
        ok = ok && loop(c, start, min > 0, greedy);
    }
    ses_free(body);
    return ok;
}

static bool repeat(compiler *c, uint32_t min, uint32_t max, ses_re_mode mode)
{
    c->folded = 0;
    if (c->atom == NOTHING) return ses_re_syntax_error(&c->r, "nothing to repeat");
    if (c->atom == ASSERTION) return ses_re_syntax_error(&c->r, "an assertion cannot be repeated");
    if (c->atom == CHARACTER) {
        ses_re_repeat run = { c->inst[c->atom_at].x, min, max, mode };
        if (!grow(c, &c->run, c->runs, &c->cap_runs, sizeof *c->run, MAX_INST)) return false;
        c->run[c->runs++] = run;
        c->inst[c->atom_at] = (ses_re_inst){ SES_RE_REPEAT, (int32_t)c->runs - 1, 0 };
        c->atom = GROUP;
        return true;
    }
    if (!repeat_group(c, min, max, mode != SES_RE_LAZY)) return false;
    if (mode != SES_RE_POSSESSIVE) return true;
    return insert(c, c->atom_at, SES_RE_ATOMIC, 0, 0) && emit(c, SES_RE_ATOMIC_END, 0, 0);
}

static bool decimal(ses_re_parser *r, uint32_t *out)
{
    size_t start = r->i;
    for (*out = 0; r->i < r->n && r->p[r->i] >= '0' && r->p[r->i] <= '9'; r->i++)
        if (*out < 100000) *out = *out * 10 + (uint32_t)(r->p[r->i] - '0');
    return r->i > start;
}

/* {n} {n,} {,m} {n,m}: after the {. Anything else is literal text, and r->i does not move. */
static bool interval(ses_re_parser *r, uint32_t *min, uint32_t *max)
{
    size_t start = r->i;
    bool low = decimal(r, min), comma = r->i < r->n && r->p[r->i] == ',', high = false;
    *max = *min;
    if (comma) {
        r->i++;
        high = decimal(r, max);
        if (!high) *max = UINT32_MAX;
    }
    if (!(low || high) || r->i >= r->n || r->p[r->i] != '}') return r->i = start, false;
    r->i++;
    return true;
}

/* A suffix of {...}: ? makes it lazy, but {n}? makes it optional; + repeats it once more. */
static bool braces(compiler *c)
{
    ses_re_parser *r = &c->r;
    uint32_t min, max;
    if (!interval(r, &min, &max)) return literal(c, '{');
    if (min > max) return ses_re_unsupported(r, "{n,m} with n greater than m");
    if (max != UINT32_MAX && max > 1000 && c->atom != CHARACTER)
        return ses_re_unsupported(r, "a repetition count of this size");
    bool lazy = r->i < r->n && r->p[r->i] == '?';
    r->i += lazy;
    if (!repeat(c, min, max, lazy && min != max ? SES_RE_LAZY : SES_RE_GREEDY)) return false;
    return !lazy || min != max || repeat(c, 0, 1, SES_RE_GREEDY);
}

static bool quantifier(compiler *c, uint32_t min, uint32_t max)
{
    ses_re_parser *r = &c->r;
    ses_re_mode mode = SES_RE_GREEDY;
    if (r->i < r->n && (r->p[r->i] == '?' || r->p[r->i] == '+'))
        mode = r->p[r->i++] == '?' ? SES_RE_LAZY : SES_RE_POSSESSIVE;
    return repeat(c, min, max, mode);
}

/* ---- entry point ---- */

static bool piece(compiler *c)
{
    ses_re_parser *r = &c->r;
    uint32_t cp;
    r->i += ses_utf8_next(r->p + r->i, &cp);
    switch (cp) {
    case '|': return alternative(c);
    case '(': return group_begin(c);
    case ')': return group_end(c);
    case '[': return begin_set(c) && ses_char_set_bracket(r) && end_set(c);
    case '\\': return escape(c);
    case '.': return dot(c);
    case '^': return assertion(c, SES_RE_LINE_BEGIN);
    case '$': return assertion(c, SES_RE_LINE_END);
    case '*': return quantifier(c, 0, UINT32_MAX);
    case '+': return quantifier(c, 1, UINT32_MAX);
    case '?': return quantifier(c, 0, 1);
    case '{': return braces(c);
    default: return literal(c, cp);
    }
}

static bool parse(compiler *c)
{
    ses_re_parser *r = &c->r;
    if (!open_group(c, PLAIN)) return false;
    while (r->i < r->n)
        if (!piece(c)) return false;
    while (c->depth > 1 && c->open[c->depth - 1].kind == OPTION)
        if (!close_group(c)) return false;
    if (c->depth > 1) return ses_re_syntax_error(r, "( without )");
    return close_group(c) && emit(c, SES_RE_MATCH, 0, 0);
}

static bool finish(const compiler *c, ses_re_program *p, ses_arena *mem, ses_err *e)
{
    ses_re_inst *inst = ses_arena_array(mem, c->n, sizeof *inst, e);
    ses_char_set_item *item = ses_arena_array(mem, c->r.items + 1, sizeof *item, e);
    ses_char_set *set = ses_arena_array(mem, c->sets + 1, sizeof *set, e);
    ses_re_repeat *run = ses_arena_array(mem, c->runs + 1, sizeof *run, e);
    if (!inst || !item || !set || !run) return false;
    memcpy(inst, c->inst, c->n * sizeof *inst);
    if (c->r.items) memcpy(item, c->r.item, c->r.items * sizeof *item);
    if (c->runs) memcpy(run, c->run, c->runs * sizeof *run);
    for (size_t i = 0; i < c->sets; i++) {
        size_t end = i + 1 < c->sets ? c->set[i + 1] : c->r.items;
        set[i].item = item + c->set[i];
        set[i].n = end - c->set[i];
        for (uint32_t b = 0; b < 128; b++)
            if (ses_char_set_eval(&set[i], b)) set[i].ascii[b >> 6] |= (uint64_t)1 << (b & 63);
    }
    *p = (ses_re_program){ .inst = inst, .n = c->n, .set = set, .run = run, .n_slots = c->n_slots };
    return ses_re_find_first(p, e);
}

bool ses_re_compile(ses_re_program *p, const char *pattern, size_t n, ses_arena *mem, bool *ok,
                    const char **what, ses_err *e)
{
    compiler *c = ses_alloc(sizeof *c, e);
    if (!c) return false;
    c->r.p = pattern;
    c->r.n = n;
    c->r.e = e;
    *ok = parse(c);
    *what = c->r.unsupported;
    bool fine = *ok ? finish(c, p, mem, e) : *what != NULL;
    ses_free(c->inst);
    ses_free(c->set);
    ses_free(c->run);
    ses_free(c->r.item);
    ses_free(c);
    return fine;
}
