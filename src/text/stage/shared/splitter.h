/* Cutting pieces at delimiters: what pre-tokenizers that split have in common. */
#ifndef SES_TEXT_CUT_H
#define SES_TEXT_CUT_H

#include "text/stage.h"

/* What becomes of the delimiters of "the-final--countdown":
 * Removed              the final countdown
 * Isolated             the - final - - countdown
 * MergedWithPrevious   the- final- - countdown
 * MergedWithNext       the -final - -countdown
 * Contiguous           the - final -- countdown */
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

/* Takes the parts of a piece in order, delimiters and what lies between, empty ones too (an empty
 * delimiter keeps its neighbors from merging), and puts the pieces out. */
typedef struct ses_splitter {
    ses_pieces *out;
    ses_split_behavior how;
    size_t begin, end; /* a part held back: the next may merge with it */
    bool held, delimiter;
} ses_splitter;

bool ses_splitter_add(ses_splitter *c, size_t begin, size_t end, bool delimiter, ses_err *e);
bool ses_splitter_finish(ses_splitter *c, ses_err *e); /* of the piece; the cutter is as new */

/* Copy the text, hand every piece that is not a token already to `cut`, which puts pieces of [begin, end)
 * out. */
typedef bool ses_split_fn(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                          ses_err *e);
bool ses_pieces_split(const ses_pieces *in, ses_pieces *out, ses_split_fn *cut, const void *self, ses_err *e);

/* Every character with one of these properties (SES_CP_*) is a delimiter. */
bool ses_split_at_property(const ses_text *text, size_t begin, size_t end, uint32_t flags,
                           ses_split_behavior how, ses_pieces *out, ses_err *e);

#endif
