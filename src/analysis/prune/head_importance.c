/* Importance of heads (Michel et al. 2019): the mean over texts of |output of the head . gradient of the
 * loss|, the derivative by a factor of the head; and accuracy with heads masked. */
#include "prune.h"

#include <math.h>
#include <stdio.h>

enum { BATCH_TOKENS = 4096 };

/* Adds texts first .. first + n - 1; returns n, 0 after an error. */
static size_t fill(ses_prune *p, size_t first, ses_err *e)
{
    ses_batch_builder *b = &p->pass.in;
    size_t n = 0;
    for (; first + n < p->n_texts; n++) {
        const ses_prune_text *t = &p->text[first + n];
        if (n && (int64_t)(b->ids.n + b->labels.n) + t->n + t->labels > BATCH_TOKENS) break;
        if (!ses_batch_builder_add(b, t->id, p->sets_segments ? t->segment : NULL, t->n, e) ||
            !ses_ints_append(&b->labels, t->label, t->labels, e) ||
            (p->writes && !ses_batch_builder_end_target(b, e)))
            return 0;
    }
    return n;
}

static const char *prefix_of(const ses_prune *p, ses_part part)
{
    bool decoder = ses_model_part_layers(p->m, SES_PART_DECODER) > 0;
    return part == SES_PART_CROSS     ? "cross_"
           : part == SES_PART_DECODER ? "decoder_"
           : decoder                  ? "encoder_"
                                      : "";
}

/* Adds |output . gradient| of each sequence to the heads of one layer, which start at h. */
static bool add_layer(ses_prune *p, ses_prune_head *h, ses_err *e)
{
    char name[48];
    snprintf(name, sizeof name, "%shead_outputs.%d", prefix_of(p, h->part), (int)h->layer);
    const ses_batch *b = &p->pass.batch;
    const ses_output *y = ses_pass_output(&p->pass, name, e);
    const ses_real *x = ses_pass_read(&p->pass, name, e);
    if (!x) return false;
    int64_t heads = ses_model_part_heads(p->m, h->part, h->layer), C = ses_cols(y->tensor), D = C / heads;
    ses_real *g = ses_arena_array(&p->mem, (size_t)ses_count(y->tensor), sizeof *g, e);
    if (!g || !ses_tape_read_grad(p->pass.tape, y->tensor, g)) return ses_tape_ok(p->pass.tape, e) && false;
    const int32_t *target = b->target_cu_seqlens,
                  *cu = target && h->part != SES_PART_MAIN ? target : b->cu_seqlens;
    for (int64_t s = 0; s < b->seqs; s++) {
        /* the loss is a mean over the labels of the batch; here over the labels of a text */
        double scale =
            target ? (double)target[b->seqs] / (double)(target[s + 1] - target[s]) : (double)b->seqs;
        for (int64_t k = 0; k < heads; k++) {
            double sum = 0;
            for (int64_t t = cu[s]; t < cu[s + 1]; t++)
                for (int64_t d = k * D; d < (k + 1) * D; d++)
                    sum += (double)x[t * C + d] * (double)g[t * C + d];
            h[k].raw += fabs(sum) * scale;
        }
    }
    return true;
}

static bool add_batch(ses_prune *p, ses_err *e)
{
    ses_output_request r = { .head_outputs = true, .capture_gradients = true };
    p->pass.record = true;
    if (!ses_pass_run(&p->pass, &r, e)) return false;
    ses_backward(p->pass.tape, p->pass.out.loss);
    if (!ses_tape_ok(p->pass.tape, e)) return false;
    for (size_t i = 0; i < p->n_heads;) {
        ses_mark mark = ses_arena_mark(&p->mem);
        if (!add_layer(p, &p->head[i], e)) return false;
        ses_arena_rewind(&p->mem, mark);
        i += (size_t)ses_model_part_heads(p->m, p->head[i].part, p->head[i].layer);
    }
    return true;
}

bool ses_prune_importance(ses_prune *p, ses_err *e)
{
    for (size_t first = 0, n; first < p->n_texts; first += n) {
        ses_analysis_progress(p->call, "importance", (int64_t)first, (int64_t)p->n_texts);
        if (!(n = fill(p, first, e)) || !add_batch(p, e)) return false;
    }
    for (size_t i = 0, n; i < p->n_heads; i += n) {
        double sum = 0;
        n = (size_t)ses_model_part_heads(p->m, p->head[i].part, p->head[i].layer);
        for (size_t j = i; j < i + n; j++) {
            p->head[j].raw /= (double)p->n_texts;
            sum += p->head[j].raw * p->head[j].raw;
        }
        for (size_t j = i; j < i + n; j++) p->head[j].importance = sum > 0 ? p->head[j].raw / sqrt(sum) : 0;
    }
    return true;
}

static int64_t count_right(ses_prune *p, const ses_edits *edits, ses_err *e)
{
    const char *output = p->m->class->head[0].output;
    int64_t right = 0;
    ses_output_request r = { .logits = true, .edits = edits };
    p->pass.record = false;
    const ses_real *z = ses_pass_run(&p->pass, &r, e) ? ses_pass_read(&p->pass, output, e) : NULL;
    if (!z) return -1;
    const ses_tensor *y = ses_pass_output(&p->pass, output, e)->tensor;
    int64_t n = ses_cols(y), rows = ses_rows(y);
    for (int64_t s = 0; s < rows; s++) {
        int64_t best = 0;
        for (int64_t j = 1; j < n; j++)
            if (z[s * n + j] > z[s * n + best]) best = j;
        right += best == p->pass.batch.labels[s];
    }
    return right;
}

bool ses_prune_score(ses_prune *p, const ses_prune_head *const *without, size_t n, double *accuracy,
                     ses_err *e)
{
    ses_mark all = ses_arena_mark(&p->mem);
    ses_head_edit *edit = ses_arena_array(&p->mem, n + 1, sizeof *edit, e);
    int64_t right = 0;
    if (!edit) return false;
    for (size_t i = 0; i < n; i++)
        edit[i] = (ses_head_edit){ without[i]->part, without[i]->layer, without[i]->head, 0 };
    ses_edits edits = { .heads = edit, .n_heads = n };
    for (size_t first = 0, k; first < p->n_texts; first += k) {
        if (!(k = fill(p, first, e))) return false;
        int64_t now = count_right(p, &edits, e);
        if (now < 0) return false;
        right += now;
    }
    ses_arena_rewind(&p->mem, all);
    *accuracy = (double)right / (double)p->n_labels;
    return true;
}
