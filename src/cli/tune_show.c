/* Scores: what people see of a fine-tuned model. */
#include "tune.h"

#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void ses_tune_put_scores(ses_json_writer *w, const ses_scores *s, const char *prefix)
{
    for (size_t i = 0; i < s->n; i++) {
        char key[96];
        snprintf(key, sizeof key, "%s%s", prefix, s->item[i].name);
        ses_json_number(w, key, s->item[i].value);
    }
}

void ses_tune_show_scores(const ses_term *t, const ses_scores *s, double loss)
{
    char line[400] = "";
    for (size_t i = 0; i < s->n && i < 6; i++) { /* the general ones come first */
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s %.4f", i ? ", " : "", s->item[i].name,
                 s->item[i].value);
    }
    if (!isnan(loss)) ses_show_line(t, "Loss", "%.4f", loss);
    ses_show_line(t, "Scores", "%s", line);
}

void ses_tune_tell_cut(const ses_tuner *t, const ses_tune_set *s, const char *path)
{
    char a[SES_HUMAN], b[SES_HUMAN];
    if (s->cut)
        fprintf(stderr, "sesame: %s: %s of %s examples are longer than %" PRId64 " tokens and %s\n", path,
                ses_grouped(a, s->cut), ses_grouped(b, (int64_t)s->n_rows), t->limit,
                t->o.kind->target == SES_TARGET_SPAN ? "are read in windows" : "were cut");
    if (s->lost)
        fprintf(
            stderr,
            "sesame: %s: %s words were cut off or have no tokens: they get no tag and count in no score\n",
            path, ses_grouped(a, s->lost));
}
