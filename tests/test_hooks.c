/* Captures and edits inside layers, for every architecture of tests/golden: captured tensors give the
 * attention weights and head outputs again, edits that replace a tensor by itself change no bit, edits that
 * remove something equal changed weights. Gradients: test_hooks_f64.c. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "check.h"
#include "model/model_desc.h"
#include "random_batch.h"
#include "sesame/hooks.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/ops.h"

#include <dirent.h>
#include <math.h>

typedef struct subject {
    const char *dir;
    ses_model *m;
    ses_tape *t;
    random_batch x;
    bool pair; /* has a decoder with an input of its own */
} subject;

static const ses_output_request all_captures = { .logits = true,
                                                 .hidden_states = true,
                                                 .attentions = true,
                                                 .qkv = true,
                                                 .head_outputs = true,
                                                 .ffn_activations = true,
                                                 .embeddings = true };

static bool run(subject *s, ses_output_request r, ses_outputs *o)
{
    ses_err e = { 0 };
    ses_tape_reset(s->t, NULL);
    return CHECK_MSG(ses_model_forward(s->m, s->t, &s->x.batch, &r, o, &e), "%s: %s", s->dir, e.msg);
}

static const ses_tensor *find(const ses_outputs *o, const char *prefix, const char *name, int64_t layer)
{
    char full[48];
    snprintf(full, sizeof full, "%s%s.%d", prefix, name, (int)layer);
    const ses_output *x = ses_outputs_find(o, full);
    return x ? x->tensor : NULL;
}

/* ---- the bits of a pass, for comparison with another pass ---- */

typedef struct copy {
    ses_real *x;
    int64_t n;
} copy;

/* The outputs of heads, or the last hidden state. */
static copy results(const ses_outputs *o)
{
    copy c = { NULL };
    ses_err e = { 0 };
    for (size_t i = 0; i < o->n; i++)
        if (!strchr(o->item[i].name, '.') && !strstr(o->item[i].name, "inputs_embeds"))
            c.n += ses_count(o->item[i].tensor);
    c.x = ses_alloc_array((size_t)c.n + 1, sizeof *c.x, &e);
    int64_t at = 0;
    for (size_t i = 0; i < o->n; i++) {
        const ses_tensor *x = o->item[i].tensor;
        if (strchr(o->item[i].name, '.') || strstr(o->item[i].name, "inputs_embeds")) continue;
        memcpy(c.x + at, x->f, (size_t)ses_count(x) * sizeof *c.x);
        at += ses_count(x);
    }
    return c;
}

static double distance(const copy *a, const copy *b)
{
    double most = 0;
    for (int64_t i = 0; i < a->n && a->n == b->n; i++)
        most = fmax(most, fabs((double)a->x[i] - (double)b->x[i]));
    return a->n == b->n ? most : HUGE_VAL;
}

static bool same_bits(const copy *a, const copy *b)
{
    return a->n == b->n && a->n > 0 && !memcmp(a->x, b->x, (size_t)a->n * sizeof *a->x);
}

/* Runs with edits; the results must have the bits of `plain`. */
static void check_unchanged(subject *s, const copy *plain, const ses_edits *edits, const char *what)
{
    ses_outputs o;
    if (!run(s, (ses_output_request){ .logits = true, .edits = edits }, &o)) return;
    copy c = results(&o);
    CHECK_MSG(same_bits(plain, &c), "%s: %s: off by %g", s->dir, what, distance(plain, &c));
    ses_free(c.x);
}

/* ---- captures ---- */

typedef struct part {
    ses_part part;
    const char *prefix;
    const int32_t *cu_q, *cu_k;
} part;

static int parts_of(const subject *s, part p[3])
{
    const int32_t *cu = s->x.cu;
    bool decoder = ses_model_part_layers(s->m, SES_PART_DECODER) > 0;
    p[0] = (part){ SES_PART_MAIN, decoder ? "encoder_" : "", cu, cu };
    p[1] = (part){ SES_PART_DECODER, "decoder_", cu, cu };
    p[2] = (part){ SES_PART_CROSS, "cross_", cu, cu };
    return decoder ? 3 : 1;
}

