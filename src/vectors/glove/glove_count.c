/* Counting of co-occurrences: blocks of text to hash tables, tables to sorted runs, runs to tiles of training
 * pairs. */
#define _POSIX_C_SOURCE 200809L
#include "glove_count.h"

#include "base/alloc.h"
#include "base/file.h"
#include "pair_count.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* UNIT represents a weight of 1. It is the least common multiple of 1 .. 22: 1 / distance is exact up to
 * distance 22, and rounded to 9 digits above. BLOCK: words of the text that a thread takes at a time. */
enum { UNIT = 232792560, BLOCK = 1 << 16, MAX_WINDOW = 1 << 12 };

/* A sorted run: pairs of tile t are the numbers start + first[t] .. start + first[t + 1] - 1 of the file. */
typedef struct run {
    int64_t start;
    int64_t *first; /* [tiles + 1] */
} run;

typedef struct counter {
    const int32_t *id;
    int64_t n, n_tiles;
    const ses_glove_tiles *tiles;
    const ses_glove_count_options *o;
    uint64_t weight[MAX_WINDOW + 1]; /* weight of a pair at each distance */
    ses_pair_table *table;           /* [workers] */
    int workers;
    int fd; /* file of the runs */
    atomic_llong next_block, words;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards everything below */
    run *run;
    size_t n_runs, capacity;
    int64_t runs_end; /* pairs in the file of the runs */
    ses_err err;
    ses_glove_pairs *out;
} counter;

/* ---- files ---- */

static bool put_at(int fd, const void *p, size_t n, int64_t at, const char *beside, ses_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t part = pwrite(fd, (const char *)p + done, n - done, (off_t)at + (off_t)done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0)
            return ses_fail_write(beside, part < 0 ? errno : 0, e) || ses_wrap(e, "file of co-occurrences");
        done += (size_t)part;
    }
    return true;
}

static bool get_at(int fd, void *p, size_t n, int64_t at, const char *beside, ses_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t part = pread(fd, (char *)p + done, n - done, (off_t)at + (off_t)done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0)
            return ses_fail(e, SES_EIO, "temporary file of co-occurrences beside %s: cannot be read: %s",
                            beside, part < 0 ? strerror(errno) : "it is too short");
        done += (size_t)part;
    }
    return true;
}

static void fail_all(counter *c, const ses_err *e)
{
    pthread_mutex_lock(&c->lock);
    if (c->err.code == SES_OK) c->err = *e;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->stop, true);
}

/* ---- runs ---- */

/* Moves the pairs of a table to its front, with their keys; a symmetric pair becomes two. At most half of the
 * slots are in use, so there is room for both. */
static size_t take_pairs(const counter *c, ses_pair_table *t)
{
    const ses_glove_tiles *tiles = c->tiles;
    size_t used = 0, n;
    for (size_t i = 0; i < t->slots; i++)
        if (t->slot[i].key) t->slot[used++] = t->slot[i];
    n = used;
    for (size_t i = 0; i < used; i++) {
        ses_pair_count *p = &t->slot[i];
        int64_t a = ses_glove_row(tiles, (int64_t)((p->key - 1) >> 32)),
                b = ses_glove_row(tiles, (int64_t)((p->key - 1) & 0xffffffff));
        p->key = ses_glove_key(tiles, a, b);
        if (!c->o->symmetric) continue;
        if (a == b)
            p->sum *= 2;
        else
            t->slot[n++] = (ses_pair_count){ ses_glove_key(tiles, b, a), p->sum };
    }
    return n;
}

static void index_tiles(const counter *c, const ses_pair_count *p, size_t n, int64_t *first)
{
    for (size_t i = 0; i < n; i++) first[ses_glove_key_tile(c->tiles, p[i].key) + 1]++;
    for (int64_t t = 0; t < c->n_tiles; t++) first[t + 1] += first[t];
}

static bool write_run(counter *c, ses_pair_table *t, ses_err *e)
{
    if (!t->used) return true;
    size_t n = take_pairs(c, t);
    run r = { .first = ses_alloc_array((size_t)c->n_tiles + 1, sizeof *r.first, e) };
    if (!r.first) return false;
    ses_pair_sort(t->slot, n, ses_glove_key_bits(c->tiles));
    index_tiles(c, t->slot, n, r.first);
    pthread_mutex_lock(&c->lock);
    bool ok = ses_array_reserve(&c->run, &c->capacity, c->n_runs + 1, sizeof *c->run, e);
    if (ok) {
        r.start = c->runs_end;
        c->runs_end += (int64_t)n;
        c->run[c->n_runs++] = r;
    }
    pthread_mutex_unlock(&c->lock);
    if (!ok) ses_free(r.first);
    ok = ok &&
         put_at(c->fd, t->slot, n * sizeof *t->slot, r.start * (int64_t)sizeof *t->slot, c->o->beside, e);
    memset(t->slot, 0, n * sizeof *t->slot);
    memset(t->slot + t->used, 0, (t->slots - t->used) * sizeof *t->slot);
    t->used = 0;
    return ok;
}

