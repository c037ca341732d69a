/* finetune: fine-tune a model on a labeled file, evaluate and save it. Options and help. */
#include "cli/train/finetune_command.h"

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(ses_finetune_args, s, ses_finetune_setting_table),
    SES_OPT_INT(ses_finetune_args, seeds, "seeds", "1", 1, 1000,
                "N runs in subfolders of OUT, with seeds from --seed; reports mean and deviation of scores"),
    SES_OPT_LIST(ses_finetune_args, grid, "grid", "NAME=VALUE,VALUE...",
                 "one run per value of an option; several: every combination. With --search also a range of "
                 "numbers, NAME=LOW..HIGH or, for equal ratios, NAME=LOW..HIGH:log",
                 .group = "search"),
    SES_OPT_CHOICE(
        ses_finetune_args, search, "search", "grid", "grid|random|halving",
        "grid: every combination of --grid; random: --trials points drawn by --seed; halving: the same, "
        "but "
        "all runs get a part of their length and only the best 1/eta of them eta times as much, up to the "
        "whole",
        .group = "search"),
    SES_OPT_INT(ses_finetune_args, trials, "trials", "9", 1, 10000, "runs of --search random and halving",
                .group = "search"),
    SES_OPT_INT(ses_finetune_args, eta, "eta", "3", 2, 100, "--search halving: one of ETA runs continues",
                .group = "search"),
    SES_OPT_INCLUDE(ses_finetune_args, stages, ses_stage_option_table),
    SES_OPT_INCLUDE(ses_finetune_args, ranks, ses_rank_options),
    SES_OPT_INCLUDE(ses_finetune_args, compute, ses_compute_options),
};

/* --resume without --train: the options are in OUT. */
static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const ses_finetune_args *a = c->args;
    const ses_training_options *r = &a->s.train.run;
    return r->resume && r->output && !a->s.o.train ? ses_train_args_open_stored(&a->s.train, e) : NULL;
}

static const ses_usage_example examples[] = {
    { "sesame finetune --model bert-base-uncased --task classify --train SST-2/train.tsv --eval "
      "SST-2/dev.tsv --output sst2",
      "train a sentiment classifier" },
    { "sesame finetune --config bert-tiny --tokenizer vocab.txt --task tag --train train.txt --eval "
      "valid.txt -o ner",
      "train a tagger from random weights" },
    { "sesame finetune ... --output search --grid lr=1e-5,3e-5 --grid batch-size=16,32 --seeds 3",
      "twelve runs and a table of their scores" },
    { "sesame finetune ... --output search --search halving --trials 27 --grid lr=1e-5..1e-3:log --grid "
      "batch-size=8,16,32",
      "27 random settings; 9 of them continue, then 3, then 1" },
    { "sesame finetune --teacher sst2 --student-layers 6 --task classify "
      "--train SST-2/train.tsv -o small",
      "distill sst2 into a smaller model, starting from some of its layers" },
    { "sesame finetune --model sesame-small --train RTE/train.tsv --task rte --train QNLI/train.tsv --task "
      "qnli -o nli",
      "one encoder for two tasks: nli/rte and nli/qnli" },
    { "sesame finetune --model sesame-small --first QNLI/train.tsv --first-task qnli --train RTE/train.tsv "
      "--task rte -o rte",
      "an intermediate task first" },
    { "sesame finetune --model sesame-small --adapt reviews.txt --train SST-2/train.tsv --task sst2 -o sst2",
      "more pretraining on text of the domain first" },
    { "sesame finetune --output sst2 --resume", "continue an interrupted run, bit for bit" },
    { 0 },
};

const ses_command ses_command_finetune = {
    .name = "finetune",
    .usage = "",
    .summary = "fine-tune and evaluate a model",
    .description =
        "Trains a model for a task on a file of labeled examples, evaluates it on another file, keeps the "
        "best "
        "weights and writes a folder that all commands and transformers load: config.json with the labels, "
        "model.safetensors, the tokenizer, README.md, trainer_state.json, train_results.json, "
        "eval_results.json and all_results.json.\n\n"
        "A model without a head for the task gets a new one. Unnamed columns are found by their common "
        "names. "
        "Batches have no padding.\n\n"
        "Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 save a checkpoint and stop within one batch; the exit code is "
        "130, 143, 129 and 138. --resume continues from it and gives the same bits as an uninterrupted run. "
        "Checkpoints are written atomically.\n\n"
        "Several runs (--grid, --seeds) are written to subfolders of OUT named after their values; --resume "
        "skips the finished ones. Searches choose by the score on --eval: report the score on other data.\n\n"
        "Several --train train one encoder for several tasks at once; --adapt and --first are stages before "
        "the run: "
        "docs/LITTLE_DATA.md.\n\n"
        "mpirun, srun and torchrun start one run of several processes (ranks); --lanes fixes the result for "
        "any "
        "number of them. See docs/SCALE.md.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_finetune_args),
    .open_stored = open_stored,
    .uses_ranks = true,
    .run = ses_finetune_command,
};
