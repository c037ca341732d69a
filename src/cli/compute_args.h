/* Options of commands that compute: --threads, --isa, --dtype, --device, --json. A command puts a
 * ses_compute_args into its args and SES_OPT_INCLUDE(args, field, ses_compute_options) into its table.
 *
 * Ownership: strings are borrowed from argv and the environment. Threads: plain data, no shared state. */
#ifndef SES_CLI_COMPUTE_ARGS_H
#define SES_CLI_COMPUTE_ARGS_H

#include "option_parser.h"
#include "sesame/model.h"

typedef struct ses_compute_args {
    int64_t threads;      /* 0: one per core this process may use */
    int isa;              /* ses_isa; -1: the best available */
    int dtype;            /* index in the choices of --dtype */
    bool int8_embeddings; /* quantize embedding tables to int8, too; set by quantize */
    const char *device;   /* "cpu", "cuda", "cuda:N" */
    bool json;
} ses_compute_args;

extern const ses_opt_table ses_compute_options;
extern const ses_opt_table ses_device_option_table; /* the same without --json */

#define SES_OPT_JSON(struct_, field) \
    SES_OPT_FLAG(struct_, field, "json", "write JSON instead of text", .letter = 'j', .of_call = true)

#define SES_OPT_THREADS(struct_, field)                                                                    \
    SES_OPT_INT(struct_, field, "threads", "0", 0, 1024, "worker threads; 0: one per core", .letter = 't', \
                .env = "SESAME_THREADS", .of_call = true)

/* For commands that need a tokenizer but no model. The field is a `const char *`. */
#define SES_OPT_TOKENIZER(struct_, field)                                                                \
    SES_OPT_TEXT(struct_, field, "model", "PATH",                                                        \
                 "model folder, a name listed by 'sesame models', tokenizer.json, SentencePiece .model " \
                 "or vocab.txt; default: the bundled encoder",                                           \
                 .letter = 'm', .is_model = true)

#define SES_OPT_STRICT(struct_, field) \
    SES_OPT_FLAG(struct_, field, "strict", "fail if the files hold a tensor that the model does not use")

/* For commands that open a model. The field is a `const char *`. */
#define SES_OPT_ADAPTER(struct_, field)                                                                    \
    SES_OPT_TEXT(struct_, field, "adapter", "DIR",                                                         \
                 "adapter folder (LoRA, IA3, prefix tuning, ...), applied to the model", .is_model = true, \
                 .group = "model")

/* The same for commands that can apply several. The field is a `ses_opt_list`. */
#define SES_OPT_ADAPTERS(struct_, field)                                                                   \
    SES_OPT_LIST(struct_, field, "adapter", "DIR",                                                         \
                 "adapter folder (LoRA, IA3, prefix tuning, ...), applied to the model", .is_model = true, \
                 .group = "model")
/* The first of them; NULL: none. */
static inline const char *ses_first_adapter(const ses_opt_list *l) { return l->n ? l->item[0] : NULL; }

/* Notes on stderr: tensors in the files that the model does not use, and remote code (auto_map) that is
 * never run. */
void ses_notify_unused_tensors(const ses_model *m);

/* Name of the level on which the bits of results depend: with bf16 products the level itself. */
const char *ses_compute_level(const ses_compute_args *a);
ses_isa ses_compute_isa(const ses_compute_args *a); /* limited to what the CPU and the build support */
int ses_compute_threads(const ses_compute_args *a); /* at least 1 */
ses_device_options ses_compute_device_options(const ses_compute_args *a);

#endif
