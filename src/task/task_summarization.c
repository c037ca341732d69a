/* summarization: shortens texts with an encoder-decoder. */
#include "generation_task.h"

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_TEXT,
                                          { { "summary_text", SES_FIELD_TEXT } } };

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    (void)p;
    return ses_generation_task_finish(r, out, &schema, e);
}

static const ses_result_schema *columns(const void *args)
{
    return ses_generation_has_one_text(args) ? &schema : NULL;
}

static const ses_head *const heads[] = { &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame summarization -m bart-large-cnn -f articles.txt", "one summary for each line" },
    { "sesame summarization -m t5-small --max-new-tokens 60 --num-beams 4 TEXT", "with four beams" },
    { 0 },
};

const ses_task ses_task_summarization = {
    .description =
        "Summarizes texts. Settings and prefix come from the folder's section for summarization "
        "(task_specific_params). Texts longer than the model accepts are truncated, which is reported.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text" },
    SES_GENERATION_TASK(finish),
    .columns = columns,
};
