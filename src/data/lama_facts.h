/* Facts with a masked object: the JSON lines of LAMA (Petroni et al. 2019).
 *
 * A line has obj_label, and a text: masked_sentences (a list of strings with one [MASK], joined by spaces),
 * or evidences with a masked_sentence (the first is used). If there is a template for its relation, "[X] was
 * born in [Y] .", the text is the template with sub_label as [X] and the mask as [Y]. The relation is
 * predicate_id, relation or pred.
 *
 * Ownership: the caller frees a reader; a fact is valid until the next call. One thread at a time. */
#ifndef SES_DATA_LAMA_FACTS_H
#define SES_DATA_LAMA_FACTS_H

#include "io/json_lines.h"

typedef struct ses_lama_fact {
    ses_string relation; /* "all" without one */
    ses_string answer;
    ses_string before, after; /* text on both sides of the mask */
    size_t masks;             /* other than 1: before and after are empty */
} ses_lama_fact;

typedef struct ses_lama_facts ses_lama_facts;

/* template_text: template of every fact; NULL: none. relations: LAMA's relations.jsonl, lines with the keys
 * relation and template; NULL: none. */
ses_lama_facts *ses_lama_facts_new(const char *template_text, const char *relations, ses_err *e);
void ses_lama_facts_free(ses_lama_facts *f); /* f may be NULL */

/* Reads the templates of relations from l, to its end. */
bool ses_lama_facts_add_templates(ses_lama_facts *f, ses_json_lines *l, ses_err *e);

/* The next fact of l; *end is true after the last one. Errors begin with the line. */
bool ses_lama_facts_next(ses_lama_facts *f, ses_json_lines *l, ses_lama_fact *out, bool *end, ses_err *e);

#endif
