/* The pickle stack machine. */
#include "pickle.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "pickle_ops.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Values are nodes of one array, referenced by index. Containers list their items in `item`: a tuple as one
 * span, a list or dict, which can grow, as a chain of spans. Every opcode adds at most one node and one span,
 * and every item was pushed by its own opcode, so the number of bytes bounds everything. */
struct ses_pickle_node {
    uint8_t kind;
    uint32_t n; /* items; bytes of a string; of a call: the node of its arguments */
    union {
        int64_t i;
        uint32_t first; /* item of a tuple; byte of a string; index of a global in the list */
        struct {
            uint32_t global, state; /* a call: index in the list; node of the state, 0: none */
        } call;
        struct {
            uint32_t first, last;
        } span; /* list or dict; 0: none */
    } u;
};

typedef struct span {
    uint32_t first, n, next; /* items; next span + 1 */
} span;

enum { MAX_MARKS = 32 };
static const uint32_t NOTHING = UINT32_MAX;

/* Shared constant nodes. */
enum { NODE_NONE, NODE_FALSE, NODE_TRUE, NODE_TUPLE, NODES };

struct ses_pickle {
    const unsigned char *bytes;
    size_t n, at; /* at: of the opcode being read */
    size_t max;   /* maximum of n */
    bool first;   /* bytes may follow the pickle */
    const ses_pickle_global *allowed;
    size_t n_allowed;
    ses_pickle_node *node;
    size_t n_node, cap_node;
    uint32_t *item;
    size_t n_item, cap_item;
    span *span;
    size_t n_span, cap_span;
    uint32_t *stack;
    size_t n_stack, cap_stack;
    size_t mark[MAX_MARKS]; /* heights of the stack */
    size_t n_mark;
    uint32_t *memo; /* NOTHING: empty */
    size_t n_memo, memoized;
    uint32_t root;
};

/* Operand of an opcode. */
typedef struct operand {
    const unsigned char *p;
    uint64_t n; /* the number, or the bytes at p */
} operand;

/* ---- memory ---- */

static bool push(ses_pickle *p, uint32_t x, ses_err *e)
{
    if (!ses_array_reserve(&p->stack, &p->cap_stack, p->n_stack + 1, sizeof *p->stack, e)) return false;
    p->stack[p->n_stack++] = x;
    return true;
}

static bool add(ses_pickle *p, ses_pickle_node x, uint32_t *out, ses_err *e)
{
    if (!ses_array_reserve(&p->node, &p->cap_node, p->n_node + 1, sizeof *p->node, e)) return false;
    *out = (uint32_t)p->n_node;
    p->node[p->n_node++] = x;
    return true;
}

static bool push_new(ses_pickle *p, ses_pickle_node x, ses_err *e)
{
    uint32_t at;
    return add(p, x, &at, e) && push(p, at, e);
}

static bool push_int(ses_pickle *p, int64_t i, ses_err *e)
{
    return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_INT, .u.i = i }, e);
}

/* The top n values become items. */
static bool pop_items(ses_pickle *p, size_t n, uint32_t *first, ses_err *e)
{
    if (!ses_array_reserve(&p->item, &p->cap_item, p->n_item + n, sizeof *p->item, e)) return false;
    *first = (uint32_t)p->n_item;
    p->n_stack -= n;
    if (n) memcpy(p->item + p->n_item, p->stack + p->n_stack, n * sizeof *p->item);
    p->n_item += n;
    return true;
}

/* ---- the stack ---- */

/* Checks for n values above the newest mark. */
static bool need(const ses_pickle *p, size_t n, ses_err *e)
{
    size_t floor = p->n_mark ? p->mark[p->n_mark - 1] : 0;
    return p->n_stack - floor >= n ||
           ses_fail(e, SES_EFORMAT, "needs %zu values, found %zu", n, p->n_stack - floor);
}

/* Pops the newest mark; *n: values above it. */
static bool pop_mark(ses_pickle *p, size_t *n, ses_err *e)
{
    if (!p->n_mark) return ses_fail(e, SES_EFORMAT, "needs a mark, found none");
    *n = p->n_stack - p->mark[--p->n_mark];
    return true;
}

