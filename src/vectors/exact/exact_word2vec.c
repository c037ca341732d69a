/* word2vec.c, one thread, bit for bit, with its deviations from a textbook version:
 * - Words have at most 98 bytes; '\r' is dropped; a NUL ends a word; a last word without '\n' is not read.
 * - "</s>" is word 0 whatever its count, and ends sentences.
 * - Sentences end after 1,000 words. Words that are unknown or subsampled shrink the window.
 * - The sigmoid is a table with the integer scale 1000 / 6 / 2 = 83. Beyond 6, negative sampling uses 0 or
 *   1, and hierarchical softmax skips the node.
 * - The learning rate changes only after more than 10,000 words, never below 1/10,000 of its start.
 * - An empty line spends a random number. */
#include "exact.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/strmap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 98, MAX_SENTENCE = 1000, MAX_CODE = 40, TABLE = 100000000, MAX_DIM = 1 << 16 };
enum { EXP_TABLE = 1000, MAX_EXP = 6, EXP_SCALE = EXP_TABLE / MAX_EXP / 2 };
enum { RATE_EVERY = 10000, MAX_NEGATIVE = 1000 };
#define MAX_TYPES 21000000 /* above this, rare words are dropped while counting */

enum { SIZE, WINDOW, SAMPLE, HS, NEGATIVE, CBOW, ITER, MIN_COUNT, ALPHA, N_SETTINGS };
static const ses_exact_setting setting[N_SETTINGS] = {
    [SIZE] = { "size", "100", SES_EXACT_INTEGER },
    [WINDOW] = { "window", "5", SES_EXACT_INTEGER },
    [SAMPLE] = { "sample", "1e-3", SES_EXACT_REAL },
    [HS] = { "hs", "0", SES_EXACT_INTEGER },
    [NEGATIVE] = { "negative", "5", SES_EXACT_INTEGER },
    [CBOW] = { "cbow", "1", SES_EXACT_INTEGER },
    [ITER] = { "iter", "5", SES_EXACT_INTEGER },
    [MIN_COUNT] = { "min-count", "5", SES_EXACT_INTEGER },
    [ALPHA] = { "alpha", NULL, SES_EXACT_REAL },
};

typedef struct word {
    const char *text;
    int64_t count;
    uint32_t len;
} word;

/* The path to a word in the Huffman tree. */
typedef struct path {
    uint8_t len, code[MAX_CODE];
    int32_t point[MAX_CODE];
} path;

typedef struct reader {
    const unsigned char *at, *end;
    bool ended; /* a read hit the end of the file, as feof of the original */
} reader;

typedef struct trainer {
    ses_exact_job *job;
    ses_mmap file;
    ses_arena text;
    ses_strmap index;
    word *vocab;
    size_t n, cap;
    int64_t train_words, done_words;
    int dim, window, negative, iterations;
    bool cbow, hs, diverged;
    float sample, alpha, first_alpha, sigmoid[EXP_TABLE];
    path *tree;
    int64_t *table_end; /* [n]: the sampling table holds word i up to here, exclusive */
    int32_t *table_at;  /* word at every TABLE_STEP-th entry of the table */
    float *in, *out_hs, *out_neg, *hidden, *error;
    uint64_t random;
    int32_t sentence[MAX_SENTENCE];
    int length;
} trainer;

/* ---- words ---- */

/* Reads a word into out [MAX_WORD + 1]; its length. "</s>" for the end of a line. */
static size_t read_word(reader *r, char *out)
{
    size_t n = 0;
    while (!r->ended) {
        if (r->at == r->end) {
            r->ended = true;
            break;
        }
        unsigned char c = *r->at++;
        if (c == '\r') continue;
        if (c == ' ' || c == '\t' || c == '\n') {
            if (n) {
                if (c == '\n') r->at--;
                break;
            }
            if (c == '\n') {
                memcpy(out, "</s>", 5);
                return 4;
            }
            continue;
        }
        out[n] = (char)c;
        if (n < MAX_WORD) n++;
    }
    out[n] = 0;
    return strlen(out);
}

