/* A smaller model of the same kind as another: its config.json and its first weights. */
#ifndef SES_TRAIN_STUDENT_CONFIG_H
#define SES_TRAIN_STUDENT_CONFIG_H

#include "sesame/training.h"

/* Are any sizes set? */
bool ses_student_is_new(const ses_student_options *o);

/* Does the student have the teacher's width? */
bool ses_student_has_width(const ses_json *teacher, const ses_student_options *o);

/* The layers of the teacher's t that the student's n layers start from (ses_student_options.copy), counted
 * from 0. "none": as "even". Fails if the student has more layers than the teacher. */
bool ses_student_layers(const char *copy, int64_t n, int64_t t, int64_t *layer, ses_err *e);

/* The teacher's config with the sizes of o. Lists with one entry per layer, and pruned heads, keep the
 * entries of the chosen layers. NULL: failed. */
ses_json_doc *ses_student_config(const ses_json *teacher, const ses_student_options *o, ses_err *e);

/* Copies the teacher's parameters that fit: layers by ses_student_layers, the rest by name. copied: their
 * number. */
bool ses_student_init(ses_model *student, const ses_model *teacher, const char *copy, size_t *copied,
                      ses_err *e);

#endif
