/* What the parts of the regular expressions share: a pattern as a program. */
#ifndef SES_TEXT_REGEX_PROGRAM_H
#define SES_TEXT_REGEX_PROGRAM_H

#include "regex.h"

/* ---- sets of characters (regex_set.c) ---- */

typedef enum {
    SES_CHAR_SET_RANGE, /* a to b */
    SES_CHAR_SET_GC,    /* general category among those of mask a */
    SES_CHAR_SET_FLAG,  /* SES_CP_* flags a */
    SES_CHAR_SET_NOT_GC,
    SES_CHAR_SET_NOT_FLAG,
    SES_CHAR_SET_OPEN,  /* [ */
    SES_CHAR_SET_AND,   /* && */
    SES_CHAR_SET_CLOSE, /* ] */
    SES_CHAR_SET_CLOSE_NOT
} ses_char_set_op;

enum { SES_CHAR_SET_DEPTH = 8 };

typedef struct ses_char_set_item {
    ses_char_set_op op;
    uint32_t a, b;
} ses_char_set_item;

/* A formula in brackets: items between OPEN and CLOSE are alternatives. */
typedef struct ses_char_set {
    const ses_char_set_item *item;
    size_t n;
    uint64_t ascii[2]; /* the answer for these */
} ses_char_set;

bool ses_char_set_eval(const ses_char_set *s, uint32_t cp); /* by the items */

static inline bool ses_char_set_has(const ses_char_set *s, uint32_t cp)
{
    return cp < 128 ? s->ascii[cp >> 6] >> (cp & 63) & 1 : ses_char_set_eval(s, cp);
}

/* ---- programs (regex_compile.c) ---- */

typedef enum {
    SES_RE_SET,               /* one character of set x */
    SES_RE_REPEAT,            /* as run x says */
    SES_RE_SPLIT,             /* go on at +x; if that fails, at +y */
    SES_RE_JUMP,              /* go on at +x */
    SES_RE_LINE_BEGIN,        /* ^ */
    SES_RE_LINE_END,          /* $ */
    SES_RE_TEXT_BEGIN,        /* \A */
    SES_RE_TEXT_END,          /* \z */
    SES_RE_LAST_LINE,         /* \Z */
    SES_RE_WORD_BOUNDARY,     /* \b */
    SES_RE_NOT_WORD_BOUNDARY, /* \B */
    SES_RE_LOOKAROUND,        /* (?= or (?<=: what follows must match up to LOOKED; then on at +x from here */
    SES_RE_NEGATIVE_LOOKAROUND,
    SES_RE_LOOKAROUND_END,
    SES_RE_ATOMIC, /* (?>: what was tried up to ATOM_END is not tried otherwise */
    SES_RE_ATOMIC_END,
    SES_RE_STEP_BACK,      /* x characters back, for (?<= */
    SES_RE_SAVE_POSITION,  /* remember the place as x */
    SES_RE_CHECK_PROGRESS, /* still at place x: on at +y, out of the loop */
    SES_RE_MATCH
} ses_re_op;

typedef struct ses_re_inst {
    ses_re_op op;
    int32_t x, y;
} ses_re_inst;

/* A character repeated. */
typedef enum { SES_RE_GREEDY, SES_RE_LAZY, SES_RE_POSSESSIVE } ses_re_mode;

typedef struct ses_re_repeat {
    int32_t set;
    uint32_t min, max; /* UINT32_MAX: no end */
    ses_re_mode mode;
} ses_re_repeat;

typedef struct ses_re_program {
    const ses_re_inst *inst;
    size_t n;
    const ses_char_set *set;
    const ses_re_repeat *run;
    size_t marks;
    bool first[256]; /* bytes a match may begin with */
    bool empty;      /* or it may be empty */
} ses_re_program;

/* *ok false: well-formed as far as seen, but not for this machine; `what` names the first such thing. */
bool ses_re_compile(ses_re_program *p, const char *pattern, size_t n, ses_arena *mem, bool *ok,
                    const char **what, ses_err *e);

/* p->first and p->empty, from the rest (regex_first.c). */
bool ses_re_find_first(ses_re_program *p, ses_err *e);

/* ---- the machine (regex_run.c) ---- */

typedef struct ses_re_frame {
    uint32_t kind, at; /* an instruction, mostly */
    size_t pos, extra;
} ses_re_frame;

typedef struct ses_re_machine {
    const ses_re_program *program;
    const char *text;
    size_t n;
    ses_re_frame *stack;
    size_t used, cap;
    size_t *mark;
    uint64_t budget; /* steps left */
} ses_re_machine;

/* The first match at or after `from`. */
bool ses_re_search(ses_re_machine *m, size_t from, bool *found, size_t *begin, size_t *end, ses_err *e);

#endif