/* Are scores only scaled products, masked by causality and windows? */
static bool is_plain_attention(const subject *s)
{
    static const char *const biased[] = { "t5",         "mt5",     "umt5",        "mpnet",
                                          "bloom",      "deberta", "xlnet",       "transfo-xl",
                                          "deberta-v2", "jina_v2", "jina_v2_code" };
    for (size_t i = 0; i < SES_LEN(biased); i++)
        if (!strcmp(ses_model_type(s->m), biased[i])) return false;
    return !ses_config_scores_distances(s->m->stack[0].c);
}

/* Errors of one sequence and head: weights from queries and keys, outputs from weights and values. */
typedef struct errors {
    double probs, out;
} errors;

typedef struct one_head {
    const ses_real *q, *k, *v, *y, *p; /* first row of the sequence, column of the head */
    int64_t nq, nk, width, D;
    double scale;
} one_head;

static void check_head(const one_head *h, errors *worst)
{
    for (int64_t i = 0; i < h->nq; i++) {
        const ses_real *p = h->p + i * h->nk;
        double score[64], top = -HUGE_VAL, sum = 0;
        for (int64_t j = 0; j < h->nk; j++) {
            score[j] = 0;
            for (int64_t d = 0; d < h->D; d++)
                score[j] += h->scale * (double)h->q[i * h->width + d] * (double)h->k[j * h->width + d];
            if (p[j] > 0) top = fmax(top, score[j]);
        }
        for (int64_t j = 0; j < h->nk; j++) sum += p[j] > 0 ? exp(score[j] - top) : 0;
        for (int64_t j = 0; j < h->nk; j++) {
            double want = p[j] > 0 ? exp(score[j] - top) / sum : 0;
            worst->probs = fmax(worst->probs, fabs(want - (double)p[j]));
        }
        for (int64_t d = 0; d < h->D; d++) {
            double y = 0;
            for (int64_t j = 0; j < h->nk; j++) y += (double)p[j] * (double)h->v[j * h->width + d];
            worst->out = fmax(worst->out, fabs(y - (double)h->y[i * h->width + d]) / (1 + fabs(y)));
        }
    }
}

static void check_attention(const subject *s, const ses_outputs *o, const part *p, int64_t layer)
{
    const ses_tensor *q = find(o, p->prefix, "queries", layer), *k = find(o, p->prefix, "keys", layer),
                     *v = find(o, p->prefix, "values", layer), *y = find(o, p->prefix, "head_outputs", layer),
                     *a = find(o, p->prefix, "attentions", layer);
    if (!CHECK_MSG(q && k && v && y && a, "%s: %s layer %d", s->dir, p->prefix, (int)layer)) return;
    int64_t heads = ses_model_part_heads(s->m, p->part, layer), C = ses_cols(q), seqs = s->x.batch.seqs,
            mems = (ses_rows(k) - p->cu_k[seqs]) / seqs; /* rows of zeros before the tokens */
    CHECK(ses_cols(k) == C && ses_cols(v) == C && ses_cols(y) == C && ses_rows(y) == p->cu_q[seqs]);
    errors worst = { 0 };
    const ses_real *probs = a->f;
    for (int64_t i = 0; i < seqs; i++)
        for (int64_t h = 0; h < heads; h++) {
            int64_t D = C / heads, at_q = p->cu_q[i] * C + h * D, at_k = (p->cu_k[i] + i * mems) * C + h * D;
            one_head one = { q->f + at_q,
                             k->f + at_k,
                             v->f + at_k,
                             y->f + at_q,
                             probs,
                             p->cu_q[i + 1] - p->cu_q[i],
                             p->cu_k[i + 1] - p->cu_k[i] + mems,
                             C,
                             D,
                             ses_model_attention_scale(s->m, p->part, layer) };
            check_head(&one, &worst);
            probs += one.nq * one.nk;
        }
    CHECK_MSG(worst.out < 1e-5, "%s: %shead_outputs.%d off by %g", s->dir, p->prefix, (int)layer, worst.out);
    CHECK_MSG(!is_plain_attention(s) || worst.probs < 1e-5, "%s: %sattentions.%d off by %g", s->dir,
              p->prefix, (int)layer, worst.probs);
}

