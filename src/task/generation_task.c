/* Tasks that generate text: makes prompts, and results of generated texts; generation_run.c is between. */
#include "generation_task.h"

#include "base/alloc.h"
#include "text/language_token.h"

/* text-generation never truncates prompts and, as in transformers, always cleans up spaces. */
bool ses_generation_task_open(ses_pipeline *p, ses_err *e)
{
    const ses_generation_args *a = p->settings.args;
    p->settings.stream = a->stream;
    p->settings.never_truncates = !ses_generation_has_encoder(p);
    if (p->settings.never_truncates)
        p->tokenizer_config.clean_up_spaces = p->tokenizer_config.may_clean_up_spaces;
    return ses_generation_settings_read(p, e);
}

void ses_generation_task_close(ses_pipeline *p)
{
    ses_generation_task *task = p->state;
    ses_generation_config_free(task->config);
    ses_prompt_template_free(task->template);
}

/* ---- prompts ---- */

/* An empty prompt is the BOS token. */
static ses_seq *add_bos(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_task *task = p->state;
    int32_t bos = task->o.bos >= 0 ? task->o.bos : p->tokenizer_config.role[SES_ROLE_BOS], word_id = -1;
    int8_t sequence_id = -1;
    uint8_t one = 1, zero = 0;
    ses_offset offset = { 0, 0 };
    ses_encoding x = { 1, &bos, &offset, &offset, &word_id, &sequence_id, &zero, &one, &one };
    if (bos >= 0) return ses_request_add_sequence(r, &x, e);
    ses_fail(e, SES_EARG, "the prompt is empty, and the model has no BOS token to begin with");
    return NULL;
}

/* A decoder's prompt is never truncated: one that is too long is an error. */
static ses_seq *encode_whole(ses_pipeline *p, ses_request *r, const ses_input *in, ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return NULL;
    const ses_encoding *x = ses_encode_ctx_result(p->tokens);
    int64_t max = ses_model_max_tokens(p->model);
    if ((int64_t)x->n <= max) return x->n ? ses_request_add_sequence(r, x, e) : add_bos(p, r, e);
    ses_fail(e, SES_EARG,
             "the prompt has %lld tokens: the model accepts %lld, prompt and generated text together",
             (long long)x->n, (long long)max);
    return NULL;
}

static bool encode_prompt(ses_pipeline *p, ses_request *r, ses_string text, ses_err *e)
{
    const ses_generation_task *task = p->state;
    const ses_generate_options *o = ((const ses_generation_request *)r->state)->o;
    bool encoder = ses_generation_has_encoder(p);
    ses_input in = { .text = text };
    ses_seq *q =
        encoder ? ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) : encode_whole(p, r, &in, e);
    if (!q) return false;
    if (!encoder && !o->max_new_tokens && (int64_t)q->n >= o->max_length)
        return ses_fail(
            e, SES_EARG,
            "the prompt has %lld tokens and max_length is %lld: there is nothing left to generate",
            (long long)q->n, (long long)o->max_length);
    return task->src_lang < 0 ||
           ses_language_token_replace(&p->tokenizer_config, task->src_lang, q->special_mask, q->id, q->n,
                                      e) ||
           ses_wrap(e, "--src-lang");
}

/* The pipeline's options, or a copy with the item's settings applied. */
static const ses_generate_options *item_options(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_task *task = p->state;
    if (r->args == p->settings.args) return &task->o;
    ses_generate_options *o = ses_arena_array(&r->mem, 1, sizeof *o, e);
    if (!o) return NULL;
    *o = task->o;
    ses_generation_settings_apply(r->args, o);
    if (!ses_generation_check_lengths(o, e)) return NULL;
    return ((ses_generation_request *)r->state)->own = o;
}

bool ses_generation_task_encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_args *a = r->args;
    const ses_generation_task *task = p->state;
    ses_generation_request *s = r->state;
    ses_string text = r->item.text;
    if (!(s->o = item_options(p, r, e))) return false;
    if (task->template) {
        size_t n = 0;
        char *filled = ses_prompt_template_fill(task->template, text, r->item.pair, a->shots, &n, e);
        text = filled ? ses_request_copy_string(r, filled, n, e) : (ses_string){ 0 };
        ses_free(filled);
        if (!text.p) return ses_wrap(e, "%s", a->template);
    }
    s->prompt = text;
    if (task->prefix.n && !(text = ses_request_join_strings(r, task->prefix, text, e)).p) return false;
    return encode_prompt(p, r, text, e);
}

/* ---- the result ---- */

bool ses_generation_task_finish(ses_request *r, ses_result *out, const ses_result_schema *schema, ses_err *e)
{
    const ses_generation_request *s = r->state;
    for (size_t i = 0; i < s->n; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        *row = s->text[i];
    }
    out->schema = schema;
    return true;
}
