/* GloVe (Pennington et al. 2014): word and context vectors with biases, fitted to the logarithms of
 * co-occurrence counts by AdaGrad. An iteration trains the tiles of one phase at once, phase after phase: the
 * bits do not depend on the number of threads.
 *
 * A row holds dim values, the bias, a constant 1 for the other side's bias (in exchanged order for contexts)
 * and zeros up to a multiple of 16. */
#ifndef SES_VECTORS_GLOVE_MODEL_H
#define SES_VECTORS_GLOVE_MODEL_H

#include "glove_count.h"

typedef struct ses_glove_model ses_glove_model;

/* How a phase is computed: by threads (glove_model.c), or by a device (glove_device.c). */
typedef struct ses_glove_engine {
    /* Trains the tiles of a phase; loss [groups]: of each tile. */
    bool (*phase)(void *state, const ses_glove *g, const ses_glove_pairs *pairs, int64_t phase, double *loss,
                  ses_err *e);
    /* Brings the weights of the model up to date; NULL: they always are. */
    bool (*fetch)(void *state, ses_glove_model *m, ses_err *e);
    void *state;
} ses_glove_engine;

typedef struct ses_glove_settings {
    int64_t dim;
    double rate;
    uint64_t seed;
} ses_glove_settings;

struct ses_glove_model {
    ses_glove_tiles tiles;
    ses_glove_settings o;
    int64_t width;
    int64_t iteration, phases; /* completed: iterations, phases of the current one */
    double loss_sum;           /* over the pairs of these phases */
    double loss;               /* mean loss of a pair in the last complete iteration */
    ses_real *word, *context;  /* [groups * rows][2][width]: values, sums of squared steps */
    ses_real *word_rate, *context_rate;
};

typedef enum { SES_GLOVE_WORDS, SES_GLOVE_SUM, SES_GLOVE_BOTH } ses_glove_output;

/* *m must be zeroed; free it even if this fails. */
bool ses_glove_model_init(ses_glove_model *m, const ses_glove_tiles *tiles, const ses_glove_settings *o,
                          ses_err *e);
void ses_glove_model_free(ses_glove_model *m);

/* Trains the next phase: groups of them are an iteration. Fails if the loss is not finite. */
bool ses_glove_model_step(ses_glove_model *m, const ses_glove_pairs *pairs, const ses_glove_engine *engine,
                          ses_err *e);

/* Threads. *t must stay valid while the engine is in use. */
typedef struct ses_glove_threads {
    const ses_kernels *k;
    ses_thread_pool *pool;
} ses_glove_threads;
ses_glove_engine ses_glove_on_threads(ses_glove_threads *t);

/* Vector of a word: its word vector, the sum of word and context vector, or both in sequence (2 dim). */
void ses_glove_model_vector(const ses_glove_model *m, int64_t rank, ses_glove_output what, float *to);

/* Checkpoints: a safetensors file. run: everything that the result depends on; a file of another run is
 * refused. */
bool ses_glove_model_save(const ses_glove_model *m, const char *run, const char *path, ses_err *e);
bool ses_glove_model_resume(ses_glove_model *m, const char *run, const char *path, ses_err *e);

#endif