static void test_captures(subject *s, const copy *plain)
{
    part p[3];
    ses_outputs o;
    int n = parts_of(s, p);
    if (!run(s, all_captures, &o)) return;
    copy c = results(&o);
    CHECK_MSG(same_bits(plain, &c), "%s: captures: off by %g", s->dir, distance(plain, &c));
    ses_free(c.x);
    for (int i = 0; i < n; i++)
        for (int64_t l = 0; l < ses_model_part_layers(s->m, p[i].part); l++) {
            check_attention(s, &o, &p[i], l);
            const ses_tensor *f = find(&o, p[i].prefix, "ffn_activations", l);
            CHECK_MSG(p[i].part == SES_PART_CROSS ||
                          (f && ses_cols(f) == ses_model_part_neurons(s->m, p[i].part) &&
                           ses_rows(f) == s->x.batch.tokens),
                      "%s: ffn_activations", s->dir);
        }
    const ses_output *in = ses_outputs_find(&o, "inputs_embeds");
    CHECK(in && ses_rows(in->tensor) == s->x.batch.tokens);
    CHECK(n == 1 || ses_outputs_find(&o, "decoder_inputs_embeds"));
}

/* ---- edits ---- */

static ses_real *copied(const ses_tensor *x)
{
    ses_err e = { 0 };
    ses_real *y = ses_alloc_array((size_t)ses_count(x), sizeof *y, &e);
    if (CHECK(y)) memcpy(y, x->f, (size_t)ses_count(x) * sizeof *y);
    return y;
}

static void test_embeds(subject *s, const copy *plain)
{
    ses_outputs o;
    if (!run(s, (ses_output_request){ .embeddings = true }, &o)) return;
    const ses_output *in = ses_outputs_find(&o, "inputs_embeds"),
                     *target = ses_outputs_find(&o, "decoder_inputs_embeds");
    if (!CHECK(in)) return;
    ses_real *x = copied(in->tensor), *y = target ? copied(target->tensor) : NULL;
    int64_t count = ses_count(in->tensor);
    check_unchanged(s, plain, &(ses_edits){ .inputs_embeds = x, .decoder_inputs_embeds = y },
                    "inputs_embeds replaced by themselves");
    for (int64_t i = 0; i < count; i++) x[i] += (ses_real)0.5 * (ses_real)(i % 3);
    if (run(s, (ses_output_request){ .logits = true, .edits = &(ses_edits){ .inputs_embeds = x } }, &o)) {
        copy c = results(&o);
        CHECK_MSG(distance(plain, &c) > 0, "%s: other inputs_embeds changed nothing", s->dir);
        ses_free(c.x);
    }
    ses_free(x), ses_free(y);
}

/* Every row of every hidden state, one state at a time. */
static void test_hidden(subject *s, const copy *plain)
{
    enum { ROWS = RANDOM_SEQS * RANDOM_TOKENS };
    part p[3];
    int n = parts_of(s, p);
    for (int i = 0; i < n && p[i].part != SES_PART_CROSS; i++)
        for (int64_t l = 0; l <= ses_model_part_layers(s->m, p[i].part); l++) {
            ses_outputs o;
            ses_hidden_edit edit[ROWS];
            if (!run(s, (ses_output_request){ .hidden_states = true }, &o)) return;
            const ses_tensor *h = find(&o, p[i].prefix, "hidden_states", l);
            if (!CHECK_MSG(h, "%s: %shidden_states.%d", s->dir, p[i].prefix, (int)l)) return;
            int64_t rows = ses_rows(h), C = ses_cols(h);
            ses_real *x = copied(h);
            for (int64_t r = 0; r < rows; r++) edit[r] = (ses_hidden_edit){ p[i].part, l, r, x + r * C };
            check_unchanged(s, plain, &(ses_edits){ .hidden = edit, .n_hidden = (size_t)rows },
                            "hidden rows replaced by themselves");
            ses_free(x);
        }
}

