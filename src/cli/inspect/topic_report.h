/* Report of a topic model: a table of the topics, bars of their top words, the perplexity of the passes; for
 * the terminal, JSON, SVG and HTML.
 *
 * Ownership: nothing is kept. Main thread only: stdout is shared. */
#ifndef SES_CLI_TOPIC_REPORT_H
#define SES_CLI_TOPIC_REPORT_H

#include "cli/command.h"
#include "vectors/topic/topic_model.h"

typedef struct ses_topic_output {
    const char *html, *svg; /* files; NULL: none */
    bool json, overwrite;
    bool bars; /* on the terminal too; files always have them */
    int64_t top;
} ses_topic_output;

/* Options of the fields html, svg, json and top. */
extern const ses_opt_table ses_topic_output_options;

/* Fails before any work if a file exists. */
bool ses_topic_output_check(const ses_topic_output *o, ses_err *e);
/* name: the model's, for the heading. */
bool ses_topic_report(const ses_call *c, const ses_topic_model *m, const char *name,
                      const ses_topic_output *o, ses_err *e);

#endif
