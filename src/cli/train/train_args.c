/* Options of commands that train. */
#include "train_args.h"

#include "sesame/optim.h"
#include "sesame/schedule.h"

#define AT(field) offsetof(ses_train_args, field)

static const ses_opt batch_opt[] = {
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
      .help = "batches per update" },
};
const ses_opt_table ses_train_batch_options = { batch_opt, SES_LEN(batch_opt) };

static const ses_opt optimizer_opt[] = {
    { .name = "optimizer",
      .type = SES_OPT_CHOICE,
      .offset = AT(optimizer),
      .def = "adamw",
      .choices = "adamw|bert_adam|sgd|adafactor|lamb",
      .help = "optimizer" },
    { .name = "schedule",
      .type = SES_OPT_CHOICE,
      .offset = AT(schedule),
      .def = "linear",
      .choices = "constant|linear|cosine|inverse_sqrt|polynomial|slanted",
      .help = "learning-rate schedule" },
};
const ses_opt_table ses_train_optimizer_options = { optimizer_opt, SES_LEN(optimizer_opt) };

static const ses_opt update_opt[] = {
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
};
const ses_opt_table ses_train_update_options = { update_opt, SES_LEN(update_opt) };

static const ses_opt log_opt[] = {
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
};
const ses_opt_table ses_train_log_options = { log_opt, SES_LEN(log_opt) };

static const ses_opt resume_opt[] = {
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = AT(run.resume),
      .help = "continue from the newest checkpoint in OUT, by default with its options; start anew if OUT is "
              "empty" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = AT(run.overwrite),
      .help = "replace the contents of OUT" },
};
const ses_opt_table ses_train_resume_options = { resume_opt, SES_LEN(resume_opt) };

#define WEIGHT(name_, field, default_, help_)                                                        \
    {                                                                                                \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(ses_teacher_options, distill.field), \
        .def = default_, .min = 0, .max = 1e6, .help = help_                                         \
    }

static const ses_opt teacher_opt[] = {
    { .name = "teacher",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_teacher_options, model),
      .value = "DIR",
      .is_model = true,
      .help = "distill from this model" },
    { .name = "from-teacher",
      .type = SES_OPT_FLAG,
      .offset = offsetof(ses_teacher_options, init_student),
      .help = "start from the teacher's weights that fit, its layers spread evenly" },
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
};
const ses_opt_table ses_teacher_option_table = { teacher_opt, SES_LEN(teacher_opt) };

ses_training_options ses_train_args_options(const ses_train_args *a)
{
    ses_training_options r = a->run;
    r.optimizer = ses_optim_name((size_t)a->optimizer, NULL);
    r.schedule = ses_schedule_name((size_t)a->schedule, NULL);
    r.core_watts = a->energy.core_watts;
    r.co2_per_kwh = a->energy.co2_per_kwh;
    return r;
}