static word *add_word(trainer *t, const char *s, size_t n, bool *fresh, ses_err *e)
{
    int64_t *at = NULL, known;
    *fresh = !ses_strmap_find(&t->index, s, n, &known);
    if (!*fresh) return &t->vocab[known];
    char *copy = ses_arena_strndup(&t->text, s, n, e);
    if (!copy || !ses_array_reserve(&t->vocab, &t->cap, t->n + 1, sizeof *t->vocab, e)) return NULL;
    at = ses_strmap_insert(&t->index, copy, n, (int64_t)t->n, fresh, e);
    if (!at) return NULL;
    t->vocab[t->n] = (word){ copy, 0, (uint32_t)n };
    return &t->vocab[t->n++];
}

static bool index_words(trainer *t, ses_err *e)
{
    bool fresh;
    ses_strmap_free(&t->index);
    for (size_t i = 0; i < t->n; i++)
        if (!ses_strmap_insert(&t->index, t->vocab[i].text, t->vocab[i].len, (int64_t)i, &fresh, e))
            return false;
    return true;
}

static bool drop_rare_words(trainer *t, int64_t *least, ses_err *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->vocab[i].count > *least) t->vocab[kept++] = t->vocab[i];
    t->n = kept;
    ++*least;
    return index_words(t, e);
}

static int by_falling_count(const void *a, const void *b)
{
    int64_t x = ((const word *)a)->count, y = ((const word *)b)->count;
    return (x < y) - (x > y);
}

static bool count_words(trainer *t, ses_err *e)
{
    char s[MAX_WORD + 2];
    int64_t least = 1;
    bool fresh;
    reader r = { t->file.data, t->file.data + t->file.size, false };
    if (!add_word(t, "</s>", 4, &fresh, e)) return false;
    for (;;) {
        size_t n = read_word(&r, s);
        if (r.ended) break;
        word *w = add_word(t, s, n, &fresh, e);
        if (!w) return false;
        w->count++;
        if (t->n > MAX_TYPES && !drop_rare_words(t, &least, e)) return false;
    }
    if (!ses_stable_sort(t->vocab + 1, t->n - 1, sizeof *t->vocab, by_falling_count, e)) return false;
    size_t kept = 1;
    while (kept < t->n && t->vocab[kept].count >= (int64_t)t->job->value[MIN_COUNT]) kept++;
    t->n = kept;
    for (size_t i = 0; i < t->n; i++) t->train_words += t->vocab[i].count;
    if (t->n < 2)
        return ses_fail(e, SES_EARG, "%s: no word occurs at least %g times (--min-count)", t->job->corpus,
                        t->job->value[MIN_COUNT]);
    return index_words(t, e);
}

/* ---- tables ---- */

enum { TABLE_STEP = 4096 };

/* The table of 1e8 entries in which each word has a share of count^0.75, as the index where each word
 * ends. */
static bool make_sampling_table(trainer *t, ses_err *e)
{
    double total = 0, share;
    int64_t at = 0;
    t->table_end = ses_alloc_array(t->n, sizeof *t->table_end, e);
    t->table_at = ses_alloc_array(TABLE / TABLE_STEP + 2, sizeof *t->table_at, e);
    if (!t->table_end || !t->table_at) return false;
    for (size_t i = 0; i < t->n; i++) total += pow((double)t->vocab[i].count, 0.75);
    share = pow((double)t->vocab[0].count, 0.75) / total;
    for (size_t i = 0; i + 1 < t->n && at < TABLE; i++) { /* entry `at` is the first of word i */
        int64_t last = (int64_t)(share * TABLE) - 2;
        if (last < at) last = at;
        while (last < TABLE && !((double)last / TABLE > share)) last++;
        t->table_end[i] = at = last + 1;
        share += pow((double)t->vocab[i + 1].count, 0.75) / total;
    }
    for (size_t i = 0; i < t->n; i++)
        if (!t->table_end[i] || t->table_end[i] > TABLE) t->table_end[i] = TABLE;
    t->table_end[t->n - 1] = TABLE;
    size_t word_at = 0;
    for (int64_t i = 0; i <= TABLE / TABLE_STEP; i++) {
        while (word_at + 1 < t->n && t->table_end[word_at] <= i * TABLE_STEP) word_at++;
        t->table_at[i] = (int32_t)word_at;
    }
    return true;
}

