/* Subwords of a vocabulary. */
#include "subwords.h"

#include "base/alloc.h"
#include "vectors/fasttext/fasttext_words.h"

bool ses_subwords_build(ses_subwords *s, const ses_word_vocab *v, int minn, int maxn, int64_t buckets,
                        ses_err *e)
{
    ses_fasttext_rows rows = { 0 };
    bool ok = (s->start = ses_alloc_array(v->n + 1, sizeof *s->start, e)) != NULL;
    for (size_t i = 0; ok && i < v->n; i++) {
        ok = ses_fasttext_rows_add(&rows, (int32_t)i, e) &&
             ses_fasttext_add_buckets(&rows, v->word[i].text, v->word[i].len, minn, maxn, buckets, e);
        for (size_t k = s->start[i] + 1; ok && k < rows.n; k++) rows.row[k] += (int32_t)v->n;
        s->start[i + 1] = rows.n;
    }
    s->row = rows.row;
    return ok;
}

void ses_subwords_free(ses_subwords *s)
{
    ses_free(s->start);
    ses_free(s->row);
    *s = (ses_subwords){ 0 };
}
