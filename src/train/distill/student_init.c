/* First weights of a student: the teacher's that fit. */
#include "student_config.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The teacher's name of the student's "layer.3.ffn.up.weight"; false: too long. */
static bool teacher_name(const char *ours, const int64_t *layer, int64_t n_layers, char *buf, size_t n)
{
    const char *at = strstr(ours, "layer.");
    if (!at || (at != ours && at[-1] != '.')) return snprintf(buf, n, "%s", ours) < (int)n;
    char *rest;
    long long i = strtoll(at + 6, &rest, 10);
    if (i < 0 || i >= n_layers) return false;
    return snprintf(buf, n, "%.*s%lld%s", (int)(at + 6 - ours), ours, (long long)layer[i], rest) < (int)n;
}

/* Number of layers whose parameters start with prefix. */
static int64_t count_layers(const ses_store *s, const char *prefix)
{
    int64_t max = 0;
    size_t n = strlen(prefix);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const char *name = ses_store_at(s, i)->name;
        if (strncmp(name, prefix, n)) continue;
        int64_t k = strtoll(name + n, NULL, 10) + 1;
        if (k > max) max = k;
    }
    return max;
}

/* The values of q in host memory, to be freed. */
static ses_real *read_param(const ses_store *from, const ses_param *q, ses_err *e)
{
    ses_device *dev = ses_store_device(from);
    size_t bytes = (size_t)ses_count(q->tensor) * sizeof(ses_real);
    if (!q->tensor->f) {
        ses_fail(e, SES_EARG, "%s: the teacher holds it quantized only: open it without packing", q->name);
        return NULL;
    }
    ses_real *host = ses_alloc_aligned(bytes, e);
    if (host) dev->mem->download(dev, host, ses_master_data(q->tensor), bytes);
    return host;
}

static void write_param(ses_store *to, const ses_param *p, const ses_real *host)
{
    ses_device *dev = ses_store_device(to);
    dev->mem->upload(dev, ses_master_data(p->tensor), host, (size_t)ses_count(p->tensor) * sizeof *host);
}

static bool copy_param(ses_store *to, const ses_param *p, const ses_store *from, const ses_param *q,
                       ses_err *e)
{
    ses_real *host = read_param(from, q, e);
    if (host) write_param(to, p, host);
    ses_free(host);
    return host != NULL;
}

/* The teacher's two factors of p, b [out, rank] and a [rank, in], whose product has p's shape. */
typedef struct factors {
    const ses_param *a, *b;
    int64_t out, in, rank;
    bool turned; /* p is [in, out] */
} factors;

/* name: the teacher's of p. Factors are name_a and name_b; factors of the token table are name_a and name.
 * False: none, or the student has factors, too. */
static bool find_factors(factors *f, const ses_store *to, const ses_param *p, const ses_store *from,
                         const char *name)
{
    char other[256];
    const ses_param *same = ses_store_find(from, name);
    if (snprintf(other, sizeof other, "%s_a", p->name) >= (int)sizeof other || ses_store_find(to, other))
        return false;
    *f = (factors){ .turned = p->dense && p->layout == SES_IN_OUT };
    if (snprintf(other, sizeof other, "%s_a", name) >= (int)sizeof other) return false;
    f->a = ses_store_find(from, other);
    other[strlen(other) - 1] = 'b';
    f->b = same ? same : ses_store_find(from, other);
    if (!f->a || !f->b || ses_rank(p->tensor) != 2) return false;
    f->out = p->tensor->dim[f->turned], f->in = p->tensor->dim[!f->turned];
    f->rank = f->a->tensor->dim[0];
    return f->b->tensor->dim[0] == f->out && f->b->tensor->dim[1] == f->rank && f->a->tensor->dim[1] == f->in;
}

/* p = b a */
static bool copy_product(ses_store *to, const ses_param *p, const ses_store *from, const factors *f,
                         ses_err *e)
{
    ses_real *a = read_param(from, f->a, e), *b = a ? read_param(from, f->b, e) : NULL;
    ses_real *w = b ? ses_alloc_aligned((size_t)(f->out * f->in) * sizeof *w, e) : NULL;
    double *row = w ? ses_alloc_array((size_t)f->in, sizeof *row, e) : NULL;
    for (int64_t i = 0; row && i < f->out; i++) {
        memset(row, 0, (size_t)f->in * sizeof *row);
        for (int64_t k = 0; k < f->rank; k++)
            for (int64_t j = 0; j < f->in; j++)
                row[j] += (double)b[i * f->rank + k] * (double)a[k * f->in + j];
        for (int64_t j = 0; j < f->in; j++) w[f->turned ? j * f->out + i : i * f->in + j] = (ses_real)row[j];
    }
    bool ok = row != NULL;
    if (ok) write_param(to, p, w);
    ses_free(row);
    ses_free(w);
    ses_free(b);
    ses_free(a);
    return ok;
}

/* Layers of the encoder (or the only ones) and of the decoder. */
typedef struct layer_map {
    const char *prefix;
    int64_t n, layer[SES_MAX_LAYERS];
} layer_map;

static bool choose_layers(layer_map *m, const char *prefix, const ses_store *to, const ses_store *from,
                          const char *copy, ses_err *e)
{
    int64_t t = count_layers(from, prefix);
    m->prefix = prefix;
    m->n = count_layers(to, prefix);
    if (m->n > SES_MAX_LAYERS) return ses_fail(e, SES_EARG, "the student has %lld layers", (long long)m->n);
    return !m->n || !t || ses_student_layers(copy, m->n, t, m->layer, e);
}

static bool copy_all(ses_store *to, const ses_store *from, const layer_map map[2], size_t *copied, ses_err *e)
{
    for (size_t i = 0; i < ses_store_count(to); i++) {
        const ses_param *p = ses_store_at(to, i);
        const layer_map *m = &map[!strncmp(p->name, "decoder.", 8)];
        char name[256];
        if (!teacher_name(p->name, m->layer, m->n, name, sizeof name)) continue;
        const ses_param *q = ses_store_find(from, name);
        factors f;
        if (find_factors(&f, to, p, from, name)) {
            if (!copy_product(to, p, from, &f, e)) return false;
        } else if (q && ses_same_shape(p->tensor, q->tensor)) {
            if (!copy_param(to, p, from, q, e)) return false;
        } else {
            continue;
        }
        ++*copied;
    }
    return true;
}

bool ses_student_init(ses_model *student, const ses_model *teacher, const char *copy, size_t *copied,
                      ses_err *e)
{
    ses_store *to = ses_model_store(student);
    const ses_store *from = ses_model_store(teacher);
    *copied = 0;
    if (copy && !strcmp(copy, "none"))
        return ses_fail(e, SES_EUSAGE, "copy-layers none: nothing of the teacher would be copied");
    if (ses_model_vocab_size(student) != ses_model_vocab_size(teacher))
        return ses_fail(e, SES_EARG, "the student's vocabulary has %lld tokens, the teacher's %lld",
                        (long long)ses_model_vocab_size(student), (long long)ses_model_vocab_size(teacher));
    layer_map *map = ses_alloc_array(2, sizeof *map, e);
    bool ok = map && choose_layers(&map[0], "layer.", to, from, copy, e) &&
              choose_layers(&map[1], "decoder.layer.", to, from, copy, e) &&
              copy_all(to, from, map, copied, e);
    ses_free(map);
    if (!ok) return false;
    ses_store_sync_bf16(to);
    return *copied > 0 || ses_fail(e, SES_EARG, "no tensor of the teacher fits the student");
}
