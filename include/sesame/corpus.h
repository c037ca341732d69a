/* A corpus: texts as token ids in one file, with the borders of documents, sentences and words. Mapped, not
 * read: it may be larger than memory. Built by ses_corpus_build; what the file holds is told in
 * docs/TRAINING.md.
 *
 * An open corpus never changes and is shared between threads. */
#ifndef SESAME_CORPUS_H
#define SESAME_CORPUS_H

#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

enum { SES_STARTS_WORD = 1, SES_STARTS_SENTENCE = 2, SES_STARTS_DOCUMENT = 4 };

/* A piece of text to learn from, before any corruption: no special tokens in it. */
typedef struct ses_passage {
    const int32_t *id;     /* [n] */
    const uint8_t *starts; /* [n] SES_STARTS_*: what begins at this token */
    int64_t n;
    int64_t split;    /* where the second segment begins; n: there is none */
    bool is_negative; /* the second segment does not follow the first: random (NSP) or swapped (SOP) */
    uint64_t number;  /* place in the run's order: the key of everything random about it */
    int32_t corpus;   /* which of a mixture's: its language or control code */
} ses_passage;

typedef struct ses_corpus ses_corpus;

/* What the head of the file says. */
typedef struct ses_corpus_info {
    int64_t vocab_size; /* ids are below it */
    int64_t documents, sentences, tokens;
    int64_t unknown_tokens;    /* tokens that stand for what the vocabulary has not */
    int64_t bytes;             /* of text, as it was read */
    int64_t duplicates, empty; /* documents left out */
    int64_t invalid_lines;     /* that are not UTF-8; bad bytes count as U+FFFD */
    int64_t split_documents;   /* documents begun where one was too long to be kept in one piece */
    int64_t held_out,
        held_out_tokens;            /* documents kept for evaluation, and their tokens; counted above too */
    double held_out_fraction;       /* as it was asked for */
    uint64_t tokenizer_fingerprint; /* ses_tokenizer_fingerprint of the one that made it */
    uint64_t content_hash;          /* hash of all that follows the head: two corpora are the same */
    char label[32];                 /* language or control code; "" */
} ses_corpus_info;

ses_corpus *ses_corpus_open(const char *path, ses_err *e);
/* A file in memory, aligned to 8; borrowed. */
ses_corpus *ses_corpus_from_memory(const void *data, size_t n, ses_err *e);
void ses_corpus_free(ses_corpus *c);
const ses_corpus_info *ses_corpus_info_of(const ses_corpus *c);
bool ses_corpus_verify(const ses_corpus *c, ses_err *e); /* reads it all: false where a byte has changed */

/* One document: sentences [sentence, sentence + sentences) are its tokens [token, token + tokens). */
typedef struct ses_document {
    int64_t index;
    int64_t first_sentence, n_sentences, first_token, n_tokens;
    bool held_out;
} ses_document;
ses_document ses_corpus_document(const ses_corpus *c, int64_t i);

/* The first token of sentence s of document d, counted in the document; s == d->sentences: d->tokens. */
int64_t ses_corpus_sentence_start(const ses_corpus *c, const ses_document *d, int64_t s);
/* The sentence a token is in, both counted in the document. */
int64_t ses_corpus_sentence_of_token(const ses_corpus *c, const ses_document *d, int64_t token);

/* Tokens [first, first + n) of a document: their ids, and what starts at each. Either may be NULL. */
void ses_corpus_read(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, int32_t *id,
                     uint8_t *starts);

typedef enum { SES_CORPUS_AUTO, SES_CORPUS_TEXT, SES_CORPUS_JSONL } ses_corpus_format;

/* How texts become a corpus. A plain text is documents with blank lines between, each line a sentence (or a
 * paragraph; split_sentences cuts it). A line of JSON lines is a document, its field a text whose lines are
 * sentences. What is longer than 16 MiB without a blank line is cut at a line's end. */
typedef struct ses_corpus_options {
    const ses_tokenizer *tokenizer;
    int32_t unk_id;           /* its unknown token, to be counted; -1: none */
    const char *const *files; /* "-": standard input. Packed ones are unpacked: see docs/DEPENDENCIES.md */
    size_t n_files;
    ses_corpus_format format;
    const char *field; /* of JSON lines; NULL: "text" */
    bool split_sentences, keep_duplicates;
    bool
        newline_tokens; /* a sentence but a document's last ends in a line end, as a token: for causal models */
    double held_out_fraction;
    const char *label;
    bool restart, overwrite;
    int threads;         /* the result depends neither on it nor on */
    int64_t chunk_bytes; /* of text tokenized at once; 0: 8 MiB */
    /* Told every so often how many bytes of the files have been read; false: stop here. NULL: nobody. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t of);
    void *ctx;
} ses_corpus_options;

/* Writes the corpus at path. On the way its parts lie in the folder PATH.part; where that is there, from a
 * build of the same texts that was stopped or killed, the work goes on from what it holds, and *resumed is
 * the number of documents it held. The bytes are the same as without an interruption. */
bool ses_corpus_build(const char *path, const ses_corpus_options *o, int64_t *resumed, ses_err *e);

/* A fingerprint of what a tokenizer does, not of how its file is written: equal ones give equal ids. */
bool ses_tokenizer_fingerprint(const ses_tokenizer *t, uint64_t *print, ses_err *e);

SES_END_DECLS

#endif
