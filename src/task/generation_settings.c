/* Settings of the tasks that generate text: the folder's generation_config.json, its
 * task_specific_params, and the options that were set, in this order. */
#include "generation_task.h"
#include "text/language_token.h"

#include <stdio.h>

enum { DEFAULT_NEW_TOKENS = 256 }; /* as in the transformers pipelines */

/* ---- options that were set ---- */

static size_t value_size(ses_opt_type t)
{
    return t == SES_OPT_IS_INT      ? sizeof(int64_t)
           : t == SES_OPT_IS_REAL   ? sizeof(double)
           : t == SES_OPT_IS_CHOICE ? sizeof(int)
                                    : 0;
}

void ses_generation_settings_apply(const ses_generation_args *a, ses_generate_options *o)
{
    size_t base = offsetof(ses_generation_args, o);
    for (size_t i = 0; i < SES_GENERATION_OPTION_COUNT; i++) {
        const ses_opt *x = &ses_generation_opt[i];
        if (x->was_set && a->was_set[i])
            memcpy((char *)o + (x->offset - base), (const char *)a + x->offset, value_size(x->type));
    }
    if (a->prompt_logprobs) o->prompt_logprobs = true;
    if (a->do_sample >= 0) o->do_sample = a->do_sample;
    if (o->temperature == 0) { /* the limit of ever lower temperatures */
        o->do_sample = false;
        o->temperature = 1;
    }
    if (a->renormalize >= 0) o->renormalize_logits = a->renormalize;
    if (a->forced_bos >= 0) o->forced_bos = (int32_t)a->forced_bos;
    bool total_only = a->was_set[SES_GEN_MAX_LENGTH] && !a->was_set[SES_GEN_MAX_NEW_TOKENS];
    if (total_only) o->max_new_tokens = 0; /* it would override max_length */
}

static bool parse_ids(ses_pipeline *p, const ses_opt_list *l, const char *option, ses_ids *out, ses_err *e)
{
    ses_string *word;
    size_t n;
    if (!l->n) return true;
    if (!ses_pipeline_split_list(p, l, true, &word, &n, e)) return false;
    int32_t *id = ses_arena_array(&p->mem, n + 1, sizeof *id, e);
    for (size_t i = 0; id && i < n; i++) {
        int64_t x = 0;
        size_t used = 0;
        while (used < word[i].n && used < 9 && word[i].p[used] >= '0' && word[i].p[used] <= '9')
            x = 10 * x + word[i].p[used++] - '0';
        if (!used || used < word[i].n || x >= ses_model_vocab_size(p->model))
            return ses_fail(e, SES_EUSAGE, "--%s: '%s' is not a token id below %lld", option, word[i].p,
                            (long long)ses_model_vocab_size(p->model));
        id[i] = (int32_t)x;
    }
    *out = (ses_ids){ id, (int64_t)n };
    return id != NULL;
}

/* Each word is banned twice: as it is, and after a space. */
static bool encode_bad_words(ses_pipeline *p, const ses_opt_list *l, ses_generate_options *o, ses_err *e)
{
    ses_string *word;
    size_t n, count = 0;
    if (!l->n) return true;
    if (!ses_pipeline_split_list(p, l, false, &word, &n, e)) return false;
    ses_ids *list = ses_arena_array(&p->mem, 2 * n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < 2 * n; i++) {
        char text[256];
        const int32_t *id;
        size_t k;
        int len = snprintf(text, sizeof text, "%s%s", i % 2 ? " " : "", word[i / 2].p);
        if (len < 0 || (size_t)len >= sizeof text)
            return ses_fail(e, SES_EUSAGE, "--bad-words: a word has %d bytes, the maximum is %d", len,
                            (int)sizeof text - 1);
        if (!ses_encode_ids(p->target_tokens, text, (size_t)len, false, &id, &k, e)) return false;
        int32_t *copy = ses_arena_array(&p->mem, k + 1, sizeof *copy, e);
        if (!copy) return false;
        memcpy(copy, id, k * sizeof *copy);
        if (k) list[count++] = (ses_ids){ copy, (int64_t)k };
    }
    o->bad_words = list, o->n_bad_words = (int64_t)count;
    return list != NULL;
}

