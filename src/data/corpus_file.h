/* The file of a corpus, byte by byte; little-endian.
 *
 *     head         CORPUS_HEADER_BYTES bytes, see ses_corpus_header
 *     tokens       ids of 2 bytes where the vocabulary fits, else of 4
 *     words        a bit a token: a word starts there. Those of document d begin at byte token / 8 + d, so
 *                  that each document's begin at a byte of their own
 *     sentences    u32: first token of each, counted in its document
 *     documents    ses_corpus_entry
 *
 * Each part is padded to 8 bytes. Nothing but the counts says where parts lie, so they cannot disagree. */
#ifndef SES_DATA_CORPUS_FILE_H
#define SES_DATA_CORPUS_FILE_H

#include "base/hash.h"
#include "sesame/corpus.h"

#define CORPUS_MAGIC "SESCORP\n"
enum { CORPUS_HEADER_BYTES = 256, CORPUS_VERSION = 1, CORPUS_PARTS = 4 };

typedef struct ses_corpus_entry {
    uint64_t token, sentence; /* the first */
    uint64_t hash;            /* of the text: duplicates, and what is held out */
} ses_corpus_entry;

typedef struct ses_corpus_header {
    char magic[8];
    uint32_t version, id_bytes;
    uint64_t vocab, documents, sentences, tokens;
    uint64_t unknown, bytes, duplicates, empty, bad_lines, split_documents;
    uint64_t held_out, held_out_tokens;
    double held_out_fraction;
    uint64_t tokenizer;
    uint64_t part[CORPUS_PARTS]; /* hashes */
    char label[32];
    uint64_t hash; /* of all before it */
} ses_corpus_header;

typedef enum { PART_TOKENS, PART_WORDS, PART_SENTENCES, PART_DOCUMENTS } ses_corpus_part;

/* Where parts begin, and the whole file's size as at[CORPUS_PARTS]; false: more than a size_t holds. */
bool ses_corpus_layout(const ses_corpus_header *h, size_t at[CORPUS_PARTS + 1]);
size_t ses_corpus_part_bytes(const ses_corpus_header *h, int part); /* without padding; after a layout */

uint64_t ses_corpus_hash(const void *p, size_t n); /* of what is kept in files: the key is fixed */
bool ses_corpus_is_held_out(uint64_t hash, double share);

#endif
