/* Attention views: weights of transformers (eager attention), rollouts of numpy and flows of networkx for
 * BERT, GPT-2, T5 and BART (tests/fixtures/attention.py); words, hidden special tokens, queries and keys;
 * statistics and distances of heads. */
#include "analysis/heads/attention_corpus.h"
#include "analysis/heads/head_distance.h"
#include "analysis/view/attention_view.h"
#include "base/alloc.h"
#include "check.h"

#include <math.h>

typedef struct opened {
    ses_device *dev;
    ses_model *model;
    ses_tokenizer *tokenizer;
    char dir[96];
    ses_analysis_call call;
} opened;

static bool open_model(opened *o, const char *name)
{
    ses_err e = { 0 };
    *o = (opened){ 0 };
    snprintf(o->dir, sizeof o->dir, "tests/fixtures/attention/%s", name);
    o->dev = ses_device_open("cpu", NULL, &e);
    o->model = o->dev ? ses_model_open(o->dir, o->dev, NULL, &e) : NULL;
    o->tokenizer = o->model ? ses_tokenizer_open(o->dir, &e) : NULL;
    o->call = (ses_analysis_call){
        .dev = o->dev, .model = o->model, .model_dir = o->dir, .tokenizer = o->tokenizer
    };
    return CHECK_MSG(o->tokenizer != NULL, "%s", e.msg) &&
           CHECK(ses_layer_set_parse(&o->call.layers, NULL, ses_model_layer_count(o->model), &e));
}

static void close_model(opened *o)
{
    ses_tokenizer_free(o->tokenizer);
    ses_model_free(o->model);
    ses_device_free(o->dev);
}

static bool make(ses_attention_view *v, opened *o, const ses_view_request *q)
{
    ses_err e = { 0 };
    *v = (ses_attention_view){ 0 };
    return CHECK_MSG(ses_attention_view_make(v, &o->call, q, &e), "%s", e.msg);
}

/* The numbers of nested arrays, in order. */
static void collect(const ses_json *x, double *out, int64_t *n, int64_t max)
{
    if (ses_json_type_of(x) != SES_JSON_ARRAY) {
        if (*n < max && !ses_json_real(x, &out[*n])) out[*n] = NAN;
        ++*n;
        return;
    }
    for (size_t i = 0; i < ses_json_len(x); i++) collect(ses_json_at(x, i), out, n, max);
}

/* Largest difference between n numbers and the n numbers of json; NAN: json has more or fewer. */
static double difference(const ses_json *json, const float *x, const double *xx, int64_t n)
{
    double *want = ses_alloc_array((size_t)n, sizeof *want, NULL), most = 0;
    int64_t count = 0;
    if (!want) return NAN;
    collect(json, want, &count, n);
    for (int64_t i = 0; i < n && count == n; i++)
        most = fmax(most, fabs((x ? (double)x[i] : xx[i]) - want[i]));
    ses_free(want);
    return count == n ? most : NAN;
}

static void compare_family(const char *model, const ses_view_family *f, const ses_json *want)
{
    const ses_json *weights = ses_json_get(want, "weights"), *rollout = ses_json_get(want, "rollout");
    int64_t pairs = f->rows * f->cols;
    CHECK((int64_t)ses_json_len(weights) == f->n_layers);
    for (int64_t i = 0; i < f->n_layers; i++) {
        const ses_view_layer *l = &f->layer[i];
        double d = difference(ses_json_at(weights, (size_t)i), l->weight, NULL, l->heads * pairs),
               r = difference(ses_json_at(rollout, (size_t)i), NULL, l->rollout, pairs);
        CHECK_MSG(d <= 1e-5, "%s %s layer %d: weights differ by %g", model, f->id, (int)i + 1, d);
        CHECK_MSG(r <= 1e-5, "%s %s layer %d: rollout differs by %g", model, f->id, (int)i + 1, r);
    }
    double d = difference(ses_json_get(want, "flow"), NULL, f->flow, pairs);
    CHECK_MSG(d <= 1e-5, "%s %s: flow differs by %g", model, f->id, d);
}

