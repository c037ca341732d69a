/* Private parts of ses_examples, shared with the readers of its formats. */
#ifndef SES_DATA_EXAMPLES_H
#define SES_DATA_EXAMPLES_H

#include "base/arena.h"
#include "base/str.h"
#include "base/strmap.h"
#include "sesame/examples.h"

struct ses_examples {
    const ses_data_spec *spec; /* during the open only */
    ses_data_kind kind;
    ses_arena arena;
    ses_labeled_example *item;
    size_t n, cap, skipped, repaired, dropped;
    ses_data_gap *gap;
    size_t n_gaps, gap_cap;
    ses_string *raw; /* [n] several labels: the field of each example until the end; NULL: none */
    size_t raw_cap;
    char separator;       /* between several labels; '[': arrays; 0: none */
    char other_separator; /* that other_rows rows have as well; 0: none */
    size_t other_rows;
    const char **value, **name; /* [n_labels] */
    size_t n_labels, label_cap;
    ses_strmap map;           /* label value to id */
    bool fixed;               /* new labels are errors */
    ses_strmap group;         /* name of a group to its number */
    const char *columns_note; /* how the columns were found; NULL: as usual */
};

/* An empty set with the labels of like or of spec; examples are added between begin and end. end sorts the
 * labels found and fails if the set is empty. spec lives until end. */
ses_examples *ses_examples_begin(const ses_data_spec *spec, const ses_examples *like, ses_err *e);
bool ses_examples_end(ses_examples *d, ses_err *e);
bool ses_examples_add(ses_examples *d, const ses_labeled_example *x, ses_err *e);
bool ses_examples_keep(ses_examples *d, ses_string *f, ses_err *e); /* copies *f into the arena */

/* The id of a label value; adds the label unless d->fixed. */
bool ses_examples_take_label(ses_examples *d, const char *s, size_t n, int32_t *out, ses_err *e);

/* Counts a row with a gap. why: of an error, without its line; it may begin with "line N: ". */
bool ses_examples_add_gap(ses_examples *d, const char *why, bool is_error, uint64_t line, ses_err *e);
/* Whether a row with this error is dropped; then it is counted. Otherwise the error is in e. */
bool ses_examples_drop(ses_examples *d, const ses_err *why, uint64_t line, ses_err *e);

/* Keeps the labels of the example that is added next for ses_examples_split_labels, which chooses the
 * separator when all fields are known. Rows with an error are dropped or end the reading. */
bool ses_examples_keep_labels(ses_examples *d, ses_string field, ses_err *e);
bool ses_examples_split_labels(ses_examples *d, ses_err *e);

/* The number of a group by its name, from 1. */
bool ses_examples_take_group(ses_examples *d, ses_string name, int64_t *out, ses_err *e);

/* Fails with both lists unless every label of d is one of like's, in any order. */
bool ses_examples_check_labels(const ses_examples *d, const ses_examples *like, ses_err *e);

/* Reads the rows of a table one at a time. path and the strings of the spec are borrowed. */
typedef struct ses_table_reader ses_table_reader;
ses_table_reader *ses_table_reader_open(const ses_data_spec *s, const char *path, ses_err *e);
void ses_table_reader_free(ses_table_reader *t);
/* Adds the next row to d; *end: there was none. */
bool ses_table_reader_add(ses_table_reader *t, ses_examples *d, bool *end, ses_err *e);
const ses_records *ses_table_reader_records(const ses_table_reader *t); /* at the last row */

bool ses_read_table(ses_examples *d, const char *path, ses_err *e);
bool ses_read_conll(ses_examples *d, const char *path, ses_err *e);
bool ses_read_squad(ses_examples *d, const char *path, ses_err *e);
bool ses_read_multirc(ses_examples *d, const char *path, ses_err *e);
bool ses_read_record(ses_examples *d, const char *path, ses_err *e);
bool ses_read_winogender(ses_examples *d, const char *path, ses_err *e);
bool ses_read_lines(ses_examples *d, const char *path, ses_err *e);

#endif
