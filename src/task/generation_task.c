/* Tasks that write: prompts made, texts generated many at a time, tokens made text again. */
#include "generation_task.h"

#include "base/alloc.h"
#include "base/number.h"
#include "text/language_token.h"

#include <stdio.h>
#include <string.h>

enum { NEW_TOKENS = 256 }; /* where nobody says: the reference's pipelines */

/* ---- options ---- */

static size_t width_of(ses_opt_type t)
{
    return t == SES_OPT_INT      ? sizeof(int64_t)
           : t == SES_OPT_REAL   ? sizeof(double)
           : t == SES_OPT_CHOICE ? sizeof(int)
                                 : 0;
}

/* What was given on the command line goes over what the folder says. */
static void apply_given(const ses_generation_args *a, ses_generate_options *o)
{
    size_t base = offsetof(ses_generation_args, o);
    for (size_t i = 0; i < SES_GENERATION_OPTION_COUNT; i++) {
        const ses_opt *x = &ses_generation_opt[i];
        if (x->was_set && a->given[i])
            memcpy((char *)o + (x->offset - base), (const char *)a + x->offset, width_of(x->type));
    }
    if (a->do_sample >= 0) o->do_sample = a->do_sample;
    if (a->renormalize >= 0) o->renormalize_logits = a->renormalize;
    if (a->forced_bos >= 0) o->forced_bos = (int32_t)a->forced_bos;
    if (a->given[1] && !a->given[0]) o->max_new_tokens = 0; /* a whole length given, not the new tokens */
}

static bool ids_of(ses_pipeline *p, const ses_opt_list *l, const char *name, ses_ids *out, ses_err *e)
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
            return ses_fail(e, SES_EUSAGE, "--%s: '%s' is no token id below %lld", name, word[i].p,
                            (long long)ses_model_vocab_size(p->model));
        id[i] = (int32_t)x;
    }
    *out = (ses_ids){ id, (int64_t)n };
    return id != NULL;
}

/* Words as tokens, at the beginning of a text and within it. */
static bool bad_words(ses_pipeline *p, const ses_opt_list *l, ses_generate_options *o, ses_err *e)
{
    ses_string *word;
    size_t n, m = 0;
    if (!l->n) return true;
    if (!ses_pipeline_split_list(p, l, false, &word, &n, e)) return false;
    ses_ids *list = ses_arena_array(&p->mem, 2 * n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < 2 * n; i++) {
        char spaced[256];
        const int32_t *id;
        size_t k;
        int len = snprintf(spaced, sizeof spaced, "%s%s", i % 2 ? " " : "", word[i / 2].p);
        if (len < 0 || (size_t)len >= sizeof spaced)
            return ses_fail(e, SES_EUSAGE, "--bad-words: a word of %d bytes", len);
        if (!ses_encode_ids(p->tokens, spaced, (size_t)len, false, &id, &k, e)) return false;
        int32_t *copy = ses_arena_array(&p->mem, k + 1, sizeof *copy, e);
        if (!copy) return false;
        memcpy(copy, id, k * sizeof *copy);
        if (k) list[m++] = (ses_ids){ copy, (int64_t)k };
    }
    o->bad_words = list, o->n_bad_words = (int64_t)m;
    return list != NULL;
}

/* Stop strings may hold commas: each option is one. */
static bool stops(ses_pipeline *p, const ses_generation_args *a, ses_generation_task *my, ses_err *e)
{
    const char *const *from = NULL;
    size_t more = my->template ? ses_prompt_template_stops(my->template, &from) : 0;
    if (!a->stop.n && !more) return true;
    const char **list = ses_arena_array(&p->mem, a->stop.n + more + 1, sizeof *list, e);
    if (!list) return false;
    for (size_t i = 0; i < a->stop.n; i++) list[i] = a->stop.item[i];
    for (size_t i = 0; i < more; i++) list[a->stop.n + i] = from[i];
    my->o.stop_strings = list, my->o.n_stop_strings = (int64_t)(a->stop.n + more);
    return true;
}

