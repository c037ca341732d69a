/* WordLevel training: the most frequent words are tokens; equally frequent ones in byte order. */
#include "tokenizer_trainer.h"

#include <stdlib.h>
#include <string.h>

static int by_count(const void *a, const void *b)
{
    const ses_counted_word *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    size_t n = x->n < y->n ? x->n : y->n;
    int d = memcmp(x->p, y->p, n);
    return d ? d : x->n < y->n ? -1 : x->n > y->n;
}

bool ses_train_wordlevel(const ses_tokenizer_train_options *o, const ses_counted_words *words,
                         ses_trained_vocab *out, ses_err *e)
{
    qsort(words->word, words->n, sizeof *words->word, by_count);
    for (size_t i = 0; i < words->n && (int64_t)out->n < o->vocab_size; i++) {
        const ses_counted_word *w = &words->word[i];
        bool special = false;
        for (size_t j = 0; j < out->n && j < o->n_special; j++)
            special |= out->token[j].n == w->n && !memcmp(out->token[j].p, w->p, w->n);
        if (w->count < o->min_frequency) break;
        if (!special && !ses_trained_vocab_put(out, w->p, w->n, e)) return false;
    }
    return true;
}
