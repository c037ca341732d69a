/* Options of the teacher of a distillation: a ses_teacher_options in the command's args. */
#ifndef SES_CLI_TEACHER_OPTIONS_H
#define SES_CLI_TEACHER_OPTIONS_H

#include "cli/option_parser.h"
#include "sesame/training.h"

#define SES_OPT_WEIGHT_OF(struct_, field, name_, def_, help_)                                           \
    {                                                                                                   \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(struct_, field), .def = def_, .min = 0, \
        .max = 1e6, .help = help_                                                                       \
    }
#define SES_OPT_TEACHER(struct_, field)                                                                \
    { .name = "teacher",                                                                               \
      .type = SES_OPT_TEXT,                                                                            \
      .offset = offsetof(struct_, field.model),                                                        \
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

#endif
