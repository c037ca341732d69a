/* Counting and shuffling of co-occurrences for GloVe. Frequent pairs are counted in a dense table, the others
 * in a buffer, which is sorted and written in chunks; the chunks and the table are then merged. */
#include "glove_records.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "glibc_random.h"

#include <math.h>
#include <string.h>

enum { MAX_CHUNKS = 1 << 14 };

typedef struct counter {
    int64_t max_product; /* largest product of two ranks in the dense table, exclusive */
    int64_t *row_start;  /* [words + 1]: table index of each row, from 1 as in the original */
    double *table;
    ses_record *buffer;
    size_t held, capacity, full;
    ses_record_file chunks;
    int64_t chunk_end[MAX_CHUNKS];
    int n_chunks;
} counter;

/* ---- counting ---- */

/* Sizes of table and buffer for a memory limit. */
static void size_buffers(counter *c, int window, double memory)
{
    double limit = 0.85 * memory * 1073741824 / sizeof(ses_record), n = 1e5;
    for (int i = 0; i < 10000 && fabs(limit - n * (log(n) + 0.1544313298)) > 1e-3; i++)
        n = limit / (log(n) + 0.1544313298);
    c->max_product = (int64_t)n;
    int64_t full = (int64_t)limit / 6 - 2 * (int64_t)window;
    c->full = full > 0 ? (size_t)full : 1;
}

static bool make_table(counter *c, int64_t words, ses_err *e)
{
    c->row_start = ses_alloc_array((size_t)words + 1, sizeof *c->row_start, e);
    if (!c->row_start) return false;
    c->row_start[0] = 1;
    for (int64_t a = 1; a <= words; a++) {
        int64_t columns = c->max_product / a;
        c->row_start[a] = c->row_start[a - 1] + (columns < words ? columns : words);
    }
    return (c->table = ses_alloc_array((size_t)c->row_start[words], sizeof *c->table, e)) != NULL;
}

static int by_words(const void *a, const void *b)
{
    const ses_record *x = a, *y = b;
    return x->word != y->word ? x->word - y->word : x->context - y->context;
}

/* Sorts the buffer, adds equal pairs and writes them as a chunk. */
static bool write_chunk(counter *c, ses_err *e)
{
    if (c->n_chunks == MAX_CHUNKS)
        return ses_fail(e, SES_EARG, "more than %d chunks of co-occurrences: give more --memory", MAX_CHUNKS);
    if (!ses_stable_sort(c->buffer, c->held, sizeof *c->buffer, by_words, e)) return false;
    size_t kept = 0;
    for (size_t i = 0; i < c->held; i++) {
        if (kept && !by_words(&c->buffer[kept - 1], &c->buffer[i]))
            c->buffer[kept - 1].value += c->buffer[i].value;
        else
            c->buffer[kept++] = c->buffer[i];
    }
    bool ok = ses_record_file_put(&c->chunks, c->buffer, kept, e);
    c->held = 0;
    c->chunk_end[c->n_chunks++] = c->chunks.n;
    return ok;
}

static bool add_pair(counter *c, int32_t a, int32_t b, double weight, ses_err *e)
{
    if (a < c->max_product / b) {
        c->table[c->row_start[a - 1] + b - 2] += weight;
        c->table[c->row_start[b - 1] + a - 2] += weight;
        return true;
    }
    if (!ses_array_reserve(&c->buffer, &c->capacity, c->held + 2, sizeof *c->buffer, e)) return false;
    c->buffer[c->held++] = (ses_record){ a, b, weight };
    c->buffer[c->held++] = (ses_record){ b, a, weight };
    return true;
}

static bool count_pairs(counter *c, const ses_glove_vocab *v, ses_glove_reader *r, int window, ses_err *e)
{
    int32_t *history = ses_alloc_array((size_t)window, sizeof *history, e);
    ses_glove_token token;
    int64_t position = 0, rank;
    bool ok = history != NULL;
    while (ok) {
        if (c->held >= c->full) ok = write_chunk(c, e);
        if (!ok || (token = ses_glove_read(r, e)) == SES_GLOVE_END) break;
        ok = token != SES_GLOVE_INVALID;
        if (token == SES_GLOVE_LINE_END) position = 0;
        if (token != SES_GLOVE_WORD || !ses_strmap_find(&v->rank, r->word, r->len, &rank)) continue;
        for (int64_t k = position - 1; ok && k >= 0 && k >= position - window; k--)
            ok = add_pair(c, history[k % window], (int32_t)rank, 1.0 / (double)(position - k), e);
        history[position++ % window] = (int32_t)rank;
    }
    ses_free(history);
    return ok && write_chunk(c, e);
}