static ses_pickle_node *top(const ses_pickle *p, size_t depth)
{
    return &p->node[p->stack[p->n_stack - 1 - depth]];
}

/* ---- containers ---- */

static bool make_tuple(ses_pickle *p, size_t n, ses_err *e)
{
    uint32_t first;
    if (!n) return push(p, NODE_TUPLE, e);
    return pop_items(p, n, &first, e) &&
           push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_TUPLE, .n = (uint32_t)n, .u.first = first }, e);
}

/* Moves the top n values into the container below them; `unit` values are one item. */
static bool extend(ses_pickle *p, ses_pickle_kind kind, size_t n, size_t unit, ses_err *e)
{
    uint32_t first;
    if (!need(p, n + 1, e)) return false;
    ses_pickle_node *to = top(p, n);
    if (to->kind != kind)
        return ses_fail(e, SES_EFORMAT, "needs %s, found %s", ses_pickle_kind_name(kind),
                        ses_pickle_kind_name(to->kind));
    if (n % unit) return ses_fail(e, SES_EFORMAT, "a key without a value");
    if (!n) return true;
    if (!ses_array_reserve(&p->span, &p->cap_span, p->n_span + 1, sizeof *p->span, e) ||
        !pop_items(p, n, &first, e))
        return false;
    span *s = p->span;
    s[p->n_span++] = (span){ first, (uint32_t)n, 0 };
    if (to->u.span.last)
        s[to->u.span.last - 1].next = (uint32_t)p->n_span;
    else
        to->u.span.first = (uint32_t)p->n_span;
    to->u.span.last = (uint32_t)p->n_span;
    to->n += (uint32_t)(n / unit);
    return true;
}

/* ---- names ---- */

static bool push_global(ses_pickle *p, const char *module, size_t nm, const char *name, size_t nn, ses_err *e)
{
    for (size_t i = 0; i < p->n_allowed; i++) {
        const ses_pickle_global *g = &p->allowed[i];
        if (strlen(g->module) == nm && !memcmp(g->module, module, nm) && strlen(g->name) == nn &&
            !memcmp(g->name, name, nn))
            return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_GLOBAL, .u.first = (uint32_t)i }, e);
    }
    return ses_fail(e, SES_EUNSUPPORTED, "refused global %s.%s", ses_quoted_of(module, nm).s,
                    ses_quoted_of(name, nn).s);
}

/* "module\nname\n" */
static bool global(ses_pickle *p, size_t *at, ses_err *e)
{
    const char *module = (const char *)p->bytes + *at;
    size_t left = p->n - *at;
    const char *end = memchr(module, '\n', left), *name = end ? end + 1 : NULL;
    const char *stop = end ? memchr(name, '\n', left - (size_t)(name - module)) : NULL;
    if (!stop) return ses_fail(e, SES_EFORMAT, "truncated");
    *at += (size_t)(stop + 1 - module);
    return push_global(p, module, (size_t)(end - module), name, (size_t)(stop - name), e);
}

static bool stack_global(ses_pickle *p, ses_err *e)
{
    if (!need(p, 2, e)) return false;
    size_t nm, nn;
    const char *module = ses_pickle_string(p, top(p, 1), &nm), *name = ses_pickle_string(p, top(p, 0), &nn);
    if (!module || !name) return ses_fail(e, SES_EFORMAT, "two strings expected");
    p->n_stack -= 2;
    return push_global(p, module, nm, name, nn, e);
}

