/* The pretrain command: options and help. */
#include "cli/train/pretrain_command.h"

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(ses_pretrain_args, s, ses_pretrain_setting_table),
    SES_OPT_INCLUDE(ses_pretrain_args, ranks, ses_rank_options),
    SES_OPT_INCLUDE(ses_pretrain_args, compute, ses_compute_options),
};

/* --resume without --corpus: the options are in OUT. */
static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const ses_pretrain_args *a = c->args;
    const ses_training_options *r = &a->s.train.run;
    return r->resume && r->output && !a->s.corpora.n ? ses_train_args_open_stored(&a->s.train, e) : NULL;
}

static const ses_usage_example examples[] = {
    { "sesame pretrain -c c.ids --tokenizer t.json -p bert-mini --epochs 10 -o mini",
      "masked language modeling" },
    { "sesame pretrain -c c --tokenizer t.json -p bert-base --objective mlm,nsp -o x",
      "the objectives of BERT" },
    { "sesame pretrain -c c.ids -m bert-base --max-time 25m -n 128:0.9,512 -o domain",
      "continue with a model on other text, in 25 minutes" },
    { "mpirun -n 4 sesame pretrain -c c --tokenizer t -p bert-mini --lanes 8 -o x",
      "on four processes; the result is that of one process with --lanes 8" },
    { 0 },
};

const ses_command ses_command_pretrain = {
    .name = "pretrain",
    .usage = "",
    .summary = "pretrain from scratch or a checkpoint",
    .description =
        "Trains on corpora made by sesame corpus build, with the tokenizer they were built with.\n\n"
        "Objectives: mlm (masked language modeling), clm (causal), rtd (replaced token detection, ELECTRA), "
        "and more: an unknown name lists them. Auxiliary objectives (nsp, sop, sbo) add labels and weighted "
        "losses. Primary objectives alternate between batches, with probabilities given by their weights.\n\n"
        "OUT holds the model and its tokenizer, for every other command and for transformers, the scores, "
        "the log, report.html and a picture of the loss, curve.svg. Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 save "
        "a checkpoint and "
        "stop (exit code 130, 143, 129, 138); the same command with --resume "
        "continues, with identical results.\n\n"
        "mpirun, srun and torchrun start one run of several processes (ranks); --lanes fixes the result for "
        "any "
        "number of them. See docs/SCALE.md.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_pretrain_args),
    .open_stored = open_stored,
    .uses_ranks = true,
    .run = ses_pretrain_command,
};
