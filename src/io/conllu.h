/* Reader of dependency trees: sentences of CoNLL-U (https://universaldependencies.org/format.html), one at
 * a time. Unlike ses_conll (sesame/unstable/table.h), which returns columns, it checks word numbers and
 * trees: ten columns, words numbered from 1, every HEAD a word of the sentence or 0, exactly one 0, no
 * cycle. Comments and empty nodes (8.1) are skipped. A range (3-4) is checked and skipped: its words
 * follow. Memory is that of the longest sentence. A reader belongs to one thread. */
#ifndef SES_IO_CONLLU_H
#define SES_IO_CONLLU_H

#include "sesame/unstable/table.h"

typedef struct ses_conllu_word {
    ses_string form, upos, xpos, feats, deprel; /* each is followed by a NUL; "_": not annotated */
    int head;                                   /* number of its head, from 1; 0: the root */
    uint64_t line;                              /* in the file, from 1 */
} ses_conllu_word;

typedef struct ses_conllu_sentence {
    size_t n;
    const ses_conllu_word *word; /* word i has the number i + 1 */
    uint64_t line;               /* line of its first word */
} ses_conllu_sentence;

typedef struct ses_conllu_options {
    bool skip_invalid;   /* skip sentences that violate the format */
    size_t max_sentence; /* maximum bytes of a sentence; 0: 16 MiB */
} ses_conllu_options;

typedef struct ses_conllu ses_conllu;

/* Opens a file; "-" is standard input. o may be NULL. NULL on failure. Free with ses_conllu_free. */
ses_conllu *ses_conllu_open(const char *path, const ses_conllu_options *o, ses_err *e);
/* The same for n bytes of text, which are borrowed until ses_conllu_free. */
ses_conllu *ses_conllu_from_text(const char *text, size_t n, const ses_conllu_options *o, ses_err *e);
void ses_conllu_free(ses_conllu *c); /* c may be NULL */

/* The next sentence, valid until the next call; s->n is 0 at the end. Errors begin with the path and the
 * line. A file without sentences is an error. */
bool ses_conllu_next(ses_conllu *c, ses_conllu_sentence *s, ses_err *e);
/* Sentences skipped so far by skip_invalid, and the error of the first one ("": none). */
uint64_t ses_conllu_skipped(const ses_conllu *c);
const char *ses_conllu_first_skipped(const ses_conllu *c);

/* Value of a feature in FEATS: "Sing" for "Number" in "Case=Nom|Number=Sing"; .p is NULL if it is absent.
 * The value is not followed by a NUL. */
ses_string ses_conllu_feature(ses_string feats, const char *name);
/* DEPREL without its subtype: "nsubj" for "nsubj:pass"; not followed by a NUL. */
ses_string ses_conllu_relation(ses_string deprel);

#endif
