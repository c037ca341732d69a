/* Checks the options of ses_generate and the model's class. */
#include "generate_impl.h"
#include "model/model_desc.h"

bool ses_generate_check_ids(ses_ids ids, int64_t vocab_size, const char *name, ses_err *e)
{
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < 0 || ids.id[i] >= vocab_size)
            return ses_fail(e, SES_EARG, "%s: token id %d, expected 0 to %lld", name, (int)ids.id[i],
                            (long long)vocab_size - 1);
    return true;
}

static bool in_range(double x, double low, double high, const char *name, ses_err *e)
{
    if (x >= low && x <= high) return true;
    return ses_fail(e, SES_EARG, "%s is %g, expected %g to %g", name, x, low, high);
}

static bool check_numbers(const ses_generate_options *o, ses_err *e)
{
    if (!(o->temperature > 0))
        return ses_fail(e, SES_EARG, "temperature is %g, expected a number above 0%s", o->temperature,
                        o->temperature == 0 ? " (greedy decoding needs no temperature: leave out do_sample)"
                                            : "");
    if (!(o->repetition_penalty > 0) || !(o->encoder_repetition_penalty > 0))
        return ses_fail(e, SES_EARG, "repetition_penalty must be above 0");
    return in_range((double)o->top_k, 0, 1e9, "top_k", e) && in_range(o->top_p, 0, 1, "top_p", e) &&
           in_range(o->min_p, 0, 1, "min_p", e) && in_range(o->typical_p, 0, 1, "typical_p", e) &&
           in_range(o->top_h, 0, 1, "top_h", e) && in_range(o->epsilon_cutoff, 0, 1, "epsilon_cutoff", e) &&
           in_range(o->eta_cutoff, 0, 1, "eta_cutoff", e) &&
           in_range(o->presence_penalty, -2, 2, "presence_penalty", e) &&
           in_range(o->frequency_penalty, -2, 2, "frequency_penalty", e) &&
           in_range((double)o->no_repeat_ngram_size, 0, 1e6, "no_repeat_ngram_size", e) &&
           in_range((double)o->encoder_no_repeat_ngram_size, 0, 1e6, "encoder_no_repeat_ngram_size", e) &&
           in_range((double)o->max_new_tokens, 0, 1e9, "max_new_tokens", e) &&
           in_range((double)o->max_length, 0, 1e9, "max_length", e) &&
           in_range((double)o->top_logprobs, 0, SES_MAX_TOP_LOGPROBS, "top_logprobs", e) &&
           in_range((double)o->decay_start, -1e9, 1e9, "exponential_decay_length_penalty[0]", e);
}

static bool check_beams(const ses_generate_options *o, ses_err *e)
{
    int64_t groups = o->num_beam_groups;
    if (o->num_beams < 1 || o->num_beams > 4096)
        return ses_fail(e, SES_EARG, "num_beams is %lld, expected 1 to 4096", (long long)o->num_beams);
    if (groups < 1 || o->num_beams % groups)
        return ses_fail(e, SES_EARG, "%lld beams cannot be split into %lld equal groups",
                        (long long)o->num_beams, (long long)groups);
    if (groups > 1 && o->do_sample)
        return ses_fail(e, SES_EARG, "num_beam_groups and do_sample exclude each other");
    if (o->num_return_sequences < 1 || o->num_return_sequences > 4096)
        return ses_fail(e, SES_EARG, "num_return_sequences is %lld, expected 1 to 4096",
                        (long long)o->num_return_sequences);
    if (o->num_return_sequences > 1 && o->num_beams == 1 && !o->do_sample)
        return ses_fail(
            e, SES_EARG,
            "num_return_sequences is %lld, but greedy decoding gives one text: use beams or do_sample",
            (long long)o->num_return_sequences);
    if (o->num_beams > 1 && o->num_return_sequences > o->num_beams)
        return ses_fail(e, SES_EARG, "num_return_sequences is %lld, expected at most num_beams, %lld",
                        (long long)o->num_return_sequences, (long long)o->num_beams);
    if (o->num_beams > 1 && o->on_token)
        return ses_fail(e, SES_EARG, "on_token needs one beam: beams are known only at the end");
    return true;
}

