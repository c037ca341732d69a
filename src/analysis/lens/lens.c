/* Reading hidden states with the language model head: see lens.h. */
#include "lens.h"

#include "base/alloc.h"
#include "io/safetensors_impl.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- translators ---- */

bool ses_translators_alloc(ses_translators *t, int64_t layers, int64_t width, ses_err *e)
{
    *t = (ses_translators){ .layers = layers, .width = width };
    t->a = ses_alloc_array((size_t)(layers * width * width), sizeof *t->a, e);
    t->b = t->a ? ses_alloc_array((size_t)(layers * width), sizeof *t->b, e) : NULL;
    return t->b != NULL;
}

void ses_translators_free(ses_translators *t)
{
    ses_free(t->a), ses_free(t->b);
    *t = (ses_translators){ 0 };
}

static bool load_one(const ses_safetensors *f, const char *name, int64_t rows, int64_t cols, ses_real *to,
                     ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(f, name);
    bool fits = x && x->rank == (cols ? 2 : 1) && x->dim[0] == rows && (!cols || x->dim[1] == cols);
    if (!fits)
        return ses_fail(e, SES_EFORMAT, "%s: %s; expected translators of a model with %lld columns", name,
                        x ? "another shape" : "missing", (long long)rows);
    if (!ses_convert(to, SES_REAL, x->data, x->dtype, (size_t)x->count, e)) return false;
    for (int64_t i = 0; i < x->count; i++)
        if (!isfinite(to[i])) return ses_fail(e, SES_EFORMAT, "%s: a number is not finite", name);
    return true;
}

bool ses_translators_load(ses_translators *t, const char *path, const ses_model *m, ses_err *e)
{
    char name[48];
    int64_t layers = m->stack[m->stack[1].layer ? 1 : 0].depth, w = m->c.hidden;
    ses_safetensors *f = ses_safetensors_open(path, e);
    bool ok = f && ses_translators_alloc(t, layers, w, e);
    for (int64_t i = 0; ok && i < layers; i++) {
        snprintf(name, sizeof name, "translator.%lld.weight", (long long)i);
        ok = load_one(f, name, w, w, t->a + i * w * w, e);
        snprintf(name, sizeof name, "translator.%lld.bias", (long long)i);
        ok = ok && load_one(f, name, w, 0, t->b + i * w, e);
    }
    ses_safetensors_free(f);
    return ok || ses_wrap(e, "%s", path);
}

bool ses_translators_save(const ses_translators *t, const char *path, const ses_model *m, bool overwrite,
                          ses_err *e)
{
    char name[48];
    int64_t w = t->width;
    ses_safetensors_writer *s = ses_safetensors_writer_new(e);
    bool ok = s && ses_safetensors_writer_add_meta(s, "model_type", ses_model_type(m), e) &&
              ses_safetensors_writer_add_checksum(s, e);
    for (int64_t i = 0; ok && i < t->layers; i++) {
        snprintf(name, sizeof name, "translator.%lld.weight", (long long)i);
        ok = ses_safetensors_writer_add(s, name, SES_REAL, 2, (const int64_t[]){ w, w }, t->a + i * w * w, e);
        snprintf(name, sizeof name, "translator.%lld.bias", (long long)i);
        ok = ok && ses_safetensors_writer_add(s, name, SES_REAL, 1, (const int64_t[]){ w }, t->b + i * w, e);
    }
    ok = ok && ses_safetensors_save(s, path, overwrite, e);
    ses_safetensors_writer_free(s);
    return ok;
}

/* ---- passes ---- */