static int32_t sample_word(const trainer *t, int64_t entry)
{
    int32_t i = t->table_at[entry / TABLE_STEP];
    while (t->table_end[i] <= entry) i++;
    return i;
}

/* Joins the two smallest nodes until one is left; of equal ones, the inner node comes first. */
static bool make_tree(trainer *t, ses_err *e)
{
    size_t n = t->n, inner = n;
    int64_t *count = ses_alloc_array(2 * n + 1, sizeof *count, e), leaf = (int64_t)n - 1;
    uint32_t *parent = ses_alloc_array(2 * n + 1, sizeof *parent, e);
    uint8_t *bit = ses_alloc_array(2 * n + 1, 1, e);
    bool ok = count && parent && bit && (t->tree = ses_alloc_array(n, sizeof *t->tree, e));
    for (size_t i = 0; ok && i < 2 * n; i++) count[i] = i < n ? t->vocab[i].count : (int64_t)1e15;
    for (size_t made = 0; ok && made + 1 < n; made++) {
        size_t two[2];
        for (int k = 0; k < 2; k++)
            two[k] = leaf >= 0 && count[leaf] < count[inner] ? (size_t)leaf-- : inner++;
        count[n + made] = count[two[0]] + count[two[1]];
        parent[two[0]] = parent[two[1]] = (uint32_t)(n + made);
        bit[two[1]] = 1;
    }
    for (size_t i = 0; ok && i < n; i++) {
        path *p = &t->tree[i];
        size_t node[MAX_CODE], len = 0;
        for (size_t b = i; b != 2 * n - 2; b = parent[b]) {
            if (len == MAX_CODE) {
                ok = ses_fail(e, SES_EUNSUPPORTED, "%s: a Huffman code longer than %d bits", t->job->corpus,
                              MAX_CODE);
                break;
            }
            node[len++] = b;
        }
        p->len = (uint8_t)len;
        p->point[0] = (int32_t)n - 2;
        for (size_t b = 0; ok && b < len; b++) {
            p->code[len - b - 1] = bit[node[b]];
            if (b) p->point[len - b] = (int32_t)(node[b] - n);
        }
    }
    ses_free(count);
    ses_free(parent);
    ses_free(bit);
    return ok;
}

static uint64_t next_random(uint64_t r) { return r * 25214903917u + 11; }

static bool make_weights(trainer *t, ses_err *e)
{
    size_t dim = (size_t)t->dim, all;
    uint64_t r = 1;
    if (!ses_mul_size(t->n, dim, &all)) return ses_fail(e, SES_ENOMEM, "%zu x %zu weights", t->n, dim);
    t->in = ses_alloc_huge(all, sizeof *t->in, e);
    t->hidden = ses_alloc_array(dim, sizeof *t->hidden, e);
    t->error = ses_alloc_array(dim, sizeof *t->error, e);
    if (t->hs) t->out_hs = ses_alloc_huge(all, sizeof *t->out_hs, e);
    if (t->negative) t->out_neg = ses_alloc_huge(all, sizeof *t->out_neg, e);
    if (!t->in || !t->hidden || !t->error || (t->hs && !t->out_hs) || (t->negative && !t->out_neg))
        return false;
    for (size_t i = 0; i < all; i++) {
        r = next_random(r);
        t->in[i] = (float)((((float)(r & 0xFFFF) / 65536.0f) - 0.5) / t->dim);
    }
    for (int i = 0; i < EXP_TABLE; i++) {
        float x = (float)exp(((float)i / 1000.0f * 2 - 1) * MAX_EXP);
        t->sigmoid[i] = x / (x + 1);
    }
    return true;
}

