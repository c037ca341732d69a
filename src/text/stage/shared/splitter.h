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
    SES_CUT_REMOVED,
    SES_CUT_ISOLATED,
    SES_CUT_MERGED_WITH_PREVIOUS,
    SES_CUT_MERGED_WITH_NEXT,
    SES_CUT_CONTIGUOUS
} ses_cut_how;

bool ses_setting_cut(const ses_json *settings, const char *key, ses_cut_how def, ses_cut_how *out,
                     ses_err *e);
const char *ses_cut_name(ses_cut_how how);

/* Takes the parts of a piece in order, delimiters and what lies between, empty ones too (an empty
 * delimiter keeps its neighbors from merging), and puts the pieces out. */
typedef struct ses_cutter {
    ses_pieces *out;
    ses_cut_how how;
    size_t begin, end; /* a part held back: the next may merge with it */
    bool held, delimiter;
} ses_cutter;

bool ses_cutter_add(ses_cutter *c, size_t begin, size_t end, bool delimiter, ses_err *e);
bool ses_cutter_end(ses_cutter *c, ses_err *e); /* of the piece; the cutter is as new */

/* Copy the text, hand every piece that is not a token already to `cut`, which puts pieces of [begin, end)
 * out. */
typedef bool ses_cut_fn(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e);
bool ses_pieces_cut(const ses_pieces *in, ses_pieces *out, ses_cut_fn *cut, const void *self, ses_err *e);

/* Every character with one of these properties (SES_CP_*) is a delimiter. */
bool ses_cut_at(const ses_text *text, size_t begin, size_t end, uint32_t flags, ses_cut_how how,
                ses_pieces *out, ses_err *e);

#endif
