/* Transformer-XL against its equations (Dai et al. 2019, section 3; adaptive softmax, Grave et al. 2016) as
 * plain loops in double: log probabilities, loss, mems, segment by segment. Its gradient with mems, against
 * finite differences. */
#include "base/rng.h"
#include "check.h"
#include "sesame/model.h"

#include <math.h>

enum {
    V = 31,
    C = 12,
    H = 3,
    D = 4,
    F = 10,
    L = 2,
    M = 5,
    CLAMP = 4,
    CLUSTERS = 3,
    DIV = 2,
    LONG = 24,
    SEQS = 2
};

static const int cutoffs[CLUSTERS + 1] = { 0, 9, 17, V };
static const char config[] =
    "{\"architectures\": [\"TransfoXLLMHeadModel\"], \"model_type\": \"transfo-xl\", \"vocab_size\": 31, "
    "\"cutoffs\": [9, 17], \"d_model\": 12, \"d_embed\": 12, \"n_head\": 3, \"d_head\": 4, \"d_inner\": 10, "
    "\"div_val\": 2, \"n_layer\": 2, \"mem_len\": 5, \"clamp_len\": 4, \"dropout\": 0.0, \"dropatt\": 0.0, "
    "\"same_length\": false, \"init_std\": 0.5}";

/* ---- the equations ---- */

/* A parameter by its transformers name with a number; below 0: without. */
static const double *par(const ses_model *m, const char *name, int i, const char *tail)
{
    char full[96], number[16] = "";
    if (i >= 0) snprintf(number, sizeof number, "%d", i);
    snprintf(full, sizeof full, "%s%s%s", name, number, tail);
    int64_t p = ses_model_find_tensor(m, full);
    if (!CHECK_MSG(p >= 0, "no %s", full)) exit(1);
    return (const double *)ses_store_at(ses_model_store(m), (size_t)p)->tensor->f;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* y = norm(x + more) gain + bias */
static void norm(double *x, const double *more, const double *gain, const double *bias)
{
    double mean = 0, var = 0;
    for (int i = 0; i < C; i++) mean += (x[i] += more[i]) / C;
    for (int i = 0; i < C; i++) var += (x[i] - mean) * (x[i] - mean) / C;
    for (int i = 0; i < C; i++) x[i] = (x[i] - mean) / sqrt(var + 1e-5) * gain[i] + bias[i];
}

/* R of a distance; angles in float, as in transformers. */
static void sines(double *out, int distance)
{
    int d = distance < CLAMP ? distance : CLAMP;
    for (int j = 0; j < C / 2; j++) {
        float angle = (float)d * (1 / powf(10000, (float)(2 * j) / (float)C));
        out[j] = sin((double)angle);
        out[j + C / 2] = cos((double)angle);
    }
}

static void embed(const ses_model *m, double *out, int id)
{
    int i = 0;
    while (id >= cutoffs[i + 1]) i++;
    int width = C >> i; /* div_val is 2 */
    const double *row = par(m, "transformer.word_emb.emb_layers.", i, ".weight") + (id - cutoffs[i]) * width;
    const double *project = par(m, "transformer.word_emb.emb_projs.", i, "");
    for (int c = 0; c < C; c++) out[c] = sqrt(C) * dot(project + c * width, row, width);
}

/* Token i of a layer; `all` holds its keys' states, of which it attends to `n`: A = (q + u) k + (q + v) W
 * R. */
static void attend(const ses_model *m, int layer, const double (*all)[C], int n, double *x)
{
    const double *qkv = par(m, "transformer.layers.", layer, ".dec_attn.qkv_net.weight");
    const double *u = par(m, "transformer.layers.", layer, ".dec_attn.r_w_bias");
    const double *v = par(m, "transformer.layers.", layer, ".dec_attn.r_r_bias");
    const double *by = par(m, "transformer.layers.", layer, ".dec_attn.r_net.weight");
    const double *out = par(m, "transformer.layers.", layer, ".dec_attn.o_net.weight");
    double mixed[H * D] = { 0 }, y[C];
    for (int h = 0; h < H; h++) {
        double score[LONG], sum = 0;
        for (int j = 0; j < n; j++) {
            double r[C], s = 0;
            sines(r, n - 1 - j);
            for (int d = 0; d < D; d++) {
                int row = h * D + d;
                double q = dot(qkv + row * C, x, C), k = dot(qkv + (H * D + row) * C, all[j], C);
                s += (q + u[row]) * k + (q + v[row]) * dot(by + row * C, r, C);
            }
            sum += score[j] = exp(s / sqrt(D));
        }
        for (int j = 0; j < n; j++)
            for (int d = 0; d < D; d++)
                mixed[h * D + d] += score[j] / sum * dot(qkv + (2 * H * D + h * D + d) * C, all[j], C);
    }
    for (int c = 0; c < C; c++) y[c] = dot(out + c * H * D, mixed, H * D);
    norm(x, y, par(m, "transformer.layers.", layer, ".dec_attn.layer_norm.weight"),
         par(m, "transformer.layers.", layer, ".dec_attn.layer_norm.bias"));
}

static void feed_forward(const ses_model *m, int layer, double *x)
{
    const double *up = par(m, "transformer.layers.", layer, ".pos_ff.CoreNet.0.weight");
    const double *up_bias = par(m, "transformer.layers.", layer, ".pos_ff.CoreNet.0.bias");
    const double *down = par(m, "transformer.layers.", layer, ".pos_ff.CoreNet.3.weight");
    const double *down_bias = par(m, "transformer.layers.", layer, ".pos_ff.CoreNet.3.bias");
    double h[F], y[C];
    for (int f = 0; f < F; f++) h[f] = fmax(0, dot(up + f * C, x, C) + up_bias[f]);
    for (int c = 0; c < C; c++) y[c] = dot(down + c * F, h, F) + down_bias[c];
    norm(x, y, par(m, "transformer.layers.", layer, ".pos_ff.layer_norm.weight"),
         par(m, "transformer.layers.", layer, ".pos_ff.layer_norm.bias"));
}

/* Logits of the tokens of cluster i. The first cluster has a projection of its own, the others share the
 * embedding's. */
static void logits(const ses_model *m, const double *x, int i, double *out)
{
    int width = C >> i, n = cutoffs[i + 1] - cutoffs[i];
    const double *project = par(m, i ? "transformer.word_emb.emb_projs." : "crit.out_projs.", i, "");
    const double *table = par(m, "transformer.word_emb.emb_layers.", i, ".weight");
    const double *bias = par(m, "crit.out_layers.", i, ".bias");
    double narrow[C] = { 0 };
    for (int w = 0; w < width; w++)
        for (int c = 0; c < C; c++) narrow[w] += x[c] * project[c * width + w];
    for (int k = 0; k < n; k++) out[k] = dot(table + k * width, narrow, width) + bias[k];
    for (int k = 0; i == 0 && k < CLUSTERS - 1; k++)
        out[n + k] = dot(par(m, "crit.cluster_weight", -1, "") + k * width, narrow, width) +
                     par(m, "crit.cluster_bias", -1, "")[k];
}

static void log_softmax(double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i]);
    for (int i = 0; i < n; i++) x[i] -= log(sum);
}

