/* ELMo's original files (bilm-tf): *options.json and HDF5 weights, as config.json and tensors of Sesame's
 * model type "elmo". */
#ifndef SES_IO_ELMO_READ_H
#define SES_IO_ELMO_READ_H

#include "io/safetensors_impl.h"
#include "sesame/json.h"

/* config.json of the folder. */
ses_json_doc *ses_elmo_config_open(const char *dir, ses_err *e);
/* options.json, by its name in the folder. */
ses_json_doc *ses_elmo_options_open(const char *dir, const char *name, ses_err *e);
/* config.json made from options.json. */
ses_json_doc *ses_elmo_config_new(const ses_json *options, ses_err *e);

/* Adds the tensors of an open HDF5 file to s: transposed, with PyTorch's order of gates, and with the
 * constant 1 that TensorFlow adds to forget gates in their bias. Its other tensors keep their names.
 * Tensors that are not converted point to the data of `from`. file: its name. */
bool ses_elmo_read(ses_safetensors *s, const ses_safetensors *from, const char *file, const ses_json *options,
                   ses_err *e);

#endif
