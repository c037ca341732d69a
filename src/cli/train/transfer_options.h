/* Ways to transfer, as options of a command that trains: what is trained at all (adapters, frozen layers),
 * how fast each layer is, which head stands on the model. */
#ifndef SES_CLI_TRANSFER_H
#define SES_CLI_TRANSFER_H

#include "base/str.h"
#include "cli/option_parser.h"
#include "sesame/model.h"
#include "sesame/optim.h"

typedef struct ses_transfer_args {
    int adapter; /* ses_adapter_kind */
    int64_t rank;
    double alpha, lora_drop;
    const char *targets;
    const char *freeze;
    bool unfreeze;
    double layer_decay;
    double drop, drop_attention, drop_head;
    int head; /* ses_transfer_head */
    const char *sizes;
    bool mix;
} ses_transfer_args;

typedef enum {
    SES_HEAD_DEFAULT,
    SES_HEAD_LINEAR,
    SES_HEAD_MLP1,
    SES_HEAD_MLP2,
    SES_HEAD_BILSTM,
    SES_HEAD_BIGRU
} ses_transfer_head;

typedef enum { SES_ADAPT_NONE, SES_ADAPT_LORA } ses_adapter_kind;

#define SES_OPT_TRANSFER(struct_, field)                                                                    \
    { .name = "adapter",                                                                                    \
      .type = SES_OPT_CHOICE,                                                                               \
      .offset = offsetof(struct_, field.adapter),                                                           \
      .def = "none",                                                                                        \
      .choices = "none|lora",                                                                               \
      .help = "lora: train low-rank matrices beside the model, and the head; the rest stays as it is" },    \
        { .name = "lora-rank",                                                                              \
          .type = SES_OPT_INT,                                                                              \
          .offset = offsetof(struct_, field.rank),                                                          \
          .def = "8",                                                                                       \
          .min = 1,                                                                                         \
          .max = 1 << 16,                                                                                   \
          .help = "their rank" },                                                                           \
        { .name = "lora-alpha",                                                                             \
          .type = SES_OPT_REAL,                                                                             \
          .offset = offsetof(struct_, field.alpha),                                                         \
          .def = "16",                                                                                      \
          .min = 0,                                                                                         \
          .max = 1e6,                                                                                       \
          .help = "what they add is scaled by this over the rank" },                                        \
        { .name = "lora-dropout",                                                                           \
          .type = SES_OPT_REAL,                                                                             \
          .offset = offsetof(struct_, field.lora_drop),                                                     \
          .def = "0",                                                                                       \
          .min = 0,                                                                                         \
          .max = 0.99,                                                                                      \
          .help = "dropout of what they read" },                                                            \
        { .name = "lora-targets",                                                                           \
          .type = SES_OPT_TEXT,                                                                             \
          .offset = offsetof(struct_, field.targets),                                                       \
          .value = "LAYERS",                                                                                \
          .help = "layers with commas between: the reference's names (query, c_attn) or ffn.up, ...; all; " \
                  "without it attention's queries and values" },                                            \
        { .name = "layer-decay",                                                                            \
          .type = SES_OPT_REAL,                                                                             \
          .offset = offsetof(struct_, field.layer_decay),                                                   \
          .def = "1",                                                                                       \
          .min = 0.01,                                                                                      \
          .max = 1,                                                                                         \
          .help = "each layer's rate is so much of the one above; ULMFiT: 0.385" },                         \
        { .name = "freeze",                                                                                 \
          .type = SES_OPT_TEXT,                                                                             \
          .offset = offsetof(struct_, field.freeze),                                                        \
          .value = "N|all",                                                                                 \
          .help = "keep the embeddings (1) and so many less one layers as they are; all: everything but "   \
                  "the head" },                                                                             \
        { .name = "unfreeze",                                                                               \
          .type = SES_OPT_FLAG,                                                                             \
          .offset = offsetof(struct_, field.unfreeze),                                                      \
          .help = "train the head alone at first, and one layer more each epoch, from the top" },           \
        { .name = "head",                                                                                   \
          .type = SES_OPT_CHOICE,                                                                           \
          .offset = offsetof(struct_, field.head),                                                          \
          .def = "default",                                                                                 \
          .choices = "default|linear|mlp1|mlp2|bilstm|bigru",                                               \
          .help =                                                                                           \
              "classify, tag: the model's own kind; a linear layer; one or two hidden layers before it; "   \
              "recurrent ones in both directions on a frozen encoder" },                                    \
        { .name = "head-sizes",                                                                             \
          .type = SES_OPT_TEXT,                                                                             \
          .offset = offsetof(struct_, field.sizes),                                                         \
          .value = "N,...",                                                                                 \
          .help = "widths of its hidden layers, of a recurrent one in each direction; without it 256" },    \
        { .name = "mix-layers",                                                                             \
          .type = SES_OPT_FLAG,                                                                             \
          .offset = offsetof(struct_, field.mix),                                                           \
          .help = "the head reads a learned mix of all layers, not the last alone (ELMo)" },                \
        { .name = "dropout",                                                                                \
          .type = SES_OPT_REAL,                                                                             \
          .offset = offsetof(struct_, field.drop),                                                          \
          .def = "-1",                                                                                      \
          .min = -1,                                                                                        \
          .max = 0.99,                                                                                      \
          .help = "of hidden states; below 0: as config.json says" },                                       \
        { .name = "attention-dropout",                                                                      \
          .type = SES_OPT_REAL,                                                                             \
          .offset = offsetof(struct_, field.drop_attention),                                                \
          .def = "-1",                                                                                      \
          .min = -1,                                                                                        \
          .max = 0.99,                                                                                      \
          .help = "of attention's probabilities; below 0: as config.json says" },                           \
    {                                                                                                       \
        .name = "classifier-dropout", .type = SES_OPT_REAL, .offset = offsetof(struct_, field.drop_head),   \
        .def = "-1", .min = -1, .max = 0.99, .help = "before the head; below 0: as config.json says"        \
    }

/* Do they fit together? model NULL: it begins at random; takes_own: the task's head may be another. */
bool ses_transfer_check(const ses_transfer_args *a, const char *model, bool takes_own, ses_err *e);
/* The adapter, or NULL; *l is filled. */
const ses_lora *ses_transfer_lora(const ses_transfer_args *a, ses_lora *l);
/* *config is replaced where an option changes it. */
bool ses_transfer_config(const ses_transfer_args *a, ses_json_doc **config, ses_err *e);
/* Groups of the optimizer, by layer; *gradual: l, where it is to be thawed epoch by epoch. */
bool ses_transfer_groups(const ses_transfer_args *a, const ses_model *m, double decay, ses_layer_groups *l,
                         ses_optim_options *o, ses_layer_groups **gradual, ses_err *e);
/* What a resumed run must share. */
void ses_transfer_settings(const ses_transfer_args *a, ses_json_writer *w);
void ses_transfer_card(const ses_transfer_args *a, ses_buf *b); /* a row of the model card's table, or none */
void ses_transfer_use(const ses_transfer_args *a, const ses_model *m, ses_buf *b); /* how to load it, or "" */

#endif
