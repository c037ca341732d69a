/* Bump allocator: many small objects, one lifetime. Mark and rewind for scratch.
 * Memory comes back from ses_arena_reset (kept for reuse) and ses_arena_free. One thread at a time. */
#ifndef SES_BASE_ARENA_H
#define SES_BASE_ARENA_H

#include "sesame/err.h"

typedef struct ses_block ses_block;

/* Where blocks come from when not from the heap: a GPU's memory, say. Must be SES_ALIGN aligned. */
typedef struct ses_allocator {
    void *(*alloc)(void *ctx, size_t size, ses_err *e);
    void (*free)(void *ctx, void *p);
    void *ctx;
} ses_allocator;

typedef struct ses_arena {
    ses_allocator allocator; /* zeroed: the heap */
    ses_block *head;         /* newest block */
    ses_block *free_blocks;  /* blocks a rewind gave up, to be used again */
    size_t used;             /* bytes taken in head */
    size_t total;            /* bytes of all blocks, spare ones too */
    size_t limit;            /* most bytes all blocks may have; 0: no limit */
    size_t min_block;        /* smallest block; 0: a default */
    size_t high_water;       /* of the first block: what was taken between two resets at most */
    ses_block *pinned;       /* a block, and its bytes that a rewind left alone; NULL: none */
    size_t pinned_from, pinned_to;
} ses_arena;

typedef struct ses_mark {
    ses_block *block;
    size_t used;
} ses_mark;

void *ses_arena_alloc(ses_arena *a, size_t size, ses_err *e); /* SES_ALIGN aligned, not zeroed */
/* Zeroed, 16-byte aligned: for structs on the heap. */
void *ses_arena_array(ses_arena *a, size_t n, size_t size, ses_err *e);
char *ses_arena_strndup(ses_arena *a, const char *s, size_t n, ses_err *e);
ses_mark ses_arena_mark(const ses_arena *a);
void ses_arena_rewind(ses_arena *a, ses_mark m); /* what came after m is gone */
/* The same but for `size` bytes at p, which stay until the next rewind to m or an earlier mark, or a reset;
 * false, and nothing is done, where they do not lie in m's block or it is not the newest. */
bool ses_arena_rewind_except(ses_arena *a, ses_mark m, const void *p, size_t size);
bool ses_arena_is_single_block(const ses_arena *a); /* has it one block at most? */
void ses_arena_reset(ses_arena *a);                 /* empty; blocks are merged so the next round needs one */
void ses_arena_free(ses_arena *a);                  /* back to zero; the struct may be used again */

#endif
