/* Option tables: name, type, destination and allowed values of each option. The command line, --help,
 * manual pages, shell completion and settings by name read the same table. Strings are static or borrowed;
 * tables are read-only. */
#ifndef SES_BASE_OPT_TABLE_H
#define SES_BASE_OPT_TABLE_H

#include "sesame/base.h"

typedef enum {
    SES_OPT_IS_FLAG,   /* bool; takes no value on the command line */
    SES_OPT_IS_TEXT,   /* const char *; NULL without a default */
    SES_OPT_IS_INT,    /* int64_t */
    SES_OPT_IS_REAL,   /* double, finite */
    SES_OPT_IS_SIZE,   /* int64_t, bytes: 4096, 512K, 64M, 2G, 1T (powers of 1024) */
    SES_OPT_IS_CHOICE, /* int, the index in `choices`; -1 without a default */
    SES_OPT_IS_LIST    /* ses_opt_list; may be repeated */
} ses_opt_type;

typedef struct ses_opt_list {
    const char **item;
    size_t n;
} ses_opt_list;

typedef struct ses_opt {
    const char *name; /* without the dashes */
    /* Another spelling, accepted but not listed; "x=v": a flag x that sets the value v. NULL: none. */
    const char *alias;
    char letter; /* -x, or 0 */
    ses_opt_type type;
    size_t offset;         /* offset of the value in the args struct */
    const char *value;     /* placeholder in help: N, FILE; NULL for a choice: its choices */
    const char *def;       /* default as typed; NULL: zero, false, none */
    const char *choices;   /* for SES_OPT_IS_CHOICE: "ref|avx2|avx512" */
    const char *zero_word; /* for SES_OPT_IS_INT: a word that means 0, "all" */
    const char *env;       /* environment variable used if the option is absent; empty counts as unset */
    double min, max;       /* inclusive range of a number; both 0: any */
    bool required;         /* for text, choice, list */
    bool is_model;         /* for text, list: a model folder or the name of a bundled model */
    bool is_path;          /* for text, list: a file or folder: requests to a server cannot set it */
    bool of_call;          /* concerns one call, not its result: neither stored nor restored */
    /* For a choice, by its index: false refuses it. NULL: all fit. */
    bool (*check)(const char *from, int choice, ses_err *e);
    /* For text: kind of the words that shell completion offers, "tasks" or "devices" (`sesame completion`).
     * NULL: models for is_model, else files. */
    const char *completion;
    /* For a choice or text: the value if none follows. A value follows after '=', or as the next word if that
     * is exactly one of the choices, if it ends with value_ending ("": if it does not begin with a dash), or
     * with value_is_number if it is a number. */
    const char *implicit_value, *value_ending;
    bool value_is_number;
    /* For text: a second use on a command line begins a further part of the command. The list option of this
     * name then receives the option and all later ones of its `items`. NULL: the last use counts. */
    const char *repeats_in;
    const struct ses_opt_table *items; /* for such a list: its items are names and values of these, in turn */
    size_t was_set;                    /* offset of a bool that is set if the option was used; 0: none */
    const char *help;                  /* one sentence without a period; "tag, answer: ..." names its tasks */
    /* A long help gives the group's name alone unless the option is common. NULL: the group of the table. */
    const char *group;
    bool common;
    const struct ses_opt_table *table; /* included options; `offset` is that of their struct. NULL: none */
} ses_opt;

typedef struct ses_opt_table {
    const ses_opt *opt;
    size_t n;
    const char *group; /* default of the options; NULL: that of the including table */
} ses_opt_table;

/* Rows of a table: the option `name_` for member f of the args struct s, whose type is checked. Members may
 * follow the help: SES_OPT_FLAG(args, all, "all", "print all of them", .letter = 'a'). */
/* clang-format off */
#define SES_OPT_ROW(s, f, kind, ctype, name_) \
    .name = name_, .type = kind, .offset = offsetof(s, f) + 0 * sizeof(1 ? &((s *)0)->f : (ctype *)0)
#define SES_OPT_FLAG(s, f, name_, ...) \
    { SES_OPT_ROW(s, f, SES_OPT_IS_FLAG, bool, name_), .help = __VA_ARGS__ }
#define SES_OPT_TEXT(s, f, name_, value_, ...) \
    { SES_OPT_ROW(s, f, SES_OPT_IS_TEXT, const char *, name_), .value = value_, .help = __VA_ARGS__ }
