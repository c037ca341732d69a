/* Gradients of captured tensors (embeddings, hidden states, head outputs, feed-forward activations, values)
 * against finite differences of edits, in double precision, for every family of models. */
#include "check.h"
#include "families.h"
#include "model_fixture.h"
#include "sesame/hooks.h"

#include <math.h>

enum { MAX_COUNT = 4096, MAX_WIDTH = 64 };
static const double step = 1e-5, tolerance = 1e-6;

typedef struct subject {
    const family *f;
    ses_model *m;
    ses_tape *t;
    ses_batch b;
    uint8_t mask[FIXTURE_PAIRS];
    ses_real mems[FIXTURE_MEMS];
} subject;

static double loss(subject *s, const ses_edits *edits)
{
    ses_err e = { 0 };
    ses_outputs o;
    ses_tape_reset(s->t, &(ses_tape_options){ .record = false });
    ses_output_request r = { .edits = edits };
    if (!CHECK_MSG(ses_model_forward(s->m, s->t, &s->b, &r, &o, &e) && o.loss, "%s: %s", s->f->class_name,
                   e.msg))
        return NAN;
    return (double)*o.loss->f;
}

/* Runs forward and backward with captures. */
static bool backward(subject *s, ses_output_request r, ses_outputs *o)
{
    ses_err e = { 0 };
    r.capture_gradients = true;
    ses_tape_reset(s->t, &(ses_tape_options){ .record = true });
    bool ok = ses_model_forward(s->m, s->t, &s->b, &r, o, &e);
    if (ok) ses_backward(s->t, o->loss);
    return CHECK_MSG(ok && ses_tape_ok(s->t, &e), "%s: %s", s->f->class_name, e.msg);
}

typedef struct captured {
    ses_real x[MAX_COUNT], grad[MAX_COUNT];
    int64_t rows, cols;
} captured;

/* Values and gradient of an output; false: the model has none of this name. */
static bool read(subject *s, const ses_outputs *o, const char *name, captured *c)
{
    const ses_output *x = ses_outputs_find(o, name);
    if (!x || !CHECK(ses_count(x->tensor) <= MAX_COUNT)) return false;
    c->rows = ses_rows(x->tensor), c->cols = ses_cols(x->tensor);
    return CHECK(ses_tape_read(s->t, x->tensor, c->x) && ses_tape_read_grad(s->t, x->tensor, c->grad));
}

static void check_slope(const subject *s, const char *what, double got, double up, double down)
{
    double want = (up - down) / (2 * step);
    CHECK_MSG(fabs(got - want) <= tolerance * (1 + fabs(want)), "%s: %s: gradient %g, by differences %g",
              s->f->class_name, what, got, want);
}

static const char *prefix_of(const subject *s)
{
    return ses_model_part_layers(s->m, SES_PART_DECODER) ? "encoder_" : "";
}

static void test_embeds(subject *s, bool target)
{
    static captured c;
    ses_outputs o;
    if (!backward(s, (ses_output_request){ .embeddings = true }, &o) ||
        !read(s, &o, target ? "decoder_inputs_embeds" : "inputs_embeds", &c))
        return;
    ses_edits edits = { 0 };
    *(target ? &edits.decoder_inputs_embeds : &edits.inputs_embeds) = c.x;
    for (int64_t i = 3; i < c.rows * c.cols; i += c.rows * c.cols / 5) {
        ses_real old = c.x[i];
        c.x[i] = old + step;
        double up = loss(s, &edits);
        c.x[i] = old - step;
        double down = loss(s, &edits);
        c.x[i] = old;
        check_slope(s, target ? "decoder_inputs_embeds" : "inputs_embeds", (double)c.grad[i], up, down);
    }
}

/* The derivative by the factor of a head is the product of its output and the gradient of its output. */
static void test_heads(subject *s, ses_part part, const char *prefix)
{
    static captured c;
    char name[48];
    for (int layer = 0; layer < (int)ses_model_part_layers(s->m, part); layer++) {
        ses_outputs o;
        snprintf(name, sizeof name, "%shead_outputs.%d", prefix, layer);
        if (!backward(s, (ses_output_request){ .head_outputs = true }, &o) || !read(s, &o, name, &c)) return;
        int64_t heads = ses_model_part_heads(s->m, part, layer), D = c.cols / heads;
        for (int64_t h = 0; h < heads; h++) {
            double sum = 0;
            for (int64_t r = 0; r < c.rows; r++)
                for (int64_t d = h * D; d < (h + 1) * D; d++)
                    sum += (double)c.x[r * c.cols + d] * (double)c.grad[r * c.cols + d];
            ses_head_edit edit = { part, layer, h, 1 + step };
            double up = loss(s, &(ses_edits){ .heads = &edit, .n_heads = 1 });
            edit.factor = 1 - step;
            check_slope(s, name, sum, up, loss(s, &(ses_edits){ .heads = &edit, .n_heads = 1 }));
        }
    }
}

