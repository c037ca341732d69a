/* Reads a case folder and converts its padded arrays to an unpadded batch. */
#include "case.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const double *golden_values(golden_case *c, const char *name, int64_t *count, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, name);
    if (!x) return NULL;
    double *out = ses_arena_array(&c->mem, (size_t)x->count, sizeof *out, e);
    if (!out || !ses_convert(out, SES_F64, x->data, x->dtype, (size_t)x->count, e)) return NULL;
    *count = x->count;
    return out;
}

static bool find_shape(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *ids = ses_safetensors_find(c->golden, "input.input_ids");
    if (!ids) return ses_fail(e, SES_EFORMAT, "golden.safetensors: no \"input.input_ids\"");
    if (ids->rank < 2 || ids->rank > 3 || ids->count < 1 || ids->count > INT32_MAX)
        return ses_fail(e, SES_EFORMAT,
                        "golden.safetensors: \"input.input_ids\" must be [B, S] or [B, N, S]");
    c->width = ids->dim[ids->rank - 1];
    c->rows = ids->count / c->width;
    if (ids->rank == 3) c->batch.choices = ids->dim[1];
    /* encoder-decoders name the outputs of both */
    for (size_t i = 0; i < ses_safetensors_count(c->golden); i++)
        c->encoder_decoder |= !strncmp(ses_safetensors_at(c->golden, i)->name, "output.encoder_", 15);
    return true;
}

/* Checks that a double from a file is a 32-bit integer. */
static bool to_int(double x, int32_t *out, const char *name, ses_err *e)
{
    if (!(x >= INT32_MIN && x <= INT32_MAX) || x != floor(x))
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" contains %g, expected a 32-bit integer",
                        name, x);
    *out = (int32_t)x;
    return true;
}

/* Concatenates the tokens that are not masked, row after row. */
static bool unpad(golden_case *c, ses_err *e)
{
    int64_t n = c->rows * c->width, count, t = 0;
    const double *mask = golden_values(c, "input.attention_mask", &count, e);
    int32_t *index = ses_arena_array(&c->mem, (size_t)n, sizeof *index, e);
    int32_t *cu = ses_arena_array(&c->mem, (size_t)c->rows + 1, sizeof *cu, e);
    int32_t *position = ses_arena_array(&c->mem, (size_t)n, sizeof *position, e);
    if (!index || !cu || !position) return false;
    if (mask && count != n)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: mask and ids differ in size");
    for (int64_t i = 0; i < n; i++) {
        if (i % c->width == 0) cu[i / c->width] = (int32_t)t;
        if (mask && mask[i] == 0) continue;
        position[t] = (int32_t)(i % c->width);
        index[t++] = (int32_t)i;
    }
    cu[c->rows] = (int32_t)t;
    bool prefix = true; /* padding only after the tokens: positions may be counted */
    for (int64_t s = 0; s < c->rows; s++)
        for (int32_t i = cu[s]; i < cu[s + 1]; i++) prefix &= position[i] == i - cu[s];
    c->pads_at_end = prefix;
    c->index = index;
    c->batch.seqs = c->rows;
    c->batch.tokens = t;
    c->batch.cu_seqlens = cu;
    c->batch.positions = position;
    return true;
}

/* An integer input: the values at real tokens if it is [rows, width], all values if it is smaller. *out NULL:
 * absent. */
static bool ints(golden_case *c, const char *name, const int32_t **out, ses_err *e)
{
    int64_t count;
    *out = NULL;
    const double *x = golden_values(c, name, &count, e);
    if (!x) return !e->code;
    bool padded = count == c->rows * c->width && count != c->rows;
    int64_t n = padded ? c->batch.tokens : count;
    int32_t *y = ses_arena_array(&c->mem, (size_t)n, sizeof *y, e);
    for (int64_t i = 0; y && i < n; i++)
        if (!to_int(x[padded ? c->index[i] : i], &y[i], name, e)) return false;
    *out = y;
    return y != NULL;
}