/* ---- steps ---- */

/* dot[k] = x . row[k]: each sum runs in the order of the columns, several at once to hide its latency. */
static void dot_rows(const float *x, const float *const *row, int n, int dim, float *dot)
{
    int k = 0;
    for (; k + 4 <= n; k += 4) {
        const float *a = row[k], *b = row[k + 1], *c = row[k + 2], *d = row[k + 3];
        float sa = 0, sb = 0, sc = 0, sd = 0;
        for (int i = 0; i < dim; i++) {
            float v = x[i];
            sa += v * a[i];
            sb += v * b[i];
            sc += v * c[i];
            sd += v * d[i];
        }
        dot[k] = sa, dot[k + 1] = sb, dot[k + 2] = sc, dot[k + 3] = sd;
    }
    for (; k < n; k++) {
        float s = 0;
        for (int i = 0; i < dim; i++) s += x[i] * row[k][i];
        dot[k] = s;
    }
}

/* error += g * row, then row += g * x. */
static void update_row(float *restrict error, float *restrict row, const float *restrict x, float g, int dim)
{
    for (int i = 0; i < dim; i++) {
        error[i] += g * row[i];
        row[i] += g * x[i];
    }
}

enum { GROUP = 16 };

typedef struct targets {
    float *row[GROUP];
    float label[GROUP];
    int n;
} targets;

/* Trains the rows of a group, which are distinct, so that their products do not depend on each other. */
static void train_group(trainer *t, const float *x, targets *g)
{
    float dot[GROUP];
    dot_rows(x, (const float *const *)g->row, g->n, t->dim, dot);
    for (int k = 0; k < g->n; k++) {
        float f = dot[k], label = g->label[k];
        t->diverged |= f != f;
        if (t->diverged) break;
        float step = f > MAX_EXP    ? (label - 1) * t->alpha
                     : f < -MAX_EXP ? label * t->alpha
                                    : (label - t->sigmoid[(int)((f + MAX_EXP) * EXP_SCALE)]) * t->alpha;
        update_row(t->error, g->row[k], x, step, t->dim);
    }
    g->n = 0;
}

static void add_target(trainer *t, const float *x, targets *g, int32_t target, float label)
{
    float *row = t->out_neg + (size_t)target * (size_t)t->dim;
    bool clash = g->n == GROUP;
    for (int k = 0; k < g->n && !clash; k++) clash = g->row[k] == row;
    if (clash) train_group(t, x, g);
    g->row[g->n] = row;
    g->label[g->n++] = label;
}

static void train_negative(trainer *t, const float *x, int32_t word_id)
{
    targets g = { .n = 0 };
    add_target(t, x, &g, word_id, 1);
    for (int d = 0; d < t->negative; d++) {
        t->random = next_random(t->random);
        int32_t target = sample_word(t, (int64_t)((t->random >> 16) % TABLE));
        if (!target) target = (int32_t)(t->random % (t->n - 1) + 1);
        if (target != word_id) add_target(t, x, &g, target, 0);
    }
    train_group(t, x, &g);
}

static void train_tree(trainer *t, const float *x, int32_t word_id)
{
    const path *p = &t->tree[word_id];
    for (int d = 0; d < p->len; d++) {
        float *row = t->out_hs + (size_t)p->point[d] * (size_t)t->dim, f;
        const float *one[] = { row };
        dot_rows(x, one, 1, t->dim, &f);
        t->diverged |= f != f;
        if (t->diverged || f <= -MAX_EXP || f >= MAX_EXP) continue;
        f = t->sigmoid[(int)((f + MAX_EXP) * EXP_SCALE)];
        update_row(t->error, row, x, ((float)(1 - p->code[d]) - f) * t->alpha, t->dim);
    }
}

