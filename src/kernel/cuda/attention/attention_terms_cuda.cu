/* bf16 attention that computes its relative scores itself (inference; heads of up to 64 columns), so that
 * nothing has the size of all pairs. For a tile of 64 queries and 64 keys, which spans 127 distances, the
 * products of the queries, and of the keys, with the rows of two chunks of 64 distances are in shared
 * memory; pair (i, j) reads column j - i + 63 of them. The next tile of keys shares one chunk: its rows,
 * and the products of the queries with them, stay. */
#include "mma_tiles.cuh"
#include "relative_cuda.cuh"

enum { DH = 64, TILE = shape<DH>::TILE, PRODUCTS_LD = SIDE + 8, PRODUCTS = SIDE * PRODUCTS_LD };

/* Terms by their kind; their scale divided by that of the scores. */
struct term_list {
    ses_relative query, key,
        label; /* rows by distance from the query, from the key; by label from the query */
    bool has_query, has_key, has_label;
    const ses_real *mask;
    float scale;
};

/* Bytes of shared memory, by tile. */
struct term_tiles {
    bf16 *q, *x, *k, *v, *query_rows, *key_rows, *query_products,
        *key_products; /* v, key_rows, products: two */
};

__device__ static inline term_tiles tiles_at(uint4 *shared)
{
    bf16 *m = (bf16 *)shared;
    term_tiles t = {
        m, m + TILE, m + 2 * TILE, m + 3 * TILE, m + 5 * TILE, m + 6 * TILE, m + 8 * TILE, NULL
    };
    t.key_products = t.query_products + 2 * PRODUCTS;
    return t;
}

enum { SHARED_BYTES = (8 * TILE + 4 * PRODUCTS) * 2 };

/* Stores the products of the warp's rows of x with a tile of rows. */
__device__ static inline void put_products(bf16 *to, const bf16 *x, const bf16 *rows)
{
    int t = threadIdx.x % 4, row = threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4;
    float c[TILES][4];
    products<DH, TILES>(c, own_rows<DH>(x), rows, SIDE);
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(uint32_t *)(to + (row + 8 * h) * PRODUCTS_LD + n * 8 + 2 * t) =
                pair(c[n][2 * h], c[n][2 * h + 1]);
}

/* A lane's two queries: label and scores of the keys of the same label and of others. */
struct query_labels {
    int label[2];
    float same[2], other[2];
};

__device__ static inline query_labels labels_of(const term_list &r, const ses_rel_seq_head &p,
                                                const two_rows &rows)
{
    query_labels y = {};
    const bf16 *table = (const bf16 *)(const void *)r.label.r + p.head * r.label.dim;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        bool in = r.has_label && rows.i[h] < p.len_q;
        const bf16 *x = in ? rel_x<bf16>(r.label, p, rows.i[h]) : NULL;
        for (int d = threadIdx.x % 4; in && d < r.label.dim; d += 4) {
            y.same[h] += to_float(x[d]) * to_float(table[d]);
            y.other[h] += to_float(x[d]) * to_float(table[r.label.heads * r.label.dim + d]);
        }
        y.same[h] = quad_sum(y.same[h]), y.other[h] = quad_sum(y.other[h]);
        if (in) y.label[h] = r.label.label[p.k0 + rows.i[h] + p.len_k - p.len_q];
    }
    return y;
}

/* Adds the terms to the scores of the keys from j0 on; `step` counts the tiles of keys. */
__device__ static inline void add_terms(float s[TILES][4], const ses_attn &a, const term_list &r,
                                        const ses_rel_seq_head &p, const term_tiles &m, const two_rows &rows,
                                        const query_labels &own, int64_t j0, int step)
{
    int t = threadIdx.x % 4, row = threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4;
#pragma unroll
    for (int at = 0; at < 2 * TILES; at++) {
        int j = at / 2 * 8 + 2 * t + at % 2;
        bool is_key = j0 + j < p.len_k;
        int label = r.has_label && is_key ? r.label.label[p.k0 + j0 + j] : 0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = row + 8 * h, c = j - i + SIDE - 1, column = c & (SIDE - 1);
            float sum = 0;
            if (r.has_query)
                sum +=
                    to_float(m.query_products[((step + c / SIDE) & 1) * PRODUCTS + i * PRODUCTS_LD + column]);
            if (r.has_key) sum += to_float(m.key_products[c / SIDE * PRODUCTS + j * PRODUCTS_LD + column]);
            if (r.has_label) sum += label == own.label[h] ? own.same[h] : own.other[h];
            float *score = &s[at / 2][2 * h + at % 2];
            *score += sum * r.scale;
            if (r.mask && is_key && rows.i[h] < p.len_q)
                *score += r.mask[p.mask + rows.i[h] * p.len_k + j0 + j] / a.scale;
        }
    }
}

