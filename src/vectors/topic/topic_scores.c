/* Scores of topic models: coherence and shares. See topic_model.h. */
#include "topic_model.h"

#include "base/alloc.h"

#include <math.h>

static const double epsilon = 1e-12;

/* The texts that contain both words: their rows of the transposed matrix rise. */
static int64_t count_both(const ses_term_counts *t, int32_t a, int32_t b)
{
    int64_t i = t->start[a], j = t->start[b], both = 0;
    while (i < t->start[a + 1] && j < t->start[b + 1]) {
        int32_t x = t->col[i], y = t->col[j];
        both += x == y;
        i += x <= y, j += y <= x;
    }
    return both;
}

static void score_topic(const ses_term_counts *t, const int32_t *word, int64_t n, double *umass, double *npmi)
{
    double texts = (double)t->cols, u = 0, p = 0;
    int64_t pairs = 0;
    for (int64_t j = 1; j < n; j++)
        for (int64_t i = 0; i < j; i++) {
            double pi = (double)(t->start[word[i] + 1] - t->start[word[i]]) / texts;
            double pj = (double)(t->start[word[j] + 1] - t->start[word[j]]) / texts;
            if (pi <= 0 || pj <= 0) continue; /* a word that these texts do not contain */
            double both = (double)count_both(t, word[i], word[j]) / texts + epsilon;
            u += log(both / pi);
            p += both >= 1 ? 1 : log(both / (pi * pj)) / -log(both);
            pairs++;
        }
    *umass = pairs ? u / (double)pairs : NAN;
    *npmi = pairs ? p / (double)pairs : NAN;
}

bool ses_topic_coherence(const ses_topic_model *m, const ses_term_counts *b, int64_t top, double *umass,
                         double *npmi, ses_err *e)
{
    ses_term_counts t = { 0 };
    if (top > m->vocab.words) top = m->vocab.words;
    int32_t *word = ses_alloc_array((size_t)top + 1, sizeof *word, e);
    bool ok = word && ses_term_counts_transpose(&t, b, e);
    for (int64_t k = 0; ok && k < ses_topic_count(m); k++) {
        ok = ses_topic_top(m, k, top, word, e);
        if (ok) score_topic(&t, word, top, &umass[k], &npmi[k]);
    }
    ses_free(word);
    ses_term_counts_free(&t);
    return ok;
}

double ses_topic_share(const ses_topic_model *m, int64_t topic)
{
    int64_t k_n = ses_topic_count(m);
    double sum = 0, own = 0;
    for (int64_t k = 0; k < k_n; k++) {
        double x = m->s.method == SES_TOPICS_LSA
                       ? m->lsa.value[k] * m->lsa.value[k]
                       : fmax(0, m->lda.topic_sum[k] - m->lda.s.eta * (double)m->lda.words);
        sum += x;
        if (k == topic) own = x;
    }
    return sum > 0 ? own / sum : 0;
}
