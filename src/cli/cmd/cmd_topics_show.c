/* topics show: the topics of a model. */
#include "cli/command.h"
#include "cli/inspect/topic_report.h"

#include "base/file.h"

typedef struct args {
    bool overwrite;
    ses_topic_output show;
} args;

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(args, show, ses_topic_output_options),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace existing outputs"),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_topic_model m = { 0 };
    ses_topic_output o = a->show;
    o.overwrite = a->overwrite, o.bars = true;
    bool ok = ses_topic_output_check(&o, e) && ses_topic_open(&m, c->operands[0], 1, e) &&
              ses_topic_report(c, &m, ses_path_name_of(c->operands[0]).s, &o, e);
    ses_topic_model_free(&m);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame topics show topics --html topics.html", "top words with bars, also as a page" },
    { 0 },
};

const ses_command ses_command_topics_show = {
    .name = "topics-show",
    .usage = "MODEL",
    .summary = "show the topics of a model",
    .description =
        "Shows the topics of a model of 'sesame topics train': their top words with weights (LDA: "
        "probabilities; LSA: components of the singular vector), share, coherence, and the perplexity "
        "of the passes.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
