/* A corpus: tokenized text in one file, with the boundaries of documents, sentences and words.
 * docs/TRAINING.md describes the file format.
 *
 * The file is mapped, not read: it may be larger than memory. ses_corpus_build creates it.
 * Ownership: results by value or copied to the caller's arrays.
 * Threads: an open corpus is immutable; several threads may read it. */
#ifndef SESAME_CORPUS_H
#define SESAME_CORPUS_H

#include "sesame/table.h"
#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

enum { SES_STARTS_WORD = 1, SES_STARTS_SENTENCE = 2, SES_STARTS_DOCUMENT = 4 };

/* A training passage before any corruption, without special tokens. */
typedef struct ses_passage {
    const int32_t *id;     /* [n] token ids */
    const uint8_t *starts; /* [n] SES_STARTS_* flags of each token */
    int64_t n;
    int64_t split;    /* first token of the second segment; n: one segment only */
    bool is_negative; /* the second segment does not follow the first: random (NSP) or swapped (SOP) */
    uint64_t number;  /* unique in the run; key of all random draws for this passage */
    int32_t corpus;   /* index in the mixture: selects the language or control code */
} ses_passage;

typedef struct ses_corpus ses_corpus;

/* The header of a corpus file. */
typedef struct ses_corpus_info {
    int64_t vocab_size; /* ids are below it */
    int64_t documents, sentences, tokens;
    int64_t unknown_tokens;            /* occurrences of the unknown token */
    int64_t bytes;                     /* bytes of input text */
    int64_t duplicates, empty;         /* documents skipped */
    int64_t invalid_lines;             /* lines with invalid UTF-8, which becomes U+FFFD */
    int64_t split_documents;           /* documents that continue a text that was too long for one */
    int64_t held_out, held_out_tokens; /* held-out documents and their tokens; included above */
    double held_out_fraction;          /* as requested */
    uint64_t tokenizer_fingerprint;    /* ses_tokenizer_fingerprint of the tokenizer */
    uint64_t content_hash;             /* hash of everything after the header: equal for equal corpora */
    char label[32];                    /* language or control code; "" */
} ses_corpus_info;

/* ---- reading ---- */

/* Opens a corpus file and checks its index. NULL on failure. Free with ses_corpus_free. */
ses_corpus *ses_corpus_open(const char *path, ses_err *e);
/* The same for a file in memory: n bytes, aligned to 8, borrowed until ses_corpus_free. */
ses_corpus *ses_corpus_from_memory(const void *data, size_t n, ses_err *e);
/* Closes a corpus. c may be NULL. */
void ses_corpus_free(ses_corpus *c);
/* The header; valid until ses_corpus_free. */
const ses_corpus_info *ses_corpus_info_of(const ses_corpus *c);
/* Reads all of the file; false if a byte has changed since it was written. */
bool ses_corpus_verify(const ses_corpus *c, ses_err *e);

/* A document: its sentences and tokens as ranges of the corpus. */
typedef struct ses_document {
    int64_t index;
    int64_t first_sentence, n_sentences, first_token, n_tokens;
    bool held_out;
} ses_document;

/* Document i; i must be below ses_corpus_info.documents. */
ses_document ses_corpus_document(const ses_corpus *c, int64_t i);

/* First token of sentence s of document d, relative to the document; d->n_tokens if s is d->n_sentences. */
int64_t ses_corpus_sentence_start(const ses_corpus *c, const ses_document *d, int64_t s);
/* The sentence that contains a token, both relative to the document. */
int64_t ses_corpus_sentence_of_token(const ses_corpus *c, const ses_document *d, int64_t token);

/* Copies tokens [first, first + n) of a document: ids to id[n], SES_STARTS_* flags to starts[n]. Either may
 * be NULL. */
void ses_corpus_read(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, int32_t *id,
                     uint8_t *starts);

/* ---- building ---- */

typedef enum { SES_CORPUS_AUTO /* by the file name */, SES_CORPUS_TEXT, SES_CORPUS_JSONL } ses_corpus_format;

/* Plain text: blank lines separate documents; each line is a sentence, or a paragraph if split_sentences.
 * JSON lines: each line is a document, one field of it is the text, whose lines are sentences. A document
 * longer than 16 MiB is split at a line end. */
typedef struct ses_corpus_options {
    const ses_tokenizer *tokenizer; /* borrowed during the build */
    int32_t unk_id;                 /* id of the unknown token, to count it; -1: none */
    const char *const *files;       /* "-": standard input; compressed files: see docs/DEPENDENCIES.md */
    size_t n_files;
    ses_corpus_format format;
    const char *field; /* field of JSON lines with the text; NULL: "text" */
    bool split_sentences, keep_duplicates;
    bool newline_tokens; /* sentences end in a line-end token, except the last of a document */
    double held_out_fraction;
    const char *label;
    bool restart, overwrite;
    int threads;         /* does not change the result; 0: 1 */
    int64_t chunk_bytes; /* text tokenized at once; does not change the result; 0: 8 MiB */
    /* Called regularly with the bytes read so far and in total; false stops the build. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    ses_text_encoding encoding; /* the files have it; not for parts of files */
} ses_corpus_options;

/* Writes the corpus to `path`. Intermediate files are in the folder PATH.part. If that folder holds an
 * interrupted build of the same texts and options, the build resumes there, and *resumed is the number of
 * documents it already has. The resulting bytes are the same with and without interruptions. */
bool ses_corpus_build(const char *path, const ses_corpus_options *o, int64_t *resumed, ses_err *e);

/* A fingerprint of a tokenizer's behavior, independent of how its file is written: equal fingerprints mean
 * equal ids. Thread-safe. */
bool ses_tokenizer_fingerprint(const ses_tokenizer *t, uint64_t *print, ses_err *e);

SES_END_DECLS

#endif
