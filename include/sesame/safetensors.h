/* Tensors in files: reads and writes safetensors, as one file or a folder of shards with an index; reads
 * PyTorch's .bin, TensorFlow's checkpoints of BERT, ALBERT, ELECTRA, XLNet, MobileBERT, GPT-2 and T5, with
 * transformers' tensor names, and HDF5 files with contiguous datasets of floats (ELMo).
 *
 * Reading maps the files into memory. The whole header is checked before any tensor is returned: sizes
 * against shapes and dtypes, offsets against the file, no gap, no overlap. The pickle in a .bin is read as
 * data: nothing in it is executed, and globals that are not on a list of known ones are refused by name.
 * Tensors of a .bin may share bytes.
 *
 * Ownership: an open file owns its entries and their data; both are valid until ses_safetensors_free. Data
 * is copied only if a .bin stores a tensor non-contiguously, or a TensorFlow checkpoint stores it transposed.
 * Threads: several threads may read one open file. A writer belongs to one thread.
 * Writing is atomic: an existing file stays unchanged until the new one is complete on the disk. */
#ifndef SESAME_SAFETENSORS_H
#define SESAME_SAFETENSORS_H

#include "sesame/base.h"

SES_BEGIN_DECLS

enum {
    SES_ENTRY_MAX_DIM = 8,
    SES_SAFETENSORS_MAX_HEADER = 100000000 /* bytes, as the safetensors library */
};

typedef struct ses_safetensors ses_safetensors; /* an open file, or an open folder of shards */

/* A tensor in a file. */
typedef struct ses_tensor_entry {
    const char *name;
    ses_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t dim[SES_ENTRY_MAX_DIM];
    int64_t count;    /* elements */
    const void *data; /* may be unaligned: read it with ses_convert or memcpy */
    size_t bytes;
    const char *file; /* file name without its folder */
} ses_tensor_entry;

/* ---- reading ---- */

/* Opens one safetensors file. NULL on failure. Free with ses_safetensors_free. */
ses_safetensors *ses_safetensors_open(const char *path, ses_err *e);
/* Opens the weights of a model folder: model.safetensors, else model.safetensors.index.json with its shards,
 * else pytorch_model.bin or its index with its shards, else model.sesame-int8 (a safetensors file of
 * ses_model_save with SES_I8) or its index with its shards, else a TensorFlow checkpoint of google-research
 * (NAME.index and NAME.data-*; its checksums are verified), or ELMo's original files (*options.json and
 * *.hdf5). `dir` may also be one safetensors, PyTorch or HDF5 file. */
ses_safetensors *ses_checkpoint_open(const char *dir, ses_err *e);
/* Frees s with all its entries. s may be NULL. */
void ses_safetensors_free(ses_safetensors *s);

/* Number of tensors. */
size_t ses_safetensors_count(const ses_safetensors *s);
/* Tensor i; NULL if i is out of range. Order: by offset, or by position in the dict of a .bin; shard after
 * shard. */
const ses_tensor_entry *ses_safetensors_at(const ses_safetensors *s, size_t i);
/* The tensor of this name; NULL if there is none. */
const ses_tensor_entry *ses_safetensors_find(const ses_safetensors *s, const char *name);
/* Whether the data of x is in the mapped file; false: it is a copy on the heap. */
bool ses_safetensors_is_mapped(const ses_safetensors *s, const ses_tensor_entry *x);

/* Number of pairs in __metadata__. */
size_t ses_safetensors_meta_count(const ses_safetensors *s);
/* Pair i of __metadata__, borrowed; false if i is out of range. */
bool ses_safetensors_meta_at(const ses_safetensors *s, size_t i, const char **key, const char **value);

/* Converts a tensor of any dtype to t->count floats at out. */
bool ses_tensor_entry_to_f32(const ses_tensor_entry *t, float *out, ses_err *e);

/* ---- writing ---- */

/* A writer collects tensors and metadata, then saves them. The order of the calls does not matter: tensors
 * are sorted as the safetensors library sorts them (wide dtypes first, then by name). */
typedef struct ses_safetensors_writer ses_safetensors_writer;

/* Callback that produces bytes [offset, offset + bytes) of a tensor. False and *e set: the save fails. */
typedef bool ses_tensor_source(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e);

/* An empty writer; NULL on failure. Free with ses_safetensors_writer_free. */
ses_safetensors_writer *ses_safetensors_writer_new(ses_err *e);
/* Frees the writer, not the data it borrowed. w may be NULL. */
void ses_safetensors_writer_free(ses_safetensors_writer *w);
/* Adds a tensor. name and dim are copied; data is borrowed until the file is saved. Fails if the name
 * exists. */
bool ses_safetensors_writer_add(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                const int64_t *dim, const void *data, ses_err *e);
/* Adds a tensor whose bytes are produced by a callback during the save, in order and in chunks. ctx is
 * borrowed. */
bool ses_safetensors_writer_add_source(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                       const int64_t *dim, ses_tensor_source *source, void *ctx, ses_err *e);
/* Adds a pair to __metadata__; both strings are copied. Fails if the key exists. */
bool ses_safetensors_writer_add_meta(ses_safetensors_writer *w, const char *key, const char *value,
                                     ses_err *e);

/* Saves one file. Fails if the file exists, unless overwrite. */
bool ses_safetensors_save(const ses_safetensors_writer *w, const char *path, bool overwrite, ses_err *e);
/* Saves model.safetensors in dir. If the tensors take more than max_shard_bytes (0: no limit), saves shards
 * model-00001-of-0000N.safetensors and then their index. If overwrite, files of an earlier save in another
 * layout are removed after the new files are complete. */
bool ses_checkpoint_save(const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                         bool overwrite, ses_err *e);

SES_END_DECLS

#endif
