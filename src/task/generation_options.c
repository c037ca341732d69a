/* Option table of the tasks that generate text; names as in transformers' generate(). */
#include "generation_task.h"

#define WAS_SET(i) .was_set = offsetof(ses_generation_args, was_set) + (i)
#define COUNT(i, name_, field, min_, max_, ...) \
    [i] = SES_OPT_INT(ses_generation_args, o.field, name_, NULL, min_, max_, __VA_ARGS__, WAS_SET(i))
#define NUMBER(i, name_, field, min_, max_, ...) \
    [i] = SES_OPT_REAL(ses_generation_args, o.field, name_, NULL, min_, max_, __VA_ARGS__, WAS_SET(i))
#define LIST(i, name_, field, value_, ...) \
    [i] = SES_OPT_LIST(ses_generation_args, field, name_, value_, __VA_ARGS__)
#define TEXT(i, name_, field, value_, ...) \
    [i] = SES_OPT_TEXT(ses_generation_args, field, name_, value_, __VA_ARGS__)

const ses_opt ses_generation_opt[SES_GENERATION_OPTION_COUNT] = {
    COUNT(SES_GEN_MAX_NEW_TOKENS, "max-new-tokens", max_new_tokens, 1, 1e9,
          "maximum number of generated tokens (default 256, or the folder's)", .alias = "max-tokens",
          .letter = 'n'),
    COUNT(SES_GEN_MAX_LENGTH, "max-length", max_length, 1, 1e9,
          "maximum number of tokens, prompt included; --max-new-tokens overrides it", .group = "length"),
    COUNT(SES_GEN_MIN_NEW_TOKENS, "min-new-tokens", min_new_tokens, 0, 1e9,
          "minimum number of generated tokens", .group = "length"),
    COUNT(SES_GEN_MIN_LENGTH, "min-length", min_length, 0, 1e9, "minimum number of tokens, prompt included",
          .group = "length"),
    COUNT(SES_GEN_NUM_BEAMS, "num-beams", num_beams, 1, 4096, "number of beams; 1: no beam search"),
    COUNT(SES_GEN_NUM_BEAM_GROUPS, "num-beam-groups", num_beam_groups, 1, 4096,
          "number of groups for diverse beam search", .group = "beams"),
    COUNT(SES_GEN_NUM_RETURN_SEQUENCES, "num-return-sequences", num_return_sequences, 1, 4096,
          "number of texts for each prompt", .group = "result"),
    NUMBER(SES_GEN_LENGTH_PENALTY, "length-penalty", length_penalty, -1e3, 1e3,
           "beams: above 0 favors long texts, below 0 short ones", .group = "beams"),
    NUMBER(SES_GEN_DIVERSITY_PENALTY, "diversity-penalty", diversity_penalty, 0, 1e6,
           "penalty for tokens chosen by earlier groups", .group = "beams"),
    [SES_GEN_EARLY_STOPPING] =
        SES_OPT_CHOICE(ses_generation_args, o.early_stopping, "early-stopping", "false", "false|true|never",
                       "stop beams at num_beams texts (true), when improvement is unlikely "
                       "(false) or impossible (never)",
                       WAS_SET(SES_GEN_EARLY_STOPPING), .implicit_value = "true", .group = "beams"),
    [SES_GEN_DO_SAMPLE] =
        SES_OPT_CHOICE(ses_generation_args, do_sample, "do-sample", NULL, "false|true",
                       "sample tokens; default: take the most likely one", .implicit_value = "true"),
    NUMBER(SES_GEN_TEMPERATURE, "temperature", temperature, 0, 1e6,
           "sampling temperature, below 1: less random; 0: the most likely token"),
    [SES_GEN_TOP_K] = SES_OPT_INT(ses_generation_args, o.top_k, "top-k", NULL, 1, 1 << 24,
                                  "sample among the N most likely tokens (default 50, or the folder's)",
                                  WAS_SET(SES_GEN_TOP_K), .value = "N|all", .zero_word = "all"),
    NUMBER(SES_GEN_TOP_P, "top-p", top_p, 0, 1,
           "sample among the most likely tokens with this total probability"),
    NUMBER(SES_GEN_MIN_P, "min-p", min_p, 0, 1,
           "sample among tokens with at least this fraction of the highest probability", .group = "sampling"),
    NUMBER(SES_GEN_TYPICAL_P, "typical-p", typical_p, 0, 1,
           "sample among tokens with information closest to the entropy", .group = "sampling"),
    NUMBER(SES_GEN_EPSILON_CUTOFF, "epsilon-cutoff", epsilon_cutoff, 0, 1,
           "sample among tokens with at least this probability", .group = "sampling"),
    NUMBER(SES_GEN_ETA_CUTOFF, "eta-cutoff", eta_cutoff, 0, 1,
           "the same, with a lower cutoff if the entropy is high", .group = "sampling"),
    NUMBER(SES_GEN_TOP_H, "top-h", top_h, 0, 1,
           "sample among the most likely tokens with this fraction of the entropy", .group = "sampling"),
    [SES_GEN_SEED] = { .name = "seed", /* unsigned */
                       .type = SES_OPT_IS_INT,
                       .offset = offsetof(ses_generation_args, o.seed),
                       WAS_SET(SES_GEN_SEED),
                       .max = 9e15,
                       .help = "random seed for --do-sample; the default, 0, gives the same text each time" },
    NUMBER(SES_GEN_REPETITION_PENALTY, "repetition-penalty", repetition_penalty, 1e-6, 1e6,
           "above 1: tokens of the text become less likely", .group = "penalties"),
    NUMBER(SES_GEN_ENCODER_REPETITION_PENALTY, "encoder-repetition-penalty", encoder_repetition_penalty, 1e-6,
           1e6, "above 1: tokens of the source become more likely", .group = "penalties"),
    NUMBER(SES_GEN_PRESENCE_PENALTY, "presence-penalty", presence_penalty, -2, 2,
           "subtract this from the logits of generated tokens", .group = "penalties"),
    NUMBER(SES_GEN_FREQUENCY_PENALTY, "frequency-penalty", frequency_penalty, -2, 2,
           "the same, for each time a token was generated", .group = "penalties"),
    COUNT(SES_GEN_NO_REPEAT_NGRAM_SIZE, "no-repeat-ngram-size", no_repeat_ngram_size, 0, 1e6,
          "never generate an n-gram of this size twice", .group = "penalties"),
    COUNT(SES_GEN_ENCODER_NO_REPEAT_NGRAM_SIZE, "encoder-no-repeat-ngram-size", encoder_no_repeat_ngram_size,
          0, 1e6, "never generate an n-gram of this size that is in the source", .group = "penalties"),
    LIST(SES_GEN_STOP_STRINGS, "stop-strings", stop, "A,B", "stop after one of these strings"),
    LIST(SES_GEN_BAD_WORDS, "bad-words", bad_words, "A,B", "words never to generate", .group = "tokens"),
    LIST(SES_GEN_SUPPRESS_TOKENS, "suppress-tokens", suppress, "ID,ID", "tokens never to generate",
         .group = "tokens"),
    LIST(SES_GEN_BEGIN_SUPPRESS_TOKENS, "begin-suppress-tokens", begin_suppress, "ID,ID",
         "tokens never to generate first", .group = "tokens"),
    LIST(SES_GEN_EOS_TOKEN_ID, "eos-token-id", eos, "ID,ID", "tokens that end a text", .group = "tokens"),
    [SES_GEN_FORCED_BOS_TOKEN_ID] =
        SES_OPT_INT(ses_generation_args, forced_bos, "forced-bos-token-id", "-1", -1, 1 << 24,
                    "first generated token, after the decoder start token; -1: the "
                    "folder's",
                    .value = "ID", .group = "tokens"),
    [SES_GEN_RETURN_FULL_TEXT] =
        SES_OPT_CHOICE(ses_generation_args, full_text, "return-full-text", NULL, "false|true",
                       "text-generation: output the prompt and its continuation (true), "
                       "or the continuation only (false)",
                       .implicit_value = "true", .group = "result"),
    TEXT(SES_GEN_PREFIX, "prefix", prefix, "TEXT", "put this before every text", .group = "prompt"),
    TEXT(SES_GEN_TEMPLATE, "template", template, "FILE",
         "JSON file that makes prompts: instruction, examples, query; see the manual", .group = "prompt"),
    [SES_GEN_SHOTS] = SES_OPT_INT(ses_generation_args, shots, "shots", "-1", -1, 1e6,
                                  "number of examples of --template; -1: all", .group = "prompt"),
    TEXT(SES_GEN_TASK, "task", task, "NAME",
         "use the settings of this name in config.json's task_specific_params", .group = "prompt"),
    TEXT(SES_GEN_SRC_LANG, "src-lang", src_lang, "CODE", "language token of the text: en_XX"),
    TEXT(SES_GEN_TGT_LANG, "tgt-lang", tgt_lang, "CODE", "language token to generate first: de_DE"),
    [SES_GEN_STREAM] =
        SES_OPT_FLAG(ses_generation_args, stream, "stream",
                     "print texts while they are generated, also if the output is not a terminal"),
    [SES_GEN_RENORMALIZE_LOGITS] = SES_OPT_CHOICE(
        ses_generation_args, renormalize, "renormalize-logits", NULL, "false|true",
        "renormalize scores after all logits processors", .implicit_value = "true", .group = "sampling"),
    [SES_GEN_LOGPROBS] = SES_OPT_FLAG(ses_generation_args, logprobs, "logprobs",
                                      "output the model's log-probability of each generated token: key "
                                      "\"logprobs\"",
                                      .group = "result"),
    LIST(SES_GEN_FORCED_EOS_TOKEN_ID, "forced-eos-token-id", forced_eos, "ID,ID",
         "force one as last token at maximum length", .group = "tokens"),
    COUNT(SES_GEN_TOP_LOGPROBS, "top-logprobs", top_logprobs, 0, 1000,
          "the same, and the N most likely tokens at each position: key \"top_logprobs\"", .group = "result"),
    [SES_GEN_PROMPT_LOGPROBS] = SES_OPT_FLAG(ses_generation_args, prompt_logprobs, "prompt-logprobs",
                                             "output the log-probability of each token of the prompt: key "
                                             "\"prompt_logprobs\"",
                                             .group = "result"),
};

const char ses_generation_item_settings[] =
    "max-new-tokens|max-length|min-new-tokens|min-length|num-beams|num-beam-groups|num-return-sequences|"
    "length-penalty|diversity-penalty|early-stopping|do-sample|temperature|top-k|top-p|min-p|typical-p|"
    "epsilon-cutoff|eta-cutoff|top-h|seed|repetition-penalty|encoder-repetition-penalty|presence-penalty|"
    "frequency-penalty|no-repeat-ngram-size|encoder-no-repeat-ngram-size|return-full-text|shots|renormalize-"
    "logits|logprobs|top-logprobs|"
    "prompt-logprobs";
