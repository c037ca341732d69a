/* Models whose hidden states are the vectors of words: see frozen_model.h. */
#include "frozen_model.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "layer_suffix.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "text/tokenizer_config.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_TOKENS = 8192 };

char *ses_frozen_folder(const char *path, ses_err *e)
{
    char *dir = ses_model_resolve(path, NULL, e);
    if (!dir || !ses_model_is_adapter(dir)) return dir;
    ses_fail(e, SES_EUNSUPPORTED,
             "%s is an adapter, which needs its base model: merge it first (sesame convert)", dir);
    ses_free(dir);
    return NULL;
}

void ses_frozen_close(void *self)
{
    ses_frozen_model *x = self;
    ses_pass_close(&x->pass);
    ses_encode_ctx_free(x->tokens);
    ses_tokenizer_free(x->tokenizer);
    ses_model_free(x->model);
    ses_free(x->dir);
    ses_free(x->layers);
    ses_free(x);
}

ses_frozen_model *ses_frozen_open(const char *path, ses_device *dev, ses_err *e)
{
    ses_frozen_model *x = ses_alloc(sizeof *x, e);
    char *dir = x ? ses_frozen_folder(path, e) : NULL;
    ses_tokenizer_config config;
    if (x) x->dir = dir;
    if (dir) x->model = ses_model_open(dir, dev, &(ses_model_options){ .no_head = true }, e);
    if (x && x->model) x->tokenizer = ses_tokenizer_open(dir, e);
    if (x && x->tokenizer) x->tokens = ses_encode_ctx_new(x->tokenizer, e);
    bool ok = x && x->tokens && ses_pass_open(&x->pass, x->model, e) &&
              ses_tokenizer_config_read(&config, dir, ses_model_type(x->model), ses_model_sets_segments,
                                        x->tokenizer, e);
    if (ok) {
        x->segments = config.sets_segments && ses_model_uses_segments(x->model);
        x->width = x->hidden = x->model->c.hidden;
        return x;
    }
    if (x) ses_frozen_close(x);
    return NULL;
}

ses_frozen_model *ses_frozen_open_layers(const char *path, ses_device *dev, ses_err *e)
{
    const char *suffix = ses_path_is_dir(path) ? NULL : ses_layer_suffix(path); /* a folder "model@2" */
    char *dir = suffix ? ses_strndup(path, (size_t)(suffix - path) - 1, e) : NULL;
    if (suffix && !dir) return NULL;
    ses_frozen_model *x = ses_frozen_open(suffix ? dir : path, dev, e);
    ses_free(dir);
    if (!x || !suffix) return x;
    bool ok = (x->layers = ses_strdup(suffix, e)) &&
              (ses_layer_suffix_parse(suffix, x->model->stack[0].depth, &x->choice, e) ||
               ses_wrap(e, "%s", x->dir));
    if (x->choice.combine >= SES_COMBINE_CONCAT) x->width = x->choice.n * x->hidden;
    if (ok) return x;
    ses_frozen_close(x);
    return NULL;
}

const char *ses_frozen_layers(const void *self) { return ((const ses_frozen_model *)self)->layers; }

int64_t ses_frozen_mixed(const void *self)
{
    const ses_frozen_model *x = self;
    return x->choice.combine == SES_COMBINE_MIX ? x->choice.n : 0;
}

/* ---- texts ---- */

static void free_texts(ses_frozen_texts *t)
{
    ses_free(t->id);
    ses_free(t->segment);
    ses_free(t->cu);
    ses_free(t->row);
    ses_free(t->word);
}

bool ses_frozen_texts_add(ses_frozen_texts *t, const int32_t *id, const uint8_t *segment, size_t n,
                          ses_err *e)
{
    size_t cap = t->tokens_cap;
    if (t->tokens + n > INT32_MAX / 2) return ses_fail(e, SES_EARG, "too many tokens");
    if (!ses_array_reserve(&t->id, &cap, t->tokens + n, sizeof *t->id, e)) return false;
    if (!ses_array_reserve(&t->segment, &t->tokens_cap, t->tokens + n, sizeof *t->segment, e)) return false;
    for (size_t i = 0; i < n; i++) {
        t->id[t->tokens] = id[i];
        t->segment[t->tokens++] = segment ? segment[i] : 0;
    }
    return true;
}

bool ses_frozen_texts_read(ses_frozen_texts *t, size_t word, size_t row, ses_err *e)
{
    size_t cap = t->rows_cap;
    if (!ses_array_reserve(&t->row, &cap, t->rows + 1, sizeof *t->row, e) ||
        !ses_array_reserve(&t->word, &t->rows_cap, t->rows + 1, sizeof *t->word, e))
        return false;
    t->row[t->rows] = (int64_t)row;
    t->word[t->rows++] = word;
    return true;
}

/* Ends the current text. */
static bool end_text(ses_frozen_texts *t, ses_err *e)
{
    if (!ses_array_reserve(&t->cu, &t->n_cap, t->n + 2, sizeof *t->cu, e)) return false;
    if (!t->n) t->cu[0] = 0;
    if (t->cu[t->n] == (int32_t)t->tokens) return true; /* a text without tokens has no words to read */
    t->cu[++t->n] = (int32_t)t->tokens;
    return true;
}

/* A part of the texts with its rows. */
typedef struct part {
    size_t text, n_texts, row, n_rows;
} part;

/* The states of a layer; depth: the last one, after a final norm. */
static ses_tensor *layer_states(const ses_frozen_model *x, int64_t layer, ses_err *e)
{
    char name[40] = "last_hidden_state";
    if (layer < x->model->stack[0].depth) snprintf(name, sizeof name, "hidden_states.%lld", (long long)layer);
    const ses_output *h = ses_outputs_find(&x->pass.out, name);
    if (h && ses_count(h->tensor) == x->pass.batch.tokens * x->hidden) return h->tensor;
    ses_fail(e, SES_EUNSUPPORTED, "%s has no hidden states of layer %lld with %lld columns",
             ses_model_class_name(x->model), (long long)layer, (long long)x->hidden);
    return NULL;
}

