/* The CRF: loss, gradients, best paths and marginals against pytorch-crf and the enumeration of all paths
 * (fixtures/crf.json, made by crf.py); batches, long sequences, label schemes. */
#include "base/alloc.h"
#include "base/labels/tag_scheme.h"
#include "check.h"
#include "nn/crf_decoder.h"
#include "nn/nn.h"
#include "sesame/json.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

enum { MAX = 512 };

typedef struct problem {
    int64_t labels, seqs, tokens;
    int32_t cu[16], y[MAX];
    ses_real x[MAX], trans[MAX], start[MAX], end[MAX];
} problem;

static size_t read_reals(const ses_json *v, ses_real *x)
{
    size_t n = ses_json_len(v);
    for (size_t i = 0; i < n && i < MAX; i++) {
        double d = NAN;
        ses_json_real(ses_json_at(v, i), &d);
        x[i] = (ses_real)d;
    }
    return n;
}

static double apart(const ses_real *x, const ses_json *v)
{
    double worst = x && ses_json_len(v) ? 0 : INFINITY;
    for (size_t i = 0; x && i < ses_json_len(v); i++) {
        double want = NAN;
        ses_json_real(ses_json_at(v, i), &want);
        double d = fabs((double)x[i] - want);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}

static problem read_problem(const ses_json *c)
{
    problem p = { 0 };
    int64_t n;
    ses_json_int(ses_json_get(c, "labels"), &p.labels);
    p.seqs = (int64_t)ses_json_len(ses_json_get(c, "lengths"));
    for (int64_t s = 0; s < p.seqs; s++) {
        ses_json_int(ses_json_at(ses_json_get(c, "lengths"), (size_t)s), &n);
        p.cu[s + 1] = p.cu[s] + (int32_t)n;
    }
    p.tokens = p.cu[p.seqs];
    for (int64_t i = 0; i < p.tokens; i++) {
        ses_json_int(ses_json_at(ses_json_get(c, "y"), (size_t)i), &n);
        p.y[i] = (int32_t)n;
    }
    read_reals(ses_json_get(c, "x"), p.x);
    read_reals(ses_json_get(c, "transitions"), p.trans);
    read_reals(ses_json_get(c, "start"), p.start);
    read_reals(ses_json_get(c, "end"), p.end);
    return p;
}

static ses_tensor *given(ses_tape *t, const ses_real *x, const int64_t dim[SES_MAX_DIM])
{
    ses_tensor *y = ses_tape_input(t, x, dim);
    if (y) y->requires_grad = true;
    return y;
}

/* The loss of sequences first .. first + n - 1; in [4]: x, transitions, start, end. */
static ses_tensor *loss_of(ses_tape *t, const problem *p, int64_t first, int64_t n, ses_tensor *in[4])
{
    int32_t cu[16];
    int64_t L = p->labels, at = p->cu[first], T = p->cu[first + n] - at;
    for (int64_t i = 0; i <= n; i++) cu[i] = p->cu[first + i] - p->cu[first];
    in[0] = given(t, p->x + at * L, SES_DIM(T, L));
    in[1] = given(t, p->trans, SES_DIM(L, L));
    in[2] = given(t, p->start, SES_DIM(L));
    in[3] = given(t, p->end, SES_DIM(L));
    return ses_crf(t, in[0], in[1], in[2], in[3], ses_tape_ints(t, p->y + at, T),
                   ses_tape_ints(t, cu, n + 1));
}

static ses_store *store_of(ses_device *dev, const problem *p)
{
    ses_err e = { 0 };
    ses_store *s = ses_store_new(dev, &e);
    int64_t L = p->labels;
    ses_tensor *t[3] = { ses_store_add(s, SES_CRF_TRANSITIONS, SES_DIM(L, L), SES_INIT_TENTH),
                         ses_store_add(s, SES_CRF_START, SES_DIM(L), SES_INIT_TENTH),
                         ses_store_add(s, SES_CRF_END, SES_DIM(L), SES_INIT_TENTH) };
    CHECK(ses_store_alloc_trainable(s, &e));
    memcpy(t[0]->f, p->trans, (size_t)(L * L) * sizeof *p->trans);
    memcpy(t[1]->f, p->start, (size_t)L * sizeof *p->start);
    memcpy(t[2]->f, p->end, (size_t)L * sizeof *p->end);
    return s;
}

static void check_loss(ses_device *dev, const ses_json *c, const problem *p)
{
    ses_err e = { 0 };
    ses_tensor *in[4];
    double want = NAN, sum = 0, tokens = 0;
    static const char *const grads[] = { "dx", "dtransitions", "dstart", "dend" };
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *loss = loss_of(t, p, 0, p->seqs, in);
    ses_json_real(ses_json_get(c, "loss"), &want);
    ses_backward(t, loss);
    CHECK_MSG(ses_tape_ok(t, &e) && fabs((double)loss->f[0] - want) < 1e-5, "%s %g", e.msg, want);
    for (int i = 0; i < 4; i++) {
        double d = apart(in[i]->grad, ses_json_get(c, grads[i]));
        CHECK_MSG(d < 1e-6, "%s: %g", grads[i], d);
    }
    for (int64_t s = 0; s < p->seqs;
         s++) { /* one sequence at a time: the partition function, the same bits */
        double log_z = NAN, score = 0;
        ses_tape *one = ses_tape_new(dev, NULL, &e);
        ses_tensor *l = loss_of(one, p, s, 1, in);
        ses_json_real(ses_json_at(ses_json_get(c, "log_z"), (size_t)s), &log_z);
        for (int64_t i = p->cu[s]; i < p->cu[s + 1]; i++) {
            score += (double)p->x[i * p->labels + p->y[i]];
            score += i > p->cu[s] ? (double)p->trans[p->y[i - 1] * p->labels + p->y[i]]
                                  : (double)p->start[p->y[i]];
        }
        score += (double)p->end[p->y[p->cu[s + 1] - 1]];
        CHECK_MSG(fabs((double)l->f[0] + score - log_z) < 1e-5, "sequence %lld", (long long)s);
        sum += (double)l->f[0], tokens++;
        ses_tape_free(one);
    }
    CHECK((ses_real)(sum / tokens) == loss->f[0]);
    ses_tape_free(t);
}

static void check_decoding(ses_device *dev, const ses_json *c, const problem *p)
{
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_crf_decoder d;
    bool found;
    float x[MAX], marginal[MAX];
    int32_t best[MAX];
    ses_store *s = store_of(dev, p);
    for (int i = 0; i < MAX; i++) x[i] = (float)p->x[i];
    CHECK(ses_crf_decoder_init(&d, s, SES_TAGS_PLAIN, NULL, (size_t)p->labels, &mem, &found, &e) && found);
    for (int64_t i = 0; i < p->seqs; i++) {
        int64_t at = p->cu[i] * p->labels;
        CHECK(ses_crf_decode(&d, x + at, NULL, p->cu[i + 1] - p->cu[i], best + p->cu[i], marginal + at, &e));
    }
    ses_real wide[MAX];
    for (int64_t i = 0; i < p->tokens * p->labels; i++) wide[i] = (ses_real)marginal[i];
    CHECK(apart(wide, ses_json_get(c, "marginals")) < 1e-6);
    for (int64_t i = 0; i < p->tokens; i++) {
        int64_t want = -1;
        ses_json_int(ses_json_at(ses_json_get(c, "paths"), (size_t)i), &want);
        CHECK_MSG(best[i] == want, "token %lld: %d, expected %lld", (long long)i, best[i], (long long)want);
    }
    ses_store_free(s);
    ses_arena_free(&mem);
}

/* All sequences of labels that the scheme allows, by enumeration: the best one is the decoded one. */
static void check_constraints(ses_device *dev)
{
    static const char *const bioes[] = { "O", "B-A", "I-A", "E-A", "S-A", "S-B" };
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    enum { L = 6, N = 5 };
    problem p = { .labels = L };
    uint64_t state = 9;
    float x[N * L];
    int32_t best[N], top[N] = { 0 };
    ses_crf_decoder d;
    bool found;
    for (int round = 0; round < 20; round++) {
        double high = -INFINITY;
        for (int i = 0; i < L * L; i++)
            p.trans[i] = (ses_real)((state = state * 6364136223846793005u + 1) >> 40) / 4e6f;
        for (int i = 0; i < N * L; i++)
            x[i] = (float)((state = state * 6364136223846793005u + 1) >> 40) / 4e6f;
        ses_store *s = store_of(dev, &p);
        CHECK(ses_crf_decoder_init(&d, s, SES_TAGS_BIOES, bioes, L, &mem, &found, &e));
        for (int k = 0; k < 7776; k++) {
            int32_t path[N];
            double sum = 0;
            bool ok = true;
            for (int i = 0, rest = k; i < N; i++, rest /= L) path[i] = rest % L;
            for (int i = 0; i <= N; i++) {
                ses_tag a = i ? ses_tag_parse(bioes[path[i - 1]], strlen(bioes[path[i - 1]]))
                              : (ses_tag){ 0 },
                        b = i < N ? ses_tag_parse(bioes[path[i]], strlen(bioes[path[i]])) : (ses_tag){ 0 };
                ok &= ses_tag_allowed(SES_TAGS_BIOES, i ? &a : NULL, i < N ? &b : NULL);
                if (i < N) sum += (double)x[i * L + path[i]];
                if (i && i < N) sum += (double)p.trans[path[i - 1] * L + path[i]];
            }
            if (ok && sum > high) high = sum, memcpy(top, path, sizeof top);
        }
        float marginal[N * L];
        CHECK(ses_crf_decode(&d, x, NULL, N, best, marginal, &e) && !memcmp(best, top, sizeof top));
        double first = 0;
        for (int j = 0; j < L; j++) first += (double)marginal[j];
        CHECK(fabs(first - 1) < 1e-6 && marginal[2] == 0 && marginal[(N - 1) * L + 1] == 0);
        ses_store_free(s);
    }
    ses_arena_free(&mem);
}

/* Scores that differ by far more than exp can hold: the marginals of the best path are 1. */
static void check_large(ses_device *dev)
{
    enum { L = 3, N = 4 };
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    problem p = { .labels = L, .trans = { 0, -2000, 3000, 5000, 0, 0, 0, -4000, 0 } };
    const float x[N * L] = { 3000, -3000, 0, 0, 9000, -9000, 0, 0, 1e4f, -1e4f, 1e4f, 0 };
    ses_crf_decoder d;
    bool found;
    int32_t best[N];
    float marginal[N * L];
    ses_store *s = store_of(dev, &p);
    CHECK(ses_crf_decoder_init(&d, s, SES_TAGS_PLAIN, NULL, L, &mem, &found, &e));
    CHECK(ses_crf_decode(&d, x, NULL, N, best, marginal, &e));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < L; j++)
            CHECK_MSG(marginal[i * L + j] == (float)(j == best[i]), "token %d, label %d: %g", i, j,
                      (double)marginal[i * L + j]);
    ses_store_free(s);
    ses_arena_free(&mem);
}

