/* Learning from a teacher, for the commands that train: options, opening it, where a student begins. */
#ifndef SES_CLI_TEACHER_H
#define SES_CLI_TEACHER_H

#include "cli/option_parser.h"
#include "sesame/tokenizer.h"
#include "train/distill.h"

typedef struct ses_teacher_args {
    const char *dir;
    bool init_student;
    ses_distill_options distill;
} ses_teacher_args;

#define SES_OPT_WEIGHT_OF(struct_, field, name_, def_, help_)                                           \
    {                                                                                                   \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(struct_, field), .def = def_, .min = 0, \
        .max = 1e6, .help = help_                                                                       \
    }
#define SES_OPT_TEACHER(struct_, field)                                                                \
    { .name = "teacher",                                                                               \
      .type = SES_OPT_TEXT,                                                                            \
      .offset = offsetof(struct_, field.dir),                                                          \
      .value = "DIR",                                                                                  \
      .is_model = true,                                                                                \
      .help = "learn what the model in this folder says, too (distillation)" },                        \
        { .name = "from-teacher",                                                                      \
          .type = SES_OPT_FLAG,                                                                        \
          .offset = offsetof(struct_, field.init_student),                                             \
          .help = "begin with the teacher's weights where they fit, of evenly spread layers" },        \
        { .name = "temperature",                                                                       \
          .type = SES_OPT_REAL,                                                                        \
          .offset = offsetof(struct_, field.distill.temperature),                                      \
          .def = "2",                                                                                  \
          .min = 0.01,                                                                                 \
          .max = 1000,                                                                                 \
          .help = "of a teacher: what both say is softened by it" },                                   \
        SES_OPT_WEIGHT_OF(struct_, field.distill.soft, "soft-weight", "5",                             \
                          "of a teacher: weight of what it says"),                                     \
        SES_OPT_WEIGHT_OF(struct_, field.distill.hard, "hard-weight", "2",                             \
                          "of a teacher: weight of the labels"),                                       \
        SES_OPT_WEIGHT_OF(struct_, field.distill.cosine, "cosine-weight", "0",                         \
                          "of a teacher: weight of the cosine of last hidden states (DistilBERT: 1)"), \
        SES_OPT_WEIGHT_OF(struct_, field.distill.hidden, "hidden-weight", "0",                         \
                          "of a teacher: weight of hidden states, layer by layer (TinyBERT)"),         \
        SES_OPT_WEIGHT_OF(struct_, field.distill.attention, "attention-weight", "0",                   \
                          "of a teacher: weight of attention scores, layer by layer (TinyBERT)")

typedef struct ses_teacher {
    ses_model *model;
    ses_distill *distill; /* for ses_distill_loss */
    size_t n_copied;      /* parameters the student began with */
} ses_teacher;

/* The student: its model, open for training, and its tokenizer, which must be the teacher's. class_name: of
 * the teacher; NULL: what its folder says. */
bool ses_teacher_open(ses_teacher *t, const ses_teacher_args *a, const char *class_name, ses_model *student,
                      const ses_tokenizer *tokenizer, ses_device *dev, ses_err *e);
void ses_teacher_free(ses_teacher *t);
/* What a resumed run must share. */
void ses_teacher_put_settings(const ses_teacher_args *a, ses_json_writer *w);

#endif