static void log_probs(const ses_model *m, const double *x, double *out)
{
    double head[V], tail[V];
    logits(m, x, 0, head);
    log_softmax(head, cutoffs[1] + CLUSTERS - 1);
    for (int k = 0; k < cutoffs[1]; k++) out[k] = head[k];
    for (int i = 1; i < CLUSTERS; i++) {
        logits(m, x, i, tail);
        log_softmax(tail, cutoffs[i + 1] - cutoffs[i]);
        for (int k = cutoffs[i]; k < cutoffs[i + 1]; k++)
            out[k] = head[cutoffs[1] + i - 1] + tail[k - cutoffs[i]];
    }
}

/* The mems of one sequence. */
typedef struct memory {
    int n;
    double state[L][M][C];
} memory;

static void forward(const ses_model *m, const int32_t *ids, int len, memory *mem, double (*out)[V])
{
    double x[LONG][C], all[LONG][C];
    for (int i = 0; i < len; i++) embed(m, x[i], ids[i]);
    for (int l = 0; l < L; l++) {
        int before = mem->n, total = before + len, kept = total < M ? total : M;
        memcpy(all, mem->state[l], (size_t)before * sizeof *all);
        memcpy(all + before, x, (size_t)len * sizeof *all);
        for (int i = 0; i < len; i++) {
            attend(m, l, (const double(*)[C])all, before + i + 1, x[i]);
            feed_forward(m, l, x[i]);
        }
        memcpy(mem->state[l], all + total - kept, (size_t)kept * sizeof *all);
        if (l == L - 1) mem->n = kept;
    }
    for (int i = 0; i < len; i++) log_probs(m, x[i], out[i]);
}

/* ---- comparison ---- */

static const ses_output *find(const ses_outputs *o, const char *name)
{
    const ses_output *found = ses_outputs_find(o, name);
    if (found) return found;
    CHECK_MSG(0, "no output %s", name);
    exit(1);
}

static double apart(const ses_real *a, const double *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)a[i] - b[i]));
    return worst;
}

/* The mems of both sequences in the batch's layout: [layers, tokens before, C]. */
static void set_mems(const memory *mem, int32_t *cu, ses_real *out)
{
    for (int s = 0; s < SEQS; s++) cu[s + 1] = cu[s] + mem[s].n;
    for (int l = 0; l < L; l++)
        for (int s = 0; s < SEQS; s++)
            for (int j = 0; j < mem[s].n * C; j++) *out++ = (ses_real)mem[s].state[l][j / C][j % C];
}