/* function, arguments -> the result, or a call node */
static bool reduce(ses_pickle *p, ses_err *e)
{
    if (!need(p, 2, e)) return false;
    const ses_pickle_node *args = top(p, 0), *f = top(p, 1);
    if (f->kind != SES_PICKLE_GLOBAL)
        return ses_fail(e, SES_EUNSUPPORTED, "calls %s", ses_pickle_kind_name(f->kind));
    if (args->kind != SES_PICKLE_TUPLE)
        return ses_fail(e, SES_EFORMAT, "arguments are %s, not a tuple", ses_pickle_kind_name(args->kind));
    const ses_pickle_global *g = &p->allowed[f->u.first];
    uint32_t list = f->u.first, arg = p->stack[p->n_stack - 1];
    p->n_stack -= 2;
    switch (g->role) {
    case SES_PICKLE_FUNCTION:
    case SES_PICKLE_CLASS:
        return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_CALL, .n = arg, .u.call = { list, 0 } }, e);
    case SES_PICKLE_NEW_DICT:
        if (args->n) return ses_fail(e, SES_EUNSUPPORTED, "calls %s.%s with arguments", g->module, g->name);
        return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_DICT }, e);
    case SES_PICKLE_IDENTITY:
        if (args->n == 1 && p->node[p->item[args->u.first]].kind == SES_PICKLE_TUPLE)
            return push(p, p->item[args->u.first], e);
        return ses_fail(e, SES_EFORMAT, "calls %s.%s, expected one tuple as its argument", g->module,
                        g->name);
    default: return ses_fail(e, SES_EUNSUPPORTED, "calls %s.%s: refused", g->module, g->name);
    }
}

/* object, state -> object. Attributes of a dict (torch stores `_metadata` there) are ignored. */
static bool build(ses_pickle *p, ses_err *e)
{
    if (!need(p, 2, e)) return false;
    ses_pickle_node *to = top(p, 1);
    if (to->kind == SES_PICKLE_CALL && p->allowed[to->u.call.global].role == SES_PICKLE_CLASS) {
        to->u.call.state = p->stack[--p->n_stack];
        return true;
    }
    if (to->kind != SES_PICKLE_DICT || top(p, 0)->kind != SES_PICKLE_DICT)
        return ses_fail(e, SES_EUNSUPPORTED, "sets the state of %s to %s", ses_pickle_kind_name(to->kind),
                        ses_pickle_kind_name(top(p, 0)->kind));
    p->n_stack--;
    return true;
}

/* ---- memo ---- */

/* Writers number memo entries consecutively; an index above the number of bytes would only allocate
 * memory. */
static bool put(ses_pickle *p, uint64_t i, ses_err *e)
{
    if (!need(p, 1, e)) return false;
    if (i >= p->n) return ses_fail(e, SES_EFORMAT, "memo %" PRIu64 " in a pickle of %zu bytes", i, p->n);
    if (i >= p->n_memo) {
        size_t want = (size_t)i + 1 + (size_t)i / 2;
        uint32_t *memo = ses_realloc_array(p->memo, want, sizeof *memo, e);
        if (!memo) return false;
        for (size_t k = p->n_memo; k < want; k++) memo[k] = NOTHING;
        p->memo = memo;
        p->n_memo = want;
    }
    p->memoized += p->memo[i] == NOTHING;
    p->memo[i] = p->stack[p->n_stack - 1];
    return true;
}

static bool get(ses_pickle *p, uint64_t i, ses_err *e)
{
    if (i >= p->n_memo || p->memo[i] == NOTHING)
        return ses_fail(e, SES_EFORMAT, "memo %" PRIu64 " is empty", i);
    return push(p, p->memo[i], e);
}

/* ---- opcodes ---- */

/* Reads the operand at *at, and advances *at. */
static bool read_operand(const ses_pickle *p, ses_pickle_arg kind, size_t *at, operand *x, ses_err *e)
{
    static const unsigned char width[] = { 0, 1, 2, 4, 8, 1, 4, 8, 0 };
    size_t n = width[kind];
    if (n > p->n - *at) return ses_fail(e, SES_EFORMAT, "truncated");
    x->p = p->bytes + *at;
    x->n = ses_le(x->p, n);
    *at += n;
    if (kind < ARG_BYTES1 || kind == ARG_LINES) return true;
    if (x->n > p->n - *at)
        return ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes, only %zu left", x->n, p->n - *at);
    x->p = p->bytes + *at;
    *at += (size_t)x->n;
    return true;
}

static bool push_bytes(ses_pickle *p, ses_pickle_kind kind, const operand *x, ses_err *e)
{
    const char *s = (const char *)x->p;
    size_t good = kind == SES_PICKLE_STRING ? ses_utf8_valid(s, (size_t)x->n) : (size_t)x->n;
    if (good != x->n) return ses_fail(e, SES_EFORMAT, "invalid UTF-8 at byte %zu of the string", good);
    ses_pickle_node node = { .kind = (uint8_t)kind,
                             .n = (uint32_t)x->n,
                             .u.first = (uint32_t)(x->p - p->bytes) };
    return push_new(p, node, e);
}

