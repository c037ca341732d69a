/* Lists of word pairs on the command line, shared by `vectors similarity` and `vectors eval`: files, or
 * folders of them; scores as table or JSON. Main thread only. */
#ifndef SES_CLI_WORD_LISTS_H
#define SES_CLI_WORD_LISTS_H

#include "cli/ui/term.h"
#include "sesame/json.h"
#include "vectors/word_pairs.h"

enum { SES_WORD_LISTS_LIMIT = 300000 }; /* words of the vocabulary, as gensim */

typedef struct ses_word_list {
    char *path;
    ses_word_pairs_score score;
} ses_word_list;

typedef struct ses_word_lists { /* zeroed: empty */
    ses_word_list *list;
    size_t n, cap;
} ses_word_lists;

/* Adds a file, or the files NAME.txt, .tsv and .csv of a folder, by name. */
bool ses_word_lists_add(ses_word_lists *l, const char *path, ses_err *e);
void ses_word_lists_free(ses_word_lists *l); /* back to zero */

/* Evaluates all lists with the first `limit` words of v, 0: all that were read. */
bool ses_word_lists_evaluate(ses_word_lists *l, const ses_vectors *v, int64_t limit, ses_fold fold,
                             const ses_word_pairs_options *o, ses_err *e);

bool ses_word_lists_show(const ses_word_lists *l, const ses_term *t, ses_err *e);
void ses_word_lists_put_json(const ses_word_lists *l, ses_json_writer *w); /* an array */

#endif
