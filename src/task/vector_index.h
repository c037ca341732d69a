/* Vector index: texts and their normalized embeddings in one memory-mapped file, and exact search in it.
 *
 * The file, little-endian:
 *
 *     header     32 words of 8 bytes, see ses_vector_index_word
 *     probe      f32 [dim]: the vector of a fixed text. Identifies the model
 *     vectors    f16 or int8 [count, dim]
 *     scales     int8: f32 [count], the factor of each vector; f16: empty
 *     entries    u64 [count, 2]: start of the text in `texts`, line number
 *     texts      the texts, concatenated
 *
 * Each part is padded with zeros to 64 bytes. Offsets are computed from the counts.
 *
 * Ownership: the caller frees indexes and builders; strings and infos are borrowed from them. Threads: an
 * index is read-only and may be shared; a builder belongs to one thread. Errors: a damaged file is
 * SES_EFORMAT. */
#ifndef SES_TASK_VECTOR_INDEX_H
#define SES_TASK_VECTOR_INDEX_H

#include "base/thread_pool.h"
#include "sesame/base.h"
#include "sesame/json.h"
#include "sesame/unstable/tensor.h"

#define SES_VECTOR_INDEX_MAGIC "SESINDX\n"
enum { SES_VECTOR_INDEX_VERSION = 1, SES_VECTOR_INDEX_HEADER = 256, SES_VECTOR_INDEX_MAX_DIM = 1 << 16 };

typedef enum {
    SES_INDEX_MAGIC,
    SES_INDEX_VERSION, /* version in the low half, dtype (0: f16, 1: int8) in the high half */
    SES_INDEX_COUNT,
    SES_INDEX_DIM,
    SES_INDEX_TEXT_BYTES,
    SES_INDEX_SOURCE_SIZE,
    SES_INDEX_SOURCE_MTIME,
    SES_INDEX_SOURCE_HASH,
    SES_INDEX_SOURCE_SETTINGS,
    SES_INDEX_PART_HASH,        /* 5 words, in the order of the parts */
    SES_INDEX_MODEL_NAME = 16,  /* 8 words: a string, padded with zeros */
    SES_INDEX_HEADER_HASH = 31, /* hash of all words before it */
} ses_vector_index_word;

/* The file that the texts were read from. */
typedef struct ses_index_source {
    uint64_t size, mtime_ns;
    uint64_t hash;     /* see ses_index_hash_file */
    uint64_t settings; /* hash of the options that select the texts, such as the column */
} ses_index_source;

typedef struct ses_vector_index_info {
    ses_dtype dtype; /* SES_F16 or SES_I8 */
    int64_t count, dim;
    ses_index_source source;
    char model_name[64]; /* for messages */
} ses_vector_index_info;

typedef struct ses_vector_index ses_vector_index;

/* Maps a file and checks everything except the checksums of the parts. */
ses_vector_index *ses_vector_index_open(const char *path, ses_err *e);
/* The same for n bytes, borrowed, aligned to 8. */
ses_vector_index *ses_vector_index_from_memory(const void *data, size_t n, ses_err *e);
void ses_vector_index_free(ses_vector_index *x); /* x may be NULL */
/* Compares the checksums of all parts, with the threads of the pool. */
bool ses_vector_index_verify(const ses_vector_index *x, ses_thread_pool *pool, ses_err *e);

const ses_vector_index_info *ses_vector_index_info_of(const ses_vector_index *x);
const float *ses_vector_index_probe(const ses_vector_index *x); /* [dim] */
ses_string ses_vector_index_text(const ses_vector_index *x, int64_t i);
int64_t ses_vector_index_line(const ses_vector_index *x, int64_t i); /* from 1 */

/* ---- search ---- */

typedef struct ses_index_hit {
    int64_t index;
    float score;
} ses_index_hit;

/* Exact search: for each of n queries [n, dim], the k texts with the largest dot products, sorted by score,
 * then by index. k is at most the count. hits: [n, k]. The result does not depend on the number of threads.
 */
bool ses_vector_index_search(const ses_vector_index *x, ses_thread_pool *pool, ses_isa isa,
                             const float *query, int64_t n, int64_t k, ses_index_hit *hits, ses_err *e);

/* ---- writing ---- */

typedef struct ses_index_builder ses_index_builder;

/* Builds the index for `path`. Vectors and texts wait in unnamed files in its folder, so that memory holds 20
 * bytes per text. dtype: SES_F16 or SES_I8. */
ses_index_builder *ses_index_builder_new(const char *path, ses_dtype dtype, int64_t dim, ses_err *e);
void ses_index_builder_free(ses_index_builder *b); /* b may be NULL */
/* Appends a text, whose vector is zero until it is set. Lines must increase. */
bool ses_index_builder_add(ses_index_builder *b, const char *text, size_t n, int64_t line, ses_err *e);
int64_t ses_index_builder_count(const ses_index_builder *b);
bool ses_index_builder_set(ses_index_builder *b, int64_t i, const float *vector, ses_err *e); /* quantizes */
/* Copies vector j of an index with the same dtype and dim. */
bool ses_index_builder_copy(ses_index_builder *b, int64_t i, const ses_vector_index *from, int64_t j,
                            ses_err *e);
/* Writes the file atomically. probe: [dim]. overwrite: it may exist. */
bool ses_index_builder_write(ses_index_builder *b, const ses_index_source *source, const char *model_name,
                             const float *probe, bool overwrite, ses_err *e);

/* ---- shared by reader and writer ---- */

enum { SES_INDEX_PARTS = 5 };
typedef enum {
    SES_INDEX_PROBE,
    SES_INDEX_VECTORS,
    SES_INDEX_SCALES,
    SES_INDEX_ENTRIES,
    SES_INDEX_TEXTS
} ses_index_part;

/* Offsets of the parts and, in at[SES_INDEX_PARTS], the file size; bytes: sizes without padding. False:
 * overflow. */
bool ses_index_layout(const ses_vector_index_info *info, uint64_t text_bytes, size_t at[SES_INDEX_PARTS + 1],
                      size_t bytes[SES_INDEX_PARTS]);
/* ses_checksum_chunks of a file. */
bool ses_index_hash_file(const char *path, uint64_t *out, ses_err *e);

const void *ses_vector_index_vector(const ses_vector_index *x, int64_t i);
const float *ses_vector_index_scales(const ses_vector_index *x); /* [count]; NULL: f16 */

#endif