/* The last head of layer 0 scaled by 1 and by 0; the model whose output projection has zero columns there. */
static void test_heads(subject *s, const copy *plain)
{
    part p[3];
    int n = parts_of(s, p);
    for (int i = 0; i < n; i++) {
        ses_head_edit edit = { p[i].part, 0, ses_model_part_heads(s->m, p[i].part, 0) - 1, 1 };
        ses_edits edits = { .heads = &edit, .n_heads = 1 };
        check_unchanged(s, plain, &edits, "a head scaled by 1");
        edit.factor = 0;
        ses_outputs o;
        if (!run(s, (ses_output_request){ .logits = true, .head_outputs = true, .edits = &edits }, &o))
            return;
        const ses_tensor *y = find(&o, p[i].prefix, "head_outputs", 0);
        int64_t C = ses_cols(y), D = C / ses_model_part_heads(s->m, p[i].part, 0), bad = 0;
        for (int64_t r = 0; r < ses_rows(y); r++)
            for (int64_t j = 0; j < C; j++) bad += (j / D == edit.head) && y->f[r * C + j] != 0;
        copy without = results(&o);
        CHECK_MSG(!bad && distance(plain, &without) > 0, "%s: %s head scaled by 0", s->dir, p[i].prefix);
        char name[64];
        snprintf(name, sizeof name, "%slayer.0.%s.out.weight", p[i].part == SES_PART_MAIN ? "" : "decoder.",
                 p[i].part == SES_PART_CROSS ? "cross" : "attn");
        const ses_param *w = ses_store_find(ses_model_store(s->m), name);
        bool shared = !strcmp(ses_model_type(s->m), "albert"); /* all layers have these weights */
        if (w && !shared) {
            ses_real *old = copied(w->tensor);
            bool in_out = w->layout == SES_IN_OUT && ses_rank(w->tensor) == 2;
            int64_t inner = C, rows = ses_count(w->tensor) / inner;
            for (int64_t a = 0; a < rows; a++)
                for (int64_t d = edit.head * D; d < (edit.head + 1) * D; d++)
                    w->tensor->f[in_out ? d * rows + a : a * inner + d] = 0;
            if (run(s, (ses_output_request){ .logits = true }, &o)) {
                copy zeroed = results(&o);
                CHECK_MSG(distance(&zeroed, &without) < 2e-5, "%s: %s: zero columns differ by %g", s->dir,
                          name, distance(&zeroed, &without));
                ses_free(zeroed.x);
            }
            memcpy(w->tensor->f, old, (size_t)ses_count(w->tensor) * sizeof *old);
            ses_free(old);
        }
        ses_free(without.x);
    }
}

static void test_values(subject *s, const copy *plain)
{
    part p[3];
    ses_outputs o;
    int n = parts_of(s, p);
    for (int i = 0; i < n; i++) {
        ses_value_edit edit = { p[i].part, SES_ALL_LAYERS, s->x.batch.tokens - 1, 1 };
        ses_edits edits = { .values = &edit, .n_values = 1 };
        check_unchanged(s, plain, &edits, "values scaled by 1");
        edit.factor = 0;
        ses_output_request r = all_captures;
        r.edits = &edits;
        if (!run(s, r, &o)) return;
        for (int64_t l = 0; l < ses_model_part_layers(s->m, p[i].part); l++) {
            const ses_tensor *v = find(&o, p[i].prefix, "values", l);
            int64_t C = ses_cols(v), bad = 0;
            for (int64_t j = 0; j < C; j++) bad += v->f[(ses_rows(v) - 1) * C + j] != 0;
            CHECK_MSG(!bad, "%s: %svalues.%d", s->dir, p[i].prefix, (int)l);
            check_attention(s, &o, &p[i], l);
        }
    }
}

/* A neuron of layer 0: set to a value, it has this value; with a pre-norm model the hidden state moves along
 * a column of the last projection. */
