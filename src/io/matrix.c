/* Readers of .npy files and of tables of numbers. */
#include "matrix.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/half.h"
#include "base/number.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

void ses_matrix_free(ses_matrix *m)
{
    ses_free(m->x);
    *m = (ses_matrix){ 0 };
}

/* ---- .npy ---- */

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == ',' || *c->p == '\n')) c->p++;
}

static bool accept(cursor *c, const char *s)
{
    size_t n = strlen(s);
    skip(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, s, n) != 0) return false;
    c->p += n;
    return true;
}

static bool accept_count(cursor *c, size_t *x)
{
    size_t digits = 0;
    skip(c);
    *x = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, digits++)
        if (!ses_mul_size(*x, 10, x) || !ses_add_size(*x, (size_t)(*c->p - '0'), x)) return false;
    return digits > 0;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } with keys in any order. */
static bool read_header(cursor c, ses_npy_header *h, ses_err *e)
{
    bool type = false, order = false, shape = false;
    if (!accept(&c, "{")) return ses_fail(e, SES_EFORMAT, "no .npy header");
    while (!accept(&c, "}")) {
        if (accept(&c, "'descr':") && (accept(&c, "'<") || accept(&c, "'|")) && c.end - c.p > 2 &&
            c.p[2] == '\'') {
            h->kind = c.p[0];
            h->size = (size_t)(c.p[1] - '0');
            c.p += 3;
            type = true;
        } else if (accept(&c, "'fortran_order':")) {
            order = accept(&c, "False");
            if (!order)
                return ses_fail(e, SES_EUNSUPPORTED,
                                "Fortran order is not supported: save the array in C order");
        } else if (accept(&c, "'shape':") && accept(&c, "(")) {
            for (size_t x; h->dims < 2 && accept_count(&c, &x);) h->dim[h->dims++] = x;
            shape = h->dims && accept(&c, ")");
            if (!shape) return ses_fail(e, SES_EUNSUPPORTED, "expected a shape of one or two axes");
        } else
            return ses_fail(
                e, SES_EUNSUPPORTED,
                "unsupported .npy header: expected descr, fortran_order and shape of little-endian numbers");
    }
    return (type && order && shape) || ses_fail(e, SES_EFORMAT, "descr, fortran_order or shape is missing");
}

static bool read_element(const ses_npy_header *h, const unsigned char *p, float *out)
{
    uint64_t bits = 0;
    for (size_t k = h->size; k-- > 0;) bits = bits << 8 | p[k];
    if (h->kind == 'f' && h->size == 4) return memcpy(out, &(uint32_t){ (uint32_t)bits }, 4), true;
    if (h->kind == 'f' && h->size == 2) return *out = ses_f16_to_f32((uint16_t)bits), true;
    if (h->kind == 'f' && h->size == 8) {
        double x;
        memcpy(&x, &bits, 8);
        return *out = (float)x, true;
    }
    if (h->kind == 'b' || (h->kind == 'u' && h->size == 1)) return *out = (float)bits, true;
    uint64_t sign = (uint64_t)1 << (8 * h->size - 1);
    return *out = (float)(int64_t)((bits ^ sign) - sign), true;
}

static bool is_supported(const ses_npy_header *h)
{
    if (h->kind == 'f') return h->size == 2 || h->size == 4 || h->size == 8;
    if (h->kind == 'i') return h->size == 1 || h->size == 2 || h->size == 4 || h->size == 8;
    return (h->kind == 'u' || h->kind == 'b') && h->size == 1;
}

bool ses_npy_read(ses_npy_header *h, const void *bytes, size_t n, ses_err *e)
{
    const unsigned char *p = bytes;
    size_t count, want;
    *h = (ses_npy_header){ .dim = { 1, 1 } };
    if (n < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3)
        return ses_fail(e, SES_EFORMAT, "not a .npy file of version 1 to 3");
    size_t begin = p[6] == 1 ? 10 : 12, len = p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (len > n - begin) return ses_fail(e, SES_EFORMAT, "truncated header");
    if (!read_header((cursor){ (const char *)p + begin, (const char *)p + begin + len }, h, e)) return false;
    if (!is_supported(h))
        return ses_fail(e, SES_EUNSUPPORTED, "unsupported dtype, expected one of f2 f4 f8 i1 i2 i4 i8 u1 b1");
    if (!ses_mul_size(h->dim[0], h->dim[1], &count) || !ses_mul_size(count, h->size, &want) ||
        want != n - begin - len)
        return ses_fail(e, SES_EFORMAT, "%zu bytes of data, expected %zu x %zu elements of %zu bytes",
                        n - begin - len, h->dim[0], h->dim[1], h->size);
    h->data = p + begin + len;
    return true;
}

bool ses_matrix_from_npy(ses_matrix *m, const void *bytes, size_t n, ses_err *e)
{
    ses_npy_header h;
    if (!ses_npy_read(&h, bytes, n, e)) return false;
    size_t count = h.dim[0] * h.dim[1];
    float *x = ses_alloc_array(count, sizeof *x, e);
    if (!x) return false;
    for (size_t i = 0; i < count; i++)
        if (!read_element(&h, h.data + i * h.size, &x[i]) || !isfinite(x[i])) {
            ses_free(x);
            return ses_fail(e, SES_EFORMAT, "row %zu, column %zu: not a finite number", i / h.dim[1] + 1,
                            i % h.dim[1] + 1);
        }
    *m = (ses_matrix){ h.dim[0], h.dim[1], x };
    return true;
}

/* ---- tables ---- */

static bool read_field(const ses_string *f, float *out)
{
    double x;
    if (!ses_parse_number(f->p, f->n, &x)) return false;
    *out = (float)x;
    return isfinite(*out);
}

static bool read_rows(ses_matrix *m, ses_records *r, ses_err *e)
{
    const ses_string *row = NULL;
    size_t cap = 0;
    bool ok = true;
    m->cols = ses_records_field_count(r);
    for (; (ok = ses_records_next(r, &row, e)) && row; m->rows++) {
        if (m->rows == cap) {
            size_t more = cap ? 2 * cap : 64, count;
            float *x =
                ses_mul_size(more, m->cols, &count) ? ses_realloc_array(m->x, count, sizeof *x, e) : NULL;
            if (!x) return ses_fail(e, SES_ENOMEM, "%zu rows of %zu numbers", more, m->cols);
            m->x = x;
            cap = more;
        }
        for (size_t k = 0; k < m->cols; k++)
            if (!read_field(&row[k], &m->x[m->rows * m->cols + k]))
                return ses_fail(e, SES_EFORMAT, "line %llu, field %zu: \"%s\" is not a finite number",
                                (unsigned long long)ses_records_line(r), k + 1,
                                ses_quoted_of(row[k].p, row[k].n).s);
    }
    return ok;
}

bool ses_matrix_read(ses_matrix *m, const char *path, const ses_records_options *o, ses_err *e)
{
    *m = (ses_matrix){ 0 };
    size_t n = strlen(path);
    bool ok;
    if (n > 4 && !strcmp(path + n - 4, ".npy")) {
        ses_mmap map;
        if (!ses_mmap_open(&map, path, e)) return false;
        ok = ses_matrix_from_npy(m, map.data, map.size, e);
        ses_mmap_free(&map);
        return ok || ses_wrap(e, "%s", path);
    }
    ses_records *r = ses_records_open(path, o, e);
    if (!r) return false;
    ok = read_rows(m, r, e) || ses_wrap(e, "%s", path);
    ses_records_free(r);
    if (!ok) ses_matrix_free(m);
    return ok;
}
