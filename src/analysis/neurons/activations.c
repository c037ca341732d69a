/* Feed-forward activations of a corpus: see activations.h. */
#include "activations.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/model_desc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ses_activations_free(ses_activations *a)
{
    ses_free(a->x), ses_free(a->label), ses_free(a->text), ses_free(a->word);
    *a = (ses_activations){ 0 };
}

/* One text at a time: its tokens, a forward pass, outputs on the host. */
typedef struct text_pass {
    const ses_model *m;
    ses_encode_ctx *tokens;
    ses_tape *tape;
    const ses_encoding *enc;
    ses_outputs out;
    ses_real *host; /* one output */
    size_t cap;
} text_pass;

static bool pass_open(text_pass *p, const ses_model *m, const ses_tokenizer *t, ses_err *e)
{
    *p = (text_pass){ .m = m };
    p->tokens = ses_encode_ctx_new(t, e);
    p->tape = p->tokens ? ses_tape_new(m->dev, NULL, e) : NULL;
    return p->tape != NULL;
}

static void pass_close(text_pass *p)
{
    ses_encode_ctx_free(p->tokens);
    ses_tape_free(p->tape);
    ses_free(p->host);
}

/* A text that is too long is truncated. */
static bool pass_run(text_pass *p, const ses_input *text, const ses_output_request *want, ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(p->m) };
    if (!ses_encode(p->tokens, text, &o, e)) return false;
    p->enc = ses_encode_ctx_result(p->tokens);
    if (!p->enc->n) return true;
    const int32_t cu[] = { 0, (int32_t)p->enc->n };
    ses_batch b = { .seqs = 1, .tokens = (int64_t)p->enc->n, .cu_seqlens = cu, .ids = p->enc->id };
    ses_tape_reset(p->tape, NULL);
    return ses_model_forward(p->m, p->tape, &b, want, &p->out, e);
}

static bool pass_read(text_pass *p, const char *name, ses_err *e)
{
    const ses_output *x = ses_outputs_find(&p->out, name);
    if (!x) return ses_fail(e, SES_EUNSUPPORTED, "%s has no output %s", ses_model_type(p->m), name);
    return ses_array_reserve(&p->host, &p->cap, (size_t)ses_count(x->tensor), sizeof *p->host, e) &&
           (ses_tape_read(p->tape, x->tensor, p->host) || (ses_tape_ok(p->tape, e) && false));
}

/* ---- samples ---- */

static bool allocate(ses_activations *a, const ses_text_file *f, size_t most, ses_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) n += f->is_words ? f->text[i].n_words : 1;
    a->cap = n < most ? n : most;
    a->is_cut = n > most;
    a->x = ses_alloc_array((size_t)(a->layers * a->width) * a->cap, sizeof *a->x, e);
    a->label = a->x ? ses_alloc_array(a->cap, sizeof *a->label, e) : NULL;
    a->text = a->label ? ses_alloc_array(a->cap, sizeof *a->text, e) : NULL;
    a->word = a->text ? ses_alloc_array(a->cap, sizeof *a->word, e) : NULL;
    return a->word != NULL;
}

/* Samples of a text; counts[s]: tokens of sample first + s. Tokens of truncated words have none. */
static void add_samples(ses_activations *a, const ses_text_file *f, size_t text, const ses_encoding *x,
                        int32_t *sample)
{
    int32_t last = -1;
    for (size_t i = 0; i < x->n; i++) {
        int32_t word = f->is_words ? x->word_id[i] : 0;
        sample[i] = -1;
        if (x->special_mask[i] || x->word_id[i] < 0) continue;
        if (word != last && a->n == a->cap) return;
        if (word != last) {
            a->label[a->n] = f->is_words ? f->tag[text][word] : f->label[text];
            a->text[a->n] = text;
            a->word[a->n++] = f->is_words ? word : -1;
            last = word;
        }
        sample[i] = (int32_t)a->n - 1;
    }
}

/* Adds the means of a layer's activations over the tokens of each sample. */
static bool add_layer(ses_activations *a, const text_pass *p, int64_t layer, size_t first,
                      const int32_t *sample, int32_t *count, ses_err *e)
{
    memset(count, 0, p->enc->n * sizeof *count);
    for (size_t i = 0; i < p->enc->n; i++)
        if (sample[i] >= 0) count[(size_t)sample[i] - first]++;
    for (size_t i = 0; i < p->enc->n; i++) {
        if (sample[i] < 0) continue;
        float share = 1 / (float)count[(size_t)sample[i] - first];
        const ses_real *from = p->host + (int64_t)i * a->width;
        float *to = a->x + (size_t)(layer * a->width) * a->cap + sample[i];
        for (int64_t k = 0; k < a->width; k++, to += a->cap) {
            if (!isfinite(from[k]))
                return ses_fail(e, SES_EFORMAT, "layer %lld, neuron %lld: an activation is not finite",
                                (long long)layer + 1, (long long)k);
            *to += share * (float)from[k];
        }
    }
    return true;
}

