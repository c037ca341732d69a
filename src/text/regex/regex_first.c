/* Computes the bytes a match can start with, from the instructions reachable without consuming a
 * character. */
#include "base/alloc.h"
#include "regex_program.h"

/* Whether the set may contain non-ASCII characters. */
static bool has_non_ascii(const ses_char_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const ses_char_set_item *t = &s->item[i];
        bool ascii = t->op == SES_CHAR_SET_OPEN || t->op == SES_CHAR_SET_CLOSE ||
                     (t->op == SES_CHAR_SET_RANGE && t->b < 0x80);
        if (!ascii) return true;
    }
    return false;
}

bool ses_re_find_first(ses_re_program *p, ses_err *e)
{
    size_t *todo = ses_alloc_array(2 * p->n + 2, sizeof *todo, e), top = 0;
    bool *seen = ses_alloc_array(p->n + 1, sizeof *seen, e), anything = false;
    bool ok = todo && seen;
    if (ok) todo[top++] = 0;
    while (ok && top) {
        size_t pc = todo[--top];
        if (seen[pc]) continue;
        seen[pc] = true;
        const ses_re_inst *t = &p->inst[pc];
        const ses_char_set *set = NULL;
        switch (t->op) {
        case SES_RE_SET: set = &p->set[t->x]; break;
        case SES_RE_REPEAT:
            set = &p->set[p->run[t->x].set];
            if (!p->run[t->x].min) todo[top++] = pc + 1;
            break;
        case SES_RE_JUMP: todo[top++] = (size_t)((int64_t)pc + t->x); break;
        case SES_RE_SPLIT:
            todo[top++] = (size_t)((int64_t)pc + t->x);
            todo[top++] = (size_t)((int64_t)pc + t->y);
            break;
        case SES_RE_LOOKAROUND:
        case SES_RE_NEGATIVE_LOOKAROUND: todo[top++] = pc + (size_t)t->x; break;
        case SES_RE_MATCH: anything = true; break;
        default: todo[top++] = pc + 1; break;
        }
        for (uint32_t b = 0; set && b < 256; b++)
            p->first[b] |= b < 0x80 ? ses_char_set_has(set, b) : has_non_ascii(set);
    }
    p->empty = anything;
    ses_free(todo);
    ses_free(seen);
    return ok;
}
