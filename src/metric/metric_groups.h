/* Groups of examples: the answers of a question, the sentences of a minimal pair. */
#ifndef SES_METRIC_GROUPS_IMPL_H
#define SES_METRIC_GROUPS_IMPL_H

#include "sesame/metric.h"

/* The examples of an evaluation, group by group, each group in its order: an array of v->n numbers. Free
 * with ses_free. */
size_t *ses_examples_by_group(const ses_evaluation *v, ses_err *e);

/* The end of the group that begins at order[from]. */
size_t ses_group_end(const ses_evaluation *v, const size_t *order, size_t from);

#endif
