/* run: runs a model on sequences of token ids. */
#define _POSIX_C_SOURCE 200809L
#include "cli/input_size.h"
#include "cli/inspect/run_model.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "nn/decoder_input.h"
#include "tensor/device_impl.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const ses_opt opt[] = {
    SES_OPT_LIST(ses_run_args, ids, "ids", "IDS",
                 "sequence of token ids, like \"101 7592 102\" or \"101 7592 102 | 2088 102\"",
                 .letter = 'i'),
    SES_OPT_INT(ses_run_args, top, "top", "5", 1, 1000, "number of tokens, labels or answers to show",
                .letter = 'k'),
    SES_OPT_INT(ses_run_args, position, "position", "-1", -1, 1 << 24,
                "predict only the token at this position, counted from 0; -1: all positions", .letter = 'p'),
    SES_OPT_INT(ses_run_args, mask_id, "mask-id", "-1", -1, 1 << 24,
                "predict only tokens at positions with this id; -1: all positions", .letter = 'm'),
    SES_OPT_FLAG(ses_run_args, logits, "logits",
                 "token prediction with --json: write the logits of the whole vocabulary, too"),
    SES_OPT_INT(ses_run_args, choices, "choices", "0", 0, 1 << 16,
                "multiple choice: number of consecutive sequences per question", .letter = 'c'),
    SES_OPT_INT(ses_run_args, max_answer, "max-answer", "30", 1, 1 << 16,
                "question answering: maximum answer length in tokens"),
    SES_OPT_FLAG(ses_run_args, hidden_states, "hidden-states",
                 "show how hidden states change from layer to layer; with --json: write all hidden states"),
    SES_OPT_FLAG(
        ses_run_args, attentions, "attentions",
        "draw an attention map; with --json: write the probabilities of all layers and heads. "
        "Attention of int8 models is then computed in f32, and their states differ slightly from the "
        "states of "
        "other passes",
        .letter = 'a'),
    SES_OPT_INT(ses_run_args, layer, "layer", "-1", -1, 1 << 16,
                "layer of the attention map, counted from 0; -1: the last"),
    SES_OPT_INT(ses_run_args, head, "head", "-1", -1, 1 << 16,
                "head of the attention map, counted from 0; -1: mean over heads"),
    SES_OPT_TEXT(ses_run_args, class_name, "class", "NAME",
                 "model class, such as BertModel; default: the class in config.json"),
    SES_OPT_INT(ses_run_args, batch_tokens, "batch-tokens", "1024", 1, 1 << 24, "tokens per batch",
                .letter = 'b'),
    SES_OPT_FLAG(ses_run_args, lean, "lean", "skip packed weight copies: half the memory"),
    SES_OPT_STRICT(ses_run_args, strict),
    SES_OPT_ADAPTER(ses_run_args, adapter),
    SES_OPT_INCLUDE(ses_run_args, compute, ses_compute_options),
};

/* ---- options that depend on the model ---- */

static bool has_head(const ses_model *m, const ses_head *h)
{
    return m->class->head[0].head == h || m->class->head[1].head == h;
}

static bool predicts_tokens(const ses_model *m)
{
    return has_head(m, &ses_head_masked_lm) || has_head(m, &ses_head_causal_lm) ||
           has_head(m, &ses_head_copy_lm) || has_head(m, &ses_head_seq2seq_lm);
}

static bool check_applies(const ses_model *m, bool applies, bool is_set, const char *name, ses_err *e)
{
    return !is_set || applies ||
           ses_fail(e, SES_EUSAGE, "%s does not apply to %s", name, ses_model_class_name(m));
}

static bool check_range(int64_t x, int64_t n, const char *name, ses_err *e)
{
    return x < n || ses_fail(e, SES_EUSAGE, "%s %" PRId64 ": the model has 0 to %" PRId64, name, x, n - 1);
}

static int64_t max_int(int64_t a, int64_t b) { return a > b ? a : b; }

