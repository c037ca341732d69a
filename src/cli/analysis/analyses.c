/* Defines a command for each analysis. */
#include "analysis/analysis.h"
#include "analysis_command.h"

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_analysis_args, model, "model", "DIR",
                 "model folder, or a name listed by 'sesame models'", .letter = 'm', .is_model = true),
    SES_OPT_ADAPTER(ses_analysis_args, adapter),
    SES_OPT_TEXT(ses_analysis_args, layers, "layers", "LIST",
                 "layers, such as 0-6,12 or last; 0: the embeddings, -1: the last layer"),
    SES_OPT_INT(ses_analysis_args, seed, "seed", "42", 0, 9e15, "seed of everything random"),
    SES_OPT_TEXT(ses_analysis_args, html, "html", "FILE", "write a page that needs no other file",
                 .group = "pages"),
    SES_OPT_TEXT(ses_analysis_args, svg, "svg", "FILE", "write the pictures", .group = "pages"),
    SES_OPT_TEXT(ses_analysis_args, json, "json", "FILE",
                 "write JSON to standard output instead of the drawing, or to FILE (*.json)", .letter = 'j',
                 .implicit_value = "-", .value_ending = ".json"),
    SES_OPT_FLAG(ses_analysis_args, overwrite, "overwrite", "replace existing files", .group = "pages"),
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
