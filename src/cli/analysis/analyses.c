/* Defines a command for each analysis. */
#include "analysis/analysis.h"
#include "analysis_command.h"

static const ses_opt opt[] = {
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_analysis_args, model),
      .value = "DIR",
      .is_model = true,
      .help = "model folder, or a name listed by 'sesame models'" },
    SES_OPT_ADAPTER(ses_analysis_args, adapter),
    { .name = "layers",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_analysis_args, layers),
      .value = "LIST",
      .help = "layers, such as 0-6,12 or last; 0: the embeddings, -1: the last layer" },
    { .name = "seed",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_analysis_args, seed),
      .def = "42",
      .min = 0,
      .max = 9e15,
      .help = "seed of everything random" },
    { .name = "html",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_analysis_args, html),
      .value = "FILE",
      .help = "write a page that needs no other file" },
    { .name = "svg",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_analysis_args, svg),
      .value = "FILE",
      .help = "write the pictures" },
    { .name = "json",
      .letter = 'j',
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_analysis_args, json),
      .value = "FILE",
      .implicit_value = "-",
      .value_ending = ".json",
      .help = "write JSON to standard output instead of the drawing, or to FILE (*.json)" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_analysis_args, overwrite),
      .help = "replace existing files" },
    SES_OPT_INCLUDE(ses_analysis_args, compute, ses_device_option_table),
};

const ses_opt_table ses_analysis_options = { opt, SES_LEN(opt) };

const char ses_analysis_description[] =
    "The result is drawn in the terminal. --json writes it as JSON, --svg the pictures, --html a page that "
    "opens without a network. Results do not depend on the number of threads.";

#define SES_ANALYSIS(id_, name_, summary_)                                                   \
    const ses_command ses_analysis_command_##id_ = { .name = name_,                          \
                                                     .usage = "",                            \
                                                     .summary = summary_,                    \
                                                     .opt = opt,                             \
                                                     .n_opt = SES_LEN(opt),                  \
                                                     .args_size = sizeof(ses_analysis_args), \
                                                     .max_operands = -1,                     \
                                                     .analysis = &ses_analysis_##id_,        \
                                                     .run = ses_analysis_command };
#include "analysis/analyses.def"
