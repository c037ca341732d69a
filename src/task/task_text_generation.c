/* text-generation: continues a prompt. */
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

static const ses_head *const heads[] = { &ses_head_causal_lm, &ses_head_masked_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame text-generation -m gpt2 \"Once upon a time\"", "at most 256 new tokens" },
    { "sesame text-generation -m DIR --do-sample --top-p 0.9 --seed 7 \"Dear Sir,\"", "a sampled text" },
    { "sesame text-generation -m DIR --num-beams 4 --no-repeat-ngram-size 2 --json -f prompts.txt",
      "one JSON line for each prompt" },
    { 0 },
};

const ses_task ses_task_text_generation = {
    .description =
        "Continues a prompt. The default is greedy decoding; --do-sample samples, --num-beams searches with "
        "beams. Defaults of the folder (generation_config.json) take precedence: the bundled generator "
        "samples, "
        "with seed 0 and a repetition penalty; --do-sample false --repetition-penalty 1 decodes greedily. On "
        "a "
        "terminal the text appears while it is generated.\n\nWith --template a JSON file turns texts into "
        "prompts: {\"instruction\": "
        "..., \"example\": \"Review: {text}\\nAnswer: {label}\\n\\n\", \"query\": \"Review: "
        "{text}\\nAnswer:\", \"examples\": [{\"text\": ..., \"label\": ...}, ...], \"stop\": [\"\\n\"]}; "
        "--shots sets the number of examples in the prompt.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair|pair" },
    SES_GENERATION_TASK(finish),
    .columns = columns,
};