/* softmax(q.k*scale + bias) is the weight. */
static void check_neurons(const ses_view_family *f)
{
    for (int64_t i = 0; i < f->n_layers; i++) {
        const ses_view_layer *l = &f->layer[i];
        int64_t width = l->heads * f->dim;
        double worst = 0;
        if (!CHECK(l->q && l->k && l->scale > 0)) continue;
        for (int64_t h = 0; h < l->heads; h++)
            for (int64_t r = 0; r < f->rows; r++) {
                double sum = 0, p[16] = { 0 };
                const float *w = l->weight + (h * f->rows + r) * f->cols;
                for (int64_t c = 0; c < f->cols && c < 16; c++) {
                    double score = 0;
                    for (int64_t d = 0; d < f->dim; d++)
                        score += (double)l->q[r * width + h * f->dim + d] *
                                 (double)l->k[c * width + h * f->dim + d];
                    score =
                        score * l->scale + (l->bias ? (double)l->bias[(h * f->rows + r) * f->cols + c] : 0);
                    p[c] = w[c] > 0 ? exp(score) : 0;
                    sum += p[c];
                }
                for (int64_t c = 0; c < f->cols && c < 16; c++)
                    worst = fmax(worst, fabs(p[c] / sum - (double)w[c]));
            }
        CHECK_MSG(worst < 1e-5, "%s layer %d: softmax differs by %g", f->id, (int)i + 1, worst);
    }
}

static void compare_model(const char *name, const ses_json *want, const char *text, const char *target)
{
    opened o;
    ses_attention_view v;
    ses_err e = { 0 };
    if (!open_model(&o, name)) return;
    bool two = ses_json_len(want) > 1;
    ses_view_request q = { .text = text, .target = two ? target : NULL, .neurons = true };
    if (make(&v, &o, &q) && CHECK(ses_view_rollout(&v, o.dev, &e)) && CHECK(ses_view_flow(&v, &o.call, &e))) {
        CHECK(v.n_families == (int)ses_json_len(want));
        for (int i = 0; i < v.n_families; i++) {
            compare_family(name, &v.family[i], ses_json_get(want, v.family[i].id));
            check_neurons(&v.family[i]);
        }
    }
    ses_attention_view_free(&v);
    q.target = NULL;
    if (make(&v, &o, &q)) CHECK(v.n_families == 1); /* the encoder alone */
    ses_attention_view_free(&v);
    close_model(&o);
}

static void against_transformers(void)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_load("tests/fixtures/attention/expected.json", 1 << 20, &e);
    const ses_json *root = ses_json_root(doc), *models = ses_json_get(root, "models");
    CHECK(ses_json_len(models) == 4);
    for (size_t i = 0; i < ses_json_len(models); i++)
        compare_model(ses_json_key(models, i, NULL), ses_json_at(models, i),
                      ses_json_string(ses_json_get(root, "text"), NULL),
                      ses_json_string(ses_json_get(root, "target"), NULL));
    ses_json_free(doc);
}

/* ---- words and special tokens ---- */

static void by_word(void)
{
    opened o;
    ses_attention_view token, word;
    if (!open_model(&o, "bert")) return;
    const char *text = "the cat , unhappiness";
    bool ok = make(&token, &o, &(ses_view_request){ .text = text });
    ok = make(&word, &o, &(ses_view_request){ .text = text, .words = true, .hide_special = true }) && ok;
    const ses_view_side *s = &word.source;
    if (ok && CHECK(s->tokens == 8 && s->units.n == 4)) {
        CHECK_STR(s->unit[0], "the");
        CHECK_STR(s->unit[3], "unhappiness");
        CHECK_STR(token.source.unit[5], "##happi");
        CHECK(s->word[0] == -1 && s->word[6] == 3 && token.source.unit_special[0] && s->unit_special[0] == 0);
        const float *a = token.family[0].layer[0].weight, *b = word.family[0].layer[0].weight;
        double row[4] = { 0 }, sum = 0; /* the last word: tokens 4, 5, 6 */
        for (int i = 4; i < 7; i++)
            for (int j = 1; j < 7; j++) row[j < 4 ? j - 1 : 3] += (double)a[i * 8 + j];
        for (int j = 0; j < 4; j++) sum += row[j];
        for (int j = 0; j < 4; j++) CHECK(fabs(row[j] / sum - (double)b[3 * 4 + j]) < 1e-6);
    }
    ses_attention_view_free(&token);
    ses_attention_view_free(&word);
    close_model(&o);
}

