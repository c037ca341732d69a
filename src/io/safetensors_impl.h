/* Private parts of open tensor files, shared by the readers of each format and of folders, and by the
 * writers. */
#ifndef SES_IO_SAFETENSORS_IMPL_H
#define SES_IO_SAFETENSORS_IMPL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strmap.h"
#include "sesame/safetensors.h"

typedef struct ses_meta {
    const char *key, *value;
} ses_meta;

struct ses_safetensors {
    ses_mmap *map; /* one per file; none if read from memory */
    size_t n_map;
    ses_tensor_entry *entry;
    size_t n_entry;
    ses_strmap names; /* name to index in entry */
    ses_meta *meta;
    size_t n_meta;
    ses_arena arena; /* names, metadata, and copies of non-contiguous tensors */
};

/* Reads the bytes of one file and adds its tensors, which point into them. */
typedef bool ses_tensor_reader(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e);
ses_tensor_reader ses_safetensors_add, ses_torch_add, ses_hdf5_add;

/* Whether the bytes begin like a PyTorch or HDF5 file; no safetensors file begins like that. */
bool ses_is_torch_file(const unsigned char *p, size_t n);
bool ses_is_hdf5_file(const unsigned char *p, size_t n);

/* Capacity for `more` entries. */
bool ses_tensor_entries_reserve(ses_safetensors *s, size_t more, ses_err *e);
/* Adds an entry within the reserved capacity; fails if the name exists. */
bool ses_tensor_entry_add(ses_safetensors *s, const ses_tensor_entry *x, ses_err *e);

/* Opens one file; read NULL: the format is detected from the first bytes. */
ses_safetensors *ses_tensors_open(ses_tensor_reader *read, const char *path, ses_err *e);

/* Opens several files of a folder, safetensors or PyTorch's, as one; no tensor may be in two of them. */
ses_safetensors *ses_tensors_open_files(const char *dir, const char *const file[], size_t n, ses_err *e);

/* The dtype of the weights: SES_I8 if there are int8 weights with scales, else that of most elements;
 * SES_F32 without tensors. */
ses_dtype ses_tensors_dtype(const ses_safetensors *s);

/* Fails if the bytes are a Git LFS pointer. what: "weights", "index". */
bool ses_check_not_lfs(const void *p, size_t n, const char *what, ses_err *e);

/* Opens one file from borrowed bytes, for tests and fuzzing. */
ses_safetensors *ses_safetensors_from_memory(const void *bytes, size_t n, const char *file, ses_err *e);
ses_safetensors *ses_tensors_from_memory(ses_tensor_reader *read, const void *bytes, size_t n,
                                         const char *file, ses_err *e);

/* Opens a folder from the text of its index; `get` returns the bytes of a shard by its file name,
 * borrowed. */
typedef bool ses_shard_source(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e);
ses_safetensors *ses_checkpoint_from_index(const char *index, size_t n, ses_shard_source *get, void *ctx,
                                           ses_err *e);

/* ses_checkpoint_open for a model class, which decides between the two models in a TensorFlow checkpoint of
 * ELECTRA; NULL: not known. */
ses_safetensors *ses_checkpoint_open_as(const char *dir, const char *class, ses_err *e);

/* A tensor to be written. */
typedef struct ses_pending_entry {
    const char *name;
    ses_dtype dtype;
    int rank;
    int64_t dim[SES_ENTRY_MAX_DIM];
    size_t bytes;
    const void *data;          /* used if source is NULL */
    ses_tensor_source *source; /* callback that produces the bytes */
    void *ctx;
    size_t first, held; /* ses_safetensors_fill: this process has bytes first .. first + held - 1 */
} ses_pending_entry;

struct ses_safetensors_writer {
    ses_pending_entry *item;
    size_t n, cap;
    ses_strmap names;
    ses_meta *meta;
    size_t n_meta, cap_meta;
    ses_arena arena;
};

/* Metadata of files of Sesame's own formats: 16 hexadecimal digits that cover the whole file. The reader
 * compares them wherever they are present. */
#define SES_SAFETENSORS_CHECKSUM "sesame_checksum"
bool ses_safetensors_writer_add_checksum(ses_safetensors_writer *w, ses_err *e);
/* The checksum of a file of n bytes with a header of `head` bytes, in which the digits count as zeros; *at:
 * their offset. Fails if it has none. */
bool ses_safetensors_checksum(const void *bytes, size_t n, size_t head, size_t *at, char hex[24], ses_err *e);

/* Extension of the weight files of int8 folders instead of "safetensors". The format is the same. Other
 * programs do not find these files, so they cannot take the integers for weights. */
#define SES_INT8_EXT "sesame-int8"

/* ses_checkpoint_save with the weight files of an int8 folder. */
bool ses_checkpoint_save_int8(const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                              bool overwrite, ses_err *e);

/* Sorts the items and makes the bytes before the first tensor; *total: bytes of all tensors. */
bool ses_safetensors_header(const ses_safetensors_writer *w, const ses_pending_entry **item, size_t n,
                            ses_buf *out, uint64_t *total, ses_err *e);
enum { SES_SAFETENSORS_CHUNK = 1 << 20 }; /* bytes that a source produces at a time */

/* ---- a file that several processes write (safetensors_shared.c) ---- */

/* All processes add the same tensors, by ses_safetensors_writer_add_slice. One creates the file, with its
 * header and its final size; then each writes the slices that it holds and syncs them. The file has the same
 * bytes as one by ses_safetensors_save. */
bool ses_safetensors_writer_add_slice(ses_safetensors_writer *w, const char *name, ses_dtype dtype,
                                      int64_t count, size_t first, size_t held, ses_tensor_source *source,
                                      void *ctx, ses_err *e);
bool ses_safetensors_create(const ses_safetensors_writer *w, const char *path, ses_err *e);
bool ses_safetensors_fill(const ses_safetensors_writer *w, const char *path, ses_err *e);

/* Sorts the items and writes them to a temporary file; ses_file_writer_commit gives it its name. */
ses_file_writer *ses_safetensors_prepare(const ses_safetensors_writer *w, const ses_pending_entry **item,
                                         size_t n, const char *path, bool overwrite, ses_err *e);

#endif
