/* Options of training runs. */
#include "train_options.h"

#include "sesame/unstable/optim.h"
#include "sesame/unstable/schedule.h"
#include "train/optim/optim_kind.h"

static const ses_opt opt[] = {
    SES_OPT_INT(ses_train_args, run.steps, "steps", "0", 0, 1e12,
                "updates, instead of epochs; 0: use epochs"),
    SES_OPT_INT(ses_train_args, run.batch_size, "batch-size", "32", 1, 1 << 20, "sequences per batch",
                .letter = 'b', .common = true),
    SES_OPT_INT(ses_train_args, run.tokens_per_batch, "tokens-per-batch", "0", 0, 1 << 30,
                "fill batches to N tokens instead"),
    SES_OPT_INT(ses_train_args, run.accumulate, "accumulate", "1", 1, 1 << 20, "batches per update and lane"),
    SES_OPT_INT(
        ses_train_args, run.lanes, "lanes", "0", 0, 65536,
        "groups of batches whose gradients are summed in a fixed order: results depend on G, not on the "
        "number of ranks, which is at most G; 0: the number of ranks, or as the resumed run",
        .value = "G"),
    SES_OPT_CHOICE(
        ses_train_args, loss_mean, "loss-mean", "batches", "batches|tokens",
        "mean over the batches of an update: batches: of their mean losses; tokens: of all predictions, as "
        "one large batch would"),
    SES_OPT_CHOICE(
        ses_train_args, gradients, "gradients", "f32", "f32|bf16",
        "type of gradients sent between ranks; bf16: half the bytes, and results that depend on the "
        "number of ranks"),
    SES_OPT_CHOICE(ses_train_args, optimizer, "optimizer", "adamw",
                   "adamw|bert_adam|sgd|adafactor|lamb|adagrad|asgd|muon", "optimizer", .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.momentum, "momentum", "0.9", 0, 0.99999, "momentum of sgd",
                 .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.accumulator, "accumulator", "0", 0, 1e9,
                 "adagrad: sum of squares before the first step; ELMo: 1", .group = "optimizer"),
    SES_OPT_INT(ses_train_args, run.average_trigger, "average-trigger", "5", 0, 1e6,
                "asgd: average the weights once an evaluation is worse than the best one before the last N "
                "(AWD-LSTM); 0: from the start",
                .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.muon_momentum, "muon-momentum", "0.95", 0.001, 0.99999,
                 "muon: momentum of hidden matrices", .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.muon_ratio, "muon-ratio", "1", 1e-6, 1e6,
                 "muon: learning rate of hidden matrices, relative to that of the other parameters",
                 .group = "optimizer"),
    SES_OPT_CHOICE(ses_train_args, muon_scale, "muon-scale", "match_rms_adamw", "match_rms_adamw|original",
                   "muon: factor of updates: 0.2 sqrt(max(rows, columns)) or sqrt(max(1, outputs / inputs))",
                   .group = "optimizer"),
    SES_OPT_FLAG(ses_train_args, run.muon_whole, "muon-whole",
                 "muon: orthogonalize fused matrices (queries, keys and values; gate and value) as a whole",
                 .group = "optimizer"),
    SES_OPT_CHOICE(
        ses_train_args, schedule, "schedule", "linear",
        "constant|linear|cosine|inverse_sqrt|polynomial|slanted|plateau|one_cycle|wsd",
        "learning-rate schedule: constant, linear, cosine, inverse_sqrt, polynomial, slanted, plateau, "
        "one_cycle or wsd",
        .value = "NAME", .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.decay_part, "decay-part", "0.2", 0.001, 1,
                 "schedule wsd: fraction of the run at its end in which the learning rate falls",
                 .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.plateau_decay, "plateau-decay", "0.5", 1e-6, 1,
                 "schedule plateau: factor of the learning rate", .group = "optimizer"),
    SES_OPT_INT(ses_train_args, run.plateau_patience, "plateau-patience", "3", 0, 1e9,
                "schedule plateau: evaluations without improvement that leave the learning rate unchanged",
                .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.weight_decay, "weight-decay", "0.01", 0, 10,
                 "weight decay, excluding biases and norms", .group = "optimizer"),
    SES_OPT_REAL(ses_train_args, run.max_grad_norm, "clip", "1", 0, 1e9,
                 "maximum gradient norm; 0: no clipping", .group = "optimizer"),
    SES_OPT_FLAG(ses_train_args, run.recompute, "recompute",
                 "gradient checkpointing: less memory, identical results"),
    SES_OPT_INT(ses_train_args, run.eval_every, "eval-every", "0", -1, 1e12,
                "updates between evaluations; 0: at the end of each epoch; -1: only at the end",
                .group = "logs"),
    SES_OPT_INT(ses_train_args, run.save_every, "save-every", "0", -1, 1e12,
                "updates between checkpoints; 0: at each evaluation; -1: when stopped and at the end",
                .group = "logs"),
    SES_OPT_INT(
        ses_train_args, run.keep_checkpoints, "keep-checkpoints", "0", 0, 1000,
        "checkpoints kept, in addition to the best if evaluations select one; 0: one, which finetune deletes "
        "at the end of the run",
        .alias = "keep", .group = "logs"),
    SES_OPT_INT(ses_train_args, run.seed, "seed", "42", 0, 9e15, "random seed", .letter = 's',
                .common = true),
    SES_OPT_TEXT(
        ses_train_args, run.log, "log", "FILE",
        "JSON lines: loss, learning rate and gradient norm of each update, scores of each evaluation; "
        "default: OUT/log.jsonl",
        .group = "logs"),
    SES_OPT_TEXT(ses_train_args, run.tensorboard, "tensorboard", "DIR",
                 "TensorBoard event files; default: OUT/runs", .group = "logs"),
    SES_OPT_INCLUDE(ses_train_args, energy, ses_energy_options),
    SES_OPT_FLAG(
        ses_train_args, run.resume, "resume",
        "continue from the newest checkpoint in OUT, by default with its options; start anew if OUT is "
        "empty",
        .of_call = true, .common = true),
    SES_OPT_FLAG(ses_train_args, run.overwrite, "overwrite", "replace the contents of OUT", .of_call = true,
                 .common = true),
};
const ses_opt_table ses_train_options = { opt, SES_LEN(opt), "training" };

