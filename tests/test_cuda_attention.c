/* CUDA kernels of attention and of relative scores on ragged sequences with all options, compared with ref.
 * Skipped without a GPU. */
#include "cuda_fixture.h"

/* Sequences one after another; keys equal queries by default. */
typedef struct batch {
    int64_t seqs, heads;
    int32_t len_q[12], len_k[12];
} batch;

static mirrored offsets(const int32_t *len, int64_t seqs, int64_t *longest)
{
    int32_t cu[SES_LEN(((batch *)0)->len_q) + 1] = { 0 };
    *longest = 0;
    for (int64_t i = 0; i < seqs; i++) {
        cu[i + 1] = cu[i] + len[i];
        if (len[i] > *longest) *longest = len[i];
    }
    return ints(seqs + 1, cu);
}

/* Uploads the host array to the GPU. */
static void send(mirrored b)
{
    uint16_t *x = ses_alloc((size_t)b.n * sizeof *x, NULL);
    if (b.is_bf16) ses_convert(x, SES_BF16, b.host, SES_F32, (size_t)b.n, NULL);
    gpu->mem->upload(gpu, b.gpu, b.is_bf16 ? (void *)x : (void *)b.host, (size_t)b.n * (b.is_bf16 ? 2 : 4));
    ses_free(x);
}

/* Numbers whose products and sums are exact: halves up to 1, and `first` in every dim-th element. */
static void make_exact(mirrored b, int64_t dim, float first)
{
    for (int64_t i = 0; i < b.n; i++)
        b.host[i] = i % dim || !first ? (float)(fmax(-2, fmin(2, round(b.host[i])))) / 2 : first;
    send(b);
}

/* Attention over ragged sequences with several head sizes and all options. large: scores of a million, for
 * which f32 resolves eighths. */
static void attend(const batch *in, int64_t dim, bool causal, int64_t reach, double rate, bool extras,
                   bool is_bf16, bool large)
{
    ses_device *g16 = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t H = in->heads, C = H * dim, pairs = 0, longest_q, longest_k;
    bool cross = false;
    for (int64_t i = 0; i < in->seqs; i++) cross = cross || in->len_k[i];
    const int32_t *len_k = cross ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += H * in->len_q[i] * len_k[i];
    mirrored cu_seqlens_q = offsets(in->len_q, in->seqs, &longest_q),
             cu_seqlens_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_seqlens_q)[in->seqs], S = host_ids(cu_seqlens_k)[in->seqs];
    mirrored q = make(T * C, 1), k = make(S * C, 1), v = make(S * C, 1);
    mirrored out = make(T * C, NAN), lse = floats(H * T, NAN), probs = make(pairs, is_bf16 ? 0 : NAN);
    mirrored dout = make(T * C, 1), delta = floats(H * T, NAN);
    mirrored dq = make(T * C, NAN), dk = make(S * C, 1), dv = make(S * C, NAN);
    mirrored dist = make((2 * longest_k - 1) * H, 1), bias = make(pairs, 1), ddist = make(dist.n, 1),
             dbias = make(pairs, 1);
    ses_attn a = { .seqs = in->seqs,
                   .heads = H,
                   .dim = dim,
                   .max_seqlen_q = longest_q,
                   .max_seqlen_k = longest_k,
                   .scale = large ? 1 : 0.125f,
                   .causal = causal,
                   .window = reach,
                   .dropout = rate,
                   .rng_key = { 9, 1, 4 } };
    a.q_row = a.k_row = a.v_row = a.out_row = C;
    ses_attn b = a;
    a.cu_seqlens_q = host_ids(cu_seqlens_q), a.cu_seqlens_k = host_ids(cu_seqlens_k),
    b.cu_seqlens_q = gpu_ids(cu_seqlens_q), b.cu_seqlens_k = gpu_ids(cu_seqlens_k);
    a.q = q.host, a.k = k.host, a.v = v.host, a.out = out.host, a.lse = lse.host, a.probs = probs.host;
    b.q = q.gpu, b.k = k.gpu, b.v = v.gpu, b.out = out.gpu, b.lse = lse.gpu, b.probs = probs.gpu;
    if (is_bf16) a.probs = b.probs = NULL; /* tensor-core kernels do not support it */
    mirrored rest = floats(H * T, NAN);
    if (large) {
        make_exact(q, dim, 1 << 20), make_exact(k, dim, 1), make_exact(dist, dim, 0),
            make_exact(bias, dim, 0);
        a.probs = probs.host, b.lse_lo = rest.gpu;
    }
    if (extras) a.rel_bias = dist.host, b.rel_bias = dist.gpu, a.bias = bias.host, b.bias = bias.gpu;
    wait_for(gpu);
    cpu->k.attention(&cpu->exec, &a);
    g16->k.attention(&g16->exec, &b);
    wait_for(g16);
    check_close("attention", out, 1e-5);
    if (b.probs) check_close("probs", probs, 1e-5);
    /* otherwise -infinity for queries without visible keys */
    if (!cross) check_close("lse", lse, is_bf16 ? 1e-4 : 1e-5);
    ses_attn_grad g = { .dout = dout.host,
                        .dq = { dq.host, false },
                        .dk = { dk.host, true },
                        .dv = { dv.host, false },
                        .delta = delta.host,
                        .probs = large ? probs.host : NULL };
    ses_attn_grad h = { .dout = dout.gpu,
                        .dq = { dq.gpu, false },
                        .dk = { dk.gpu, true },
                        .dv = { dv.gpu, false },
                        .delta = delta.gpu };
    if (extras) g.drel_bias = (ses_dst){ ddist.host, true }, h.drel_bias = (ses_dst){ ddist.gpu, true };
    if (extras) g.dbias = (ses_dst){ dbias.host, true }, h.dbias = (ses_dst){ dbias.gpu, true };
    cpu->k.attention_bwd(&cpu->exec, &a, &g);
    g16->k.attention_bwd(&g16->exec, &b, &h);
    wait_for(g16);
    check_close("dq", dq, 2e-5), check_close("dk", dk, 2e-5), check_close("dv", dv, 2e-5);
    /* computed separately from the tensor-core kernels */
    if (!large || !is_bf16) check_close("ddist", ddist, 2e-5);
    check_close("dbias", dbias, 2e-5);
    mirrored all[] = { cu_seqlens_q, cu_seqlens_k, q,  k,  v,     out,  lse,  probs, rest,
                       dout,         dq,           dk, dv, delta, dist, bias, ddist, dbias };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
}

