/* Evaluation by a task file: makes the requests, runs them, logs them. */
#include "eval_likelihood_impl.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <math.h>
#include <string.h>

/* ---- requests ---- */

/* A choice as continuation, after the delimiter. */
static bool put_continuation(const ses_eval_task *t, ses_string choice, ses_buf *out, ses_err *e)
{
    out->len = 0;
    ses_buf_append(out, t->target_delimiter.p, t->target_delimiter.n);
    ses_buf_append(out, choice.p, choice.n);
    return ses_buf_ok(out, e);
}

/* Requests for all choices after a context. */
static bool add_choices(ses_eval_state *s, ses_string context, const ses_choices *c, ses_err *e)
{
    ses_buf text = { 0 };
    bool ok = true;
    for (size_t k = 0; ok && k < c->n; k++) {
        ses_string choice = ses_choices_at(c, k);
        ok = put_continuation(s->task, choice, &text, e) &&
             (ses_likelihood_add(s->likelihood, context, string_of(&text), e) ||
              ses_wrap(e, "choice %zu (\"%s\")", k, ses_quoted_of(choice.p, choice.n).s));
    }
    ses_buf_free(&text);
    return ok;
}

static bool keep_lengths(ses_eval_state *s, ses_eval_item *item, const ses_choices *c, ses_err *e)
{
    item->length = s->n_lengths;
    if (!ses_array_reserve(&s->chars, &s->chars_cap, s->n_lengths + c->n, sizeof *s->chars, e) ||
        !ses_array_reserve(&s->bytes, &s->bytes_cap, s->n_lengths + c->n, sizeof *s->bytes, e))
        return false;
    for (size_t k = 0; k < c->n; k++, s->n_lengths++) {
        ses_string choice = ses_choices_at(c, k);
        s->chars[s->n_lengths] = (int32_t)ses_utf8_count(choice.p, choice.n);
        s->bytes[s->n_lengths] = (int32_t)choice.n;
    }
    return true;
}

static bool add_choice_item(ses_eval_state *s, size_t i, ses_eval_item *item, ses_string context, ses_err *e)
{
    ses_choices c = { 0 };
    bool unconditional = s->task->metric[SES_EVAL_METRIC_acc_mutual_info];
    bool ok = ses_prompts_choices(&s->prompts, i, &c, e);
    item->n_choices = ok ? (int32_t)c.n : 0, item->right = ok ? (int32_t)c.right : 0;
    ok = ok && keep_lengths(s, item, &c, e) &&
         ((add_choices(s, context, &c, e) &&
           (!unconditional || add_choices(s, (ses_string){ "", 0 }, &c, e))) ||
          ses_docs_wrap(s->prompts.docs, i, e));
    ses_choices_free(&c);
    return ok;
}

/* Pieces between runs of white space, as Python's re.split(r"\s+") counts them. */
static int64_t count_words(ses_string s)
{
    int64_t n = 1;
    bool space = false;
    for (size_t at = 0, len; at < s.n; at += len) {
        uint32_t cp;
        len = ses_utf8_decode(s.p + at, s.n - at, &cp);
        if (!len) len = 1, cp = 'x';
        bool now = ses_cp_is(cp, SES_CP_SPACE) || (cp >= 0x1c && cp <= 0x1f);
        n += now && !space;
        space = now;
    }
    return n;
}

static bool add_text_item(ses_eval_state *s, size_t i, ses_eval_item *item, ses_err *e)
{
    ses_buf text = { 0 }, counted = { 0 };
    bool ok =
        ses_prompts_target(&s->prompts, i, &text, e) && ses_prompts_counted(&s->prompts, i, &counted, e);
    item->words = count_words(string_of(&counted)), item->bytes = (int64_t)counted.len;
    ok = ok && (ses_likelihood_add_text(s->likelihood, string_of(&text), e) ||
                ses_docs_wrap(s->prompts.docs, i, e));
    ses_buf_free(&text);
    ses_buf_free(&counted);
    return ok;
}

static bool add_item(ses_eval_state *s, size_t i, ses_eval_item *item, ses_err *e)
{
    ses_buf context = { 0 }, target = { 0 };
    bool ok;
    item->request = (size_t)ses_likelihood_get_stats(s->likelihood).requests;
    if (s->task->output == SES_EVAL_ROLLING) return add_text_item(s, i, item, e);
    ok = ses_prompts_context(&s->prompts, i, &context, e);
    if (s->task->output == SES_EVAL_CHOICE)
        ok = ok && add_choice_item(s, i, item, string_of(&context), e);
    else
        ok = ok && ses_prompts_target(&s->prompts, i, &target, e) &&
             (ses_likelihood_add(s->likelihood, string_of(&context), string_of(&target), e) ||
              ses_docs_wrap(s->prompts.docs, i, e));
    ses_buf_free(&context);
    ses_buf_free(&target);
    return ok;
}

/* ---- log ---- */

typedef struct log_line {
    const char *kind;
    size_t document;
    int64_t choice; /* -1: none */
    ses_string context, continuation;
    const ses_likelihood_result *r;
} log_line;

