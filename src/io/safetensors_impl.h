/* Inside of an open safetensors file or folder; shared by the readers of one file and of a folder. */
#ifndef SES_IO_SAFETENSORS_IMPL_H
#define SES_IO_SAFETENSORS_IMPL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "sesame/safetensors.h"

typedef struct ses_meta {
    const char *key, *value;
} ses_meta;

struct ses_safetensors {
    ses_map *map; /* of the files; none when read from memory */
    size_t n_map;
    ses_entry *entry;
    size_t n_entry;
    ses_strmap names; /* to an entry's index */
    ses_meta *meta;
    size_t n_meta;
    ses_arena arena; /* names and metadata */
};

/* Reads the header of one file's bytes and adds its tensors, which will point into them. */
bool ses_safetensors_add(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e);

/* False when the bytes are the stub Git LFS leaves in place of a large file. */
bool ses_refuse_lfs(const void *p, size_t n, const char *what, ses_err *e);

/* One file from bytes that outlive it, for tests and fuzzing. */
ses_safetensors *ses_safetensors_from_memory(const void *bytes, size_t n, const char *file, ses_err *e);

/* A folder from the text of its index; `get` finds the bytes of a shard by its name, which outlive it. */
typedef bool ses_shard_source(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e);
ses_safetensors *ses_checkpoint_from_index(const char *index, size_t n, ses_shard_source *get, void *ctx,
                                           ses_err *e);

/* A tensor to be written. */
typedef struct ses_item {
    const char *name;
    ses_dtype dtype;
    int rank;
    int64_t dim[SES_ENTRY_DIM];
    size_t bytes;
    const void *data;          /* or */
    ses_tensor_source *source; /* not NULL: called for the bytes */
    void *ctx;
} ses_item;

struct ses_safetensors_writer {
    ses_item *item;
    size_t n, cap;
    ses_strmap names;
    ses_meta *meta;
    size_t n_meta, cap_meta;
    ses_arena arena;
};

/* Sorts the items and writes them to a file that lacks only its name: ses_writer_commit gives it. */
ses_writer *ses_safetensors_prepare(const ses_safetensors_writer *w, const ses_item **item, size_t n,
                                    const char *path, bool overwrite, ses_err *e);

#endif
