/* The original Transformer against the equations of "Attention is all you need" (Vaswani et al. 2017) as
 * plain loops in double: logits and loss; its gradient against finite differences. */
#include "base/rng.h"
#include "check.h"
#include "sesame/model.h"

#include <math.h>

enum { V = 23, C = 12, H = 3, D = C / H, F = 10, L = 2, LONG = 8, SEQS = 2 };

static const char config[] =
    "{\"architectures\": [\"TransformerForConditionalGeneration\"], \"model_type\": \"transformer\", "
    "\"vocab_size\": 23, \"d_model\": 12, \"encoder_layers\": 2, \"decoder_layers\": 2, \"encoder_ffn_dim\": "
    "10, "
    "\"encoder_attention_heads\": 3, \"decoder_attention_heads\": 3, \"decoder_ffn_dim\": 10, \"dropout\": "
    "0.0, "
    "\"max_position_embeddings\": 16, \"pad_token_id\": 0, \"decoder_start_token_id\": 1, \"init_std\": 0.4}";

/* ---- the equations ---- */

typedef double row[C];

/* A parameter: "model.encoder.layers.1.fc1.weight". */
static const double *par(const ses_model *m, const char *stack, int layer, const char *tail)
{
    char name[96];
    snprintf(name, sizeof name, "model.%s.layers.%d.%s", stack, layer, tail);
    int64_t p = ses_model_find_tensor(m, name);
    if (!CHECK_MSG(p >= 0, "no %s", name)) exit(1);
    return (const double *)ses_store_at(ses_model_store(m), (size_t)p)->tensor->f;
}

static const double *table(const ses_model *m)
{
    int64_t p = ses_model_find_tensor(m, "model.shared.weight");
    if (!CHECK(p >= 0)) exit(1);
    return (const double *)ses_store_at(ses_model_store(m), (size_t)p)->tensor->f;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* x = LayerNorm(x + sublayer) */
static void add_norm(const ses_model *m, const char *stack, int layer, const char *what, row *x,
                     row *sublayer, int n)
{
    char gain[64], bias[64];
    snprintf(gain, sizeof gain, "%s.weight", what);
    snprintf(bias, sizeof bias, "%s.bias", what);
    const double *g = par(m, stack, layer, gain), *b = par(m, stack, layer, bias);
    for (int t = 0; t < n; t++) {
        double mean = 0, var = 0;
        for (int c = 0; c < C; c++) mean += (x[t][c] += sublayer[t][c]) / C;
        for (int c = 0; c < C; c++) var += (x[t][c] - mean) * (x[t][c] - mean) / C;
        for (int c = 0; c < C; c++) x[t][c] = (x[t][c] - mean) / sqrt(var + 1e-5) * g[c] + b[c];
    }
}

/* PE(pos, 2i) = sin(pos / 10000^(2i / C)), PE(pos, 2i + 1) = cos(the same) */
static void embed(const ses_model *m, const int32_t *ids, int n, row *x)
{
    for (int t = 0; t < n; t++)
        for (int c = 0; c < C; c++) {
            double angle = t / pow(10000, (c - c % 2) / (double)C);
            x[t][c] = sqrt(C) * table(m)[ids[t] * C + c] + (c % 2 ? cos(angle) : sin(angle));
        }
}

/* MultiHead(Q, K, V); with `causal` token t attends to keys 0 .. t. */
static void attend(const ses_model *m, const char *stack, int layer, const char *what, row *q, int n, row *k,
                   int nk, bool causal, row *out)
{
    static const char *const part[] = { "q_proj.weight", "k_proj.weight", "v_proj.weight",
                                        "out_proj.weight" };
    const double *w[4];
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", what, part[i]);
        w[i] = par(m, stack, layer, name);
    }
    for (int t = 0; t < n; t++) {
        row mixed = { 0 };
        for (int h = 0; h < H; h++) {
            double p[LONG], sum = 0;
            int seen = causal ? t + 1 : nk;
            for (int j = 0; j < seen; j++) {
                double s = 0;
                for (int d = h * D; d < (h + 1) * D; d++)
                    s += dot(w[0] + d * C, q[t], C) * dot(w[1] + d * C, k[j], C);
                sum += p[j] = exp(s / sqrt(D));
            }
            for (int j = 0; j < seen; j++)
                for (int d = h * D; d < (h + 1) * D; d++) mixed[d] += p[j] / sum * dot(w[2] + d * C, k[j], C);
        }
        for (int c = 0; c < C; c++) out[t][c] = dot(w[3] + c * C, mixed, C);
    }
}

/* FFN(x) = max(0, x W1 + b1) W2 + b2 */
static void feed_forward(const ses_model *m, const char *stack, int layer, row *x, int n, row *out)
{
    const double *up = par(m, stack, layer, "fc1.weight"), *up_bias = par(m, stack, layer, "fc1.bias");
    const double *down = par(m, stack, layer, "fc2.weight"), *down_bias = par(m, stack, layer, "fc2.bias");
    for (int t = 0; t < n; t++) {
        double h[F];
        for (int f = 0; f < F; f++) h[f] = fmax(0, dot(up + f * C, x[t], C) + up_bias[f]);
        for (int c = 0; c < C; c++) out[t][c] = dot(down + c * F, h, F) + down_bias[c];
    }
}