/* task_specific_params of the name the task goes by: settings, and a prefix. */
static bool specific(ses_pipeline *p, const ses_generation_args *a, ses_generation_task *my, ses_err *e)
{
    const ses_json *config = ses_model_config(p->model), *all = ses_json_get(config, "task_specific_params");
    const ses_json *mine = a->task ? ses_json_get(all, a->task) : NULL;
    const ses_json *prefix = ses_json_get(mine, "prefix");
    if (!prefix) prefix = ses_json_get(config, "prefix");
    my->prefix.p = ses_json_string(prefix, &my->prefix.n);
    if (a->prefix) my->prefix = ses_str(a->prefix);
    if (a->task && !mine && strcmp(a->task, ses_task_canonical_name(p->task)) &&
        !ses_pipeline_warn(p, e, "config.json has no task_specific_params of %s: the model is not told of it",
                           a->task))
        return false;
    return ses_generation_config_read(my->folder, mine, &my->o, e) ||
           ses_wrap(e, "%s/config.json: task_specific_params: %s", p->dir, a->task);
}

static bool language(ses_pipeline *p, const char *code, const char *option, int32_t *id, ses_err *e)
{
    return !code || ses_language_token_id(p->tokenizer, code, id, e) || ses_wrap(e, "--%s", option);
}

/* Options that have no effect are told; those that exclude each other refused. */
static bool check(ses_pipeline *p, const ses_generation_args *a, const ses_generation_task *my, ses_err *e)
{
    const ses_generate_options *o = &my->o;
    ses_err why = { 0 };
    for (size_t i = 11; i < 20; i++)
        if (a->given[i] && !o->do_sample &&
            !ses_pipeline_warn(p, e, "--%s has no effect without --do-sample", ses_generation_opt[i].name))
            return false;
    const struct {
        bool idle;
        const char *option, *why;
    } no_effect[] = {
        { a->given[7] && o->num_beams == 1, "length-penalty", "without --num-beams" },
        { a->given[9] && o->num_beams == 1, "early-stopping", "without --num-beams" },
        { a->given[8] && o->num_beam_groups == 1, "diversity-penalty", "without --num-beam-groups" },
        { a->full_text >= 0 && !p->uncut, "return-full-text", "on a model with an encoder" },
    };
    for (size_t i = 0; i < SES_LEN(no_effect); i++)
        if (no_effect[i].idle &&
            !ses_pipeline_warn(p, e, "--%s has no effect %s", no_effect[i].option, no_effect[i].why))
            return false;
    if (a->shots >= 0 && !a->template) return ses_fail(e, SES_EUSAGE, "--shots is for --template FILE");
    int64_t most = ses_model_max_tokens(p->model);
    if ((a->given[0]   ? o->max_new_tokens
         : a->given[1] ? o->max_length
                       : 0) > most &&
        !ses_pipeline_warn(p, e, "the model holds %lld tokens: prompt and answer end there", (long long)most))
        return false;
    if (o->max_new_tokens && o->min_new_tokens > o->max_new_tokens)
        return ses_fail(e, SES_EUSAGE, "--min-new-tokens %lld and --max-new-tokens %lld exclude each other",
                        (long long)o->min_new_tokens, (long long)o->max_new_tokens);
    if (!o->max_new_tokens && o->max_length && o->min_length > o->max_length)
        return ses_fail(e, SES_EUSAGE, "--min-length %lld and --max-length %lld exclude each other",
                        (long long)o->min_length, (long long)o->max_length);
    if (a->stream && o->num_beams > 1)
        return ses_fail(e, SES_EUSAGE,
                        "--stream and --num-beams exclude each other: beams are known at the end only");
    if (a->stream && a->logprobs)
        return ses_fail(e, SES_EUSAGE, "--stream and --logprobs exclude each other");
    ses_generated *none = ses_generate(p->model, NULL, 0, o, &why);
    if (!none) return ses_fail(e, why.code == SES_EARG ? SES_EUSAGE : why.code, "%s", why.msg);
    ses_generated_free(none);
    return true;
}

