/* Bump allocator: many small objects with one lifetime; mark and rewind for scratch memory.
 * Memory is freed by ses_arena_free; ses_arena_reset keeps it for reuse. A zeroed ses_arena is empty and
 * ready. One thread at a time. */
#ifndef SES_BASE_ARENA_H
#define SES_BASE_ARENA_H

#include "sesame/base.h"

typedef struct ses_block ses_block;

/* Source of blocks, if not the heap: a GPU's memory, for example. Blocks must be aligned to SES_ALIGN. */
typedef struct ses_allocator {
    void *(*alloc)(void *ctx, size_t size, ses_err *e);
    void (*free)(void *ctx, void *p);
    void *ctx;
} ses_allocator;

typedef struct ses_arena {
    ses_allocator allocator; /* zeroed: the heap */
    ses_block *head;         /* newest block */
    ses_block *free_blocks;  /* released by a rewind, for reuse */
    size_t used;             /* bytes used in head */
    size_t total;            /* bytes of all blocks, free_blocks included */
    size_t limit;            /* maximum of total; 0: no limit */
    size_t min_block;        /* minimum size of a block; 0: a default */
    size_t high_water;       /* maximum bytes used between two resets: size of the next first block */
    ses_block *pinned;       /* block with a range that a rewind kept; NULL: none */
    size_t pinned_from, pinned_to;
} ses_arena;

typedef struct ses_mark {
    ses_block *block;
    size_t used;
} ses_mark;

void *ses_arena_alloc(ses_arena *a, size_t size, ses_err *e); /* aligned to SES_ALIGN, not zeroed */
/* Zeroed, aligned to 16 bytes: for structs on the heap. */
void *ses_arena_array(ses_arena *a, size_t n, size_t size, ses_err *e);
char *ses_arena_strndup(ses_arena *a, const char *s, size_t n, ses_err *e);
ses_mark ses_arena_mark(const ses_arena *a);
void ses_arena_rewind(ses_arena *a, ses_mark m); /* frees everything allocated after m */
/* The same, but keeps `size` bytes at p until the next rewind to m or an earlier mark, or a reset. Returns
 * false and does nothing if these bytes are not in m's block or if that is not the newest block. */
bool ses_arena_rewind_except(ses_arena *a, ses_mark m, const void *p, size_t size);
bool ses_arena_is_single_block(const ses_arena *a); /* true for an empty arena too */
/* Empties it; several blocks are replaced by one on the next allocation. */
void ses_arena_reset(ses_arena *a);
void ses_arena_free(ses_arena *a); /* back to zero; the struct may be used again */

#endif
