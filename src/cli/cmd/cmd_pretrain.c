/* The pretrain command: options and help. */
#include "cli/train/pretrain_command.h"
#include "train/model_presets.h"
#include "train/train_folder.h"

#include <string.h>

#define AT(field) offsetof(ses_pretrain_args, field)

static const ses_opt opt[] = {
    { .name = "corpus",
      .letter = 'c',
      .type = SES_OPT_LIST,
      .offset = AT(corpora),
      .value = "C[:WEIGHT]",
      .required = true,
      .help = "training corpus, optionally with its weight, e.g. books.ids:2" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = AT(train.run.output),
      .value = "OUT",
      .required = true,
      .help = "folder of the model, created if absent" },
    { .name = "objective",
      .type = SES_OPT_TEXT,
      .offset = AT(options.objectives),
      .def = "mlm",
      .value = "LIST",
      .help = "objectives with weights, e.g. mlm:1,nsp:1; see above" },
    { .name = "preset",
      .letter = 'p',
      .type = SES_OPT_TEXT,
      .offset = AT(options.preset),
      .value = "NAME",
      .help = "new model: " SES_PRESETS },
    { .name = "config",
      .type = SES_OPT_TEXT,
      .offset = AT(options.config),
      .value = "FILE",
      .help = "new model: its config.json" },
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = AT(options.model),
      .value = "DIR",
      .is_model = true,
      .help = "continue with the model in this folder, or of this name" },
    { .name = "set",
      .type = SES_OPT_LIST,
      .offset = AT(set),
      .value = "KEY=VALUE",
      .help = "new model: change a value of its config, e.g. hidden_size=128" },
    { .name = "generator",
      .type = SES_OPT_TEXT,
      .offset = AT(options.generator),
      .value = "NAME|FILE",
      .help = "rtd: preset or config.json of the generator; default: a quarter of the model's widths" },
    { .name = "tokenizer",
      .type = SES_OPT_TEXT,
      .offset = AT(options.tokenizer),
      .value = "PATH",
      .help = "folder or file of the tokenizer; default: that of --model" },
    { .name = "eval",
      .type = SES_OPT_TEXT,
      .offset = AT(options.eval_corpus),
      .value = "C",
      .help = "evaluation corpus; default: the held-out documents of --corpus" },
    { .name = "length",
      .letter = 'n',
      .type = SES_OPT_TEXT,
      .offset = AT(options.lengths),
      .def = "128",
      .value = "LIST",
      .help = "maximum sequence length, or stages with fractions of the run, e.g. 128:0.9,512:0.1" },
    { .name = "packing",
      .type = SES_OPT_CHOICE,
      .offset = AT(packing),
      .def = "auto",
      .choices = "auto|full|doc|segment-pair|sentence-pair|blocks",
      .help = "contents of a sequence; auto: pairs if an objective needs them, blocks for causal objectives, "
              "else full" },
    { .name = "apart",
      .type = SES_OPT_FLAG,
      .offset = AT(options.break_at_documents),
      .help = "never mix documents in one sequence" },
    { .name = "exponent",
      .type = SES_OPT_REAL,
      .offset = AT(options.exponent),
      .def = "1",
      .min = 0,
      .max = 10,
      .help = "corpus sampling exponent (XLM); 1: proportional to size" },
    { .name = "epochs",
      .letter = 'e',
      .type = SES_OPT_REAL,
      .offset = AT(train.run.epochs),
      .def = "1",
      .min = 0,
      .max = 1e6,
      .help = "passes over the text" },
    SES_OPT_STEPS(ses_pretrain_args, train),
    { .name = "max-time",
      .type = SES_OPT_TEXT,
      .offset = AT(max_time),
      .value = "TIME",
      .help = "as many updates as fit into this time, e.g. 25m or 1h30m; a few are timed first" },
    SES_OPT_INCLUDE(ses_pretrain_args, train, ses_train_batch_options),
    { .name = "batch-ramp",
      .type = SES_OPT_REAL,
      .offset = AT(options.batch_ramp),
      .def = "0",
      .min = 0,
      .max = 1,
      .help = "fraction of the run with batch-size warmup" },
    { .name = "ramp-from",
      .type = SES_OPT_REAL,
      .offset = AT(options.ramp_from),
      .def = "0.125",
      .min = 0,
      .max = 1,
      .help = "fraction of the batch size at the start of the warmup" },
    SES_OPT_LR(ses_pretrain_args, train, "5e-4"),
    SES_OPT_INCLUDE(ses_pretrain_args, train, ses_train_optimizer_options),
    SES_OPT_WARMUP(ses_pretrain_args, train, "0.06"),
    SES_OPT_INCLUDE(ses_pretrain_args, train, ses_train_update_options),
    { .name = "beta2",
      .type = SES_OPT_REAL,
      .offset = AT(options.beta2),
      .def = "0.98",
      .min = 0,
      .max = 0.99999,
      .help = "Adam beta2; 0: the optimizer's default" },
    { .name = "ema",
      .type = SES_OPT_REAL,
      .offset = AT(options.ema_decay),
      .def = "0",
      .min = 0,
      .max = 0.999999,
      .help = "EMA decay of the saved weights, e.g. 0.999; 0: off" },
    { .name = "eval-every",
      .type = SES_OPT_INT,
      .offset = AT(train.run.eval_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between evaluations; 0: after each pass over the text; -1: only at the end" },
    { .name = "eval-tokens",
      .type = SES_OPT_INT,
      .offset = AT(options.eval_tokens),
      .def = "100000",
      .min = 1,
      .max = 1e12,
      .help = "tokens per evaluation" },
    { .name = "save-every",
      .type = SES_OPT_INT,
      .offset = AT(train.run.save_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between checkpoints; 0: at each evaluation; -1: when stopped and at the end" },
    { .name = "keep",
      .type = SES_OPT_INT,
      .offset = AT(train.run.keep_checkpoints),
      .def = "1",
      .min = 1,
      .max = 1000,
      .help = "number of checkpoints kept" },
    SES_OPT_SEED(ses_pretrain_args, train),
    SES_OPT_INCLUDE(ses_pretrain_args, train, ses_train_log_options),
    SES_OPT_INCLUDE(ses_pretrain_args, train, ses_train_resume_options),
    SES_OPT_INCLUDE(ses_pretrain_args, options.objective, ses_objective_option_table),
    SES_OPT_INCLUDE(ses_pretrain_args, options.teacher, ses_teacher_option_table),
    SES_OPT_INCLUDE(ses_pretrain_args, train.energy, ses_energy_options),
    SES_OPT_INCLUDE(ses_pretrain_args, compute, ses_compute_options),
};

/* A copy of the stored options that lacks max-time. Frees stored. */
static ses_json_doc *drop_max_time(ses_json_doc *stored, ses_err *e)
{
    const ses_json *options = ses_json_get(ses_json_root(stored), "options"), *v;
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_object(w, "options");
        for (size_t i = 0; (v = ses_json_at(options, i)); i++) {
            const char *key = ses_json_key(options, i, &n);
            if (!key || !strcmp(key, "max-time")) continue;
            ses_json_put_key(w, key);
            ses_json_put_value(w, v);
        }
        ses_json_end_object(w);
        ses_json_end_object(w);
    }
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    ses_json_doc *copy = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    ses_json_free(stored);
    return copy;
}

/* --resume without --corpus: the options are in OUT. Steps or epochs of this call replace a stored time. */
static ses_json_doc *open_stored(const void *args, ses_err *e)
{
    const ses_pretrain_args *a = args;
    const ses_training_options *r = &a->train.run;
    if (!r->resume || !r->output || a->corpora.n) return NULL;
    ses_json_doc *stored = ses_run_info_open(r->output, e);
    return stored && (r->steps || r->epochs != 1) ? drop_max_time(stored, e) : stored;
}

static const ses_usage_example examples[] = {
    { "sesame pretrain -c c.ids --tokenizer t.json -p bert-mini --epochs 10 -o mini",
      "masked language modeling" },
    { "sesame pretrain -c c --tokenizer t.json -p bert-base --objective mlm,nsp -o x",
      "the objectives of BERT" },
    { "sesame pretrain -c c.ids -m bert-base --max-time 25m -n 128:0.9,512 -o domain",
      "continue with a model on other text, in 25 minutes" },
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
        "the "
        "log and a picture of the loss, curve.svg. Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 save a checkpoint and "
        "stop (exit code 130, 143, 129, 138); the same command with --resume "
        "continues, with identical results.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_pretrain_args),
    .open_stored = open_stored,
    .run = ses_pretrain_command,
};