/* Two's complement, little-endian, of any length; length 0 is 0. */
static bool push_long(ses_pickle *p, const operand *x, ses_err *e)
{
    if (x->n > 8) return ses_fail(e, SES_EUNSUPPORTED, "an integer of %" PRIu64 " bytes", x->n);
    uint64_t bits = ses_le(x->p, (size_t)x->n);
    if (x->n && x->n < 8 && x->p[x->n - 1] & 0x80) bits |= ~(uint64_t)0 << (8 * x->n);
    return push_int(p, (int64_t)bits, e);
}

static bool put_mark(ses_pickle *p, ses_err *e)
{
    if (p->n_mark == MAX_MARKS) return ses_fail(e, SES_EUNSUPPORTED, "more than %d open marks", MAX_MARKS);
    p->mark[p->n_mark++] = p->n_stack;
    return true;
}

static bool stop(ses_pickle *p, size_t at, ses_err *e)
{
    if (p->n_stack != 1 || p->n_mark)
        return ses_fail(e, SES_EFORMAT, "%zu values and %zu marks left, one value expected", p->n_stack,
                        p->n_mark);
    if (at != p->n && !p->first) return ses_fail(e, SES_EFORMAT, "%zu bytes follow", p->n - at);
    p->root = p->stack[0];
    p->n = at;
    return true;
}

/* Values and the memo. */
static bool run_value(ses_pickle *p, unsigned char op, const operand *x, ses_err *e)
{
    switch (op) {
    case 'N': return push(p, NODE_NONE, e);
    case 0x88: return push(p, NODE_TRUE, e);
    case 0x89: return push(p, NODE_FALSE, e);
    case 'J': return push_int(p, (int32_t)(uint32_t)x->n, e);
    case 'K':
    case 'M': return push_int(p, (int64_t)x->n, e);
    case 0x8A:
    case 0x8B: return push_long(p, x, e);
    case 'G':
        return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_FLOAT }, e); /* the value is not needed */
    case 'X':
    case 0x8C:
    case 0x8D: return push_bytes(p, SES_PICKLE_STRING, x, e);
    case 'B':
    case 'C':
    case 0x8E: return push_bytes(p, SES_PICKLE_BYTES, x, e);
    case 'h':
    case 'j': return get(p, x->n, e);
    case 'q':
    case 'r': return put(p, x->n, e);
    default: assert(op == 0x94); return put(p, p->memoized, e);
    }
}

static bool persistent(ses_pickle *p, ses_err *e)
{
    if (!need(p, 1, e)) return false;
    uint32_t id = p->stack[--p->n_stack];
    return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_PERSID, .n = id }, e);
}

static bool run(ses_pickle *p, unsigned char op, const operand *x, size_t *at, ses_err *e)
{
    size_t n = 0;
    switch (op) {
    case 0x80: return ses_fail(e, SES_EFORMAT, "not at the start");
    case 0x95:
        return x->n <= p->n - *at ||
               ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes, only %zu left", x->n, p->n - *at);
    case '.': return stop(p, *at, e);
    case '(': return put_mark(p, e);
    case '0': return need(p, 1, e) && (p->n_stack--, true);
    case '1': return pop_mark(p, &n, e) && (p->n_stack -= n, true);
    case ')': return push(p, NODE_TUPLE, e);
    case 't':
    case 0x91: return pop_mark(p, &n, e) && make_tuple(p, n, e); /* a frozenset is read as a tuple */
    case 0x85:
    case 0x86:
    case 0x87: return need(p, op - 0x84u, e) && make_tuple(p, op - 0x84u, e);
    case ']': return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_LIST }, e);
    case '}': return push_new(p, (ses_pickle_node){ .kind = SES_PICKLE_DICT }, e);
    case 'a': return extend(p, SES_PICKLE_LIST, 1, 1, e);
    case 'e': return pop_mark(p, &n, e) && extend(p, SES_PICKLE_LIST, n, 1, e);
    case 's': return extend(p, SES_PICKLE_DICT, 2, 2, e);
    case 'u': return pop_mark(p, &n, e) && extend(p, SES_PICKLE_DICT, n, 2, e);
    case 'c': return global(p, at, e);
    case 0x93: return stack_global(p, e);
    case 'R':
    case 0x81: return reduce(p, e); /* a new object is a call of its class */
    case 'b': return build(p, e);
    case 'Q': return persistent(p, e);
    default: return run_value(p, op, x, e);
    }
}

