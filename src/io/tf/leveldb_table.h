/* Tables in LevelDB's format: sorted pairs of keys and values in one file. TensorFlow stores the index of
 * a checkpoint in one.
 *
 * The file is a sequence of blocks, each followed by a type byte (0: not compressed) and the masked
 * CRC-32C of both, and a footer of 48 bytes: the handles (offset and size as varints) of two index blocks,
 * padding, a magic number. The second index block lists the handles of the data blocks. A block has
 * entries {varint bytes shared with the previous key, varint bytes of its own, varint bytes of the value,
 * key, value}, then the offsets of entries that share nothing (u32 each) and their count (u32). */
#ifndef SES_IO_LEVELDB_TABLE_H
#define SES_IO_LEVELDB_TABLE_H

#include "sesame/base.h"

enum { SES_LEVELDB_FOOTER = 48, SES_LEVELDB_MAX_KEY = 4096 };

/* Gets a pair; both parts are valid during the call. False stops with an error. */
typedef bool ses_leveldb_visit(void *ctx, ses_string key, ses_string value, ses_err *e);

/* Visits all pairs of a table of n bytes in the order of the keys. Checks all checksums, that keys ascend
 * and that data blocks do not overlap. */
bool ses_leveldb_each(const void *table, size_t n, ses_leveldb_visit *visit, void *ctx, ses_err *e);

#endif
