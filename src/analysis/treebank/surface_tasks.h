/* Sentence classification made from dependency trees, after SentEval's probing tasks (Conneau et al. 2018):
 * a treebank in, sentences with labels out. A sentence without the property has no label and is left out;
 * two tasks change half of the sentences. surface_tasks.def lists the tasks.
 *
 *     ses_surface_lists lists;   words and replacements, from the training data
 *     ses_surface_set train = { 0 }, test = { 0 };
 *     ok = ses_surface_lists_new(&lists, &train_trees, e) &&
 *          ses_surface_make(&train, task, &train_trees, &lists, seed, e) &&
 *          ses_surface_make(&test, task, &test_trees, &lists, seed, e);
 *
 * Treebanks and lists must outlive the sets. Threads: constant after they were made. */
#ifndef SES_ANALYSIS_SURFACE_TASKS_H
#define SES_ANALYSIS_SURFACE_TASKS_H

#include "analysis/treebank/treebank.h"

typedef enum {
#define SES_SURFACE_TASK(id, name, description) SES_SURFACE_##id,
#include "analysis/treebank/surface_tasks.def"
#undef SES_SURFACE_TASK
    SES_SURFACE_TASKS
} ses_surface_task;

const char *ses_surface_task_name(ses_surface_task t);
/* The task of this name; SES_SURFACE_TASKS: none. */
ses_surface_task ses_surface_task_find(const char *name);

/* A word of the training data. */
typedef struct ses_surface_word {
    ses_string form, xpos, upos;
    int64_t count;
} ses_surface_word;

typedef struct ses_surface_lists {
    ses_surface_word *word; /* [n]: distinct pairs of form and XPOS, by XPOS, then by falling count */
    size_t n, cap;
    ses_strmap chosen; /* lower-case words of word_content */
    ses_arena arena;
} ses_surface_lists;

/* Lists from training data. Free it even on failure. */
bool ses_surface_lists_new(ses_surface_lists *l, const ses_treebank *train, ses_err *e);
void ses_surface_lists_free(ses_surface_lists *l);

typedef struct ses_surface_set {
    ses_input *input;  /* [n]: words of each sentence */
    ses_string *label; /* [n]; each is followed by a NUL */
    size_t *sentence;  /* [n]: its index in the treebank */
    size_t n, input_cap, label_cap, sentence_cap;
    ses_arena arena; /* changed sentences */
} ses_surface_set;

/* The labeled sentences of a treebank. *s is zeroed. Free it even on failure. */
bool ses_surface_make(ses_surface_set *s, ses_surface_task task, const ses_treebank *trees,
                      const ses_surface_lists *lists, uint64_t seed, ses_err *e);
void ses_surface_set_free(ses_surface_set *s); /* back to zero */

#endif