static void refused(opened *o, const ses_view_request *q, const char *why)
{
    ses_attention_view v = { 0 };
    ses_err e = { 0 };
    CHECK(!ses_attention_view_make(&v, &o->call, q, &e));
    CHECK_MSG(strstr(e.msg, why) != NULL, "\"%s\" lacks \"%s\"", e.msg, why);
    ses_attention_view_free(&v);
}

static void bad_input(void)
{
    opened o;
    ses_attention_view v;
    if (!open_model(&o, "bert")) return;
    refused(&o, &(ses_view_request){ .text = " \n" }, "the text is empty");
    refused(&o, &(ses_view_request){ .text = "the cat", .target = "a dog" }, "no decoder");
    refused(&o, &(ses_view_request){ .text = "the cat", .generate = true }, "does not generate");
    refused(&o, &(ses_view_request){ .text = "the", .target = "a", .generate = true }, "exclude each other");
    char longer[241] = "";
    for (int i = 0; i < 60; i++) memcpy(longer + 4 * i, "cat ", 5);
    if (make(&v, &o, &(ses_view_request){ .text = longer }))
        CHECK(v.source.tokens == 32 && v.truncated == 30);
    ses_attention_view_free(&v);
    if (make(&v, &o, &(ses_view_request){ .text = longer, .max_tokens = 5 })) CHECK(v.source.tokens == 5);
    ses_attention_view_free(&v);
    close_model(&o);
    if (!open_model(&o, "bart")) return;
    refused(&o, &(ses_view_request){ .text = "the cat", .target = "" }, "--target is empty");
    if (make(&v, &o, &(ses_view_request){ .text = "the cat", .generate = true, .max_new_tokens = 4 })) {
        CHECK(v.n_families == 3 && v.target.tokens >= 2 && v.generated && v.target.special[0]);
        CHECK(v.target.id[0] == 3); /* the decoder's start token */
    }
    ses_attention_view_free(&v);
    close_model(&o);
}

/* ---- heads ---- */

static void statistics(void)
{
    static const float a[16] = { 1, 0, 0, 0, 0.1f, 0.2f, 0.7f, 0, 0.1f, 0.1f, 0.2f, 0.6f, 0, 0, 0, 1 };
    static const uint8_t kind[4] = { SES_TOKEN_SPECIAL, 0, SES_TOKEN_PUNCTUATION,
                                     SES_TOKEN_SPECIAL | SES_TOKEN_SEPARATOR };
    ses_head_stats s = { 0 };
    ses_head_stats_add(&s, a, 4, 4, kind, kind, true, false);
    CHECK(s.rows == 2);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_SELF) - 0.2) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_NEXT) - 0.65) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_PREVIOUS) - 0.1) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_FIRST) - 0.1) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_SEPARATOR) - 0.3) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_PUNCTUATION) - 0.45) < 1e-7);
    CHECK(fabs(ses_head_stats_mean(&s, SES_ATTENDED_SPECIAL) - 0.4) < 1e-7);
    double h1 = -(0.1 * log(0.1) + 0.2 * log(0.2) + 0.7 * log(0.7)),
           h2 = -(2 * 0.1 * log(0.1) + 0.2 * log(0.2) + 0.6 * log(0.6));
    CHECK(fabs(ses_head_stats_entropy(&s) - (h1 + h2) / 2) < 1e-6);
    CHECK(fabs(s.max_entropy - 2 * log(4)) < 1e-12);
    CHECK_STR(ses_head_stats_label(&s), "next");
    static const float even[4] = { 0.5f, 0.5f, 0.5f, 0.5f };
    static const uint8_t plain[2] = { 0 };
    s = (ses_head_stats){ 0 };
    ses_head_stats_add(&s, even, 2, 2, plain, plain, true, false);
    CHECK_STR(ses_head_stats_label(&s), "broad");
}

