/* Documents to tokens: what one thread does of a round. */
#ifndef SES_DATA_CORPUS_TOKENS_H
#define SES_DATA_CORPUS_TOKENS_H

#include "corpus_text.h"
#include "sesame/corpus.h"

/* A document, tokenized. */
typedef struct ses_corpus_text {
    const int32_t *id;
    const uint8_t *word; /* 1: one begins */
    const uint32_t *sentence;
    int64_t tokens, sentences, unknown;
    uint64_t hash, bytes, bad_lines;
    bool cut;
} ses_corpus_text;

typedef struct ses_corpus_worker {
    const ses_corpus_options *o;
    bool json;
    ses_tokens *tokens;
    const ses_text_document *doc; /* what to do */
    size_t n_docs;
    ses_buf id, word, sentence, out; /* all documents' end to end; out: ses_corpus_text with places */
    size_t n_out;
    ses_buf line; /* scratch */
    bool failed;
    ses_err e;
} ses_corpus_worker;

bool ses_corpus_worker_open(ses_corpus_worker *w, const ses_corpus_options *o, ses_err *e);
void ses_corpus_worker_free(ses_corpus_worker *w);
void ses_corpus_worker_run(ses_corpus_worker *w);
ses_corpus_text ses_corpus_worker_text(const ses_corpus_worker *w, size_t i); /* of out */

#endif