static void train_outputs(trainer *t, const float *x, int32_t word_id)
{
    if (t->hs) train_tree(t, x, word_id);
    if (t->negative) train_negative(t, x, word_id);
}

static float *input_row(trainer *t, int position)
{
    return t->in + (size_t)t->sentence[position] * (size_t)t->dim;
}

static void train_cbow(trainer *t, int at, int from, int to)
{
    int n = 0;
    memset(t->hidden, 0, (size_t)t->dim * sizeof *t->hidden);
    memset(t->error, 0, (size_t)t->dim * sizeof *t->error);
    for (int p = from; p < to; p++) {
        if (p == at) continue;
        const float *row = input_row(t, p);
        for (int i = 0; i < t->dim; i++) t->hidden[i] += row[i];
        n++;
    }
    if (!n) return;
    for (int i = 0; i < t->dim; i++) t->hidden[i] /= (float)n;
    train_outputs(t, t->hidden, t->sentence[at]);
    for (int p = from; p < to; p++) {
        if (p == at) continue;
        float *row = input_row(t, p);
        for (int i = 0; i < t->dim; i++) row[i] += t->error[i];
    }
}

static void train_skip_gram(trainer *t, int at, int from, int to)
{
    for (int p = from; p < to; p++) {
        if (p == at) continue;
        float *row = input_row(t, p);
        memset(t->error, 0, (size_t)t->dim * sizeof *t->error);
        train_outputs(t, row, t->sentence[at]);
        for (int i = 0; i < t->dim; i++) row[i] += t->error[i];
    }
}

static void train_position(trainer *t, int at)
{
    t->random = next_random(t->random);
    int half = t->window - (int)(t->random % (uint64_t)t->window);
    int from = at - half < 0 ? 0 : at - half, to = at + half + 1 > t->length ? t->length : at + half + 1;
    if (from >= to) return; /* an empty sentence */
    if (t->cbow)
        train_cbow(t, at, from, to);
    else
        train_skip_gram(t, at, from, to);
}

/* ---- passes over the corpus ---- */

/* Reads the next sentence; returns how many words of the vocabulary it took from the file. */
static int64_t read_sentence(trainer *t, reader *r)
{
    char s[MAX_WORD + 2];
    int64_t read = 0, id;
    for (t->length = 0; t->length < MAX_SENTENCE;) {
        size_t n = read_word(r, s);
        if (r->ended) break;
        if (!ses_strmap_find(&t->index, s, n, &id)) continue;
        read++;
        if (!id) break;
        if (t->sample > 0) {
            float all = t->sample * (float)t->train_words;
            double count = (double)t->vocab[id].count;
            float keep = (float)((sqrt((float)count / all) + 1) * all / count);
            t->random = next_random(t->random);
            if (keep < (float)(t->random & 0xFFFF) / 65536.0f) continue;
        }
        t->sentence[t->length++] = (int32_t)id;
    }
    return read;
}

static void set_rate(trainer *t)
{
    float all = (float)(t->iterations * t->train_words + 1);
    t->alpha = t->first_alpha * (1 - (float)t->done_words / all);
    if (t->alpha < t->first_alpha * 0.0001) t->alpha = (float)(t->first_alpha * 0.0001);
}

static bool train_pass(trainer *t, ses_err *e)
{
    reader r = { t->file.data, t->file.data + t->file.size, false };
    int64_t read = 0, counted = 0;
    for (;;) {
        bool due = read - counted > RATE_EVERY;
        if (due) {
            t->done_words += read - counted;
            counted = read;
            set_rate(t);
            if (t->job->progress &&
                !t->job->progress(t->job->ctx, t->done_words, t->iterations * t->train_words))
                return ses_fail(e, SES_EIO, "interrupted; nothing was written");
        }
        read += read_sentence(t, &r);
        if (r.ended || read > t->train_words) break;
        if (t->diverged)
            return ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large (--alpha)",
                            (double)t->first_alpha);
        train_position(t, 0);
        for (int at = 1; at < t->length; at++) {
            if (at == 1 && read - counted > RATE_EVERY) { /* the original checks before every position */
                t->done_words += read - counted;
                counted = read;
                set_rate(t);
            }
            train_position(t, at);
        }
    }
    t->done_words += read - counted;
    return true;
}

