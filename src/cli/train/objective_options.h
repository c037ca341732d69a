/* Options of pretraining objectives, shared by the commands that pretrain. */
#ifndef SES_CLI_OBJECTIVE_OPTIONS_H
#define SES_CLI_OBJECTIVE_OPTIONS_H

#include "cli/option_parser.h"
#include "train/objective.h"

/* field: a ses_objective_options of the struct. */
#define SES_OPT_OBJECTIVE(struct_, field)                                                                  \
    { .name = "mask-rate",                                                                                 \
      .type = SES_OPT_REAL,                                                                                \
      .offset = offsetof(struct_, field.mask_rate),                                                        \
      .def = "-1",                                                                                         \
      .min = -1,                                                                                           \
      .max = 1,                                                                                            \
      .help = "share of tokens to be predicted; -1: the objective's usual, 0.15 for mlm" },                \
        { .name = "mask-rate-end",                                                                         \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.mask_rate_end),                                                \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1,                                                                                        \
          .help = "where that rate comes to over the run; -1: it stays" },                                 \
        { .name = "mask-unit",                                                                             \
          .type = SES_OPT_CHOICE,                                                                          \
          .offset = offsetof(struct_, field.mask_unit),                                                    \
          .choices = "token|word|ngram|span",                                                              \
          .help = "what is masked at once; without it, the objective's usual" },                           \
        { .name = "mask-keep",                                                                             \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.keep_rate),                                                    \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1,                                                                                        \
          .help = "share of the chosen tokens that stay as they are; -1: the objective's usual, 0.1 for "  \
                  "mlm, 0.15 for rtd" },                                                                   \
        { .name = "mask-random",                                                                           \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.random_rate),                                                  \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1,                                                                                        \
          .help = "share of the chosen tokens that become any token; the others become the mask; -1: the " \
                  "objective's usual, 0.1 for mlm, 0 for rtd" },                                           \
        { .name = "mask-copies",                                                                           \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.mask_copies),                                                  \
          .def = "0",                                                                                      \
          .min = 0,                                                                                        \
          .max = 1 << 20,                                                                                  \
          .help = "static masking: a text has so many masks in all (BERT: 10); 0: a new one each time" },  \
        { .name = "span-length",                                                                           \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.span_length),                                                  \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1000,                                                                                     \
          .help = "mean length of a span: mlm, t5, bart; -1: the objective's usual" },                     \
        { .name = "span-longest",                                                                          \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.max_span),                                                     \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1000,                                                                                     \
          .help = "most words of a span or n-gram; -1: the objective's usual" },                           \
        { .name = "noise",                                                                                 \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.noise),                                                        \
          .value = "LIST",                                                                                 \
          .help = "bart: of mask, delete, infill, permute, rotate; without it, infill,permute" },          \
        { .name = "pieces",                                                                                \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.pieces),                                                       \
          .def = "2",                                                                                      \
          .min = 1,                                                                                        \
          .max = 1024,                                                                                     \
          .help = "xl, plm: a text is read in so many pieces, each remembering those before" },            \
        { .name = "replaced-weight",                                                                       \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.replaced_weight),                                              \
          .def = "50",                                                                                     \
          .min = 0,                                                                                        \
          .max = 1e6,                                                                                      \
          .help = "rtd: of the discriminator's loss beside the generator's" },                             \
    {                                                                                                      \
        .name = "sampling-heat", .type = SES_OPT_REAL,                                                     \
        .offset = offsetof(struct_, field.sampling_temperature), .def = "1", .min = 0.01, .max = 100,      \
        .help = "rtd: temperature the generator's tokens are drawn at"                                     \
    }

#endif