static bool read_text(ses_activations *a, text_pass *p, const ses_text_file *f, size_t text, ses_err *e)
{
    static const ses_output_request want = { .ffn_activations = true };
    char name[48];
    size_t first = a->n;
    if (!pass_run(p, &f->text[text], &want, e)) return false;
    int32_t *sample = ses_alloc_array(2 * p->enc->n + 2, sizeof *sample, e);
    if (!sample) return false;
    for (size_t i = 0; i < p->enc->n; i++) sample[i] = -1;
    add_samples(a, f, text, p->enc, sample);
    bool ok = true;
    for (int64_t l = 0; ok && a->n > first && l < a->layers; l++) {
        snprintf(name, sizeof name, "ffn_activations.%lld", (long long)l);
        ok = pass_read(p, name, e) && add_layer(a, p, l, first, sample, sample + p->enc->n, e);
    }
    ses_free(sample);
    return ok;
}

bool ses_activations_read(ses_activations *a, const ses_model *m, const ses_tokenizer *t,
                          const ses_text_file *f, size_t max_samples, const ses_analysis_call *call,
                          ses_err *e)
{
    text_pass p = { 0 };
    ses_model *view = ses_model_hidden_view(m, true, e);
    bool ok = view != NULL;
    a->layers = ok ? ses_model_part_layers(view, SES_PART_MAIN) : 0;
    a->width = ok ? ses_model_part_neurons(view, SES_PART_MAIN) : 0;
    if (ok && (!a->layers || !a->width))
        ok = ses_fail(e, SES_EUNSUPPORTED, "%s has no feed-forward neurons", ses_model_type(m));
    ok = ok && allocate(a, f, max_samples, e) && pass_open(&p, view, t, e);
    for (size_t i = 0; ok && i < f->n && a->n < a->cap; i++) {
        ok = read_text(a, &p, f, i, e);
        ses_analysis_progress(call, "texts", (int64_t)i + 1, (int64_t)f->n);
    }
    pass_close(&p);
    ses_model_free(view);
    return ok;
}

bool ses_activations_of_text(const ses_model *m, const ses_tokenizer *t, const ses_input *text, int64_t layer,
                             int64_t neuron, double **value, char ***name, int64_t *n, ses_err *e)
{
    static const ses_output_request want = { .ffn_activations = true };
    text_pass p = { 0 };
    char output[48];
    *n = 0;
    ses_model *view = ses_model_hidden_view(m, true, e);
    bool ok = view && pass_open(&p, view, t, e) && pass_run(&p, text, &want, e);
    snprintf(output, sizeof output, "ffn_activations.%lld", (long long)layer);
    ok = ok && pass_read(&p, output, e);
    int64_t width = ok ? ses_model_part_neurons(view, SES_PART_MAIN) : 0;
    *value = ok ? ses_alloc_array(p.enc->n, sizeof **value, e) : NULL;
    *name = *value ? ses_alloc_array(p.enc->n, sizeof **name, e) : NULL;
    for (size_t i = 0; *name && i < p.enc->n; i++) {
        size_t len = 0;
        const char *s = ses_tokenizer_id_to_token(t, p.enc->id[i], &len);
        (*value)[i] = (double)p.host[(int64_t)i * width + neuron];
        (*name)[i] = ses_strndup(s ? s : "", s ? len : 0, e);
        ok = ok && (*name)[i];
        ++*n;
    }
    ok = ok && *name;
    pass_close(&p);
    ses_model_free(view);
    return ok;
}

/* ---- a classifier ---- */

/* The number of a label: by its name, or a number. -1: none. */
static int64_t label_number(const ses_model *m, ses_string s)
{
    int64_t n = ses_model_label_count(m);
    char *end;
    for (int64_t i = 0; i < n; i++) {
        const char *name = ses_model_label_name(m, i);
        if (name && s.p && ses_equal(s.p, s.n, name)) return i;
    }
    long i = s.p && s.n ? strtol(s.p, &end, 10) : -1;
    return s.p && s.n && !*end && i >= 0 && i < n ? i : -1;
}

bool ses_classifier_accuracy(const ses_model *m, const ses_tokenizer *t, const ses_text_file *f, size_t texts,
                             const ses_edits *edits, double *accuracy, size_t *n, ses_err *e)
{
    const ses_head_use *use = &m->class->head[0];
    ses_output_request want = { .logits = true, .edits = edits };
    text_pass p = { 0 };
    size_t right = 0;
    *n = 0;
    if (use->head != &ses_head_sequence_classification || m->stack[1].layer || m->c.labels < 2)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s does not classify texts: --erase measures the accuracy of a text classifier",
                        ses_model_class_name(m));
    bool ok = pass_open(&p, m, t, e);
    for (size_t i = 0; ok && i < f->n && i < texts; i++) {
        int64_t label = label_number(m, f->label[i]), best = 0;
        if (label < 0) continue;
        ok = pass_run(&p, &f->text[i], &want, e) && pass_read(&p, use->output, e);
        for (int64_t k = 1; ok && k < m->c.labels; k++)
            if (p.host[k] > p.host[best]) best = k;
        right += best == label;
        ++*n;
    }
    pass_close(&p);
    if (ok && !*n)
        return ses_fail(e, SES_EFORMAT, "no label of the file is a label of the model: \"%s\" is not",
                        ses_quoted_of(f->label[0].p ? f->label[0].p : "", f->label[0].n).s);
    *accuracy = ok ? (double)right / (double)*n : NAN;
    return ok;
}
