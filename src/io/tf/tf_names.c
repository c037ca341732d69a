/* Gives the variables of a checkpoint transformers' names and layouts, by the rules of its family. */
#include "base/str.h"
#include "tf_family.h"

#include <stdio.h>
#include <string.h>

#define SES_TF_FAMILY(name) extern const ses_tf_family ses_tf_##name;
#include "tf_families.def"
#undef SES_TF_FAMILY

static const ses_tf_family *const families[] = {
#define SES_TF_FAMILY(name) &ses_tf_##name,
#include "tf_families.def"
#undef SES_TF_FAMILY
};

enum { MAX_PARTS = 1024 }; /* tensors that a variable is split into, at most */

/* Last parts of variables, and what becomes of them. */
static const struct leaf {
    const char *from, *to;
    ses_tf_change change;
} leaves[] = {
    { "kernel", "weight", SES_TF_TRANSPOSE }, { "bias", "bias", SES_TF_KEEP },
    { "gamma", "weight", SES_TF_KEEP },       { "beta", "bias", SES_TF_KEEP },
    { "w", "weight", SES_TF_SQUEEZE }, /* GPT-2 */
    { "g", "weight", SES_TF_KEEP },           { "b", "bias", SES_TF_KEEP },
};

/* State of optimizers and of training, by the end of the name. */
static const char *const left_out[] = {
    "global_step",
    "/adam_m",
    "/adam_v",
    "/Adam",
    "/Adam_1",
    "/lamb_m",
    "/lamb_v",
    "/AdamWeightDecayOptimizer",
    "/AdamWeightDecayOptimizer_1",
    "/ExponentialMovingAverage",
    "beta1_power",
    "beta2_power",
    "_slot_m",
    "_slot_v",
    "_slot_vr",
    "_slot_vc",
};

/* ---- names ---- */

/* Digits after *p; moves it. -1: none, or too many. */
static int64_t take_number(const char **p)
{
    int64_t x = 0;
    size_t n = strspn(*p, "0123456789");
    if (!n || n > 6) return -1;
    for (size_t i = 0; i < n; i++) x = 10 * x + *(*p)++ - '0';
    return x;
}

/* Compares up to a last "*" of the pattern; *rest: the text it matches. */
static bool match(const char *pattern, const char *name, int64_t number[2], const char **rest)
{
    number[0] = number[1] = -1;
    for (; *pattern; pattern++) {
        if (*pattern == '#' || *pattern == '@') {
            int64_t x = take_number(&name);
            if (x < 0) return false;
            number[*pattern == '@'] = x;
        } else if (*pattern == '%') {
            size_t n = pattern[1] ? strcspn(name, "/") : strlen(name);
            if (!n) return false;
            name += n;
        } else if (*pattern == '*') {
            *rest = name;
            return true;
        } else if (*pattern != *name++) {
            return false;
        }
    }
    *rest = NULL;
    return !*name;
}

bool ses_tf_match(const char *pattern, const char *name, int64_t number[2])
{
    const char *rest;
    return match(pattern, name, number, &rest) && !rest;
}

typedef struct renamed {
    const char *to; /* NULL: leave it out */
    ses_tf_change change;
    int64_t number[2];
    const char *leaf; /* replaces the "*" of `to` */
} renamed;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* False: no rule applies. */
static bool apply_rule(const ses_tf_rule *r, const char *name, renamed *out)
{
    const char *rest;
    if (!match(r->from, name, out->number, &rest)) return false;
    *out = (renamed){ r->to, r->change, { out->number[0], out->number[1] }, "" };
    if (!rest) return true;
    for (size_t i = 0; i < SES_LEN(leaves); i++) {
        if (strcmp(rest, leaves[i].from)) continue;
        out->leaf = leaves[i].to;
        out->change = leaves[i].change;
        return true;
    }
    return false;
}

/* A variable that no rule knows keeps its name; it is then reported as unexpected. */
static renamed rename_variable(const ses_tf_family *f, const char *name)
{
    renamed out = { name, SES_TF_KEEP, { -1, -1 }, "" };
    static const char module[] = "module/"; /* TensorFlow Hub */
    for (size_t i = 0; i < SES_LEN(left_out); i++)
        if (ends_with(name, left_out[i])) return (renamed){ .to = NULL };
    if (!strncmp(name, module, sizeof module - 1)) name += sizeof module - 1;
    for (size_t i = 0; i < f->n_rules; i++)
        if (apply_rule(&f->rule[i], name, &out)) return out;
    return (renamed){ name, SES_TF_KEEP, { -1, -1 }, "" };
}

