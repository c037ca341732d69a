/* Bump allocator on a list of blocks. */
#include "arena.h"

#include "alloc.h"

#include <stdint.h>
#include <string.h>

enum { DEFAULT_MIN_BLOCK = 16 * 1024 };

struct ses_block {
    ses_block *prev;
    size_t size, used; /* used: valid once the block is not the newest */
    unsigned char *data;
};

static void push(ses_arena *a, ses_block *b)
{
    if (a->head) a->head->used = a->used;
    b->prev = a->head;
    a->head = b;
    a->used = 0;
}

/* Bytes in use if they were in one block. After a rewind the exact number is unknown: the bytes of all
 * blocks. */
static size_t used_bytes(const ses_arena *a)
{
    size_t sum = 0;
    if (a->free_blocks) return a->total;
    for (const ses_block *b = a->head; b; b = b->prev)
        sum += ((b == a->head ? a->used : b->used) + SES_ALIGN - 1) & ~(size_t)(SES_ALIGN - 1);
    return sum;
}

/* The first free block that is large enough, or NULL. */
static ses_block *reuse(ses_arena *a, size_t want)
{
    for (ses_block **at = &a->free_blocks; *at; at = &(*at)->prev)
        if ((*at)->size >= want) {
            ses_block *b = *at;
            *at = b->prev;
            return b;
        }
    return NULL;
}

/* Frees a list of blocks; returns their bytes. */
static size_t free_list(ses_arena *a, ses_block *b)
{
    size_t bytes = 0;
    while (b) {
        ses_block *prev = b->prev;
        bytes += b->size;
        if (a->allocator.free)
            a->allocator.free(a->allocator.ctx, b->data);
        else
            ses_free(b->data);
        ses_free(b);
        b = prev;
    }
    return bytes;
}

static bool over_limit(const ses_arena *a, size_t want)
{
    return a->limit && (want > a->limit || a->total > a->limit - want);
}

static bool grow(ses_arena *a, size_t want, ses_err *e)
{
    ses_block *reused = reuse(a, want);
    if (reused) {
        push(a, reused);
        return true;
    }
    size_t smallest = a->min_block ? a->min_block : DEFAULT_MIN_BLOCK,
           size = want > smallest ? want : smallest;
    if (!a->total && a->high_water > size) size = a->high_water;
    if (over_limit(a, want)) { /* the free blocks are all too small: release them */
        a->total -= free_list(a, a->free_blocks);
        a->free_blocks = NULL;
    }
    if (over_limit(a, want))
        return ses_fail(e, SES_ENOMEM, "arena limit of %zu bytes reached (%zu more requested)", a->limit,
                        want);
    if (a->limit && size > a->limit - a->total) size = want;
    ses_block *b = ses_alloc(sizeof *b, e);
    if (!b) return false;
    b->data = a->allocator.alloc ? a->allocator.alloc(a->allocator.ctx, size, e) : ses_alloc_aligned(size, e);
    if (!b->data) {
        ses_free(b);
        return false;
    }
    b->size = size;
    a->total += size;
    push(a, b);
    return true;
}

static void *bump(ses_arena *a, size_t size, size_t align, ses_err *e)
{
    size_t start = (a->used + align - 1) & ~(align - 1);
    if (a->head && a->head == a->pinned && start < a->pinned_to && start + size > a->pinned_from)
        start = (a->pinned_to + align - 1) & ~(align - 1);
    if (!a->head || size > a->head->size || start > a->head->size - size) {
        if (!grow(a, size, e)) return NULL;
        start = 0;
    }
    a->used = start + size;
    return a->head->data + start;
}

void *ses_arena_alloc(ses_arena *a, size_t size, ses_err *e)
{
    return bump(a, size ? size : 1, SES_ALIGN, e);
}

void *ses_arena_array(ses_arena *a, size_t n, size_t size, ses_err *e)
{
    size_t total;
    if (!ses_mul_size(n, size, &total)) {
        ses_fail(e, SES_ENOMEM, "out of memory (%zu x %zu bytes requested)", n, size);
        return NULL;
    }
    void *p = bump(a, total ? total : 1, 16, e);
    if (p) memset(p, 0, total);
    return p;
}

char *ses_arena_strndup(ses_arena *a, const char *s, size_t n, ses_err *e)
{
    size_t size;
    if (!ses_add_size(n, 1, &size)) {
        ses_fail(e, SES_ENOMEM, "out of memory (%zu bytes requested)", n);
        return NULL;
    }
    char *p = bump(a, size, 1, e);
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

/* After a pinned range: it was allocated before the mark. */
ses_mark ses_arena_mark(const ses_arena *a)
{
    bool below_pinned = a->head && a->head == a->pinned && a->used < a->pinned_to;
    return (ses_mark){ a->head, below_pinned ? a->pinned_to : a->used };
}

bool ses_arena_rewind_except(ses_arena *a, ses_mark m, const void *p, size_t size)
{
    ses_block *b = a->head;
    uintptr_t at = (uintptr_t)p - (uintptr_t)(b ? b->data : NULL);
    if (!b || b != m.block || at < m.used || at > b->size || size > b->size - at) return false;
    a->used = m.used;
    a->pinned = b, a->pinned_from = at, a->pinned_to = at + size;
    return true;
}

void ses_arena_rewind(ses_arena *a, ses_mark m)
{
    a->pinned = NULL;
    while (a->head != m.block) {
        ses_block *b = a->head;
        a->head = b->prev;
        b->prev = a->free_blocks;
        a->free_blocks = b;
    }
    a->used = m.used;
}

bool ses_arena_is_single_block(const ses_arena *a) { return !a->free_blocks && !(a->head && a->head->prev); }

void ses_arena_reset(ses_arena *a)
{
    if (!ses_arena_is_single_block(a)) { /* replace several blocks by one that holds everything */
        size_t all = used_bytes(a);
        if (all > a->high_water) a->high_water = all;
        ses_arena_free(a);
    }
    a->used = 0;
    a->pinned = NULL;
}

void ses_arena_free(ses_arena *a)
{
    free_list(a, a->head);
    free_list(a, a->free_blocks);
    a->head = a->free_blocks = a->pinned = NULL;
    a->used = a->total = 0;
}