static bool write_line(const ses_eval_likelihood_options *o, const log_line *l, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "doc_id", (int64_t)l->document);
    ses_json_member_string(w, "request_type", l->kind);
    if (l->choice >= 0) ses_json_member_int(w, "idx", l->choice);
    ses_json_member_stringn(w, "context", l->context.p, l->context.n);
    ses_json_member_stringn(w, "continuation", l->continuation.p, l->continuation.n);
    ses_json_member_real(w, "logprob", l->r->logprob);
    ses_json_member_bool(w, "is_greedy", l->r->is_greedy);
    ses_json_member_int(w, "tokens", l->r->tokens);
    ses_json_member_bool(w, "truncated", l->r->is_truncated);
    ses_json_end_object(w);
    size_t n = 0;
    const char *text = ses_json_writer_text(w, &n, e);
    bool ok = text && o->log(o->log_ctx, text, n, e) && o->log(o->log_ctx, "\n", 1, e);
    ses_json_writer_free(w);
    return ok;
}

static bool log_choices(ses_eval_state *s, size_t i, ses_string context, const ses_eval_likelihood_options *o,
                        ses_err *e)
{
    const ses_eval_item *item = &s->item[i];
    ses_choices c = { 0 };
    ses_buf text = { 0 };
    bool ok = ses_prompts_choices(&s->prompts, i, &c, e);
    size_t n = c.n * (s->task->metric[SES_EVAL_METRIC_acc_mutual_info] ? 2 : 1);
    for (size_t k = 0; ok && k < n; k++) {
        bool alone = k >= c.n;
        ok = put_continuation(s->task, ses_choices_at(&c, k % c.n), &text, e) &&
             write_line(o,
                        &(log_line){ .kind = alone ? "loglikelihood_unconditional" : "loglikelihood",
                                     .document = i,
                                     .choice = (int64_t)(k % c.n),
                                     .context = alone ? (ses_string){ "", 0 } : context,
                                     .continuation = string_of(&text),
                                     .r = ses_likelihood_at(s->likelihood, item->request + k) },
                        e);
    }
    ses_buf_free(&text);
    ses_choices_free(&c);
    return ok;
}

static bool log_item(ses_eval_state *s, size_t i, const ses_eval_likelihood_options *o, ses_err *e)
{
    bool rolling = s->task->output == SES_EVAL_ROLLING;
    ses_buf context = { 0 }, target = { 0 };
    bool ok = rolling || ses_prompts_context(&s->prompts, i, &context, e);
    if (s->task->output == SES_EVAL_CHOICE)
        ok = ok && log_choices(s, i, string_of(&context), o, e);
    else
        ok = ok && ses_prompts_target(&s->prompts, i, &target, e) &&
             write_line(o,
                        &(log_line){ .kind = rolling ? "loglikelihood_rolling" : "loglikelihood",
                                     .document = i,
                                     .choice = -1,
                                     .context = string_of(&context),
                                     .continuation = string_of(&target),
                                     .r = ses_likelihood_at(s->likelihood, s->item[i].request) },
                        e);
    ses_buf_free(&context);
    ses_buf_free(&target);
    return ok;
}

/* ---- the evaluation ---- */

static bool run_requests(ses_eval_state *s, const ses_eval_likelihood_options *o,
                         ses_eval_likelihood_result *r, ses_err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (!add_item(s, i, &s->item[i], e)) return false;
    if (!ses_likelihood_run(s->likelihood, e)) return false;
    r->stats = ses_likelihood_get_stats(s->likelihood);
    for (int64_t i = 0; i < r->stats.requests; i++)
        r->scored_tokens += ses_likelihood_at(s->likelihood, (size_t)i)->tokens;
    for (size_t i = 0; o->log && i < s->n; i++)
        if (!log_item(s, i, o, e)) return false;
    return true;
}

/* Accuracy of guesses, and of the most frequent right choice. */
static bool find_baselines(const ses_eval_state *s, ses_eval_likelihood_result *r, ses_err *e)
{
    int32_t max = 0;
    bool equal = true;
    r->chance = r->majority = NAN;
    if (s->task->output != SES_EVAL_CHOICE) return true;
    r->chance = 0;
    for (size_t i = 0; i < s->n; i++) {
        r->chance += 1 / (double)s->item[i].n_choices / (double)s->n;
        equal &= s->item[i].n_choices == s->item[0].n_choices;
        if (s->item[i].n_choices > max) max = s->item[i].n_choices;
    }
    size_t *count = ses_alloc_array((size_t)max, sizeof *count, e), most = 0;
    if (!count) return false;
    for (size_t i = 0; i < s->n; i++)
        if (++count[s->item[i].right] > most) most = count[s->item[i].right];
    if (equal && s->task->target_index < 0) r->majority = (double)most / (double)s->n;
    ses_free(count);
    return true;
}

bool ses_eval_likelihood_run(const ses_model *m, const ses_tokenizer *t, const char *dir,
                             const ses_eval_task *task, const ses_eval_likelihood_options *o,
                             ses_eval_likelihood_result *r, ses_err *e)
{
    ses_eval_state s = { .task = task };
    *r = (ses_eval_likelihood_result){ 0 };
    s.likelihood = ses_likelihood_new(m, t, dir, &o->likelihood, e);
    bool ok = s.likelihood && ses_prompts_open(&s.prompts, task, &o->prompts, e);
    s.n = ok ? s.prompts.n : 0;
    s.item = ok ? ses_alloc_array(s.n, sizeof *s.item, e) : NULL;
    ok = s.item && (task->output == SES_EVAL_GENERATION ? ses_eval_generation(&s, m, t, o, r, e)
                                                        : run_requests(&s, o, r, e));
    r->documents = s.n, r->shots = s.prompts.shots;
    ok = ok && find_baselines(&s, r, e) && ses_eval_scores(&s, &o->bootstrap, r, e);
    ses_prompts_free(&s.prompts);
    ses_likelihood_free(s.likelihood);
    ses_free(s.item), ses_free(s.chars), ses_free(s.bytes);
    return ok;
}
