/* lens: the predictions of each layer, read with the final norm and the language model head. */
#include "analysis/corpus_options.h"
#include "analysis/lens/lens.h"
#include "analysis/text_file.h"
#include "analysis/token_text.h"
#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TOP = 50, MAX_POSITIONS = 512, MAX_DETAILED = 2 };

typedef struct args {
    const char *token, *target, *train, *translators, *save, *column;
    int64_t top_k, steps, batch_tokens, max_texts;
    double rate;
    bool all;
} args;

typedef struct prediction {
    int32_t top[MAX_TOP];
    float p[MAX_TOP];
    int64_t rank; /* rank of the target, from 1 */
    double probability, entropy, kl;
} prediction;

typedef struct lens_run {
    ses_analysis_call *call;
    const args *a;
    ses_lens l;
    ses_translators translators;
    bool tuned;
    /* the text */
    bool is_cut;          /* longer than the model reads */
    int32_t *id, *answer; /* [tokens]; [n] */
    char **name;          /* [n]: the token at each position */
    int64_t tokens, n;
    ses_real **state, *logits, *final;
    int64_t *layer; /* [n_layers] */
    int64_t n_layers;
    prediction *p; /* [n, n_layers] */
} lens_run;

/* ---- the text ---- */

/* A token as people write it: "##s" and "Gs" without marks of the tokenizer, quoted spaces. */
static char *token_text(const lens_run *r, int32_t id, ses_err *e)
{
    size_t n = 0;
    const char *s = ses_tokenizer_id_to_token(r->l.tokenizer, id, &n);
    ses_buf out = { 0 };
    if (!s) ses_buf_appendf(&out, "#%d", (int)id);
    if (s && n > 2 && !memcmp(s, "\xC4\xA0", 2)) ses_buf_put(&out, ' '), s += 2, n -= 2; /* byte-level BPE */
    if (s && n > 3 && !memcmp(s, "\xE2\x96\x81", 3))
        ses_buf_put(&out, ' '), s += 3, n -= 3; /* SentencePiece */
    if (s) ses_buf_append(&out, s, n);
    char *text = ses_buf_ok(&out, e) ? ses_strndup(out.data ? out.data : "", out.len, e) : NULL;
    ses_buf_free(&out);
    return text;
}

/* Adds the first n tokens of the encoded text to the envelope. */
static bool put_tokens(lens_run *r, int64_t n, ses_err *e)
{
    typedef struct token {
        ses_offset bytes;
        int64_t word;
        int32_t id;
    } token;
    const ses_encoding *x = ses_encode_ctx_result(r->l.tokens);
    ses_arena mem = { 0 };
    token *t = ses_arena_array(&mem, (size_t)n + 1, sizeof *t, e); /* names are decoded: x is lost */
    bool ok = t != NULL;
    for (int64_t i = 0; ok && i < n; i++)
        t[i] = (token){ x->byte_offset[i], x->special_mask[i] ? -1 : x->word_id[i], x->id[i] };
    for (int64_t i = 0; ok && i < n; i++) {
        const char *name = ses_token_name(r->l.tokenizer, r->l.tokens, t[i].id, &mem, e);
        ok = name != NULL;
        if (ok)
            ses_report_token(r->call->report, name, strlen(name), (int64_t)t[i].bytes.begin,
                             (int64_t)t[i].bytes.end, t[i].word);
    }
    ses_arena_free(&mem);
    return ok;
}

