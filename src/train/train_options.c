/* Options of training runs. */
#include "train_options.h"

#include "sesame/optim.h"
#include "sesame/schedule.h"
#include "train/optim/optim_kind.h"

#define AT(field) offsetof(ses_train_args, field)

static const ses_opt opt[] = {
    { .name = "steps",
      .type = SES_OPT_INT,
      .offset = AT(run.steps),
      .def = "0",
      .min = 0,
      .max = 1e12,
      .help = "updates, instead of epochs; 0: use epochs" },
    { .name = "batch-size",
      .letter = 'b',
      .type = SES_OPT_INT,
      .offset = AT(run.batch_size),
      .def = "32",
      .min = 1,
      .max = 1 << 20,
      .help = "sequences per batch" },
    { .name = "tokens-per-batch",
      .type = SES_OPT_INT,
      .offset = AT(run.tokens_per_batch),
      .def = "0",
      .min = 0,
      .max = 1 << 30,
      .help = "fill batches to N tokens instead" },
    { .name = "accumulate",
      .type = SES_OPT_INT,
      .offset = AT(run.accumulate),
      .def = "1",
      .min = 1,
      .max = 1 << 20,
      .help = "batches per update and lane" },
    { .name = "lanes",
      .type = SES_OPT_INT,
      .offset = AT(run.lanes),
      .def = "0",
      .min = 0,
      .max = 65536,
      .value = "G",
      .help =
          "groups of batches whose gradients are summed in a fixed order: results depend on G, not on the "
          "number of ranks, which is at most G; 0: the number of ranks, or as the resumed run" },
    { .name = "loss-mean",
      .type = SES_OPT_CHOICE,
      .offset = AT(loss_mean),
      .def = "batches",
      .choices = "batches|tokens",
      .help =
          "mean over the batches of an update: batches: of their mean losses; tokens: of all predictions, as "
          "one large batch would" },
    { .name = "gradients",
      .type = SES_OPT_CHOICE,
      .offset = AT(gradients),
      .def = "f32",
      .choices = "f32|bf16",
      .help = "type of gradients sent between ranks; bf16: half the bytes, and results that depend on the "
              "number of ranks" },
    { .name = "optimizer",
      .type = SES_OPT_CHOICE,
      .offset = AT(optimizer),
      .def = "adamw",
      .choices = "adamw|bert_adam|sgd|adafactor|lamb|adagrad|asgd|muon",
      .help = "optimizer" },
    { .name = "momentum",
      .type = SES_OPT_REAL,
      .offset = AT(run.momentum),
      .def = "0.9",
      .min = 0,
      .max = 0.99999,
      .help = "momentum of sgd" },
    { .name = "accumulator",
      .type = SES_OPT_REAL,
      .offset = AT(run.accumulator),
      .def = "0",
      .min = 0,
      .max = 1e9,
      .help = "adagrad: sum of squares before the first step; ELMo: 1" },
    { .name = "average-trigger",
      .type = SES_OPT_INT,
      .offset = AT(run.average_trigger),
      .def = "5",
      .min = 0,
      .max = 1e6,
      .help = "asgd: average the weights once an evaluation is worse than the best one before the last N "
              "(AWD-LSTM); 0: from the start" },
    { .name = "muon-momentum",
      .type = SES_OPT_REAL,
      .offset = AT(run.muon_momentum),
      .def = "0.95",
      .min = 0.001,
      .max = 0.99999,
      .help = "muon: momentum of hidden matrices" },
    { .name = "muon-ratio",
      .type = SES_OPT_REAL,
      .offset = AT(run.muon_ratio),
      .def = "1",
      .min = 1e-6,
      .max = 1e6,
      .help = "muon: learning rate of hidden matrices, relative to that of the other parameters" },
    { .name = "muon-scale",
      .type = SES_OPT_CHOICE,
      .offset = AT(muon_scale),
      .def = "match_rms_adamw",
      .choices = "match_rms_adamw|original",
      .help = "muon: factor of updates: 0.2 sqrt(max(rows, columns)) or sqrt(max(1, outputs / inputs))" },
    { .name = "muon-whole",
      .type = SES_OPT_FLAG,
      .offset = AT(run.muon_whole),
      .help = "muon: orthogonalize fused matrices (queries, keys and values; gate and value) as a whole" },
    { .name = "schedule",
      .type = SES_OPT_CHOICE,
      .offset = AT(schedule),
      .def = "linear",
      .choices = "constant|linear|cosine|inverse_sqrt|polynomial|slanted|plateau|one_cycle|wsd",
      .value = "NAME",
      .help = "learning-rate schedule: constant, linear, cosine, inverse_sqrt, polynomial, slanted, plateau, "
              "one_cycle or wsd" },
    { .name = "decay-part",
      .type = SES_OPT_REAL,
      .offset = AT(run.decay_part),
      .def = "0.2",
      .min = 0.001,
      .max = 1,
      .help = "schedule wsd: fraction of the run at its end in which the learning rate falls" },
    { .name = "plateau-decay",
      .type = SES_OPT_REAL,
      .offset = AT(run.plateau_decay),
      .def = "0.5",
      .min = 1e-6,
      .max = 1,
      .help = "schedule plateau: factor of the learning rate" },
    { .name = "plateau-patience",
      .type = SES_OPT_INT,
      .offset = AT(run.plateau_patience),
      .def = "3",
      .min = 0,
      .max = 1e9,
      .help = "schedule plateau: evaluations without improvement that leave the learning rate unchanged" },
    { .name = "weight-decay",
      .type = SES_OPT_REAL,
      .offset = AT(run.weight_decay),
      .def = "0.01",
      .min = 0,
      .max = 10,
      .help = "weight decay, excluding biases and norms" },
    { .name = "clip",
      .type = SES_OPT_REAL,
      .offset = AT(run.max_grad_norm),
      .def = "1",
      .min = 0,
      .max = 1e9,
      .help = "maximum gradient norm; 0: no clipping" },
    { .name = "recompute",
      .type = SES_OPT_FLAG,
      .offset = AT(run.recompute),
      .help = "gradient checkpointing: less memory, identical results" },
    { .name = "eval-every",
      .type = SES_OPT_INT,
      .offset = AT(run.eval_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between evaluations; 0: at the end of each epoch; -1: only at the end" },
    { .name = "save-every",
      .type = SES_OPT_INT,
      .offset = AT(run.save_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between checkpoints; 0: at each evaluation; -1: when stopped and at the end" },
    { .name = "keep-checkpoints",
      .alias = "keep",
      .type = SES_OPT_INT,
      .offset = AT(run.keep_checkpoints),
      .def = "1",
      .min = 1,
      .max = 1000,
      .help = "checkpoints kept, in addition to the best if evaluations select one" },
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = AT(run.seed),
      .def = "42",
      .min = 0,
      .max = 9e15,
      .help = "random seed" },
    { .name = "log",
      .type = SES_OPT_TEXT,
      .offset = AT(run.log),
      .value = "FILE",
      .help = "JSON lines: loss, learning rate and gradient norm of each update, scores of each evaluation; "
              "default: OUT/log.jsonl" },
    { .name = "tensorboard",
      .type = SES_OPT_TEXT,
      .offset = AT(run.tensorboard),
      .value = "DIR",
      .help = "TensorBoard event files; default: OUT/runs" },
    SES_OPT_INCLUDE(ses_train_args, energy, ses_energy_options),
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = AT(run.resume),
      .of_call = true,
      .help = "continue from the newest checkpoint in OUT, by default with its options; start anew if OUT is "
              "empty" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = AT(run.overwrite),
      .of_call = true,
      .help = "replace the contents of OUT" },
};
const ses_opt_table ses_train_options = { opt, SES_LEN(opt) };

#define WEIGHT(name_, field, default_, help_)                                                        \
    {                                                                                                \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(ses_teacher_options, distill.field), \
        .def = default_, .min = 0, .max = 1e6, .help = help_                                         \
    }

#define STUDENT_SIZE(name_, field, max_, zero_, help_)                                              \
    {                                                                                               \
        .name = name_, .type = SES_OPT_INT, .offset = offsetof(ses_teacher_options, student.field), \
        .def = "0", .zero_word = zero_, .min = 0, .max = max_, .help = help_                        \
    }

static const ses_opt teacher_opt[] = {
    { .name = "from-teacher",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_teacher_options, init_student),
      .help = "start from the teacher's weights that fit, layers as --copy-layers" },
    { .name = "copy-layers",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_teacher_options, student.copy),
      .value = "WHICH",
      .help = "layers of the teacher that the student starts with: even (default: spread evenly), bottom, "
              "top, none, "
              "or numbers counted from 1, e.g. 1,4,8,12" },
    STUDENT_SIZE(
        "student-layers", layers, 1024, "teacher",
        "make the student of the teacher's config with N layers, instead of --model or --config; it starts "
        "from the teacher's weights that fit"),
    STUDENT_SIZE("student-hidden", hidden, 65536, "teacher",
                 "width of such a student; another width starts at random"),
    STUDENT_SIZE("student-heads", heads, 65536, "width",
                 "attention heads of such a student; by default of the teacher's size"),
    STUDENT_SIZE("student-ffn", ffn, 1048576, "width",
                 "width of its feed-forward blocks; by default in proportion to its width"),
    { .name = "temperature",
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_teacher_options, distill.temperature),
      .def = "2",
      .min = 0.01,
      .max = 1000,
      .help = "distillation temperature" },
    WEIGHT("soft-weight", soft, "5", "distillation: weight of the teacher's predictions"),
    WEIGHT("hard-weight", hard, "2", "distillation: weight of the labels"),
    WEIGHT("cosine-weight", cosine, "0",
           "distillation: weight of the cosine of last hidden states (DistilBERT: 1)"),
    WEIGHT("hidden-weight", hidden, "0", "distillation: weight of hidden states, layer by layer (TinyBERT)"),
    WEIGHT("attention-weight", attention, "0",
           "distillation: weight of attention scores, layer by layer (TinyBERT)"),
    WEIGHT("relation-weight", relation, "0",
           "distillation: weight of the relations of tokens in the last layer (MiniLM); any width and heads"),
    { .name = "relations",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_teacher_options, distill.relations),
      .value = "LIST",
      .help = "relations of queries, keys and values: some of attention, qq, kk, vv; default: qq,kk,vv "
              "(MiniLMv2); "
              "MiniLM: attention,vv" },
    { .name = "relation-heads",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_teacher_options, distill.relation_heads),
      .def = "0",
      .zero_word = "teacher",
      .min = 0,
      .max = 65536,
      .help = "heads of relations, which divide both widths; by default the teacher's attention heads" },
    { .name = "teacher-layer",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_teacher_options, distill.teacher_layer),
      .def = "0",
      .zero_word = "last",
      .min = 0,
      .max = 1024,
      .help = "layer of the teacher whose relations are taught, counted from 1" },
};
const ses_opt_table ses_teacher_option_table = { teacher_opt, SES_LEN(teacher_opt) };