/* Stop strings of the options and of the template. They may contain commas: each option is one string. */
static bool join_stop_strings(ses_pipeline *p, const ses_generation_args *a, ses_err *e)
{
    ses_generation_task *task = p->state;
    const char *const *more = NULL;
    size_t n_more = task->template ? ses_prompt_template_stops(task->template, &more) : 0;
    if (!a->stop.n && !n_more) return true;
    const char **list = ses_arena_array(&p->mem, a->stop.n + n_more + 1, sizeof *list, e);
    if (!list) return false;
    for (size_t i = 0; i < a->stop.n; i++) list[i] = a->stop.item[i];
    for (size_t i = 0; i < n_more; i++) list[a->stop.n + i] = more[i];
    task->o.stop_strings = list, task->o.n_stop_strings = (int64_t)(a->stop.n + n_more);
    return true;
}

static bool find_language(ses_pipeline *p, const char *code, const char *option, int32_t *id, ses_err *e)
{
    return !code || ses_language_token_id(p->tokenizer, code, id, e) || ses_wrap(e, "--%s", option);
}

/* ---- the folder ---- */

/* task_specific_params of config.json under the name the task was called by: settings and a prefix. */
static bool read_task_params(ses_pipeline *p, const ses_generation_args *a, ses_err *e)
{
    ses_generation_task *task = p->state;
    const ses_json *config = ses_model_config(p->model), *all = ses_json_get(config, "task_specific_params");
    const ses_json *params = a->task ? ses_json_get(all, a->task) : NULL;
    const ses_json *prefix = ses_json_get(params, "prefix");
    if (!prefix) prefix = ses_json_get(config, "prefix");
    task->prefix.p = ses_json_string(prefix, &task->prefix.n);
    if (a->prefix) task->prefix = ses_str(a->prefix);
    bool unknown = a->task && !params && strcmp(a->task, ses_task_canonical_name(p->task));
    if (unknown &&
        !ses_pipeline_warn(p, e, "config.json has no task_specific_params for %s: the name has no effect",
                           a->task))
        return false;
    return ses_generation_config_read(task->config, params, &task->o, e) ||
           ses_wrap(e, "%s/config.json: task_specific_params: %s", p->dir, a->task);
}

/* ---- checks ---- */

