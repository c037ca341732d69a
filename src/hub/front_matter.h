/* Front matter of a Markdown file: YAML between two lines "---" at its beginning. The subset that model cards
 * use: mappings, sequences, plain and quoted scalars, block scalars, flow sequences and mappings. Plain
 * scalars stay strings ("no" is Norwegian); empty ones, ~ and null are null. Anchors, tags and several
 * documents are errors.
 *
 * Ownership: the document is the caller's. Threads: no shared state. */
#ifndef SES_HUB_FRONT_MATTER_H
#define SES_HUB_FRONT_MATTER_H

#include "sesame/json.h"

enum { SES_FRONT_MATTER_MAX = 1 << 20, SES_FRONT_MATTER_DEPTH = 16 };

/* The front matter as an object; free with ses_json_free. *body: offset of the text after it. NULL without an
 * error: the text has no front matter. */
ses_json_doc *ses_front_matter_parse(const char *text, size_t n, size_t *body, ses_err *e);

#endif
