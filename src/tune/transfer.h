/* Transfer learning: adapters, frozen layers, learning rates per layer, heads. Functions of
 * ses_transfer_options; nothing is kept. */
#ifndef SES_TUNE_TRANSFER_H
#define SES_TUNE_TRANSFER_H

#include "base/str.h"
#include "sesame/finetune.h"
#include "sesame/unstable/optim.h"

/* Fails if options exclude each other. model NULL: random weights; allows_head: the task's head can be
 * replaced. */
bool ses_transfer_check(const ses_transfer_options *o, const char *model, bool allows_head, ses_err *e);
/* Is an adapter trained? */
bool ses_transfer_has_adapter(const ses_transfer_options *o);
/* The adapter's settings in *a; NULL: none. */
typedef struct ses_transfer_adapter_of {
    ses_adapter_options o;
    char kind[16]; /* that o points to */
} ses_transfer_adapter_of;
const ses_adapter_options *ses_transfer_adapter(const ses_transfer_options *o, ses_transfer_adapter_of *a);
/* Chooses the kind of adapter for SES_ADAPT_AUTO; dir: the model folder or NULL. Always true. */
bool ses_transfer_resolve(ses_transfer_options *o, const char *dir);
/* The settings of the adapter that the open model trains: if the model folder is an adapter, its
 * own. Other settings than the defaults are then an error. */
bool ses_transfer_continue(ses_transfer_options *o, const ses_model *m, ses_err *e);
/* Replaces *config if head, dropout or layer mix differ from it. */
bool ses_transfer_config(const ses_transfer_options *o, ses_json_doc **config, ses_err *e);
/* Parameter groups of the optimizer by layer. l outlives the optimizer; *unfreezing: l, or NULL. */
bool ses_transfer_groups(const ses_transfer_options *o, const ses_model *m, double weight_decay,
                         ses_layer_groups *l, ses_optim_options *optim, ses_layer_groups **unfreezing,
                         ses_err *e);
/* Members that a resumed run must have in common. */
void ses_transfer_put_settings(const ses_transfer_options *o, ses_json_writer *w);
/* Rows of the model card's table; and how to load the model in Python, or nothing. */
void ses_transfer_put_card(const ses_transfer_options *o, ses_buf *b);
void ses_transfer_put_usage(const ses_transfer_options *o, const ses_model *m, ses_buf *b);

#endif