/* The table as the last chunk; zeros are left out. */
static bool write_table(counter *c, int64_t words, ses_err *e)
{
    bool ok = true;
    for (int64_t x = 1; x <= words; x++)
        for (int64_t y = 1; ok && y <= c->row_start[x] - c->row_start[x - 1]; y++) {
            double value = c->table[c->row_start[x - 1] - 2 + y];
            if (value != 0)
                ok = ses_record_file_put(&c->chunks, &(ses_record){ (int32_t)x, (int32_t)y, value }, 1, e);
        }
    return ok && ses_record_file_flush(&c->chunks, e);
}

/* ---- merging ---- */

typedef struct entry {
    ses_record r;
    int source;
} entry;

/* The original's heap. Pairs that occur in several chunks are added in the order in which it yields them. */
static void heap_insert(entry *heap, entry x, int size)
{
    int j = size - 1;
    heap[j] = x;
    for (int p = (j - 1) / 2; by_words(&heap[p].r, &heap[j].r) > 0; p = (j - 1) / 2) {
        entry swap = heap[p];
        heap[p] = heap[j];
        heap[j] = swap;
        j = p;
    }
}

static void heap_remove(entry *heap, int size)
{
    int p = 0, j;
    heap[0] = heap[size - 1];
    while ((j = 2 * p + 1) < size - 1) {
        bool last = j == size - 2;
        if (!last && by_words(&heap[j].r, &heap[j + 1].r) >= 0) j++;
        if (by_words(&heap[p].r, &heap[j].r) <= 0) return;
        entry swap = heap[p];
        heap[p] = heap[j];
        heap[j] = swap;
        if (last) return;
        p = j;
    }
}

static bool merge(counter *c, int64_t table_start, ses_record_file *out, ses_err *e)
{
    int n = c->n_chunks + 1, size = n;
    entry *heap = ses_alloc_array((size_t)n, sizeof *heap, e), next = { 0 };
    ses_record_reader *from = ses_alloc_array((size_t)n, sizeof *from, e);
    ses_err failed = { 0 };
    ses_record sum = { 0 };
    bool ok = heap && from, first = true;
    for (int i = 0; ok && i < n; i++) { /* source 0 is the table */
        int64_t start = !i ? table_start : i == 1 ? 0 : c->chunk_end[i - 2];
        ok = ses_record_reader_open(&from[i], &c->chunks, start, i ? c->chunk_end[i - 1] : c->chunks.n, e);
        /* An empty chunk repeats the first record of the source before it, as in the original: with a small
         * text the most frequent pair counts twice. */
        if (ok) ses_record_reader_next(&from[i], &next.r, &failed);
        next.source = i;
        if (ok) heap_insert(heap, next, i + 1);
    }
    while (ok && size > 0 && failed.code == SES_OK) {
        entry top = heap[0];
        if (first) {
            sum = top.r;
        } else if (!by_words(&top.r, &sum)) {
            sum.value += top.r.value;
        } else {
            ok = ses_record_file_put(out, &sum, 1, e);
            sum = top.r;
        }
        first = false;
        heap_remove(heap, size);
        next.source = top.source;
        if (ses_record_reader_next(&from[top.source], &next.r, &failed))
            heap_insert(heap, next, size);
        else
            size--;
    }
    if (failed.code != SES_OK) ok = ses_fail(e, failed.code, "%s", failed.msg);
    ok = ok && ses_record_file_put(out, &sum, 1, e) && ses_record_file_flush(out, e);
    for (int i = 0; from && i < n; i++) ses_record_reader_free(&from[i]);
    ses_free(from);
    ses_free(heap);
    return ok;
}

bool ses_glove_cooccur(ses_record_file *out, const char *out_path, const ses_glove_vocab *v,
                       const ses_mmap *file, const char *path, int window, double memory, ses_err *e)
{
    counter *c = ses_alloc(sizeof *c, e);
    if (!c) return false;
    ses_glove_reader r = ses_glove_reader_of(file, path);
    size_buffers(c, window, memory);
    bool ok = ses_record_file_open(&c->chunks, out_path, e) && ses_record_file_open(out, out_path, e) &&
              make_table(c, (int64_t)v->n, e) && count_pairs(c, v, &r, window, e);
    int64_t table_start = c->chunks.n;
    ok = ok && write_table(c, (int64_t)v->n, e);
    if (ok && !c->chunks.n)
        ok = ses_fail(e, SES_EARG, "%s: no two words of the vocabulary occur in one line", path);
    ok = ok && merge(c, table_start, out, e);
    ses_record_file_free(&c->chunks);
    ses_free(c->row_start);
    ses_free(c->table);
    ses_free(c->buffer);
    ses_free(c);
    return ok;
}

