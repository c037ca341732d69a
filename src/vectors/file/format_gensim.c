/* gensim's KeyedVectors.save (.kv): a pickle with the words and, unless it is large, the matrix; a large
 * matrix is in FILE.vectors.npy. The pickle is read as data (io/pickle.h): nothing in it is executed. */
#include "base/alloc.h"
#include "io/matrix.h"
#include "io/pickle.h"
#include "vectors/vectors_impl.h"

#include <inttypes.h>
#include <string.h>

enum { KEYED_VECTORS = 1, ARRAY, DTYPE };

static const ses_pickle_global allowed[] = {
    { "gensim.models.keyedvectors", "KeyedVectors", SES_PICKLE_CLASS, KEYED_VECTORS },
    { "gensim.models.keyedvectors", "Word2VecKeyedVectors", SES_PICKLE_CLASS, KEYED_VECTORS }, /* gensim 3 */
    { "gensim.models.keyedvectors", "Vocab", SES_PICKLE_CLASS, 0 },
    { "numpy._core.multiarray", "_reconstruct", SES_PICKLE_CLASS, ARRAY },
    { "numpy.core.multiarray", "_reconstruct", SES_PICKLE_CLASS, ARRAY }, /* numpy 1 */
    { "numpy._core.multiarray", "scalar", SES_PICKLE_FUNCTION, 0 },
    { "numpy.core.multiarray", "scalar", SES_PICKLE_FUNCTION, 0 },
    { "numpy", "ndarray", SES_PICKLE_NAME_ONLY, 0 },
    { "numpy", "dtype", SES_PICKLE_CLASS, DTYPE },
};

typedef struct keyed {
    ses_pickle *pickle;
    const ses_pickle_node *words; /* list of strings */
    ses_pickle_iter at;
    ses_mmap npy;
    const unsigned char *data; /* f32 [V, d] */
} keyed;

static bool detect(const ses_vectors *v)
{
    return !v->is_folder && v->n > 2 && (unsigned char)v->p[0] == 0x80 && v->p[1] >= 2 && v->p[1] <= 5;
}

static bool is_call_of(const ses_pickle *p, const ses_pickle_node *x, int id)
{
    const ses_pickle_global *g = ses_pickle_kind_of(x) == SES_PICKLE_CALL ? ses_pickle_global_of(p, x) : NULL;
    return g && g->id == id;
}

/* An attribute of the object by one of its names; NULL: absent. */
static const ses_pickle_node *attribute(const ses_pickle *p, const ses_pickle_node *state, const char *name,
                                        const char *old_name)
{
    const ses_pickle_node *key, *value;
    for (ses_pickle_iter it = ses_pickle_iter_of(state); ses_pickle_next(p, &it, &key, &value);) {
        size_t n;
        const char *s = ses_pickle_string(p, key, &n);
        if (s && (ses_equal(s, n, name) || ses_equal(s, n, old_name))) return value;
    }
    return NULL;
}

/* dtype('f4') with the byte order '<'. */
static bool is_f4(const ses_pickle *p, const ses_pickle_node *x)
{
    const ses_pickle_node *args = ses_pickle_payload(p, x), *state = ses_pickle_state(p, x);
    size_t n;
    if (!is_call_of(p, x, DTYPE) || ses_pickle_len(args) < 1) return false;
    const char *s = ses_pickle_string(p, ses_pickle_at(p, args, 0), &n);
    if (!s || !ses_equal(s, n, "f4")) return false;
    if (!state || ses_pickle_kind_of(state) != SES_PICKLE_TUPLE || ses_pickle_len(state) < 2) return false;
    s = ses_pickle_string(p, ses_pickle_at(p, state, 1), &n);
    return s && (ses_equal(s, n, "<") || ses_equal(s, n, "="));
}

/* State of an array: (version, shape, dtype, is Fortran order, bytes). */
static bool take_array(keyed *k, const ses_pickle_node *x, size_t dim[2], ses_err *e)
{
    const ses_pickle *p = k->pickle;
    const ses_pickle_node *state = is_call_of(p, x, ARRAY) ? ses_pickle_state(p, x) : NULL;
    if (!state || ses_pickle_kind_of(state) != SES_PICKLE_TUPLE || ses_pickle_len(state) != 5)
        return ses_fail(e, SES_EUNSUPPORTED, "the matrix is not a plain numpy array");
    const ses_pickle_node *shape = ses_pickle_at(p, state, 1);
    int64_t size[2];
    bool fortran = true;
    if (ses_pickle_kind_of(shape) != SES_PICKLE_TUPLE || ses_pickle_len(shape) != 2 ||
        !ses_pickle_int(ses_pickle_at(p, shape, 0), &size[0]) ||
        !ses_pickle_int(ses_pickle_at(p, shape, 1), &size[1]) || size[0] < 0 || size[1] < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "the matrix does not have two axes");
    if (!is_f4(p, ses_pickle_at(p, state, 2)) || !ses_pickle_bool(ses_pickle_at(p, state, 3), &fortran) ||
        fortran)
        return ses_fail(e, SES_EUNSUPPORTED, "expected a matrix of little-endian float32 in C order");
    size_t n, count, want;
    k->data = ses_pickle_bytes(p, ses_pickle_at(p, state, 4), &n);
    dim[0] = (size_t)size[0], dim[1] = (size_t)size[1];
    if (!k->data || !ses_mul_size(dim[0], dim[1], &count) || !ses_mul_size(count, 4, &want) || want != n)
        return ses_fail(e, SES_EFORMAT, "%zu bytes of numbers, expected %zu x %zu float32", n, dim[0],
                        dim[1]);
    return true;
}

