/* Labeled texts of a table. */
#include "labeled_texts.h"

#include <string.h>

ses_examples *ses_labeled_texts_open(const char *path, const char *text, const char *pair, const char *label,
                                     ses_err *e)
{
    ses_data_spec spec = { .kind = SES_DATA_CLASSIFY,
                           .text_a = text ? text : "text",
                           .text_b = pair,
                           .label = label ? label : "label" };
    ses_err first = { 0 }, second = { 0 };
    ses_examples *d = ses_examples_open(path, &spec, NULL, &first);
    if (d) return d;
    if (!text) {
        spec.text_a = "sentence";
        d = ses_examples_open(path, &spec, NULL, &second);
    }
    /* the second error is the one to show if the file has the second column */
    bool has_second = second.code && !strstr(second.msg, "no column \"sentence\"");
    if (!d) ses_fail(e, has_second ? second.code : first.code, "%s", has_second ? second.msg : first.msg);
    return d;
}
