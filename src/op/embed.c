/* y[t] = table[0][id[0][t]] + table[1][id[1][t]] + ... Inputs: table 0, ids 0, table 1, ids 1, ... */
#include "op.h"
#include "tensor/pack.h"

#include <string.h>

typedef struct attr {
    int32_t pad[SES_MAX_TABLES]; /* for each table the id that receives no gradient; -1: none */
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    for (int i = 0; i < n->n_in; i += 2) {
        if (!ses_check_input(n, i, "table", e) || !ses_check_ints(n, i + 1, "ids", e)) return false;
        if (ses_cols(n->in[i]) != ses_cols(n->in[0]) || ses_count(n->in[i + 1]) != ses_count(n->in[1]))
            return ses_fail(e, SES_EARG, "all tables must have the same width and all ids the same length");
        if (!ses_check_range(n, i + 1, ses_rows(n->in[i]), false, "id", e)) return false;
    }
    return ses_node_out(n, SES_DIM(ses_count(n->in[1]), ses_cols(n->in[0])), e);
}

/* Dequantizes the requested rows of a quantized table, in the order of the tokens. */
static bool dequantize(const ses_node *n, int i, const ses_real **table, const int32_t **id)
{
    int64_t T = ses_rows(n->out), C = ses_cols(n->out);
    ses_real *rows = ses_scratch(n, T * C);
    int32_t *order = (int32_t *)(void *)ses_scratch(n, T);
    if (!rows || !order) return false;
    n->k->dequantize_rows(n->exec, rows, ses_pack_quant_rows(n->in[i]), *id, T, C);
    for (int64_t t = 0; t < T; t++) order[t] = (int32_t)t;
    *table = rows, *id = order;
    return true;
}

static void forward(const ses_node *n)
{
    const ses_real *table[SES_MAX_TABLES];
    const int32_t *id[SES_MAX_TABLES];
    for (int i = 0; i < n->n_in; i += 2) {
        table[i / 2] = n->in[i]->f;
        id[i / 2] = n->in[i + 1]->i;
        if (ses_pack_quant_rows(n->in[i]) && !dequantize(n, i, &table[i / 2], &id[i / 2])) return;
    }
    n->k->gather(n->exec, n->out->f, table, id, n->n_in / 2, ses_rows(n->out), ses_cols(n->out));
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    for (int i = 0; i < n->n_in; i += 2) {
        ses_dst grad = ses_grad_zeroed(n, i);
        if (grad.data)
            n->k->scatter_add(n->exec, grad, n->out->grad, n->in[i + 1]->i, ses_rows(n->out),
                              ses_cols(n->out), a->pad[i / 2]);
    }
}

/* pad 2 occurs in no case: the gradient that it skips would differ from finite differences */
static const int32_t ids[] = { 3, 0, 4, 3, 1 }, positions[] = { 0, 1, 2, 0, 1 },
                     segments[] = { 0, 0, 1, 1, 1 };
static const ses_case cases[] = {
    { .dim = { { 5, 7 }, { 5 }, { 3, 7 }, { 5 }, { 2, 7 }, { 5 } },
      .ints = { [1] = ids, [3] = positions, [5] = segments },
      .attr = &(const attr){ { 2, -1, -1, -1 } } },
    { .dim = { { 5, 33 }, { 5 } }, .ints = { [1] = ids }, .attr = &(const attr){ { -1, -1, -1, -1 } } },
    { .dim = { { 5, 1 }, { 5 } },
      .ints = { [1] = ids },
      .attr = &(const attr){ { -1, -1, -1, -1 } },
      .scale = 1e4 },
};
const ses_op ses_op_embed = {
    .name = "embed",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_embed(ses_tape *t, int n, ses_tensor *const table[], ses_tensor *const id[], int32_t pad)
{
    int32_t pads[SES_MAX_TABLES] = { pad };
    for (int i = 1; i < SES_MAX_TABLES; i++) pads[i] = -1;
    return ses_embed_with_pads(t, n, table, id, pads);
}

ses_tensor *ses_embed_with_pads(ses_tape *t, int n, ses_tensor *const table[], ses_tensor *const id[],
                                const int32_t pad[SES_MAX_TABLES])
{
    attr a;
    ses_tensor *in[SES_MAX_IN] = { NULL };
    if (n < 1 || n > SES_MAX_TABLES) {
        ses_tape_fail(t, SES_EARG, "embed: %d tables, expected 1 to %d", n, SES_MAX_TABLES);
        return NULL;
    }
    for (int i = 0; i < n; i++) in[2 * i] = table[i], in[2 * i + 1] = id[i];
    memcpy(a.pad, pad, sizeof a.pad);
    return ses_apply(t, &ses_op_embed, in, 2 * n, &a);
}
