/* text2text-generation: one text becomes another. */
#include "generation_task.h"

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_TEXT,
                                         { { "generated_text", SES_FIELD_TEXT } } };

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    return ses_generation_task_finish(p, j, r, &shape, e);
}

static const ses_head *const heads[] = { &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame text2text-generation -m t5-small --prefix \"translate English to German: \" \"Good morning.\"",
      "what T5 calls a task is a prefix" },
    { 0 },
};

const ses_task ses_task_text2text_generation = {
    .description =
        "Turns a text into another with an encoder-decoder (T5, BART, Marian, ...). A prefix of the folder "
        "(task_specific_params of --task) or of --prefix is put before it.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair|pair" },
    SES_GENERATION_TASK(finish),
};
