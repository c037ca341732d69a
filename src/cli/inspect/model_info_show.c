/* Prints the facts about a model as text. */
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "flops_info.h"
#include "io/safetensors_impl.h"
#include "model/model_desc.h"
#include "model_info.h"
#include "tensor/shape_text.h"

#include <inttypes.h>
#include <string.h>

static void show_heads(const ses_model_info *i, const ses_term *t)
{
    const ses_class *k = i->model->class;
    if (!k->head[0].head)
        ses_show_line(t, "Head", "none: hidden states of all tokens%s",
                      i->model->c.pooler.present ? " and a pooled output" : "");
    for (size_t h = 0; h < SES_LEN(k->head) && k->head[h].head; h++)
        ses_show_line(t, h ? "" : "Head", "%s: %s%s", k->head[h].head->name, k->head[h].head->description,
                      i->model->head[h].out.w && i->model->head[h].out.w == i->model->stack[0].token
                          ? " (tied to the token embeddings)"
                          : "");
}

static bool show_modules(const ses_sentence *s, const ses_term *t, ses_err *e)
{
    ses_buf text = { 0 };
    char one[160];
    for (size_t k = 0; k < ses_sentence_module_count(s); k++)
        ses_buf_appendf(&text, "%s%s", k ? ", " : "", ses_sentence_describe(s, k, one, sizeof one));
    bool ok = ses_buf_ok(&text, e);
    if (ok) ses_show_line(t, "Modules", "%s", text.data);
    if (ok)
        ses_show_line(t, "Sentence", "%" PRId64 " dimensions, similarity %s, at most %" PRId64 " tokens",
                      ses_sentence_width(s), ses_sentence_similarity(s), ses_sentence_max_tokens(s));
    ses_buf_free(&text);
    return ok;
}

static bool has_labels(const ses_model *m)
{
    const ses_head *h = m->class->head[0].head;
    return h == &ses_head_sequence_classification || h == &ses_head_token_classification;
}

static bool show_labels(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    static const char *const problem[] = { [SES_PROBLEM_UNSET] = "",
                                           [SES_PROBLEM_REGRESSION] = " (regression)",
                                           [SES_PROBLEM_SINGLE] = " (single-label)",
                                           [SES_PROBLEM_MULTI] = " (multi-label)" };
    enum { SHOWN = 20 };
    int64_t n = ses_model_label_count(i->model);
    ses_buf list = { 0 };
    for (int64_t k = 0; k < n && k < SHOWN && ses_model_label_name(i->model, k); k++)
        ses_buf_appendf(&list, "%s%s", k ? ", " : ": ", ses_model_label_name(i->model, k));
    if (list.len && n > SHOWN) ses_buf_puts(&list, ", ...");
    bool ok = ses_buf_ok(&list, e);
    if (ok)
        ses_show_line(t, "Labels", "%" PRId64 "%s%s", n, problem[i->model->c.head.problem],
                      list.len ? list.data : "");
    ses_buf_free(&list);
    return ok;
}

/* "512", or "192 to 576" if layers differ. */
static const char *range_text(char *out, size_t size, const ses_stack *k,
                              int64_t (*of)(const ses_stack *k, int64_t layer))
{
    int64_t least = of(k, 0), most = least;
    for (int64_t i = 1; i < k->depth; i++) {
        int64_t n = of(k, i);
        if (n < least) least = n;
        if (n > most) most = n;
    }
    if (least == most)
        snprintf(out, size, "%" PRId64, most);
    else
        snprintf(out, size, "%" PRId64 " to %" PRId64, least, most);
    return out;
}

static void show_stack(const ses_config *c, const ses_stack *k, const ses_term *t)
{
    char shared[64] = "", heads[48], width[48];
    if (k->n_unique && k->n_unique < k->depth)
        snprintf(shared, sizeof shared, " sharing %d set%s of weights", (int)k->n_unique,
                 k->n_unique == 1 ? "" : "s");
    ses_show_line(t, k->causal ? "Decoder" : "Encoder",
                  "%" PRId64 " layers%s, hidden size %" PRId64 ", %s heads of %" PRId64
                  ", feed-forward %s (%s%s)",
                  k->depth, shared, c->hidden, range_text(heads, sizeof heads, k, ses_stack_heads),
                  c->attention.head_size ? c->attention.head_size : c->hidden / k->heads,
                  range_text(width, sizeof width, k, ses_stack_ffn),
                  c->ffn.gated || c->ffn.fused_gate ? "gated " : "", ses_act_name(c->ffn.act));
}

