/* The teacher of a distillation: opened beside the student, checked against it. The student is borrowed;
 * the teacher belongs to ses_teacher. One thread. */
#ifndef SES_TRAIN_TEACHER_H
#define SES_TRAIN_TEACHER_H

#include "distill.h"
#include "sesame/tokenizer.h"

typedef struct ses_teacher {
    ses_model *model;
    ses_distill *distill; /* for ses_distill_loss; NULL: no distillation */
    size_t n_copied;      /* parameters the student started with */
    ses_model **more;     /* [n_more] further teachers */
    size_t n_more;
} ses_teacher;

/* student: opened for training; tokenizer: the student's, which must be the teacher's too. o->model: folder
 * or name. class_name: class of the teacher; NULL: as in its folder. If o->model is NULL, *t is zeroed. */
bool ses_teacher_open(ses_teacher *t, const ses_teacher_options *o, const char *class_name,
                      ses_model *student, const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e);
void ses_teacher_free(ses_teacher *t); /* zeroes it; fine on a zeroed one */
/* The config of a student with sizes of its own (o->student); dir: folder of the teacher. Sets
 * o->init_student unless the student has another width or copies no layers. NULL: failed. */
ses_json_doc *ses_teacher_student_config(ses_teacher_options *o, const char *dir, ses_err *e);
/* Members that a resumed run must have in common. */
void ses_teacher_put_settings(const ses_teacher_options *o, ses_json_writer *w);

#endif