/* ---- output ---- */

static bool write_vectors(const trainer *t, ses_err *e)
{
    ses_file_writer *w = ses_file_writer_open(t->job->output, t->job->overwrite, e);
    ses_buf line = { 0 };
    bool ok = w != NULL;
    ses_buf_appendf(&line, "%zu %d\n", t->n, t->dim);
    for (size_t i = 0; ok && i < t->n; i++) {
        const float *row = t->in + i * (size_t)t->dim;
        ses_buf_appendf(&line, "%s ", t->vocab[i].text);
        if (t->job->binary)
            ses_buf_append(&line, row, (size_t)t->dim * sizeof *row);
        else
            for (int c = 0; c < t->dim; c++) ses_buf_appendf(&line, "%f ", row[c]);
        ses_buf_put(&line, '\n');
        ok = ses_buf_ok(&line, e) && ses_file_writer_put(w, line.data, line.len, e);
        line.len = 0;
    }
    ok = ok && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    ses_buf_free(&line);
    return ok;
}

static bool set_up(trainer *t, ses_err *e)
{
    ses_exact_job *job = t->job;
    const ses_exact_program *p = &ses_exact_word2vec;
    if (!ses_exact_range(p, job, SIZE, 1, MAX_DIM, e) ||
        !ses_exact_range(p, job, WINDOW, 1, MAX_SENTENCE, e) || !ses_exact_range(p, job, HS, 0, 1, e) ||
        !ses_exact_range(p, job, CBOW, 0, 1, e) || !ses_exact_range(p, job, NEGATIVE, 0, MAX_NEGATIVE, e) ||
        !ses_exact_range(p, job, ITER, 1, 1 << 20, e) || !ses_exact_range(p, job, MIN_COUNT, 0, 1 << 30, e) ||
        !ses_exact_range(p, job, SAMPLE, 0, 1, e))
        return false;
    t->dim = (int)job->value[SIZE];
    t->window = (int)job->value[WINDOW];
    t->negative = (int)job->value[NEGATIVE];
    t->iterations = (int)job->value[ITER];
    t->hs = job->value[HS] != 0;
    t->cbow = job->value[CBOW] != 0;
    t->sample = (float)job->value[SAMPLE];
    t->first_alpha = t->alpha = job->text[ALPHA] ? (float)job->value[ALPHA] : t->cbow ? 0.05f : 0.025f;
    return true;
}

static bool run(ses_exact_job *job, ses_err *e)
{
    trainer *t = ses_alloc(sizeof *t, e);
    if (!t) return false;
    t->job = job;
    bool ok = set_up(t, e) && ses_mmap_open(&t->file, job->corpus, e) && count_words(t, e) &&
              make_weights(t, e) && (!t->hs || make_tree(t, e)) &&
              (!t->negative || make_sampling_table(t, e));
    for (int i = 0; ok && i < t->iterations; i++) ok = train_pass(t, e);
    ok = ok && write_vectors(t, e);
    job->words = (int64_t)t->n;
    ses_mmap_free(&t->file);
    ses_arena_free(&t->text);
    ses_strmap_free(&t->index);
    void *own[] = { t->vocab,  t->tree,    t->table_end, t->table_at, t->in,
                    t->out_hs, t->out_neg, t->hidden,    t->error };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    ses_free(t);
    return ok;
}

const ses_exact_program ses_exact_word2vec = { "word2vec", setting, N_SETTINGS, run };
