/* Latent Dirichlet allocation: see lda.h. */
#include "lda.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "math/gamma.h"

#include <float.h>

enum {
    BLOCK = 256,  /* words of a parallel chunk */
    TEXTS = 8,    /* texts of a parallel chunk */
    INFER = 4096, /* texts whose gamma is held at once */
    MAX_TOPICS = 1 << 16
};

static int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

bool ses_lda_settings_check(const ses_lda_settings *s, ses_err *e)
{
    if (s->topics < 1 || s->topics > MAX_TOPICS)
        return ses_fail(e, SES_EARG, "%lld topics; expected 1 to %d", (long long)s->topics, MAX_TOPICS);
    if (s->chunk < 1 || s->iterations < 1)
        return ses_fail(e, SES_EARG, "chunk %lld, iterations %lld; expected at least 1", (long long)s->chunk,
                        (long long)s->iterations);
    if (!(s->decay >= 0 && s->decay <= 1))
        return ses_fail(e, SES_EARG, "decay %g; expected 0 to 1 (above 0.5 for convergence)", s->decay);
    if (!(s->offset >= 1 && s->offset <= 1e9))
        return ses_fail(e, SES_EARG, "offset %g; expected 1 to 1e9", s->offset);
    if (!(s->threshold >= 0 && s->threshold <= 1e9))
        return ses_fail(e, SES_EARG, "threshold %g; expected at least 0", s->threshold);
    if (!(s->alpha >= 0 && s->alpha <= 1e6) || !(s->eta >= 0 && s->eta <= 1e6))
        return ses_fail(e, SES_EARG, "priors %g and %g; expected 0 (1 / topics) to 1e6", s->alpha, s->eta);
    return true;
}

void ses_lda_free(ses_lda *m)
{
    ses_free(m->lambda), ses_free(m->exp_beta), ses_free(m->topic_sum);
    *m = (ses_lda){ 0 };
}

/* ---- topics ---- */

typedef struct topic_job {
    ses_lda *m;
    double *part;  /* [blocks, topics]: sums of lambda over the words of a block */
    double *scale; /* [topics]: 1 / exp(digamma(topic_sum)) */
} topic_job;

static void sum_block(void *ctx, int64_t block, void *scratch)
{
    const topic_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->m->s.topics, end = least((block + 1) * BLOCK, j->m->words);
    double *sum = j->part + block * k_n;
    for (int64_t w = block * BLOCK; w < end; w++)
        for (int64_t k = 0; k < k_n; k++) sum[k] += j->m->lambda[w * k_n + k];
}

static void exp_block(void *ctx, int64_t block, void *scratch)
{
    const topic_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->m->s.topics, end = least((block + 1) * BLOCK, j->m->words);
    for (int64_t w = block * BLOCK; w < end; w++) {
        const double *lambda = j->m->lambda + w * k_n;
        double *out = j->m->exp_beta + w * k_n;
        for (int64_t k = 0; k < k_n; k++) out[k] = ses_exp_digamma(lambda[k]) * j->scale[k];
    }
}

bool ses_lda_refresh(ses_lda *m, ses_err *e)
{
    int64_t k_n = m->s.topics, blocks = blocks_of(m->words, BLOCK);
    topic_job j = { .m = m };
    j.part = ses_alloc_array((size_t)(blocks + 1), (size_t)k_n * sizeof *j.part, e);
    if (!j.part) return false;
    j.scale = j.part + blocks * k_n;
    ses_parallel_for(m->pool, blocks, sum_block, &j);
    for (int64_t k = 0; k < k_n; k++) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; b++) sum += j.part[b * k_n + k];
        m->topic_sum[k] = sum;
        j.scale[k] = 1 / ses_exp_digamma(sum);
    }
    ses_parallel_for(m->pool, blocks, exp_block, &j);
    ses_free(j.part);
    return true;
}

