/* The state of AMX in words, for `doctor`. */
#ifndef SES_CLI_AMX_REPORT_H
#define SES_CLI_AMX_REPORT_H

#include "kernel/kernel.h"

#include <stddef.h>

/* Writes whether AMX is used at level `isa` and, if not, why and what to do. error: see ses_amx_detect. */
void ses_amx_text(char *text, size_t size, ses_amx_state state, int error, ses_isa isa);

#endif
