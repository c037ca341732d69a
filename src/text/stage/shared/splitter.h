/* Splitting of pieces at delimiters, shared by pre-tokenizers. A splitter lives on the caller's stack and
 * borrows its output. */
#ifndef SES_TEXT_SPLITTER_H
#define SES_TEXT_SPLITTER_H

#include "text/stage.h"

/* Split behaviors, shown for "the-final--countdown" with delimiter "-":
 *   Removed              the final countdown
 *   Isolated             the - final - - countdown
 *   MergedWithPrevious   the- final- - countdown
 *   MergedWithNext       the -final - -countdown
 *   Contiguous           the - final -- countdown */
typedef enum {
    SES_SPLIT_REMOVED,
    SES_SPLIT_ISOLATED,
    SES_SPLIT_MERGED_WITH_PREVIOUS,
    SES_SPLIT_MERGED_WITH_NEXT,
    SES_SPLIT_CONTIGUOUS
} ses_split_behavior;

bool ses_setting_split_behavior(const ses_json *settings, const char *key, ses_split_behavior def,
                                ses_split_behavior *out, ses_err *e);
const char *ses_split_behavior_name(ses_split_behavior how);

/* Receives the parts of a piece in order, delimiters and the text between them, and appends pieces to out.
 * Empty parts count too: an empty delimiter prevents its neighbors from merging. */
typedef struct ses_splitter {
    ses_pieces *out;
    ses_split_behavior how;
    size_t begin, end; /* a part that the next one may merge with */
    bool held, delimiter;
} ses_splitter;

bool ses_splitter_add(ses_splitter *c, size_t begin, size_t end, bool delimiter, ses_err *e);
bool ses_splitter_finish(ses_splitter *c, ses_err *e); /* end of the piece; resets the splitter */

/* Copy the text of `in` and call `split` for every piece that is not an added token. `split` appends the
 * pieces of [begin, end). */
typedef bool ses_split_fn(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                          ses_err *e);
bool ses_pieces_split(const ses_pieces *in, ses_pieces *out, ses_split_fn *split, const void *self,
                      ses_err *e);

/* Split at every character that has one of the properties `flags` (SES_CP_*). */
bool ses_split_at_property(const ses_text *text, size_t begin, size_t end, uint32_t flags,
                           ses_split_behavior how, ses_pieces *out, ses_err *e);

#endif