/* At least one of the forced tokens must not be suppressed. */
static bool check_forced(ses_ids forced, ses_ids suppress, const char *name, ses_err *e)
{
    int64_t banned = 0;
    for (int64_t i = 0; i < forced.n; i++) {
        bool found = false;
        for (int64_t k = 0; k < suppress.n; k++) found |= suppress.id[k] == forced.id[i];
        banned += found;
    }
    return !forced.n || banned < forced.n ||
           ses_fail(e, SES_EARG, "suppress_tokens contains every token of %s: %d is forced and suppressed",
                    name, (int)forced.id[0]);
}

static bool check_words(const ses_generator *g, const ses_generate_options *o, ses_err *e)
{
    if (o->n_stop_strings && !o->tokenizer)
        return ses_fail(e, SES_EARG, "stop_strings need options.tokenizer");
    for (int64_t i = 0; i < o->n_bad_words; i++)
        if (o->bad_words[i].n < 1 ||
            !ses_generate_check_ids(o->bad_words[i], g->vocab_size, "bad_words_ids", e))
            return ses_fail(e, SES_EARG, "bad_words_ids contains an empty list");
    for (int64_t i = 0; i < o->n_sequence_bias; i++)
        if (o->sequence_bias[i].ids.n < 1 ||
            !ses_generate_check_ids(o->sequence_bias[i].ids, g->vocab_size, "sequence_bias", e))
            return ses_fail(e, SES_EARG, "sequence_bias contains an empty list");
    ses_ids bos = { &o->forced_bos, o->forced_bos >= 0 };
    return ses_generate_check_ids(o->forced_eos, g->vocab_size, "forced_eos_token_id", e) &&
           ses_generate_check_ids(bos, g->vocab_size, "forced_bos_token_id", e) &&
           check_forced(bos, o->suppress, "forced_bos_token_id", e) &&
           check_forced(o->forced_eos, o->suppress, "forced_eos_token_id", e);
}

/* The model needs a head that predicts the next token. */
bool ses_generate_check_model(ses_generator *g, ses_err *e)
{
    const ses_head_use *use = ses_class_lm_head(g->model->desc, g->model->class);
    if (!use)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s does not generate text: expected a class for causal language modeling or conditional "
            "generation",
            ses_model_class_name(g->model));
    if (g->model->c.rnn.backward)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "this \"%s\" reads texts from their end to their beginning and cannot continue them: "
                        "expected a forward model",
                        ses_model_type(g->model));
    g->logits_name = use->output;
    g->has_encoder = use->head == &ses_head_seq2seq_lm;
    return true;
}

static bool check_decoder_start(const ses_generator *g, ses_generate_options *o, ses_err *e)
{
    int32_t *start = &o->decoder_start;
    if (!g->has_encoder) return true;
    if (*start < 0) *start = o->bos;
    if (*start >= g->vocab_size)
        return ses_fail(e, SES_EARG, "decoder_start_token_id is %d, expected 0 to %lld", (int)*start,
                        (long long)g->vocab_size - 1);
    return *start >= 0 ||
           ses_fail(e, SES_EARG, "decoder_start_token_id is missing, and so is bos_token_id, its default");
}

bool ses_generate_check(const ses_generator *g, ses_generate_options *o, ses_err *e)
{
    if (o->prompt_logprobs && (g->has_encoder || g->states))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "prompt_logprobs is not supported with %s: expected a decoder with a KV cache",
                        ses_model_class_name(g->model));
    return check_decoder_start(g, o, e) && check_beams(o, e) && check_numbers(o, e) && check_words(g, o, e);
}
