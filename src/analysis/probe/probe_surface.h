/* The kind "text" of `sesame probe` on CoNLL-U: tasks made from dependency trees (surface_tasks.h). */
#ifndef SES_ANALYSIS_PROBE_SURFACE_H
#define SES_ANALYSIS_PROBE_SURFACE_H

#include "probe_kind.h"

bool ses_probe_surface(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e);

#endif
