/* Models whose hidden states are the vectors of words: see frozen_model.h. */
#include "frozen_model.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "text/tokenizer_config.h"

#include <string.h>

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
    ses_tape_free(x->tape);
    ses_encode_ctx_free(x->tokens);
    ses_tokenizer_free(x->tokenizer);
    ses_model_free(x->model);
    ses_free(x->dir);
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
    if (x && x->tokens) x->tape = ses_tape_new(dev, NULL, e);
    bool ok = x && x->tape &&
              ses_tokenizer_config_read(&config, dir, ses_model_type(x->model), ses_model_sets_segments,
                                        x->tokenizer, e);
    if (ok) {
        x->segments = config.sets_segments && ses_model_uses_segments(x->model);
        x->width = x->model->c.hidden;
        return x;
    }
    if (x) ses_frozen_close(x);
    return NULL;
}

static bool read_states(ses_frozen_model *x, const ses_batch *b, ses_real *y, ses_err *e)
{
    ses_outputs out;
    ses_tape_reset(x->tape, &(ses_tape_options){ 0 });
    if (!ses_model_forward(x->model, x->tape, b, &(ses_output_request){ 0 }, &out, e)) return false;
    const ses_output *h = ses_outputs_find(&out, "last_hidden_state");
    if (!h || ses_count(h->tensor) != b->tokens * x->width)
        return ses_fail(e, SES_EUNSUPPORTED, "%s has no hidden states of %lld columns",
                        ses_model_class_name(x->model), (long long)x->width);
    return ses_tape_read(x->tape, h->tensor, y) || (ses_tape_ok(x->tape, e), false);
}

ses_real *ses_frozen_states(ses_frozen_model *x, const int32_t *id, const uint8_t *segment, size_t n,
                            ses_err *e)
{
    int32_t cu[2] = { 0, (int32_t)n };
    int32_t *segments = ses_alloc_array(n + 1, sizeof *segments, e);
    ses_real *y = segments ? ses_alloc_array(n * (size_t)x->width + 1, sizeof *y, e) : NULL;
    for (size_t i = 0; y && i < n; i++) segments[i] = segment ? segment[i] : 0;
    ses_batch b = { .seqs = 1, .tokens = (int64_t)n, .cu_seqlens = cu, .ids = id };
    if (x->segments) b.segments = segments;
    bool ok = y && read_states(x, &b, y, e);
    ses_free(segments);
    if (ok) return y;
    ses_free(y);
    return NULL;
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
