/* Options of a pretraining run by name. */
#include "pretrain_settings.h"

#include "base/alloc.h"
#include "train/model_presets.h"

#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_LIST(ses_pretrain_settings, corpora, "corpus", "C[:WEIGHT]",
                 "training corpus, optionally with its weight, e.g. books.ids:2", .letter = 'c',
                 .required = true),
    SES_OPT_OUTPUT(ses_pretrain_settings, train),
    SES_OPT_TEXT(ses_pretrain_settings, options.objectives, "objective", "LIST",
                 "objectives with weights, e.g. mlm:1,nsp:1; see above", .def = "mlm"),
    SES_OPT_TEXT(ses_pretrain_settings, options.preset, "preset", "NAME", "new model: " SES_PRESETS,
                 .letter = 'p'),
    SES_OPT_TEXT(ses_pretrain_settings, options.config, "config", "FILE", "new model: its config.json"),
    SES_OPT_TEXT(ses_pretrain_settings, options.model, "model", "DIR",
                 "continue with the model in this folder, or of this name", .letter = 'm', .is_model = true),
    SES_OPT_LIST(ses_pretrain_settings, set, "set", "KEY=VALUE",
                 "new model: change a value of its config, e.g. hidden_size=128", .group = "data"),
    SES_OPT_TEXT(ses_pretrain_settings, options.generator, "generator", "NAME|FILE|DIR",
                 "rtd: preset or config.json of the generator, or a folder with its weights; default: the "
                 "model's config with the widths of --generator-size",
                 .group = "objective"),
    SES_OPT_TEXT(ses_pretrain_settings, options.tokenizer, "tokenizer", "PATH",
                 "folder or file of the tokenizer; default: that of --model", .is_model = true),
    SES_OPT_TEXT(ses_pretrain_settings, options.eval_corpus, "eval", "C",
                 "evaluation corpus; default: the held-out documents of --corpus"),
    SES_OPT_TEXT(ses_pretrain_settings, options.lengths, "length", "LIST",
                 "maximum sequence length, or stages with fractions of the run, e.g. 128:0.9,512:0.1",
                 .letter = 'n', .def = "128"),
    SES_OPT_CHOICE(
        ses_pretrain_settings, packing, "packing", "auto", "auto|full|doc|segment-pair|sentence-pair|blocks",
        "contents of a sequence; auto: pairs if an objective needs them, blocks for causal objectives, "
        "else full",
        .group = "data"),
    SES_OPT_FLAG(ses_pretrain_settings, options.break_at_documents, "apart",
                 "never mix documents in one sequence", .group = "data"),
    SES_OPT_REAL(ses_pretrain_settings, options.exponent, "exponent", "1", 0, 10,
                 "corpus sampling exponent (XLM); 1: proportional to size", .group = "data"),
    SES_OPT_EPOCHS(ses_pretrain_settings, train, "1", "passes over the text"),
    SES_OPT_LR(ses_pretrain_settings, train, "5e-4"),
    SES_OPT_WARMUP(ses_pretrain_settings, train, "0.06"),
    SES_OPT_INCLUDE(ses_pretrain_settings, train, ses_train_options),
    SES_OPT_TEXT(ses_pretrain_settings, max_time, "max-time", "TIME",
                 "as many updates as fit into this time, e.g. 25m or 1h30m; a few are timed first"),
    SES_OPT_REAL(ses_pretrain_settings, options.batch_ramp, "batch-ramp", "0", 0, 1,
                 "fraction of the run with batch-size warmup", .group = "training"),
    SES_OPT_REAL(ses_pretrain_settings, options.ramp_from, "ramp-from", "0.125", 0, 1,
                 "fraction of the batch size at the start of the warmup", .group = "training"),
    SES_OPT_REAL(ses_pretrain_settings, options.beta2, "beta2", "0.98", 0, 0.99999,
                 "Adam beta2; 0: the optimizer's default", .group = "optimizer"),
    SES_OPT_REAL(ses_pretrain_settings, options.ema_decay, "ema", "0", 0, 0.999999,
                 "EMA decay of the saved weights, e.g. 0.999; 0: off", .group = "optimizer"),
    SES_OPT_INT(ses_pretrain_settings, options.eval_tokens, "eval-tokens", "100000", 1, 1e12,
                "tokens per evaluation", .group = "training"),
    SES_OPT_INCLUDE(ses_pretrain_settings, options.objective, ses_objective_option_table),
    SES_OPT_TEXT(ses_pretrain_settings, options.teacher.model, "teacher", "DIR", "distill from this model",
                 .is_model = true, .group = "distill"),
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
