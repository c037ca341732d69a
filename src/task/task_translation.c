/* translation: translates texts with an encoder-decoder. */
#include "generation_task.h"

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_TEXT,
                                          { { "translation_text", SES_FIELD_TEXT } } };

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
    { "sesame translation -m opus-mt-en-de \"Good morning.\"", "a model for one direction" },
    { "sesame translation_en_to_fr -m t5-small \"Good morning.\"", "one of several directions" },
    { "sesame translation -m mbart-large-50 --src-lang en_XX --tgt-lang de_DE \"Good morning.\"",
      "with language tokens" },
    { 0 },
};

const ses_task ses_task_translation = {
    .description = "Translates texts. Called as translation_en_to_de, or with --task translation_en_to_de, "
                   "it uses settings and prefix of that name from the folder. Multilingual models (mBART) "
                   "need --src-lang and --tgt-lang, the names of their language tokens.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text" },
    SES_GENERATION_TASK(finish),
    .columns = columns,
};
