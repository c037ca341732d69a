/* static: vectors of a file (sesame/vectors.h). A word without one is looked up in lower case, then with its
 * digits replaced by 0; else its vector is zero. */
#include "word_stack.h"

#include "base/str.h"
#include "sesame/vectors.h"

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    (void)dev;
    ses_vectors *v = ses_vectors_open(path, e);
    if (v && ses_vectors_read_words(v, 0, e)) return *width = ses_vectors_dim(v), v;
    ses_vectors_free(v);
    return NULL;
}

static void close(void *self) { ses_vectors_free(self); }

static bool find(const ses_vectors *v, const ses_string *word, float *out, ses_err *e)
{
    bool found = false;
    ses_buf b = { 0 };
    if (ses_vectors_find(v, word->p, word->n) >= 0)
        return ses_vectors_lookup(v, word->p, word->n, out, &found, e);
    ses_buf_append(&b, word->p, word->n);
    bool ok = ses_buf_ok(&b, e);
    for (size_t i = 0; ok && i < b.len; i++)
        if (b.data[i] >= 'A' && b.data[i] <= 'Z') b.data[i] = (char)(b.data[i] - 'A' + 'a');
    if (ok && ses_vectors_find(v, b.data, b.len) < 0)
        for (size_t i = 0; i < b.len; i++)
            if (b.data[i] >= '0' && b.data[i] <= '9') b.data[i] = '0';
    bool known = ok && ses_vectors_find(v, b.data, b.len) >= 0;
    ok = ok &&
         ses_vectors_lookup(v, known ? b.data : word->p, word->n, out, &found, e); /* or of its subwords */
    ses_buf_free(&b);
    return ok;
}

static bool embed(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e)
{
    for (size_t i = 0; i < s->first[s->n]; i++)
        if (s->word[i].n && !find(self, &s->word[i], out + (int64_t)i * stride, e)) return false;
    return true;
}

static bool save(const void *self, const char *path, ses_err *e)
{
    const char *format = ses_vectors_has_subwords(self) ? ses_vectors_format(self) : "safetensors";
    return ses_vectors_save(self, format, path, NULL, e);
}

const ses_word_embedder_kind ses_word_embedder_static = {
    .name = "static",
    .value = "FILE",
    .context_free = true,
    .open = open,
    .close = close,
    .embed = embed,
    .save = save,
};