static bool step(ses_pickle *p, size_t *at, unsigned char op, ses_err *e)
{
    operand x = { 0 };
    if (!ses_pickle_ops[op].read)
        return ses_pickle_ops[op].name[0] ? ses_fail(e, SES_EUNSUPPORTED, "unsupported opcode")
                                          : ses_fail(e, SES_EFORMAT, "unknown opcode");
    return read_operand(p, (ses_pickle_arg)ses_pickle_ops[op].arg, at, &x, e) && run(p, op, &x, at, e);
}

static bool read_all(ses_pickle *p, ses_err *e)
{
    static const ses_pickle_node fixed[NODES] = {
        [NODE_NONE] = { .kind = SES_PICKLE_NONE },
        [NODE_FALSE] = { .kind = SES_PICKLE_BOOL },
        [NODE_TRUE] = { .kind = SES_PICKLE_BOOL, .u.i = 1 },
        [NODE_TUPLE] = { .kind = SES_PICKLE_TUPLE },
    };
    uint32_t i;
    for (size_t k = 0; k < NODES; k++)
        if (!add(p, fixed[k], &i, e)) return false;
    if (p->n > p->max)
        return ses_fail(e, SES_EUNSUPPORTED, "pickle of %zu bytes, the maximum is %zu", p->n, p->max);
    if (p->n < 2 || p->bytes[0] != 0x80) return ses_fail(e, SES_EFORMAT, "not a pickle of protocol 2 to 5");
    if (p->bytes[1] < 2 || p->bytes[1] > 5)
        return ses_fail(e, SES_EUNSUPPORTED, "pickle of protocol %d, expected 2 to 5", p->bytes[1]);
    size_t at = 2;
    for (unsigned char op = 0; op != '.';) {
        p->at = at;
        if (at == p->n) return ses_fail(e, SES_EFORMAT, "byte %zu: ends without STOP", at);
        op = p->bytes[at++];
        if (step(p, &at, op, e)) continue;
        return ses_pickle_ops[op].name[0] ? ses_wrap(e, "byte %zu: %s", p->at, ses_pickle_ops[op].name)
                                          : ses_wrap(e, "byte %zu: 0x%02x", p->at, op);
    }
    return true;
}

static ses_pickle *read_one(ses_pickle of, ses_err *e)
{
    ses_pickle *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    *p = of;
    bool ok = read_all(p, e);
    ses_free(p->stack);
    ses_free(p->memo);
    p->stack = p->memo = NULL;
    if (ok) return p;
    ses_pickle_free(p);
    return NULL;
}

ses_pickle *ses_pickle_read(const void *bytes, size_t n, const ses_pickle_global *allowed, size_t n_allowed,
                            ses_err *e)
{
    ses_pickle of = { .bytes = bytes, .n = n, .allowed = allowed, .n_allowed = n_allowed };
    of.max = SES_PICKLE_MAX_BYTES;
    return read_one(of, e);
}

ses_pickle *ses_pickle_read_large(const void *bytes, size_t n, const ses_pickle_global *allowed,
                                  size_t n_allowed, ses_err *e)
{
    ses_pickle of = { .bytes = bytes, .n = n, .allowed = allowed, .n_allowed = n_allowed };
    of.max = SES_PICKLE_MAX_LARGE_BYTES;
    return read_one(of, e);
}

ses_pickle *ses_pickle_read_first(const void *bytes, size_t n, const ses_pickle_global *allowed,
                                  size_t n_allowed, size_t *used, ses_err *e)
{
    ses_pickle of = { .bytes = bytes, .first = true, .allowed = allowed, .n_allowed = n_allowed };
    of.max = SES_PICKLE_MAX_BYTES;
    of.n = n < of.max ? n : of.max;
    ses_pickle *p = read_one(of, e);
    if (p) *used = p->n;
    return p;
}

