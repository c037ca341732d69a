/* TensorFlow checkpoints (tensor bundles): PREFIX.index lists the tensors, PREFIX.data-00000-of-00002 and
 * so on hold their bytes.
 *
 * The index is a LevelDB table of protocol buffers. Key "" is the header {1 number of shards, 2
 * endianness, 3 version}; the other keys are tensor names, with {1 dtype, 2 shape {2 axis {1 size}}, 3
 * shard, 4 offset, 5 size, 6 masked CRC-32C of the bytes, 7 slices of a partitioned tensor}. A parsed
 * index owns its tensors. */
#ifndef SES_IO_TF_CHECKPOINT_H
#define SES_IO_TF_CHECKPOINT_H

#include "base/arena.h"
#include "base/strmap.h"
#include "sesame/safetensors.h"

enum { SES_TF_MAX_SHARDS = 100000, SES_TF_MAX_INDEX = 1 << 28 };

typedef struct ses_tf_tensor {
    const char *name;
    ses_dtype dtype;
    int rank;
    int64_t dim[SES_ENTRY_MAX_DIM];
    int64_t count; /* elements */
    int64_t shard;
    uint64_t offset, bytes;
    uint32_t crc; /* masked */
} ses_tf_tensor;

typedef struct ses_tf_index {
    ses_tf_tensor *tensor; /* sorted by name */
    size_t n, cap;
    ses_strmap names;
    int64_t shards; /* 0: no header yet */
    ses_arena mem;  /* names */
} ses_tf_index;

/* Parses an index of n bytes. Free it also after a failure. */
bool ses_tf_index_parse(ses_tf_index *x, const void *bytes, size_t n, ses_err *e);
void ses_tf_index_free(ses_tf_index *x);

/* The tensor of this name; NULL: none. */
const ses_tf_tensor *ses_tf_find(const ses_tf_index *x, const char *name);

/* Fails if tensors of the shard overlap, reach past its n bytes or differ from their checksums. file: the
 * name of the shard, for messages. */
bool ses_tf_shard_check(const ses_tf_index *x, int64_t shard, const void *bytes, size_t n, ses_err *e);

#endif
