/* Token counts and the unigram baseline. */
#include "token_counts.h"

#include <math.h>

enum { CHUNK = 4096 };

void ses_unigram_count(const ses_corpus *c, ses_count_split which, int64_t *count)
{
    const ses_corpus_info *f = ses_corpus_info_of(c);
    for (int64_t i = 0; i < f->documents; i++) {
        ses_document d = ses_corpus_document(c, i);
        if (which != SES_COUNT_ALL && d.held_out != (which == SES_COUNT_HELD_OUT)) continue;
        for (int64_t at = 0; at < d.n_tokens; at += CHUNK) {
            int32_t id[CHUNK];
            int64_t n = d.n_tokens - at < CHUNK ? d.n_tokens - at : CHUNK;
            ses_corpus_read(c, &d, at, n, id, NULL);
            for (int64_t k = 0; k < n; k++)
                if (id[k] >= 0 && id[k] < f->vocab_size) count[id[k]]++;
        }
    }
}

double ses_unigram_entropy(const int64_t *count, int64_t vocab)
{
    double all = 0, h = 0;
    for (int64_t i = 0; i < vocab; i++) all += (double)count[i];
    for (int64_t i = 0; i < vocab; i++)
        if (count[i]) h -= (double)count[i] / all * log((double)count[i] / all);
    return h;
}

double ses_unigram_loss(const int64_t *by, const int64_t *of, int64_t vocab)
{
    double all = 0, n = 0, loss = 0;
    for (int64_t i = 0; i < vocab; i++) all += (double)by[i] + 1, n += (double)of[i];
    for (int64_t i = 0; i < vocab; i++) loss -= (double)of[i] * log(((double)by[i] + 1) / all);
    return n > 0 ? loss / n : NAN;
}
