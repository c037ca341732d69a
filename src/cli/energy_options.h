/* Options of the energy estimate (base/energy_meter.h), for commands that train.
 * Constant tables: no ownership, safe in all threads. */
#ifndef SES_CLI_ENERGY_OPTIONS_H
#define SES_CLI_ENERGY_OPTIONS_H

#include "base/energy/energy_meter.h"
#include "option_parser.h"

extern const ses_opt_table ses_energy_options; /* fills a ses_energy_args */

#endif
