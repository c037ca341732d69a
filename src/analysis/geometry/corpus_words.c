/* Words of a corpus with their states: see corpus_words.h. */
#include "corpus_words.h"

#include "analysis/word_states.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { SPOOL_MEMORY = 1 << 30 };

typedef struct collecting {
    ses_corpus_words *w;
    const ses_analysis_call *call;
    size_t rows; /* in the spool */
} collecting;

void ses_corpus_words_free(ses_corpus_words *w)
{
    ses_state_spool_free(w->states);
    ses_strmap_free(&w->types);
    ses_free(w->layer), ses_free(w->word), ses_free(w->cu_texts), ses_free(w->occurrence);
    ses_free(w->cu_types);
    *w = (ses_corpus_words){ 0 };
}

static bool add_word(ses_corpus_words *w, const ses_state_row *r, size_t stored, ses_err *e)
{
    bool fresh;
    ses_string form = ses_text_file_span(w->file, r->text, r->index, r->bytes);
    if (!form.n) return true;
    if (!ses_array_reserve(&w->word, &w->cap, w->n + 1, sizeof *w->word, e)) return false;
    const int64_t *type = ses_strmap_insert(&w->types, form.p, form.n, (int64_t)w->types.count, &fresh, e);
    if (!type) return false;
    ses_offset bytes = { 0, 0 };
    if (!w->file->is_words) {
        bytes.begin = (uint32_t)(form.p - w->file->text[r->text].text.p);
        bytes.end = bytes.begin + (uint32_t)form.n;
    }
    w->word[w->n++] = (ses_corpus_word){ .text = r->text,
                                         .index = r->index,
                                         .form = form,
                                         .type = (uint32_t)*type,
                                         .bytes = bytes,
                                         .stored = stored };
    return true;
}

static bool check_finite(const ses_corpus_words *w, const ses_state_batch *b, ses_err *e)
{
    for (size_t k = 0; k < w->n_layers; k++)
        for (size_t i = 0; i < b->rows * b->width; i++)
            if (!isfinite(b->x[k][i])) {
                const ses_state_row *r = &b->row[i / b->width];
                ses_string s = ses_text_file_span(w->file, r->text, r->index, r->bytes);
                return ses_fail(e, SES_EFORMAT,
                                "layer %lld: the vector of \"%s\" is not finite: the weights are damaged",
                                (long long)w->layer[k], ses_quoted_of(s.p, s.n).s);
            }
    return true;
}

static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
{
    collecting *c = ctx;
    ses_corpus_words *w = c->w;
    if (!check_finite(w, b, e) || !ses_state_spool_add(w->states, b->x, b->rows, e)) return false;
    for (size_t t = 0; t < b->texts; t++) {
        for (size_t i = b->cu_rows[t]; i < b->cu_rows[t + 1]; i++)
            if (b->row[i].pieces && !add_word(w, &b->row[i], c->rows + i, e)) return false;
        w->cu_texts[b->first_text + t + 1] = w->n;
    }
    c->rows += b->rows;
    ses_analysis_progress(c->call, "texts", (int64_t)(b->first_text + b->texts), (int64_t)w->file->n);
    return true;
}

/* Lists the words of each form. */
static bool index_types(ses_corpus_words *w, ses_err *e)
{
    size_t n = w->types.count;
    w->occurrence = ses_alloc_array(w->n + 1, sizeof *w->occurrence, e);
    w->cu_types = w->occurrence ? ses_alloc_array(n + 3, sizeof *w->cu_types, e) : NULL;
    if (!w->cu_types) return false;
    for (size_t i = 0; i < w->n; i++) w->cu_types[w->word[i].type + 2]++;
    for (size_t t = 0; t < n; t++) w->cu_types[t + 2] += w->cu_types[t + 1];
    /* cu_types[t + 1] is the first of form t; placing its words moves it to the first of form t + 1 */
    for (size_t i = 0; i < w->n; i++) w->occurrence[w->cu_types[w->word[i].type + 1]++] = i;
    return true;
}

bool ses_corpus_words_read(ses_corpus_words *w, const ses_model *m, const ses_tokenizer *t,
                           const ses_text_file *f, const ses_corpus_words_options *co,
                           const ses_analysis_call *call, ses_err *e)
{
    ses_model *part = ses_analysis_part(m, co->decoder, e);
    int64_t depth = part ? ses_word_states_depth(part, co->decoder) : 0;
    if (!part) return false;
    w->file = f;
    w->width = (size_t)ses_word_states_width(m, co->decoder);
    w->layer = ses_alloc_array((size_t)depth + 1, sizeof *w->layer, e);
    w->cu_texts = w->layer ? ses_alloc_array(f->n + 1, sizeof *w->cu_texts, e) : NULL;
    if (!w->cu_texts) return ses_model_free(part), false;
    for (int64_t i = 0; i <= depth; i++)
        if (!co->layers || ses_layer_set_has(co->layers, i)) w->layer[w->n_layers++] = i;
    bool ok = w->n_layers || ses_fail(e, SES_EUSAGE, "the model has layers 0 to %lld", (long long)depth);
    w->states = ok ? ses_state_spool_new(w->n_layers, w->width, SPOOL_MEMORY, call->tmp_dir, e) : NULL;
    ses_word_states_options o = { .unit = SES_STATES_OF_WORDS,
                                  .first_piece = co->first_piece,
                                  .decoder = co->decoder,
                                  .source = co->source,
                                  .layers = w->layer,
                                  .n_layers = w->n_layers };
    collecting c = { .w = w, .call = call };
    ok = w->states && ses_word_states_run(part, t, f->text, f->n, &o, take, &c, e) && index_types(w, e);
    ses_model_free(part);
    return ok;
}

float *ses_corpus_words_layer(const ses_corpus_words *w, size_t k, ses_err *e)
{
    size_t rows = ses_state_spool_rows(w->states);
    float *x = ses_alloc_array(rows * w->width + 1, sizeof *x, e);
    if (x && !ses_state_spool_read(w->states, k, 0, rows, x, e)) return ses_free(x), NULL;
    for (size_t i = 0; x && i < w->n; i++) /* words without tokens are left out */
        if (w->word[i].stored != i)
            memmove(x + i * w->width, x + w->word[i].stored * w->width, w->width * sizeof *x);
    return x;
}

static int compare_words(const ses_corpus_word *a, const ses_corpus_word *b, bool given)
{
    if (a->text != b->text) return a->text < b->text ? -1 : 1;
    if (given) return (a->index > b->index) - (a->index < b->index);
    if (a->bytes.begin != b->bytes.begin) return a->bytes.begin < b->bytes.begin ? -1 : 1;
    return (a->bytes.end > b->bytes.end) - (a->bytes.end < b->bytes.end);
}

bool ses_corpus_words_align(const ses_corpus_words *x, const ses_corpus_words *y, size_t **a, size_t **b,
                            size_t *n, ses_err *e)
{
    *n = 0;
    *a = ses_alloc_array(x->n + 1, sizeof **a, e);
    *b = *a ? ses_alloc_array(x->n + 1, sizeof **b, e) : NULL;
    if (!*b) return false;
    for (size_t i = 0, j = 0; i < x->n && j < y->n;) {
        int order = compare_words(&x->word[i], &y->word[j], x->file->is_words);
        if (!order) (*a)[*n] = i, (*b)[(*n)++] = j;
        i += order <= 0, j += order >= 0;
    }
    return true;
}