/* FILE.vectors.npy */
static bool take_npy(ses_vectors *v, const char *name, size_t dim[2], ses_err *e)
{
    keyed *k = v->extra;
    ses_npy_header h;
    ses_buf path = { 0 };
    ses_buf_appendf(&path, "%s.%s.npy", v->path, name);
    bool ok = ses_buf_ok(&path, e) && ses_mmap_open(&k->npy, path.data, e);
    if (ok && !ses_npy_read(&h, k->npy.data, k->npy.size, e)) ok = ses_wrap(e, "%s", path.data);
    if (ok && (h.kind != 'f' || h.size != 4 || h.dims != 2))
        ok = ses_fail(e, SES_EUNSUPPORTED, "%s: expected a matrix of float32", path.data);
    ses_buf_free(&path);
    if (!ok) return false;
    k->data = h.data, dim[0] = h.dim[0], dim[1] = h.dim[1];
    return true;
}

/* The attribute with the matrix if it is in a file of its own: the list __numpys names such attributes. */
static const char *stored_apart(const ses_pickle *p, const ses_pickle_node *state)
{
    const ses_pickle_node *list = attribute(p, state, "__numpys", "__numpys"), *x;
    if (!list || ses_pickle_kind_of(list) != SES_PICKLE_LIST) return NULL;
    for (ses_pickle_iter it = ses_pickle_iter_of(list); (x = ses_pickle_next_item(p, &it));) {
        size_t n;
        const char *s = ses_pickle_string(p, x, &n);
        if (s && ses_equal(s, n, "vectors")) return "vectors";
        if (s && ses_equal(s, n, "syn0")) return "syn0";
    }
    return NULL;
}

static bool open(ses_vectors *v, ses_err *e)
{
    keyed *k = v->extra = ses_alloc(sizeof *k, e);
    if (!k || !(k->pickle = ses_pickle_read_large(v->p, v->n, allowed, SES_LEN(allowed), e)))
        return k && ses_wrap(e, "not plain KeyedVectors of gensim (of a model, save model.wv)");
    const ses_pickle *p = k->pickle;
    const ses_pickle_node *root = ses_pickle_root(p);
    const ses_pickle_node *state = is_call_of(p, root, KEYED_VECTORS) ? ses_pickle_state(p, root) : NULL;
    if (!state || ses_pickle_kind_of(state) != SES_PICKLE_DICT)
        return ses_fail(e, SES_EFORMAT, "the pickle does not hold KeyedVectors of gensim");
    k->words = attribute(p, state, "index_to_key", "index2word");
    if (!k->words || ses_pickle_kind_of(k->words) != SES_PICKLE_LIST)
        return ses_fail(e, SES_EFORMAT, "no list index_to_key");
    const char *apart = stored_apart(p, state);
    const ses_pickle_node *matrix = attribute(p, state, "vectors", "syn0");
    size_t dim[2] = { 0 };
    if (!apart && !matrix) return ses_fail(e, SES_EFORMAT, "no array vectors");
    if (!(apart ? take_npy(v, apart, dim, e) : take_array(k, matrix, dim, e))) return false;
    v->stated = (int64_t)ses_pickle_len(k->words);
    v->dim = dim[1] <= SES_VECTORS_MAX_DIM ? (int64_t)dim[1] : 0;
    k->at = ses_pickle_iter_of(k->words);
    return dim[0] == (size_t)v->stated ||
           ses_fail(e, SES_EFORMAT, "%zu vectors for %" PRId64 " words", dim[0], v->stated);
}

static bool next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    keyed *k = v->extra;
    const ses_pickle_node *x = ses_pickle_next_item(k->pickle, &k->at);
    size_t n;
    if (!x) return true;
    const char *s = ses_pickle_string(k->pickle, x, &n);
    if (!s)
        return ses_fail(e, SES_EUNSUPPORTED, "key %" PRId64 " is %s, expected a string", v->read,
                        ses_pickle_kind_name(ses_pickle_kind_of(x)));
    if (!ses_vector_word_check(s, n, e)) return ses_wrap(e, "key %" PRId64, v->read);
    *row = (ses_vector_row){ s, k->data + (size_t)v->read * (size_t)v->dim * 4, (uint32_t)n };
    return true;
}

static void close_keyed(ses_vectors *v)
{
    keyed *k = v->extra;
    if (!k) return;
    ses_pickle_free(k->pickle);
    ses_mmap_free(&k->npy);
    ses_free(k);
}

const ses_word_format ses_word_format_gensim = {
    .name = "gensim",
    .title = "gensim KeyedVectors",
    .detect = detect,
    .open = open,
    .next = next,
    .close = close_keyed,
};
