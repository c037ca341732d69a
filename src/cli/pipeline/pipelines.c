/* A command for each task and each of its other names. */
#include "pipeline_command.h"
#include "task/task.h"

static const ses_opt opt[] = {
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_pipeline_args, model),
      .value = "DIR",
      .is_model = true,
      .help =
          "model folder, with its tokenizer, or a name that 'sesame models' lists; without it the one that "
          "comes with Sesame for this" },
    SES_OPT_ADAPTER(ses_pipeline_args, adapter),
    { .name = "file",
      .letter = 'f',
      .type = SES_OPT_LIST,
      .offset = offsetof(ses_pipeline_args, files),
      .value = "FILE",
      .help = "read texts from this file, one a line; - is standard input" },
    { .name = "jsonl",
      .letter = 'l',
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_pipeline_args, jsonl),
      .help = "lines are JSON: an object, or a string that is the text" },
    { .name = "column",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_pipeline_args, column),
      .value = "COLUMN",
      .help =
          "files are TSV, CSV or JSON lines by their names: the texts are this column, by name or number" },
    { .name = "no-header",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_pipeline_args, no_header),
      .help = "--column: the first line is a row, too" },
    { .name = "to",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_pipeline_args, to),
      .value = "FILE",
      .help = "write answers to this file; it is there whole or not at all" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_pipeline_args, overwrite),
      .help = "replace the file of --to" },
    { .name = "keep-going",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_pipeline_args, keep_going),
      .help = "a line that cannot be answered is told and the others are answered; exit 1 at the end" },
    { .name = "max-seq-len",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_pipeline_args, max_seq_len),
      .def = "0",
      .max = 1 << 24,
      .help = "most tokens the model is given at once; 0: as many as it takes" },
    { .name = "batch-tokens",
      .letter = 'b',
      .type = SES_OPT_INT,
      .offset = offsetof(ses_pipeline_args, batch_tokens),
      .min = 1,
      .max = 1 << 24,
      .help = "run texts together up to this many tokens (default 2048, on a GPU 16384); answers do not "
              "depend on it" },
    SES_OPT_INCLUDE(ses_pipeline_args, compute, ses_compute_options),
};

const char ses_pipeline_description[] =
    "The texts are the arguments, or the lines of each --file; without either, those of standard input. "
    "With --jsonl or --column arguments are files. "
    "Answers come in the order of the texts and as soon as they are there. With --json each is one line, in "
    "the shape the reference library's pipeline of this name gives. Texts longer than the model reads are "
    "never cut without a word.";

#define SES_PIPELINE(id_, name_, summary_, task_, hidden_)                           \
    const ses_command ses_pipeline_##id_ = { .name = name_,                          \
                                             .usage = "[TEXT...]",                   \
                                             .summary = summary_,                    \
                                             .opt = opt,                             \
                                             .n_opt = SES_LEN(opt),                  \
                                             .args_size = sizeof(ses_pipeline_args), \
                                             .max_operands = -1,                     \
                                             .hidden = hidden_,                      \
                                             .task = &ses_task_##task_,              \
                                             .run = ses_pipeline_command };
#define SES_TASK(id, name, summary) SES_PIPELINE(id, name, summary, id, false)
#define SES_TASK_ALIAS(alias, id, name) SES_PIPELINE(alias, name, "another name for ses_task_" #id, id, true)
#include "task/tasks.def"
