/* `sesame info --flops`: FLOPs of a model, counted from its config (model/flops/model_flops.h).
 * One thread; the caller frees nothing but what it passes. */
#ifndef SES_CLI_FLOPS_INFO_H
#define SES_CLI_FLOPS_INFO_H

#include "cli/command.h"
#include "sesame/model.h"

typedef struct ses_flops_args {
    int64_t length, target_length; /* tokens; 0: the default of the model, the length */
    int64_t batch_size, steps;
    double masked;     /* fraction of the tokens that are predicted, by heads that predict some */
    double generator;  /* ELECTRA: width of the generator as a fraction of the model's; 0: none */
    const char *class; /* NULL: the config's, or one with a language model head */
    bool recompute;
    bool given; /* one of the options was used */
} ses_flops_args;

extern const ses_opt_table ses_flops_options; /* fills a ses_flops_args */

/* name: a model's folder or name, a preset, or a config.json. */
bool ses_flops_info_print(const char *name, const ses_flops_args *a, bool json, const ses_term *t,
                          ses_err *e);

/* FLOPs of a forward pass per token, for a text of `length` tokens. */
double ses_flops_per_token(const ses_model *m, int64_t length);

#endif
