/* Model cards: README.md with front matter. Reading, filtering and checking, and escapes for writing.
 *
 * Ownership: free a ses_card with ses_card_free. Threads: no shared state. */
#ifndef SES_HUB_CARD_H
#define SES_HUB_CARD_H

#include "base/str.h"
#include "sesame/json.h"

enum { SES_CARD_MAX = 4 << 20 };

typedef struct ses_card {
    ses_json_doc *meta; /* front matter; NULL: none */
    char *text;
    size_t n, body; /* bytes; offset of the text after the front matter */
} ses_card;

bool ses_card_parse(ses_card *c, const char *text, size_t n, ses_err *e);
/* README.md of a folder. *found: it exists; a missing one is not an error. */
bool ses_card_load(ses_card *c, const char *dir, bool *found, ses_err *e);
void ses_card_free(ses_card *c);

/* A field that is a string; for a list: its first string. NULL: none. Borrowed. */
const char *ses_card_field(const ses_card *c, const char *key);
/* Whether a field is this word or a list that contains it, in any case. */
bool ses_card_has(const ses_card *c, const char *key, const char *word);
/* Appends the strings of a field with ", " between them. */
void ses_card_put_list(const ses_card *c, const char *key, ses_buf *out);

/* The hub's name of the task of a model folder: "pipeline_tag" of the card, else by the files and the class
 * in config.json. Static or borrowed from the card; NULL: unknown. */
const char *ses_card_task(const ses_card *c, const char *dir);
/* Whether a card describes models for a task, given under the hub's or Sesame's name ("ner"). task: that of
 * ses_card_task. */
bool ses_card_is_for(const ses_card *c, const char *task, const char *wanted);

typedef enum { SES_CARD_ERROR, SES_CARD_HINT } ses_card_level;
/* A problem: an error must be fixed, a hint should be. False: stop. */
typedef bool ses_card_problem(void *ctx, ses_card_level level, const char *what);
/* Checks the fields. dir: the model's folder, for what its files imply; NULL: unknown. */
bool ses_card_check(const ses_card *c, const char *dir, ses_card_problem *report, void *ctx);

/* Lists what transformers cannot read of a model folder: the int8 file, and keys of config.json that change
 * the shapes of weights. Nothing: transformers reads it. An adapter has no config.json of its own. */
bool ses_card_list_own_forms(const char *dir, ses_buf *out, ses_err *e);
/* Appends the command that uses a model for a task of the hub; task NULL or unknown: sesame info. */
void ses_card_put_usage(const char *task, const char *model, ses_buf *b);

/* Escapes for new cards: a double-quoted YAML string; the cell of a Markdown table. */
void ses_card_put_yaml(ses_buf *b, const char *s);
void ses_card_put_cell(ses_buf *b, const char *s);

#endif