/* Gamma(100, 1 / 100) from a normal number (Wilson and Hilferty 1931). */
static double draw_gamma(uint64_t seed, uint64_t i)
{
    double x = 1 - 1. / 900 + ses_rand_normal((ses_rng_key){ seed, 0, 0x6c6461 }, i) / 30;
    return x * x * x; /* x is at least 0.7: the normal numbers are below 7 */
}

static void draw_block(void *ctx, int64_t block, void *scratch)
{
    const topic_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->m->s.topics, end = least((block + 1) * BLOCK, j->m->words) * k_n;
    for (int64_t i = block * BLOCK * k_n; i < end; i++)
        j->m->lambda[i] = draw_gamma(j->m->s.seed, (uint64_t)i);
}

bool ses_lda_new(ses_lda *m, const ses_lda_settings *s, int64_t words, const double *start,
                 ses_thread_pool *pool, ses_err *e)
{
    if (!ses_lda_settings_check(s, e)) return false;
    m->s = *s;
    if (m->s.alpha <= 0) m->s.alpha = 1. / (double)s->topics;
    if (m->s.eta <= 0) m->s.eta = 1. / (double)s->topics;
    m->words = words;
    m->pool = pool;
    size_t row = (size_t)s->topics * sizeof(double);
    m->lambda = ses_alloc_array((size_t)words, row, e);
    m->exp_beta = m->lambda ? ses_alloc_array((size_t)words, row, e) : NULL;
    m->topic_sum = m->exp_beta ? ses_alloc(row, e) : NULL;
    if (!m->topic_sum) return false;
    for (int64_t i = 0; start && i < words * s->topics; i++) {
        if (!(start[i] > 0 && start[i] < 1e15))
            return ses_fail(e, SES_EARG, "topic %lld, word %lld: %g; expected a positive finite number",
                            (long long)(i % s->topics) + 1, (long long)(i / s->topics) + 1, start[i]);
        m->lambda[i] = start[i];
    }
    if (!start) ses_parallel_for(pool, blocks_of(words, BLOCK), draw_block, &(topic_job){ .m = m });
    return ses_lda_refresh(m, e);
}

/* ---- texts ---- */

/* Products of the rows of a text with vectors of topics. The sums have four lanes: compilers vectorize
 * them, and the order does not depend on the instruction set. */
static double dot(const double *restrict a, const double *restrict b, int64_t n)
{
    double lane[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int l = 0; l < 4; l++) lane[l] += a[i + l] * b[i + l];
    double sum = (lane[0] + lane[2]) + (lane[1] + lane[3]);
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *restrict y, const double *restrict x, double by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += by * x[i];
}

typedef struct text_job {
    const ses_lda *m;
    const ses_term_counts *b;
    int64_t begin, rows;
    double *gamma; /* [rows, topics] */
    double *theta; /* [rows, topics]: exp(E[log theta]) */
    double *ratio; /* [entries]: count / sum over topics of theta beta; NULL: not needed */
    double *bound; /* [rows]: the text's part of the bound; NULL: not needed */
    double *work;  /* [rows, topics]: scratch */
} text_job;

/* theta = exp(digamma(gamma)) / exp(digamma(sum of gamma)) */
static void expect_theta(double *restrict theta, const double *restrict gamma, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += gamma[k];
    double scale = 1 / ses_exp_digamma(sum);
    for (int64_t k = 0; k < n; k++) theta[k] = ses_exp_digamma(gamma[k]) * scale;
}