static void test_hidden(subject *s, ses_part part, const char *prefix)
{
    static captured c;
    ses_real vector[MAX_WIDTH];
    char name[48];
    for (int layer = 0; layer <= (int)ses_model_part_layers(s->m, part); layer++) {
        ses_outputs o;
        /* two streams of hidden states alternate; edits change the content stream */
        snprintf(name, sizeof name, "%shidden_states.%d", prefix, s->f->permutation ? 2 * layer : layer);
        if (!backward(s, (ses_output_request){ .hidden_states = true }, &o) || !read(s, &o, name, &c)) return;
        for (int64_t i = 1; i < c.rows * c.cols; i += c.rows * c.cols / 4) {
            int64_t r = i / c.cols;
            memcpy(vector, c.x + r * c.cols, (size_t)c.cols * sizeof *vector);
            ses_hidden_edit edit = { part, layer, r, vector };
            ses_edits edits = { .hidden = &edit, .n_hidden = 1 };
            vector[i % c.cols] = c.x[i] + step;
            double up = loss(s, &edits);
            vector[i % c.cols] = c.x[i] - step;
            check_slope(s, name, (double)c.grad[i], up, loss(s, &edits));
        }
    }
}

/* The factor of a row of values: the product of the row and its gradient. */
static void test_values(subject *s, ses_part part, const char *prefix)
{
    static captured c;
    ses_outputs o;
    char name[48];
    snprintf(name, sizeof name, "%svalues.0", prefix);
    if (s->f->permutation || !backward(s, (ses_output_request){ .qkv = true }, &o) || !read(s, &o, name, &c))
        return;
    int64_t tokens = part == SES_PART_DECODER ? s->b.target_cu_seqlens[s->b.seqs] : s->b.tokens;
    if (c.rows != tokens) return; /* mems precede the tokens of each sequence */
    for (int64_t r = 0; r < c.rows; r += 4) {
        double sum = 0;
        for (int64_t i = r * c.cols; i < (r + 1) * c.cols; i++) sum += (double)c.x[i] * (double)c.grad[i];
        ses_value_edit edit = { part, 0, r, 1 + step };
        double up = loss(s, &(ses_edits){ .values = &edit, .n_values = 1 });
        edit.factor = 1 - step;
        check_slope(s, name, sum, up, loss(s, &(ses_edits){ .values = &edit, .n_values = 1 }));
    }
}

/* A neuron that is set to a value for all tokens: the sum of the gradients of its column. */
static void test_neurons(subject *s, ses_part part, const char *prefix)
{
    static captured c;
    ses_outputs o;
    char name[48];
    if (!strcmp(s->f->type, "mobilebert") || s->f->permutation) return; /* several blocks, two streams */
    snprintf(name, sizeof name, "%sffn_activations.0", prefix);
    ses_neuron_edit edit = { part, 0, 5, 0.25 };
    ses_edits edits = { .neurons = &edit, .n_neurons = 1 };
    if (!backward(s, (ses_output_request){ .ffn_activations = true, .edits = &edits }, &o) ||
        !read(s, &o, name, &c))
        return;
    double sum = 0;
    for (int64_t r = 0; r < c.rows; r++) sum += (double)c.grad[r * c.cols + edit.neuron];
    edit.value = 0.25 + step;
    double up = loss(s, &edits);
    edit.value = 0.25 - step;
    check_slope(s, name, sum, up, loss(s, &edits));
}

static void test_blocks(subject *s)
{
    ses_err e = { 0 };
    ses_outputs o;
    if (strcmp(s->f->type, "mobilebert") || ses_model_part_neurons(s->m, SES_PART_MAIN) == 28) return;
    ses_tape_reset(s->t, &(ses_tape_options){ .record = true });
    ses_output_request r = { .ffn_activations = true, .capture_gradients = true };
    CHECK(!ses_model_forward(s->m, s->t, &s->b, &r, &o, &e));
    CHECK_MSG(strstr(e.msg, "feed-forward blocks a layer"), "%s", e.msg);
}

