/* Functions on rows of float32 vectors: scaling, similarity, and fewer bits per number as
 * sentence-transformers defines them. */
#include "binding.h"

#include <float.h>
#include <math.h>

/* A float32 array with one or two axes, as rows. */
typedef struct rows {
    Py_buffer buffer;
    const float *x;
    int64_t n, width;
} rows;

static bool read_rows(PyObject *o, const char *what, rows *out)
{
    if (!ses_py_buffer(o, what, SES_F32, 2, &out->buffer)) return false;
    const Py_buffer *b = &out->buffer;
    out->x = b->buf;
    out->n = b->ndim == 2 ? b->shape[0] : 1;
    out->width = b->shape[b->ndim - 1];
    return true;
}

/* ---- truncation and normalization ---- */

static void normalize_row(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    float norm = fmaxf((float)sqrt(sum), 1e-12f);
    for (int64_t i = 0; i < n; i++) x[i] /= norm;
}

PyObject *ses_py_trim(PyObject *module, PyObject *args)
{
    const ses_py_state *st = PyModule_GetState(module);
    PyObject *o;
    long long dim;
    int normalize;
    rows in;
    if (!PyArg_ParseTuple(args, "OLp:trim", &o, &dim, &normalize) || !read_rows(o, "embeddings", &in))
        return NULL;
    int64_t width = dim > 0 && dim < in.width ? dim : in.width, shape[2] = { in.n, width };
    ses_py_array *out = ses_py_array_new(st, SES_F32, 2, shape);
    for (int64_t i = 0; out && i < in.n; i++) {
        float *to = (float *)out->data + i * width;
        if (width) memcpy(to, in.x + i * in.width, (size_t)width * sizeof *to);
        if (normalize) normalize_row(to, width);
    }
    PyBuffer_Release(&in.buffer);
    return (PyObject *)out;
}

/* ---- similarity ---- */

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static double cosine(const float *a, const float *b, int64_t n)
{
    double la = sqrt(dot(a, a, n)), lb = sqrt(dot(b, b, n));
    return dot(a, b, n) / (fmax(la, 1e-12) * fmax(lb, 1e-12));
}

static double euclidean(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return -sqrt(sum);
}

static double manhattan(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs((double)a[i] - (double)b[i]);
    return -sum;
}

typedef double similarity_fn(const float *a, const float *b, int64_t n);

static similarity_fn *find_similarity(const char *name)
{
    static const struct {
        const char *name;
        similarity_fn *fn;
    } known[] = {
        { "cosine", cosine }, { "dot", dot }, { "euclidean", euclidean }, { "manhattan", manhattan }
    };
    for (size_t i = 0; i < SES_LEN(known); i++)
        if (!strcmp(known[i].name, name)) return known[i].fn;
    PyErr_Format(PyExc_ValueError, "similarity must be cosine, dot, euclidean or manhattan, not \"%s\"",
                 name);
    return NULL;
}

/* [a rows, b rows], or with `pairwise` row i of a with row i of b. */
static ses_py_array *compare(const ses_py_state *st, const rows *a, const rows *b, similarity_fn *fn,
                             bool pairwise)
{
    if (a->width != b->width || (pairwise && a->n != b->n)) {
        PyErr_Format(PyExc_ValueError, "arrays of shapes (%lld, %lld) and (%lld, %lld) cannot be compared",
                     (long long)a->n, (long long)a->width, (long long)b->n, (long long)b->width);
        return NULL;
    }
    int64_t shape[2] = { a->n, b->n };
    ses_py_array *out = ses_py_array_new(st, SES_F32, pairwise ? 1 : 2, shape);
    if (!out) return NULL;
    float *to = out->data;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = pairwise ? i : 0; j < (pairwise ? i + 1 : b->n); j++)
            *to++ = (float)fn(a->x + i * a->width, b->x + j * b->width, a->width);
    Py_END_ALLOW_THREADS;
    return out;
}

PyObject *ses_py_similarity(PyObject *module, PyObject *args)
{
    PyObject *first, *second;
    const char *name;
    int pairwise = 0;
    rows a, b;
    ses_py_array *out = NULL;
    if (!PyArg_ParseTuple(args, "OOs|p:similarity", &first, &second, &name, &pairwise)) return NULL;
    similarity_fn *fn = find_similarity(name);
    if (!fn || !read_rows(first, "the first array", &a)) return NULL;
    if (read_rows(second, "the second array", &b)) {
        out = compare(PyModule_GetState(module), &a, &b, fn, pairwise);
        PyBuffer_Release(&b.buffer);
    }
    PyBuffer_Release(&a.buffer);
    return (PyObject *)out;
}

/* ---- fewer bits ---- */

/* 256 buckets between the minimum and the maximum of each column. */
static void to_bytes(const rows *in, uint8_t *to, int offset)
{
    for (int64_t c = 0; c < in->width; c++) {
        float low = FLT_MAX, high = -FLT_MAX;
        for (int64_t i = 0; i < in->n; i++) {
            float x = in->x[i * in->width + c];
            if (x < low) low = x;
            if (x > high) high = x;
        }
        float step = (high - low) / 255;
        if (!(step > 0)) step = 1;
        for (int64_t i = 0; i < in->n; i++) {
            float q = floorf((in->x[i * in->width + c] - low) / step);
            to[i * in->width + c] = (uint8_t)((int)(q < 0 ? 0 : q > 255 ? 255 : q) - offset);
        }
    }
}

/* A bit for each number above 0, the first one the highest of its byte. */
static void to_bits(const rows *in, uint8_t *to, int offset)
{
    int64_t bytes = (in->width + 7) / 8;
    for (int64_t i = 0; i < in->n; i++)
        for (int64_t k = 0; k < bytes; k++) {
            int byte = 0;
            for (int64_t c = 8 * k; c < 8 * k + 8; c++)
                byte = 2 * byte + (c < in->width && in->x[i * in->width + c] > 0);
            to[i * bytes + k] = (uint8_t)(byte - offset);
        }
}

PyObject *ses_py_quantize(PyObject *module, PyObject *args)
{
    const ses_py_state *st = PyModule_GetState(module);
    PyObject *o;
    const char *precision;
    rows in;
    if (!PyArg_ParseTuple(args, "Os:quantize", &o, &precision)) return NULL;
    bool is_unsigned = precision[0] == 'u', bits = strstr(precision, "binary") != NULL;
    const char *kind = precision + is_unsigned;
    if (strcmp(kind, "int8") && strcmp(kind, "binary")) {
        PyErr_Format(PyExc_ValueError,
                     "precision must be float32, int8, uint8, binary or ubinary, not \"%s\"", precision);
        return NULL;
    }
    if (!read_rows(o, "embeddings", &in)) return NULL;
    ses_py_array *out = NULL;
    int64_t shape[2] = { in.n, bits ? (in.width + 7) / 8 : in.width };
    if (!bits && in.n == 1)
        PyErr_Format(PyExc_ValueError,
                     "precision \"%s\" needs several texts: their vectors give the range of each "
                     "number",
                     precision);
    else
        out = ses_py_array_new(st, is_unsigned ? SES_U8 : SES_I8, 2, shape);
    if (out) (bits ? to_bits : to_bytes)(&in, out->data, is_unsigned ? 0 : 128);
    PyBuffer_Release(&in.buffer);
    return (PyObject *)out;
}
