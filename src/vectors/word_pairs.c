/* Lists of word pairs. */
#include "word_pairs.h"

#include "base/alloc.h"
#include "base/number.h"
#include "io/text_reader.h"
#include "math/correlation.h"

#include <math.h>
#include <string.h>

enum { MAX_LINE = 1 << 16 };

typedef struct evaluation {
    const ses_vectors *v;
    const ses_folded_words *words;
    const ses_word_pairs_options *o;
    ses_word_pairs_score *s;
    float *x, *y;          /* [dim] */
    double *gold, *cosine; /* [n] */
    size_t n, cap_gold, cap_cosine;
    ses_buf scratch;
} evaluation;

/* Three fields: separated by single tabs if there is one, else by blanks. */
static bool split(const char *s, size_t n, ses_string field[3])
{
    bool tabs = memchr(s, '\t', n) != NULL;
    size_t count = 0, i = 0;
    while (i < n || (tabs && i == n)) {
        size_t first = i;
        while (i < n && s[i] != (tabs ? '\t' : ' ')) i++;
        if (tabs || i > first) {
            if (count == 3) return false;
            field[count++] = (ses_string){ s + first, i - first };
        }
        i++;
    }
    return count == 3;
}

static bool find_vector(evaluation *x, ses_string word, float *out, bool *found, ses_err *e)
{
    int64_t i = ses_folded_words_find(x->words, word, &x->scratch);
    *found = i >= 0;
    if (i >= 0) return ses_vectors_get(x->v, i, out, e);
    if (!x->o->subwords) return ses_buf_ok(&x->scratch, e);
    return ses_vectors_lookup(x->v, word.p, word.n, out, found, e);
}

/* Product of two vectors in f32, in the order of additions of OpenBLAS on CPUs with AVX-512, which gensim
 * calls: 64 sums, folded to 32, then 8, then 1; the products that are left are added in double. Correlations
 * of ranks then have gensim's ties. */
static float dot(const float *a, const float *b, int64_t n)
{
    float wide[64] = { 0 }, sum[32], eight[8], four[4];
    double rest = 0;
    int64_t i = 0, whole = n / 32 * 32;
    for (; i + 64 <= whole; i += 64)
        for (int j = 0; j < 64; j++) wide[j] = fmaf(a[i + j], b[i + j], wide[j]);
    for (int j = 0; j < 32; j++) sum[j] = wide[j / 8 * 16 + j % 8] + wide[j / 8 * 16 + 8 + j % 8];
    for (; i < whole; i += 32)
        for (int j = 0; j < 32; j++) sum[j] = fmaf(a[i + j], b[i + j], sum[j]);
    for (int j = 0; j < 8; j++) eight[j] = sum[j] + sum[8 + j] + sum[16 + j] + sum[24 + j];
    for (int j = 0; j < 4; j++) four[j] = eight[j] + eight[4 + j];
    for (; i < n; i++) rest += a[i] * b[i];
    return (float)(rest + ((four[0] + four[1]) + (four[2] + four[3])));
}

/* Divides x by its length, with gensim's roundings; zero stays zero. */
static void normalize(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k] * x[k];
    double factor = sum > 0 ? 1 / sqrt(sum) : 0;
    for (int64_t k = 0; k < n; k++) x[k] = (float)(factor * x[k]);
}

static double cosine(float *a, float *b, int64_t n)
{
    normalize(a, n);
    normalize(b, n);
    return (double)dot(a, b, n);
}

static bool take_pair(evaluation *x, const ses_string field[3], double gold, ses_err *e)
{
    bool a, b = false;
    if (!find_vector(x, field[0], x->x, &a, e) || (a && !find_vector(x, field[1], x->y, &b, e))) return false;
    x->s->pairs++;
    x->s->known += a && b;
    if (!(a && b) && !x->o->unknown_is_zero) return true;
    if (!ses_array_reserve(&x->gold, &x->cap_gold, x->n + 1, sizeof *x->gold, e) ||
        !ses_array_reserve(&x->cosine, &x->cap_cosine, x->n + 1, sizeof *x->cosine, e))
        return false;
    x->gold[x->n] = gold;
    x->cosine[x->n++] = a && b ? cosine(x->x, x->y, ses_vectors_dim(x->v)) : 0;
    return true;
}

static bool read_pairs(evaluation *x, ses_text_reader *in, ses_err *e)
{
    const char *line;
    size_t n;
    while (ses_text_reader_next(in, &line, &n, e)) {
        ses_string field[3];
        double gold;
        if (!line)
            return x->s->pairs > 0 ||
                   ses_fail(e, SES_EFORMAT, "no pairs; expected lines of two words and a number");
        if (ses_text_is_blank(line, n) || line[0] == '#') continue;
        bool ok = split(line, n, field);
        if (ok) field[2] = ses_trim(field[2]);
        if (!ok || !ses_parse_number(field[2].p, field[2].n, &gold))
            x->s->invalid++;
        else if (!take_pair(x, field, gold, e))
            return false;
    }
    return false;
}

static bool correlate(evaluation *x, ses_err *e)
{
    double *work = ses_alloc_array(x->n, 2 * sizeof *work, e);
    x->s->spearman = x->s->pearson = NAN;
    if (work && x->n > 1) {
        x->s->pearson = ses_pearson(x->gold, x->cosine, x->n);
        x->s->spearman = ses_spearman(x->gold, x->cosine, x->n, work);
    }
    ses_free(work);
    return work != NULL;
}

bool ses_word_pairs_evaluate(ses_word_pairs_score *s, const ses_vectors *v, const ses_folded_words *words,
                             const char *path, const ses_word_pairs_options *o, ses_err *e)
{
    evaluation x = { .v = v, .words = words, .o = o, .s = s };
    ses_text_reader in = { 0 };
    *s = (ses_word_pairs_score){ 0 };
    x.x = ses_alloc_array((size_t)ses_vectors_dim(v), 2 * sizeof *x.x, e);
    x.y = x.x ? x.x + ses_vectors_dim(v) : NULL;
    bool ok = x.x &&
              ((ses_text_reader_open(&in, path, MAX_LINE, e) && read_pairs(&x, &in, e)) ||
               ses_wrap(e, "%s", path)) &&
              correlate(&x, e);
    ses_text_reader_free(&in);
    ses_buf_free(&x.scratch);
    ses_free(x.gold);
    ses_free(x.cosine);
    ses_free(x.x);
    return ok;
}
