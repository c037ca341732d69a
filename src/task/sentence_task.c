/* Loads sentence encoders for embed and similarity, and runs texts through them. */
#include "sentence_task.h"

#include "base/alloc.h"

static const char pooling_help[] = "pooling of token vectors: "
#define SES_SENTENCE_POOL(id, function, name, legacy_key) name ", "
#include "model/sentence/sentence_pools.def"
#undef SES_SENTENCE_POOL
                                   "or several to concatenate, cls,max; default: the folder's, else mean";

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_sentence_args, pooling, "pooling", "POOLING", pooling_help),
    SES_OPT_INT(ses_sentence_args, layer, "layer", "0", -1024, 1024,
                "layer to pool: 1 is the first, -1 the last, -2 the one before it; 0: the last"),
    SES_OPT_FLAG(ses_sentence_args, normalize, "normalize",
                 "scale vectors to length 1, whatever the folder specifies"),
    SES_OPT_FLAG(ses_sentence_args, no_normalize, "no-normalize",
                 "do not scale vectors, whatever the folder specifies"),
    SES_OPT_TEXT(ses_sentence_args, prompt, "prompt", "TEXT", "put this before each text"),
    SES_OPT_TEXT(
        ses_sentence_args, prompt_name, "prompt-name", "NAME",
        "put the folder's prompt of this name before each text; default: the folder's default prompt"),
    SES_OPT_CHOICE(ses_sentence_args, truncation_side, "truncation-side", NULL, "left|right",
                   "side at which tokens of a text that is too long are left out; default: the tokenizer's"),
};

const ses_opt_table ses_sentence_options_table = { opt, SES_LEN(opt) };

/* A shared encoder has its pooling already. */
static bool check_shared(const ses_sentence_args *a, ses_err *e)
{
    return !(a->pooling || a->layer || a->normalize || a->no_normalize) ||
           ses_fail(e, SES_EUSAGE,
                    "pooling, layer and normalize belong to the shared encoder: set them when it "
                    "is opened");
}

bool ses_sentence_task_load(ses_pipeline *p, ses_err *e)
{
    const ses_sentence_args *a = p->settings.args;
    if (a->normalize && a->no_normalize)
        return ses_fail(e, SES_EUSAGE, "--normalize and --no-normalize exclude each other");
    ses_sentence_options o = { .pooling = a->pooling, .layer = a->layer, .base = p->base_model };
    o.normalize = a->normalize      ? SES_NORMALIZE_ON
                  : a->no_normalize ? SES_NORMALIZE_OFF
                                    : SES_NORMALIZE_DEFAULT;
    o.model = p->model; /* shared, or NULL */
    if (p->n_adapters)
        return ses_fail(e, SES_EUNSUPPORTED, "a sentence encoder has one adapter, not %zu",
                        p->n_adapters + 1);
    if (p->encoder) {
        if (!p->original && !check_shared(a, e)) return false;
    } else {
        p->encoder = p->own_encoder = ses_sentence_open(p->dir, p->dev, &o, e);
    }
    if (!p->encoder) return false;
    p->model = ses_sentence_model(p->encoder);
    p->settings.lowercase = ses_sentence_lower_case(p->encoder);
    ses_free(p->dir); /* the tokenizer may be in a subfolder, the model's */
    p->dir = ses_strdup(ses_sentence_dir(p->encoder), e);
    return p->dir != NULL;
}

/* Counts the tokens of the prompt at the start of a sequence: the tokens of the prompt alone, except a
 * special token at its end. */
static bool count_prompt_tokens(ses_pipeline *p, ses_err *e)
{
    ses_sentence_task *task = p->state;
    if (!task->prompt.n || ses_sentence_pools_prompt(p->encoder)) return true;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = p->settings.max_seq_len };
    if (!ses_encode(p->tokens, &(ses_input){ .text = task->prompt }, &o, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(p->tokens);
    task->ends_with_special = x->n && x->special_mask[x->n - 1];
    task->prompt_tokens = (int32_t)x->n - task->ends_with_special;
    return true;
}

/* The encoder's own maximum length replaces the one stored in tokenizer.json. */
bool ses_sentence_task_open(ses_pipeline *p, ses_err *e)
{
    const ses_sentence_args *a = p->settings.args;
    ses_sentence_task *task = p->state;
    int64_t max_tokens = ses_sentence_max_tokens(p->encoder);
    if (a->prompt && a->prompt_name)
        return ses_fail(e, SES_EUSAGE, "--prompt and --prompt-name exclude each other");
    if (a->truncation_side >= 0) p->tokenizer_config.truncate_left = a->truncation_side == 0;
    const char *prompt = a->prompt ? a->prompt : ses_sentence_prompt(p->encoder, a->prompt_name);
    if (a->prompt_name && !prompt)
        return ses_fail(e, SES_EUSAGE, "--prompt-name: the folder has no prompt \"%s\"", a->prompt_name);
    task->prompt = prompt ? ses_str(prompt) : (ses_string){ 0 };
    if (max_tokens > 0 && max_tokens < p->settings.model_max_tokens)
        p->settings.model_max_tokens = max_tokens;
    p->settings.max_seq_len = p->settings.model_max_tokens;
    return count_prompt_tokens(p, e);
}

bool ses_sentence_task_forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *request,
                               ses_outputs *out, ses_err *e)
{
    (void)request;
    ses_sentence_task *task = p->state;
    int32_t *prompt_len = NULL;
    if (task->prompt_tokens) {
        int64_t max = p->settings.max_seq_len - task->ends_with_special; /* it may be lower than at open */
        int32_t n = task->prompt_tokens < max ? task->prompt_tokens : (int32_t)max;
        prompt_len = ses_arena_array(&p->runner.mem, (size_t)b->seqs, sizeof *prompt_len, e);
        if (!prompt_len) return false;
        for (int64_t s = 0; s < b->seqs; s++) prompt_len[s] = n;
    }
    task->output = (ses_output){ .name = "sentence_embedding", .axis = SES_PER_SEQUENCE };
    task->output.tensor = ses_sentence_embed(p->encoder, p->runner.pass.tape, b, prompt_len, e);
    *out = (ses_outputs){ .item = &task->output, .n = 1 };
    return task->output.tensor != NULL;
}

ses_seq *ses_sentence_task_encode(ses_pipeline *p, ses_request *r, ses_string text, ses_err *e)
{
    const ses_sentence_task *task = p->state;
    if (task->prompt.n && !(text = ses_request_join_strings(r, task->prompt, text, e)).p) return NULL;
    return ses_request_encode(p, r, &(ses_input){ .text = text }, SES_TRUNCATE_LONGEST_FIRST, e);
}

ses_output_rows ses_sentence_task_vector(ses_pipeline *p, const ses_seq *q, ses_err *e)
{
    return ses_request_output_rows(p, q, "sentence_embedding", e);
}
