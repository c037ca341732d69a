#include "teacher.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "sesame/corpus.h"

#include <string.h>

/* The same text must be the same ids to both. A teacher's folder without a tokenizer is trusted. */
static bool same_tokens(const char *dir, const ses_tokenizer *ours, ses_err *e)
{
    char *path = ses_path_join(dir, "tokenizer.json", e);
    bool there = path && ses_path_exists(path), ok = path != NULL;
    uint64_t a = 0, b = 0;
    ses_tokenizer *theirs = there ? ses_tokenizer_open(dir, e) : NULL;
    if (there)
        ok = theirs && ses_tokenizer_fingerprint(ours, &a, e) && ses_tokenizer_fingerprint(theirs, &b, e) &&
             (a == b ||
              ses_fail(e, SES_EARG,
                       "the teacher's tokenizer is not the student's: a text would be other tokens to "
                       "each; give the student --tokenizer %s",
                       dir));
    ses_tokenizer_free(theirs);
    ses_free(path);
    return ok;
}

/* Labels have one order. */
static bool same_labels(const ses_model *teacher, const ses_model *student, ses_err *e)
{
    for (int64_t i = 0; i < ses_model_label_count(student) && i < ses_model_label_count(teacher); i++) {
        const char *a = ses_model_label_name(student, i), *b = ses_model_label_name(teacher, i);
        if (a && b && strcmp(a, b))
            return ses_fail(e, SES_EARG, "label %lld is \"%s\" to the student, \"%s\" to the teacher",
                            (long long)i, a, b);
    }
    return true;
}

bool ses_teacher_open(ses_teacher *t, const ses_teacher_args *a, const char *class_name, ses_model *student,
                      const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e)
{
    ses_model_options o = { .class_name = class_name };
    *t = (ses_teacher){ 0 };
    if (!a->dir) return !a->init_student || ses_fail(e, SES_EUSAGE, "--from-teacher needs --teacher DIR");
    t->model = ses_model_open(a->dir, dev, &o, e);
    if (!t->model) return false;
    const char *ours = ses_model_head_name(student), *theirs = ses_model_head_name(t->model);
    if (!ours || !theirs || strcmp(ours, theirs)) {
        ses_fail(e, SES_EARG, "the teacher is a %s, the student a %s", ses_model_class_name(t->model),
                 ses_model_class_name(student));
        return ses_wrap(e, "%s", a->dir);
    }
    t->distill = ses_distill_new(&a->distill, student, t->model, e);
    if (!t->distill || !same_labels(t->model, student, e) || !same_tokens(a->dir, tokenizer, e) ||
        (a->init_student && !ses_student_init(student, t->model, &t->n_copied, e)))
        return ses_wrap(e, "%s", a->dir);
    return true;
}

void ses_teacher_free(ses_teacher *t)
{
    ses_distill_free(t->distill);
    ses_model_free(t->model);
    *t = (ses_teacher){ 0 };
}

void ses_teacher_put_settings(const ses_teacher_args *a, ses_json_writer *w)
{
    if (!a->dir) return;
    ses_json_member_real(w, "temperature", a->distill.temperature);
    ses_json_member_real(w, "soft_weight", a->distill.soft);
    ses_json_member_real(w, "hard_weight", a->distill.hard);
    ses_json_member_real(w, "cosine_weight", a->distill.cosine);
    ses_json_member_real(w, "hidden_weight", a->distill.hidden);
    ses_json_member_real(w, "attention_weight", a->distill.attention);
}
