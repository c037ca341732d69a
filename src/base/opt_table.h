/* Options as tables: a name, a type, where the value goes, what it may be. The command line, --help, manual
 * pages, shell completion and settings by name all read the same table, so an option is described once. */
#ifndef SES_BASE_OPT_H
#define SES_BASE_OPT_H

#include "sesame/err.h"

typedef enum {
    SES_OPT_FLAG,   /* bool; takes no value on the command line */
    SES_OPT_TEXT,   /* const char *; NULL without a default */
    SES_OPT_INT,    /* int64_t */
    SES_OPT_REAL,   /* double, finite */
    SES_OPT_SIZE,   /* int64_t, bytes: 4096, 512K, 64M, 2G, 1T (powers of 1024) */
    SES_OPT_CHOICE, /* int, the index in `choices`; -1 without a default */
    SES_OPT_LIST    /* ses_opt_list; may be given again and again */
} ses_opt_type;

typedef struct ses_opt_list {
    const char **item;
    size_t n;
} ses_opt_list;

typedef struct ses_opt {
    const char *name; /* without the dashes */
    char letter;      /* -x, or 0 */
    ses_opt_type type;
    size_t offset;
    const char *value;     /* what help calls the value: N, FILE; of a choice: its choices */
    const char *def;       /* as it would be typed; NULL: zero, false, none */
    const char *choices;   /* of a choice: "ref|avx2|avx512" */
    const char *zero_word; /* of a whole number: a word that stands for 0, "all" */
    const char *env; /* variable that gives the value when the option is absent; empty counts as unset */
    double min, max; /* of a number, both included; both 0: any */
    bool required;   /* text, choice, list */
    bool is_model;   /* text: a model's folder, or the name of one that comes with Sesame */
    const char
        *implicit_value; /* of a choice: what it is without a value. A value then follows = or is, as the next
                            word, exactly one of the choices */
    size_t was_set;      /* offset of a bool that tells the option was used; 0: nobody asks */
    const char *help;    /* one sentence without a period */
    const struct ses_opt_table
        *table; /* includes these options; `offset` is that of their struct. NULL: none */
} ses_opt;

typedef struct ses_opt_table {
    const ses_opt *opt;
    size_t n;
} ses_opt_table;

/* An entry that includes ses_opt_table `table_` for member `field` of `struct_`. */
#define SES_OPT_INCLUDE(struct_, field, table_)                \
    {                                                          \
        .table = &(table_), .offset = offsetof(struct_, field) \
    }

enum { SES_OPT_MAX_DEPTH = 4 };

/* Iterates over the options of a table and of the tables it includes, in order:
 *     for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) ... */
typedef struct ses_opt_iter {
    struct {
        const ses_opt *next, *end;
        size_t offset; /* of this table's struct in the outermost one */
    } level[SES_OPT_MAX_DEPTH];
    int depth;       /* index of the innermost table; -1: past the end */
    ses_opt current; /* offsets relative to the outermost struct */
} ses_opt_iter;

ses_opt_iter ses_opt_begin(const ses_opt *opt, size_t n);
const ses_opt *ses_opt_next(ses_opt_iter *it); /* valid until the next call; NULL past the end */

typedef struct ses_usage_example {
    const char *line, *what; /* the command as typed, and what it does */
} ses_usage_example;

/* The value of an option, from its text, into args. `from` names the option in messages (SES_EUSAGE). Texts
 * are borrowed. A flag's text is NULL, "true" or "false". */
bool ses_opt_set(const ses_opt *o, void *args, const char *from, const char *text, ses_err *e);
bool ses_opt_is_choice(const ses_opt *o, const char *text);
bool ses_opt_defaults(const ses_opt *opt, size_t n, void *args, ses_err *e); /* args is zeroed */
void ses_opt_free(const ses_opt *opt, size_t n, void *args);                 /* gives back the lists */

/* What help prints for the value: "N", "ref|avx2|avx512", "" for a flag. */
const char *ses_opt_value_name(const ses_opt *o);

/* The i-th of "a|b|c" by pointer and length; false past the end. */
bool ses_choice_at(const char *choices, int i, const char **word, size_t *len);

#endif