static char *write_name(const renamed *r, ses_arena *mem, ses_err *e)
{
    ses_buf b = { 0 };
    for (const char *p = r->to; *p; p++) {
        if (*p == '#' && r->number[0] >= 0)
            ses_buf_appendf(&b, "%lld", (long long)r->number[0]);
        else if (*p == '@' && r->number[1] >= 0)
            ses_buf_appendf(&b, "%lld", (long long)r->number[1]);
        else if (*p == '*' && *r->leaf)
            ses_buf_puts(&b, r->leaf);
        else
            ses_buf_put(&b, *p);
    }
    char *name = ses_buf_ok(&b, e) ? ses_arena_strndup(mem, b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    return name;
}

/* ---- layouts ---- */

/* In tiles, so that neither side is read or written with a large stride all the time. */
static inline void copy_tiles(char *out, const char *in, size_t rows, size_t cols, size_t size)
{
    enum { TILE = 32 };
    for (size_t r = 0; r < rows; r += TILE)
        for (size_t c = 0; c < cols; c += TILE)
            for (size_t i = r; i < rows && i < r + TILE; i++)
                for (size_t j = c; j < cols && j < c + TILE; j++)
                    memcpy(out + (j * rows + i) * size, in + (i * cols + j) * size, size);
}

static bool transpose(ses_tensor_entry *t, ses_arena *mem, ses_err *e)
{
    if (t->rank != 2) return ses_fail(e, SES_EFORMAT, "%d axes, expected 2", t->rank);
    size_t rows = (size_t)t->dim[0], cols = (size_t)t->dim[1], size = t->count ? t->bytes / (rows * cols) : 0;
    char *out = ses_arena_alloc(mem, t->bytes, e);
    if (!out) return false;
    switch (size) { /* a constant size makes the copies single instructions */
    case 0: break;  /* no elements, whatever the other axis */
    case 2: copy_tiles(out, t->data, rows, cols, 2); break;
    case 4: copy_tiles(out, t->data, rows, cols, 4); break;
    case 8: copy_tiles(out, t->data, rows, cols, 8); break;
    default: copy_tiles(out, t->data, rows, cols, size);
    }
    t->data = out;
    t->dim[0] = (int64_t)cols, t->dim[1] = (int64_t)rows;
    return true;
}

static void drop_axis(ses_tensor_entry *t)
{
    t->rank--;
    memmove(t->dim, t->dim + 1, (size_t)t->rank * sizeof *t->dim);
}

/* The number of tensors that a variable becomes. */
static size_t part_count(const ses_tf_family *f, const ses_tf_tensor *t)
{
    renamed r = rename_variable(f, t->name);
    if (!r.to) return 0;
    return r.change == SES_TF_SPLIT && t->rank && t->dim[0] > 0 && t->dim[0] <= MAX_PARTS ? (size_t)t->dim[0]
                                                                                          : 1;
}

static bool add_split(ses_safetensors *s, ses_tensor_entry t, renamed *r, ses_err *e)
{
    int64_t parts = t.rank ? t.dim[0] : 0;
    if (parts < 1 || parts > MAX_PARTS)
        return ses_fail(e, SES_EFORMAT, "%lld layers in its first axis, expected 1 to %d", (long long)parts,
                        MAX_PARTS);
    drop_axis(&t);
    t.count /= parts;
    t.bytes /= (size_t)parts;
    const char *data = t.data;
    for (r->number[0] = 0; r->number[0] < parts; r->number[0]++) {
        t.name = write_name(r, &s->arena, e);
        t.data = data + (size_t)r->number[0] * t.bytes;
        if (!t.name || !ses_tensor_entry_add(s, &t, e)) return false;
    }
    return true;
}

static bool add_tensor(ses_safetensors *s, const ses_tf_family *f, const ses_tf_tensor *x,
                       const unsigned char *bytes, const char *file, ses_err *e)
{
    renamed r = rename_variable(f, x->name);
    ses_tensor_entry t = {
        .dtype = x->dtype, .rank = x->rank, .count = x->count, .bytes = (size_t)x->bytes, .file = file
    };
    if (!r.to) return true;
    memcpy(t.dim, x->dim, sizeof t.dim);
    t.data = x->bytes ? bytes + x->offset : (const unsigned char *)"";
    if (r.change == SES_TF_SPLIT) return add_split(s, t, &r, e);
    while (r.change == SES_TF_SQUEEZE && t.rank > 2 && t.dim[0] == 1) drop_axis(&t);
    if (r.change == SES_TF_TRANSPOSE && !transpose(&t, &s->arena, e)) return false;
    t.name = write_name(&r, &s->arena, e);
    return t.name && ses_tensor_entry_add(s, &t, e);
}

bool ses_tf_add(ses_safetensors *s, const ses_tf_family *f, const ses_tf_index *x, int64_t shard,
                const void *bytes, const char *file, ses_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (x->tensor[i].shard == shard) n += part_count(f, &x->tensor[i]);
    if (n && !ses_tensor_entries_reserve(s, n, e)) return false;
    for (size_t i = 0; i < x->n; i++) {
        const ses_tf_tensor *t = &x->tensor[i];
        if (t->shard == shard && !add_tensor(s, f, t, bytes, file, e))
            return ses_wrap(e, "variable \"%s\"", ses_quoted_of(t->name, strlen(t->name)).s);
    }
    return true;
}

/* ---- families ---- */

static bool is_listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
    return false;
}

static bool has_variable(const ses_tf_index *x, const char *name)
{
    char module[256];
    snprintf(module, sizeof module, "module/%s", name);
    return ses_tf_find(x, name) || ses_tf_find(x, module);
}

static void fail_unknown(const ses_tf_index *x, ses_err *e)
{
    char names[128] = "";
    for (size_t i = 0; i < SES_LEN(families); i++) {
        size_t n = strlen(names);
        if (!families[i]->only_for)
            snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", families[i]->name);
    }
    ses_fail(e, SES_EUNSUPPORTED,
             "no known model has its %zu variables (the first is \"%s\"); known are checkpoints of %s", x->n,
             ses_quoted_of(x->tensor[0].name, strlen(x->tensor[0].name)).s, names);
}

const ses_tf_family *ses_tf_family_of(const ses_tf_index *x, const char *class, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(families); i++) {
        const ses_tf_family *f = families[i];
        bool asked = !f->only_for || (class && is_listed(f->only_for, class));
        if (asked && has_variable(x, f->variable)) return f;
    }
    fail_unknown(x, e);
    return NULL;
}