#define SES_OPT_LIST(s, f, name_, value_, ...) \
    { SES_OPT_ROW(s, f, SES_OPT_IS_LIST, ses_opt_list, name_), .value = value_, .help = __VA_ARGS__ }
#define SES_OPT_NUMBER(s, f, kind, ctype, name_, def_, min_, max_, ...) \
    { SES_OPT_ROW(s, f, kind, ctype, name_), .def = def_, .min = min_, .max = max_, .help = __VA_ARGS__ }
#define SES_OPT_INT(s, f, ...) SES_OPT_NUMBER(s, f, SES_OPT_IS_INT, int64_t, __VA_ARGS__)
#define SES_OPT_SIZE(s, f, ...) SES_OPT_NUMBER(s, f, SES_OPT_IS_SIZE, int64_t, __VA_ARGS__)
#define SES_OPT_REAL(s, f, ...) SES_OPT_NUMBER(s, f, SES_OPT_IS_REAL, double, __VA_ARGS__)
/* An enum fits, too: only the size is checked. */
#define SES_OPT_CHOICE(s, f, name_, def_, choices_, ...) \
    { .name = name_, .type = SES_OPT_IS_CHOICE, .def = def_, .choices = choices_, .help = __VA_ARGS__, \
      .offset = offsetof(s, f) + 0 * sizeof(char[sizeof(((s *)0)->f) == sizeof(int) ? 1 : -1]) }
/* clang-format on */

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
        size_t offset;     /* offset of this table's struct in the outermost one */
        const char *group; /* default of the options */
    } level[SES_OPT_MAX_DEPTH];
    int depth;       /* index of the innermost table; -1: past the end */
    ses_opt current; /* offsets relative to the outermost struct */
} ses_opt_iter;

ses_opt_iter ses_opt_begin(const ses_opt *opt, size_t n);
const ses_opt *ses_opt_next(ses_opt_iter *it); /* valid until the next call; NULL past the end */

/* The name of the first option with was_set that was used. NULL: none. */
const char *ses_opt_given(const ses_opt_table *t, const void *args);

typedef struct ses_usage_example {
    const char *line, *what; /* the command as typed, and its description */
} ses_usage_example;

/* Parses the text of an option's value and stores it in args. `from` names the option in messages
 * (SES_EUSAGE). Text values are borrowed. The text of a flag is NULL, "true" or "false". */
bool ses_opt_set(const ses_opt *o, void *args, const char *from, const char *text, ses_err *e);
/* The option that a setting names: "top_k" and "top-k" are the option top-k. `owner` has the options, for the
 * message about an unknown name. */
bool ses_opt_find(const ses_opt *opt, size_t n, const char *name, const char *owner, ses_opt *out,
                  ses_err *e);
/* Stores settings in args, which has its defaults; settings may be NULL. */
bool ses_opt_set_all(const ses_opt *opt, size_t n, void *args, const char *owner, const ses_setting *settings,
                     ses_err *e);
/* Whether the next word is the value of an option with an implicit value. text may be NULL. */
bool ses_opt_takes_word(const ses_opt *o, const char *text);
bool ses_opt_defaults(const ses_opt *opt, size_t n, void *args, ses_err *e); /* args must be zeroed */
void ses_opt_free(const ses_opt *opt, size_t n, void *args);                 /* frees the lists in args */

/* How an option is spelled: not so, by its name, by its alias, or by an alias that also is the value. */
typedef enum { SES_OPT_NO_MATCH, SES_OPT_BY_NAME, SES_OPT_BY_ALIAS, SES_OPT_BY_FLAG } ses_opt_spelling;
/* Compares n bytes of a name with the option's. *value: the value of SES_OPT_BY_FLAG. */
ses_opt_spelling ses_opt_match(const ses_opt *o, const char *name, size_t n, const char **value);

/* Placeholder of the value in help: "N", "ref|avx2|avx512", "" for a flag. */
const char *ses_opt_value_name(const ses_opt *o);

/* ---- lists of numbers: "0,4,9-12,-1" ---- */

/* Parses numbers and ranges of numbers from 0 on, separated by commas, into out [max]; *n: how many. A number
 * may be negative, a range cannot. The order and repeated numbers are kept. Fails (SES_EUSAGE) for another
 * text, and for more than max numbers. */
bool ses_int_ranges_parse(const char *text, int64_t *out, size_t max, size_t *n, ses_err *e);

#endif