static void show_config(const ses_model_info *i, const ses_term *t)
{
    const ses_model *m = i->model;
    char n[SES_NUMBER_TEXT];
    for (size_t k = 0; k < SES_LEN(m->stack) && m->stack[k].layer; k++) show_stack(&m->c, &m->stack[k], t);
    ses_show_line(t, "Vocabulary", "%s tokens", ses_grouped_text(n, m->c.vocab));
    if (ses_model_max_tokens(m) >= SES_MAX_POSITIONS)
        ses_show_line(t, "Max length", "unlimited");
    else
        ses_show_line(t, "Max length", "%s tokens%s", ses_grouped_text(n, ses_model_max_tokens(m)),
                      m->c.embed.segments > 1 ? ", two segments" : "");
}

static bool show_files(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    ses_buf text = { 0 };
    char size[SES_NUMBER_TEXT];
    uint64_t bytes = 0;
    ses_dtype most = ses_tensors_dtype(i->weights);
    ses_buf_puts(&text, ses_dtype_name(most));
    for (int d = 0, n = 0; d < SES_DTYPE_COUNT; d++)
        if (i->elements[d] && d != (int)most)
            ses_buf_appendf(&text, " %s %s", n++ ? "and" : "with", ses_dtype_name((ses_dtype)d));
    for (size_t f = 0; f < i->n_files; f++) bytes += i->file[f].bytes;
    ses_buf_appendf(&text, ", %s in ", ses_bytes_text(size, bytes));
    if (i->n_files == 1)
        ses_buf_puts(&text, i->file[0].name);
    else
        ses_buf_appendf(&text, "%zu files, %s to %s", i->n_files, i->file[0].name,
                        i->file[i->n_files - 1].name);
    bool ok = ses_buf_ok(&text, e);
    if (ok) ses_show_line(t, "Weights", "%s", text.data);
    if (ok && i->base)
        ses_show_line(t, "Base model", "%s, %s", i->base, ses_dtype_name(ses_model_dtype(i->model)));
    ses_buf_free(&text);
    return ok;
}

static bool show_tokenizer(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    ses_buf text = { 0 };
    for (size_t k = 0; k < i->n_tokenizer; k++)
        ses_buf_appendf(&text, "%s%s", k ? ", " : "", i->tokenizer[k]);
    char size[SES_NUMBER_TEXT];
    bool ok = ses_buf_ok(&text, e);
    if (ok && i->tokenizer_size && !text.len)
        ses_show_line(t, "Tokenizer", "words, split at white space");
    else if (ok && i->tokenizer_size)
        ses_show_line(t, "Tokenizer", "%s tokens: %s", ses_grouped_text(size, i->tokenizer_size), text.data);
    else if (ok && text.len)
        ses_show_line(t, "Tokenizer", "%s; not usable: %s", text.data, i->tokenizer_problem.msg);
    else if (ok)
        ses_show_line(t, "Tokenizer", "no files found");
    ses_buf_free(&text);
    return ok;
}

static void put_heading(const ses_term *t, const char *title, const char *value)
{
    printf("\n%s%s%s%*s%s\n", ses_style_on(t, SES_BOLD), title, ses_style_on(t, SES_PLAIN),
           14 - (int)strlen(title), "", value);
}

static bool show_parts(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    char n[SES_NUMBER_TEXT], bar[SES_BAR_SIZE];
    int64_t total = i->parameters;
    ses_text_table *table = ses_text_table_new("|>|>|", e);
    if (!table) return false;
    int width = ses_bar_width(t, 2 + 20 + 2 + 15 + 2 + 7 + 2); /* after the other columns */
    for (size_t p = 0; p < i->n_parts; p++) {
        double fraction = (double)i->part[p].elements / (double)total;
        ses_text_table_cell(table, "%s", i->part[p].name);
        ses_text_table_cell(table, "%s", ses_grouped_text(n, i->part[p].elements));
        ses_text_table_cell(table, "%.1f %%", 100 * fraction);
        ses_text_table_cell(table, "%s", ses_bar_text(t, bar, fraction, width));
        ses_text_table_style(table, SES_GREEN);
    }
    put_heading(t, "Parameters", ses_grouped_text(n, total));
    bool ok = ses_text_table_print(table, stdout, t, 2, e);
    ses_text_table_free(table);
    return ok;
}