/* 100,000 tokens: the loss grows with the length, its gradients stay probabilities. */
static void check_long(ses_device *dev)
{
    enum { T = 100000, L = 3 };
    ses_err e = { 0 };
    const ses_real trans[L * L] = { 2, -1, 0.5f, 0, 1, -2, 0.25f, 0, 3 }, ends[L] = { 0, 0, 0 };
    ses_real *x = ses_alloc_array(T * L, sizeof *x, &e);
    int32_t *y = ses_alloc_array(T, sizeof *y, &e), cu[2] = { 0, T },
            *best = ses_alloc_array(T, sizeof *best, &e);
    for (int64_t i = 0; i < T * L; i++) x[i] = (ses_real)(i % 7) - 3;
    for (int64_t i = 0; i < T; i++) y[i] = (int32_t)(i / 5 % L);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *in = given(t, x, SES_DIM(T, L)), *w = given(t, trans, SES_DIM(L, L));
    ses_tensor *loss = ses_crf(t, in, w, given(t, ends, SES_DIM(L)), given(t, ends, SES_DIM(L)),
                               ses_tape_ints(t, y, T), ses_tape_ints(t, cu, 2));
    ses_backward(t, loss);
    CHECK_MSG(ses_tape_ok(t, &e) && isfinite((double)loss->f[0]) && loss->f[0] > T, "%s", e.msg);
    double worst = 0, sum = 0;
    for (int64_t i = 0; i < T; i++) {
        double row = 0;
        for (int64_t j = 0; j < L; j++) row += (double)in->grad[i * L + j];
        worst = fmax(worst, fabs(row));
    }
    for (int i = 0; i < L * L; i++) sum += (double)w->grad[i];
    CHECK_MSG(worst < 1e-6 && fabs(sum) < 1, "%g, %g", worst, sum);
    ses_tape_free(t);
    ses_free(x), ses_free(y), ses_free(best);
}

