/* Topic models: training and inference. See topic_model.h. */
#include "topic_model.h"

#include "base/alloc.h"
#include "base/sha.h"
#include "io/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 4096 }; /* texts that are inferred at once */

void ses_topic_model_free(ses_topic_model *m)
{
    ses_lda_free(&m->lda);
    ses_lsa_free(&m->lsa);
    ses_term_vocab_free(&m->vocab);
    ses_free(m->perplexity), ses_free(m->umass), ses_free(m->npmi);
    ses_thread_pool_free(m->pool);
    *m = (ses_topic_model){ 0 };
}

int64_t ses_topic_count(const ses_topic_model *m)
{
    return m->s.method == SES_TOPICS_LDA ? m->lda.s.topics : m->lsa.topics;
}

double ses_topic_weight(const ses_topic_model *m, int64_t topic, int64_t word)
{
    if (m->s.method == SES_TOPICS_LDA)
        return m->lda.lambda[word * m->lda.s.topics + topic] / m->lda.topic_sum[topic];
    return m->lsa.vector[topic * m->lsa.words + word];
}

static void sign_counts(const ses_term_counts *b, char out[65])
{
    ses_sha s = ses_sha256_start();
    ses_sha_add(&s, b->start, (size_t)(b->rows + 1) * sizeof *b->start);
    ses_sha_add(&s, b->col, (size_t)b->start[b->rows] * sizeof *b->col);
    ses_sha_add(&s, b->value, (size_t)b->start[b->rows] * sizeof *b->value);
    ses_sha_hex(&s, out);
}

/* ---- training ---- */

static bool run_lda(ses_topic_model *m, const ses_term_counts *b, ses_topic_progress *progress, void *ctx,
                    bool *stopped, ses_err *e)
{
    *stopped = false;
    while (m->lda.pass < m->s.passes && !*stopped) {
        double perplexity;
        if (!ses_lda_update(&m->lda, b, &perplexity, e)) return false;
        if (!m->lda.next) { /* the end of a pass */
            if (!ses_array_reserve(&m->perplexity, &m->cap_perplexity, m->n_perplexity + 1,
                                   sizeof *m->perplexity, e))
                return false;
            m->perplexity[m->n_perplexity++] = perplexity;
        }
        *stopped = progress && !progress(ctx, m->lda.pass * b->rows + m->lda.next, m->s.passes * b->rows);
    }
    *stopped = *stopped && m->lda.pass < m->s.passes;
    return true;
}

/* The initial topics of a file: [topics, words], as LDA's lambda [words, topics]. */
static double *read_start(const char *path, int64_t topics, int64_t words, ses_err *e)
{
    ses_matrix x = { 0 };
    double *out = NULL;
    ses_records_options o = { .no_header = true };
    if (!ses_matrix_read(&x, path, &o, e)) return NULL;
    if ((int64_t)x.rows != topics || (int64_t)x.cols != words)
        ses_fail(e, SES_EARG, "%s: %zu x %zu numbers; expected %lld topics x %lld words", path, x.rows,
                 x.cols, (long long)topics, (long long)words);
    else
        out = ses_alloc_array(x.rows * x.cols, sizeof *out, e);
    for (size_t k = 0; out && k < x.rows; k++)
        for (size_t w = 0; w < x.cols; w++) out[w * x.rows + k] = (double)x.x[k * x.cols + w];
    ses_matrix_free(&x);
    return out;
}

static bool train_lda(ses_topic_model *m, const ses_term_counts *b, const char *start,
                      ses_topic_progress *progress, void *ctx, bool *stopped, ses_err *e)
{
    if (m->s.lda.topics > b->cols)
        return ses_fail(e, SES_EARG,
                        "%lld topics of %lld texts with %lld words; expected at most as many topics "
                        "as words",
                        (long long)m->s.lda.topics, (long long)b->rows, (long long)b->cols);
    double *lambda = start ? read_start(start, m->s.lda.topics, b->cols, e) : NULL;
    bool ok = (!start || lambda) && ses_lda_new(&m->lda, &m->s.lda, b->cols, lambda, m->pool, e);
    ses_free(lambda);
    return ok && run_lda(m, b, progress, ctx, stopped, e);
}

typedef struct rounds {
    ses_topic_progress *progress;
    void *ctx;
    int64_t most;
} rounds;

static bool show_round(void *ctx, int64_t round, double change)
{
    const rounds *r = ctx;
    (void)change;
    return !r->progress || r->progress(r->ctx, round, r->most);
}

static bool train_lsa(ses_topic_model *m, ses_term_counts *b, ses_topic_progress *progress, void *ctx,
                      ses_err *e)
{
    rounds r = { progress, ctx, m->s.lsa.rounds };
    if (!m->s.counts) ses_term_counts_tf_idf(b, m->vocab.texts, m->vocab.all_texts);
    return ses_lsa_fit(&m->lsa, b, &m->s.lsa, m->pool, show_round, &r, e);
}