bool ses_generation_task_open(ses_pipeline *p, ses_err *e)
{
    const ses_generation_args *a = p->args;
    ses_generation_task *my = p->self;
    my->folder = ses_generation_config_open(p->model, e);
    if (!my->folder) return false;
    my->o = *ses_generation_config_options(my->folder);
    my->src_lang = -1;
    my->full_text = a->full_text != 0 && p->use->head != &ses_head_seq2seq_lm;
    if (!my->o.max_new_tokens && !my->o.max_length) my->o.max_new_tokens = NEW_TOKENS;
    if (a->template && !(my->template = ses_prompt_template_open(a->template, e))) return false;
    if (!specific(p, a, my, e)) return false;
    if (my->o.max_length && my->o.max_new_tokens == NEW_TOKENS)
        my->o.max_new_tokens = 0; /* task_specific_params said it */
    apply_given(a, &my->o);
    my->o.tokenizer = p->tokenizer;
    p->wants_stream = a->stream;
    p->uncut = p->use->head != &ses_head_seq2seq_lm;
    if (p->uncut)
        p->facts.clean_up_spaces =
            p->facts.may_clean_up_spaces; /* text-generation's way, whatever the folder says */
    if (my->o.pad < 0) my->o.pad = p->facts.role[SES_ROLE_PAD];
    return ids_of(p, &a->suppress, "suppress-tokens", &my->o.suppress, e) &&
           ids_of(p, &a->begin_suppress, "begin-suppress-tokens", &my->o.begin_suppress, e) &&
           ids_of(p, &a->eos, "eos-token-id", &my->o.eos, e) &&
           ids_of(p, &a->forced_eos, "forced-eos-token-id", &my->o.forced_eos, e) &&
           bad_words(p, &a->bad_words, &my->o, e) && stops(p, a, my, e) &&
           language(p, a->src_lang, "src-lang", &my->src_lang, e) &&
           language(p, a->tgt_lang, "tgt-lang", &my->o.forced_bos, e) && check(p, a, my, e);
}

void ses_generation_task_close(ses_pipeline *p)
{
    ses_generation_task *my = p->self;
    ses_generation_config_free(my->folder);
    ses_prompt_template_free(my->template);
}

/* ---- prompts ---- */

/* A prompt of nothing begins with the token that begins texts. */
static ses_seq *add_empty(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const ses_generation_task *my = p->self;
    int32_t bos = my->o.bos >= 0 ? my->o.bos : p->facts.role[SES_ROLE_BOS], word = -1;
    int8_t sequence = -1;
    uint8_t one = 1, zero = 0;
    ses_offset at = { 0, 0 };
    ses_encoding x = { 1, &bos, &at, &at, &word, &sequence, &zero, &one, &one };
    if (bos >= 0) return ses_request_add_sequence(p, j, &x, e);
    ses_fail(e, SES_EARG, "an empty prompt, and the model has no token to begin a text with");
    return NULL;
}

static bool add_prompt(ses_pipeline *p, ses_request *j, ses_string text, ses_err *e)
{
    const ses_generation_task *my = p->self;
    bool pair = p->use->head == &ses_head_seq2seq_lm;
    ses_input in = { .text = text };
    ses_seq *q;
    if (pair) {
        q = ses_request_encode(p, j, &in, SES_TRUNCATE_LONGEST_FIRST, e);
    } else {
        if (!ses_encode(p->tokens, &in, NULL, e)) return false;
        const ses_encoding *x = ses_tokens_result(p->tokens);
        int64_t most = ses_model_max_tokens(p->model);
        if ((int64_t)x->n > most)
            return ses_fail(
                e, SES_EARG,
                "a prompt of %lld tokens: the model reads at most %lld, prompt and answer together",
                (long long)x->n, (long long)most);
        q = x->n ? ses_request_add_sequence(p, j, x, e) : add_empty(p, j, e);
    }
    const ses_generate_options *o = &my->o;
    if (q && !pair && !o->max_new_tokens && (int64_t)q->n >= o->max_length)
        return ses_fail(e, SES_EARG, "a prompt of %lld tokens and a length of %lld: nothing is left to write",
                        (long long)q->n, (long long)o->max_length);
    return q && (my->src_lang < 0 ||
                 ses_language_token_replace(&p->facts, my->src_lang, q->special, q->id, q->n, e) ||
                 ses_wrap(e, "--src-lang"));
}

