/* Vectors in memory as ses_vectors. */
#include "vector_table.h"

#include "base/alloc.h"
#include "vectors_impl.h"

static bool next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    const ses_vector_table *t = v->extra;
    if (v->at == t->vocab->n) return true;
    const ses_vocab_word *w = &t->vocab->word[v->at++];
    *row = (ses_vector_row){ w->text, w, w->len };
    return ses_vector_word_check(w->text, w->len, e);
}

static bool get(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e)
{
    const ses_vector_table *t = v->extra;
    t->row(t->ctx, (const ses_vocab_word *)row->data - t->vocab->word, out);
    return ses_vector_check_finite(v, out, e);
}

static int64_t count(const ses_vectors *v, int64_t i)
{
    const ses_vector_table *t = v->extra;
    return t->vocab->word[i].count;
}

static const ses_word_format table = {
    .name = "table", .title = "vectors in memory", .next = next, .get = get, .count = count
};

ses_vectors *ses_vectors_of_table(const ses_vector_table *t, const char *name, ses_err *e)
{
    ses_vectors *v = ses_vectors_new(name, e);
    if (!v) return NULL;
    v->format = &table;
    v->extra = (void *)t;
    v->dim = t->dim, v->stated = (int64_t)t->vocab->n;
    if (ses_vector_dim_check(t->dim, e) && ses_vectors_read_words(v, 0, e)) return v;
    ses_vectors_free(v);
    return NULL;
}

bool ses_vector_table_save(const ses_vector_table *t, const char *format, const char *path, bool overwrite,
                           ses_err *e)
{
    ses_vectors_save_options o = { .overwrite = overwrite, .full_precision = true };
    ses_vectors *v = ses_vectors_of_table(t, path, e);
    bool ok = v && ses_vectors_save(v, format, path, &o, e);
    ses_vectors_free(v);
    return ok;
}
