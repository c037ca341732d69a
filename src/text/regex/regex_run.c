/* The backtracking matcher. Untried alternatives are frames on an explicit stack. One frame represents all
 * lengths of a repeated character, so long repetitions take no extra memory. */
#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "regex_program.h"

enum { MAX_FRAMES = 1 << 24 };

typedef enum {
    ALTERNATIVE, /* continue at instruction `at` from pos */
    /* greedy repetition that ended at pos: continue at `at`, one character shorter each time, down to
     * extra */
    SHRINK,
    /* lazy repetition (instruction `at`, length extra) that ended at pos: one character longer each time */
    EXTEND,
    LOOKING, /* inside LOOKAROUND or ATOMIC at `at`, from pos; extra: the previous bar */
    UNDO     /* slot `at` had the value extra */
} frame_kind;

typedef struct state {
    size_t pos, pc;
    size_t bar; /* 1 + index of the innermost LOOKING frame; 0: none */
} state;

static bool push(ses_re_machine *m, frame_kind kind, size_t at, size_t pos, size_t extra, ses_err *e)
{
    if (m->used == m->cap) {
        if (m->cap >= MAX_FRAMES)
            return ses_fail(e, SES_EARG, "regular expression: backtracking stack limit exceeded");
        size_t cap = m->cap ? 2 * m->cap : 256;
        ses_re_frame *stack = ses_realloc_array(m->stack, cap, sizeof *stack, e);
        if (!stack) return false;
        m->stack = stack;
        m->cap = cap;
    }
    m->stack[m->used++] = (ses_re_frame){ kind, (uint32_t)at, pos, extra };
    return true;
}

static size_t before(const ses_re_machine *m, size_t pos)
{
    do pos--;
    while (ses_utf8_continues(m->text[pos]));
    return pos;
}

static bool is_word(const ses_re_machine *m, size_t pos)
{
    uint32_t cp;
    ses_utf8_next(m->text + pos, &cp);
    return ses_cp_is(cp, SES_CP_OWORD);
}

static bool at_word_boundary(const ses_re_machine *m, size_t pos)
{
    bool left = pos > 0 && is_word(m, before(m, pos)), right = pos < m->n && is_word(m, pos);
    return left != right;
}

/* Whether the assertion holds at pos. */
static bool holds(const ses_re_machine *m, ses_re_op op, size_t pos)
{
    switch (op) {
    case SES_RE_LINE_BEGIN: return pos == 0 || (m->text[pos - 1] == '\n' && pos < m->n);
    case SES_RE_LINE_END: return pos == m->n || m->text[pos] == '\n';
    case SES_RE_TEXT_BEGIN: return pos == 0;
    case SES_RE_TEXT_END: return pos == m->n;
    case SES_RE_LAST_LINE: return pos == m->n || (pos + 1 == m->n && m->text[pos] == '\n');
    case SES_RE_WORD_BOUNDARY: return at_word_boundary(m, pos);
    default: return !at_word_boundary(m, pos);
    }
}

/* Length of the character at pos if it is in the set, else 0. */
static size_t match_char(const ses_re_machine *m, const ses_char_set *set, size_t pos)
{
    if (pos >= m->n) return 0;
    uint32_t cp;
    size_t k = ses_utf8_next(m->text + pos, &cp);
    return ses_char_set_has(set, cp) ? k : 0;
}

static bool match_repeat(ses_re_machine *m, state *s, const ses_re_inst *t, bool *fail, ses_err *e)
{
    const ses_re_repeat *r = &m->program->run[t->x];
    const ses_char_set *set = &m->program->set[r->set];
    uint32_t max = r->mode == SES_RE_LAZY ? r->min : r->max, count = 0;
    size_t pos = s->pos, low = pos, k;
    for (; count < max && (k = match_char(m, set, pos)) != 0; count++) {
        pos += k;
        if (count + 1 <= r->min) low = pos; /* minimum length */
    }
    m->budget -= count < m->budget ? count : m->budget;
    *fail = count < r->min;
    if (*fail) return true;
    size_t at = s->pc;
    s->pos = pos;
    s->pc++;
    if (r->mode == SES_RE_GREEDY && pos > low) return push(m, SHRINK, at + 1, pos, low, e);
    if (r->mode == SES_RE_LAZY && count < r->max) return push(m, EXTEND, at, pos, count, e);
    return true;
}

/* Discard the alternatives since the bar, but keep the UNDO frames. */
static void discard_alternatives(ses_re_machine *m, state *s)
{
    size_t keep = s->bar - 1;
    s->bar = m->stack[keep].extra;
    for (size_t i = keep + 1; i < m->used; i++)
        if (m->stack[i].kind == UNDO) m->stack[keep++] = m->stack[i];
    m->used = keep;
}