static void attention(const batch *in, int64_t dim, bool causal, int64_t reach, double rate, bool extras,
                      bool is_bf16)
{
    attend(in, dim, causal, reach, rate, extras, is_bf16, false);
}

static void test_attention(void)
{
    static const batch batches[] = { { 5, 3, { 1, 130, 0, 69, 257 } }, { 5, 3, { 1, 128, 0, 69, 17 } } };
    for (int i = 0; i < 4; i++) {
        bool is_bf16 = i % 2;
        const batch *b = &batches[i / 2];
        attention(b, 64, false, 0, 0, false, is_bf16);
        attention(b, 64, false, 0, 0.1, false, is_bf16);
        attention(b, 64, true, 40, 0, false, is_bf16);
        attention(b, 64, true, 0, 0.1, false, is_bf16);
        attention(b, 80, false, 33, 0, true, is_bf16);
        attention(b, 5, true, 7, 0.5, true, is_bf16);
        attention(b, 128, false, 0, 0.1, false, is_bf16);
        attention(b, 40, true, 50, 0.1, true, is_bf16);
        attention(b, 200, true, 0, 0, false, is_bf16);
        attention(b, 600, false, 0, 0.1, true, is_bf16);
    }
}

/* bf16 with head size 64, enough work items for the Hopper kernels: lengths around their tiles, queries
 * without visible keys and keys without queries. */
