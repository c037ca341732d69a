/* Inside of an open file or folder of tensors; shared by the readers of each format and of a folder. */
#ifndef SES_IO_SAFETENSORS_IMPL_H
#define SES_IO_SAFETENSORS_IMPL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/strmap.h"
#include "sesame/safetensors.h"

typedef struct ses_meta {
    const char *key, *value;
} ses_meta;

struct ses_safetensors {
    ses_mmap *map; /* of the files; none when read from memory */
    size_t n_map;
    ses_tensor_entry *entry;
    size_t n_entry;
    ses_strmap names; /* to an entry's index */
    ses_meta *meta;
    size_t n_meta;
    ses_arena arena; /* names and metadata, and what could not be used in place */
};

/* Reads one file's bytes and adds its tensors, which will point into them. */
typedef bool ses_tensor_reader(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e);
ses_tensor_reader ses_safetensors_add, ses_torch_add;

bool ses_is_torch_file(const unsigned char *p,
                       size_t n); /* by its first bytes; no safetensors file begins so */

bool ses_tensor_entries_reserve(ses_safetensors *s, size_t more, ses_err *e); /* for so many more entries */
bool ses_tensor_entry_add(ses_safetensors *s, const ses_tensor_entry *x,
                          ses_err *e); /* there is room; false too when it is
                                                                            there already */

/* One file; read NULL: by what its bytes look like. */
ses_safetensors *ses_tensors_open(ses_tensor_reader *read, const char *path, ses_err *e);

/* False when the bytes are the stub Git LFS leaves in place of a large file. */
bool ses_check_not_lfs(const void *p, size_t n, const char *what, ses_err *e);

/* One file from bytes that outlive it, for tests and fuzzing. */
ses_safetensors *ses_safetensors_from_memory(const void *bytes, size_t n, const char *file, ses_err *e);
ses_safetensors *ses_tensors_from_memory(ses_tensor_reader *read, const void *bytes, size_t n,
                                         const char *file, ses_err *e);

/* A folder from the text of its index; `get` finds the bytes of a shard by its name, which outlive it. */
typedef bool ses_shard_source(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e);
ses_safetensors *ses_checkpoint_from_index(const char *index, size_t n, ses_shard_source *get, void *ctx,
                                           ses_err *e);

/* A tensor to be written. */
typedef struct ses_pending_entry {
    const char *name;
    ses_dtype dtype;
    int rank;
    int64_t dim[SES_ENTRY_MAX_DIM];
    size_t bytes;
    const void *data;          /* or */
    ses_tensor_source *source; /* not NULL: called for the bytes */
    void *ctx;
} ses_pending_entry;

struct ses_safetensors_writer {
    ses_pending_entry *item;
    size_t n, cap;
    ses_strmap names;
    ses_meta *meta;
    size_t n_meta, cap_meta;
    ses_arena arena;
};

/* Sorts the items and writes them to a file that lacks only its name: ses_file_writer_commit gives it. */
ses_file_writer *ses_safetensors_prepare(const ses_safetensors_writer *w, const ses_pending_entry **item,
                                         size_t n, const char *path, bool overwrite, ses_err *e);

#endif
