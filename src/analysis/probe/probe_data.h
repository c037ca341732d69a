/* Data of a probe: texts in three sets, and examples (a word, a text or a pair of words) with a label for
 * each task. A kind of probe fills it; probe_run.h does the rest.
 *
 * Order of calls: ses_probe_data_add_task for each task; then for training, development and test data in this
 * order ses_probe_data_begin, and for each text ses_probe_data_add_text and its examples.
 * Strings are copied. Free it even on failure. One thread. */
#ifndef SES_ANALYSIS_PROBE_DATA_H
#define SES_ANALYSIS_PROBE_DATA_H

#include "analysis/word_states.h"
#include "base/arena.h"
#include "base/strmap.h"
#include "figure/report.h"

enum { SES_PROBE_TRAIN, SES_PROBE_DEV, SES_PROBE_TEST, SES_PROBE_SETS };
enum { SES_PROBE_NO_LABEL = -1, SES_PROBE_UNSEEN_LABEL = -2 };

typedef struct ses_probe_task {
    const char *name;
    ses_strmap ids;     /* label to id */
    const char **label; /* [classes]: labels of the training data, in order of appearance */
    size_t classes, cap_labels;
    int32_t
        *y; /* [examples]: id; SES_PROBE_NO_LABEL: not an example; SES_PROBE_UNSEEN_LABEL: not in training */
    size_t cap_y;
} ses_probe_task;

typedef struct ses_probe_example {
    size_t row, other; /* rows of states; other: second word of a pair */
    uint32_t type;     /* word type, for the control task and the majority by word */
    uint32_t length;   /* words of the span that begins at `row`: edge probes read them all */
} ses_probe_example;

typedef struct ses_probe_data {
    const char *kind; /* "tag", "text", "arc" */
    ses_state_unit unit;
    bool drops_tasks; /* a task that cannot be probed is left out: the user has not named it */
    size_t left_out;  /* sentences too long for trees */
    bool pairs;       /* examples are [h_row; h_other; h_row * h_other] */
    ses_input *input; /* [n_inputs] */
    size_t n_inputs, cap_inputs, rows;
    ses_probe_example *example; /* [n] */
    size_t n, cap;
    size_t first[SES_PROBE_SETS + 1];       /* examples of set s: first[s] .. first[s + 1] - 1 */
    size_t first_input[SES_PROBE_SETS + 1]; /* texts of set s */
    size_t test_in_train;                   /* test texts that are training texts */
    int set;
    ses_probe_task *task; /* [n_tasks] */
    size_t n_tasks, cap_tasks;
    const char **dropped; /* [n_dropped]: names of tasks that were left out */
    size_t n_dropped, cap_dropped;
    ses_strmap types; /* word to type */
    size_t n_types, cap_types;
    const char **type; /* [n_types] */
    ses_arena mem;
} ses_probe_data;

bool ses_probe_data_add_task(ses_probe_data *d, const char *name, size_t n, ses_err *e);
/* Begins a set. */
void ses_probe_data_begin(ses_probe_data *d, int set);
/* After the last example. Fails if a set or a task has no examples, or a task has a single class; with
 * drops_tasks such tasks are left out with a note, if another one is left. */
bool ses_probe_data_end(ses_probe_data *d, ses_report *report, ses_err *e);
/* Adds a text of n words; *row: the row of its first word. */
bool ses_probe_data_add_words(ses_probe_data *d, const ses_string *word, size_t n, size_t *row, ses_err *e);
/* Adds a text as one row. */
bool ses_probe_data_add_text(ses_probe_data *d, ses_string text, ses_string pair, size_t *row, ses_err *e);
/* Adds a text of n words as one row. */
bool ses_probe_data_add_sentence(ses_probe_data *d, const ses_string *word, size_t n, size_t *row,
                                 ses_err *e);
/* Adds an example of one word, or of a text; type: its word; label [n_tasks], p NULL: no label. */
bool ses_probe_data_add(ses_probe_data *d, size_t row, size_t other, ses_string type, const ses_string *label,
                        ses_err *e);
void ses_probe_data_free(ses_probe_data *d);

/* Whether text number i of a single file belongs to a set: of ten, eight are training data, the ninth is
 * development and the tenth test data. */
bool ses_probe_in_set(size_t i, int set);

#endif