/* Fixed-point iterations for one text: gamma and theta. next: scratch [topics]. */
static void fit_text(const text_job *j, int64_t row, double *gamma, double *theta, double *restrict next)
{
    const ses_lda *m = j->m;
    int64_t k_n = m->s.topics, first = j->b->start[row], end = j->b->start[row + 1];
    for (int64_t k = 0; k < k_n; k++) gamma[k] = 1;
    expect_theta(theta, gamma, k_n);
    for (int64_t it = 0; it < m->s.iterations; it++) {
        for (int64_t k = 0; k < k_n; k++) next[k] = 0;
        for (int64_t i = first; i < end; i++) {
            const double *beta = m->exp_beta + j->b->col[i] * k_n;
            add_scaled(next, beta, j->b->value[i] / (dot(theta, beta, k_n) + DBL_EPSILON), k_n);
        }
        double change = 0;
        for (int64_t k = 0; k < k_n; k++) {
            double x = m->s.alpha + theta[k] * next[k];
            change += fabs(x - gamma[k]);
            gamma[k] = x;
        }
        expect_theta(theta, gamma, k_n);
        if (change < m->s.threshold * (double)k_n) break;
    }
}

/* ln of the sum over topics of exp(E[log theta] + E[log beta]), also if the factors underflow. */
static double log_word(const ses_lda *m, const double *gamma, double gamma_sum, const double *theta,
                       int32_t word)
{
    int64_t k_n = m->s.topics;
    double sum = dot(theta, m->exp_beta + word * k_n, k_n), most = -INFINITY;
    if (sum > 1e-250) return log(sum);
    double base = ses_digamma(gamma_sum);
    for (int pass = 0; pass < 2; pass++) {
        sum = 0;
        for (int64_t k = 0; k < k_n; k++) {
            double x = ses_digamma(gamma[k]) - base + ses_digamma(m->lambda[word * k_n + k]) -
                       ses_digamma(m->topic_sum[k]);
            if (pass == 0 && x > most) most = x;
            if (pass == 1) sum += exp(x - most);
        }
    }
    return most + log(sum);
}

static double bound_text(const text_job *j, int64_t row, const double *gamma, const double *theta)
{
    const ses_lda *m = j->m;
    int64_t k_n = m->s.topics;
    double alpha = m->s.alpha, sum = 0, bound = 0;
    for (int64_t k = 0; k < k_n; k++) sum += gamma[k];
    for (int64_t i = j->b->start[row]; i < j->b->start[row + 1]; i++)
        bound += j->b->value[i] * log_word(m, gamma, sum, theta, j->b->col[i]);
    double base = ses_digamma(sum), prior = ses_log_gamma(alpha);
    for (int64_t k = 0; k < k_n; k++)
        bound += (alpha - gamma[k]) * (ses_digamma(gamma[k]) - base) + ses_log_gamma(gamma[k]) - prior;
    return bound + ses_log_gamma(alpha * (double)k_n) - ses_log_gamma(sum);
}

static void fit_block(void *ctx, int64_t block, void *scratch)
{
    const text_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->m->s.topics, end = least((block + 1) * TEXTS, j->rows);
    for (int64_t r = block * TEXTS; r < end; r++) {
        int64_t row = j->begin + r, first = j->b->start[j->begin];
        double *gamma = j->gamma + r * k_n, *theta = j->theta + r * k_n;
        fit_text(j, row, gamma, theta, j->work + r * k_n);
        for (int64_t i = j->b->start[row]; j->ratio && i < j->b->start[row + 1]; i++)
            j->ratio[i - first] =
                j->b->value[i] / (dot(theta, j->m->exp_beta + j->b->col[i] * k_n, k_n) + DBL_EPSILON);
        if (j->bound) j->bound[r] = bound_text(j, row, gamma, theta);
    }
}

bool ses_lda_infer(const ses_lda *m, const ses_term_counts *b, int64_t begin, int64_t rows, double *gamma,
                   ses_err *e)
{
    double *block = ses_alloc_array((size_t)rows + 1, 2 * (size_t)m->s.topics * sizeof *block, e);
    if (!block) return false;
    text_job j = { .m = m, .b = b, .begin = begin, .rows = rows, .gamma = gamma, .theta = block };
    j.work = block + rows * m->s.topics;
    ses_parallel_for(m->pool, blocks_of(rows, TEXTS), fit_block, &j);
    ses_free(block);
    return true;
}