static void test_attention_tiles(void)
{
    static const batch batches[] = {
        { 11, 7, { 1, 7, 63, 64, 65, 127, 129, 200, 0, 513, 128 } },
        { 9, 8, { 1, 128, 17, 65, 127, 64, 0, 99, 3 } },
        { 9, 8, { 5, 130, 64, 0, 200, 300, 129, 1, 257 }, { 70, 40, 300, 9, 129, 0, 260, 400, 128 } },
    };
    for (size_t i = 0; i < SES_LEN(batches); i++) {
        const batch *b = &batches[i];
        for (int causal = 0; causal < 2; causal++) {
            attention(b, 64, causal, 0, 0, false, true);
            attention(b, 64, causal, 0, 0.1, false, true);
            attention(b, 64, causal, 150, 0.6, false, true);
        }
        attention(b, 64, false, 20, 0, false, true);
        attention(b, 64, false, 0, 0.1, true, true); /* biases and their gradients */
        attention(b, 32, true, 0, 0, true, true);
    }
}

/* Every backward kernel with an lse too large to represent probabilities. */
static void test_attention_large(void)
{
    static const batch some = { 5, 3, { 1, 130, 0, 69, 257 } }, brief = { 3, 3, { 17, 90, 1 } },
                       many = { 11, 7, { 1, 7, 63, 64, 65, 127, 129, 200, 0, 513, 128 } };
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        attend(&some, 64, false, 0, 0, false, is_bf16, true);
        attend(&some, 64, true, 40, 0.1, false, is_bf16, true);
        attend(&some, 80, false, 33, 0, true, is_bf16, true);
        attend(&some, 5, true, 0, 0.1, true, is_bf16, true);
        attend(&some, 200, false, 0, 0, false, is_bf16, true);
        attend(&brief, 64, false, 0, 0.1, false, is_bf16, true);
        attend(&many, 64, false, 0, 0.1, false, is_bf16, true);
        attend(&many, 64, true, 0, 0, false, is_bf16, true);
    }
}

/* Relative scores of ragged sequences, and their gradients. */
typedef struct relative_case {
    int64_t dim;
    bool by_key, by_label, at_positions, has_mask;
    int64_t reversed_from; /* 0: none */
    int64_t clip;          /* distances beyond it share the last row; 0: none */
} relative_case;

static void relative(const batch *in, const relative_case *c, bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t H = in->heads, C = H * c->dim, pairs = 0, longest_q, longest_k;
    const int32_t *len_k = in->len_k[0] ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += in->len_q[i] * len_k[i];
    mirrored cu_q = offsets(in->len_q, in->seqs, &longest_q), cu_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_q)[in->seqs], S = host_ids(cu_k)[in->seqs], n = 2 * longest_k - 1,
            reach = c->clip ? c->clip : longest_k - 1, rows = c->by_label ? 2 : 2 * reach + 1;
    int32_t *row = ses_alloc((size_t)n * 4, NULL), *pos = ses_alloc((size_t)T * 4, NULL),
            *label = ses_alloc((size_t)S * 4, NULL);
    for (int64_t i = 0; i < n; i++)
        row[i] =
            (int32_t)(fmax(-(double)reach, fmin((double)reach, (double)(longest_k - 1 - i))) + (double)reach);
    for (int64_t s = 0; s < in->seqs; s++) /* permuted, some twice */
        for (int32_t i = 0; i < in->len_q[s]; i++) pos[host_ids(cu_q)[s] + i] = i * 7 % len_k[s];
    for (int64_t i = 0; i < S; i++) label[i] = (int32_t)(i / 5 % 3);
    mirrored dist = ints(n, row), at = ints(T, pos), labels = ints(S, label);
    mirrored x = make((c->by_key ? S : T) * C, 1), r = make(rows * C, 1), mask = floats(pairs, 1),
             y = make(pairs * H, 1), dy = make(pairs * H, 1), dx = make(x.n, 1), dr = make(r.n, 1);
    ses_relative a = { .seqs = in->seqs,
                       .heads = H,
                       .dim = c->dim,
                       .max_seqlen_k = longest_k,
                       .x_row = C,
                       .x_head = c->dim,
                       .x_is_key = c->by_key,
                       .rows = rows,
                       .scale = 0.3f };
    a.reversed_from = c->reversed_from ? c->reversed_from : a.seqs;
    ses_relative b = a;
    a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), a.x = x.host, a.r = r.host;
    b.cu_seqlens_q = gpu_ids(cu_q), b.cu_seqlens_k = gpu_ids(cu_k), b.x = x.gpu, b.r = r.gpu;
    if (c->by_label)
        a.label = host_ids(labels), b.label = gpu_ids(labels);
    else
        a.dist_to_row = host_ids(dist), b.dist_to_row = gpu_ids(dist);
    if (c->at_positions) a.q_pos = host_ids(at), b.q_pos = gpu_ids(at);
    if (c->has_mask) a.mask = mask.host, b.mask = mask.gpu;
    for (int add = 1; add >= 0; add--) {
        wait_for(gpu);
        cpu->k.relative(&cpu->exec, &a, (ses_dst){ y.host, add });
        d->k.relative(&d->exec, &b, (ses_dst){ y.gpu, add });
        cpu->k.relative_bwd(&cpu->exec, &a, dy.host, (ses_dst){ dx.host, add }, (ses_dst){ dr.host, add });
        d->k.relative_bwd(&d->exec, &b, dy.gpu, (ses_dst){ dx.gpu, add }, (ses_dst){ dr.gpu, add });
        wait_for(d);
        check_close("relative", y, 1e-5), check_close("relative dx", dx, 2e-5),
            check_close("relative dr", dr, 2e-5);
    }
    mirrored all[] = { cu_q, cu_k, dist, at, labels, x, r, mask, y, dy, dx, dr };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
    ses_free(row), ses_free(pos), ses_free(label);
}

