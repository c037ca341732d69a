/* Feed-forward activations of a corpus: see activations.h. */
#include "activations.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/model_desc.h"
#include "run/pass.h"

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
    ses_pass pass;
    ses_encode_ctx *tokens, *source; /* source: of the encoder, if the decoder is read */
    const ses_encoding *enc;         /* the tokens that are read */
    bool decoder, segments;
} text_pass;

static bool pass_open(text_pass *p, const ses_model *m, const ses_tokenizer *t, bool decoder, ses_err *e)
{
    *p = (text_pass){ .decoder = decoder };
    p->segments = ses_model_uses_segments(m) && ses_model_sets_segments(NULL, ses_model_type(m));
    p->tokens = ses_encode_ctx_new(t, e);
    p->source = p->tokens ? ses_encode_ctx_new(t, e) : NULL;
    return p->source && ses_pass_open(&p->pass, m, e);
}

static void pass_close(text_pass *p)
{
    ses_encode_ctx_free(p->tokens);
    ses_encode_ctx_free(p->source);
    ses_pass_close(&p->pass);
}

static const ses_encoding *encode(const text_pass *p, ses_encode_ctx *k, const ses_input *text, ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(p->pass.model) - p->decoder };
    return ses_encode(k, text, &o, e) ? ses_encode_ctx_result(k) : NULL;
}

/* Runs the encoder over the text, and the decoder over its start token and the target; without a decoder to
 * read, the target is NULL. Texts that are too long are truncated. */
static bool pass_run(text_pass *p, const ses_input *text, const ses_input *target,
                     const ses_output_request *want, ses_err *e)
{
    const ses_encoding *in = encode(p, p->source, text, e);
    p->enc = !in || !target ? in : encode(p, p->tokens, target, e);
    if (!p->enc) return false;
    if (!in->n || !p->enc->n) return true;
    ses_batch_builder *b = &p->pass.in;
    const ses_model *m = p->pass.model;
    bool ok = ses_batch_builder_add_encoding(b, in, p->segments, e);
    if (ok && m->stack[1].layer)
        ok = target ? ses_batch_builder_start(b, m, p->enc->id, (int64_t)p->enc->n, e)
                    : ses_batch_builder_idle(b, m, e);
    return ok && ses_pass_run(&p->pass, want, e);
}

static int64_t layer_width(const text_pass *p, int64_t layer)
{
    return ses_model_layer_neurons(p->pass.model, p->decoder ? SES_PART_DECODER : SES_PART_MAIN, layer);
}

