/* The corpus file format, little-endian:
 *
 *     header       CORPUS_HEADER_BYTES bytes, see ses_corpus_header
 *     tokens       ids of 2 bytes if the vocabulary fits, else of 4
 *     words        one bit per token: a word starts there. The bits of document d begin at byte
 *                  token / 8 + d, so that each document begins at a new byte
 *     sentences    u32: first token of each sentence, relative to its document
 *     documents    ses_corpus_entry
 *
 * Each part is padded to 8 bytes. Offsets are computed from the counts, so that they cannot contradict each
 * other. */
#ifndef SES_DATA_CORPUS_FILE_H
#define SES_DATA_CORPUS_FILE_H

#include "base/hash.h"
#include "sesame/pretrain.h"

#define CORPUS_MAGIC "SESCORP\n"
enum { CORPUS_HEADER_BYTES = 256, CORPUS_VERSION = 1, CORPUS_PARTS = 4 };

typedef struct ses_corpus_entry {
    uint64_t token, sentence; /* first token, first sentence */
    uint64_t hash;            /* hash of the text: finds duplicates, selects held-out documents */
} ses_corpus_entry;

typedef struct ses_corpus_header {
    char magic[8];
    uint32_t version, id_bytes;
    uint64_t vocab, documents, sentences, tokens;
    uint64_t unknown, bytes, duplicates, empty, bad_lines, split_documents;
    uint64_t held_out, held_out_tokens;
    double held_out_fraction;
    uint64_t tokenizer;
    uint64_t part[CORPUS_PARTS]; /* hashes of the parts */
    char label[32];
    uint64_t hash; /* hash of everything before it */
} ses_corpus_header;

typedef enum { PART_TOKENS, PART_WORDS, PART_SENTENCES, PART_DOCUMENTS } ses_corpus_part;

/* Offsets of the parts, and the file size in at[CORPUS_PARTS]; false: overflow. */
bool ses_corpus_layout(const ses_corpus_header *h, size_t at[CORPUS_PARTS + 1]);
/* Excludes padding; the layout must be valid. */
size_t ses_corpus_part_bytes(const ses_corpus_header *h, int part);

uint64_t ses_corpus_hash(const void *p, size_t n); /* fixed key: the hashes are stored in files */
bool ses_corpus_is_held_out(uint64_t hash, double fraction);
/* Fails if all documents are held out: nothing is left to train on. */
bool ses_corpus_check_held_out(const ses_corpus_header *h, ses_err *e);

/* Header and document hashes of an open corpus. */
const ses_corpus_header *ses_corpus_header_of(const ses_corpus *c);
uint64_t ses_corpus_document_hash(const ses_corpus *c, int64_t i);

#endif
