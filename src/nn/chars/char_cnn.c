/* Convolutions over the characters of words, as a composition of ops: the windows of a width are rows of
 * concatenated character vectors, a dense layer computes all filters of this width, and the maximum is taken
 * over the rows of a word.
 *
 * All windows behind the end of a word contain padding only and are equal, so one of them is computed:
 * a word of 5 letters has 8 windows instead of 50, with the same maximum. */
#include "char_cnn.h"

int64_t ses_char_filters(const ses_config *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->chars.filters; i++) n += c->chars.count[i];
    return n;
}

void ses_char_cnn_add(ses_char_cnn *k, ses_store *s, const ses_config *c, int64_t out)
{
    int64_t filters = ses_char_filters(c);
    k->table = ses_store_add(s, "chars.table", SES_DIM(SES_CHARS, c->chars.width), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->table);
    for (int i = 0; i < (int)c->chars.filters; i++)
        k->conv[i] = ses_dense_add(s, c->chars.count[i], c->chars.size[i] * c->chars.width, SES_BIAS,
                                   "chars.conv.%d", i);
    for (int i = 0; i < (int)c->chars.highways; i++) {
        k->transform[i] = ses_dense_add(s, filters, filters, SES_BIAS, "chars.highway.%d.transform", i);
        k->carry[i] = ses_dense_add(s, filters, filters, SES_BIAS, "chars.highway.%d.carry", i);
    }
    if (filters != out) k->project = ses_dense_add(s, out, filters, SES_BIAS, "chars.project");
}

/* Windows of one width: word w has windows cu[w] .. cu[w + 1] - 1. */
typedef struct windows {
    int32_t *cu, *start; /* start: index of the window's first character in chars */
    int64_t n;
} windows;

/* Characters before the padding. */
static int64_t used_chars(const int16_t *chars, int64_t per_word)
{
    while (per_word && chars[per_word - 1] == SES_CHAR_PAD) per_word--;
    return per_word;
}

static bool find_windows(windows *v, ses_tape *t, const int16_t *chars, int64_t n, int64_t per_word,
                         int64_t size)
{
    int64_t all = per_word - size + 1;
    *v = (windows){ .cu = ses_tape_host_alloc(t, (size_t)n + 1, sizeof *v->cu) };
    if (!v->cu) return false;
    for (int64_t w = 0; w < n; w++) {
        int64_t used = used_chars(chars + w * per_word, per_word);
        v->n += used < all ? used + 1 : all;
        v->cu[w + 1] = (int32_t)v->n;
    }
    v->start = ses_tape_host_alloc(t, (size_t)v->n, sizeof *v->start);
    for (int64_t w = 0; v->start && w < n; w++)
        for (int32_t i = v->cu[w]; i < v->cu[w + 1]; i++)
            v->start[i] = (int32_t)(w * per_word + i - v->cu[w]);
    return v->start != NULL;
}

/* All filters of one width: [n, count]. */
static ses_tensor *convolve(const ses_char_cnn *k, ses_tape *t, const ses_config *c, const int16_t *chars,
                            int64_t n, int64_t filter)
{
    windows v;
    int64_t size = c->chars.size[filter];
    if (!find_windows(&v, t, chars, n, c->chars.per_word, size)) return NULL;
    int32_t *id = ses_tape_host_alloc(t, (size_t)(v.n * size), sizeof *id);
    if (!id) return NULL;
    for (int64_t i = 0; i < v.n; i++)
        for (int64_t j = 0; j < size; j++) id[i * size + j] = chars[v.start[i] + j];
    ses_tensor *ids = ses_tape_ints(t, id, v.n * size), *x = ses_embed(t, 1, &k->table, &ids, -1);
    x = x ? ses_reshape(t, x, SES_DIM(v.n, size * c->chars.width)) : NULL;
    if (!x) return NULL;
    x = ses_dense_run(t, k->conv[filter], x, SES_ACT_NONE);
    return ses_activate(t, ses_pool_rows(t, x, ses_tape_ints(t, v.cu, n + 1), SES_POOL_MAX), c->chars.act);
}

/* c relu(x Wt' + bt) + (1 - c) x, c = sigmoid(x Wc' + bc). */
static ses_tensor *highway(const ses_char_cnn *k, ses_tape *t, ses_tensor *x, int64_t i)
{
    ses_tensor *carry = ses_dense_run(t, k->carry[i], x, SES_ACT_SIGMOID),
               *transform = ses_dense_run(t, k->transform[i], x, SES_ACT_RELU);
    return ses_add(t, x, ses_mul(t, carry, ses_add(t, transform, ses_scale(t, x, -1))));
}

ses_tensor *ses_char_cnn_run(const ses_char_cnn *k, ses_tape *t, const ses_config *c, const int16_t *chars,
                             int64_t n)
{
    ses_tensor *part[SES_MAX_FILTERS];
    for (int64_t i = 0; i < c->chars.filters; i++) part[i] = convolve(k, t, c, chars, n, i);
    ses_tensor *x = c->chars.filters > 1 ? ses_concat(t, (int)c->chars.filters, part) : part[0];
    for (int64_t i = 0; i < c->chars.highways; i++) x = highway(k, t, x, i);
    return k->project.w ? ses_dense_run(t, k->project, x, SES_ACT_NONE) : x;
}