/* The activations of a layer: the first row is that of the first token. */
static const ses_real *read_activations(text_pass *p, int64_t layer, ses_err *e)
{
    char name[48];
    const char *prefix = p->pass.model->stack[p->decoder].outputs;
    snprintf(name, sizeof name, "%sffn_activations.%lld", prefix ? prefix : "", (long long)layer);
    const ses_real *x = ses_pass_read(&p->pass, name, e);
    return x && p->decoder ? x + layer_width(p, layer) : x; /* the decoder reads its start token first */
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
        if (f->is_words && (x->special_mask[i] || x->word_id[i] < 0)) continue;
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
static bool add_layer(ses_activations *a, const text_pass *p, const ses_real *x, int64_t layer, size_t first,
                      const int32_t *sample, int32_t *count, ses_err *e)
{
    int64_t width = layer_width(p, layer); /* further neurons of the widest layer stay 0 */
    memset(count, 0, p->enc->n * sizeof *count);
    for (size_t i = 0; i < p->enc->n; i++)
        if (sample[i] >= 0) count[(size_t)sample[i] - first]++;
    for (size_t i = 0; i < p->enc->n; i++) {
        if (sample[i] < 0) continue;
        float share = 1 / (float)count[(size_t)sample[i] - first];
        const ses_real *from = x + (int64_t)i * width;
        float *to = a->x + (size_t)(layer * a->width) * a->cap + sample[i];
        for (int64_t k = 0; k < width; k++, to += a->cap) {
            if (!isfinite(from[k]))
                return ses_fail(e, SES_EFORMAT, "layer %lld, neuron %lld: an activation is not finite",
                                (long long)layer + 1, (long long)k);
            *to += share * (float)from[k];
        }
    }
    return true;
}

/* The text that the decoder reads; NULL: it is not read. */
static const ses_input *target_of(const ses_text_file *f, size_t text, bool decoder)
{
    return !decoder ? NULL : f->target ? &f->target[text] : &f->text[text];
}

static bool read_text(ses_activations *a, text_pass *p, const ses_text_file *f, size_t text, ses_err *e)
{
    static const ses_output_request want = { .ffn_activations = true };
    size_t first = a->n;
    if (!pass_run(p, &f->text[text], target_of(f, text, p->decoder), &want, e)) return false;
    int32_t *sample = ses_alloc_array(2 * p->enc->n + 2, sizeof *sample, e);
    if (!sample) return false;
    for (size_t i = 0; i < p->enc->n; i++) sample[i] = -1;
    add_samples(a, f, text, p->enc, sample);
    bool ok = true;
    for (int64_t l = 0; ok && a->n > first && l < a->layers; l++) {
        const ses_real *x = read_activations(p, l, e);
        ok = x && add_layer(a, p, x, l, first, sample, sample + p->enc->n, e);
    }
    ses_free(sample);
    return ok;
}

bool ses_activations_read(ses_activations *a, const ses_model *m, const ses_tokenizer *t,
                          const ses_text_file *f, bool decoder, size_t max_samples,
                          const ses_analysis_call *call, ses_err *e)
{
    text_pass p = { 0 };
    ses_part part = decoder ? SES_PART_DECODER : SES_PART_MAIN;
    ses_model *view = ses_analysis_part(m, decoder, e);
    bool ok = view != NULL;
    a->layers = ok ? ses_model_part_layers(view, part) : 0;
    a->width = ok ? ses_model_part_neurons(view, part) : 0;
    if (ok && (!a->layers || !a->width))
        ok = ses_fail(e, SES_EUNSUPPORTED, "%s has no feed-forward neurons", ses_model_type(m));
    ok = ok && allocate(a, f, max_samples, e) && pass_open(&p, view, t, decoder, e);
    for (size_t i = 0; ok && i < f->n && a->n < a->cap; i++) {
        ok = read_text(a, &p, f, i, e);
        ses_analysis_progress(call, "texts", (int64_t)i + 1, (int64_t)f->n);
    }
    pass_close(&p);
    ses_model_free(view);
    return ok;
}

bool ses_activations_of_text(const ses_model *m, const ses_tokenizer *t, const ses_neuron_strip *s,
                             double **value, char ***name, int64_t *n, ses_err *e)
{
    static const ses_output_request want = { .ffn_activations = true };
    text_pass p = { 0 };
    *n = 0;
    ses_model *view = ses_analysis_part(m, s->decoder, e);
    bool ok = view && pass_open(&p, view, t, s->decoder, e) &&
              pass_run(&p, &s->file->text[s->text], target_of(s->file, s->text, s->decoder), &want, e);
    const ses_real *x = ok ? read_activations(&p, s->layer, e) : NULL;
    int64_t width = x ? layer_width(&p, s->layer) : 0;
    ok = x != NULL;
    *value = ok ? ses_alloc_array(p.enc->n, sizeof **value, e) : NULL;
    *name = *value ? ses_alloc_array(p.enc->n, sizeof **name, e) : NULL;
    for (size_t i = 0; *name && i < p.enc->n; i++) {
        size_t len = 0;
        const char *token = ses_tokenizer_id_to_token(t, p.enc->id[i], &len);
        (*value)[i] = (double)x[(int64_t)i * width + s->neuron];
        (*name)[i] = ses_strndup(token ? token : "", token ? len : 0, e);
        ok = ok && (*name)[i];
        ++*n;
    }
    ok = ok && *name;
    pass_close(&p);
    ses_model_free(view);
    return ok;
}

/* ---- a classifier ---- */

bool ses_classifier_accuracy(const ses_model *m, const ses_tokenizer *t, const ses_text_file *f, size_t texts,
                             const ses_edits *edits, double *accuracy, size_t *n, ses_err *e)
{
    const ses_head_use *use = &m->class->head[0];
    ses_output_request want = { .logits = true, .edits = edits };
    text_pass p = { 0 };
    size_t right = 0;
    *n = 0;
    if (m->stack[1].layer)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "--erase measures text classifiers without a decoder; %s is an encoder-decoder",
                        ses_model_class_name(m));
    if (use->head != &ses_head_sequence_classification || m->c.labels < 2)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s does not classify texts: --erase measures the accuracy of a text classifier",
                        ses_model_class_name(m));
    bool ok = pass_open(&p, m, t, false, e);
    for (size_t i = 0; ok && i < f->n && i < texts; i++) {
        int64_t label, best = 0;
        ses_err unknown = { 0 };
        if (!f->label[i].p || !ses_model_find_label(m, f->label[i], &label, &unknown)) continue;
        const ses_real *x =
            pass_run(&p, &f->text[i], NULL, &want, e) ? ses_pass_read(&p.pass, use->output, e) : NULL;
        ok = x != NULL;
        for (int64_t k = 1; ok && k < m->c.labels; k++)
            if (x[k] > x[best]) best = k;
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