/* ---- counting ---- */

/* Keys of one word with the words before it, prefetched. */
typedef struct word_keys {
    uint64_t key[MAX_WINDOW];
    size_t slot[MAX_WINDOW];
    int64_t n;
} word_keys;

static void find_keys(const counter *c, const ses_pair_table *t, int64_t i, word_keys *w)
{
    uint64_t b = (uint64_t)c->id[i];
    w->n = 0;
    for (int64_t k = i - 1; k >= 0 && i - k <= c->o->window && c->id[k] >= 0; k--) {
        uint64_t a = (uint64_t)c->id[k], key = (c->o->symmetric && b < a ? b << 32 | a : a << 32 | b) + 1;
        w->key[w->n] = key;
        w->slot[w->n] = ses_pair_slot(t, key);
        __builtin_prefetch(&t->slot[w->slot[w->n++]], 1);
    }
}

static bool count_block(counter *c, ses_pair_table *t, word_keys *w, int64_t from, ses_err *e)
{
    int64_t end = c->n - from < BLOCK ? c->n : from + BLOCK, words = 0;
    for (int64_t i = from; i < end; i++) {
        bool full;
        if (c->id[i] < 0) continue;
        if (!ses_pair_table_reserve(t, (size_t)c->o->window, &full, e)) return false;
        if (full && !write_run(c, t, e)) return false;
        find_keys(c, t, i, w);
        for (int64_t k = 0; k < w->n; k++) ses_pair_table_add(t, w->key[k], w->slot[k], c->weight[k + 1]);
        words++;
    }
    atomic_fetch_add(&c->words, words);
    return true;
}

static void count_worker(void *ctx, int64_t worker, void *scratch)
{
    counter *c = ctx;
    ses_err e = { 0 };
    bool ok = true;
    while (ok && !atomic_load(&c->stop)) {
        int64_t from = atomic_fetch_add(&c->next_block, 1) * BLOCK;
        if (from >= c->n) break;
        ok = count_block(c, &c->table[worker], scratch, from, &e);
        if (ok && c->o->progress && !worker && !c->o->progress(c->o->ctx, atomic_load(&c->words)))
            ok = ses_fail(&e, SES_EIO, "interrupted; nothing was written");
    }
    ok = ok && (atomic_load(&c->stop) || write_run(c, &c->table[worker], &e));
    ses_pair_table_free(&c->table[worker]);
    if (!ok) fail_all(c, &e);
}

static bool count_text(counter *c, ses_thread_pool *pool, ses_err *e)
{
    size_t memory = c->o->memory < SES_GLOVE_LEAST_MEMORY ? SES_GLOVE_LEAST_MEMORY : c->o->memory,
           each = memory / (size_t)c->workers, least = 16 * (size_t)c->o->window * sizeof(ses_pair_count);
    bool ok = (c->table = ses_alloc_array((size_t)c->workers, sizeof *c->table, e)) &&
              (c->fd = ses_file_unnamed(c->o->beside, e)) >= 0;
    for (int i = 0; ok && i < c->workers; i++)
        ok = ses_pair_table_init(&c->table[i], each < least ? least : each, e);
    if (ok) ses_parallel_for(pool, c->workers, count_worker, c);
    for (int i = 0; c->table && i < c->workers; i++) ses_pair_table_free(&c->table[i]);
    if (ok && c->err.code != SES_OK) *e = c->err;
    return ok && c->err.code == SES_OK;
}

/* ---- tiles ---- */

/* A count and a training pair have the same size: the pairs are written over the counts. */
static void make_pairs(const counter *c, void *at, size_t n)
{
    _Static_assert(sizeof(ses_pair_count) == sizeof(ses_glove_pair), "converted in place");
    for (size_t i = 0; i < n; i++) {
        ses_pair_count from;
        ses_glove_pair to;
        memcpy(&from, (char *)at + i * sizeof from, sizeof from);
        double x = (double)from.sum / UNIT;
        ses_glove_key_rows(c->tiles, from.key, &to.word, &to.context);
        to.log_count = (float)log(x);
        to.weight = x > c->o->x_max ? 1 : (float)pow(x / c->o->x_max, c->o->alpha);
        memcpy((char *)at + i * sizeof to, &to, sizeof to);
    }
}