static bool check_options(const ses_run_view *r, ses_err *e)
{
    const ses_run_args *a = r->a;
    const ses_model *m = r->model;
    bool tokens = predicts_tokens(m), choice = has_head(m, &ses_head_multiple_choice);
    if (!check_applies(m, tokens, a->position >= 0, "--position", e) ||
        !check_applies(m, tokens, a->mask_id >= 0, "--mask-id", e) ||
        !check_applies(m, tokens, a->logits, "--logits", e) ||
        !check_applies(m, choice, a->choices > 0, "--choices", e))
        return false;
    if (choice && !a->choices)
        return ses_fail(e, SES_EUSAGE, "%s selects one of several sequences: set --choices to their number",
                        ses_model_class_name(m));
    if (a->position >= 0 && a->mask_id >= 0)
        return ses_fail(e, SES_EUSAGE, "--position and --mask-id are mutually exclusive");
    if (!a->attentions && (a->layer >= 0 || a->head >= 0))
        return ses_fail(e, SES_EUSAGE, "--layer and --head require --attentions");
    int64_t layers = max_int(m->stack[0].depth, m->stack[1].depth),
            heads = max_int(m->stack[0].heads, m->stack[1].heads);
    return check_range(a->layer, layers, "--layer", e) && check_range(a->head, heads, "--head", e) &&
           check_range(a->mask_id, m->c.vocab, "--mask-id", e);
}

/* ---- one batch ---- */

/* If an output is not finite, fails with the name of the weight that is not finite. */
static bool check_finite(ses_run_view *r, const char *dir, ses_err *e)
{
    enum { PIECE = 4096 };
    for (size_t i = 0; i < r->out.n; i++) {
        const ses_output *o = &r->out.item[i];
        int64_t count = ses_count(o->tensor);
        for (int64_t at = 0; at < count; at += PIECE) {
            int64_t n = count - at < PIECE ? count - at : PIECE;
            const float *x = ses_run_values(r, o, at, n, e);
            if (!x) return false;
            for (int64_t j = 0; j < n; j++)
                if (!isfinite(x[j])) return ses_model_check_finite(r->model, e) || ses_wrap(e, "%s", dir);
        }
    }
    return true;
}

static void put_ints(ses_json_writer *w, const char *key, const int32_t *x, int64_t n)
{
    ses_json_member_array(w, key);
    for (int64_t i = 0; i < n; i++) ses_json_put_int(w, x[i]);
    ses_json_end_array(w);
}

static void put_tokens(const ses_run_view *r, const int32_t *id, int64_t n)
{
    if (!r->tokenizer) return;
    ses_json_member_array(r->w, "tokens");
    for (int64_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *text = ses_tokenizer_id_to_token(r->tokenizer, id[i], &len);
        if (text)
            ses_json_put_stringn(r->w, text, len);
        else
            ses_json_put_null(r->w);
    }
    ses_json_end_array(r->w);
}

/* Shows hidden states and attention of sequence s if requested. */
static bool show_internals(ses_run_view *r, int64_t s, ses_err *e)
{
    return (!r->a->hidden_states || ses_view_hidden_states(r, s, e)) &&
           (!r->a->attentions || ses_view_attentions(r, s, e));
}

/* Writes the head of a result: the sequence, or the n sequences of a question, with their internals. */
static bool begin_json(ses_run_view *r, int64_t s, int64_t n, ses_err *e)
{
    const ses_id_origin *o = &r->batch.origin[s];
    ses_json_begin_object(r->w);
    ses_json_member_int(r->w, n > 1 ? "question" : "sequence", (o->number - 1) / n + 1);
    if (o->file) ses_json_member_string(r->w, "file", o->file);
    if (o->file) ses_json_member_int(r->w, "line", o->line);
    if (n > 1) ses_json_member_array(r->w, "sequences");
    for (int64_t i = s; i < s + n; i++) {
        ses_token_slice x = ses_run_input_tokens(r, i), target = ses_run_target_tokens(r, i);
        if (n > 1) ses_json_begin_object(r->w);
        put_ints(r->w, "ids", x.id, x.n);
        put_tokens(r, x.id, x.n);
        const int32_t *segment = r->batch.in.segments.p + x.first;
        if (segment[x.n - 1]) put_ints(r->w, "segments", segment, x.n);
        if (ses_model_reads_target(r->model)) put_ints(r->w, "target_ids", target.id, target.n);
        if (!show_internals(r, i, e)) return false;
        if (n > 1) ses_json_end_object(r->w);
    }
    if (n > 1) ses_json_end_array(r->w);
    return true;
}