static void test_neurons(subject *s)
{
    ses_outputs o;
    bool decoder = ses_model_part_layers(s->m, SES_PART_DECODER) > 0;
    const char *prefix = decoder ? "encoder_" : "";
    int64_t last = ses_model_part_neurons(s->m, SES_PART_MAIN) - 1;
    ses_neuron_edit edit = { SES_PART_MAIN, 0, last, 1.5 };
    ses_output_request r = all_captures;
    r.edits = &(ses_edits){ .neurons = &edit, .n_neurons = 1 };
    if (!run(s, r, &o)) return;
    const ses_tensor *f = find(&o, prefix, "ffn_activations", 0), *h = find(&o, prefix, "hidden_states", 1);
    int bad = 0;
    for (int64_t i = 0; i < ses_rows(f); i++) bad += f->f[i * (last + 1) + last] != (ses_real)1.5;
    CHECK_MSG(!bad, "%s: neuron %d", s->dir, (int)last);
    const ses_param *down = ses_store_find(ses_model_store(s->m), "layer.0.ffn.down.weight");
    static const char *const pre_norm[] = {
        "gpt2", "gpt_neo", "t5", "mt5", "modernbert", "bloom", "pegasus"
    };
    bool applies = false;
    for (size_t i = 0; i < SES_LEN(pre_norm); i++)
        applies |= !strcmp(ses_model_type(s->m), pre_norm[i]) && !strstr(s->dir, "bloom-normed");
    if (!applies || !down || ses_model_part_layers(s->m, SES_PART_MAIN) < 2) return;
    int64_t C = ses_cols(h), rows = ses_rows(h);
    ses_real *before = copied(h);
    edit.value = 4;
    if (!run(s, r, &o)) return;
    h = find(&o, prefix, "hidden_states", 1);
    double worst = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < C; j++) {
            double w =
                (double)down->tensor->f[down->layout == SES_IN_OUT ? last * C + j : j * (last + 1) + last];
            worst = fmax(worst, fabs((double)h->f[i * C + j] - (double)before[i * C + j] - 2.5 * w));
        }
    CHECK_MSG(worst < 1e-4, "%s: neuron moves the state by %g more than its weights", s->dir, worst);
    ses_free(before);
}

/* ---- refusals ---- */

static void refuse(subject *s, const ses_edits *edits, const char *message)
{
    ses_err e = { 0 };
    ses_outputs o;
    ses_tape_reset(s->t, NULL);
    bool ok = ses_model_forward(s->m, s->t, &s->x.batch, &(ses_output_request){ .edits = edits }, &o, &e);
    CHECK_MSG(!ok && strstr(e.msg, message), "%s: \"%s\", expected \"%s\"", s->dir, e.msg, message);
}

static void test_refusals(subject *s)
{
    int64_t layers = ses_model_part_layers(s->m, SES_PART_MAIN), tokens = s->x.batch.tokens,
            heads = ses_model_part_heads(s->m, SES_PART_MAIN, 0);
    ses_real vector[1] = { 0 };
    refuse(s, &(ses_edits){ .heads = &(ses_head_edit){ 0, layers, 0, 1 }, .n_heads = 1 }, "edit of layer");
    refuse(s, &(ses_edits){ .heads = &(ses_head_edit){ 0, 0, heads, 1 }, .n_heads = 1 }, "edit of head");
    refuse(s, &(ses_edits){ .neurons = &(ses_neuron_edit){ 0, 0, -1, 1 }, .n_neurons = 1 }, "edit of neuron");
    refuse(s, &(ses_edits){ .hidden = &(ses_hidden_edit){ 0, layers + 1, 0, vector }, .n_hidden = 1 },
           "edit of layer");
    refuse(s, &(ses_edits){ .hidden = &(ses_hidden_edit){ 0, 0, tokens, vector }, .n_hidden = 1 },
           "edit of row");
    refuse(s, &(ses_edits){ .values = &(ses_value_edit){ 0, -2, 0, 1 }, .n_values = 1 }, "edit of layer");
    if (!ses_model_part_layers(s->m, SES_PART_DECODER))
        refuse(s, &(ses_edits){ .heads = &(ses_head_edit){ SES_PART_CROSS, 0, 0, 1 }, .n_heads = 1 },
               "has no cross attention");
}

static void test_cache(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_cache *c = m ? ses_cache_new(m, 1, 8, &e) : NULL;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    static const int32_t cu[] = { 0, 2 }, ids[] = { 1, 2 }, slot[] = { 0 };
    ses_batch b = { .seqs = 1, .tokens = 2, .cu_seqlens = cu, .ids = ids, .cache = c, .slots = slot };
    ses_outputs o;
    CHECK(c && !ses_model_forward(m, t, &b, &(ses_output_request){ .qkv = true }, &o, &e));
    CHECK_MSG(e.code == SES_EUNSUPPORTED && strstr(e.msg, "KV cache"), "%s", e.msg);
    ses_tape_free(t);
    ses_cache_free(c);
    ses_model_free(m);
}

