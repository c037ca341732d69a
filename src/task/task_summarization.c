/* summarization: a text in fewer words. */
#include "generation_task.h"

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_TEXT,
                                         { { "summary_text", SES_FIELD_TEXT } } };

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    return ses_generation_task_finish(p, j, r, &shape, e);
}

static const ses_head *const heads[] = { &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame summarization -m bart-large-cnn -f articles.txt", "a summary a line" },
    { "sesame summarization -m t5-small --max-new-tokens 60 --num-beams 4 TEXT", "with four beams" },
    { 0 },
};

const ses_task ses_task_summarization = {
    .description =
        "Says in fewer words what a text says. Settings are those the folder has for summarization "
        "(task_specific_params), its prefix too. Of a text longer than the model reads the end is left out, "
        "and told.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text" },
    SES_GENERATION_TASK(finish),
};
