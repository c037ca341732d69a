/* Skip-gram and CBOW (Mikolov et al. 2013) on several threads with the same bits for any number of them.
 *
 * The text is divided into a fixed number of shards. A round trains a few hundred words of each shard:
 * 1. Plan, one task per shard: draws subsampling, windows and negative samples, lists the rows of each step,
 *    and marks for each row whether one shard uses it or several.
 * 2. Train, one task per shard: a row that no other shard uses is updated in place; of the others, the shard
 *    has a copy, so that it sees its own updates only. The difference to the original remains.
 * 3. Merge: the differences are added, in the order of the shards.
 * Random numbers are functions of (seed, pass, position in the text). Hence the bits depend on the seed, the
 * shards and the settings only, and the weights between two rounds are the whole state.
 *
 * On a device, a round has as many words, far apart in the text, and all its steps start from the same
 * weights (word2vec_device.c).
 *
 * All contexts of a word share its negative samples, so that a window is a small matrix product (Ji et al.
 * 2016): the kernel word_step. CBOW and words with subwords train the mean of a bag of rows: bag_step. */
#ifndef SES_VECTORS_WORD2VEC_H
#define SES_VECTORS_WORD2VEC_H

#include "huffman_tree.h"
#include "kernel/kernel.h"
#include "sampling_table.h"
#include "subwords.h"
#include "vector_trainer.h"

#include <stdatomic.h>

enum {
    SES_W2V_DIM,
    SES_W2V_WINDOW,
    SES_W2V_NEGATIVE,
    SES_W2V_SAMPLE,
    SES_W2V_LOSS,
    SES_W2V_EPOCHS,
    SES_W2V_LR,
    SES_W2V_MIN_COUNT,
    SES_W2V_MAX_VOCAB,
    SES_W2V_MINN,
    SES_W2V_MAXN,
    SES_W2V_BUCKET,
    SES_W2V_WORDS,
    SES_W2V_SEED,
    SES_W2V_SHARDS,
    SES_W2V_SETTINGS
};

/* Limits of the settings: a step has at most SES_WORD_STEP_MAX outputs. */
enum { SES_W2V_MAX_NEGATIVE = SES_WORD_STEP_MAX - 1, SES_W2V_MAX_SHARDS = 128 };
enum { SES_W2V_SHARD_WORDS = 128 }; /* words of a shard in a round */

/* A step: in[first_in ..] are numbers of rows in `used`, out[first_out ..] are 2 number + label. */
typedef struct ses_w2v_step {
    uint32_t first_in, n_in, first_out, n_out;
} ses_w2v_step;

/* A growing list of numbers of rows. */
typedef struct ses_w2v_rows {
    int32_t *item;
    size_t n, capacity;
} ses_w2v_rows;

/* A row that a shard uses in the round. */
typedef struct ses_w2v_used {
    int32_t row, uses;
    float *at; /* the row, or its copy */
} ses_w2v_used;

/* A shard's copy of a row that several shards use. */
typedef struct ses_w2v_copy ses_w2v_copy;
struct ses_w2v_copy {
    float *data;
    ses_w2v_copy *peer; /* copy of the same row by a later shard, while merging */
    int32_t row, uses;
    int32_t next; /* copy of the same part of the merge, -1: none */
};

/* A slot of a hash table: row -> number + 1, 0: empty. */
typedef struct ses_w2v_slot {
    int32_t row, number;
} ses_w2v_slot;

typedef struct ses_w2v_shard {
    int64_t begin, end; /* its part of the text */
    ses_w2v_step *step;
    size_t n_steps, step_capacity;
    ses_w2v_rows in, out;
    int32_t *word;   /* kept words around and in the current part, SES_SENTENCE_END between sentences */
    int32_t *number; /* the word's number in `used`, if words have no subwords */
    int64_t *position;
    size_t word_capacity, number_capacity, position_capacity;
    ses_w2v_used *used;
    size_t n_used, used_capacity;
    ses_w2v_slot *slot;
    size_t slots; /* a power of two */
    ses_w2v_copy *copy;
    float *copied; /* [n_copies][stride] */
    size_t n_copies, copy_capacity, copied_capacity;
    int32_t first[SES_W2V_MAX_SHARDS]; /* [parts of the merge]: first copy, -1: none */
    double loss;                       /* sum over the current round */
    int64_t pairs;
    ses_err err;
} ses_w2v_shard;

