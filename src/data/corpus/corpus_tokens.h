/* Worker that tokenizes the documents of one thread. Each worker belongs to one thread at a time. */
#ifndef SES_DATA_CORPUS_TOKENS_H
#define SES_DATA_CORPUS_TOKENS_H

#include "corpus_text.h"
#include "sesame/pretrain.h"

/* A tokenized document. */
typedef struct ses_corpus_text {
    const int32_t *id;
    const uint8_t *word; /* 1: a word starts here */
    const uint32_t *sentence;
    int64_t tokens, sentences, unknown;
    uint64_t hash, bytes, bad_lines;
    bool continues; /* as ses_text_document.continues */
} ses_corpus_text;

typedef struct ses_corpus_worker {
    const ses_corpus_options *o;
    bool json;
    ses_encode_ctx *tokens;
    const ses_text_document *doc; /* [n_docs] input */
    size_t n_docs;
    ses_buf id, word, sentence, out; /* all documents end to end; out: ses_corpus_text with offsets */
    size_t n_out;
    ses_buf line; /* scratch */
    bool failed;
    ses_err e;
} ses_corpus_worker;

bool ses_corpus_worker_open(ses_corpus_worker *w, const ses_corpus_options *o, ses_err *e);
void ses_corpus_worker_free(ses_corpus_worker *w);
void ses_corpus_worker_run(ses_corpus_worker *w);
ses_corpus_text ses_corpus_worker_text(const ses_corpus_worker *w, size_t i); /* document i of the last run */

#endif