/* Labels of a decoder: rows of their own width, real up to the first ignored one. */
static bool targets(golden_case *c, const ses_tensor_entry *x, ses_err *e)
{
    int64_t count, n = 0;
    const double *padded = golden_values(c, x->name, &count, e);
    int32_t *y = padded ? ses_arena_array(&c->mem, (size_t)count, sizeof *y, e) : NULL;
    int32_t *cu = y ? ses_arena_array(&c->mem, (size_t)c->rows + 1, sizeof *cu, e) : NULL;
    if (!cu) return false;
    c->target_width = x->dim[1];
    for (int64_t i = 0; i < count; i++) {
        if (i % c->target_width == 0) cu[i / c->target_width] = (int32_t)n;
        bool first = n == cu[i / c->target_width] + i % c->target_width;
        if (padded[i] != SES_IGNORE_INDEX && first && !to_int(padded[i], &y[n++], x->name, e)) return false;
    }
    cu[c->rows] = (int32_t)n;
    c->batch.labels = y;
    c->batch.target_cu_seqlens = cu;
    return true;
}

/* The decoder's input, if given: rows of their own width, real up to the first masked one. */
static bool decoder_input(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.decoder_input_ids");
    int64_t count, masked = 0, n = 0;
    if (!x) return true;
    if (x->rank != 2 || x->dim[0] != c->rows || x->count < 1)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" must be [B, T]", x->name);
    const double *padded = golden_values(c, x->name, &count, e);
    const double *mask = golden_values(c, "input.decoder_attention_mask", &masked, e);
    int32_t *y = padded && !e->code ? ses_arena_array(&c->mem, (size_t)count, sizeof *y, e) : NULL;
    int32_t *cu = y ? ses_arena_array(&c->mem, (size_t)c->rows + 1, sizeof *cu, e) : NULL;
    if (!cu) return false;
    if (mask && masked != count)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: the decoder's mask and ids differ in size");
    c->target_width = x->dim[1];
    for (int64_t i = 0; i < count; i++) {
        if (i % c->target_width == 0) cu[i / c->target_width] = (int32_t)n;
        bool first = n == cu[i / c->target_width] + i % c->target_width;
        if ((!mask || mask[i] != 0) && first && !to_int(padded[i], &y[n++], x->name, e)) return false;
    }
    cu[c->rows] = (int32_t)n;
    c->batch.target_ids = y;
    c->batch.target_cu_seqlens = cu;
    return true;
}

/* Converts positions in the padded row to positions among its real tokens. */
static bool real_positions(golden_case *c, const char *name, const int32_t **out, ses_err *e)
{
    const int32_t *at;
    if (!ints(c, name, &at, e) || !at) return !e->code;
    int32_t *y = ses_arena_array(&c->mem, (size_t)c->rows, sizeof *y, e);
    for (int64_t s = 0; y && s < c->rows; s++) {
        y[s] = SES_IGNORE_INDEX;
        for (int32_t t = c->batch.cu_seqlens[s]; t < c->batch.cu_seqlens[s + 1]; t++)
            if (c->batch.positions[t] == at[s]) y[s] = t - c->batch.cu_seqlens[s];
    }
    *out = y;
    return y != NULL;
}

/* target_mapping [B, P, S]: the position that each target predicts. A row of zeros is not a target. */
static bool predicted_positions(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.target_mapping");
    int64_t count, n = 0, P = x && x->rank == 3 ? x->dim[1] : 0;
    if (!x) return true;
    if (x->rank != 3 || x->dim[0] != c->rows || x->dim[2] != c->width)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"input.target_mapping\" must be [B, P, S]");
    const double *map = golden_values(c, x->name, &count, e);
    int32_t *cu = ses_arena_array(&c->mem, (size_t)c->rows + 1, sizeof *cu, e);
    int32_t *index = ses_arena_array(&c->mem, (size_t)(c->rows * P) + 1, sizeof *index, e);
    int32_t *from = ses_arena_array(&c->mem, (size_t)(c->rows * P) + 1, sizeof *from, e);
    if (!map || !cu || !index || !from) return false;
    for (int64_t r = 0; r < c->rows * P; r++) {
        int64_t s = r / P;
        if (r % P == 0) cu[s] = (int32_t)n;
        for (int32_t t = c->batch.cu_seqlens[s]; t < c->batch.cu_seqlens[s + 1]; t++)
            if (map[r * c->width + c->index[t] % c->width] != 0) {
                index[n] = t - c->batch.cu_seqlens[s];
                from[n++] = (int32_t)r;
                break;
            }
    }
    cu[c->rows] = (int32_t)n;
    c->target_width = P;
    c->target_index = from;
    c->batch.target_cu_seqlens = cu;
    c->batch.predict_positions = index;
    return true;
}