/* ---- bound ---- */

typedef struct bound_job {
    const ses_lda *m;
    double *part;   /* [blocks] */
    double *digits; /* [topics]: digamma of topic_sum */
} bound_job;

static void bound_block(void *ctx, int64_t block, void *scratch)
{
    const bound_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->m->s.topics, end = least((block + 1) * BLOCK, j->m->words);
    double eta = j->m->s.eta, prior = ses_log_gamma(eta), sum = 0;
    for (int64_t i = block * BLOCK * k_n; i < end * k_n; i++) {
        double lambda = j->m->lambda[i];
        sum += (eta - lambda) * (ses_digamma(lambda) - j->digits[i % k_n]) + ses_log_gamma(lambda) - prior;
    }
    j->part[block] = sum;
}

/* E[log p(beta) - log q(beta)] */
static bool bound_topics(const ses_lda *m, double *bound, ses_err *e)
{
    int64_t blocks = blocks_of(m->words, BLOCK), k_n = m->s.topics;
    bound_job j = { .m = m, .part = ses_alloc_array((size_t)(blocks + k_n), sizeof *j.part, e) };
    if (!j.part) return false;
    j.digits = j.part + blocks;
    for (int64_t k = 0; k < k_n; k++) j.digits[k] = ses_digamma(m->topic_sum[k]);
    ses_parallel_for(m->pool, blocks, bound_block, &j);
    *bound = 0;
    for (int64_t i = 0; i < blocks; i++) *bound += j.part[i];
    for (int64_t k = 0; k < k_n; k++)
        *bound += ses_log_gamma(m->s.eta * (double)m->words) - ses_log_gamma(m->topic_sum[k]);
    ses_free(j.part);
    return true;
}

bool ses_lda_bound(const ses_lda *m, const ses_term_counts *b, double *bound, ses_err *e)
{
    size_t most = (size_t)least(INFER, b->rows) + 1, k_n = (size_t)m->s.topics;
    double *block = ses_alloc_array(most, (3 * k_n + 1) * sizeof *block, e);
    bool ok = block && bound_topics(m, bound, e);
    for (int64_t begin = 0; ok && begin < b->rows; begin += INFER) {
        text_job j = { .m = m, .b = b, .begin = begin, .rows = least(INFER, b->rows - begin) };
        j.gamma = block, j.theta = block + most * k_n, j.work = block + 2 * most * k_n;
        j.bound = block + 3 * most * k_n;
        ses_parallel_for(m->pool, blocks_of(j.rows, TEXTS), fit_block, &j);
        for (int64_t r = 0; r < j.rows; r++) *bound += j.bound[r];
    }
    ses_free(block);
    return ok;
}

double ses_term_counts_total(const ses_term_counts *b, int64_t begin, int64_t end)
{
    double sum = 0;
    for (int64_t i = b->start[begin]; i < b->start[end]; i++) sum += b->value[i];
    return sum;
}

/* ---- update ---- */

typedef struct update_job {
    ses_lda *m;
    const text_job *t;
    const int64_t *start; /* [words + 1]: the entries of a word ... */
    const int64_t *entry; /* ... as indices of ratio */
    const int32_t *text;  /* and the text of each */
    double rho, by;       /* by: all texts / texts of this update */
} update_job;

static void update_block(void *ctx, int64_t block, void *scratch)
{
    const update_job *j = ctx;
    ses_lda *m = j->m;
    int64_t k_n = m->s.topics, end = least((block + 1) * BLOCK, m->words);
    double *sum = scratch; /* at most MAX_TOPICS doubles */
    for (int64_t w = block * BLOCK; w < end; w++) {
        double *lambda = m->lambda + w * k_n;
        const double *beta = m->exp_beta + w * k_n;
        for (int64_t k = 0; k < k_n; k++) sum[k] = 0;
        for (int64_t i = j->start[w]; i < j->start[w + 1]; i++)
            add_scaled(sum, j->t->theta + j->text[i] * k_n, j->t->ratio[j->entry[i]], k_n);
        for (int64_t k = 0; k < k_n; k++)
            lambda[k] = (1 - j->rho) * lambda[k] + j->rho * (m->s.eta + j->by * (sum[k] * beta[k]));
    }
}