static void check_conversion(void)
{
    static const struct {
        const char *in, *out;
        ses_tag_scheme to;
        size_t wrong;
    } c[] = {
        { "OBIOBB", "OBEOSS", SES_TAGS_BIOES, 0 },
        { "OIIOIB", "OBIOBB", SES_TAGS_BIO, 0 }, /* IOB1 */
        { "IIO", "BEO", SES_TAGS_BIOES, 0 },
        { "OBIEOS", "OBIIOB", SES_TAGS_BIO, 0 },
        { "OEOBO", "OBOBO", SES_TAGS_BIO, 2 },
        { "BIES", "BIES", SES_TAGS_PLAIN, 0 },
        { "", "", SES_TAGS_BIO, 0 },
    };
    for (size_t i = 0; i < SES_LEN(c); i++) {
        ses_tag tag[16];
        char got[16] = "";
        size_t n = strlen(c[i].in);
        bool bioes = strpbrk(c[i].in, "ES") != NULL;
        for (size_t k = 0; k < n; k++) tag[k] = (ses_tag){ c[i].in[k], "X", 1 };
        CHECK(ses_tags_convert(tag, n, c[i].to, bioes) == c[i].wrong);
        for (size_t k = 0; k < n; k++) got[k] = tag[k].prefix;
        CHECK_MSG(!strcmp(got, c[i].out), "%s: %s, expected %s", c[i].in, got, c[i].out);
    }
    ses_tag change[2] = { { 'B', "X", 1 }, { 'I', "Y", 1 } };
    ses_tags_convert(change, 2, SES_TAGS_BIOES, false);
    CHECK(change[0].prefix == 'S' && change[1].prefix == 'S');
    CHECK(ses_tag_parse("U-PER", 5).prefix == 'S' && !ses_tag_parse("NNP", 3).prefix &&
          ses_tag_parse("O", 1).prefix == 'O' && !ses_tag_parse("B-", 2).prefix);
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_load("tests/fixtures/crf.json", 1 << 20, &e);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!d || !dev) return fprintf(stderr, "%s\n", e.msg), 1;
    const ses_json *cases = ses_json_get(ses_json_root(d), "cases");
    for (size_t i = 0; i < ses_json_len(cases); i++) {
        problem p = read_problem(ses_json_at(cases, i));
        check_loss(dev, ses_json_at(cases, i), &p);
        check_decoding(dev, ses_json_at(cases, i), &p);
    }
    check_constraints(dev);
    check_large(dev);
    check_long(dev);
    check_conversion();
    ses_json_free(d);
    ses_device_free(dev);
    return check_report();
}
