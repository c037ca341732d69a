/* Python's pickles, protocols 2 to 5, read as data: a stack machine that knows the opcodes of plain values,
 * containers and calls, and executes nothing. A call of a global stays a node that tells its name and its
 * arguments; which globals may be named at all is the caller's list. Whatever is not listed, opcode or
 * global, is refused by name.
 *
 * Values share parts, and may even hold themselves: follow them as far as you expect them to go, no further.
 * Strings are borrowed from the bytes, which outlive the pickle. Memory: at most 56 bytes for each read. */
#ifndef SES_IO_PICKLE_H
#define SES_IO_PICKLE_H

#include "sesame/err.h"

enum { SES_PICKLE_MAX_BYTES = 1 << 23 }; /* bytes: names and shapes of some 40,000 tensors */

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
    SES_PICKLE_CALL,   /* of a global */
    SES_PICKLE_PERSID, /* what the pickle's writer keeps elsewhere, under this value */
    SES_PICKLE_KIND_COUNT
} ses_pickle_kind;

/* What a listed global is good for. */
typedef enum {
    SES_PICKLE_NAME_ONLY, /* to be named only */
    SES_PICKLE_FUNCTION,  /* its calls become nodes */
    SES_PICKLE_NEW_DICT,  /* called without arguments, it is {} */
    SES_PICKLE_IDENTITY   /* called with one tuple, it is that tuple */
} ses_pickle_role;

typedef struct ses_pickle_global {
    const char *module, *name;
    ses_pickle_role role;
    int id; /* the caller's */
} ses_pickle_global;

typedef struct ses_pickle ses_pickle;
typedef struct ses_pickle_node ses_pickle_node;

ses_pickle *ses_pickle_read(const void *bytes, size_t n, const ses_pickle_global *allowed, size_t n_allowed,
                            ses_err *e);
/* The same of bytes that go on behind it: *used of them are its own. */
ses_pickle *ses_pickle_read_first(const void *bytes, size_t n, const ses_pickle_global *allowed,
                                  size_t n_allowed, size_t *used, ses_err *e);
void ses_pickle_free(ses_pickle *p);
const ses_pickle_node *ses_pickle_root(const ses_pickle *p);

ses_pickle_kind ses_pickle_kind_of(const ses_pickle_node *x);
const char *ses_pickle_kind_name(ses_pickle_kind kind); /* "an integer", ... */

bool ses_pickle_int(const ses_pickle_node *x, int64_t *out); /* false: of another kind */
bool ses_pickle_bool(const ses_pickle_node *x, bool *out);
const char *ses_pickle_string(const ses_pickle *p, const ses_pickle_node *x, size_t *n); /* UTF-8; or NULL */
/* The global that x is, or that it calls; NULL: neither. */
const ses_pickle_global *ses_pickle_global_of(const ses_pickle *p, const ses_pickle_node *x);

size_t ses_pickle_len(const ses_pickle_node *x); /* items of a tuple or list, pairs of a dict, else 0 */
/* i < ses_pickle_len(tuple). */
const ses_pickle_node *ses_pickle_at(const ses_pickle *p, const ses_pickle_node *tuple, size_t i);
/* The tuple of a call's arguments, or the value under a persistent id; NULL for other kinds. */
const ses_pickle_node *ses_pickle_payload(const ses_pickle *p, const ses_pickle_node *x);

/* The pairs of a dict as they were set: keys are of any kind, and one may come twice. Or a list's items. */
typedef struct ses_pickle_iter {
    uint32_t span, next;
} ses_pickle_iter;

ses_pickle_iter ses_pickle_iter_of(const ses_pickle_node *x);
bool ses_pickle_next(const ses_pickle *p, ses_pickle_iter *it, const ses_pickle_node **key,
                     const ses_pickle_node **value);
const ses_pickle_node *ses_pickle_next_item(const ses_pickle *p, ses_pickle_iter *it); /* NULL at the end */

#endif