/* "Sequence 3 (ids.txt, line 3), 7 tokens" */
static void begin_text(const ses_run_view *r, int64_t s, int64_t n)
{
    const ses_id_batch *l = &r->batch;
    const ses_id_origin *o = &l->origin[s];
    if (o->number > 1) putchar('\n');
    printf("%s%s %" PRId64 "%s", ses_style_on(r->term, SES_BOLD), n > 1 ? "Question" : "Sequence",
           (o->number - 1) / n + 1, ses_style_on(r->term, SES_PLAIN));
    if (o->file) {
        fputs(" (", stdout);
        if (strcmp(o->file, "-") != 0) {
            ses_put_escaped(stdout, o->file);
            fputs(", ", stdout);
        }
        printf("line %" PRId64, o->line);
        if (n > 1) printf(" to %" PRId64, l->origin[s + n - 1].line);
        putchar(')');
    }
    int tokens = (int)(l->in.cu_seqlens.p[s + n] - l->in.cu_seqlens.p[s]);
    printf(", %d token%s\n", tokens, tokens == 1 ? "" : "s");
}

static bool check_position(const ses_run_view *r, int64_t s, ses_err *e)
{
    char where[256];
    int64_t n = has_head(r->model, &ses_head_seq2seq_lm) ? ses_run_target_tokens(r, s).n
                                                         : ses_run_input_tokens(r, s).n;
    if (r->a->position < n) return true;
    ses_fail(e, SES_EARG, "--position %" PRId64 ", but the sequence has %" PRId64 " tokens", r->a->position,
             n);
    return ses_wrap(e, "%s", ses_id_origin_text(where, sizeof where, &r->batch.origin[s]));
}

/* n: number of sequences in this result (choices of a question, else 1). */
static bool show(ses_run_view *r, int64_t s, int64_t n, ses_err *e)
{
    const ses_class *k = r->model->class;
    if (!check_position(r, s, e)) return false;
    if (r->a->compute.json && !(r->w = ses_json_writer_new(0, e))) return false;
    bool ok = !r->w || begin_json(r, s, n, e);
    if (!r->w) begin_text(r, s, n);
    ok = ok && (k->head[0].head || ses_view_vectors(r, s, e));
    for (size_t h = 0; ok && h < SES_LEN(k->head) && k->head[h].head; h++) {
        ses_view_fn *view = ses_view_for_head(k->head[h].head);
        ok = view ? view(r, &k->head[h], s, e)
                  : ses_fail(e, SES_EUNSUPPORTED, "no output format for a %s head", k->head[h].head->name);
    }
    for (int64_t i = s; ok && !r->w && i < s + n; i++) ok = show_internals(r, i, e);
    if (!r->w) return ok;
    ses_json_writer *w = r->w;
    r->w = NULL;
    if (ok) {
        ses_json_end_object(w);
        return ses_json_writer_print(w, e);
    }
    ses_json_writer_free(w);
    return false;
}