static bool merge_tile(counter *c, int64_t tile, ses_err *e)
{
    ses_glove_pairs *out = c->out;
    size_t n = 0, all = 0, size = sizeof(ses_pair_count);
    for (size_t i = 0; i < c->n_runs; i++) all += (size_t)(c->run[i].first[tile + 1] - c->run[i].first[tile]);
    ses_pair_count *p = ses_alloc_array(all, size, e);
    bool ok = p != NULL;
    for (size_t i = 0; ok && i < c->n_runs; i++) {
        const run *r = &c->run[i];
        size_t part = (size_t)(r->first[tile + 1] - r->first[tile]);
        ok = get_at(c->fd, p + n, part * size, (r->start + r->first[tile]) * (int64_t)size, c->o->beside, e);
        n += part;
    }
    if (ok) {
        ses_pair_sort(p, n, 2 * c->tiles->bits);
        n = ses_pair_unite(p, n);
        make_pairs(c, p, n);
        out->count[tile] = (int64_t)n;
        ok = put_at(out->fd - 1, p, n * size, out->start[tile] * (int64_t)size, c->o->beside, e);
    }
    ses_free(p);
    return ok;
}

static void merge_chunk(void *ctx, int64_t tile, void *scratch)
{
    counter *c = ctx;
    ses_err e = { 0 };
    (void)scratch;
    if (!atomic_load(&c->stop) && !merge_tile(c, tile, &e)) fail_all(c, &e);
}

/* Tiles get as much of the file as their runs have, although equal pairs of several runs become one. */
static bool merge_runs(counter *c, ses_thread_pool *pool, ses_err *e)
{
    ses_glove_pairs *out = c->out;
    int64_t at = 0;
    out->start = ses_alloc_array((size_t)c->n_tiles, sizeof *out->start, e);
    out->count = ses_alloc_array((size_t)c->n_tiles, sizeof *out->count, e);
    if (!out->start || !out->count || (out->fd = ses_file_unnamed(c->o->beside, e) + 1) <= 0) return false;
    for (int64_t t = 0; t < c->n_tiles; t++) {
        out->start[t] = at;
        for (size_t i = 0; i < c->n_runs; i++) at += c->run[i].first[t + 1] - c->run[i].first[t];
    }
    ses_parallel_for(pool, c->n_tiles, merge_chunk, c);
    if (c->err.code != SES_OK) {
        *e = c->err;
        return false;
    }
    for (int64_t t = 0; t < c->n_tiles; t++) out->n += out->count[t];
    return out->n > 0 ||
           ses_fail(e, SES_EARG, "no two words of the vocabulary occur in one line within the window");
}

/* ---- interface ---- */

bool ses_glove_count_pairs(ses_glove_pairs *out, const int32_t *id, int64_t n, const ses_glove_tiles *tiles,
                           const ses_glove_count_options *o, ses_thread_pool *pool, ses_err *e)
{
    _Static_assert(sizeof(word_keys) <= SES_SCRATCH_BYTES, "word_keys are in the scratch memory");
    if (o->window < 1 || o->window > MAX_WINDOW)
        return ses_fail(e, SES_EUSAGE, "a window of %lld words: expected 1 to %d", (long long)o->window,
                        MAX_WINDOW);
    counter *c = ses_alloc(sizeof *c, e);
    if (!c) return false;
    *out = (ses_glove_pairs){ .tiles = *tiles, .beside = o->beside };
    c->id = id, c->n = n, c->tiles = tiles, c->o = o, c->out = out, c->fd = -1;
    c->n_tiles = tiles->groups * tiles->groups;
    c->workers = ses_thread_pool_size(pool);
    for (int d = 1; d <= MAX_WINDOW; d++) c->weight[d] = (uint64_t)((UNIT + d / 2) / d);
    pthread_mutex_init(&c->lock, NULL);
    bool ok = count_text(c, pool, e) && merge_runs(c, pool, e);
    for (size_t i = 0; i < c->n_runs; i++) ses_free(c->run[i].first);
    if (c->fd >= 0) close(c->fd);
    pthread_mutex_destroy(&c->lock);
    ses_free(c->run);
    ses_free(c->table);
    ses_free(c);
    return ok;
}

bool ses_glove_pairs_read(const ses_glove_pairs *p, int64_t at, int64_t n, ses_glove_pair *to, ses_err *e)
{
    return get_at(p->fd - 1, to, (size_t)n * sizeof *to, at * (int64_t)sizeof *to, p->beside, e);
}

void ses_glove_pairs_free(ses_glove_pairs *p)
{
    if (p->fd > 0) close(p->fd - 1);
    ses_free(p->start);
    ses_free(p->count);
    *p = (ses_glove_pairs){ 0 };
}