#define WEIGHT(name_, field, default_, help_) \
    SES_OPT_REAL(ses_teacher_options, distill.field, name_, default_, 0, 1e6, help_)

#define STUDENT_SIZE(name_, field, max_, zero_, help_) \
    SES_OPT_INT(ses_teacher_options, student.field, name_, "0", 0, max_, help_, .zero_word = zero_)

static const ses_opt teacher_opt[] = {
    SES_OPT_FLAG(ses_teacher_options, init_student, "from-teacher",
                 "start from the teacher's weights that fit, layers as --copy-layers"),
    SES_OPT_TEXT(ses_teacher_options, student.copy, "copy-layers", "WHICH",
                 "layers of the teacher that the student starts with: even (default: spread evenly), bottom, "
                 "top, none, "
                 "or numbers counted from 1, e.g. 1,4,8,12"),
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
    SES_OPT_REAL(ses_teacher_options, distill.temperature, "temperature", "2", 0.01, 1000,
                 "distillation temperature"),
    WEIGHT("soft-weight", soft, "5", "distillation: weight of the teacher's predictions"),
    WEIGHT("hard-weight", hard, "2", "distillation: weight of the labels"),
    WEIGHT("cosine-weight", cosine, "0",
           "distillation: weight of the cosine of last hidden states (DistilBERT: 1)"),
    WEIGHT("hidden-weight", hidden, "0", "distillation: weight of hidden states, layer by layer (TinyBERT)"),
    WEIGHT("attention-weight", attention, "0",
           "distillation: weight of attention scores, layer by layer (TinyBERT)"),
    WEIGHT("relation-weight", relation, "0",
           "distillation: weight of the relations of tokens in the last layer (MiniLM); any width and heads"),
    SES_OPT_TEXT(ses_teacher_options, distill.relations, "relations", "LIST",
                 "relations of queries, keys and values: some of attention, qq, kk, vv; default: qq,kk,vv "
                 "(MiniLMv2); "
                 "MiniLM: attention,vv"),
    SES_OPT_INT(ses_teacher_options, distill.relation_heads, "relation-heads", "0", 0, 65536,
                "heads of relations, which divide both widths; by default the teacher's attention heads",
                .zero_word = "teacher"),
    SES_OPT_INT(ses_teacher_options, distill.teacher_layer, "teacher-layer", "0", 0, 1024,
                "layer of the teacher whose relations are taught, counted from 1", .zero_word = "last"),
};
const ses_opt_table ses_teacher_option_table = { teacher_opt, SES_LEN(teacher_opt), "distill" };

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
    if (!r.keep_checkpoints) r.keep_checkpoints = 1;
    r.muon_original = a->muon_scale == 1;
    r.core_watts = a->energy.core_watts;
    r.co2_per_kwh = a->energy.co2_per_kwh;
    r.price_per_hour = a->energy.price_per_hour;
    r.price_per_kwh = a->energy.price_per_kwh;
    return r;
}