/* perm_mask [B, S, S]: 1 if a token must not attend to another. */
static bool permutation(golden_case *c, ses_err *e)
{
    int64_t count, n = 0, pairs = 0;
    const int32_t *cu = c->batch.cu_seqlens, *index = c->index;
    const double *mask = golden_values(c, "input.perm_mask", &count, e);
    if (!mask) return !e->code;
    if (count != c->rows * c->width * c->width)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"input.perm_mask\" must be [B, S, S]");
    for (int64_t s = 0; s < c->rows; s++) pairs += (int64_t)(cu[s + 1] - cu[s]) * (cu[s + 1] - cu[s]);
    uint8_t *y = ses_arena_array(&c->mem, (size_t)pairs, sizeof *y, e);
    for (int64_t s = 0; y && s < c->rows; s++)
        for (int32_t i = cu[s]; i < cu[s + 1]; i++)
            for (int32_t j = cu[s]; j < cu[s + 1]; j++)
                y[n++] = mask[index[i] * c->width + index[j] % c->width] > 0;
    c->batch.perm_mask = y;
    return y != NULL;
}

/* mems.N [M, B, C] of every layer, in the batch's order: sequence after sequence. */
static bool mems(golden_case *c, ses_err *e)
{
    int64_t layers = 0, M = 0, C = 0, count;
    char name[32];
    for (;; layers++) {
        snprintf(name, sizeof name, "input.mems.%lld", (long long)layers);
        const ses_tensor_entry *x = ses_safetensors_find(c->golden, name);
        if (!x) break;
        if (x->rank != 3 || x->dim[1] != c->rows || (layers && (x->dim[0] != M || x->dim[2] != C)))
            return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" must be [M, B, C]", name);
        M = x->dim[0], C = x->dim[2];
    }
    if (!layers || !M) return true;
    int32_t *cu = ses_arena_array(&c->mem, (size_t)c->rows + 1, sizeof *cu, e);
    ses_real *y = ses_arena_array(&c->mem, (size_t)(layers * M * c->rows * C), sizeof *y, e), *to = y;
    if (!cu || !y) return false;
    for (int64_t l = 0; l < layers; l++) {
        snprintf(name, sizeof name, "input.mems.%lld", (long long)l);
        const double *x = golden_values(c, name, &count, e);
        if (!x) return false;
        for (int64_t s = 0; s < c->rows; s++)
            for (int64_t m = 0; m < M; m++)
                for (int64_t j = 0; j < C; j++) *to++ = (ses_real)x[(m * c->rows + s) * C + j];
    }
    for (int64_t s = 0; s <= c->rows; s++) cu[s] = (int32_t)(s * M);
    c->mem_len = M;
    c->batch.mem_cu_seqlens = cu;
    c->batch.mems = y;
    return true;
}

/* Checks the size of an array; a kernel would read past the end of a shorter one. */
static bool check_size(golden_case *c, const char *name, int64_t per_row, int64_t per_token, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, name);
    int64_t n = c->rows * c->width;
    if (!x || (per_token && x->count == n) || (per_row && x->count == per_row)) return true;
    return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" has %lld numbers for %lld rows of %lld", name,
                    (long long)x->count, (long long)c->rows, (long long)c->width);
}

/* Double heads: transformers returns one loss per head, and a trainer may have used only the first; the
 * second head then has no gradient. */