bool ses_lens_open(ses_lens *l, const ses_model *m, const ses_tokenizer *t, const char *dir, ses_err *e)
{
    *l = (ses_lens){ .m = m, .tokenizer = t, .decoder = m->stack[1].layer != NULL };
    l->head = ses_model_lens_head(m, e);
    if (!l->head) return ses_wrap(e, "a lens reads layers with the language model head");
    if (!ses_tokenizer_config_read(&l->config, dir, ses_model_type(m), NULL, t, e)) return false;
    l->masked = l->head->head == &ses_head_masked_lm && !m->class->decoder_only && !m->stack[0].causal;
    l->segments = ses_model_uses_segments(m) && ses_model_sets_segments(NULL, ses_model_type(m));
    l->layers = m->stack[l->decoder].depth;
    l->width = m->c.hidden;
    if (ses_head_width(&m->c) > l->width)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s projects its last layer to more columns than its layers have", m->class->name);
    l->vocab = m->c.vocab;
    l->tokens = ses_encode_ctx_new(t, e);
    return l->tokens && ses_pass_open(&l->pass, m, e);
}

void ses_lens_close(ses_lens *l)
{
    ses_encode_ctx_free(l->tokens);
    ses_pass_close(&l->pass);
    *l = (ses_lens){ 0 };
}

/* Copies rows of an output to the host. last: it may have fewer columns than the others. */
static bool copy_rows(ses_lens *l, const char *name, bool last, ses_real *to, ses_err *e)
{
    const ses_output *x = ses_outputs_find(&l->pass.out, name);
    const ses_output_request *r = &l->pass.request;
    if (!x || !x->tensor)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "this model does not give out its layers: a lens cannot read them");
    int64_t cols = ses_cols(x->tensor);
    if (last ? cols > l->width : cols != l->width)
        return ses_fail(e, SES_EUNSUPPORTED, "%s has %lld columns, expected %lld: a lens cannot read it",
                        name, (long long)cols, (long long)l->width);
    ses_tensor *rows = ses_gather(l->pass.tape, x->tensor, ses_tape_ints(l->pass.tape, r->rows, r->n_rows));
    return ses_tape_read(l->pass.tape, rows, to) || ses_tape_ok(l->pass.tape, e);
}

bool ses_lens_states(ses_lens *l, ses_real *const *state, ses_real *logits, ses_err *e)
{
    char name[48];
    static const ses_output_request want = { .logits = true, .hidden_states = true };
    if (!ses_pass_run(&l->pass, &want, e)) return false;
    const ses_output *y = ses_outputs_find(&l->pass.out, l->head->output);
    if (!y || ses_cols(y->tensor) != l->vocab)
        return ses_fail(e, SES_EUNSUPPORTED, "this model has no logits of its vocabulary");
    if (!ses_tape_read(l->pass.tape, y->tensor, logits)) return ses_tape_ok(l->pass.tape, e);
    for (int64_t i = 0; i <= l->layers; i++) {
        snprintf(name, sizeof name, "%shidden_states.%lld", l->m->stack[l->decoder].outputs, (long long)i);
        if (!copy_rows(l, name, i == l->layers, state[i], e)) return false;
    }
    for (int64_t i = 0; i < l->pass.request.n_rows * l->vocab; i++)
        if (isnan(logits[i]))
            return ses_fail(e, SES_EFORMAT, "the model computes NaN: its weights are damaged");
    return ses_tape_ok(l->pass.tape, e);
}

bool ses_lens_read(ses_lens *l, const ses_translators *t, int64_t layer, const ses_real *state, int64_t n,
                   ses_real *logits, ses_err *e)
{
    int64_t w = l->width, cols = layer == l->layers ? ses_head_width(&l->m->c) : w;
    ses_tape_reset(l->pass.tape, NULL);
    ses_tensor *x = ses_tape_input(l->pass.tape, state, SES_DIM(n, cols));
    if (t && layer < l->layers) {
        ses_tensor *a = ses_tape_input(l->pass.tape, t->a + layer * w * w, SES_DIM(w, w));
        ses_tensor *b = ses_tape_input(l->pass.tape, t->b + layer * w, SES_DIM(w));
        x = ses_add(l->pass.tape, x, ses_linear(l->pass.tape, x, a, b, SES_ACT_NONE, SES_OUT_IN));
    }
    ses_tensor *y = ses_model_lens(l->m, l->pass.tape, x, layer == l->layers);
    return ses_tape_read(l->pass.tape, y, logits) || (ses_tape_ok(l->pass.tape, e) && false);
}