static bool show_memory(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    const ses_model_info_memory *m = &i->memory;
    const struct {
        const char *name, *note;
        uint64_t bytes;
    } row[] = {
        { "weights", m->copied ? "mapped file" : "mapped file, not copied", m->mapped },
        { "converted", "f32 copy", m->copied },
        { "packed", "packed matrices, f32 ones on second use", m->packed },
        { "activations", "estimate", m->activations },
        { "training", "weights, gradients and AdamW state, without activations", m->training },
    };
    char size[SES_NUMBER_TEXT], title[64];
    ses_text_table *table = ses_text_table_new("|>|", e);
    if (!table) return false;
    for (size_t r = 0; r < SES_LEN(row); r++) {
        if (!row[r].bytes) continue;
        ses_text_table_cell(table, "%s", row[r].name);
        ses_text_table_cell(table, "%s", ses_bytes_text(size, row[r].bytes));
        ses_text_table_cell(table, "%s", row[r].note);
        ses_text_table_style(table, SES_DIM);
    }
    snprintf(title, sizeof title, "for one sequence of %" PRId64 " tokens", i->tokens);
    put_heading(t, "Memory", title);
    bool ok = ses_text_table_print(table, stdout, t, 2, e);
    ses_text_table_free(table);
    return ok;
}

bool ses_model_info_show(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    const ses_model *m = i->model;
    ses_show_line(t, "Folder", "%s", i->path);
    ses_show_line(t, "Architecture", "%s (%s)", ses_model_type(m), ses_model_class_name(m));
    show_heads(i, t);
    if (i->sentence && !show_modules(i->sentence, t, e)) return false;
    show_config(i, t);
    if (!ses_model_info_show_forms(i, t, e)) return false;
    if (has_labels(m) && !show_labels(i, t, e)) return false;
    if (!show_files(i, t, e) || !show_tokenizer(i, t, e)) return false;
    if (*ses_model_unexpected_keys(m)) ses_show_line(t, "Unused", "%s", ses_model_unexpected_keys(m));
    char flops[SES_NUMBER_TEXT];
    ses_show_line(t, "FLOPs", "%s per token, in a text of %" PRId64 " tokens",
                  ses_flops_text(flops, ses_flops_per_token(m, i->tokens)), i->tokens);
    return show_parts(i, t, e) && show_memory(i, t, e);
}

/* The name is the last column, because it may be long. */
bool ses_model_info_show_tensors(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    ses_text_table *table = ses_text_table_new("Dtype|>Shape|>Min|>Max|>Norm|>NaN|>Inf|Tensor", e);
    if (!table) return false;
    for (size_t k = 0; k < ses_safetensors_count(i->weights); k++) {
        const ses_tensor_entry *x = ses_safetensors_at(i->weights, k);
        const ses_tensor_stats *s = &i->stats[k];
        char shape[160];
        bool any = s->min <= s->max;
        ses_text_table_cell(table, "%s", ses_dtype_name(x->dtype));
        ses_text_table_cell(table, "%s", ses_shape_text(shape, sizeof shape, x->dim, x->rank));
        ses_text_table_cell(table, any ? "%.4g" : "-", s->min);
        ses_text_table_cell(table, any ? "%.4g" : "-", s->max);
        ses_text_table_cell(table, any ? "%.4g" : "-", s->norm);
        ses_text_table_cell(table, "%" PRId64, s->nan);
        ses_text_table_style(table, s->nan ? SES_RED : SES_PLAIN);
        ses_text_table_cell(table, "%" PRId64, s->infinite);
        ses_text_table_style(table, s->infinite ? SES_RED : SES_PLAIN);
        ses_text_table_cell(table, "%s", x->name);
    }
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}
