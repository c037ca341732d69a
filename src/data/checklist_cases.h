/* Behavioral test cases of CheckList (Ribeiro et al. 2020), one JSON object per line:
 *
 *     {"type": "MFT", "capability": "Negation", "name": "not bad", "texts": ["It is not bad."], "label": 1}
 *     {"type": "INV", "name": "names", "texts": ["Ann is kind.", "Bob is kind.", "Eva is kind."]}
 *     {"type": "DIR", "name": "praise", "texts": ["Fine.", "Fine. I love it."], "label": "positive",
 *      "direction": "increasing", "tolerance": 0.1}
 *
 * "text" may replace a list of one. A text is a string, or a list of two for models of pairs. "labels" has a
 * label for each text, "label" one for all: a name, or a number from 0. The first text of INV and DIR is the
 * original; direction is increasing unless given; tolerance is 0.
 *
 * A case is valid until the next call of the JSON reader. */
#ifndef SES_DATA_CHECKLIST_CASES_H
#define SES_DATA_CHECKLIST_CASES_H

#include "base/arena.h"
#include "io/json_lines.h"

typedef enum {
    SES_CHECKLIST_MFT,
    SES_CHECKLIST_INV,
    SES_CHECKLIST_DIR,
    SES_CHECKLIST_TYPES
} ses_checklist_type;
extern const char *const ses_checklist_type_name[SES_CHECKLIST_TYPES]; /* "MFT", "INV", "DIR" */

typedef struct ses_checklist_text {
    ses_string text, pair; /* pair.p NULL: none */
    ses_string label;      /* p NULL: none; a number becomes its digits */
} ses_checklist_text;

typedef struct ses_checklist_case {
    ses_checklist_type type;
    ses_string capability, name; /* "" if absent */
    const ses_checklist_text *text;
    size_t n;
    bool decreasing; /* direction */
    double tolerance;
} ses_checklist_case;

/* Reads a case; its array is in mem, its strings belong to the object. */
bool ses_checklist_case_read(const ses_json *v, ses_arena *mem, ses_checklist_case *out, ses_err *e);

#endif
