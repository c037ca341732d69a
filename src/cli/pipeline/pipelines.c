/* Defines a command for each task and for each alias. */
#include "io/text_decoder.h"
#include "pipeline_command.h"
#include "task/task.h"

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_pipeline_args, model, "model", "DIR",
                 "model folder, or a name listed by 'sesame models'", .letter = 'm', .is_model = true),
    SES_OPT_ADAPTERS(ses_pipeline_args, adapters),
    SES_OPT_LIST(ses_pipeline_args, files, "file", "FILE",
                 "read texts from this file, one per line; -: standard input", .letter = 'f'),
    SES_OPT_ENCODING(ses_pipeline_args, encoding),
    SES_OPT_FLAG(ses_pipeline_args, jsonl, "jsonl", "input lines are JSON: an object, or a string (the text)",
                 .letter = 'l', .group = "data"),
    SES_OPT_TEXT(ses_pipeline_args, column, "column", "COLUMN",
                 "read texts from this column (name or number) of TSV, CSV or JSON lines files"),
    SES_OPT_FLAG(ses_pipeline_args, no_header, "no-header",
                 "with --column: the first line is a row, not a header", .group = "data"),
    SES_OPT_INCLUDE(ses_pipeline_args, rows, ses_row_options),
    SES_OPT_FLAG(ses_pipeline_args, verbose, "verbose",
                 "report texts and tokens per second on stderr; default: only for files and standard input",
                 .group = "general"),
    SES_OPT_FLAG(ses_pipeline_args, keep_going, "keep-going",
                 "report failed lines and continue; exit status 1", .group = "data"),
    SES_OPT_INT(ses_pipeline_args, max_seq_len, "max-seq-len", "0", 0, 1 << 24,
                "maximum sequence length in tokens; 0: the task's default", .group = "compute"),
    SES_OPT_INT(ses_pipeline_args, batch_tokens, "batch-tokens", NULL, 1, 1 << 24,
                "tokens per batch (default 2048, on a GPU 16384); does not change results on a CPU",
                .letter = 'b', .group = "compute"),
    SES_OPT_INT(ses_pipeline_args, batch_size, "batch-size", "0", 0, 1 << 24,
                "most texts of a batch; 0: as many as --batch-tokens allow", .group = "compute"),
    SES_OPT_INCLUDE(ses_pipeline_args, compute, ses_compute_options),
};

const char ses_pipeline_description[] =
    "Arguments are texts, '-' is standard input, -f FILE reads files, one text per line. Standard "
    "input is also the default. With --jsonl or --column arguments are files. Files compressed with gzip, xz "
    "or "
    "zstd are decompressed. Results are written in input order, each as soon as it is available. With "
    "--json each result is a line, in the format of the transformers pipeline if there is one of this name. "
    "Truncation is "
    "always reported.";

#define SES_PIPELINE_COMMON                                                                          \
    .usage = "[TEXT...]", .opt = opt, .n_opt = SES_LEN(opt), .args_size = sizeof(ses_pipeline_args), \
    .max_operands = -1, .run = ses_pipeline_command
#define SES_PIPELINE(id_, name_, summary_, task_, hidden_)                                            \
    const ses_command ses_pipeline_##id_ = { SES_PIPELINE_COMMON, .name = name_, .summary = summary_, \
                                             .hidden = hidden_, .task = &ses_task_##task_ };
#define SES_TASK(id, name, summary) SES_PIPELINE(id, name, summary, id, false)
#define SES_TASK_ALIAS(alias, name, id, task_name) SES_PIPELINE(alias, name, "alias of " task_name, id, true)
#include "task/tasks.def"
