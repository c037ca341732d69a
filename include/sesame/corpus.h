/* A corpus: texts as token ids in one file, with the borders of documents, sentences and words. Mapped, not
 * read: it may be larger than memory. Built by ses_corpus_build; what the file holds is told in
 * docs/TRAINING.md.
 *
 * An open corpus never changes and is shared between threads. */
#ifndef SESAME_CORPUS_H
#define SESAME_CORPUS_H

#include "sesame/tokenizer.h"

enum { SES_STARTS_WORD = 1, SES_STARTS_SENTENCE = 2, SES_STARTS_DOCUMENT = 4 };

/* A piece of text to learn from, before any corruption: no special tokens in it. */
typedef struct ses_passage {
    const int32_t *id;     /* [n] */
    const uint8_t *starts; /* [n] SES_STARTS_*: what begins at this token */
    int64_t n;
    int64_t split;   /* where the second segment begins; n: there is none */
    bool strange;    /* the second segment does not follow the first: random (NSP) or swapped (SOP) */
    uint64_t number; /* place in the run's order: the key of everything random about it */
    int32_t corpus;  /* which of a mixture's: its language or control code */
} ses_passage;

typedef struct ses_corpus ses_corpus;

/* What the head of the file says. */
typedef struct ses_corpus_facts {
    int64_t vocab; /* ids are below it */
    int64_t documents, sentences, tokens;
    int64_t unknown;               /* tokens that stand for what the vocabulary has not */
    int64_t bytes;                 /* of text, as it was read */
    int64_t duplicates, empty;     /* documents left out */
    int64_t held_out, held_tokens; /* documents kept for evaluation, and their tokens; counted above too */
    double held_share;             /* as it was asked for */
    uint64_t tokenizer;            /* ses_tokenizer_print of the one that made it */
    uint64_t content;              /* hash of all that follows the head: two corpora are the same */
    char label[32];                /* language or control code; "" */
} ses_corpus_facts;

ses_corpus *ses_corpus_open(const char *path, ses_err *e);
ses_corpus *ses_corpus_from(const void *data, size_t n, ses_err *e); /* of a file in memory, borrowed */
void ses_corpus_free(ses_corpus *c);
const ses_corpus_facts *ses_corpus_facts_of(const ses_corpus *c);
bool ses_corpus_verify(const ses_corpus *c, ses_err *e); /* reads it all: false where a byte has changed */

/* One document: sentences [sentence, sentence + sentences) are its tokens [token, token + tokens). */
typedef struct ses_document {
    int64_t sentence, sentences, token, tokens;
    bool held_out;
} ses_document;
ses_document ses_corpus_document(const ses_corpus *c, int64_t i);

/* The first token of sentence s of document d, counted in the document; s == d->sentences: d->tokens. */
int64_t ses_corpus_sentence(const ses_corpus *c, const ses_document *d, int64_t s);

/* Tokens [first, first + n) of a document: their ids, and what starts at each. Either may be NULL. */
void ses_corpus_read(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, int32_t *id,
                     uint8_t *starts);

/* A fingerprint of what a tokenizer does, not of how its file is written: equal ones give equal ids. */
bool ses_tokenizer_print(const ses_tokenizer *t, uint64_t *print, ses_err *e);

#endif
