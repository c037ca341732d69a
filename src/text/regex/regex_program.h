/* A pattern as a program: shared by the compiler, the character sets and the backtracking matcher.
 * Programs are on the tokenizer's arena, read-only; a ses_re_machine belongs to one thread. */
#ifndef SES_TEXT_REGEX_PROGRAM_H
#define SES_TEXT_REGEX_PROGRAM_H

#include "regex.h"

/* ---- character sets (regex_set.c) ---- */

typedef enum {
    SES_CHAR_SET_RANGE, /* a to b */
    SES_CHAR_SET_GC,    /* general category in mask a */
    SES_CHAR_SET_FLAG,  /* SES_CP_* flags in a */
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

/* A set expression: items between OPEN and CLOSE are alternatives. */
typedef struct ses_char_set {
    const ses_char_set_item *item;
    size_t n;
    uint64_t ascii[2]; /* result for ASCII */
} ses_char_set;

bool ses_char_set_eval(const ses_char_set *s, uint32_t cp); /* evaluates the items */

static inline bool ses_char_set_has(const ses_char_set *s, uint32_t cp)
{
    return cp < 128 ? s->ascii[cp >> 6] >> (cp & 63) & 1 : ses_char_set_eval(s, cp);
}

/* ---- programs (regex_compile.c) ---- */

typedef enum {
    SES_RE_SET,               /* one character of set x */
    SES_RE_REPEAT,            /* repeat a character, as ses_re_repeat x describes */
    SES_RE_SPLIT,             /* continue at +x; if that fails, at +y */
    SES_RE_JUMP,              /* continue at +x */
    SES_RE_LINE_BEGIN,        /* ^ */
    SES_RE_LINE_END,          /* $ */
    SES_RE_TEXT_BEGIN,        /* \A */
    SES_RE_TEXT_END,          /* \z */
    SES_RE_LAST_LINE,         /* \Z */
    SES_RE_WORD_BOUNDARY,     /* \b */
    SES_RE_NOT_WORD_BOUNDARY, /* \B */
    /* (?= or (?<=: the code up to LOOKAROUND_END must match; then continue at +x from here */
    SES_RE_LOOKAROUND,
    SES_RE_NEGATIVE_LOOKAROUND,
    SES_RE_LOOKAROUND_END,
    SES_RE_ATOMIC, /* (?>: alternatives inside, up to ATOMIC_END, are not tried again */
    SES_RE_ATOMIC_END,
    SES_RE_STEP_BACK,      /* step back x characters, for (?<= */
    SES_RE_SAVE_POSITION,  /* save the position in slot x */
    SES_RE_CHECK_PROGRESS, /* position equals slot x (no progress): leave the loop, continue at +y */
    SES_RE_MATCH
} ses_re_op;

typedef struct ses_re_inst {
    ses_re_op op;
    int32_t x, y;
} ses_re_inst;

/* Repetition of a single character. */
typedef enum { SES_RE_GREEDY, SES_RE_LAZY, SES_RE_POSSESSIVE } ses_re_mode;

typedef struct ses_re_repeat {
    int32_t set;
    uint32_t min, max; /* UINT32_MAX: unlimited */
    ses_re_mode mode;
} ses_re_repeat;

typedef struct ses_re_program {
    const ses_re_inst *inst;
    size_t n;
    const ses_char_set *set;
    const ses_re_repeat *run;
    size_t n_slots;
    bool first[256]; /* bytes a match can start with */
    bool empty;      /* an empty match is possible */
} ses_re_program;

/* *ok false: valid so far, but not supported by the matcher; *what names the first unsupported construct. */
bool ses_re_compile(ses_re_program *p, const char *pattern, size_t n, ses_arena *mem, bool *ok,
                    const char **what, ses_err *e);

/* Compute p->first and p->empty (regex_first.c). */
bool ses_re_find_first(ses_re_program *p, ses_err *e);

/* ---- matcher (regex_run.c) ---- */

typedef struct ses_re_frame {
    uint32_t kind, at; /* usually `at` is an instruction */
    size_t pos, extra;
} ses_re_frame;

typedef struct ses_re_machine {
    const ses_re_program *program;
    const char *text;
    size_t n;
    ses_re_frame *stack;
    size_t used, cap;
    size_t *slot;
    uint64_t budget; /* remaining steps */
} ses_re_machine;

/* Find the first match at or after `from`. */
bool ses_re_search(ses_re_machine *m, size_t from, bool *found, size_t *begin, size_t *end, ses_err *e);

#endif
