/* Settings and progress reports shared by fine-tuning (sesame/finetune.h) and pretraining
 * (sesame/pretrain.h).
 *
 * Structs of settings are values: strings in them are borrowed until the run made from them is freed.
 * Threads: the callback is called by the thread that trains. */
#ifndef SESAME_TRAINING_H
#define SESAME_TRAINING_H

#include "sesame/metric.h"
#include "sesame/unstable/trainer.h"

SES_BEGIN_DECLS

typedef struct ses_training_options {
    /* Length of the run and of its batches. */
    double epochs;            /* passes over the data, may be a fraction */
    int64_t steps;            /* updates, instead of epochs; 0: epochs decide */
    int64_t batch_size;       /* sequences per batch */
    int64_t tokens_per_batch; /* fill batches to N tokens, instead of batch_size; 0: batch_size */
    int64_t accumulate;       /* batches per update and lane; 0: 1 */

    /* Distributed training: see ses_trainer_options. */
    ses_comm *comm;
    int64_t lanes;
    bool weight_by_tokens, comm_bf16;

    /* Optimizer. */
    const char *optimizer,
        *schedule;            /* names of unstable/optim.h and unstable/schedule.h; NULL: adamw, linear */
    double lr;                /* peak learning rate */
    double momentum;          /* sgd; < 0: the optimizer's default */
    double accumulator;       /* adagrad: sum of squares before the first step */
    int64_t average_trigger;  /* asgd: see ses_optim_options */
    double warmup;            /* updates with a rising learning rate; below 1: fraction of the run */
    double plateau_decay;     /* schedule plateau: factor of the learning rate; 0: 0.5 */
    int64_t plateau_patience; /* and evaluations without improvement before it */
    double weight_decay;      /* excluding biases and norms */
    double max_grad_norm;     /* gradients are clipped to this norm; 0: no clipping */
    bool recompute;           /* gradient checkpointing: less memory, identical results */
    int64_t seed;

    /* Evaluation and checkpoints. */
    int64_t eval_every; /* updates between evaluations; 0: at the end of each epoch; -1: only at the end */
    /* Updates between checkpoints; 0: at each evaluation, or as often if evaluation data is absent; -1: only
     * when stopped and at the end. */
    int64_t save_every;
    int64_t keep_checkpoints; /* newest checkpoints kept, in addition to the best; 0: 2 */

    /* Output folder: nothing in it is replaced without `overwrite`. */
    const char *output;      /* created if absent; NULL: only the log and event files, if set */
    const char *log;         /* JSON lines, one per update and evaluation; NULL: OUTPUT/log.jsonl */
    const char *tensorboard; /* folder of event files; NULL: OUTPUT/runs */
    bool resume;             /* continue from the newest checkpoint in output, bit for bit */
    bool overwrite;          /* replace the contents of output */

    /* Energy report of train_results.json, if the machine does not measure it. */
    double core_watts;  /* power of a working core */
    double co2_per_kwh; /* grams of CO2 per kWh */
    /* Price of the run, in any currency: of its time and of its energy; both 0: none is reported. */
    double price_per_hour, price_per_kwh;

    /* Muon: see ses_optim_options. */
    double muon_momentum; /* 0: 0.95 */
    double muon_ratio;
    bool muon_original, muon_whole;

    double decay_part; /* schedule wsd: fraction of the run at its end in which the rate falls; 0: 0.2 */
} ses_training_options;

/* Knowledge distillation (Hinton et al. 2015; DistilBERT, Sanh et al. 2019; TinyBERT, Jiao et al. 2020;
 * MiniLM, Wang et al. 2020, 2021):
 *   loss = soft T^2 KL(teacher / T || student / T) + hard (loss of the labels)
 *        + cosine (1 - cos of the last hidden states)
 *        + hidden (squared error of hidden states, layer by layer)
 *        + attention (squared error of attention scores, layer by layer)
 *        + relation (KL of the relations of tokens, of one layer) */
