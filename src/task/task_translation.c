/* translation: a text in another language. */
#include "generation_task.h"

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_TEXT,
                                         { { "translation_text", SES_FIELD_TEXT } } };

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    return ses_generation_task_finish(p, j, r, &shape, e);
}

static const ses_head *const heads[] = { &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame translation -m opus-mt-en-de \"Good morning.\"", "a model of one direction" },
    { "sesame translation_en_to_fr -m t5-small \"Good morning.\"", "a direction of several, by its name" },
    { "sesame translation -m mbart-large-50 --src-lang en_XX --tgt-lang de_DE \"Good morning.\"",
      "by language tokens" },
    { 0 },
};

const ses_task ses_task_translation = {
    .description = "Says a text in another language. Called as translation_en_to_de, or with --task "
                   "translation_en_to_de, it takes settings and prefix of that name from the folder. Models "
                   "of many languages (mBART) are told with --src-lang and --tgt-lang, by the names of "
                   "their tokens.",
    .examples = examples,
    .head = heads,
    .item_schema = { .text = "text" },
    SES_GENERATION_TASK(finish),
};