/* Backtrack to the newest untried alternative; false: none left. */
static bool backtrack(ses_re_machine *m, state *s)
{
    while (m->used) {
        ses_re_frame *f = &m->stack[m->used - 1];
        switch ((frame_kind)f->kind) {
        case ALTERNATIVE:
            s->pc = f->at;
            s->pos = f->pos;
            m->used--;
            return true;
        case SHRINK:
            s->pc = f->at;
            s->pos = f->pos = before(m, f->pos);
            if (f->pos == f->extra) m->used--;
            return true;
        case EXTEND: {
            const ses_re_repeat *r = &m->program->run[m->program->inst[f->at].x];
            size_t k = match_char(m, &m->program->set[r->set], f->pos);
            if (!k) {
                m->used--;
                break;
            }
            s->pc = f->at + 1;
            s->pos = f->pos += k;
            if (++f->extra == r->max) m->used--;
            return true;
        }
        case LOOKING:
            m->used--;
            s->bar = f->extra;
            if (m->program->inst[f->at].op != SES_RE_NEGATIVE_LOOKAROUND) break;
            s->pos = f->pos; /* a negative lookaround did not match: success */
            s->pc = f->at + (size_t)m->program->inst[f->at].x;
            return true;
        case UNDO:
            m->slot[f->at] = f->extra;
            m->used--;
            break;
        }
    }
    return false;
}

/* End of a lookaround: continue from its start position, unless it is negative. */
static bool end_lookaround(ses_re_machine *m, state *s)
{
    ses_re_frame f = m->stack[s->bar - 1];
    const ses_re_inst *t = &m->program->inst[f.at];
    discard_alternatives(m, s);
    s->pos = f.pos;
    s->pc = f.at + (size_t)t->x;
    return t->op == SES_RE_LOOKAROUND;
}

/* Step back x characters; false: not that many. */
static bool step_back(const ses_re_machine *m, state *s, int32_t x)
{
    for (; x; x--) {
        if (!s->pos) return false;
        s->pos = before(m, s->pos);
    }
    return true;
}

/* Execute an instruction other than SET, REPEAT and MATCH. False: this path fails, or (e set) an error. */
static bool step(ses_re_machine *m, state *s, const ses_re_inst *t, ses_err *e)
{
    size_t pc = s->pc++;
    switch (t->op) {
    case SES_RE_SPLIT:
        s->pc = (size_t)((int64_t)pc + t->x);
        return push(m, ALTERNATIVE, (size_t)((int64_t)pc + t->y), s->pos, 0, e);
    case SES_RE_JUMP: s->pc = (size_t)((int64_t)pc + t->x); return true;
    case SES_RE_LOOKAROUND:
    case SES_RE_NEGATIVE_LOOKAROUND:
    case SES_RE_ATOMIC: {
        size_t outer = s->bar;
        s->bar = m->used + 1;
        return push(m, LOOKING, pc, s->pos, outer, e);
    }
    case SES_RE_LOOKAROUND_END: return end_lookaround(m, s);
    case SES_RE_ATOMIC_END: discard_alternatives(m, s); return true;
    case SES_RE_STEP_BACK:
        m->budget -= (uint64_t)t->x < m->budget ? (uint64_t)t->x : m->budget;
        return step_back(m, s, t->x);
    case SES_RE_SAVE_POSITION: {
        size_t old = m->slot[t->x];
        m->slot[t->x] = s->pos;
        return push(m, UNDO, (size_t)t->x, 0, old, e);
    }
    case SES_RE_CHECK_PROGRESS:
        if (m->slot[t->x] == s->pos) s->pc = (size_t)((int64_t)pc + t->y);
        return true;
    default: return holds(m, t->op, s->pos);
    }
}

/* Try to match at pos. */
static bool match(ses_re_machine *m, size_t pos, bool *found, size_t *end, ses_err *e)
{
    state s = { .pos = pos };
    ses_err inner = { 0 };
    m->used = 0;
    *found = false;
    for (;;) {
        const ses_re_inst *t = &m->program->inst[s.pc];
        bool fail = false;
        if (!m->budget--) {
            m->budget = 0;
            return ses_fail(e, SES_EARG, "regular expression: step limit exceeded on this text");
        }
        if (t->op == SES_RE_SET) {
            size_t k = match_char(m, &m->program->set[t->x], s.pos);
            fail = !k;
            s.pos += k;
            s.pc++;
        } else if (t->op == SES_RE_REPEAT) {
            if (!match_repeat(m, &s, t, &fail, &inner)) fail = true;
        } else if (t->op == SES_RE_MATCH) {
            *end = s.pos;
            return *found = true;
        } else {
            fail = !step(m, &s, t, &inner);
        }
        if (!fail) continue;
        if (inner.code) return ses_fail(e, inner.code, "%s", inner.msg);
        if (!backtrack(m, &s)) return true;
    }
}

bool ses_re_search(ses_re_machine *m, size_t from, bool *found, size_t *begin, size_t *end, ses_err *e)
{
    const ses_re_program *p = m->program;
    *found = false;
    for (size_t i = from; i <= m->n; i++) {
        while (!p->empty && i < m->n && !p->first[(unsigned char)m->text[i]]) i++;
        if (i == m->n && !p->empty) return true;
        if (i < m->n && ses_utf8_continues(m->text[i])) continue; /* inside a character */
        if (!match(m, i, found, end, e)) return false;
        if (*found) return *begin = i, true;
    }
    return true;
}