typedef struct ses_distill_options {
    double temperature; /* T */
    double soft, hard, cosine, hidden, attention;
    /* Relations: softmax(a b' / sqrt(d)) over the tokens of a text, with d columns per relation head, in the
     * student's last layer and a layer of the teacher. Neither widths nor heads need to be equal. */
    double relation;
    const char *relations;  /* "qq,kk,vv" or some of attention, qq, kk, vv; NULL: "qq,kk,vv" (MiniLMv2) */
    int64_t relation_heads; /* must divide both widths; 0: the teacher's heads */
    int64_t teacher_layer;  /* counted from 1; 0: the last */
} ses_distill_options;

/* A student made from the teacher's config.json: the sizes that are not 0 replace the teacher's. */
typedef struct ses_student_options {
    int64_t layers, hidden; /* hidden: width */
    int64_t heads;          /* 0: heads of the teacher's size */
    int64_t ffn;            /* width of feed-forward blocks; 0: in proportion to hidden */
    /* Layers of the teacher that the student starts with: "even" (spread evenly), "bottom", "top", "none", or
     * their numbers, counted from 1: "1,4,8,12". NULL: "even". */
    const char *copy;
} ses_student_options;

typedef struct ses_teacher_options {
    const char *model; /* folder of the teacher; NULL: no distillation */
    bool init_student; /* start from the teacher's weights that fit, its layers chosen by student.copy */
    ses_distill_options distill;
    /* [n_more] further teachers: the student learns the mean of the probabilities of all (soft only). */
    const char *const *more;
    size_t n_more;
    /* If a size is set, it makes the student, instead of another model or config: the tokenizer is the
     * teacher's, and weights that fit are copied unless copy is "none". */
    ses_student_options student;
} ses_teacher_options;

typedef enum {
    SES_TRAINING_STARTED,    /* data and model are loaded, the first batch follows */
    SES_TRAINING_STEP,       /* one batch is done: `step` */
    SES_TRAINING_EVALUATING, /* one batch of an evaluation is done: `done` of `total` sequences */
    SES_TRAINING_EVALUATED,  /* `scores`, `loss`, `metric`, `is_best` */
    SES_TRAINING_NOTICE      /* `text`: truncated examples, a new head, a skipped checkpoint, ... */
} ses_training_event_kind;

/* Fields that an event does not name are 0 or NULL; pointers are valid during the call. */
typedef struct ses_training_event {
    ses_training_event_kind kind;
    const ses_trainer *trainer; /* state, total updates; NULL in notices before training starts */
    const ses_step_result *step;
    int64_t done, total;
    const ses_scores *scores;
    double loss, metric; /* NaN: unknown; metric: the score that selects the best checkpoint */
    bool is_best;
    const char *text; /* one sentence, no newline */
    bool is_warning;  /* the notice is a warning, not only information */
} ses_training_event;

/* Returns whether to continue. false stops the run: it saves a checkpoint and returns SES_RUN_STOPPED. */
typedef bool ses_training_fn(void *ctx, const ses_training_event *event);

/* Figures of a finished run, with the part before a resume: its time and energy up to the checkpoint. */
typedef struct ses_training_stats {
    double seconds, train_loss;         /* train_loss: mean over updates; NaN: none */
    int64_t first_update;               /* first update counted; not 0: its checkpoint had no figures */
    int64_t updates, sequences, tokens; /* trained */
    double joules, gpu_joules;          /* gpu_joules: part of joules; 0: no GPU, or not measured */
    bool energy_is_measured;            /* the CPU's part; false: estimated */
    char energy_source[256];            /* counters read, the reason for an estimate or for a missing GPU */
    double flops;                       /* FLOPs of the models in all updates: see ses_train_state */
    double price;                       /* NaN: none is set */
} ses_training_stats;

SES_END_DECLS

#endif