static void test_relative(void)
{
    static const batch batches[] = { { 7, 3, { 1, 130, 0, 69, 257, 64, 63 } },
                                     { 4, 2, { 5, 64, 1, 100 }, { 70, 65, 3, 260 } },
                                     { 11, 1, { 3, 2, 1, 4, 5, 6, 7, 8, 9, 65, 10 } } };
    static const relative_case cases[] = {
        { 64 },
        { 64, .by_key = true },
        { 64, .clip = 40, .has_mask = true },
        { 64, .by_key = true, .clip = 9 },
        { 32, .reversed_from = 2 },
        { 80, .at_positions = true, .has_mask = true, .reversed_from = 1 },
        { 128, .by_key = true },
        { 40 },
        { 5, .by_key = true, .reversed_from = 3 }, /* not for tensor cores */
        { 64, .by_label = true },
        { 40, .by_label = true, .at_positions = true, .has_mask = true },
        { 24, .by_label = true, .by_key = true },
        { 130, .by_label = true },
    };
    for (size_t b = 0; b < SES_LEN(batches); b++)
        for (size_t i = 0; i < SES_LEN(cases); i++)
            for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) relative(&batches[b], &cases[i], is_bf16);
}

/* bf16 attention that is given the terms of its bias, beside attention with the bias. */
static void attend_terms(const batch *in, const relative_case *c, const relative_case *second)
{
    int64_t H = in->heads, C = H * c->dim, pairs = 0, longest_q, longest_k;
    const int32_t *len_k = in->len_k[0] ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += in->len_q[i] * len_k[i];
    mirrored cu_q = offsets(in->len_q, in->seqs, &longest_q), cu_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_q)[in->seqs], S = host_ids(cu_k)[in->seqs], n = 2 * longest_k - 1;
    int32_t *row = ses_alloc((size_t)n * 4, NULL), *pos = ses_alloc((size_t)T * 4, NULL),
            *label = ses_alloc((size_t)S * 4, NULL);
    for (int64_t i = 0; i < n; i++) row[i] = (int32_t)(i / 2);
    for (int64_t s = 0; s < in->seqs; s++)
        for (int32_t i = 0; i < in->len_q[s]; i++) pos[host_ids(cu_q)[s] + i] = i * 7 % len_k[s];
    for (int64_t i = 0; i < S; i++) label[i] = (int32_t)(i / 5 % 3);
    mirrored dist = ints(n, row), at = ints(T, pos), labels = ints(S, label);
    mirrored q = halves(T * C, 1), k = halves(S * C, 1), v = halves(S * C, 1), out = halves(T * C, NAN),
             x = halves(T * C, 0.5), r[2] = { halves(n * C, 0.5), halves(n * C, 0.5) },
             mask = floats(pairs, 1), bias = halves(pairs * H, 0);
    ses_score_terms host = { .pairs = pairs }, there = { .pairs = pairs };
    const relative_case *term[] = { c, second };
    for (int i = 0; i < 2 && term[i]; i++) {
        const relative_case *o = term[i];
        ses_relative a = { .seqs = in->seqs,
                           .heads = H,
                           .dim = c->dim,
                           .max_seqlen_k = longest_k,
                           .x_row = C,
                           .x_head = c->dim,
                           .x_is_key = o->by_key,
                           .rows = o->by_label ? 2 : n,
                           .scale = 0.2f };
        a.reversed_from = o->reversed_from ? o->reversed_from : a.seqs;
        ses_relative b = a;
        a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), a.r = r[i].host;
        b.cu_seqlens_q = gpu_ids(cu_q), b.cu_seqlens_k = gpu_ids(cu_k), b.r = r[i].gpu;
        a.x = o->by_key ? k.host : x.host, b.x = o->by_key ? k.gpu : x.gpu;
        if (o->by_label)
            a.label = host_ids(labels), b.label = gpu_ids(labels);
        else
            a.dist_to_row = host_ids(dist), b.dist_to_row = gpu_ids(dist);
        if (o->at_positions) a.q_pos = host_ids(at), b.q_pos = gpu_ids(at);
        if (o->has_mask) a.mask = mask.host, b.mask = mask.gpu;
        host.term[host.n++] = a, there.term[there.n++] = b;
    }
    for (int i = 0; i < host.n; i++)
        cpu->k.relative(&cpu->exec, &host.term[i], (ses_dst){ bias.host, i > 0 });
    ses_attn a = { .seqs = in->seqs,
                   .heads = H,
                   .dim = c->dim,
                   .max_seqlen_q = longest_q,
                   .max_seqlen_k = longest_k,
                   .scale = 0.125f };
    a.q_row = a.k_row = a.v_row = a.out_row = C;
    ses_attn b = a;
    a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), b.cu_seqlens_q = gpu_ids(cu_q),
    b.cu_seqlens_k = gpu_ids(cu_k);
    a.q = q.host, a.k = k.host, a.v = v.host, a.out = out.host, a.bias = bias.host;
    b.q = q.gpu, b.k = k.gpu, b.v = v.gpu, b.out = out.gpu, b.terms = &there;
    wait_for(gpu);
    cpu->k.attention(&cpu->exec, &a);
    gpu16->k.attention(&gpu16->exec, &b);
    wait_for(gpu16);
    check_close("attention with terms", out, 1e-2);
    mirrored all[] = { cu_q, cu_k, dist, at, labels, q, k, v, out, x, r[0], r[1], mask, bias };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
    ses_free(row), ses_free(pos), ses_free(label);
}