static bool begin(subject *s, const char *dir, ses_device *dev)
{
    ses_err e = { 0 };
    *s = (subject){ .dir = dir };
    s->m = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, &e);
    s->t = s->m ? ses_tape_new(dev, NULL, &e) : NULL;
    if (!CHECK_MSG(s->t, "%s: %s", dir, e.msg)) return false;
    bool echo = strstr(ses_model_class_name(s->m), "SequenceClassification") ||
                strstr(ses_model_class_name(s->m), "QuestionAnswering");
    s->pair = ses_model_part_layers(s->m, SES_PART_DECODER) > 0 && !echo;
    random_batch_draw(&s->x, s->m, s->pair, 7);
    return true;
}

/* ---- transformers: tests/fixtures/hooks.py ---- */

/* The largest difference to an entry of the file, relative to its largest value. */
static double off(const ses_tensor_entry *x, const ses_real *ours, int64_t n)
{
    ses_err e = { 0 };
    float *theirs = ses_alloc_array((size_t)n, sizeof *theirs, &e);
    double worst = 0, top = 1;
    int64_t count = 1;
    for (int i = 0; i < x->rank; i++) count *= x->dim[i];
    if (!theirs || count != n || !ses_convert(theirs, SES_F32, x->data, x->dtype, (size_t)n, &e))
        worst = HUGE_VAL;
    for (int64_t i = 0; i < n && worst < HUGE_VAL; i++) {
        worst = fmax(worst, fabs((double)ours[i] - (double)theirs[i]));
        top = fmax(top, fabs((double)theirs[i]));
    }
    ses_free(theirs);
    return worst / top;
}

/* Compares every "output." and "grad." of the file. */
static void compare(subject *s, const ses_outputs *o, const ses_safetensors *f)
{
    static ses_real x[1 << 14];
    for (size_t i = 0; i < ses_safetensors_count(f); i++) {
        const ses_tensor_entry *entry = ses_safetensors_at(f, i);
        bool grad = !strncmp(entry->name, "grad.", 5);
        if (!grad && strncmp(entry->name, "output.", 7) != 0) continue;
        const ses_output *y = ses_outputs_find(o, entry->name + (grad ? 5 : 7));
        if (!CHECK_MSG(y && ses_count(y->tensor) <= (int64_t)SES_LEN(x), "%s: no %s", s->dir, entry->name))
            continue;
        CHECK(grad ? ses_tape_read_grad(s->t, y->tensor, x) : ses_tape_read(s->t, y->tensor, x));
        double d = off(entry, x, ses_count(y->tensor));
        CHECK_MSG(d < 1e-5, "%s: %s off by %g", s->dir, entry->name, d);
    }
}

static int64_t read_ids(const ses_safetensors *f, const char *name, int32_t *ids)
{
    ses_err e = { 0 };
    const ses_tensor_entry *x = ses_safetensors_find(f, name);
    return x && CHECK(x->dim[0] <= RANDOM_TOKENS) &&
                   CHECK(ses_convert(ids, SES_I32, x->data, x->dtype, (size_t)x->dim[0], &e))
               ? x->dim[0]
               : 0;
}

static void test_transformers(const char *name, ses_device *dev)
{
    char dir[96], path[96];
    ses_err e = { 0 };
    subject s;
    ses_outputs o;
    snprintf(dir, sizeof dir, "tests/golden/%s", name);
    snprintf(path, sizeof path, "tests/fixtures/hooks/%s.safetensors", name);
    ses_safetensors *f = ses_safetensors_open(path, &e);
    if (!CHECK_MSG(f, "%s", e.msg) || !begin(&s, dir, dev)) return;
    memset(&s.x, 0, sizeof s.x);
    s.x.cu[1] = (int32_t)read_ids(f, "input_ids", s.x.ids);
    s.x.batch = (ses_batch){ .seqs = 1, .tokens = s.x.cu[1], .cu_seqlens = s.x.cu, .ids = s.x.ids };
    int32_t target_cu[2] = { 0, s.pair ? (int32_t)read_ids(f, "decoder_input_ids", s.x.target) : 0 };
    if (s.pair) s.x.batch.target_cu_seqlens = target_cu, s.x.batch.target_ids = s.x.target;
    ses_output_request r = all_captures;
    r.capture_gradients = true;
    ses_tape_reset(s.t, &(ses_tape_options){ .record = true });
    if (CHECK_MSG(ses_model_forward(s.m, s.t, &s.x.batch, &r, &o, &e), "%s", e.msg)) {
        ses_tensor *logits = ses_outputs_find(&o, "logits")->tensor;
        static const ses_real zeros[1 << 12];
        CHECK(ses_count(logits) <= (int64_t)SES_LEN(zeros));
        ses_backward(s.t,
                     ses_target_loss(s.t, logits, ses_tape_input(s.t, zeros, logits->dim), SES_LOSS_MSE));
        CHECK_MSG(ses_tape_ok(s.t, &e), "%s", e.msg);
        compare(&s, &o, f);
    }
    ses_tape_free(s.t);
    ses_model_free(s.m);
    ses_safetensors_free(f);
}