/* The coherence of the finished topics in the texts. */
static bool score(ses_topic_model *m, const ses_term_counts *b, ses_err *e)
{
    size_t n = (size_t)ses_topic_count(m);
    ses_free(m->umass), ses_free(m->npmi);
    m->npmi = NULL;
    m->umass = ses_alloc_array(n, sizeof *m->umass, e);
    m->npmi = m->umass ? ses_alloc_array(n, sizeof *m->npmi, e) : NULL;
    return m->npmi && ses_topic_coherence(m, b, SES_TOPIC_PAIRED, m->umass, m->npmi, e);
}

bool ses_topic_train(ses_topic_model *m, const ses_topic_settings *s, const ses_string *text, size_t n,
                     const char *start, int threads, ses_topic_progress *progress, void *ctx, bool *stopped,
                     ses_err *e)
{
    ses_term_counts b = { 0 };
    m->s = *s;
    m->pool = ses_thread_pool_new(threads, e);
    *stopped = false;
    bool ok = m->pool && (s->method != SES_TOPICS_LDA || ses_lda_settings_check(&s->lda, e)) &&
              ses_term_vocab_build(&m->vocab, text, n, &s->terms, e) &&
              ses_term_counts_make(&b, &m->vocab, text, n, e);
    if (ok) sign_counts(&b, m->texts_sha);
    ok = ok && (s->method == SES_TOPICS_LDA ? train_lda(m, &b, start, progress, ctx, stopped, e)
                                            : train_lsa(m, &b, progress, ctx, e));
    ok = ok && score(m, &b, e);
    ses_term_counts_free(&b);
    return ok;
}

bool ses_topic_resume(ses_topic_model *m, int64_t passes, const ses_string *text, size_t n,
                      ses_topic_progress *progress, void *ctx, bool *stopped, ses_err *e)
{
    ses_term_counts b = { 0 };
    char sha[65];
    *stopped = false;
    if (m->s.method != SES_TOPICS_LDA)
        return ses_fail(e, SES_EARG, "only LDA can be resumed: LSA has one result");
    bool ok = ses_term_counts_make(&b, &m->vocab, text, n, e);
    if (ok) sign_counts(&b, sha);
    if (ok && strcmp(sha, m->texts_sha) != 0)
        ok = ses_fail(e, SES_EARG,
                      "the texts differ from the texts of the model (%lld texts, other words); "
                      "expected the same file",
                      (long long)m->vocab.all_texts);
    if (ok && (m->vocab.all_texts != b.rows || m->lda.next >= b.rows))
        ok = ses_fail(e, SES_EFORMAT,
                      "the model states %lld texts and continues at text %lld; expected %lld texts",
                      (long long)m->vocab.all_texts, (long long)m->lda.next + 1, (long long)b.rows);
    m->s.passes = passes;
    ok = ok && run_lda(m, &b, progress, ctx, stopped, e) && score(m, &b, e);
    ses_term_counts_free(&b);
    return ok;
}

/* ---- inference ---- */

static void normalize(double *y, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += y[k];
    for (int64_t k = 0; k < n; k++) y[k] /= sum;
}

bool ses_topic_infer(const ses_topic_model *m, const ses_string *text, size_t n, double *y,
                     double *perplexity, size_t *unknown, ses_err *e)
{
    ses_term_counts b = { 0 };
    int64_t k_n = ses_topic_count(m);
    double bound = 0;
    bool ok = ses_term_counts_make(&b, &m->vocab, text, n, e);
    *unknown = 0;
    for (int64_t r = 0; ok && r < b.rows; r++) *unknown += b.start[r] == b.start[r + 1];
    if (ok && m->s.method == SES_TOPICS_LSA) {
        if (!m->s.counts) ses_term_counts_tf_idf(&b, m->vocab.texts, m->vocab.all_texts);
        ses_lsa_project(&m->lsa, &b, y, m->pool);
    }
    for (int64_t at = 0; ok && m->s.method == SES_TOPICS_LDA && at < b.rows; at += SLICE) {
        int64_t rows = b.rows - at < SLICE ? b.rows - at : SLICE;
        ok = ses_lda_infer(&m->lda, &b, at, rows, y + at * k_n, e);
        for (int64_t r = at; ok && r < at + rows; r++) normalize(y + r * k_n, k_n);
    }
    if (ok && perplexity) {
        bool lda = m->s.method == SES_TOPICS_LDA;
        ok = !lda || ses_lda_bound(&m->lda, &b, &bound, e);
        double words = ses_term_counts_total(&b, 0, b.rows);
        *perplexity = ok && lda && words > 0 ? exp(-bound / words) : NAN;
    }
    ses_term_counts_free(&b);
    return ok;
}

/* ---- top words ---- */

bool ses_topic_top(const ses_topic_model *m, int64_t topic, int64_t n, int32_t *word, ses_err *e)
{
    int64_t filled = 0;
    double *size = ses_alloc_array((size_t)n + 1, sizeof *size, e);
    if (!size) return false;
    for (int64_t w = 0; w < m->vocab.words; w++) { /* insertion into the sorted list */
        double x = fabs(ses_topic_weight(m, topic, w));
        if (filled == n && x <= size[n - 1]) continue;
        int64_t at = filled < n ? filled++ : n - 1;
        for (; at > 0 && size[at - 1] < x; at--) size[at] = size[at - 1], word[at] = word[at - 1];
        size[at] = x, word[at] = (int32_t)w;
    }
    ses_free(size);
    return true;
}
