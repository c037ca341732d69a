/* text2text-generation: generates text from text with an encoder-decoder. */
#include "generation_task.h"

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_TEXT,
                                          { { "generated_text", SES_FIELD_TEXT } } };

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
    { "sesame text2text-generation -m t5-small --prefix \"translate English to German: \" \"Good morning.\"",
      "T5 selects a task by a prefix" },
    { 0 },
};

const ses_task ses_task_text2text_generation = {
    .description = "Generates text with an encoder-decoder (T5, BART, Marian, ...). A prefix, from the "
                   "folder (task_specific_params of --task) or --prefix, is put before the input.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair|pair" },
    SES_GENERATION_TASK(finish),
    .columns = columns,
};