/* Models without attention heads and neurons. */
static void test_no_layers(subject *s)
{
    static const char message[] = "has no Transformer layers";
    ses_err e = { 0 };
    ses_outputs o;
    ses_tape_reset(s->t, NULL);
    bool ok = ses_model_forward(s->m, s->t, &s->x.batch, &(ses_output_request){ .qkv = true }, &o, &e);
    CHECK_MSG(!ok && strstr(e.msg, message), "%s: %s", s->dir, e.msg);
    refuse(s, &(ses_edits){ .heads = &(ses_head_edit){ 0, 0, 0, 1 }, .n_heads = 1 }, message);
    refuse(s, &(ses_edits){ .neurons = &(ses_neuron_edit){ 0, 0, 0, 1 }, .n_neurons = 1 }, message);
}

/* Models of two towers: the last layer has two keys of each token. */
/* A model refuses one kind of captures; `without` are the others, which change no bits. */
static void test_refused_capture(subject *s, const char *message, ses_output_request without)
{
    ses_err e = { 0 };
    ses_outputs o;
    ses_tape_reset(s->t, NULL);
    bool ok = ses_model_forward(s->m, s->t, &s->x.batch, &all_captures, &o, &e);
    CHECK_MSG(!ok && strstr(e.msg, message), "%s: %s", s->dir, e.msg);
    if (!run(s, (ses_output_request){ .logits = true }, &o)) return;
    copy plain = results(&o);
    if (run(s, without, &o)) {
        copy c = results(&o);
        CHECK_MSG(same_bits(&plain, &c), "%s: captures: off by %g", s->dir, distance(&plain, &c));
        ses_free(c.x);
    }
    ses_free(plain.x);
}

static void test_towers(subject *s)
{
    ses_output_request r = all_captures;
    r.qkv = false;
    test_refused_capture(s, "of two towers", r);
}

static void test_experts(subject *s)
{
    ses_output_request r = all_captures;
    r.ffn_activations = false;
    test_refused_capture(s, "activations of a mixture of experts", r);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    DIR *d = opendir("tests/golden");
    int models = 0;
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        subject s;
        ses_outputs o;
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        bool opened = begin(&s, path, dev);
        if (opened && !ses_model_part_neurons(s.m, SES_PART_MAIN)) {
            test_no_layers(&s);
        } else if (opened && s.m->stack[0].c->attention.tower_layers) {
            test_towers(&s);
        } else if (opened && s.m->stack[0].c->ffn.experts) {
            test_experts(&s);
        } else if (opened && run(&s, (ses_output_request){ .logits = true }, &o)) {
            copy plain = results(&o);
            test_captures(&s, &plain);
            test_embeds(&s, &plain);
            test_hidden(&s, &plain);
            test_heads(&s, &plain);
            test_values(&s, &plain);
            test_neurons(&s);
            test_refusals(&s);
            ses_free(plain.x);
            models++;
        }
        ses_tape_free(s.t);
        ses_model_free(s.m);
    }
    if (d) closedir(d);
    CHECK(models >= 95);
    test_cache(dev);
    static const char *const by_transformers[] = { "bert-classify", "gpt2-lm", "t5-v1.0",
                                                   "modernbert-masked-lm" };
    for (size_t i = 0; i < SES_LEN(by_transformers); i++) test_transformers(by_transformers[i], dev);
    ses_device_free(dev);
    return check_report();
}
