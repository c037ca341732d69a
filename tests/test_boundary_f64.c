/* SpanBERT's span boundary head against its equations in plain loops: predicted tokens, scores, loss. (Its
 * gradient: test_model_f64.) */
#include "check.h"
#include "sesame/model.h"

#include <math.h>

enum { C = 12, P = 5, MAX_POSITIONS = 3, V = 23, T = 21 };

static const int32_t cu[] = { 0, 9, 10, T };
static const int32_t ids[] = { 1, 4, 5, 6, 7, 8, 9, 10, 2, 3, 1, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2 };
/* spans: 2..3 and 5; a single token; 11..15 (longer than the position table) and 20, which has no right
 * neighbor */
static const int32_t labels[] = { -100, -100, 5, 7, -100, 9,    -100, -100, -100, 4, -100,
                                  3,    6,    8, 9, 10,   -100, -100, -100, -100, 21 };
static const struct {
    int left, right, position, label;
} predicted[] = { { 1, 4, 0, 5 },   { 1, 4, 1, 7 },   { 4, 6, 0, 9 },
                  { 10, 16, 0, 3 }, { 10, 16, 1, 6 }, { 10, 16, 2, 8 } };

static const ses_real *param(const ses_model *m, const char *name)
{
    const ses_param *p = ses_store_find(ses_model_store(m), name);
    CHECK_MSG(p, "%s", name);
    return p ? p->tensor->f : NULL;
}

static double erf_gelu(double x) { return x / 2 * (1 + erf(x / sqrt(2.0))); }

/* out = norm(gelu(W in + b)) */
static void layer(const ses_model *m, int number, const double *in, int n_in, double *out)
{
    char name[64];
    const ses_real *part[4];
    double mean = 0, var = 0;
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "boundary.%s%d.%s", i < 2 ? "linear" : "layer_norm", number,
                 i % 2 ? "bias" : "weight");
        part[i] = param(m, name);
    }
    for (int o = 0; o < C; o++) {
        double sum = part[1][o];
        for (int i = 0; i < n_in; i++) sum += part[0][o * n_in + i] * in[i];
        out[o] = erf_gelu(sum);
        mean += out[o] / C;
    }
    for (int o = 0; o < C; o++) var += (out[o] - mean) * (out[o] - mean) / C;
    for (int o = 0; o < C; o++) out[o] = (out[o] - mean) / sqrt(var + 1e-12) * part[2][o] + part[3][o];
}

/* Scores of the k-th predicted token, from the last hidden states x. */
static void scores(const ses_model *m, const ses_real *x, size_t k, double *y)
{
    double in[2 * C + P], h[C], g[C];
    const ses_real *position = param(m, "boundary.position_embeddings.weight");
    const ses_real *token = param(m, "embed.token"), *bias = param(m, "boundary.bias");
    for (int i = 0; i < C; i++)
        in[i] = x[predicted[k].left * C + i], in[C + i] = x[predicted[k].right * C + i];
    for (int i = 0; i < P; i++) in[2 * C + i] = position[predicted[k].position * P + i];
    layer(m, 1, in, 2 * C + P, h);
    layer(m, 2, h, C, g);
    for (int v = 0; v < V; v++) {
        y[v] = bias[v];
        for (int i = 0; i < C; i++) y[v] += token[v * C + i] * g[i];
    }
}

static double cross_entropy(const double *y, int label)
{
    double sum = 0;
    for (int v = 0; v < V; v++) sum += exp(y[v]);
    return log(sum) - y[label];
}

static const ses_tensor *output(const ses_outputs *o, const char *name)
{
    const ses_output *found = ses_outputs_find(o, name);
    return found ? found->tensor : NULL;
}

/* The loss of both heads minus the masked LM loss, which is computed here from its scores. */
static double boundary_loss(const ses_outputs *o)
{
    const ses_tensor *x = output(o, "prediction_logits");
    double sum = 0, y[V];
    int n = 0;
    for (int t = 0; t < T; t++) {
        if (labels[t] < 0) continue;
        for (int v = 0; v < V; v++) y[v] = x->f[t * V + v];
        sum += cross_entropy(y, labels[t]);
        n++;
    }
    return o->loss->f[0] - sum / n;
}

static void test_equations(ses_device *dev, ses_tape *t)
{
    static const char config[] =
        "{\"architectures\": [\"SpanBertForPreTraining\"], \"model_type\": \"bert\", \"vocab_size\": 23, "
        "\"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, \"intermediate_size\": "
        "16, "
        "\"max_position_embeddings\": 16, \"initializer_range\": 0.4, \"span_boundary_places\": 3, "
        "\"span_boundary_size\": 5}";
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_json_doc *doc = ses_json_parse(config, sizeof config - 1, &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 7 }, &e) : NULL;
    ses_batch b = { .seqs = 3, .tokens = T, .cu_seqlens = cu, .ids = ids, .labels = labels };
    ses_output_request want = { .logits = true, .hidden_states = true };
    if (!CHECK_MSG(m && ses_model_forward(m, t, &b, &want, &o, &e), "%s", e.msg)) return;
    const ses_tensor *x = output(&o, "hidden_states.2"), *got = output(&o, "span_boundary_logits");
    if (!CHECK(x && got && ses_rows(got) == SES_LEN(predicted) && ses_cols(got) == V)) return;
    double loss = 0;
    for (size_t k = 0; k < SES_LEN(predicted); k++) {
        double y[V];
        scores(m, x->f, k, y);
        for (int v = 0; v < V; v++)
            CHECK_MSG(fabs(y[v] - got->f[(int)k * V + v]) < 1e-12,
                      "score %d of token %d: %.15g, by hand %.15g", v, (int)k, got->f[(int)k * V + v], y[v]);
        loss += cross_entropy(y, predicted[k].label) / (double)SES_LEN(predicted);
    }
    double seen = boundary_loss(&o);
    CHECK_MSG(fabs(loss - seen) < 1e-12, "loss %.15g, by hand %.15g", seen, loss);
    b.labels = (const int32_t[T]){ -100, -100, -100, -100, -100, -100, -100, -100, -100, 4, -100,
                                   -100, -100, -100, -100, -100, -100, -100, -100, -100, 21 };
    ses_tape_reset(t, NULL);
    CHECK_MSG(ses_model_forward(m, t, &b, &want, &o, &e), "%s", e.msg);
    CHECK(!output(&o, "span_boundary_logits") && o.loss); /* no complete span: masked LM only */
    ses_model_free(m);
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    test_equations(dev, t);
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
