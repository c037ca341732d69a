/* Prints the details about a classifier of texts. */
#include "classifier_info.h"

#include "base/str.h"
#include "cli/ladder/ladder.h"
#include "cli/ui/show_values.h"
#include "sesame/model.h"
#include "vectors/classify/classifier.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHOWN = 20 };

typedef struct details {
    ses_json_doc *config;
    ses_classifier *c;
    int64_t parameters, features; /* -1: the method has none */
    double bytes;
} details;

static bool read_facts(details *f, const char *dir, ses_err *e)
{
    f->config = ses_classifier_config_open(dir, e);
    f->c = f->config ? ses_classifier_open(dir, ses_json_root(f->config), e) : NULL;
    if (!f->c) return false;
    const ses_classifier_kind *k = f->c->kind;
    f->parameters = k->parameters ? k->parameters(f->c->self) : -1;
    f->features = k->features ? k->features(f->c->self) : -1;
    f->bytes = ses_ladder_folder_bytes(dir);
    return true;
}

static void free_facts(details *f)
{
    ses_classifier_free(f->c);
    ses_json_free(f->config);
}

static const char *label_of(const details *f, size_t i)
{
    char id[24];
    snprintf(id, sizeof id, "%zu", i);
    return ses_json_string(ses_json_get(ses_json_get(ses_json_root(f->config), "id2label"), id), NULL);
}

/* "words text, ngrams 2": the members of "classifier" that are not lists. */
static void put_settings(const details *f, ses_buf *out)
{
    const ses_json *s = ses_json_get(ses_json_root(f->config), "classifier");
    char value[64];
    for (size_t i = 0; i < ses_json_len(s); i++) {
        const ses_json *v = ses_json_at(s, i);
        ses_json_type type = ses_json_type_of(v);
        if (type == SES_JSON_ARRAY || type == SES_JSON_OBJECT) continue;
        ses_buf_appendf(out, "%s%s %s", out->len ? ", " : "", ses_json_key(s, i, NULL),
                        ses_json_value_text(value, sizeof value, v));
    }
}

static void put_labels(const details *f, ses_buf *out)
{
    ses_buf_appendf(out, "%zu", f->c->n_labels);
    for (size_t i = 0; i < f->c->n_labels && i < SHOWN && label_of(f, i); i++)
        ses_buf_appendf(out, "%s%s", i ? ", " : ": ", label_of(f, i));
    if (f->c->n_labels > SHOWN) ses_buf_puts(out, ", ...");
}

bool ses_classifier_info_show(const char *dir, const ses_term *t, ses_err *e)
{
    details f = { 0 };
    ses_buf settings = { 0 }, labels = { 0 };
    char n[SES_NUMBER_TEXT];
    bool ok = read_facts(&f, dir, e);
    if (ok) put_settings(&f, &settings), put_labels(&f, &labels);
    ok = ok && ses_buf_ok(&settings, e) && ses_buf_ok(&labels, e);
    if (ok) {
        ses_show_line(t, "Classifier", "%s: %s", f.c->kind->name, f.c->kind->summary);
        if (settings.len) ses_show_line(t, "Settings", "%s", settings.data);
        ses_show_line(t, "Labels", "%s", labels.data);
        if (f.features >= 0) ses_show_line(t, "Features", "%s", ses_grouped_text(n, f.features));
        if (f.parameters >= 0) ses_show_line(t, "Parameters", "%s", ses_grouped_text(n, f.parameters));
        ses_show_line(t, "Size", "%s", ses_bytes_text(n, (uint64_t)f.bytes));
    }
    ses_buf_free(&settings);
    ses_buf_free(&labels);
    free_facts(&f);
    return ok;
}

bool ses_classifier_info_print_json(const char *dir, ses_err *e)
{
    details f = { 0 };
    ses_json_writer *w = read_facts(&f, dir, e) ? ses_json_writer_new(0, e) : NULL;
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "path", dir);
        ses_json_member_string(w, "model_type", SES_CLASSIFIER_MODEL_TYPE);
        ses_json_member_string(w, "method", f.c->kind->name);
        ses_json_put_key(w, "settings");
        ses_json_put_value(w, ses_json_get(ses_json_root(f.config), "classifier"));
        ses_json_member_array(w, "labels");
        for (size_t i = 0; i < f.c->n_labels; i++)
            label_of(&f, i) ? ses_json_put_string(w, label_of(&f, i)) : ses_json_put_null(w);
        ses_json_end_array(w);
        if (f.features >= 0) ses_json_member_int(w, "features", f.features);
        if (f.parameters >= 0) ses_json_member_int(w, "parameters", f.parameters);
        ses_json_member_int(w, "bytes", (int64_t)f.bytes);
        ses_json_end_object(w);
    }
    bool ok = w && ses_json_writer_print(w, e);
    free_facts(&f);
    return ok;
}
