/* Parts of the reduction of models. */
#ifndef SES_MODEL_REDUCE_IMPL_H
#define SES_MODEL_REDUCE_IMPL_H

#include "model/model_desc.h"
#include "model/reduce.h"

/* reduce_config.c: the config of the reduced model, without the keys of quantized weights. */
ses_json_doc *ses_reduced_config(const ses_model *m, const ses_reduction *r, ses_reduced_form form,
                                 ses_err *e);

#endif
