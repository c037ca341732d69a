/* Options of every command that trains. Its struct has the members steps, batch, tokens, accumulate, seed
 * (int64_t), lr, warmup, decay, clip (double), optimizer, schedule (int), log, board (text), recompute,
 * resume, overwrite (bool). */
#ifndef SES_CLI_TRAIN_OPTIONS_H
#define SES_CLI_TRAIN_OPTIONS_H

#include "cli/option_parser.h"

#define SES_OPT_STEPS(struct_)                                                                          \
    {                                                                                                   \
        .name = "steps", .type = SES_OPT_INT, .offset = offsetof(struct_, steps), .def = "0", .min = 0, \
        .max = 1e12, .help = "so many updates in place of epochs"                                       \
    }

#define SES_OPT_BATCHES(struct_)                                                                        \
    { .name = "batch-size",                                                                             \
      .letter = 'b',                                                                                    \
      .type = SES_OPT_INT,                                                                              \
      .offset = offsetof(struct_, batch),                                                               \
      .def = "32",                                                                                      \
      .min = 1,                                                                                         \
      .max = 1 << 20,                                                                                   \
      .help = "sequences a batch" },                                                                    \
        { .name = "tokens-per-batch",                                                                   \
          .type = SES_OPT_INT,                                                                          \
          .offset = offsetof(struct_, tokens),                                                          \
          .def = "0",                                                                                   \
          .min = 0,                                                                                     \
          .max = 1 << 30,                                                                               \
          .help = "in place of it: as many sequences as fit into so many tokens" },                     \
    {                                                                                                   \
        .name = "accumulate", .type = SES_OPT_INT, .offset = offsetof(struct_, accumulate), .def = "1", \
        .min = 1, .max = 1 << 20, .help = "batches an update"                                           \
    }

#define SES_OPT_SEED(struct_)                                                                               \
    {                                                                                                       \
        .name = "seed", .letter = 's', .type = SES_OPT_INT, .offset = offsetof(struct_, seed), .def = "42", \
        .min = 0, .max = 9e15, .help = "of everything random"                                               \
    }

/* lr_, warmup_: what they are without being given, as text */
#define SES_OPT_LEARN(struct_, lr_, warmup_)                                                                 \
    { .name = "lr",                                                                                          \
      .letter = 'l',                                                                                         \
      .type = SES_OPT_REAL,                                                                                  \
      .offset = offsetof(struct_, lr),                                                                       \
      .def = lr_,                                                                                            \
      .min = 0,                                                                                              \
      .max = 100,                                                                                            \
      .help = "learning rate" },                                                                             \
        { .name = "optimizer",                                                                               \
          .type = SES_OPT_CHOICE,                                                                            \
          .offset = offsetof(struct_, optimizer),                                                            \
          .def = "adamw",                                                                                    \
          .choices = "adamw|bert_adam|sgd|adafactor|lamb",                                                   \
          .help = "how weights move" },                                                                      \
        { .name = "schedule",                                                                                \
          .type = SES_OPT_CHOICE,                                                                            \
          .offset = offsetof(struct_, schedule),                                                             \
          .def = "linear",                                                                                   \
          .choices = "constant|linear|cosine|inverse_sqrt|polynomial|slanted",                               \
          .help = "how the rate goes" },                                                                     \
        { .name = "warmup",                                                                                  \
          .letter = 'w',                                                                                     \
          .type = SES_OPT_REAL,                                                                              \
          .offset = offsetof(struct_, warmup),                                                               \
          .def = warmup_,                                                                                    \
          .min = 0,                                                                                          \
          .max = 1e9,                                                                                        \
          .help = "updates until the full rate; below 1: share of the run" },                                \
        { .name = "weight-decay",                                                                            \
          .type = SES_OPT_REAL,                                                                              \
          .offset = offsetof(struct_, decay),                                                                \
          .def = "0.01",                                                                                     \
          .min = 0,                                                                                          \
          .max = 10,                                                                                         \
          .help = "of matrices; biases and norms have none" },                                               \
        { .name = "clip",                                                                                    \
          .type = SES_OPT_REAL,                                                                              \
          .offset = offsetof(struct_, clip),                                                                 \
          .def = "1",                                                                                        \
          .min = 0,                                                                                          \
          .max = 1e9,                                                                                        \
          .help = "most gradient norm; 0: any" },                                                            \
    {                                                                                                        \
        .name = "recompute", .type = SES_OPT_FLAG, .offset = offsetof(struct_, recompute),                   \
        .help = "less memory, the same numbers: layers keep their input alone and run again on the way back" \
    }

#define SES_OPT_LOGS(struct_)                                                                            \
    { .name = "log",                                                                                     \
      .type = SES_OPT_TEXT,                                                                              \
      .offset = offsetof(struct_, log),                                                                  \
      .value = "FILE",                                                                                   \
      .help = "JSON lines: loss, rate and gradient norm of every update, and the scores; without it "    \
              "OUT/log.jsonl" },                                                                         \
    {                                                                                                    \
        .name = "tensorboard", .type = SES_OPT_TEXT, .offset = offsetof(struct_, board), .value = "DIR", \
        .help = "the same as event files for TensorBoard; without it OUT/runs"                           \
    }

#define SES_OPT_RESUME(struct_)                                                               \
    { .name = "resume",                                                                       \
      .type = SES_OPT_FLAG,                                                                   \
      .offset = offsetof(struct_, resume),                                                    \
      .help = "go on from the newest checkpoint in OUT; from the start where OUT is empty" }, \
    {                                                                                         \
        .name = "overwrite", .type = SES_OPT_FLAG, .offset = offsetof(struct_, overwrite),    \
        .help = "replace what is in OUT"                                                      \
    }

#endif
