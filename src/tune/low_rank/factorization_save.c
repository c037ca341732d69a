/* Writes a factorized model: its config, and the values of its parameters, which are borrowed. */
#include "base/json/json_helpers.h"
#include "factorize.h"

#include <stdio.h>
#include <string.h>

static const char low_rank[] = "sesame_low_rank";

static void put_ranks(const ses_factorization *f, ses_json_writer *w)
{
    ses_json_member_object(w, low_rank);
    for (size_t i = 0; i < f->n; i++)
        if (f->item[i].is_table) ses_json_member_int(w, "embeddings", f->item[i].rank);
    ses_json_member_object(w, "weights");
    for (size_t i = 0; i < f->n; i++)
        if (!f->item[i].is_table && f->item[i].rank) ses_json_member_int(w, f->item[i].name, f->item[i].rank);
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static ses_json_doc *new_config(const ses_factorization *f, ses_err *e)
{
    const ses_json *config = ses_model_config(f->m);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        size_t len;
        const char *key = ses_json_key(config, i, &len);
        if (!strcmp(key, low_rank)) continue; /* null or empty */
        ses_json_put_keyn(w, key, len);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    put_ranks(f, w);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

/* The value of parameter p of the new model: a factor, or the value of the model's parameter. */
static const ses_real *value_of(const ses_factorization *f, const ses_param *p)
{
    const ses_param *same = ses_store_find(f->m->store, p->name);
    if (same) return same->tensor->f;
    size_t len = strlen(p->name) - 2; /* without _a, _b */
    for (size_t i = 0; i < f->n; i++) {
        const char *name = ses_store_at(f->m->store, f->item[i].param)->name;
        if (strlen(name) == len && !strncmp(name, p->name, len))
            return p->name[len + 1] == 'a' ? f->item[i].a : f->item[i].b;
    }
    return NULL;
}

bool ses_factorization_save(const ses_factorization *f, const char *dir, bool overwrite, ses_err *e)
{
    ses_json_doc *config = new_config(f, e);
    /* only declares the parameters: they borrow their values */
    ses_model_options o = { .class_name = ses_model_class_name(f->m), .check_only = true };
    ses_model *m = config ? ses_model_new(ses_json_root(config), f->m->dev, &o, e) : NULL;
    bool ok = m != NULL;
    for (size_t i = 0; ok && i < ses_store_count(m->store); i++) {
        const ses_real *value = value_of(f, ses_store_at(m->store, i));
        if (value)
            ses_store_bind(m->store, i, value, false);
        else
            ok = ses_fail(e, SES_EUNSUPPORTED, "no values for %s", ses_store_at(m->store, i)->name);
    }
    ok = ok && ses_model_save(m, dir, &(ses_save_options){ .dtype = SES_F32, .overwrite = overwrite }, e);
    ses_model_free(m);
    ses_json_free(config);
    return ok;
}