static bool run_batch(ses_run_view *r, const char *dir, ses_err *e)
{
    const ses_id_batch *l = &r->batch;
    int64_t n = r->a->choices ? r->a->choices : 1;
    if (!l->seqs) return true;
    ses_batch b = ses_batch_builder_batch(&l->in);
    b.choices = r->a->choices;
    ses_output_request request = { .logits = true,
                                   .hidden_states = r->a->hidden_states,
                                   .attentions = r->a->attentions };
    ses_tape_reset(r->tape, NULL);
    if (!ses_model_forward(r->model, r->tape, &b, &request, &r->out, e) || !check_finite(r, dir, e))
        return false;
    for (int64_t s = 0; s < l->seqs; s += n)
        if (!show(r, s, n, e)) return false;
    r->sequences += l->seqs;
    r->tokens += b.tokens;
    ses_id_batch_clear(&r->batch);
    return ses_stdout_flush(e);
}

/* ---- all input ---- */

static bool ends_with_complete_question(const ses_run_view *r)
{
    return !r->a->choices || r->batch.seqs % r->a->choices == 0;
}

static bool incomplete_question(ses_run_view *r, ses_err *e)
{
    char where[256];
    int64_t n = r->batch.seqs % r->a->choices;
    ses_id_origin_text(where, sizeof where, &r->batch.origin[r->batch.seqs - 1]);
    return ses_fail(e, SES_EFORMAT, "%s: the input ends after %" PRId64 " of %" PRId64 " choices", where, n,
                    r->a->choices);
}

/* Runs the pending sequences before a bad line, then reports it. */
static bool finish(ses_run_view *r, const char *dir, ses_err *bad, ses_err *e)
{
    if (!bad->code && !ends_with_complete_question(r)) incomplete_question(r, bad);
    if (r->a->choices) /* an incomplete question is dropped */
        ses_id_batch_truncate(&r->batch, r->batch.seqs - r->batch.seqs % r->a->choices);
    if (!run_batch(r, dir, e)) return false;
    return !bad->code || ses_fail(e, bad->code, "%s", bad->msg);
}

static bool run_all(ses_run_view *r, ses_id_reader *in, const char *dir, ses_progress *progress, ses_err *e)
{
    const ses_config *c = &r->model->c;
    ses_id_limits limit = { .vocab = c->vocab,
                            .tokens = ses_model_max_tokens(r->model),
                            .segments = c->embed.segments > 0     ? c->embed.segments
                                        : c->xl.relative_segments ? 1 << 16
                                                                  : 1,
                            .target = ses_model_reads_target(r->model),
                            .start = ses_decoder_wraps(c) ? -1 : c->decoder.start_id };
    ses_err bad = { 0 };
    while (ses_id_reader_next(in, &limit, &r->batch, &bad) == SES_ID_READ_OK) {
        bool interactive = in->in && !strcmp(in->name, "-") && isatty(STDIN_FILENO); /* answer each line */
        if (((int64_t)(r->batch.in.ids.n + r->batch.in.target_ids.n) < r->a->batch_tokens && !interactive) ||
            !ends_with_complete_question(r))
            continue;
        if (!run_batch(r, dir, e)) return false;
        ses_progress_show(progress, progress->total ? in->bytes : r->sequences);
    }
    return finish(r, dir, &bad, e);
}

static void notify_speed(const ses_run_view *r, double seconds)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    fprintf(stderr, "%s sequence%s, %s token%s in ", ses_grouped_text(a, r->sequences),
            r->sequences == 1 ? "" : "s", ses_grouped_text(b, r->tokens), r->tokens == 1 ? "" : "s");
    fputs(ses_elapsed_text(a, seconds), stderr);
    fprintf(stderr, ": %s sequences/s, %s tokens/s\n", ses_rate_text(a, r->sequences, seconds),
            ses_rate_text(b, r->tokens, seconds));
}