/* train: parameters have gradients, too; else the captured tensors are the only ones. */
static void test_family(const family *f, ses_device *dev, bool train)
{
    static subject s;
    ses_err e = { 0 };
    ses_json_doc *doc = family_config(f, &e);
    memset(&s, 0, sizeof s);
    s.f = f;
    s.m = doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = train, .seed = 5 }, &e)
              : NULL;
    s.t = s.m ? ses_tape_new(dev, NULL, &e) : NULL;
    if (!CHECK_MSG(s.t, "%s: %s", f->class_name, e.msg)) return;
    s.b = f->permutation ? fixture_permutation(s.mask, s.mems) : fixture_batch(f->per_token);
    if (strstr(f->class_name, "MultipleChoice") || strstr(f->class_name, "DoubleHeads")) s.b.choices = 3;
    if (!strcmp(f->type, "xlnet") || !strcmp(f->type, "transfo-xl") || !ses_model_label_count(s.m))
        s.b.segments = NULL;
    test_embeds(&s, false);
    test_hidden(&s, SES_PART_MAIN, prefix_of(&s));
    test_values(&s, SES_PART_MAIN, prefix_of(&s));
    test_neurons(&s, SES_PART_MAIN, prefix_of(&s));
    if (!f->permutation) test_heads(&s, SES_PART_MAIN, prefix_of(&s));
    test_blocks(&s);
    ses_tape_free(s.t);
    ses_model_free(s.m);
    ses_json_free(doc);
}

static void test_encoder_decoder(const char *type, const char *settings, ses_device *dev)
{
    static const int32_t target_cu[] = { 0, 3, 4, 8 }, labels[] = { 5, 11, 2, 18, 4, 6, 2, 9 };
    static subject s;
    family f = { .type = type, .class_name = "", .per_token = true, .settings = settings };
    char class_name[64];
    ses_err e = { 0 };
    snprintf(class_name, sizeof class_name, "%s",
             !strcmp(type, "t5") ? "T5ForConditionalGeneration" : "BartForConditionalGeneration");
    f.class_name = class_name;
    ses_json_doc *doc = family_config(&f, &e);
    memset(&s, 0, sizeof s);
    s.f = &f;
    s.m = doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = true, .seed = 5 }, &e)
              : NULL;
    s.t = s.m ? ses_tape_new(dev, NULL, &e) : NULL;
    if (!CHECK_MSG(s.t, "%s: %s", class_name, e.msg)) return;
    s.b = (ses_batch){ .seqs = 3,
                       .tokens = 13,
                       .cu_seqlens = fixture_cu,
                       .ids = fixture_ids,
                       .target_cu_seqlens = target_cu,
                       .labels = labels };
    test_embeds(&s, false), test_embeds(&s, true);
    test_hidden(&s, SES_PART_MAIN, "encoder_"), test_hidden(&s, SES_PART_DECODER, "decoder_");
    test_values(&s, SES_PART_MAIN, "encoder_"), test_values(&s, SES_PART_DECODER, "decoder_");
    test_values(&s, SES_PART_CROSS, "cross_");
    test_heads(&s, SES_PART_MAIN, "encoder_"), test_heads(&s, SES_PART_DECODER, "decoder_");
    test_heads(&s, SES_PART_CROSS, "cross_");
    test_neurons(&s, SES_PART_MAIN, "encoder_"), test_neurons(&s, SES_PART_DECODER, "decoder_");
    ses_tape_free(s.t);
    ses_model_free(s.m);
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    if (!CHECK(dev)) return check_report();
    for (size_t i = 0; i < SES_LEN(families); i++) test_family(&families[i], dev, i % 2);
    for (size_t i = 0; i < SES_LEN(heads_of_families); i++) test_family(&heads_of_families[i], dev, i % 2);
    test_encoder_decoder("t5",
                         "\"d_model\": 20, \"d_kv\": 6, \"d_ff\": 28, \"num_layers\": 2, \"num_heads\": 3, "
                         "\"feed_forward_proj\": \"gated-gelu\", \"decoder_start_token_id\": 0",
                         dev);
    test_encoder_decoder(
        "bart",
        "\"d_model\": 20, \"encoder_layers\": 2, \"encoder_attention_heads\": 4, \"encoder_ffn_dim\": 28, "
        "\"decoder_layers\": 2, \"decoder_attention_heads\": 2, \"decoder_ffn_dim\": 24, \"init_std\": 0.3, "
        "\"scale_embedding\": true, \"decoder_start_token_id\": 2",
        dev);
    ses_device_free(dev);
    return check_report();
}
