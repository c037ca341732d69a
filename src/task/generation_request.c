/* Settings of one generation request that are not options of the task: stop strings, biases, prompts as
 * ids. */
#include "generation_task.h"
#include "prepared.h"

ses_generate_options *ses_generation_request_own_options(ses_request *r, ses_err *e)
{
    ses_generation_request *s = r->state;
    if (s->own) return s->own;
    ses_generate_options *o = ses_arena_array(&r->mem, 1, sizeof *o, e);
    if (!o) return NULL;
    *o = *s->o;
    s->o = o;
    return s->own = o;
}

bool ses_generation_request_add_stop(ses_request *r, ses_string stop, ses_err *e)
{
    ses_generate_options *o = ses_generation_request_own_options(r, e);
    if (!stop.n || memchr(stop.p, 0, stop.n))
        return ses_fail(e, SES_EARG, "a stop string is empty or contains NUL");
    size_t n = o ? (size_t)o->n_stop_strings : 0;
    const char **list = o ? ses_arena_array(&r->mem, n + 1, sizeof *list, e) : NULL;
    ses_string copy = list ? ses_request_copy_string(r, stop.p, stop.n, e) : (ses_string){ 0 };
    if (!copy.p) return false;
    for (size_t i = 0; i < n; i++) list[i] = o->stop_strings[i];
    list[n] = copy.p;
    o->stop_strings = list, o->n_stop_strings++;
    return true;
}

bool ses_generation_request_add_bias(ses_request *r, int32_t id, double bias, ses_err *e)
{
    ses_generate_options *o = ses_generation_request_own_options(r, e);
    ses_generation_request *s = r->state;
    size_t n = o ? (size_t)o->n_sequence_bias : 0;
    int32_t *copy = o ? ses_arena_array(&r->mem, 1, sizeof *copy, e) : NULL;
    if (!copy) return false;
    if (n >= s->bias_capacity) {
        size_t capacity = n < 8 ? 16 : 2 * n;
        ses_id_bias *list = ses_arena_array(&r->mem, capacity, sizeof *list, e);
        if (!list) return false;
        for (size_t i = 0; i < n; i++) list[i] = o->sequence_bias[i];
        s->bias = list, s->bias_capacity = capacity;
        o->sequence_bias = list;
    }
    *copy = id;
    s->bias[n] = (ses_id_bias){ { copy, 1 }, bias };
    o->n_sequence_bias++;
    return true;
}

static bool check_prompt(const ses_pipeline *p, const int32_t *id, size_t n, ses_err *e)
{
    int64_t vocab = ses_model_source_vocab_size(p->model), max = p->settings.max_seq_len;
    if (!n) return ses_fail(e, SES_EARG, "the prompt is empty");
    if ((int64_t)n > max)
        return ses_fail(e, SES_EARG, "the prompt has %lld tokens, the model accepts at most %lld",
                        (long long)n, (long long)max);
    for (size_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= vocab)
            return ses_fail(e, SES_EARG, "token id %d at index %zu of the prompt, expected 0 to %lld",
                            (int)id[i], i, (long long)vocab - 1);
    return true;
}

/* Results have the decoded prompt; the model reads the given ids. */
ses_request *ses_generation_request_from_ids(ses_pipeline *p, const ses_item *item, const int32_t *id,
                                             size_t n, ses_err *e)
{
    ses_arena mem = { 0 };
    ses_item with_text = *item;
    ses_request *r = NULL;
    int32_t *known = check_prompt(p, id, n, e) ? ses_arena_array(&mem, n, sizeof *known, e) : NULL;
    size_t m = 0;
    for (size_t i = 0; known && i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(p->tokenizer)) known[m++] = id[i];
    if (known && ses_decode(p->tokens, known, m, true, &with_text.text.p, &with_text.text.n, e)) {
        with_text.text.p = ses_arena_strndup(&mem, with_text.text.p, with_text.text.n, e);
        r = with_text.text.p ? ses_request_prepare(p, &with_text, e) : NULL;
    }
    int32_t *copy = r ? ses_arena_array(&r->mem, n, sizeof *copy, e) : NULL;
    ses_arena_free(&mem);
    if (!copy) {
        ses_request_free(r);
        return NULL;
    }
    memcpy(copy, id, n * sizeof *copy);
    r->seq[0].id = copy, r->seq[0].n = n, r->tokens = (int64_t)n, r->truncated = 0;
    ((ses_generation_request *)r->state)->prompt = r->item.text;
    return r;
}
