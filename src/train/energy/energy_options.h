/* Options of the energy estimate (base/energy_meter.h), for commands that train.
 * Constant tables: no ownership, safe in all threads. */
#ifndef SES_TRAIN_ENERGY_OPTIONS_H
#define SES_TRAIN_ENERGY_OPTIONS_H

#include "base/opt_table.h"
#include "energy_meter.h"

extern const ses_opt_table ses_energy_options; /* fills a ses_energy_args */

#endif