/* y [rows, width]: the vectors of the part's rows. */
static bool read_states(ses_frozen_model *x, const int32_t *row, size_t n, ses_real *y, ses_err *e)
{
    ses_tape *tape = x->pass.tape;
    ses_layer_choice last = { .layer = { x->model->stack[0].depth }, .n = 1 };
    const ses_layer_choice *k = x->choice.n ? &x->choice : &last;
    ses_tensor *h[SES_MAX_LAYER_CHOICE] = { NULL };
    ses_output_request request = { .hidden_states = x->choice.n > 0 };
    if (!ses_pass_run(&x->pass, &request, e)) return false;
    ses_tensor *rows = ses_tape_ints(tape, row, (int64_t)n), *sum = NULL;
    for (int64_t i = 0; i < k->n; i++) {
        ses_tensor *all = layer_states(x, k->layer[i], e);
        if (!all) return false;
        h[i] = ses_gather(tape, all, rows);
        if (k->combine < SES_COMBINE_CONCAT) sum = sum ? ses_add(tape, sum, h[i]) : h[i];
    }
    if (!sum) sum = k->n > 1 ? ses_concat(tape, (int)k->n, h) : h[0];
    if (k->combine == SES_COMBINE_MEAN && k->n > 1) sum = ses_scale(tape, sum, 1 / (double)k->n);
    return ses_tape_read(tape, sum, y) || (ses_tape_ok(tape, e), false);
}

static bool run_part(ses_frozen_model *x, const ses_frozen_texts *t, part p, float *out, int64_t stride,
                     ses_err *e)
{
    int32_t first = t->cu[p.text];
    int32_t *row = ses_alloc_array(p.n_rows, sizeof *row, e);
    ses_real *y = row ? ses_alloc_array(p.n_rows * (size_t)x->width, sizeof *y, e) : NULL;
    bool ok = y != NULL;
    for (size_t i = 0; ok && i < p.n_rows; i++) row[i] = (int32_t)(t->row[p.row + i] - first);
    ses_batch_builder_clear(&x->pass.in);
    for (const int32_t *cu = t->cu + p.text; ok && cu < t->cu + p.text + p.n_texts; cu++)
        ok = ses_batch_builder_add(&x->pass.in, t->id + cu[0], x->segments ? t->segment + cu[0] : NULL,
                                   cu[1] - cu[0], e);
    ok = ok && read_states(x, row, p.n_rows, y, e);
    for (size_t i = 0; ok && i < p.n_rows; i++)
        for (int64_t j = 0; j < x->width; j++)
            out[(int64_t)t->word[p.row + i] * stride + j] = (float)y[(int64_t)i * x->width + j];
    ses_free(y);
    ses_free(row);
    return ok;
}

static bool run_texts(ses_frozen_model *x, const ses_frozen_texts *t, float *out, int64_t stride, ses_err *e)
{
    bool ok = true;
    for (part p = { 0 }; ok && p.text < t->n; p.text += p.n_texts, p.row += p.n_rows) {
        p.n_texts = 1;
        while (p.text + p.n_texts < t->n && t->cu[p.text + p.n_texts + 1] - t->cu[p.text] <= BATCH_TOKENS)
            p.n_texts++;
        p.n_rows = 0;
        while (p.row + p.n_rows < t->rows && t->row[p.row + p.n_rows] < t->cu[p.text + p.n_texts]) p.n_rows++;
        ok = !p.n_rows || run_part(x, t, p, out, stride, e);
    }
    return ok;
}

bool ses_frozen_embed(ses_frozen_model *x, const ses_sentences *s, ses_frozen_add_text *add, float *out,
                      int64_t stride, ses_err *e)
{
    ses_frozen_texts t = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++)
        ok = add(x, &t, s->word, s->first[i], s->first[i + 1], e) && end_text(&t, e);
    ok = ok && run_texts(x, &t, out, stride, e);
    free_texts(&t);
    return ok;
}

/* ---- files ---- */

typedef struct copying {
    const char *from, *to;
    ses_err *e;
    bool ok;
} copying;

/* Copies a file of the folder by its mapped pages; reports, hidden files and folders stay. */
static bool copy_file(void *ctx, const char *name)
{
    copying *c = ctx;
    size_t n = strlen(name);
    if (name[0] == '.' || (n > 3 && !strcmp(name + n - 3, ".md")) ||
        (n > 5 && !strcmp(name + n - 5, ".html")))
        return true;
    char *from = ses_path_join(c->from, name, c->e), *to = from ? ses_path_join(c->to, name, c->e) : NULL;
    c->ok = to != NULL;
    ses_mmap map = { 0 };
    if (c->ok && !ses_path_is_dir(from)) {
        c->ok = ses_mmap_open(&map, from, c->e) && ses_file_write(to, map.data, map.size, true, c->e);
        ses_mmap_free(&map);
    }
    ses_free(from);
    ses_free(to);
    return c->ok;
}

bool ses_frozen_copy(const char *dir, const char *to, ses_err *e)
{
    copying c = { dir, to, e, true };
    return ses_dir_make(to, e) && ses_dir_each(dir, copy_file, &c, e) && c.ok;
}

/* Copies the folder: its weights may be in 8 or 16 bits. */
bool ses_frozen_save(const void *self, const char *path, ses_err *e)
{
    return ses_frozen_copy(((const ses_frozen_model *)self)->dir, path, e);
}
