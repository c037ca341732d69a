/* Common parts of adapters with virtual tokens: prompt tuning, P-tuning, prefix tuning. Ownership and
 * threads: as adapter_impl.h. */
#ifndef SES_MODEL_VIRTUAL_ADAPTER_H
#define SES_MODEL_VIRTUAL_ADAPTER_H

#include "adapter_impl.h"

bool ses_virtual_check_options(const ses_adapter_options *o, ses_err *e);
bool ses_virtual_read(ses_adapter *a, const ses_json *config, ses_err *e);
/* The stack must have positions for the virtual tokens, and no virtual tokens yet. */
bool ses_virtual_check(const ses_adapter *a, const ses_model *m, int stack, ses_err *e);
/* Declares the parameter of [rows, out] values in *x; or, if they are computed in training, its input [rows,
 * in] and the dense layers of v. */
bool ses_virtual_declare(ses_adapter *a, ses_model *m, int64_t rows, int64_t in, int64_t out, ses_virtual *v,
                         ses_tensor **x, ses_err *e);
bool ses_virtual_tensor_name(const ses_adapter *a, const ses_model *m, const char *name, char *buf, size_t n);
/* Adds computed values to the file. */
bool ses_virtual_save(const ses_model *m, ses_safetensors_writer *w, ses_arena *mem, ses_err *e);
/* Their common keys of adapter_config.json. */
void ses_virtual_put(const ses_model *m, const ses_adapter *a, ses_json_writer *w);

#endif
