/* Opening and checking the teacher of a distillation. */
#include "teacher.h"

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "sesame/pretrain.h"
#include "train/distill/student_config.h"

#include <string.h>

/* Both must encode a text to the same ids. A teacher without tokenizer.json is not checked. */
static bool same_tokens(const char *dir, const ses_tokenizer *ours, ses_err *e)
{
    char *path = ses_path_join(dir, "tokenizer.json", e);
    bool there = path && ses_path_exists(path), ok = path != NULL;
    uint64_t a = 0, b = 0;
    ses_tokenizer *theirs = there ? ses_tokenizer_open(dir, e) : NULL;
    if (there)
        ok = theirs && ses_tokenizer_fingerprint(ours, &a, e) && ses_tokenizer_fingerprint(theirs, &b, e) &&
             (a == b || ses_fail(e, SES_EARG,
                                 "the teacher's tokenizer differs from the student's; use the tokenizer of "
                                 "%s for the student",
                                 dir));
    ses_tokenizer_free(theirs);
    ses_free(path);
    return ok;
}

/* Labels must have the same order. */
static bool same_labels(const ses_model *teacher, const ses_model *student, ses_err *e)
{
    int64_t i = ses_model_labels_differ(student, teacher);
    return i < 0 ||
           ses_fail(e, SES_EARG, "label %lld is \"%s\" in the student, \"%s\" in the teacher", (long long)i,
                    ses_model_label_name(student, i), ses_model_label_name(teacher, i));
}

/* Opens a teacher and compares its head with the student's. name: for messages. */
static ses_model *open_model(const char *dir, const char *name, const char *class_name,
                             const ses_model *student, ses_device *dev, ses_err *e)
{
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .class_name = class_name }, e);
    if (!m) return NULL;
    const char *ours = ses_model_head_name(student), *theirs = ses_model_head_name(m);
    if (ours && theirs && !strcmp(ours, theirs)) return m;
    ses_fail(e, SES_EARG, "the teacher is a %s, the student a %s", ses_model_class_name(m),
             ses_model_class_name(student));
    ses_wrap(e, "%s", name);
    ses_model_free(m);
    return NULL;
}

/* Copies weights of the teacher, opened once more: int8 weights of the one that teaches are packed. */
static bool init_student(ses_teacher *t, const ses_teacher_options *o, const char *dir,
                         const char *class_name, ses_model *student, ses_device *dev, ses_err *e)
{
    ses_model_options plain = { .class_name = class_name, .no_packing = true };
    ses_model *m = ses_model_open(dir, dev, &plain, e);
    bool ok = m && ses_student_init(student, m, o->student.copy, &t->n_copied, e);
    ses_model_free(m);
    return ok;
}

/* dir: the folder of the teacher; o->model may be its name. */
static bool open_folder(ses_teacher *t, const ses_teacher_options *o, const char *dir, const char *class_name,
                        ses_model *student, const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e)
{
    t->model = open_model(dir, o->model, class_name, student, dev, e);
    if (!t->model) return false;
    t->distill = ses_distill_new(&o->distill, student, t->model, e);
    if (!t->distill || !same_labels(t->model, student, e) || !same_tokens(dir, tokenizer, e) ||
        (o->init_student && !init_student(t, o, dir, class_name, student, dev, e)))
        return ses_wrap(e, "%s", o->model);
    return true;
}

/* Opens a further teacher. */
static bool add_teacher(ses_teacher *t, const char *name, const char *class_name, const ses_model *student,
                        const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e)
{
    char *dir = ses_model_resolve(name, NULL, e);
    ses_model *m = dir ? open_model(dir, name, class_name, student, dev, e) : NULL;
    if (m) t->more[t->n_more++] = m;
    bool ok = m && ((ses_distill_add_teacher(t->distill, m, e) && same_labels(m, student, e) &&
                     same_tokens(dir, tokenizer, e)) ||
                    ses_wrap(e, "%s", name));
    ses_free(dir);
    return ok;
}

bool ses_teacher_open(ses_teacher *t, const ses_teacher_options *o, const char *class_name,
                      ses_model *student, const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e)
{
    *t = (ses_teacher){ 0 };
    if (!o->model)
        return !o->init_student ||
               ses_fail(e, SES_EUSAGE, "initializing the student from a teacher needs a teacher");
    char *dir = ses_model_resolve(o->model, NULL, e);
    bool ok = dir && open_folder(t, o, dir, class_name, student, tokenizer, dev, e);
    ses_free(dir);
    if (ok && o->n_more) ok = (t->more = ses_alloc_array(o->n_more, sizeof(ses_model *), e)) != NULL;
    for (size_t i = 0; ok && i < o->n_more; i++)
        ok = add_teacher(t, o->more[i], class_name, student, tokenizer, dev, e);
    return ok;
}

void ses_teacher_free(ses_teacher *t)
{
    ses_distill_free(t->distill);
    for (size_t i = 0; i < t->n_more; i++) ses_model_free(t->more[i]);
    ses_free(t->more);
    ses_model_free(t->model);
    *t = (ses_teacher){ 0 };
}

void ses_teacher_put_settings(const ses_teacher_options *o, ses_json_writer *w)
{
    if (!o->model) return;
    if (o->n_more) ses_json_member_int(w, "teachers", (int64_t)o->n_more + 1);
    ses_json_member_real(w, "temperature", o->distill.temperature);
    ses_json_member_real(w, "soft_weight", o->distill.soft);
    ses_json_member_real(w, "hard_weight", o->distill.hard);
    ses_json_member_real(w, "cosine_weight", o->distill.cosine);
    ses_json_member_real(w, "hidden_weight", o->distill.hidden);
    ses_json_member_real(w, "attention_weight", o->distill.attention);
    if (o->distill.relation > 0) {
        ses_json_member_real(w, "relation_weight", o->distill.relation);
        if (o->distill.relations) ses_json_member_string(w, "relations", o->distill.relations);
        ses_json_member_int(w, "relation_heads", o->distill.relation_heads);
        ses_json_member_int(w, "teacher_layer", o->distill.teacher_layer);
    }
    if (o->student.layers) ses_json_member_int(w, "student_layers", o->student.layers);
    if (o->student.hidden) ses_json_member_int(w, "student_hidden", o->student.hidden);
    if (o->student.heads) ses_json_member_int(w, "student_heads", o->student.heads);
    if (o->student.ffn) ses_json_member_int(w, "student_ffn", o->student.ffn);
    if (o->student.copy) ses_json_member_string(w, "copy_layers", o->student.copy);
}

ses_json_doc *ses_teacher_student_config(ses_teacher_options *o, const char *dir, ses_err *e)
{
    ses_json_doc *teacher = ses_model_config_open(dir, NULL, e);
    ses_json_doc *d = teacher ? ses_student_config(ses_json_root(teacher), &o->student, e) : NULL;
    if (teacher && !d) ses_wrap(e, "%s", dir);
    /* weights of another width do not fit */
    bool copies = !o->student.copy || strcmp(o->student.copy, "none");
    if (d && copies && ses_student_has_width(ses_json_root(teacher), &o->student)) o->init_student = true;
    ses_json_free(teacher);
    return d;
}