bool ses_generation_task_encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const ses_generation_args *a = p->args;
    const ses_generation_task *my = p->self;
    ses_generation_request *mine = j->state;
    ses_string text = j->item.text;
    if (my->template) {
        size_t n = 0;
        char *s = ses_prompt_template_fill(my->template, text, j->item.pair, a->shots, &n, e);
        text = s ? ses_request_copy_string(j, s, n, e) : (ses_string){ 0 };
        ses_free(s);
        if (!text.p) return ses_wrap(e, "%s", a->template);
    }
    mine->prompt = text;
    if (my->prefix.n) {
        char *s = ses_arena_array(&j->mem, my->prefix.n + text.n + 1, 1, e);
        if (!s) return false;
        memcpy(s, my->prefix.p, my->prefix.n);
        memcpy(s + my->prefix.n, text.p, text.n);
        text = (ses_string){ s, my->prefix.n + text.n };
    }
    return add_prompt(p, j, text, e);
}

/* ---- texts ---- */

/* Tokens as text; ids beyond the tokenizer's have none. */
static ses_string say(ses_pipeline *p, ses_request *j, const int32_t *id, int64_t n, ses_err *e)
{
    int32_t *known = ses_arena_array(&j->mem, (size_t)n + 1, sizeof *known, e);
    size_t m = 0;
    for (int64_t i = 0; known && i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(p->tokenizer)) known[m++] = id[i];
    return known ? ses_request_decode(p, j, known, m, false, e) : (ses_string){ 0 };
}

/* What is new in the text since the last token goes out; a character cut in half waits for its rest, and a
 * space that what follows may take away waits for that. */
typedef struct stream {
    ses_pipeline *p;
    ses_request *j;
    size_t sent;
    bool pair;
    ses_err *e;
} stream;

/* Where ses_clean_up_tokenization may still change the text: from a space with at most " n'" behind it. */
static size_t settled(const char *s, size_t n)
{
    for (size_t at = n < 3 ? 0 : n - 3; at < n; at++)
        if (s[at] == ' ') return at;
    return n;
}

static bool send(stream *s, const int32_t *id, int64_t n, bool last)
{
    ses_mark mark = ses_arena_mark(&s->j->mem);
    ses_string text = say(s->p, s->j, id, n, s->e);
    size_t end = text.n;
    if (!text.p) return false;
    while (!last && end >= 3 && !memcmp(text.p + end - 3, "\xEF\xBF\xBD", 3)) end -= 3;
    if (!last && s->p->facts.clean_up_spaces) end = settled(text.p, end);
    bool ok = end <= s->sent || s->p->stream(s->p->stream_ctx, text.p + s->sent, end - s->sent);
    if (end > s->sent) s->sent = end;
    ses_arena_rewind(&s->j->mem, mark);
    return ok;
}

static bool on_token(void *ctx, const ses_token_event *t)
{
    stream *s = ctx;
    int64_t from = s->pair ? 0 : t->prompt_len;
    return send(s, t->id + from, t->n - from, false);
}

static bool keep_logprobs(ses_pipeline *p, ses_request *j, const ses_generated_sequence *text,
                          ses_result_row *row, ses_err *e)
{
    size_t n = (size_t)(text->ids.n - text->prompt_len);
    ses_token_logprob *x = ses_arena_array(&j->mem, n + 1, sizeof *x, e);
    for (size_t i = 0; x && i < n; i++) {
        size_t len = 0;
        x[i].id = text->ids.id[text->prompt_len + (int64_t)i], x[i].logprob = text->logprob[i];
        bool known = x[i].id < ses_tokenizer_vocab_size(p->tokenizer);
        const char *s = known ? ses_tokenizer_id_to_token(p->tokenizer, x[i].id, &len) : NULL;
        if (s) x[i].token = ses_request_copy_string(j, s, len, e);
        if (s && !x[i].token.p) return false;
    }
    row->logprobs = x, row->n_logprobs = x ? n : 0;
    return x != NULL;
}

