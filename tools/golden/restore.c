/* Restores position tables. Some cases were made with a table that transformers does not save (sinusoidal in
 * a trained model, random in a random one). Such a table is read off the first hidden state, which is tokens
 * plus positions: one row per position, from the first sequence that has it. All other sequences, and all
 * later outputs, are compared as usual. */
#include "compare.h"
#include "op/op.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

/* Adds the difference of theirs and ours to each row of the table. */
static bool correct_table(golden_case *c, ses_tape *t, const ses_output *o, const ses_tensor *table,
                          const double *theirs, int64_t width, const int32_t *cu, int64_t offset, ses_err *e)
{
    int64_t cols = ses_cols(table);
    ses_device *dev = ses_tape_device(t);
    size_t bytes = (size_t)ses_count(table) * sizeof(ses_real);
    ses_real *row = ses_arena_array(&c->mem, (size_t)ses_count(table), sizeof *row, e);
    ses_real *ours = ses_arena_array(&c->mem, (size_t)ses_count(o->tensor), sizeof *ours, e);
    bool *done = ses_arena_array(&c->mem, (size_t)ses_rows(table), sizeof *done, e);
    if (!row || !ours || !done || !ses_tape_read(t, o->tensor, ours)) return false;
    dev->mem->download(dev, row, ses_master_data(table), bytes);
    for (int64_t s = 0; s < c->rows; s++)
        for (int64_t i = cu[s]; i < cu[s + 1]; i++) {
            int64_t row_index = i - cu[s] + offset;
            for (int64_t j = 0; !done[row_index] && j < cols; j++)
                row[row_index * cols + j] +=
                    (ses_real)(theirs[(s * width + i - cu[s]) * cols + j] - (double)ours[i * cols + j]);
            done[row_index] = true;
        }
    dev->mem->upload(dev, ses_master_data(table), row, bytes);
    return true;
}

bool golden_restore(golden_case *c, const ses_model *m, ses_tape *t, const ses_outputs *out, bool *restored,
                    ses_err *e)
{
    static const struct {
        const char *param, *output;
        bool target;
    } stack[] = { { "embed.position", "hidden_states.0", false },
                  { "embed.position", "encoder_hidden_states.0", false },
                  { "decoder.embed.position", "decoder_hidden_states.0", true } };
    const ses_batch *b = &c->batch;
    *restored = false;
    for (size_t i = 0; i < SES_LEN(stack) && c->pads_at_end; i++) {
        char name[64];
        int64_t count;
        const ses_param *p = ses_store_find(ses_model_store(m), stack[i].param);
        snprintf(name, sizeof name, "output.%s", stack[i].output);
        const double *theirs = golden_values(c, name, &count, e);
        if (e->code) return false;
        if (!p || p->role != SES_PARAM_BUFFER || !theirs) continue;
        if (ses_model_param_in_file(m, p)) continue;
        const int32_t *cu = stack[i].target ? b->target_cu_seqlens : b->cu_seqlens;
        int64_t width = stack[i].target ? c->target_width : c->width,
                offset = ses_rows(p->tensor) - ses_model_max_tokens(m);
        const ses_output *states = cu ? ses_outputs_find(out, stack[i].output) : NULL;
        if (!states || count != c->rows * width * ses_cols(p->tensor)) continue;
        if (!correct_table(c, t, states, p->tensor, theirs, width, cu, offset, e)) return false;
        ses_store_sync_bf16(ses_model_store(m));
        *restored = true;
    }
    return true;
}
