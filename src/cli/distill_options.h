/* Options of learning from a teacher, shared by the commands that train. */
#ifndef SES_CLI_DISTILL_OPTIONS_H
#define SES_CLI_DISTILL_OPTIONS_H

#include "options.h"
#include "train/distill.h"

#define SES_OPT_WEIGHT_OF(struct_, field, name_, def_, help_)                                           \
    {                                                                                                   \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(struct_, field), .def = def_, .min = 0, \
        .max = 1e6, .help = help_                                                                       \
    }

/* field: a ses_distill_options of the struct. */
#define SES_OPT_DISTILL(struct_, field)                                                                     \
    { .name = "temperature",                                                                                \
      .type = SES_OPT_REAL,                                                                                 \
      .offset = offsetof(struct_, field.heat),                                                              \
      .def = "2",                                                                                           \
      .min = 0.01,                                                                                          \
      .max = 1000,                                                                                          \
      .help = "of a teacher: what both say is softened by it" },                                            \
        SES_OPT_WEIGHT_OF(struct_, field.soft, "soft-weight", "5", "of a teacher: weight of what it says"), \
        SES_OPT_WEIGHT_OF(struct_, field.hard, "hard-weight", "2", "of a teacher: weight of the labels"),   \
        SES_OPT_WEIGHT_OF(struct_, field.cosine, "cosine-weight", "0",                                      \
                          "of a teacher: weight of the cosine of last hidden states (DistilBERT: 1)"),      \
        SES_OPT_WEIGHT_OF(struct_, field.hidden, "hidden-weight", "0",                                      \
                          "of a teacher: weight of hidden states, layer by layer (TinyBERT)"),              \
        SES_OPT_WEIGHT_OF(struct_, field.attention, "attention-weight", "0",                                \
                          "of a teacher: weight of attention scores, layer by layer (TinyBERT)")

#endif
