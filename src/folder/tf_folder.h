/* Folders with a TensorFlow checkpoint: PREFIX.index and PREFIX.data-00000-of-00001 and so on, beside
 * bert_config.json, vocab.txt or other files of google-research's archives. Weights, configs and
 * tokenizers are found through these functions. */
#ifndef SES_FOLDER_TF_FOLDER_H
#define SES_FOLDER_TF_FOLDER_H

#include "sesame/base.h"

/* Does the folder contain a file *.index? */
bool ses_tf_folder_is(const char *dir);

/* PREFIX of the folder's checkpoint. Of several, the one that the file `checkpoint` names, else the one
 * with the highest step (model.ckpt-1000). NULL: none, or no way to choose. Free with ses_free. */
char *ses_tf_folder_prefix(const char *dir, ses_err *e);

#endif