static void encode(const ses_model *m, const int32_t *ids, int n, row *x)
{
    row y[LONG];
    embed(m, ids, n, x);
    for (int l = 0; l < L; l++) {
        attend(m, "encoder", l, "self_attn", x, n, x, n, false, y);
        add_norm(m, "encoder", l, "self_attn_layer_norm", x, y, n);
        feed_forward(m, "encoder", l, x, n, y);
        add_norm(m, "encoder", l, "final_layer_norm", x, y, n);
    }
}

static void decode(const ses_model *m, const int32_t *ids, int n, row *memory, int len, double (*logits)[V])
{
    row x[LONG], y[LONG];
    embed(m, ids, n, x);
    for (int l = 0; l < L; l++) {
        attend(m, "decoder", l, "self_attn", x, n, x, n, true, y);
        add_norm(m, "decoder", l, "self_attn_layer_norm", x, y, n);
        attend(m, "decoder", l, "encoder_attn", x, n, memory, len, false, y);
        add_norm(m, "decoder", l, "encoder_attn_layer_norm", x, y, n);
        feed_forward(m, "decoder", l, x, n, y);
        add_norm(m, "decoder", l, "final_layer_norm", x, y, n);
    }
    for (int t = 0; t < n; t++)
        for (int v = 0; v < V; v++) logits[t][v] = dot(table(m) + v * C, x[t], C);
}

/* ---- comparison ---- */

static const int32_t cu[] = { 0, 5, 8 }, ids[] = { 3, 22, 9, 4, 2, 7, 7, 2 };
static const int32_t target_cu[] = { 0, 3, 7 }, labels[] = { 5, 11, 2, 18, 4, 6, 2 };
static const int32_t shifted[] = { 1, 5, 11, 1, 18, 4, 6 }; /* after the start token */
static const ses_batch batch = {
    .seqs = SEQS, .tokens = 8, .cu_seqlens = cu, .ids = ids, .target_cu_seqlens = target_cu, .labels = labels
};

static double forward(const ses_model *m, ses_tape *t, ses_outputs *o, bool backward)
{
    ses_err e = { 0 };
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    if (!CHECK_MSG(ses_model_forward(m, t, &batch, &(ses_output_request){ .logits = true }, o, &e), "%s",
                   e.msg))
        exit(1);
    if (backward) ses_backward(t, o->loss);
    return (double)o->loss->f[0];
}

static void test_forward(const ses_model *m, ses_tape *t)
{
    ses_outputs o = { 0 };
    double loss = forward(m, t, &o, false), want_loss = 0;
    const ses_output *logits = ses_outputs_find(&o, "logits");
    if (!CHECK(logits)) return;
    for (int s = 0; s < SEQS; s++) {
        row memory[LONG];
        double want[LONG][V], worst = 0;
        int len = cu[s + 1] - cu[s], at = target_cu[s], n = target_cu[s + 1] - at;
        encode(m, ids + cu[s], len, memory);
        decode(m, shifted + at, n, memory, len, want);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int v = 0; v < V; v++) {
                worst = fmax(worst, fabs(want[i][v] - (double)logits->tensor->f[(at + i) * V + v]));
                sum += exp(want[i][v]);
            }
            want_loss += (log(sum) - want[i][labels[at + i]]) / 7;
        }
        CHECK_MSG(worst < 1e-10, "logits are off by %g", worst);
    }
    CHECK_MSG(fabs(loss - want_loss) < 1e-10, "loss %.15g, expected %.15g", loss, want_loss);
}

static void test_gradient(const ses_model *m, ses_tape *t)
{
    ses_store *s = ses_model_store(m);
    ses_outputs o = { 0 };
    double given = 0, seen = 0, h = 1e-6;
    forward(m, t, &o, true);
    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < ses_store_count(s); i++) {
            const ses_param *p = ses_store_at(s, i);
            for (int64_t j = 0; p->role == SES_PARAM_TRAINED && j < ses_count(p->tensor); j++) {
                double way = ses_rand_normal((ses_rng_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j);
                if (!step) given += (double)p->tensor->grad[j] * way;
                p->tensor->f[j] += (ses_real)((step ? -2 : 1) * h * way);
            }
        }
        seen += (step ? -1 : 1) * forward(m, t, &o, false) / (2 * h);
    }
    CHECK_MSG(fabs(seen - given) <= 1e-6 * fmax(1, fabs(seen)), "%.12g, by differences %.12g", given, seen);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_json_doc *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *m =
        doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = true, .seed = 3 }, &e)
            : NULL;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    if (CHECK_MSG(m && t, "%s", e.msg)) {
        test_forward(m, t);
        test_gradient(m, t);
    }
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
    return check_report();
}
