/* Heads on chosen layers: logits against the hidden states combined by hand; lists of layers. */
#include "base/alloc.h"
#include "base/opt_table.h"
#include "check.h"
#include "model/model_desc.h"
#include "model_fixture.h"

#include <math.h>

enum { TOKENS = 13, WIDTH = 20, LABELS = 3 };

static ses_real state[3][TOKENS * WIDTH], got[TOKENS * LABELS];
static const double mix_weight[3] = { 0.5, -0.75, 2 }, mix_gain = 1.5;

static bool read(ses_tape *t, const ses_outputs *out, const char *name, ses_real *to)
{
    const ses_output *o = ses_outputs_find(out, name);
    return CHECK(o) && ses_tape_read(t, o->tensor, to);
}

/* Element i of the combined vector of token t. */
static double combined(const int64_t *layer, size_t n, const char *how, int t, int i)
{
    if (!strcmp(how, "concat")) return (double)state[layer[i / WIDTH]][t * WIDTH + i % WIDTH];
    double sum = 0, all = 0;
    if (!strcmp(how, "mix")) {
        for (size_t k = 0; k < n; k++) all += exp(mix_weight[k]);
        for (size_t k = 0; k < n; k++)
            sum += mix_gain * exp(mix_weight[k]) / all * (double)state[layer[k]][t * WIDTH + i];
        return sum;
    }
    for (size_t k = 0; k < n; k++) sum += (double)state[layer[k]][t * WIDTH + i];
    return strcmp(how, "mean") ? sum : sum / (double)n;
}

/* The largest difference between the logits and a product by hand. */
static double compare(const ses_model *m, const int64_t *layer, size_t n, const char *how)
{
    const ses_dense *out = &m->head[0].out;
    int64_t width = ses_cols(out->w);
    double worst = 0;
    for (int t = 0; t < TOKENS; t++)
        for (int k = 0; k < LABELS; k++) {
            double y = (double)out->b->f[k];
            for (int i = 0; i < width; i++)
                y += combined(layer, n, how, t, i) * (double)out->w->f[k * width + i];
            worst = fmax(worst, fabs(y - (double)got[t * LABELS + k]));
        }
    return worst;
}

static void check_choice(ses_device *dev, ses_tape *t, const char *text, size_t n, const char *how)
{
    ses_err e = { 0 };
    ses_json_doc *base = fixture_config("BertForTokenClassification", &e);
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    c.head = strcmp(how, "concat") ? NULL : "linear";
    c.combine = how;
    CHECK(ses_int_ranges_parse(text, c.layers, SES_LEN(c.layers), &c.n_layers, &e) && c.n_layers == n);
    ses_json_doc *config = ses_model_config_patch(ses_json_root(base), &c, &e);
    ses_model *m = config ? ses_model_new(ses_json_root(config), dev, NULL, &e) : NULL;
    ses_batch b = fixture_batch(true);
    ses_outputs out;
    ses_tape_reset(t, NULL);
    CHECK(!m || (m->scalar_mix.weight != NULL) == !strcmp(how, "mix"));
    for (size_t i = 0; m && m->scalar_mix.weight && i < n; i++)
        m->scalar_mix.weight->f[i] = (ses_real)mix_weight[i];
    if (m && m->scalar_mix.gain) m->scalar_mix.gain->f[0] = (ses_real)mix_gain;
    if (CHECK_MSG(m, "%s", e.msg) &&
        CHECK(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true, .hidden_states = true },
                                &out, &e)) &&
        read(t, &out, "hidden_states.0", state[0]) && read(t, &out, "hidden_states.1", state[1]) &&
        read(t, &out, "hidden_states.2", state[2]) && read(t, &out, "logits", got)) {
        for (size_t i = 0; i < n; i++)
            if (c.layers[i] < 0) c.layers[i] += 3;
        double worst = compare(m, c.layers, n, how);
        CHECK_MSG(worst < 1e-5, "%s %s: %g", how, text, worst);
    }
    ses_model_free(m);
    ses_json_free(config), ses_json_free(base);
}

static void check_refused(ses_device *dev, int64_t layer, const char *how, const char *message)
{
    ses_err e = { 0 };
    ses_json_doc *base = fixture_config("BertForTokenClassification", &e);
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    c.layers[0] = layer, c.n_layers = 2, c.combine = how;
    ses_json_doc *config = ses_model_config_patch(ses_json_root(base), &c, &e);
    ses_model *m = ses_model_new(ses_json_root(config), dev, NULL, &e);
    CHECK(!m && strstr(e.msg, message));
    ses_model_free(m);
    ses_json_free(config), ses_json_free(base);
}

static void check_ranges(void)
{
    static const char *const bad[] = { "",
                                       "x",
                                       "1,",
                                       ",1",
                                       "1-",
                                       "3-1",
                                       "1 2",
                                       "1--2",
                                       "0-99",
                                       "1-2-3",
                                       "-1-2",
                                       "99999999999",
                                       "1,2,3,4,5,6,7,8,9" };
    int64_t x[8];
    size_t n;
    ses_err e = { 0 };
    CHECK(ses_int_ranges_parse("4,9-12,-1", x, 8, &n, &e) && n == 6 && x[0] == 4 && x[1] == 9 && x[4] == 12 &&
          x[5] == -1);
    CHECK(ses_int_ranges_parse("0-7", x, 8, &n, &e) && n == 8 && x[7] == 7);
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        e = (ses_err){ 0 };
        CHECK_MSG(!ses_int_ranges_parse(bad[i], x, 8, &n, &e) && e.code == SES_EUSAGE, "\"%s\"", bad[i]);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    check_ranges();
    check_choice(dev, t, "0", 1, "mean");
    check_choice(dev, t, "-1", 1, "concat");
    check_choice(dev, t, "0-2", 3, "mean");
    check_choice(dev, t, "0,-1", 2, "sum");
    check_choice(dev, t, "2,0,1", 3, "concat");
    check_choice(dev, t, "2,0,1", 3, "mix");
    check_choice(dev, t, "-2,-1", 2, "mix");
    check_choice(dev, t, "1", 1, "mix");
    check_refused(dev, 3, "sum", "layer 3: the model has layers 0 to 2, or -1 to -3");
    check_refused(dev, 1, "concat", "concatenated layers need a head of their width");
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
