/* The ablate command: options and help. */
#include "ablate.h"

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_ablate_args, output, "output", "OUT",
                 "folder of the study: a subfolder per job, ablate.json, ablate.md, ablate.svg, ablate.html",
                 .letter = 'o', .required = true, .alias = "to"),
    SES_OPT_INT(
        ses_ablate_args, jobs, "jobs", "1", 1, 64,
        "run N jobs at a time, also on one GPU; they share the threads. The scores do not depend on it"),
    SES_OPT_INT(ses_ablate_args, seeds, "seeds", "0", 0, SES_ABLATE_SEEDS,
                "fine-tune with seeds 1 to N; 0: \"seeds\" of the recipe", .value = "N"),
    SES_OPT_TEXT(ses_ablate_args, only, "only", "RUN,...", "these runs only, by their names or folders"),
    SES_OPT_TEXT(ses_ablate_args, tasks, "tasks", "TASK,...", "these tasks only"),
    SES_OPT_LIST(ses_ablate_args, set, "set", "KEY=VALUE",
                 "replace an option of \"common\", as steps=100 (a list grows); tune.KEY=VALUE: of all "
                 "fine-tuning"),
    SES_OPT_REAL(ses_ablate_args, confidence, "confidence", "95", 50, 99.9, "level of the intervals",
                 .value = "PERCENT"),
    SES_OPT_FLAG(ses_ablate_args, plan, "plan",
                 "check the recipe and print the commands of all jobs, but run none", .of_call = true),
    SES_OPT_FLAG(ses_ablate_args, keep_models, "keep-models",
                 "keep checkpoints and fine-tuned models; otherwise they are deleted after their evaluation",
                 .of_call = true),
    SES_OPT_FLAG(ses_ablate_args, resume, "resume",
                 "continue: what happens anyway unless --overwrite is given", .of_call = true),
    SES_OPT_FLAG(ses_ablate_args, overwrite, "overwrite", "repeat all jobs", .of_call = true),
    SES_OPT_INCLUDE(ses_ablate_args, compute, ses_compute_options),
};

static const ses_usage_example examples[] = {
    { "sesame ablate recipe.json -o study", "run all jobs of the recipe and print their scores" },
    { "sesame ablate recipe.json -o study --jobs 4 --device cuda --dtype bf16", "four at a time on a GPU" },
    { "sesame ablate recipe.json -o try --set steps=20 --set tune.train-size=100 --seeds 1",
      "try a recipe with little work" },
    { 0 },
};

const ses_command ses_command_ablate = {
    .name = "ablate",
    .usage = "RECIPE",
    .summary = "run an ablation study",
    .description =
        "Pretrains a model per run, evaluates each on downstream tasks with several seeds, and prints mean, "
        "median and interval of every score.\n\n"
        "RECIPE is a JSON object. \"common\" has options of sesame pretrain for all runs, by name. \"runs\" "
        "has for each run, by its name, the options that differ; null removes an option. \"grid\" has "
        "options "
        "with arrays of values; every combination is run (for each entry of \"runs\", if any). \"scores\" "
        "names columns of held-out scores; default, without tasks: all losses and accuracies.\n\n"
        "\"tasks\" has for each column, by its name, options of sesame finetune (\"task\", \"train\", "
        "\"eval\", ...), or of eval or perplexity (\"command\": \"eval\"; \"data\": files). \"score\" is the "
        "measure; default: the task's own. \"tune\" has options of all fine-tuning runs; \"tune\" of a run "
        "replaces them, and \"tasks\" of a run lists the tasks it takes part in (default: all). {model} in a "
        "value is the folder of the pretrained model. A run with \"model\": "
        "NAME and \"pretrain\": false has tasks only; the model, and the \"teacher\" of others, may be an "
        "earlier run. \"seeds\" (default 3) and \"pretrain-seeds\" are "
        "numbers of seeds, or lists. \"mean\" lists the columns that are averaged.\n\n"
        "\"published\" has numbers by run and column, \"source\" their origin: the table shows them, the "
        "correlation of both orders and whether differences are beyond noise. \"title\" names the study.\n\n"
        "Finished jobs are skipped, interrupted ones are resumed; a failed one does not stop the others. "
        "Ctrl-C stops after checkpoints are saved.\n\n"
        "{\"common\": {\"corpus\": \"c.ids\", \"tokenizer\": \"t.json\", \"preset\": \"bert-mini\", "
        "\"steps\": 500}, \"runs\": {\"static\": {\"mask-copies\": 10}, \"dynamic\": {}}, \"tasks\": "
        "{\"cola\": {\"task\": \"cola\", \"train\": \"CoLA/train.tsv\", \"eval\": \"CoLA/dev.tsv\"}, "
        "\"blimp\": {\"command\": \"eval\", \"task\": \"blimp\", \"data\": \"blimp.tsv\"}}}",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_ablate_args),
    .min_operands = 1,
    .max_operands = 1,
    .run = ses_ablate_command,
};
