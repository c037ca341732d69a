/* What people are told of a fine-tuned model's data. */
#include "finetune_data.h"

#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <stdio.h>

void ses_tune_tell_cut(const ses_tuner *t, const ses_tune_set *s, const char *path)
{
    char a[SES_HUMAN], b[SES_HUMAN];
    char target[64] = "";
    if (t->o.kind->target == SES_TARGET_TEXT)
        snprintf(target, sizeof target, " (the text to write: %" PRId64 ")", t->o.max_target);
    if (s->cut)
        fprintf(stderr, "sesame: %s: %s of %s examples are longer than %" PRId64 " tokens%s and %s\n", path,
                ses_grouped(a, s->cut), ses_grouped(b, (int64_t)s->n_rows), t->limit, target,
                t->o.kind->target == SES_TARGET_SPAN ? "are read in windows" : "were cut");
    if (s->n_rest)
        fprintf(stderr, "sesame: %s: %s tokens at the end fill no block of %" PRId64 " and are left out\n",
                path, ses_grouped(a, (int64_t)s->n_rest), t->limit);
    if (s->lost)
        fprintf(
            stderr,
            "sesame: %s: %s words were cut off or have no tokens: they get no tag and count in no score\n",
            path, ses_grouped(a, s->lost));
}
