/* A file of fastText as the folder of a classifier. */
#define _POSIX_C_SOURCE 200809L
#include "fasttext_config.h"

#include "classifier.h"
#include "vectors/fasttext/fasttext_model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool ses_fasttext_is_file(const char *path)
{
    static const char magic[] = "\xba\x16\x4f\x2f";
    struct stat s;
    char start[4] = { 0 };
    if (stat(path, &s) || !S_ISREG(s.st_mode)) return false;
    FILE *f = fopen(path, "rb");
    bool is = f && fread(start, 1, sizeof start, f) == sizeof start && !memcmp(start, magic, sizeof start);
    if (f) fclose(f);
    return is;
}

static bool put_config(const ses_fasttext_model *m, int format, ses_json_writer *w)
{
    char id[24];
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", SES_CLASSIFIER_MODEL_TYPE);
    ses_json_member_int(w, "format", format);
    ses_json_member_string(w, "method", "fasttext");
    ses_json_member_object(w, "id2label");
    for (size_t i = 0; i < ses_fasttext_n_labels(m); i++) {
        static const char prefix[] = "__label__";
        ses_string s = ses_fasttext_label_at(m, i);
        size_t n = sizeof prefix - 1;
        bool prefixed = s.n > n && !memcmp(s.p, prefix, n);
        snprintf(id, sizeof id, "%zu", i);
        ses_json_member_stringn(w, id, s.p + (prefixed ? n : 0), s.n - (prefixed ? n : 0));
    }
    ses_json_end_object(w);
    ses_json_member_object(w, "classifier");
    ses_json_member_string(w, "words", "blank");
    ses_json_member_bool(w, "file", true);
    ses_json_end_object(w);
    ses_json_end_object(w);
    return true;
}

ses_json_doc *ses_fasttext_config(const char *path, int format, ses_err *e)
{
    size_t n;
    ses_json_doc *d = NULL;
    ses_fasttext_model *m = ses_fasttext_open(path, e);
    if (!m) return NULL;
    ses_json_writer *w = NULL;
    if (m->set.model != SES_FASTTEXT_SUPERVISED)
        ses_fail(e, SES_EUNSUPPORTED,
                 "%s: word vectors of fastText, without labels: 'sesame vectors info' and other actions of "
                 "'sesame vectors' read them",
                 path);
    else if (m->set.loss == SES_FASTTEXT_ONE_VS_ALL)
        ses_fail(e, SES_EUNSUPPORTED,
                 "%s: one-vs-all: a text may have several labels, which 'sesame vectors predict' gives",
                 path);
    else
        w = ses_json_writer_new(0, e);
    const char *text = w && put_config(m, format, w) ? ses_json_writer_text(w, &n, e) : NULL;
    if (text) d = ses_json_parse(text, n, e);
    ses_json_writer_free(w);
    ses_fasttext_free(m);
    return d;
}
