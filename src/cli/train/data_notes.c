/* Notices about labeled files. */
#include "data_notes.h"

#include "data/examples_notices.h"

#include <stdio.h>

static void print(void *ctx, const char *text)
{
    (void)ctx;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, text);
    putc('\n', stderr);
}

void ses_note_labels(const ses_call *c, const ses_examples *d, const char *name)
{
    if (!c->quiet) ses_data_label_notices(d, name, print, NULL, NULL);
}

void ses_note_columns(const ses_call *c, const ses_examples *d, const char *name)
{
    const char *note = ses_examples_columns_note(d);
    if (c->quiet || !note) return;
    fprintf(stderr, "sesame: %s: ", name);
    ses_put_escaped(stderr, note);
    putc('\n', stderr);
}

void ses_note_data(const ses_call *c, const ses_examples *d, const char *name, bool labels)
{
    if (labels) ses_note_labels(c, d, name);
    if (!c->quiet) ses_data_notices(d, name, print, NULL, NULL);
}