static void distances(void)
{
    static const float a[4] = { 1, 0, 0, 1 }, b[4] = { 0, 1, 1, 0 }, c[4] = { 0.5f, 0.5f, 0.5f, 0.5f };
    static const uint8_t kind[2] = { 0 };
    float all[12];
    int64_t heads = 3;
    const float *weight = all;
    memcpy(all, a, sizeof a), memcpy(all + 4, b, sizeof b), memcpy(all + 8, c, sizeof c);
    ses_attention_text t = {
        .n = 2, .kind = kind, .keys = 2, .layers = 1, .heads = &heads, .weight = &weight
    };
    ses_err e = { 0 };
    ses_math m;
    ses_head_distance d;
    if (!CHECK(ses_math_open(&m, 2, &e) && ses_head_distance_init(&d, 3, &e))) return;
    CHECK(ses_head_distance_add(&d, &t, &m, &e) && d.rows == 2);
    double p = 0.9995, q = 0.0005, ab = log(2) + p * log(p) + q * log(q),
           ac = -(0.5 * (p + 0.5)) * log(0.5 * (p + 0.5)) - (0.5 * (q + 0.5)) * log(0.5 * (q + 0.5)) +
                0.5 * (p * log(p) + q * log(q)) + 0.5 * log(0.5);
    CHECK(fabs(ses_head_distance_at(&d, 0, 1) - ab) < 1e-9 &&
          fabs(ses_head_distance_at(&d, 1, 2) - ac) < 1e-9);
    CHECK(ses_head_distance_at(&d, 0, 0) == 0 &&
          ses_head_distance_at(&d, 2, 0) == ses_head_distance_at(&d, 0, 2));
    /* points on a line keep their distances */
    static const double line[9] = { 0, 1, 3, 1, 0, 2, 3, 2, 0 };
    double x[3], y[3];
    CHECK(ses_classical_mds(&m, line, 3, x, y, &e));
    CHECK(fabs(fabs(x[0] - x[2]) - 3) < 1e-9 && fabs(fabs(x[0] - x[1]) - 1) < 1e-9 && fabs(y[1]) < 1e-6);
    ses_head_distance_free(&d);
    ses_math_close(&m);
}

/* ---- a corpus: the same weights as views of each text ---- */

typedef struct corpus_check {
    opened *o;
    const char *const *text, *const *target;
    const char *family;
    int seen;
} corpus_check;

static bool compare_text(void *ctx, const ses_attention_text *t, ses_err *e)
{
    corpus_check *c = ctx;
    ses_attention_view v;
    (void)e;
    ses_view_request q = { .text = c->text[t->index], .target = c->target[t->index] };
    if (!make(&v, c->o, &q)) return true;
    for (int i = 0; i < v.n_families; i++) {
        const ses_view_family *f = &v.family[i];
        if (strcmp(f->id, c->family) != 0) continue;
        CHECK(t->n == f->rows && t->keys == f->cols && t->layers == f->n_layers);
        CHECK(t->square == (f->from == f->to) && t->causal == f->causal);
        for (int64_t l = 0; l < t->layers && t->n == f->rows; l++)
            for (int64_t k = 0; k < t->heads[l] * t->n * t->keys; k++)
                CHECK(fabsf(t->weight[l][k] - f->layer[l].weight[k]) < 1e-6f);
        c->seen++;
    }
    ses_attention_view_free(&v);
    return true;
}

static void corpora(void)
{
    static const char *const text[] = { "the cat sat on the mat .", "a dog" }, *const target[] = {
        "a dog saw it .", "the cat"
    };
    static const char *const family[] = { "encoder", "decoder", "cross" }, *const model[] = { "bart", "t5" };
    ses_input in[2], out[2];
    opened o;
    for (int i = 0; i < 2; i++) {
        in[i] = (ses_input){ .text = { text[i], strlen(text[i]) } };
        out[i] = (ses_input){ .text = { target[i], strlen(target[i]) } };
    }
    for (size_t m = 0; m < SES_LEN(model); m++) {
        if (!open_model(&o, model[m])) continue;
        for (int part = 0; part < 3; part++) {
            ses_err e = { 0 };
            corpus_check c = { &o, text, target, family[part], 0 };
            ses_attention_corpus_options co = { .model_dir = o.dir, .part = (ses_part)part, .target = out };
            CHECK_MSG(ses_attention_corpus_run(o.model, o.tokenizer, in, 2, &co, compare_text, &c, &e), "%s",
                      e.msg);
            CHECK(c.seen == 2);
        }
        close_model(&o);
    }
    if (!open_model(&o, "bert")) return;
    ses_err e = { 0 };
    ses_attention_corpus_options co = { .model_dir = o.dir, .part = SES_PART_CROSS };
    CHECK(!ses_attention_corpus_run(o.model, o.tokenizer, in, 2, &co, NULL, NULL, &e) &&
          strstr(e.msg, "no decoder"));
    close_model(&o);
}

int main(void)
{
    corpora();
    against_transformers();
    by_word();
    bad_input();
    statistics();
    distances();
    return check_report();
}