/* Groups the entries of the rows by word, each word's by rising text. */
static void group_by_word(const ses_term_counts *b, int64_t begin, int64_t end, int64_t *start,
                          int64_t *entry, int32_t *text)
{
    int64_t first = b->start[begin];
    for (int64_t i = first; i < b->start[end]; i++) start[b->col[i] + 2]++;
    for (int64_t w = 0; w < b->cols; w++) start[w + 2] += start[w + 1];
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = b->start[r]; i < b->start[r + 1]; i++) {
            int64_t at = start[b->col[i] + 1]++;
            entry[at] = i - first;
            text[at] = (int32_t)(r - begin);
        }
}

/* The memory of an update. */
typedef struct update_memory {
    double *rows;   /* gamma, theta, work, bound */
    double *ratio;  /* [entries] */
    int64_t *start; /* [words + 2], then entry */
    int32_t *text;
} update_memory;

static bool reserve_update(update_memory *u, const ses_lda *m, int64_t rows, int64_t entries, ses_err *e)
{
    u->rows = ses_alloc_array((size_t)rows, (3 * (size_t)m->s.topics + 1) * sizeof *u->rows, e);
    u->ratio = u->rows ? ses_alloc_array((size_t)entries + 1, sizeof *u->ratio, e) : NULL;
    u->start = u->ratio ? ses_alloc_array((size_t)(m->words + 3 + entries), sizeof *u->start, e) : NULL;
    u->text = u->start ? ses_alloc_array((size_t)entries + 1, sizeof *u->text, e) : NULL;
    return u->text != NULL;
}

bool ses_lda_update(ses_lda *m, const ses_term_counts *b, double *perplexity, ses_err *e)
{
    int64_t begin = m->next, end = m->s.batch ? b->rows : least(begin + m->s.chunk, b->rows);
    int64_t rows = end - begin, entries = b->start[end] - b->start[begin], k_n = m->s.topics;
    update_memory u = { 0 };
    bool ok = reserve_update(&u, m, rows, entries, e);
    *perplexity = NAN;
    if (ok) {
        text_job t = { .m = m, .b = b, .begin = begin, .rows = rows, .gamma = u.rows, .ratio = u.ratio };
        t.theta = u.rows + rows * k_n, t.work = t.theta + rows * k_n, t.bound = t.work + rows * k_n;
        ses_parallel_for(m->pool, blocks_of(rows, TEXTS), fit_block, &t);
        group_by_word(b, begin, end, u.start, u.start + m->words + 2, u.text);
        update_job j = { .m = m, .t = &t, .start = u.start, .entry = u.start + m->words + 2, .text = u.text };
        j.rho = m->s.batch ? 1 : pow(m->s.offset + (double)m->updates, -m->s.decay);
        j.by = (double)b->rows / (double)rows;
        ses_parallel_for(m->pool, blocks_of(m->words, BLOCK), update_block, &j);
        for (int64_t r = 0; r < rows; r++) m->bound += t.bound[r];
        m->tokens += ses_term_counts_total(b, begin, end);
        m->updates++;
        m->next = end;
        ok = ses_lda_refresh(m, e);
    }
    if (ok && m->next == b->rows) {
        double topics;
        ok = bound_topics(m, &topics, e);
        *perplexity = m->tokens > 0 ? exp(-(m->bound + topics) / m->tokens) : NAN;
        m->pass++, m->next = 0, m->bound = 0, m->tokens = 0;
    }
    ses_free(u.rows), ses_free(u.ratio), ses_free(u.start), ses_free(u.text);
    return ok;
}
