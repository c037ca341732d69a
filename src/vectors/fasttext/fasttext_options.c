/* Settings of supervised training, pretrained vectors, negative samples. */
#include "fasttext_train.h"

#include "base/alloc.h"
#include "vectors/vectors_impl.h"

#include <math.h>
#include <string.h>

enum { NEGATIVES = 10000000, MAX_DIM = 1 << 16 };

ses_fasttext_options ses_fasttext_defaults(void)
{
    return (ses_fasttext_options){ .set = { .dim = 100,
                                            .ws = 5,
                                            .epoch = 5,
                                            .min_count = 1,
                                            .neg = 5,
                                            .word_ngrams = 1,
                                            .loss = SES_FASTTEXT_SOFTMAX,
                                            .model = SES_FASTTEXT_SUPERVISED,
                                            .bucket = 2000000,
                                            .lr_update_rate = 100,
                                            .t = 1e-4 },
                                   .lr = 0.1 };
}

static const char *const losses[] = { [SES_FASTTEXT_HIERARCHICAL] = "hs",
                                      [SES_FASTTEXT_NEGATIVE] = "ns",
                                      [SES_FASTTEXT_SOFTMAX] = "softmax",
                                      [SES_FASTTEXT_ONE_VS_ALL] = "ova" };

const char *ses_fasttext_loss_name(int32_t loss) { return losses[loss]; }

bool ses_fasttext_loss_of(const char *name, int32_t *loss, ses_err *e)
{
    if (!strcmp(name, "one-vs-all")) name = "ova";
    for (size_t i = 1; i < SES_LEN(losses); i++)
        if (!strcmp(losses[i], name)) {
            *loss = (int32_t)i;
            return true;
        }
    return ses_fail(e, SES_EUSAGE, "loss \"%s\": expected softmax, ns, hs or ova", name);
}

bool ses_fasttext_check(ses_fasttext_options *o, ses_err *e)
{
    ses_fasttext_settings *s = &o->set;
    const struct {
        const char *name;
        double value, low, high;
    } range[] = { { "dim", s->dim, 1, MAX_DIM },
                  { "ws", s->ws, 1, 1 << 20 },
                  { "epoch", s->epoch, 1, 1 << 20 },
                  { "minCount", s->min_count, 0, 1 << 30 },
                  { "minCountLabel", (double)o->min_count_label, 0, 1 << 30 },
                  { "neg", s->neg, 0, 1 << 16 },
                  { "wordNgrams", s->word_ngrams, 0, 1 << 10 },
                  { "minn", s->minn, 0, 1 << 10 },
                  { "maxn", s->maxn, 0, 1 << 10 },
                  { "bucket", s->bucket, 0, 2147483647 },
                  { "lrUpdateRate", s->lr_update_rate, 1, 2147483647 },
                  { "lr", o->lr, 0, 1e30 } };
    for (size_t i = 0; i < SES_LEN(range); i++)
        if (!(range[i].value >= range[i].low && range[i].value <= range[i].high))
            return ses_fail(e, SES_EUSAGE, "%s %.9g: expected a number from %.9g to %.9g", range[i].name,
                            range[i].value, range[i].low, range[i].high);
    if (s->word_ngrams <= 1 && s->maxn == 0) s->bucket = 0;
    if ((s->word_ngrams > 1 || s->maxn > 0) && !s->bucket)
        return ses_fail(e, SES_EUSAGE, "bucket 0: n-grams need rows");
    if (o->label && !*o->label) return ses_fail(e, SES_EUSAGE, "the prefix of labels is empty");
    return true;
}

int32_t *ses_fasttext_negatives(const ses_fasttext_dictionary *d, size_t from, size_t to, size_t *n,
                                ses_err *e)
{
    float total = 0;
    size_t capacity = NEGATIVES + (to - from);
    int32_t *table = ses_alloc_array(capacity, sizeof *table, e);
    *n = 0;
    for (size_t i = from; i < to; i++) total = (float)(total + pow((double)d->word[i].count, 0.5));
    for (size_t i = from; table && i < to; i++) {
        float share = (float)pow((double)d->word[i].count, 0.5) * NEGATIVES / total;
        for (size_t k = 0; (float)k < share && *n < capacity; k++) table[(*n)++] = (int32_t)(i - from);
    }
    return table;
}

/* ---- pretrained vectors ---- */

/* Counts each word of the file, or copies its vector if it is known. */
static bool each_vector(const char *path, int32_t dim, ses_fasttext_dictionary *count,
                        const ses_fasttext_dictionary *copy, float *in, size_t stride, ses_err *e)
{
    ses_vectors *v = ses_vectors_open(path, e);
    ses_vector_row row;
    int64_t id;
    bool ok = v && (ses_vectors_dim(v) == dim ||
                    ses_fail(e, SES_EARG, "%s: pretrained vectors have %lld columns, the model has %d (dim)",
                             path, (long long)ses_vectors_dim(v), dim));
    while (ok && (ok = ses_vectors_next_row(v, &row, e)) && row.word) {
        if (count)
            ok = ses_fasttext_count_word(count, row.word, row.len, e);
        else if (ses_strmap_find(&copy->id, row.word, row.len, &id) && (size_t)id < copy->n_words)
            ok = ses_vectors_get_row(v, &row, in + (size_t)id * stride, e);
    }
    ses_vectors_free(v);
    return ok;
}

bool ses_fasttext_count_pretrained(ses_fasttext_dictionary *d, const char *path, int32_t dim, ses_err *e)
{
    return each_vector(path, dim, d, NULL, NULL, 0, e);
}

bool ses_fasttext_copy_pretrained(const ses_fasttext_dictionary *d, const char *path, float *in,
                                  size_t stride, ses_err *e)
{
    ses_vectors *v = ses_vectors_open(path, e);
    bool ok = v != NULL;
    int32_t dim = v ? (int32_t)ses_vectors_dim(v) : 0;
    ses_vectors_free(v);
    return ok && each_vector(path, dim, NULL, d, in, stride, e);
}