static bool warn_no_effect(ses_pipeline *p, const ses_generation_args *a, ses_err *e)
{
    const ses_generate_options *o = &((const ses_generation_task *)p->state)->o;
    for (size_t i = SES_GEN_TEMPERATURE; i <= SES_GEN_SEED; i++)
        if (a->was_set[i] && !o->do_sample && !(i == SES_GEN_TEMPERATURE && a->o.temperature == 0) &&
            !ses_pipeline_warn(p, e, "--%s has no effect without --do-sample", ses_generation_opt[i].name))
            return false;
    const struct {
        bool unused;
        const char *option, *why;
    } list[] = {
        { a->was_set[SES_GEN_LENGTH_PENALTY] && o->num_beams == 1, "length-penalty", "without --num-beams" },
        { a->was_set[SES_GEN_EARLY_STOPPING] && o->num_beams == 1, "early-stopping", "without --num-beams" },
        { a->was_set[SES_GEN_DIVERSITY_PENALTY] && o->num_beam_groups == 1, "diversity-penalty",
          "without --num-beam-groups" },
        { a->full_text >= 0 && ses_generation_has_encoder(p), "return-full-text",
          "on a model with an encoder" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (list[i].unused && !ses_pipeline_warn(p, e, "--%s has no effect %s", list[i].option, list[i].why))
            return false;
    int64_t max = ses_model_max_tokens(p->model);
    int64_t requested = a->was_set[SES_GEN_MAX_NEW_TOKENS] ? o->max_new_tokens
                        : a->was_set[SES_GEN_MAX_LENGTH]   ? o->max_length
                                                           : 0;
    return requested <= max ||
           ses_pipeline_warn(p, e,
                             "the context of the model is %lld tokens, prompt included: texts "
                             "end there",
                             (long long)max);
}

bool ses_generation_check_lengths(const ses_generate_options *o, ses_err *e)
{
    if (o->max_new_tokens && o->min_new_tokens > o->max_new_tokens)
        return ses_fail(e, SES_EUSAGE, "--min-new-tokens %lld and --max-new-tokens %lld exclude each other",
                        (long long)o->min_new_tokens, (long long)o->max_new_tokens);
    if (!o->max_new_tokens && o->max_length && o->min_length > o->max_length)
        return ses_fail(e, SES_EUSAGE, "--min-length %lld and --max-length %lld exclude each other",
                        (long long)o->min_length, (long long)o->max_length);
    return true;
}

static bool check_settings(ses_pipeline *p, const ses_generation_args *a, ses_err *e)
{
    const ses_generate_options *o = &((const ses_generation_task *)p->state)->o;
    if (a->shots >= 0 && !a->template) return ses_fail(e, SES_EUSAGE, "--shots needs --template FILE");
    if (!warn_no_effect(p, a, e)) return false;
    if (!ses_generation_check_lengths(o, e)) return false;
    if (a->stream && o->num_beams > 1)
        return ses_fail(e, SES_EUSAGE,
                        "--stream and --num-beams exclude each other: beams are known only at the end");
    if (a->stream && (a->logprobs || o->top_logprobs || o->prompt_logprobs))
        return ses_fail(e, SES_EUSAGE, "--stream and log-probabilities exclude each other");
    ses_err why = { 0 }; /* generating for no prompt checks the options only */
    ses_generated *nothing = ses_generate(p->model, NULL, 0, o, &why);
    if (!nothing) return ses_fail(e, why.code == SES_EARG ? SES_EUSAGE : why.code, "%s", why.msg);
    ses_generated_free(nothing);
    return true;
}

bool ses_generation_settings_read(ses_pipeline *p, ses_err *e)
{
    const ses_generation_args *a = p->settings.args;
    ses_generation_task *task = p->state;
    ses_generate_options *o = &task->o;
    task->config = ses_generation_config_open(p->model, e);
    if (!task->config) return false;
    *o = *ses_generation_config_options(task->config);
    bool default_length = !o->max_new_tokens && !o->max_length;
    if (default_length) o->max_new_tokens = DEFAULT_NEW_TOKENS;
    if (a->template && !(task->template = ses_prompt_template_open(a->template, e))) return false;
    if (!read_task_params(p, a, e)) return false;
    if (o->max_length && o->max_new_tokens == DEFAULT_NEW_TOKENS)
        o->max_new_tokens = 0; /* task_specific_params has set max_length */
    ses_generation_settings_apply(a, o);
    o->tokenizer = p->target_tokenizer;
    if (o->pad < 0) o->pad = p->tokenizer_config.role[SES_ROLE_PAD];
    task->src_lang = -1;
    return parse_ids(p, &a->suppress, "suppress-tokens", &o->suppress, e) &&
           parse_ids(p, &a->begin_suppress, "begin-suppress-tokens", &o->begin_suppress, e) &&
           parse_ids(p, &a->eos, "eos-token-id", &o->eos, e) &&
           parse_ids(p, &a->forced_eos, "forced-eos-token-id", &o->forced_eos, e) &&
           encode_bad_words(p, &a->bad_words, o, e) && join_stop_strings(p, a, e) &&
           find_language(p, a->src_lang, "src-lang", &task->src_lang, e) &&
           find_language(p, a->tgt_lang, "tgt-lang", &o->forced_bos, e) && check_settings(p, a, e);
}