void ses_pickle_free(ses_pickle *p)
{
    if (!p) return;
    ses_free(p->node);
    ses_free(p->item);
    ses_free(p->span);
    ses_free(p->stack);
    ses_free(p->memo);
    ses_free(p);
}

/* ---- accessors ---- */

const ses_pickle_node *ses_pickle_root(const ses_pickle *p) { return &p->node[p->root]; }
ses_pickle_kind ses_pickle_kind_of(const ses_pickle_node *x) { return (ses_pickle_kind)x->kind; }

const char *ses_pickle_kind_name(ses_pickle_kind kind)
{
    static const char *const name[SES_PICKLE_KIND_COUNT] = {
        "None",    "a boolean", "an integer", "a float",  "a string", "bytes",
        "a tuple", "a list",    "a dict",     "a global", "a call",   "a persistent id",
    };
    return kind < SES_PICKLE_KIND_COUNT ? name[kind] : "nothing";
}

bool ses_pickle_int(const ses_pickle_node *x, int64_t *out)
{
    if (x->kind == SES_PICKLE_INT) *out = x->u.i;
    return x->kind == SES_PICKLE_INT;
}

bool ses_pickle_bool(const ses_pickle_node *x, bool *out)
{
    if (x->kind == SES_PICKLE_BOOL) *out = x->u.i;
    return x->kind == SES_PICKLE_BOOL;
}

const char *ses_pickle_string(const ses_pickle *p, const ses_pickle_node *x, size_t *n)
{
    *n = x->kind == SES_PICKLE_STRING ? x->n : 0;
    return x->kind == SES_PICKLE_STRING ? (const char *)p->bytes + x->u.first : NULL;
}

const void *ses_pickle_bytes(const ses_pickle *p, const ses_pickle_node *x, size_t *n)
{
    *n = x->kind == SES_PICKLE_BYTES ? x->n : 0;
    return x->kind == SES_PICKLE_BYTES ? p->bytes + x->u.first : NULL;
}

const ses_pickle_node *ses_pickle_state(const ses_pickle *p, const ses_pickle_node *x)
{
    return x->kind == SES_PICKLE_CALL && x->u.call.state ? &p->node[x->u.call.state] : NULL;
}

const ses_pickle_global *ses_pickle_global_of(const ses_pickle *p, const ses_pickle_node *x)
{
    return x->kind == SES_PICKLE_GLOBAL || x->kind == SES_PICKLE_CALL ? &p->allowed[x->u.first] : NULL;
}

size_t ses_pickle_len(const ses_pickle_node *x)
{
    return x->kind >= SES_PICKLE_TUPLE && x->kind <= SES_PICKLE_DICT ? x->n : 0;
}

const ses_pickle_node *ses_pickle_at(const ses_pickle *p, const ses_pickle_node *tuple, size_t i)
{
    assert(tuple->kind == SES_PICKLE_TUPLE && i < tuple->n);
    return &p->node[p->item[tuple->u.first + i]];
}

const ses_pickle_node *ses_pickle_payload(const ses_pickle *p, const ses_pickle_node *x)
{
    return x->kind == SES_PICKLE_CALL || x->kind == SES_PICKLE_PERSID ? &p->node[x->n] : NULL;
}

ses_pickle_iter ses_pickle_iter_of(const ses_pickle_node *x)
{
    bool grows = x->kind == SES_PICKLE_DICT || x->kind == SES_PICKLE_LIST;
    return (ses_pickle_iter){ grows ? x->u.span.first : 0, 0 };
}

const ses_pickle_node *ses_pickle_next_item(const ses_pickle *p, ses_pickle_iter *it)
{
    if (!it->span) return NULL;
    const span *s = &p->span[it->span - 1];
    const ses_pickle_node *x = &p->node[p->item[s->first + it->next++]];
    if (it->next == s->n) *it = (ses_pickle_iter){ s->next, 0 };
    return x;
}

bool ses_pickle_next(const ses_pickle *p, ses_pickle_iter *it, const ses_pickle_node **key,
                     const ses_pickle_node **value)
{
    *key = ses_pickle_next_item(p, it);
    *value = *key ? ses_pickle_next_item(p, it) : NULL;
    return *value != NULL; /* a list of odd length ends without a value */
}
