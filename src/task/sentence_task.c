#include "sentence_task.h"

#include "base/alloc.h"

bool ses_sentence_task_load(ses_pipeline *p, ses_err *e)
{
    const ses_sentence_args *a = p->args;
    ses_sentence_task *my = p->self;
    if (a->normalize && a->no_normalize)
        return ses_fail(e, SES_EUSAGE, "--normalize and --no-normalize exclude each other");
    ses_sentence_options o = { .pooling = a->pooling, .layer = a->layer, .base = p->base };
    o.normalize = a->normalize      ? SES_NORMALIZE_ON
                  : a->no_normalize ? SES_NORMALIZE_OFF
                                    : SES_NORMALIZE_DEFAULT;
    my->sentence = ses_sentence_open(p->dir, p->dev, &o, e);
    if (!my->sentence) return false;
    p->borrowed = true;
    p->lower = ses_sentence_lower_case(my->sentence);
    p->model = ses_sentence_model(my->sentence);
    ses_free(p->dir); /* the tokenizer may lie in a folder of its own */
    p->dir = ses_strdup(ses_sentence_dir(my->sentence), e);
    return p->dir != NULL;
}

/* Tokens of the prompt at the front of a sequence: as it is tokenized alone, without what closes it. */
static bool count_prompt(ses_pipeline *p, ses_sentence_task *my, ses_err *e)
{
    if (!my->prompt.n || ses_sentence_pools_prompt(my->sentence)) return true;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = p->limit };
    if (!ses_encode(p->tokens, &(ses_input){ .text = my->prompt }, &o, e)) return false;
    const ses_encoding *x = ses_tokens_result(p->tokens);
    my->closed = x->n && x->special_mask[x->n - 1];
    my->prompt_tokens = (int32_t)x->n - my->closed;
    return true;
}

bool ses_sentence_task_open(ses_pipeline *p, ses_err *e)
{
    const ses_sentence_args *a = p->args;
    ses_sentence_task *my = p->self;
    int64_t most = ses_sentence_max_tokens(my->sentence);
    if (a->prompt && a->prompt_name)
        return ses_fail(e, SES_EUSAGE, "--prompt and --prompt-name exclude each other");
    const char *prompt = a->prompt ? a->prompt : ses_sentence_prompt(my->sentence, a->prompt_name);
    if (a->prompt_name && !prompt)
        return ses_fail(e, SES_EUSAGE, "--prompt-name: the folder has no prompt \"%s\"", a->prompt_name);
    my->prompt = prompt ? ses_str(prompt) : (ses_string){ 0 };
    if (most > 0 && most < p->most) p->most = most;
    p->limit = p->most; /* what the tokenizer's file stores gives way to the encoder's own */
    return count_prompt(p, my, e);
}

void ses_sentence_task_close(ses_pipeline *p)
{
    ses_sentence_task *my = p->self;
    ses_sentence_free(my->sentence);
}

bool ses_sentence_task_forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *want,
                               ses_outputs *out, ses_err *e)
{
    (void)want;
    ses_sentence_task *my = p->self;
    int32_t *prompt = NULL;
    if (my->prompt_tokens) {
        int64_t most = p->limit - my->closed; /* the limit may have been lowered since */
        int32_t n = my->prompt_tokens < most ? my->prompt_tokens : (int32_t)most;
        prompt = ses_arena_array(&p->batch_mem, (size_t)b->seqs, sizeof *prompt, e);
        if (!prompt) return false;
        for (int64_t s = 0; s < b->seqs; s++) prompt[s] = n;
    }
    my->output = (ses_output){ .name = "sentence_embedding", .axis = SES_PER_SEQUENCE };
    my->output.tensor = ses_sentence_embed(my->sentence, p->tape, b, prompt, e);
    *out = (ses_outputs){ .item = &my->output, .n = 1 };
    return my->output.tensor != NULL;
}

ses_seq *ses_sentence_task_add(ses_pipeline *p, ses_request *j, ses_string text, ses_err *e)
{
    const ses_sentence_task *my = p->self;
    if (my->prompt.n) {
        char *s = ses_arena_alloc(&j->mem, my->prompt.n + text.n + 1, e);
        if (!s) return NULL;
        memcpy(s, my->prompt.p, my->prompt.n);
        memcpy(s + my->prompt.n, text.p, text.n);
        s[my->prompt.n + text.n] = 0;
        text = (ses_string){ s, my->prompt.n + text.n };
    }
    return ses_request_encode(p, j, &(ses_input){ .text = text }, SES_TRUNCATE_LONGEST_FIRST, e);
}

ses_output_rows ses_sentence_task_vector(ses_pipeline *p, const ses_seq *q, ses_err *e)
{
    return ses_request_output_rows(p, q, "sentence_embedding", e);
}
