/* Options of the pretraining objectives. A static table: any thread. */
#ifndef SES_PRETRAIN_OBJECTIVE_OPTIONS_H
#define SES_PRETRAIN_OBJECTIVE_OPTIONS_H

#include "base/opt_table.h"
#include "sesame/pretrain.h"

extern const ses_opt_table ses_objective_option_table; /* for a ses_objective_options */

#endif
