/* Attention between words: see attention_units.h. */
#include "attention_units.h"

#include <string.h>

static void divide_rows(const ses_attention_units *rows, int64_t cols, bool renormalize, float *out)
{
    for (int64_t i = 0; i < rows->n; i++, out += cols) {
        double by = 0;
        for (int64_t t = 0; !renormalize && t < rows->tokens; t++) by += rows->of[t] == i;
        for (int64_t j = 0; renormalize && j < cols; j++) by += (double)out[j];
        for (int64_t j = 0; by > 0 && j < cols; j++) out[j] = (float)((double)out[j] / by);
    }
}

void ses_attention_merge(const float *weights, const ses_attention_units *rows,
                         const ses_attention_units *cols, bool renormalize, float *out)
{
    memset(out, 0, (size_t)(rows->n * cols->n) * sizeof *out);
    for (int64_t i = 0; i < rows->tokens; i++, weights += cols->tokens) {
        if (rows->of[i] < 0) continue;
        float *to = out + rows->of[i] * cols->n;
        for (int64_t j = 0; j < cols->tokens; j++)
            if (cols->of[j] >= 0) to[cols->of[j]] += weights[j];
    }
    divide_rows(rows, cols->n, renormalize, out);
}
