/* Options of every command that computes: --threads, --isa, --device, --json.
 * Put a ses_compute_args into the command's args and SES_OPT_COMPUTE(args, field) into its table. */
#ifndef SES_CLI_SHARED_H
#define SES_CLI_SHARED_H

#include "option_parser.h"
#include "sesame/model.h"

typedef struct ses_compute_args {
    int64_t threads;      /* 0: one for each core this process may use */
    int isa;              /* ses_isa, or -1: the best */
    int dtype;            /* of the choices below */
    bool int8_embeddings; /* embeddings in 8 bits, too: quantize's */
    const char *device;   /* "cpu", "cuda", "cuda:N" */
    bool json;
} ses_compute_args;

#define SES_OPT_JSON(struct_, field)                                                             \
    {                                                                                            \
        .name = "json", .letter = 'j', .type = SES_OPT_FLAG, .offset = offsetof(struct_, field), \
        .help = "write JSON instead of text"                                                     \
    }

#define SES_OPT_THREADS(struct_, field)                                                            \
    {                                                                                              \
        .name = "threads", .letter = 't', .type = SES_OPT_INT, .offset = offsetof(struct_, field), \
        .def = "0", .min = 0, .max = 1024, .env = "SESAME_THREADS",                                \
        .help = "worker threads; 0: one for each core"                                             \
    }

#define SES_OPT_COMPUTE(struct_, field)                                                 \
    SES_OPT_THREADS(struct_, field.threads),                                            \
        { .name = "isa",                                                                \
          .type = SES_OPT_CHOICE,                                                       \
          .offset = offsetof(struct_, field.isa),                                       \
          .choices = "ref|avx2|avx512",                                                 \
          .env = "SESAME_ISA",                                                          \
          .help = "highest instruction set to use; without it the best there is" },     \
        { .name = "dtype",                                                              \
          .type = SES_OPT_CHOICE,                                                       \
          .offset = offsetof(struct_, field.dtype),                                     \
          .def = "f32",                                                                 \
          .choices = "f32|f16|bf16|int8",                                               \
          .help = "dense weights where nothing is trained; on a GPU all activations" }, \
        { .name = "device",                                                             \
          .type = SES_OPT_TEXT,                                                         \
          .offset = offsetof(struct_, field.device),                                    \
          .def = "cpu",                                                                 \
          .value = "DEVICE",                                                            \
          .env = "SESAME_DEVICE",                                                       \
          .help = "where to compute: cpu, cuda or cuda:NUMBER" },                       \
        SES_OPT_JSON(struct_, field.json)

/* Of commands that need a tokenizer and no model: put a `const char *` there. */
#define SES_OPT_TOKENIZER(struct_, field)                                                         \
    {                                                                                             \
        .name = "model", .letter = 'm', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field), \
        .value = "PATH", .required = true, .is_model = true,                                      \
        .help = "model folder, tokenizer.json, SentencePiece .model or vocab.txt"                 \
    }

#define SES_OPT_STRICT(struct_, field)                                              \
    {                                                                               \
        .name = "strict", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field), \
        .help = "a tensor in the files that the model does not use is an error"     \
    }

/* Of commands that open a model: put a `const char *` there. */
#define SES_OPT_ADAPTER(struct_, field)                                                              \
    {                                                                                                \
        .name = "adapter", .type = SES_OPT_TEXT, .offset = offsetof(struct_, field), .value = "DIR", \
        .is_model = true, .help = "a LoRA adapter, as the peft library writes it, for the model"     \
    }

/* A line on stderr about tensors that were passed over, and one about code that is not run. */
void ses_notify_unused_tensors(const ses_model *m);

ses_isa ses_compute_isa(const ses_compute_args *s); /* what will run: capped by what CPU and build have */
int ses_compute_threads(const ses_compute_args *s); /* at least 1 */
ses_device_options ses_compute_device_options(const ses_compute_args *s);

#endif