bool ses_training_optimizer(const ses_training_options *r, ses_optim_options *o, ses_err *e)
{
    if (!ses_optim_defaults(r->optimizer, o, e)) return false;
    unsigned uses = ses_optim_find(o->name)->uses;
    o->lr = r->lr;
    if (uses & SES_OPTIM_USES_MOMENTUM && r->momentum >= 0) o->momentum = r->momentum;
    if (uses & SES_OPTIM_USES_ACCUMULATOR) o->accumulator = r->accumulator;
    if (uses & SES_OPTIM_USES_AVERAGE_TRIGGER) o->average_trigger = r->average_trigger;
    if (uses & SES_OPTIM_USES_MUON) {
        if (r->muon_momentum > 0) o->momentum = r->muon_momentum;
        o->muon_ratio = r->muon_ratio;
        o->muon_original = r->muon_original;
        o->muon_whole = r->muon_whole;
    }
    o->relative_step = o->scale_parameter = false; /* adafactor: the schedule sets the rate */
    return true;
}

bool ses_training_schedule(const ses_training_options *r, ses_trainer_options *o, ses_err *e)
{
    if (!ses_schedule_defaults(r->schedule, &o->schedule, e)) return false;
    if (r->plateau_decay > 0) o->schedule.decay = r->plateau_decay;
    o->schedule.patience = r->plateau_patience;
    if (r->decay_part > 0) o->schedule.decay_part = r->decay_part;
    if (r->warmup >= 1)
        o->schedule.warmup = (int64_t)r->warmup;
    else if (!ses_schedule_rises(&o->schedule))
        o->warmup_ratio = r->warmup;
    return true;
}

