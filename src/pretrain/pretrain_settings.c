/* Options of a pretraining run by name. */
#include "pretrain_settings.h"

#include "base/alloc.h"
#include "train/model_presets.h"

#include <string.h>

#define AT(field) offsetof(ses_pretrain_settings, field)

static const ses_opt opt[] = {
    { .name = "corpus",
      .letter = 'c',
      .type = SES_OPT_LIST,
      .offset = AT(corpora),
      .value = "C[:WEIGHT]",
      .required = true,
      .help = "training corpus, optionally with its weight, e.g. books.ids:2" },
    SES_OPT_OUTPUT(ses_pretrain_settings, train),
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
      .value = "NAME|FILE|DIR",
      .help = "rtd: preset or config.json of the generator, or a folder with its weights; default: the "
              "model's config with the widths of --generator-size" },
    { .name = "tokenizer",
      .type = SES_OPT_TEXT,
      .offset = AT(options.tokenizer),
      .value = "PATH",
      .is_model = true,
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
    SES_OPT_EPOCHS(ses_pretrain_settings, train, "1", "passes over the text"),
    SES_OPT_LR(ses_pretrain_settings, train, "5e-4"),
    SES_OPT_WARMUP(ses_pretrain_settings, train, "0.06"),
    SES_OPT_INCLUDE(ses_pretrain_settings, train, ses_train_options),
    { .name = "max-time",
      .type = SES_OPT_TEXT,
      .offset = AT(max_time),
      .value = "TIME",
      .help = "as many updates as fit into this time, e.g. 25m or 1h30m; a few are timed first" },
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
    { .name = "eval-tokens",
      .type = SES_OPT_INT,
      .offset = AT(options.eval_tokens),
      .def = "100000",
      .min = 1,
      .max = 1e12,
      .help = "tokens per evaluation" },
    SES_OPT_INCLUDE(ses_pretrain_settings, options.objective, ses_objective_option_table),
    { .name = "teacher",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_pretrain_settings, options.teacher.model),
      .value = "DIR",
      .is_model = true,
      .help = "distill from this model" },
    SES_OPT_INCLUDE(ses_pretrain_settings, options.teacher, ses_teacher_option_table),
};
const ses_opt_table ses_pretrain_setting_table = { opt, SES_LEN(opt) };

ses_pretrain_settings *ses_pretrain_settings_new(const ses_setting *settings, ses_err *e)
{
    ses_pretrain_settings *s = ses_alloc(sizeof *s, e);
    if (s && ses_opt_defaults(opt, SES_LEN(opt), s, e) &&
        ses_opt_set_all(opt, SES_LEN(opt), s, "pretrain", settings, e))
        return s;
    ses_pretrain_settings_free(s);
    return NULL;
}

void ses_pretrain_settings_free(ses_pretrain_settings *s)
{
    if (s) ses_opt_free(opt, SES_LEN(opt), s);
    ses_free(s);
}

/* "25m", "1h30m", "90s", "90". */
static bool parse_time(const char *text, double *seconds, ses_err *e)
{
    *seconds = 0;
    for (const char *s = text; *s;) {
        double n = 0;
        size_t digits = strspn(s, "0123456789");
        for (size_t i = 0; i < digits && digits < 10; i++) n = 10 * n + (s[i] - '0');
        s += digits;
        double unit = *s == 'h' ? 3600 : *s == 'm' ? 60 : *s == 's' || !*s ? 1 : 0;
        if (!digits || digits > 9 || !unit) {
            *seconds = 0;
            break;
        }
        *seconds += unit * n;
        if (*s) s++;
    }
    return *seconds > 0 ||
           ses_fail(e, SES_EUSAGE, "--max-time %s: expected a duration such as 25m, 1h30m or 90s", text);
}

bool ses_pretrain_settings_options(const ses_pretrain_settings *a, ses_pretrain_options *o, ses_err *e)
{
    static const int packing[] = { -1,
                                   SES_PACK_FULL_SENTENCES,
                                   SES_PACK_DOC_SENTENCES,
                                   SES_PACK_SEGMENT_PAIR,
                                   SES_PACK_SENTENCE_PAIR,
                                   SES_PACK_BLOCKS };
    *o = a->options;
    o->corpora = a->corpora.item;
    o->n_corpora = a->corpora.n;
    o->set = a->set.item;
    o->n_set = a->set.n;
    o->packing = packing[a->packing];
    o->run = ses_train_args_options(&a->train);
    return !a->max_time || parse_time(a->max_time, &o->max_seconds, e);
}