__global__ static void __launch_bounds__(THREADS, 2)
    attend_terms(ses_attn a, term_list r, attn_dropout drop, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    term_tiles m = tiles_at(shared);
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t pairs = r.mask ? pairs_before(p.seq, a.cu_seqlens_q, a.cu_seqlens_k, NULL) : 0;
    ses_rel_seq_head part = rel_part(r.has_query ? r.query
                                     : r.has_key ? r.key
                                                 : r.label,
                                     p.seq, p.head, pairs);
    ses_rel_seq_head unreversed = part; /* terms by keys */
    unreversed.reversed = false;
    int64_t first = blockIdx.x % tiles * SIDE;
    if (first >= p.len_q) return;
    int64_t n_rows = p.len_q - first < SIDE ? p.len_q - first : SIDE, ahead = p.len_k - p.len_q;
    ses_attn_range all = block_key_range(a, p, first, n_rows);
    int64_t begin = all.begin / SIDE * SIDE, distance = begin - first - ahead - (SIDE - 1);
    int dim = (int)a.dim;
    const bf16 *from_k = head_rows<bf16>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const bf16 *from_v = head_rows<bf16>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    auto load_rows = [&](int chunk) {
        int64_t e0 = distance + chunk * SIDE, end = p.len_k - first - ahead;
        if (r.has_query) load_distances<DH>(m.query_rows, r.query, part, e0, end);
        if (r.has_key) load_distances<DH>(m.key_rows + chunk % 2 * TILE, r.key, unreversed, e0, end);
    };
    auto load_keys = [&](int64_t j0, int slot) {
        load_tile<DH>(m.k, from_k, a.k_row, j0, p.len_k, dim);
        load_tile<DH>(m.v + slot * TILE, from_v, a.v_row, j0, p.len_k, dim);
    };
    load_tile<DH>(m.q, head_rows<bf16>(a.q, a.q_row, a.q_head, p.q0, a, p.head), a.q_row, first, p.len_q,
                  dim);
    if (r.has_query) load_tile<DH>(m.x, rel_x<bf16>(r.query, part, 0), r.query.x_row, first, p.len_q, dim);
    load_keys(begin, 0);
    load_rows(0);
    copies_end();
    two_rows rows = rows_of(a, p, first);
    query_labels own = labels_of(r, part, rows);
    copies_wait<0>();
    __syncthreads();
    if (r.has_query) put_products(m.query_products, m.x, m.query_rows);
    __syncthreads();
    load_rows(1);
    copies_end();
    float max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 }, out[DH / 8][4] = {};
    int step = 0;
    for (int64_t j0 = begin; j0 < all.end; j0 += SIDE, step++) {
        copies_wait<0>();
        __syncthreads();
        for (int c = 0; r.has_key && c < 2; c++)
            put_products(m.key_products + c * PRODUCTS, m.k, m.key_rows + (step + c) % 2 * TILE);
        if (r.has_query) put_products(m.query_products + (step + 1) % 2 * PRODUCTS, m.x, m.query_rows);
        float s[TILES][4];
        products<DH, TILES>(s, own_rows<DH>(m.q), m.k, SIDE);
        __syncthreads();
        if (j0 + SIDE < all.end) {
            load_keys(j0 + SIDE, (step + 1) % 2);
            load_rows(step + 2);
        }
        copies_end();
        add_terms(s, a, r, part, m, rows, own, j0, step);
        finish_scores(s, a, p, rows, j0);
        exponentials(s, max, sum, out, a.scale * log2_e);
        drop_pairs(s, a, p, drop, rows, j0);
        accumulate_tile<DH>(out, s, m.v + step % 2 * TILE);
    }
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float total = quad_sum(sum[h]);
        by[h] = total > 0 ? 1 / total : 0;
    }
    dst<bf16> to = { (bf16 *)(void *)a.out, false, false };
    store_rows<DH>(to, out, first, p.len_q, p.q0 * a.out_row + p.head * a.dim, a.out_row, dim, by);
}

/* Copies move 16 bytes. */
static bool is_aligned(const ses_relative *t)
{
    return (t->x_row | t->x_head) % 8 == 0 && aligned16(t->x) && aligned16(t->r);
}

/* Adds a term to the list; false: this kernel cannot compute it. Terms from the keys must read the keys of
 * attention. */
static bool add_term(term_list *to, const ses_attn *a, const ses_relative *t)
{
    bool of_keys = t->x == a->k && t->x_row == a->k_row && t->x_head == ses_attn_head_stride(a->k_head, a);
    bool *has = !t->dist_to_row ? &to->has_label : t->x_is_key ? &to->has_key : &to->has_query;
    if (*has || t->q_pos || t->dim != a->dim || !is_aligned(t)) return false;
    if (t->x_is_key && (!t->dist_to_row || !of_keys || t->reversed_from < t->seqs)) return false;
    *has = true;
    *(!t->dist_to_row ? &to->label : t->x_is_key ? &to->key : &to->query) = *t;
    return true;
}

bool attention_terms(ses_cuda *g, const ses_attn *a)
{
    const ses_score_terms *terms = a->terms;
    term_list list = {};
    list.mask = terms->term[0].mask, list.scale = (float)(terms->term[0].scale / a->scale);
    if (a->dim > DH || a->lse || a->rel_bias || !attention_mma_fits(a)) return false;
    for (int i = 0; i < terms->n; i++)
        if (!add_term(&list, a, &terms->term[i])) return false;
    int64_t tiles = ceil_div(a->max_seqlen_q, SIDE);
    allow_shared(g, attend_terms, SHARED_BYTES);
    attend_terms<<<(unsigned)(a->seqs * a->heads * tiles), THREADS, SHARED_BYTES, ses_cuda_stream(g)>>>(
        *a, list, attn_dropout_of(a), tiles);
    check_launch(g);
    return true;
}