/* Sets r->id to the tokens of a text. source: the model's first input. */
static bool encode(lens_run *r, const char *text, bool source, ses_err *e)
{
    int64_t limit = ses_model_max_tokens(r->l.m);
    ses_input in = { .text = { text, strlen(text) } };
    if (!ses_encode(r->l.tokens, &in, NULL, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(r->l.tokens);
    if (!x->n) return ses_fail(e, SES_EARG, "the text has no tokens");
    r->tokens = (int64_t)x->n < limit ? (int64_t)x->n : limit;
    r->is_cut |= (int64_t)x->n > limit;
    if ((int64_t)x->n > limit)
        ses_report_note(r->call->report,
                        "The text has %zu tokens, the model reads %lld: the rest is left out.", x->n,
                        (long long)limit);
    ses_encoding head = *x;
    head.n = (size_t)r->tokens;
    if (source && !ses_batch_builder_add_encoding(&r->l.pass.in, &head, r->l.segments && !r->l.decoder, e))
        return false;
    ses_free(r->id);
    r->id = ses_alloc_array((size_t)r->tokens, sizeof *r->id, e);
    if (!r->id) return false;
    memcpy(r->id, x->id, (size_t)r->tokens * sizeof *r->id);
    return !source || put_tokens(r, r->tokens, e);
}

/* Positions that are read: masks, all tokens of a causal model, all tokens of the decoder. */
static bool choose_positions(lens_run *r, ses_err *e)
{
    const ses_lens *l = &r->l;
    int32_t mask = l->config.role[SES_ROLE_MASK];
    ses_batch_builder *in = &r->l.pass.in;
    r->answer = ses_alloc_array((size_t)r->tokens, sizeof *r->answer, e);
    r->name = r->answer ? ses_alloc_array((size_t)r->tokens, sizeof *r->name, e) : NULL;
    if (!r->name) return false;
    for (int64_t i = 0; i < r->tokens && r->n < MAX_POSITIONS; i++) {
        bool read = !l->masked || r->a->all || r->id[i] == mask;
        if (!read) continue;
        r->answer[r->n] = l->decoder         ? r->id[i]
                          : !l->masked       ? i + 1 < r->tokens ? r->id[i + 1] : -1
                          : r->id[i] != mask ? r->id[i]
                                             : -1;
        /* a decoder's row reads the token before the one that it predicts */
        if (!(r->name[r->n] = token_text(r, (l->decoder ? in->target_ids : in->ids).p[i], e))) return false;
        if (!ses_ints_push(&in->rows, (int32_t)i, e)) return false;
        r->n++;
    }
    if (r->n) return true;
    if (r->is_cut)
        return ses_fail(e, SES_EARG, "no mask among the %lld tokens that the model reads: shorten the text",
                        (long long)r->tokens);
    size_t len = 0;
    const char *name = mask >= 0 ? ses_tokenizer_id_to_token(l->tokenizer, mask, &len) : NULL;
    return ses_fail(e, SES_EARG, "no mask in the text: expected at least one %.*s, or --all",
                    name ? (int)len : 6, name ? name : "[MASK]");
}

static bool read_text(lens_run *r, ses_err *e)
{
    const char *text = r->call->operands[0];
    if (!r->l.decoder && r->a->target)
        return ses_fail(e, SES_EUSAGE, "--target: %s has no decoder; --token TOKEN ranks a token",
                        ses_model_class_name(r->l.m));
    if (!encode(r, text, true, e)) return false;
    if (r->l.decoder && (!encode(r, r->a->target ? r->a->target : text, false, e) ||
                         !ses_batch_builder_shift(&r->l.pass.in, r->l.m, r->id, r->tokens, e)))
        return false;
    return choose_positions(r, e);
}

/* --token replaces the answer of every position. */
static bool set_token(lens_run *r, ses_err *e)
{
    const char *word = r->a->token;
    int32_t id = -1;
    if (!word) return true;
    id = ses_tokenizer_token_to_id(r->l.tokenizer, word, strlen(word));
    if (id < 0) {
        ses_input in = { .text = { word, strlen(word) } };
        if (!ses_encode(r->l.tokens, &in, &(ses_encode_options){ .no_special = true }, e)) return false;
        const ses_encoding *x = ses_encode_ctx_result(r->l.tokens);
        if (x->n != 1)
            return ses_fail(e, SES_EARG, "--token: \"%s\" is %zu tokens, expected one",
                            ses_quoted_of(word, strlen(word)).s, x->n);
        id = x->id[0];
    }
    for (int64_t i = 0; i < r->n; i++) r->answer[i] = id;
    return true;
}

/* ---- numbers ---- */

/* log softmax in double. */
static void log_probabilities(const ses_real *logit, int64_t n, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, (double)logit[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)logit[i] - max);
    for (int64_t i = 0; i < n; i++) out[i] = (double)logit[i] - max - log(sum);
}

/* The k tokens of the highest logits, best first; of equal ones the lower id first. */
static void find_best(const ses_real *logit, int64_t n, int64_t k, int32_t *at)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t to = kept < k ? kept++ : k;
        for (; to > 0 && logit[i] > logit[at[to - 1]]; to--)
            if (to < k) at[to] = at[to - 1];
        if (to < k) at[to] = (int32_t)i;
    }
}