static bool keep(ses_pipeline *p, ses_request *j, const ses_generated_sequence *text, int64_t n, ses_err *e)
{
    const ses_generation_args *a = p->args;
    const ses_generation_task *my = p->self;
    ses_generation_request *mine = j->state;
    bool pair = p->use->head == &ses_head_seq2seq_lm;
    mine->text = ses_arena_array(&j->mem, (size_t)n, sizeof *mine->text, e);
    mine->n = (size_t)n;
    for (int64_t i = 0; mine->text && i < n; i++) {
        int64_t from = pair ? 0 : text[i].prompt_len;
        ses_string s = say(p, j, text[i].ids.id + from, text[i].ids.n - from, e);
        if (!s.p) return false;
        if (my->full_text) {
            char *both = ses_arena_array(&j->mem, mine->prompt.n + s.n + 1, 1, e);
            if (!both) return false;
            memcpy(both, mine->prompt.p, mine->prompt.n);
            memcpy(both + mine->prompt.n, s.p, s.n);
            s = (ses_string){ both, mine->prompt.n + s.n };
        }
        mine->text[i] = (ses_result_row){ .text = s, .score = text[i].score };
        if (a->logprobs && !keep_logprobs(p, j, &text[i], &mine->text[i], e)) return false;
        int64_t asked = my->o.max_new_tokens ? text[i].prompt_len + my->o.max_new_tokens : my->o.max_length;
        p->stopped += text[i].finish == SES_FINISH_LENGTH && text[i].ids.n < asked;
    }
    return mine->text != NULL;
}

bool ses_generation_task_run(ses_pipeline *p, ses_request *const *job, ses_seq *const *seq, size_t n,
                             ses_err *e)
{
    const ses_generation_task *my = p->self;
    ses_generate_options o = my->o;
    ses_err bad = { 0 };
    stream s = { .p = p, .j = job[0], .pair = p->use->head == &ses_head_seq2seq_lm, .e = &bad };
    ses_prompt *prompt = ses_alloc_array(n, sizeof *prompt, e);
    if (!prompt) return false;
    for (size_t i = 0; i < n; i++) prompt[i].ids = (ses_ids){ seq[i]->id, (int64_t)seq[i]->n };
    const ses_generation_args *a = p->args;
    bool streams = p->stream && !a->logprobs && n == 1 && o.num_beams == 1 && o.num_return_sequences == 1;
    if (streams) {
        const ses_generation_request *mine = job[0]->state;
        o.on_token = on_token, o.ctx = &s;
        if (my->full_text) p->stream(p->stream_ctx, mine->prompt.p, mine->prompt.n);
    }
    ses_generated *r = ses_generate(p->model, prompt, (int64_t)n, &o, e);
    ses_free(prompt);
    bool ok = r && (bad.code == SES_OK || ses_fail(e, bad.code, "%s", bad.msg));
    if (ok && streams) {
        int64_t from = s.pair ? 0 : r->sequence[0].prompt_len;
        ok = send(&s, r->sequence[0].ids.id + from, r->sequence[0].ids.n - from, true) ||
             ses_fail(e, SES_EIO, "the stream ended");
        p->streamed = true;
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = keep(p, job[i], r->sequence + (int64_t)i * o.num_return_sequences, o.num_return_sequences, e);
    if (r) p->written += r->tokens_generated;
    ses_generated_free(r);
    return ok;
}

bool ses_generation_task_finish(ses_pipeline *p, ses_request *j, ses_result *r,
                                const ses_result_schema *shape, ses_err *e)
{
    const ses_generation_request *mine = j->state;
    (void)p;
    for (size_t i = 0; i < mine->n; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        *row = mine->text[i];
    }
    r->schema = shape;
    return true;
}