/* ---- shuffling ---- */

static int64_t random_below(ses_glibc_random *g, int64_t n)
{
    int64_t all = ((int64_t)SES_GLIBC_RAND_MAX + 2) * SES_GLIBC_RAND_MAX, limit = all - all % n, x;
    do {
        int64_t high =
            ses_glibc_rand(g); /* a compiler may draw the two in any order; gcc draws this one first */
        x = ((int64_t)SES_GLIBC_RAND_MAX + 1) * high + ses_glibc_rand(g);
    } while (x >= limit);
    return x % n;
}

static void shuffle(ses_record *r, int64_t n, ses_glibc_random *g)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = random_below(g, i + 1);
        ses_record swap = r[j];
        r[j] = r[i];
        r[i] = swap;
    }
}

typedef struct shuffler {
    ses_glibc_random random;
    int64_t size; /* records in the buffer */
    ses_record *buffer;
    ses_record_file chunks;
    int64_t chunk_end[MAX_CHUNKS];
    int n_chunks;
} shuffler;

static bool shuffle_chunks(shuffler *s, const ses_record_file *in, ses_err *e)
{
    ses_record_reader from = { 0 };
    ses_err failed = { 0 };
    bool more = true, ok = ses_record_reader_open(&from, in, 0, in->n, e);
    while (ok && more) {
        int64_t n = 0;
        if (s->n_chunks == MAX_CHUNKS)
            ok = ses_fail(e, SES_EARG, "more than %d chunks to shuffle: give more --memory", MAX_CHUNKS);
        while (ok && n < s->size && (more = ses_record_reader_next(&from, &s->buffer[n], &failed))) n++;
        if (!ok) break;
        shuffle(s->buffer, n, &s->random);
        ok = failed.code == SES_OK && ses_record_file_put(&s->chunks, s->buffer, (size_t)n, e);
        s->chunk_end[s->n_chunks++] = s->chunks.n;
    }
    if (failed.code != SES_OK) ses_fail(e, failed.code, "%s", failed.msg);
    ses_record_reader_free(&from);
    return ok && ses_record_file_flush(&s->chunks, e);
}

/* Takes a part of every chunk, shuffles the parts together, and so on. */
static bool merge_chunks(shuffler *s, ses_record_file *out, ses_err *e)
{
    ses_record_reader *from = ses_alloc_array((size_t)s->n_chunks, sizeof *from, e);
    ses_err failed = { 0 };
    int64_t n = 1;
    bool ok = from != NULL;
    for (int i = 0; ok && i < s->n_chunks; i++)
        ok = ses_record_reader_open(&from[i], &s->chunks, i ? s->chunk_end[i - 1] : 0, s->chunk_end[i], e);
    if (ok && s->size < s->n_chunks)
        ok = ses_fail(e, SES_EARG, "%d chunks to shuffle in a buffer of %lld records: give more --memory",
                      s->n_chunks, (long long)s->size);
    while (ok && n) {
        n = 0;
        for (int i = 0; i < s->n_chunks; i++)
            for (int64_t k = 0; k < s->size / s->n_chunks; k++)
                if (ses_record_reader_next(&from[i], &s->buffer[n], &failed))
                    n++;
                else
                    break;
        shuffle(s->buffer, n, &s->random);
        ok = failed.code == SES_OK && ses_record_file_put(out, s->buffer, (size_t)n, e);
    }
    if (failed.code != SES_OK) ses_fail(e, failed.code, "%s", failed.msg);
    for (int i = 0; from && i < s->n_chunks; i++) ses_record_reader_free(&from[i]);
    ses_free(from);
    return ok && ses_record_file_flush(out, e);
}

bool ses_glove_shuffle(ses_record_file *out, const char *out_path, const ses_record_file *in, uint32_t seed,
                       double memory, ses_err *e)
{
    shuffler *s = ses_alloc(sizeof *s, e);
    if (!s) return false;
    s->random = ses_glibc_random_of(seed);
    s->size = (int64_t)(0.95 * memory * 1073741824 / sizeof(ses_record));
    int64_t needed = s->size < in->n ? s->size : in->n;
    s->buffer = ses_alloc_array((size_t)needed, sizeof *s->buffer, e);
    bool ok = s->buffer && ses_record_file_open(&s->chunks, out_path, e) &&
              ses_record_file_open(out, out_path, e) && shuffle_chunks(s, in, e) && merge_chunks(s, out, e);
    ses_record_file_free(&s->chunks);
    ses_free(s->buffer);
    ses_free(s);
    return ok;
}