static void test_attention_terms(void)
{
    static const batch batches[] = { { 7, 3, { 1, 130, 0, 69, 257, 64, 63 } },
                                     { 4, 2, { 5, 64, 1, 100 }, { 70, 65, 3, 260 } },
                                     { 11, 1, { 3, 2, 1, 4, 5, 6, 7, 8, 9, 65, 10 } } };
    static const relative_case query = { 64 }, key = { 64, .by_key = true }, label = { 64, .by_label = true },
                               turned = { 40, .reversed_from = 2, .has_mask = true },
                               small = { 40, .by_key = true }, wide = { 80 },
                               placed = { 64, .at_positions = true, .has_mask = true };
    static const struct {
        const relative_case *first, *second;
    } cases[] = { { &query, NULL },   { &key, NULL },      { &query, &key },
                  { &query, &label }, { &label, NULL },    { &turned, &small },
                  { &wide, NULL },    { &placed, &label }, { &turned, NULL } };
    for (size_t b = 0; b < SES_LEN(batches); b++)
        for (size_t i = 0; i < SES_LEN(cases); i++)
            attend_terms(&batches[b], cases[i].first, cases[i].second);
}

int main(void)
{
    ses_err e = { 0 };
    if (open_devices(&e)) {
        test_attention();
        test_attention_tiles();
        test_attention_large();
        test_relative();
        test_attention_terms();
    } else {
        SKIP(e.msg);
    }
    close_devices();
    return check_report();
}
