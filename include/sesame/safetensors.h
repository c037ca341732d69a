/* Tensors in files: safetensors, one file or a folder of shards with an index; PyTorch's .bin, for reading.
 *
 * Reading maps the files; a tensor's bytes are borrowed until ses_safetensors_free, and copied only where a
 * .bin holds them out of order. All of the header is checked before anything is handed out: sizes against
 * shapes and dtypes, offsets against the file, no hole, no overlap. A .bin's pickle is read as data: nothing
 * in it is ever run, and what asks to be run is refused by name; its tensors may share bytes. An open file
 * may be read from several threads.
 *
 * Writing is atomic: until the last step succeeded an older file of the same name stands as it was. */
#ifndef SESAME_SAFETENSORS_H
#define SESAME_SAFETENSORS_H

#include "sesame/err.h"

SES_BEGIN_DECLS

enum { SES_ENTRY_MAX_DIM = 8, SES_SAFETENSORS_MAX_HEADER = 100000000 };

typedef struct ses_safetensors ses_safetensors; /* an open file, or an open folder of shards */

typedef struct ses_tensor_entry {
    const char *name;
    ses_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t dim[SES_ENTRY_MAX_DIM];
    int64_t count;    /* of numbers */
    const void *data; /* may be unaligned: read it by ses_convert, or memcpy */
    size_t bytes;
    const char *file; /* its name without folder */
} ses_tensor_entry;

ses_safetensors *ses_safetensors_open(const char *path, ses_err *e); /* one file */
/* A folder with model.safetensors, or model.safetensors.index.json and its shards, or else
 * pytorch_model.bin, or its index and shards; or one file of either kind. */
ses_safetensors *ses_checkpoint_open(const char *dir, ses_err *e);
void ses_safetensors_free(ses_safetensors *s);

size_t ses_safetensors_count(const ses_safetensors *s);
/* By offset, a .bin's as its dict has them; shards in order. */
const ses_tensor_entry *ses_safetensors_at(const ses_safetensors *s, size_t i);
const ses_tensor_entry *ses_safetensors_find(const ses_safetensors *s,
                                             const char *name); /* NULL when absent */

/* Are a tensor's bytes pages of its file, or a copy? */
bool ses_safetensors_is_mapped(const ses_safetensors *s, const ses_tensor_entry *x);

/* The pairs of __metadata__. */
size_t ses_safetensors_meta_count(const ses_safetensors *s);
bool ses_safetensors_meta_at(const ses_safetensors *s, size_t i, const char **key, const char **value);

bool ses_tensor_entry_to_f32(const ses_tensor_entry *t, float *out, ses_err *e); /* count numbers */

/* Writer: declare all tensors, then write. Order of the calls does not matter: a file's tensors are
 * sorted as the reference library sorts them (wide dtypes first, then by name). */
typedef struct ses_safetensors_writer ses_safetensors_writer;

/* Puts bytes [offset, offset + bytes) of the tensor into out. */
typedef bool ses_tensor_source(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e);

ses_safetensors_writer *ses_safetensors_writer_new(ses_err *e);
void ses_safetensors_writer_free(ses_safetensors_writer *w);
/* data is borrowed until the file is written. */
bool ses_safetensors_writer_add(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                const int64_t *dim, const void *data, ses_err *e);
bool ses_safetensors_writer_add_source(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                       const int64_t *dim, ses_tensor_source *source, void *ctx, ses_err *e);
bool ses_safetensors_writer_add_meta(ses_safetensors_writer *w, const char *key, const char *value,
                                     ses_err *e);

/* One file. An existing one is refused unless overwrite. */
bool ses_safetensors_save(const ses_safetensors_writer *w, const char *path, bool overwrite, ses_err *e);
/* model.safetensors in dir, or, when the tensors take more than max_shard_bytes (0: never), shards
 * model-00001-of-0000N.safetensors and then the index. With overwrite, what an earlier save left in another
 * layout is removed once the new files stand. */
bool ses_checkpoint_save(const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                         bool overwrite, ses_err *e);

SES_END_DECLS

#endif