static bool choices(golden_case *c, ses_err *e)
{
    int64_t examples = c->rows / (c->batch.choices ? c->batch.choices : 1);
    if (!check_size(c, "input.mc_token_ids", c->rows, 0, e) ||
        !check_size(c, "input.mc_labels", examples, 0, e) ||
        !real_positions(c, "input.mc_token_ids", &c->batch.choice_positions, e))
        return false;
    c->first_loss_only = ses_safetensors_find(c->golden, "output.mc_loss") &&
                         !ses_safetensors_find(c->golden, "grad.multiple_choice_head.summary.weight");
    return c->batch.pair_labels || ints(c, "input.mc_labels", &c->batch.pair_labels, e);
}

/* Labels of the predicted positions, [B, P]. */
static bool predicted_labels(golden_case *c, const ses_tensor_entry *x, ses_err *e)
{
    int64_t count, n = c->batch.target_cu_seqlens[c->rows];
    const double *padded = golden_values(c, x->name, &count, e);
    int32_t *y = padded ? ses_arena_array(&c->mem, (size_t)n + 1, sizeof *y, e) : NULL;
    if (y && count != c->rows * c->target_width)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" must be [B, P]", x->name);
    for (int64_t i = 0; y && i < n; i++)
        if (!to_int(padded[c->target_index[i]], &y[i], x->name, e)) return false;
    c->batch.labels = y;
    return y != NULL;
}

/* The valid size depends on the head: labels per token, row or example. Missing labels are ignored. */
static bool all_labels(golden_case *c, ses_err *e)
{
    const ses_batch *b = &c->batch;
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.labels");
    int64_t examples = c->rows / (b->choices ? b->choices : 1), n = x->count,
            max_labels = b->tokens > c->rows ? b->tokens : c->rows;
    const int32_t *given;
    if (n != examples && !check_size(c, "input.labels", c->rows, 1, e)) return false;
    if (!ints(c, "input.labels", &given, e)) return false;
    if (n == c->rows * c->width && n != c->rows) n = b->tokens;
    int32_t *y = ses_arena_array(&c->mem, (size_t)max_labels, sizeof *y, e);
    for (int64_t i = 0; y && i < max_labels; i++) y[i] = i < n ? given[i] : SES_IGNORE_INDEX;
    c->batch.labels = y;
    return y != NULL;
}

/* Beam search for answers: the CLS token, whether there is no answer, tokens that are not part of one. */
static bool answers(golden_case *c, ses_err *e)
{
    const int32_t *not_answer;
    if (!check_size(c, "input.cls_index", c->rows, 0, e) ||
        !check_size(c, "input.is_impossible", c->rows, 0, e) || !check_size(c, "input.p_mask", 0, 1, e) ||
        !ints(c, "input.p_mask", &not_answer, e))
        return false;
    int32_t *y = not_answer ? ses_arena_array(&c->mem, (size_t)c->batch.tokens, sizeof *y, e) : NULL;
    for (int64_t t = 0; y && t < c->batch.tokens; t++) y[t] = !not_answer[t];
    c->batch.answer_mask = y;
    if (ses_safetensors_find(c->golden, "input.cls_index") &&
        !real_positions(c, "input.cls_index", &c->batch.choice_positions, e))
        return false;
    return c->batch.pair_labels || ints(c, "input.is_impossible", &c->batch.pair_labels, e);
}

/* Vectors beside tokens: input.modal_rows [B, S] and input.modal_vectors [N, width]. */
static bool modal(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.modal_vectors");
    int64_t count;
    if (!x) return true;
    const double *v = golden_values(c, x->name, &count, e);
    ses_real *y = v ? ses_arena_array(&c->mem, (size_t)count, sizeof *y, e) : NULL;
    for (int64_t i = 0; y && i < count; i++) y[i] = (ses_real)v[i];
    c->batch.modal_vectors = y, c->batch.n_modal = x->dim[0];
    return y && check_size(c, "input.modal_rows", 0, 1, e) &&
           ints(c, "input.modal_rows", &c->batch.modal_rows, e);
}