static bool run(ses_call *c, ses_err *e)
{
    char dash[] = "-", *standard[] = { dash, NULL };
    const ses_run_args *a = c->args;
    const char *dir = a->adapter ? a->adapter : c->operands[0];
    if (!ses_operands_require_files(c, 1,
                                    "run reads files of token ids; for a text: sesame tokenize -m DIR "
                                    "--json TEXT | sesame run DIR",
                                    e))
        return false;
    ses_run_view r = { .a = a, .term = &c->out };
    ses_id_reader in = { .ids = a->ids, .file = c->n_operands > 1 || a->ids.n ? c->operands + 1 : standard };
    ses_device_options o = ses_compute_device_options(&a->compute);
    ses_model_options mo = { .class_name = a->class_name,
                             .strict = a->strict,
                             .no_packing = a->lean,
                             .base = a->adapter ? c->operands[0] : NULL };
    r.dev = ses_device_open(a->compute.device, &o, e);
    r.model = r.dev ? ses_model_open(dir, r.dev, &mo, e) : NULL;
    r.tape = r.model ? ses_tape_new(r.dev, NULL, e) : NULL;
    bool ok = r.tape && check_options(&r, e);
    if (ok && !c->quiet) ses_notify_unused_tensors(r.model);
    if (ok) r.tokenizer = ses_tokenizer_open(dir, NULL); /* optional: shows token texts */
    if (ok && !c->quiet && in.file == standard && isatty(STDIN_FILENO))
        fputs("Reading token ids from the terminal, one sequence per line; Ctrl-D ends.\n", stderr);
    if (ok) { /* no progress line between results on a terminal */
        size_t n_files = in.file == standard ? 1 : (size_t)c->n_operands - 1;
        ses_progress p = ses_progress_start(stderr, &c->err, c->quiet || c->out.tty, "sequences",
                                            ses_input_size((const char *const *)in.file, n_files));
        ok = run_all(&r, &in, dir, &p, e);
        ses_progress_end(&p);
        if (ok && !c->quiet) notify_speed(&r, ses_seconds() - p.start);
    }
    ses_id_reader_close(&in);
    ses_id_batch_free(&r.batch);
    ses_free(r.row);
    ses_tokenizer_free(r.tokenizer);
    ses_tape_free(r.tape);
    ses_model_free(r.model);
    ses_device_free(r.dev);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame run bert-base-uncased --ids \"101 7592 103 102\" --mask-id 103",
      "predict the token at each mask (id 103)" },
    { "sesame tokenize -m bert-base-uncased --json in.txt | sesame run bert-base-uncased -m 103",
      "predict the token at each [MASK] of a text" },
    { "sesame run bert-mrpc --ids \"101 2002 102 | 2016 102\"", "classify a pair of texts" },
    { "sesame run bert-base-uncased ids.txt --json >out.jsonl", "write a JSON line per line of ids.txt" },
    { "sesame run bert-base-uncased --class BertModel -i \"101 7592 102\" -a --layer 3 --head 2",
      "hidden states, and the attention map of head 2 in layer 3" },
    { 0 },
};

const ses_command ses_command_run = {
    .name = "run",
    .usage = "DIR [FILE...]",
    .summary = "run a model on token ids",
    .description =
        "Runs the model in folder DIR on sequences of token ids: first --ids, then the lines of "
        "each FILE (-: standard input, which is also the default). A line is a sequence of ids "
        "separated by spaces or commas. Ids after | belong to the second segment. Ids after > are the "
        "decoder input of an encoder-decoder (default: its start token). A line may also be an object "
        "in the format of 'sesame tokenize --json' with ids, type_ids and target_ids. If the folder "
        "has a tokenizer, tokens are shown as text.\n\n"
        "The output depends on the head: the most probable tokens (masked-lm) or next tokens "
        "(causal-lm, conditional-generation), labels (classify, tag), answers in the last segment "
        "(span), whether the second segment follows the first (next-sentence, sentence-order), "
        "replaced tokens (replaced-tokens), the best choice (choice), or hidden states (no head). "
        "Positions, choices, layers and heads are counted from 0, lines from 1.\n\n"
        "Results are written in input order. Input is read incrementally and may have any number of "
        "lines. A bad line ends the run with an error that gives its number, after the results of the "
        "lines before it.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_run_args),
    .min_operands = 1,
    .max_operands = -1,
    .has_model_operand = true,
    .run = run,
};
