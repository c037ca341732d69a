/* Opens the checkpoint of a folder with TensorFlow files: its tensors under transformers' names, and its
 * config.json. class: the model class to be opened, which decides between the two models in a checkpoint of
 * ELECTRA; NULL: not known. */
#ifndef SES_IO_TF_READ_H
#define SES_IO_TF_READ_H

#include "io/safetensors_impl.h"
#include "sesame/json.h"
#include "tf_checkpoint.h"

/* Reads PREFIX.index in dir. Errors name it. Free with ses_tf_index_free if it succeeds. */
bool ses_tf_index_open(ses_tf_index *x, const char *dir, const char *prefix, ses_err *e);

/* Adds the tensors of a checkpoint; `get` returns the bytes of a shard by its file name. */
bool ses_tf_read(ses_safetensors *s, const ses_tf_index *x, const char *prefix, const char *class,
                 ses_shard_source *get, void *ctx, ses_err *e);

/* config.json of the folder, derived from its files. */
ses_json_doc *ses_tf_config_open(const char *dir, const char *class, ses_err *e);

#endif