static void compare(const ses_model *m, ses_tape *t, const ses_batch *b, memory *mem)
{
    static double want[LONG][V];
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    double loss = 0, n = 0;
    ses_tape_reset(t, NULL);
    if (!CHECK_MSG(ses_model_forward(m, t, b, &(ses_output_request){ .logits = true, .mems = true }, &o, &e),
                   "%s", e.msg))
        return;
    for (int s = 0; s < SEQS; s++) {
        int at = b->cu_seqlens[s], len = b->cu_seqlens[s + 1] - at;
        forward(m, b->ids + at, len, &mem[s], want);
        double d = apart(find(&o, "logits")->tensor->f + at * V, want[0], len * V);
        CHECK_MSG(d < 1e-10, "log probabilities are off by %g", d);
        for (int i = 0; i + 1 < len; i++)
            if (b->labels[at + i + 1] != SES_IGNORE_INDEX) loss -= want[i][b->labels[at + i + 1]], n++;
    }
    CHECK_MSG(fabs((double)o.loss->f[0] - loss / n) < 1e-10, "loss %.15g, expected %.15g",
              (double)o.loss->f[0], loss / n);
    for (int l = 0; l < L; l++) {
        char name[32];
        snprintf(name, sizeof name, "mems.%d", l);
        const ses_tensor *kept = find(&o, name)->tensor;
        const ses_real *at = kept->f;
        CHECK(ses_rows(kept) == mem[0].n + mem[1].n);
        for (int s = 0; s < SEQS; at += mem[s].n * C, s++)
            CHECK(apart(at, mem[s].state[l][0], mem[s].n * C) < 1e-10);
    }
}

static const int32_t cu[] = { 0, 4, 10 }, ids[] = { 3, 30, 9, 1, 17, 8, 2, 2, 12, 25 },
                     labels[] = { 3, 30, SES_IGNORE_INDEX, 1, 17, 8, 16, 2, 12, 25 };

static void test_segments(const ses_model *m, ses_tape *t)
{
    static memory mem[SEQS];
    ses_batch b = { .seqs = SEQS, .tokens = 10, .cu_seqlens = cu, .ids = ids, .labels = labels };
    for (int segment = 0; segment < 3; segment++) { /* without mems, then with the mems of the equations */
        int32_t mem_cu[SEQS + 1] = { 0 };
        ses_real mems[L * SEQS * M * C + 1];
        set_mems(mem, mem_cu, mems);
        b.mem_cu_seqlens = mem_cu, b.mems = mems;
        compare(m, t, &b, mem);
    }
    memset(mem, 0, sizeof mem); /* no mems in the batch: mem_len zeros */
    for (int s = 0; s < SEQS; s++) mem[s].n = M;
    b.mem_cu_seqlens = NULL, b.mems = NULL;
    compare(m, t, &b, mem);
}

static double loss_of(const ses_model *m, ses_tape *t, const ses_batch *b, bool backward)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    CHECK_MSG(ses_model_forward(m, t, b, &(ses_output_request){ 0 }, &o, &e), "%s", e.msg);
    if (backward) ses_backward(t, o.loss);
    return (double)o.loss->f[0];
}

/* All parameters along one direction, with mems of 3 and 1 tokens. */
static void test_gradient(const ses_model *m, ses_tape *t)
{
    int32_t mem_cu[] = { 0, 3, 4 };
    ses_real mems[L * 4 * C];
    double given = 0, seen = 0, h = 1e-6;
    ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < SES_LEN(mems); i++)
        mems[i] = (ses_real)ses_rand_normal((ses_rng_key){ .seed = 5 }, i);
    ses_batch b = { .seqs = SEQS,
                    .tokens = 10,
                    .cu_seqlens = cu,
                    .ids = ids,
                    .labels = labels,
                    .mem_cu_seqlens = mem_cu,
                    .mems = mems };
    loss_of(m, t, &b, true);
    for (int sign = 0; sign < 3; sign++) {
        for (size_t i = 0; i < ses_store_count(s); i++) {
            ses_tensor *p = ses_store_at(s, i)->tensor;
            for (int64_t j = 0; j < ses_count(p); j++) {
                double way = ses_rand_normal((ses_rng_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j);
                if (!sign) given += (double)p->grad[j] * way;
                p->f[j] += (ses_real)((sign == 0 ? 1 : sign == 1 ? -2 : 1) * h * way);
            }
        }
        if (sign < 2) seen += (sign ? -1 : 1) * loss_of(m, t, &b, false) / (2 * h);
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
        test_segments(m, t);
        test_gradient(m, t);
    }
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
    return check_report();
}