static void measure(const lens_run *r, const ses_real *logit, const double *last, double *scratch,
                    int32_t answer, prediction *p)
{
    int64_t V = r->l.vocab;
    log_probabilities(logit, V, scratch);
    find_best(logit, V, r->a->top_k, p->top);
    for (int64_t k = 0; k < r->a->top_k; k++) p->p[k] = (float)exp(scratch[p->top[k]]);
    p->rank = 1;
    for (int64_t i = 0; i < V; i++) {
        double q = exp(scratch[i]), end = exp(last[i]);
        p->rank += logit[i] > logit[answer] || (logit[i] == logit[answer] && i < answer);
        if (q > 0) p->entropy -= q * scratch[i];
        if (end > 0) p->kl += end * (last[i] - scratch[i]);
    }
    p->probability = exp(scratch[answer]);
}

static bool compute(lens_run *r, ses_err *e)
{
    ses_lens *l = &r->l;
    int64_t V = l->vocab;
    double *last = ses_alloc_array((size_t)V, sizeof *last, e);
    double *scratch = last ? ses_alloc_array((size_t)V, sizeof *scratch, e) : NULL;
    bool ok = scratch != NULL;
    for (int64_t i = 0; ok && i < r->n; i++) {
        int32_t best = 0;
        find_best(r->final + i * V, V, 1, &best);
        if (r->answer[i] < 0 || r->answer[i] >= V) r->answer[i] = best;
    }
    for (int64_t k = 0; ok && k < r->n_layers; k++) {
        ses_analysis_progress(r->call, "layers", k, r->n_layers);
        ok = ses_analysis_may_continue(r->call, e) &&
             ses_lens_read(l, r->tuned ? &r->translators : NULL, r->layer[k], r->state[r->layer[k]], r->n,
                           r->logits, e);
        for (int64_t i = 0; ok && i < r->n; i++) {
            log_probabilities(r->final + i * V, V, last);
            measure(r, r->logits + i * V, last, scratch, r->answer[i], &r->p[i * r->n_layers + k]);
        }
    }
    ses_free(last), ses_free(scratch);
    return ok;
}

static bool run_model(lens_run *r, ses_err *e)
{
    ses_lens *l = &r->l;
    size_t V = (size_t)l->vocab, n = (size_t)r->n;
    r->state = ses_alloc_array((size_t)l->layers + 1, sizeof *r->state, e);
    r->logits = r->state ? ses_alloc_array(n * V, sizeof *r->logits, e) : NULL;
    r->final = r->logits ? ses_alloc_array(n * V, sizeof *r->final, e) : NULL;
    r->layer = r->final ? ses_alloc_array((size_t)l->layers + 1, sizeof *r->layer, e) : NULL;
    for (int64_t i = 0; r->layer && i <= l->layers; i++) {
        r->state[i] = ses_alloc_array(n * (size_t)l->width, sizeof **r->state, e);
        if (!r->state[i]) return false;
        if (!r->call->layers.given || ses_layer_set_has(&r->call->layers, i)) r->layer[r->n_layers++] = i;
    }
    if (!r->layer) return false;
    r->p = ses_alloc_array(n * (size_t)r->n_layers, sizeof *r->p, e);
    return r->p && ses_lens_states(l, r->state, r->final, e);
}

/* ---- training ---- */

