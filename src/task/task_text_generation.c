/* text-generation: a text goes on. */
#include "generation_task.h"

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_TEXT,
                                         { { "generated_text", SES_FIELD_TEXT } } };

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    return ses_generation_task_finish(p, j, r, &shape, e);
}

static const ses_head *const heads[] = { &ses_head_causal_lm, &ses_head_masked_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame text-generation -m gpt2 \"Once upon a time\"", "at most 256 tokens more" },
    { "sesame text-generation -m DIR --do-sample --top-p 0.9 --seed 7 \"Dear Sir,\"", "one of many letters" },
    { "sesame text-generation -m DIR --num-beams 4 --no-repeat-ngram-size 2 --json -f prompts.txt",
      "one answer a line, as the reference has it" },
    { 0 },
};

const ses_task ses_task_text_generation = {
    .description =
        "Goes on where a text stops. Without --do-sample the likeliest token is taken each time, with "
        "--num-beams the likeliest text is searched for. Defaults are the folder's "
        "(generation_config.json). On a terminal the text appears as it is written.\n\n"
        "With --template prompts are made by a JSON file: {\"instruction\": ..., \"example\": \"Review: "
        "{text}\\nAnswer: {label}\\n\\n\", \"query\": \"Review: {text}\\nAnswer:\", \"examples\": "
        "[{\"text\": ..., \"label\": ...}, ...], \"stop\": [\"\\n\"]}; --shots says how many of the "
        "examples are shown.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair|pair" },
    SES_GENERATION_TASK(finish),
};
