/* What people are told of a fine-tuned model's data. */
#include "finetune_data.h"

#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <stdio.h>

void ses_notify_truncated(const ses_finetuner *t, const ses_finetune_set *s, const char *path)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    char target[64] = "";
    if (t->o.kind->target == SES_TARGET_TEXT)
        snprintf(target, sizeof target, " (the text to write: %" PRId64 ")", t->o.max_target);
    if (s->n_truncated)
        fprintf(stderr, "sesame: %s: %s of %s examples are longer than %" PRId64 " tokens%s and %s\n", path,
                ses_grouped_text(a, s->n_truncated), ses_grouped_text(b, (int64_t)s->n_rows), t->max_tokens,
                target, t->o.kind->target == SES_TARGET_SPAN ? "are read in windows" : "were cut");
    if (s->n_pending)
        fprintf(stderr, "sesame: %s: %s tokens at the end fill no block of %" PRId64 " and are left out\n",
                path, ses_grouped_text(a, (int64_t)s->n_pending), t->max_tokens);
    if (s->n_lost_words)
        fprintf(
            stderr,
            "sesame: %s: %s words were cut off or have no tokens: they get no tag and count in no score\n",
            path, ses_grouped_text(a, s->n_lost_words));
}
