/* Finds the classes whose weights a checkpoint contains, for the error about a missing tensor. */
#include "base/str.h"
#include "model_desc.h"

#include <string.h>

/* Does the file contain every trained parameter in its shape? */
static bool has_all(const ses_model *m)
{
    static const ses_model_options check_only = { .check_only = true };
    ses_err none = { 0 };
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        const ses_param *p = ses_store_at(m->store, i);
        if (p->role != SES_PARAM_TRAINED) continue;
        const ses_tensor_entry *x = ses_model_find(m, p->name);
        if (!x || !ses_param_load(m->store, i, m->file, x, &check_only, true, &none)) return false;
    }
    return true;
}

/* Declares a model of the given class over the same file, without values. */
static bool fits(const ses_model *m, const ses_class *class)
{
    ses_err none = { 0 };
    ses_model other = { .dev = m->dev, .file = m->file };
    bool ok =
        ses_model_declare(&other, m->config, &(ses_model_options){ .class_name = class->name }, &none) &&
        has_all(&other);
    for (size_t i = 0; i < SES_LEN(other.stack); i++) ses_stack_free(&other.stack[i]);
    ses_store_free(other.store);
    return ok;
}

/* The first tensors of the file that no model of this type has: signs of another architecture. */
static void put_foreign(const ses_model *m, ses_buf *b)
{
    enum { SHOWN = 3 };
    size_t n = 0;
    for (size_t i = 0; i < ses_safetensors_count(m->file); i++) {
        const char *name = ses_safetensors_at(m->file, i)->name;
        if (ses_model_file_name(m, name) != SES_NAME_FOREIGN || n++ >= SHOWN) continue;
        ses_buf_appendf(b, "%s%s", n == 1 ? "; the weights have tensors that no such model has: " : ", ",
                        ses_quoted_of(name, strlen(name)).s);
    }
    if (n > SHOWN) ses_buf_appendf(b, " and %zu more", n - SHOWN);
    if (n) ses_buf_puts(b, ": this is another architecture, run it with the library it was made for");
}

bool ses_model_missing_tensor(const ses_model *m, const char *tensor, const char *shape, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; i < m->desc->n_classes; i++)
        if (fits(m, &m->desc->class[i]))
            ses_buf_appendf(&list, "%s%s", list.len ? ", " : "", m->desc->class[i].name);
    if (!list.len) {
        put_foreign(m, &list);
        if (ses_buf_ok(&list, e))
            ses_fail(e, SES_EFORMAT, "tensor \"%s\" %s is missing%s", tensor, shape,
                     list.len ? list.data : "");
    } else if (ses_buf_ok(&list, e)) {
        ses_fail(e, SES_EFORMAT,
                 "tensor \"%s\" %s is missing: the checkpoint has no such head, and new weights would be "
                 "random; it can be opened as %s",
                 tensor, shape, list.data);
    }
    ses_buf_free(&list);
    return false;
}