/* Bytes of words: input.word_chars [B, S, W], -1 after the last byte of a word. */
static bool words(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.word_chars");
    int64_t count = 0, n = 0;
    if (!x) return true;
    if (x->rank != 3 || x->dim[0] != c->rows || x->dim[1] != c->width)
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"input.word_chars\" must be [B, S, W]");
    const double *byte = golden_values(c, x->name, &count, e);
    int32_t *y = ses_arena_array(&c->mem, (size_t)count + 1, sizeof *y, e),
            *cu = ses_arena_array(&c->mem, (size_t)c->batch.tokens + 1, sizeof *cu, e);
    if (!byte || !y || !cu) return false;
    for (int64_t t = 0; t < c->batch.tokens; t++, cu[t] = (int32_t)n)
        for (int64_t k = 0; k < x->dim[2] && byte[c->index[t] * x->dim[2] + k] >= 0; k++)
            if (!to_int(byte[c->index[t] * x->dim[2] + k], &y[n++], x->name, e)) return false;
    c->batch.word_chars = y, c->batch.word_char_cu = cu;
    return true;
}

static bool labels(golden_case *c, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->golden, "input.labels");
    int64_t count;
    if (!x) return true;
    if (c->batch.predict_positions) return predicted_labels(c, x, e);
    bool real = x->dtype == SES_F32 || x->dtype == SES_F64;
    if (c->encoder_decoder && !c->batch.target_cu_seqlens && x->rank == 2 && !real && x->dim[0] == c->rows)
        return targets(c, x, e);
    if (!real) return all_labels(c, e);
    const ses_tensor_entry *logits = ses_safetensors_find(c->golden, "output.logits");
    if (!logits || logits->count != x->count)
        return ses_fail(e, SES_EFORMAT,
                        "golden.safetensors: \"input.labels\" has %lld numbers, expected as many as "
                        "\"output.logits\" has",
                        (long long)x->count);
    const double *padded = golden_values(c, "input.labels", &count, e);
    ses_real *y = padded ? ses_arena_array(&c->mem, (size_t)count, sizeof *y, e) : NULL;
    for (int64_t i = 0; y && i < count; i++) y[i] = (ses_real)padded[i];
    c->batch.targets = y;
    return y != NULL;
}

static bool fill_batch(golden_case *c, ses_err *e)
{
    ses_batch *b = &c->batch;
    if (!check_size(c, "input.token_type_ids", 0, 1, e) || !check_size(c, "input.langs", 0, 1, e) ||
        !check_size(c, "input.position_ids", 0, 1, e) ||
        !check_size(c, "input.next_sentence_label", c->rows, 0, e) ||
        !check_size(c, "input.sentence_order_label", c->rows, 0, e) ||
        !check_size(c, "input.start_positions", c->rows, 0, e) ||
        !check_size(c, "input.end_positions", c->rows, 0, e))
        return false;
    const int32_t *position;
    if (!ints(c, "input.input_ids", &b->ids, e) || !ints(c, "input.token_type_ids", &b->segments, e) ||
        !ints(c, "input.position_ids", &position, e) ||
        !ints(c, "input.next_sentence_label", &b->pair_labels, e) ||
        !real_positions(c, "input.start_positions", &b->starts, e) ||
        !real_positions(c, "input.end_positions", &b->ends, e) || !permutation(c, e) ||
        !predicted_positions(c, e) || !mems(c, e) || !decoder_input(c, e) || !choices(c, e) ||
        !answers(c, e) || !modal(c, e) || !words(c, e) || !labels(c, e))
        return false;
    c->positions_count_pads = !position && !c->pads_at_end;
    if (!c->positions_count_pads) b->positions = position;
    /* language ids are segments */
    if (!b->segments && !ints(c, "input.langs", &b->segments, e)) return false;
    return b->pair_labels || ints(c, "input.sentence_order_label", &b->pair_labels, e);
}

bool golden_case_open(golden_case *c, const char *dir, ses_err *e)
{
    memset(c, 0, sizeof *c);
    c->dir = dir;
    c->name = ses_path_basename(dir);
    char *path = ses_path_join(dir, "golden.safetensors", e);
    c->golden = path ? ses_safetensors_open(path, e) : NULL;
    ses_free(path);
    return c->golden && find_shape(c, e) && unpad(c, e) && fill_batch(c, e);
}

void golden_case_free(golden_case *c)
{
    ses_safetensors_free(c->golden);
    ses_arena_free(&c->mem);
}