static void report_training(const lens_run *r, const double *loss)
{
    ses_json_writer *w = ses_report_json(r->call->report);
    ses_figure *f =
        ses_report_table(r->call->report, "KL to the model's prediction", ">layer|>first step|>last step");
    ses_json_begin_object(w);
    ses_json_member_int(w, "steps", r->a->steps);
    ses_json_member_string(w, "translators", r->a->save);
    ses_json_member_array(w, "layers");
    for (int64_t i = 0; i < r->l.layers; i++) {
        ses_figure_cell(f, "%lld", (long long)i);
        ses_figure_cell(f, "%.4f", loss[i]);
        ses_figure_cell(f, "%.4f", loss[r->l.layers + i]);
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", i);
        ses_json_member_real(w, "kl_first", loss[i]);
        ses_json_member_real(w, "kl_last", loss[r->l.layers + i]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_report_note(r->call->report, "Written: %s. Use it with --translators.", r->a->save);
}

/* Opens the model once more, with gradients, and trains the translators of its layers. */
static bool train(lens_run *r, ses_err *e)
{
    ses_tuned_options o = { .steps = r->a->steps,
                            .batch_tokens = r->a->batch_tokens,
                            .rate = r->a->rate,
                            .momentum = 0.9,
                            .seed = r->call->seed };
    ses_text_file f = { 0 };
    ses_lens l = { 0 };
    ses_translators t = { 0 };
    double *loss = NULL;
    bool ok = ses_text_file_open(
        &f, r->a->train,
        &(ses_text_file_options){ .text_column = r->a->column, .max_texts = (size_t)r->a->max_texts }, e);
    const char *dir = r->call->adapter ? r->call->adapter : r->call->model_dir;
    ses_model_options mo = { .train = true, .base = r->call->adapter ? r->call->model_dir : NULL };
    ses_model *m = ok ? ses_model_open(dir, r->call->dev, &mo, e) : NULL;
    ok = m && ses_lens_open(&l, m, r->call->tokenizer, r->call->model_dir, e) &&
         (loss = ses_alloc_array(2 * (size_t)l.layers, sizeof *loss, e)) &&
         ses_tuned_train(&l, f.text, f.n, &o, r->call, &t, loss, e) &&
         ses_translators_save(&t, r->a->save, m, r->call->overwrite, e);
    if (ok) report_training(r, loss);
    ses_free(loss);
    ses_translators_free(&t);
    ses_lens_close(&l);
    ses_model_free(m);
    ses_text_file_free(&f);
    return ok;
}

/* ---- report ---- */

static bool put_prediction(const lens_run *r, const prediction *p, int64_t layer, ses_json_writer *w,
                           ses_err *e)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", layer);
    ses_json_member_int(w, "rank", p->rank);
    ses_json_member_real(w, "probability", p->probability);
    ses_json_member_real(w, "entropy", p->entropy);
    ses_json_member_real(w, "kl", p->kl);
    ses_json_member_array(w, "top");
    for (int64_t k = 0; k < r->a->top_k; k++) {
        char *s = token_text(r, p->top[k], e);
        if (!s) return false;
        ses_json_begin_object(w);
        ses_json_member_string(w, "token", s);
        ses_json_member_int(w, "id", p->top[k]);
        ses_json_member_real(w, "probability", (double)p->p[k]);
        ses_json_end_object(w);
        ses_free(s);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return true;
}

static bool put_result(const lens_run *r, ses_err *e)
{
    ses_json_writer *w = ses_report_json(r->call->report);
    ses_json_begin_object(w);
    ses_json_member_string(w, "lens", r->tuned ? "tuned" : "logit");
    ses_json_member_array(w, "positions");
    for (int64_t i = 0; i < r->n; i++) {
        char *answer = token_text(r, r->answer[i], e);
        if (!answer) return false;
        ses_json_begin_object(w);
        ses_json_member_int(w, "position", r->l.pass.request.rows[i]);
        ses_json_member_string(w, "token", r->name[i]);
        ses_json_member_string(w, "target", answer);
        ses_json_member_int(w, "target_id", r->answer[i]);
        ses_free(answer);
        ses_json_member_array(w, "layers");
        for (int64_t k = 0; k < r->n_layers; k++)
            if (!put_prediction(r, &r->p[i * r->n_layers + k], r->layer[k], w, e)) return false;
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return true;
}

/* The best token of each position and layer, shaded by its probability. */
static bool report_map(const lens_run *r, ses_err *e)
{
    size_t cells = (size_t)(r->n * r->n_layers), cols = (size_t)r->n_layers;
    float *value = ses_alloc_array(cells, sizeof *value, e);
    char **text = value ? ses_alloc_array(cells, sizeof *text, e) : NULL;
    char(*number)[8] = text ? ses_alloc_array(cols, sizeof *number, e) : NULL;
    const char **name = number ? ses_alloc_array(cols, sizeof *name, e) : NULL;
    bool ok = name != NULL;
    for (size_t k = 0; ok && k < cols; k++) {
        snprintf(number[k], sizeof number[k], "%lld", (long long)r->layer[k]);
        name[k] = number[k];
    }
    for (size_t i = 0; ok && i < cells; i++) {
        value[i] = r->p[i].p[0];
        ok = (text[i] = token_text(r, r->p[i].top[0], e)) != NULL;
    }
    if (ok)
        ses_report_heatmap(
            r->call->report, "Best token by layer, shaded by its probability",
            &(ses_figure_matrix){ .rows = r->n,
                                  .cols = r->n_layers,
                                  .value = value,
                                  .row_name = (const char *const *)r->name,
                                  .col_name = name,
                                  .row_label = r->l.decoder ? "token that the decoder reads" : "token",
                                  .col_label = "layer",
                                  .cell = (const char *const *)text,
                                  .scale = SES_SCALE_UNIT });
    for (size_t i = 0; text && i < cells; i++) ses_free(text[i]);
    ses_free(value), ses_free(text), ses_free(number), ses_free((void *)name);
    return ok;
}

static bool report_position(const lens_run *r, int64_t i, ses_err *e)
{
    char title[160], *answer = token_text(r, r->answer[i], e);
    if (!answer) return false;
    snprintf(title, sizeof title, "Position %d, %s: rank and probability of \"%s\"",
             (int)r->l.pass.request.rows[i], r->name[i], answer);
    ses_free(answer);
    ses_figure *f =
        ses_report_table(r->call->report, title, ">layer|best tokens|>rank|>probability|>entropy|>KL");
    for (int64_t k = 0; k < r->n_layers; k++) {
        const prediction *p = &r->p[i * r->n_layers + k];
        ses_buf s = { 0 };
        for (int64_t j = 0; j < r->a->top_k && j < 3; j++) {
            char *t = token_text(r, p->top[j], e);
            if (!t) return ses_buf_free(&s), false;
            ses_buf_appendf(&s, "%s%s %.2f", j ? ", " : "", t, (double)p->p[j]);
            ses_free(t);
        }
        ses_figure_cell(f, "%lld", (long long)r->layer[k]);
        ses_figure_cell(f, "%s", s.data ? s.data : "");
        ses_figure_cell(f, "%lld", (long long)p->rank);
        ses_figure_cell(f, "%.4f", p->probability);
        ses_figure_cell(f, "%.2f", p->entropy);
        ses_figure_cell(f, "%.2f", p->kl);
        ses_buf_free(&s);
    }
    return true;
}

static bool report_text(lens_run *r, ses_err *e)
{
    if (!put_result(r, e) || !report_map(r, e)) return false;
    for (int64_t i = 0; i < r->n && (r->n <= MAX_DETAILED); i++)
        if (!report_position(r, i, e)) return false;
    if (r->n == MAX_POSITIONS)
        ses_report_note(r->call->report, "Only the first %d positions are shown.", MAX_POSITIONS);
    return true;
}

/* ---- running ---- */

static bool check_args(const lens_run *r, ses_err *e)
{
    const args *a = r->a;
    if (!a->train && a->save) return ses_fail(e, SES_EUSAGE, "--save needs --train CORPUS");
    if (a->train && !a->save) return ses_fail(e, SES_EUSAGE, "--train needs --save FILE");
    if (a->train && (a->translators || r->call->n_operands))
        return ses_fail(e, SES_EUSAGE, "--train takes no text and no --translators: train, then read a text");
    if (!a->train && !r->call->n_operands)
        return ses_fail(e, SES_EUSAGE, "missing argument; usage: sesame lens TEXT");
    return true;
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    lens_run r = { .call = call, .a = call->args };
    bool ok = check_args(&r, e) && ses_lens_open(&r.l, call->model, call->tokenizer, call->model_dir, e);
    if (ok && r.a->train) {
        ok = train(&r, e);
    } else if (ok) {
        r.tuned = r.a->translators != NULL;
        if (r.tuned) ok = ses_translators_load(&r.translators, r.a->translators, call->model, e);
        ok = ok && read_text(&r, e) && set_token(&r, e) && run_model(&r, e) && compute(&r, e) &&
             report_text(&r, e);
    }
    for (int64_t i = 0; r.state && i <= r.l.layers; i++) ses_free(r.state[i]);
    for (int64_t i = 0; r.name && i < r.n; i++) ses_free(r.name[i]);
    ses_free(r.state), ses_free(r.name), ses_free(r.id), ses_free(r.answer), ses_free(r.logits),
        ses_free(r.final), ses_free(r.layer), ses_free(r.p);
    ses_translators_free(&r.translators);
    ses_lens_close(&r.l);
    return ok;
}

static const ses_opt opt[] = {
    SES_OPT_TOP(args, top_k, "5", MAX_TOP, "number of tokens for each layer"),
    SES_OPT_TEXT(
        args, token, "token", "TOKEN",
        "rank this token; default: the next token (causal), the output's token (encoder-decoder), the "
        "model's prediction (mask)"),
    SES_OPT_FLAG(args, all, "all", "masked models: read every position, not only masks"),
    SES_OPT_TEXT(args, target, "target", "TEXT",
                 "encoder-decoders: the text that the decoder writes; default: the input",
                 .alias = "output-text"),
    SES_OPT_TEXT(args, translators, "translators", "FILE", "tuned lens: translators written by --train",
                 .is_path = true),
    SES_OPT_TEXT(args, train, "train", "CORPUS", "train a tuned lens on the texts of a file",
                 .is_path = true),
    SES_OPT_TEXT(args, save, "save", "FILE", "with --train: the translators, in safetensors",
                 .is_path = true),
    SES_OPT_INT(args, steps, "steps", "250", 2, 1e6, "with --train: updates"),
    SES_OPT_REAL(args, rate, "rate", "1", 1e-9, 1e3,
                 "with --train: learning rate of SGD, falls to 0; momentum is 0.9"),
    SES_OPT_INT(args, batch_tokens, "batch-tokens", "2048", 8, 1 << 20, "with --train: tokens of a batch"),
    SES_OPT_COLUMN(args, column, "with --train, tables: "),
    SES_OPT_MAX_TEXTS(args, max_texts, "with --train: ", "100000"),
};

static const ses_usage_example examples[] = {
    { "sesame lens \"The capital of France is [MASK].\"", "what each layer would predict" },
    { "sesame lens -m sesame-gpt \"The children played in the\"", "every position of a causal model" },
    { "sesame lens --train corpus.txt --save lens.safetensors", "train a tuned lens" },
    { "sesame lens --translators lens.safetensors \"The capital of France is [MASK].\"", "use it" },
    { 0 },
};

const ses_analysis ses_analysis_lens = {
    .operands = "[TEXT|-]",
    .description =
        "Applies the final norm and the language model head to the hidden states of each layer (logit lens): "
        "the best tokens, rank and probability of a token, the entropy, and the KL divergence from the "
        "model's "
        "prediction. Masked models are read at their masks, causal models at every position, "
        "encoder-decoders at every position of the decoder. The last layer is the model's own prediction.\n\n"
        "A tuned lens changes a state first, h + A h + b, with a matrix and a vector for each layer that "
        "--train "
        "fits to the model's predictions on a corpus.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 0,
    .max_operands = 1,
    .default_model_of = "fill-mask",
    .reads_decoder = true,
    .text_operand = true,
    .takes_text = true,
    .model = SES_ANALYSIS_CLASS,
    .run = run,
};
