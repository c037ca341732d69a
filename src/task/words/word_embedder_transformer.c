/* transformer: the last hidden state of a frozen encoder at the first token of each word. Words beyond the
 * encoder's longest text get zeros. */
#include "word_stack.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "text/tokenizer_config.h"

#include <string.h>

typedef struct encoder {
    ses_model *model;
    ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens;
    ses_tape *tape;
    bool segments;
    char *dir;
} encoder;

static void close(void *self)
{
    encoder *x = self;
    ses_tape_free(x->tape);
    ses_encode_ctx_free(x->tokens);
    ses_tokenizer_free(x->tokenizer);
    ses_model_free(x->model);
    ses_free(x->dir);
    ses_free(x);
}

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    encoder *x = ses_alloc(sizeof *x, e);
    char *dir = x ? ses_model_resolve(path, NULL, e) : NULL;
    if (x) x->dir = dir;
    ses_tokenizer_config config;
    if (dir && ses_model_is_adapter(dir)) {
        ses_fail(e, SES_EUNSUPPORTED,
                 "%s is an adapter, which needs its base model: merge it first (sesame convert)", dir);
        close(x);
        return NULL;
    }
    if (dir) x->model = ses_model_open(dir, dev, &(ses_model_options){ .no_head = true }, e);
    if (x && x->model) x->tokenizer = ses_tokenizer_open(dir, e);
    if (x && x->tokenizer) x->tokens = ses_encode_ctx_new(x->tokenizer, e);
    if (x && x->tokens) x->tape = ses_tape_new(dev, NULL, e);
    bool ok = x && x->tape &&
              ses_tokenizer_config_read(&config, dir, ses_model_type(x->model), ses_model_sets_segments,
                                        x->tokenizer, e);
    if (ok) {
        x->segments = config.sets_segments && ses_model_uses_segments(x->model);
        *width = x->model->c.hidden;
        return x;
    }
    if (x) close(x);
    return NULL;
}

/* The hidden states of the encoding, [n, width] on the host. */
static ses_real *states(encoder *x, const ses_encoding *k, int64_t width, ses_err *e)
{
    int32_t cu[2] = { 0, (int32_t)k->n };
    int32_t *segment = ses_alloc_array(k->n + 1, sizeof *segment, e);
    ses_real *y = segment ? ses_alloc_array(k->n * (size_t)width + 1, sizeof *y, e) : NULL;
    for (size_t i = 0; y && i < k->n; i++) segment[i] = k->type_id ? k->type_id[i] : 0;
    ses_batch b = { .seqs = 1, .tokens = (int64_t)k->n, .cu_seqlens = cu, .ids = k->id };
    if (x->segments) b.segments = segment;
    ses_outputs out;
    ses_tape_reset(x->tape, &(ses_tape_options){ 0 });
    bool ok = y && ses_model_forward(x->model, x->tape, &b, &(ses_output_request){ 0 }, &out, e);
    const ses_output *h = ok ? ses_outputs_find(&out, "last_hidden_state") : NULL;
    if (ok && !h)
        ok = ses_fail(e, SES_EUNSUPPORTED, "%s has no hidden states", ses_model_class_name(x->model));
    ok = ok && (ses_tape_read(x->tape, h->tensor, y) || ses_tape_ok(x->tape, e));
    ses_free(segment);
    if (ok) return y;
    ses_free(y);
    return NULL;
}

static bool embed(void *self, const ses_string *word, size_t n, float *out, int64_t stride, ses_err *e)
{
    encoder *x = self;
    ses_input in = { .words = word, .n_words = n };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(x->model) };
    int64_t width = x->model->c.hidden;
    if (!ses_encode(x->tokens, &in, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    ses_real *y = k->n ? states(x, k, width, e) : NULL;
    int32_t before = -1;
    for (size_t i = 0; y && i < k->n; i++) {
        int32_t at = k->special_mask[i] ? -1 : k->word_id[i];
        if (at < 0 || at == before) continue;
        for (int64_t j = 0; j < width; j++) out[at * stride + j] = (float)y[(int64_t)i * width + j];
        before = at;
    }
    bool ok = y || !k->n;
    ses_free(y);
    return ok;
}

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

/* Copies the encoder's folder: its weights may be in 8 or 16 bits. */
static bool save(const void *self, const char *path, ses_err *e)
{
    const encoder *x = self;
    copying c = { x->dir, path, e, true };
    return ses_dir_make(path, e) && ses_dir_each(x->dir, copy_file, &c, e) && c.ok;
}

const ses_word_embedder_kind ses_word_embedder_transformer = {
    .name = "transformer", .value = "DIR", .open = open, .close = close, .embed = embed, .save = save
};