void ses_training_put_lanes(const ses_training_options *r, ses_json_writer *w)
{
    if (r->lanes > 1) ses_json_member_int(w, "lanes", r->lanes);
    if (r->weight_by_tokens) ses_json_member_string(w, "loss_mean", "tokens");
    if (r->comm_bf16) ses_json_member_string(w, "gradients", "bf16");
}

static void put_muon(const ses_training_options *r, ses_json_writer *w)
{
    ses_json_member_real(w, "muon_momentum", r->muon_momentum > 0 ? r->muon_momentum : 0.95);
    ses_json_member_real(w, "muon_ratio", r->muon_ratio > 0 ? r->muon_ratio : 1);
    ses_json_member_string(w, "muon_scale", r->muon_original ? "original" : "match_rms_adamw");
    ses_json_member_bool(w, "muon_whole", r->muon_whole);
}

void ses_training_put_optimizer(const ses_training_options *r, ses_json_writer *w)
{
    const ses_optim_kind *kind = ses_optim_find(r->optimizer);
    unsigned uses = kind ? kind->uses : 0;
    ses_json_member_string(w, "optimizer", r->optimizer);
    if (uses & SES_OPTIM_USES_MOMENTUM && r->momentum >= 0) ses_json_member_real(w, "momentum", r->momentum);
    if (uses & SES_OPTIM_USES_ACCUMULATOR) ses_json_member_real(w, "accumulator", r->accumulator);
    if (uses & SES_OPTIM_USES_AVERAGE_TRIGGER) ses_json_member_int(w, "average_trigger", r->average_trigger);
    if (uses & SES_OPTIM_USES_MUON) put_muon(r, w);
    ses_json_member_string(w, "schedule", r->schedule);
    ses_json_member_real(w, "warmup", r->warmup);
    if (ses_schedule_decays_late(&(ses_schedule){ .name = r->schedule }))
        ses_json_member_real(w, "decay_part", r->decay_part > 0 ? r->decay_part : 0.2);
    if (!ses_schedule_needs_evaluation(&(ses_schedule){ .name = r->schedule })) return;
    ses_json_member_real(w, "plateau_decay", r->plateau_decay);
    ses_json_member_int(w, "plateau_patience", r->plateau_patience);
}

ses_training_options ses_train_args_options(const ses_train_args *a)
{
    ses_training_options r = a->run;
    r.optimizer = ses_optim_name((size_t)a->optimizer, NULL);
    r.schedule = ses_schedule_name((size_t)a->schedule, NULL);
    r.weight_by_tokens = a->loss_mean == 1;
    r.comm_bf16 = a->gradients == 1;
    r.muon_original = a->muon_scale == 1;
    r.core_watts = a->energy.core_watts;
    r.co2_per_kwh = a->energy.co2_per_kwh;
    r.price_per_hour = a->energy.price_per_hour;
    r.price_per_kwh = a->energy.price_per_kwh;
    return r;
}
