/* Python pickles, protocols 2 to 5, read as data: a stack machine that implements the opcodes of plain
 * values, containers and calls, and executes nothing. A call of a global becomes a node with its name and
 * arguments. The caller lists the allowed globals; any other opcode or global is refused by name.
 *
 * Values may share parts and may contain themselves: callers must bound how deep they follow them.
 * Ownership: strings are borrowed from the bytes, which must outlive the pickle.
 * Memory: at most 56 bytes per byte read.
 * Threads: a pickle is immutable once read. */
#ifndef SES_IO_PICKLE_H
#define SES_IO_PICKLE_H

#include "sesame/base.h"

enum {
    SES_PICKLE_MAX_BYTES = 1 << 23,      /* enough for names and shapes of about 40,000 tensors */
    SES_PICKLE_MAX_LARGE_BYTES = 1 << 30 /* enough for ten million words */
};

typedef enum {
    SES_PICKLE_NONE,
    SES_PICKLE_BOOL,
    SES_PICKLE_INT,
    SES_PICKLE_FLOAT,
    SES_PICKLE_STRING,
    SES_PICKLE_BYTES,
    SES_PICKLE_TUPLE,
    SES_PICKLE_LIST,
    SES_PICKLE_DICT,
    SES_PICKLE_GLOBAL,
    SES_PICKLE_CALL,   /* call of a global, or an object of a class */
    SES_PICKLE_PERSID, /* persistent id: an object that the writer stored elsewhere */
    SES_PICKLE_KIND_COUNT
} ses_pickle_kind;

/* Permitted use of an allowed global. */
typedef enum {
    SES_PICKLE_NAME_ONLY, /* may be named, not called */
    SES_PICKLE_FUNCTION,  /* calls become nodes */
    SES_PICKLE_CLASS,     /* the same, and the object may be given a state */
    SES_PICKLE_NEW_DICT,  /* a call without arguments is {} */
    SES_PICKLE_IDENTITY   /* a call with one tuple is that tuple */
} ses_pickle_role;

typedef struct ses_pickle_global {
    const char *module, *name;
    ses_pickle_role role;
    int id; /* for the caller's use */
} ses_pickle_global;

typedef struct ses_pickle ses_pickle;
typedef struct ses_pickle_node ses_pickle_node;

/* Reads a pickle of exactly n bytes. `allowed` is borrowed. NULL on failure. Free with ses_pickle_free. */
ses_pickle *ses_pickle_read(const void *bytes, size_t n, const ses_pickle_global *allowed, size_t n_allowed,
                            ses_err *e);
/* The same up to SES_PICKLE_MAX_LARGE_BYTES. */
ses_pickle *ses_pickle_read_large(const void *bytes, size_t n, const ses_pickle_global *allowed,
                                  size_t n_allowed, ses_err *e);
/* Reads the first pickle of n bytes; *used: its length. */
ses_pickle *ses_pickle_read_first(const void *bytes, size_t n, const ses_pickle_global *allowed,
                                  size_t n_allowed, size_t *used, ses_err *e);
void ses_pickle_free(ses_pickle *p);
const ses_pickle_node *ses_pickle_root(const ses_pickle *p);

ses_pickle_kind ses_pickle_kind_of(const ses_pickle_node *x);
const char *ses_pickle_kind_name(ses_pickle_kind kind); /* "an integer", ... */

bool ses_pickle_int(const ses_pickle_node *x, int64_t *out); /* false: another kind */
bool ses_pickle_bool(const ses_pickle_node *x, bool *out);
/* UTF-8; NULL: another kind. */
const char *ses_pickle_string(const ses_pickle *p, const ses_pickle_node *x, size_t *n);
const void *ses_pickle_bytes(const ses_pickle *p, const ses_pickle_node *x, size_t *n); /* NULL: other */
/* The global that x is or calls; NULL: neither. */
const ses_pickle_global *ses_pickle_global_of(const ses_pickle *p, const ses_pickle_node *x);

size_t ses_pickle_len(const ses_pickle_node *x); /* items of a tuple or list, pairs of a dict, else 0 */
/* Item i of a tuple; i must be below ses_pickle_len(tuple). */
const ses_pickle_node *ses_pickle_at(const ses_pickle *p, const ses_pickle_node *tuple, size_t i);
/* The tuple of a call's arguments, or the value of a persistent id; NULL for other kinds. */
const ses_pickle_node *ses_pickle_payload(const ses_pickle *p, const ses_pickle_node *x);

/* The state that the pickle sets of an object (__setstate__); NULL: none. */
const ses_pickle_node *ses_pickle_state(const ses_pickle *p, const ses_pickle_node *x);

/* Iterator over the pairs of a dict in insertion order, or the items of a list. Keys may be of any kind and
 * may repeat. */
typedef struct ses_pickle_iter {
    uint32_t span, next;
} ses_pickle_iter;

ses_pickle_iter ses_pickle_iter_of(const ses_pickle_node *x);
bool ses_pickle_next(const ses_pickle *p, ses_pickle_iter *it, const ses_pickle_node **key,
                     const ses_pickle_node **value);
const ses_pickle_node *ses_pickle_next_item(const ses_pickle *p, ses_pickle_iter *it); /* NULL at the end */

#endif
