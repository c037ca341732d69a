/* Labeled texts of a table. */
#include "labeled_texts.h"

ses_examples *ses_labeled_texts_open(const char *path, const char *text, const char *pair, const char *label,
                                     ses_err *e)
{
    ses_data_spec spec = { .kind = SES_DATA_CLASSIFY,
                           .text_a = text ? text : "text",
                           .text_b = pair,
                           .label = label ? label : "label" };
    ses_err first = { 0 };
    ses_examples *d = ses_examples_open(path, &spec, NULL, &first);
    if (d) return d;
    if (!text) {
        spec.text_a = "sentence";
        d = ses_examples_open(path, &spec, NULL, NULL);
    }
    if (!d) ses_fail(e, first.code, "%s", first.msg);
    return d;
}
