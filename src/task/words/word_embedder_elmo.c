/* elmo: the mean of ELMo's layers, embeddings included: its scalar mix with equal weights. */
#include "word_stack.h"

#include "base/alloc.h"
#include "frozen_model.h"
#include "model/recurrent/elmo_words.h"

typedef struct elmo {
    ses_elmo_words *model;
    char *dir;
} elmo;

static void close(void *self)
{
    elmo *x = self;
    ses_elmo_words_free(x->model);
    ses_free(x->dir);
    ses_free(x);
}

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    elmo *x = ses_alloc(sizeof *x, e);
    if (x && (x->dir = ses_frozen_folder(path, e)) && (x->model = ses_elmo_words_open(x->dir, dev, e)))
        return *width = ses_elmo_words_width(x->model), x;
    if (x) close(x);
    return NULL;
}

static bool embed(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e)
{
    const elmo *x = self;
    int64_t layers = ses_elmo_words_layers(x->model), width = ses_elmo_words_width(x->model);
    size_t n = s->first[s->n], cells = n * (size_t)width;
    float **layer = ses_alloc_array((size_t)layers, sizeof *layer, e);
    float *all = layer ? ses_alloc_array((size_t)layers * cells + 1, sizeof *all, e) : NULL;
    for (int64_t l = 0; all && l < layers; l++) layer[l] = all + (size_t)l * cells;
    bool ok = all && ses_elmo_words_run(x->model, s->word, s->first, s->n, layer, e);
    for (int64_t i = 0; ok && i < (int64_t)n; i++)
        for (int64_t j = 0; j < width; j++) {
            double sum = 0;
            for (int64_t l = 0; l < layers; l++) sum += (double)layer[l][i * width + j];
            out[i * stride + j] = (float)(sum / (double)layers);
        }
    ses_free(all);
    ses_free(layer);
    return ok;
}

static bool save(const void *self, const char *path, ses_err *e)
{
    return ses_frozen_copy(((const elmo *)self)->dir, path, e);
}

static int64_t max_bytes(const void *self) { return ses_elmo_words_max_bytes(((const elmo *)self)->model); }

const ses_word_embedder_kind ses_word_embedder_elmo = { .name = "elmo",
                                                        .value = "DIR",
                                                        .open = open,
                                                        .close = close,
                                                        .embed = embed,
                                                        .save = save,
                                                        .max_bytes = max_bytes };