typedef struct ses_w2v ses_w2v;

/* How rounds are computed: by threads (word2vec_round.c), or by a device with the kernel word_rounds
 * (word2vec_device.c), where all steps of a round start from the same weights. */
typedef struct ses_w2v_engine {
    bool (*divide)(ses_w2v *w, ses_err *e);  /* divides the text into parts: sets w->rounds */
    bool (*begin)(ses_w2v *w, ses_err *e);   /* after a start or a resumed checkpoint */
    bool (*advance)(ses_w2v *w, ses_err *e); /* trains at least one round of the pass; adds to the sums */
    bool (*fetch)(ses_w2v *w, ses_err *e);   /* brings w->weight up to date */
    void (*end)(ses_w2v *w);                 /* frees what the others allocated, also if they failed */
} ses_w2v_engine;

extern const ses_w2v_engine ses_w2v_threads, ses_w2v_device;

struct ses_w2v {
    ses_vector_job *job;
    const ses_w2v_engine *engine;
    void *state; /* data of the engine */
    ses_word_corpus corpus;
    ses_kernels kernel;
    ses_thread_pool *pool;
    bool cbow, hs, bags; /* bags: inputs are means of rows */
    int window, negative, epochs;
    double lr;
    uint64_t seed;
    int64_t dim, stride; /* columns; the same rounded up, so that rows are aligned */
    int64_t in_rows, out_rows;
    float *weight;  /* [in_rows + out_rows + 1][stride]; columns from dim on are 0 */
    uint32_t *keep; /* [words]: kept if a random number is below this; UINT32_MAX: always */
    ses_sampling_cell *negatives;
    ses_huffman_tree tree;
    ses_subwords sub; /* start NULL: none */
    ses_w2v_shard *shard;
    int64_t shards;
    int64_t rounds;          /* rounds of a pass */
    int64_t round;           /* rounds done, of all passes */
    _Atomic(uint32_t) *user; /* [rows]: tag of a round << 8 | shard + 1, or ALL for several shards */
    uint32_t tag;
    ses_w2v_copy **copies;   /* [rows]: first copy while merging, else NULL */
    float step_in, step_out; /* sizes of a use in the current round */
    bool planning;           /* the next parallel loop plans the round `round` */
    float rate;
    double loss, pass_loss; /* sums since the last report, since the begin of the pass */
    int64_t pairs, pass_pairs;
    char *checkpoint; /* path */
    double saved_at;  /* seconds, time of the last checkpoint */
    int64_t reported; /* round of the last report */
};

/* Learning rate of a round: linear decay to 1 / 10,000. */
float ses_w2v_rate(const ses_w2v *w, int64_t round);
/* Sizes of a use as input and as output, see ses_word_scale. */
float ses_w2v_in_step(const ses_w2v *w, float rate);
float ses_w2v_out_step(const ses_w2v *w, float rate);
/* Start of the random numbers of a pass (word_draws.h): for subsampling, for steps. */
uint64_t ses_w2v_keep_start(const ses_w2v *w, uint32_t pass);
uint64_t ses_w2v_step_start(const ses_w2v *w, uint32_t pass);
/* False, with an error: the loss of the pass is not finite. */
bool ses_w2v_check_loss(const ses_w2v *w, ses_err *e);

/* Plans the current round of shard s. False: shard->err. */
bool ses_w2v_plan(ses_w2v *w, int64_t s);

/* Whether one shard uses a row in this round. */
static inline bool ses_w2v_owns(const ses_w2v *w, int64_t s, int32_t row)
{
    return atomic_load_explicit(&w->user[row], memory_order_relaxed) == (w->tag << 8 | (uint32_t)(s + 1));
}

/* State between two rounds. */
bool ses_w2v_save(ses_w2v *w, ses_err *e);
bool ses_w2v_resume(ses_w2v *w, ses_err *e);

/* Writes the output. The weights may be moved: nothing can be trained afterwards. */
bool ses_w2v_write(ses_w2v *w, ses_err *e);

#endif
