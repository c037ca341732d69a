/* Settings of Metaspace, shared by its pre-tokenizer and decoder. Allocated on the tokenizer's arena,
 * read-only. */
#ifndef SES_TEXT_METASPACE_H
#define SES_TEXT_METASPACE_H

#include "text/stage.h"

typedef enum { SES_PREPEND_FIRST, SES_PREPEND_NEVER, SES_PREPEND_ALWAYS } ses_prepend_scheme;

typedef struct ses_metaspace {
    char mark[4]; /* UTF-8 of the replacement for a space, usually U+2581 */
    uint32_t n_mark;
    ses_prepend_scheme prepend;
    bool split;
} ses_metaspace;

void *ses_metaspace_open(const ses_json *settings, ses_arena *mem, ses_err *e);
void ses_metaspace_save(const void *self, ses_json_writer *w);

#endif
