/* SentencePiece's normalizer: a map of characters, white space, the space in front. */
#ifndef SES_TEXT_SPM_NORM_H
#define SES_TEXT_SPM_NORM_H

#include "charsmap.h"
#include "text/vocab/trie.h"

typedef struct ses_spm_norm {
    ses_string base64; /* the map as it was; n 0: none */
    ses_charsmap map;
    ses_trie user; /* user-defined symbols pass as they are */
    ses_string *symbol;
    size_t n_symbols;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_as_suffix;
    bool passthrough[128]; /* ASCII that stays as it is when ASCII follows */
} ses_spm_norm;

/* {"charsmap": base64, "add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces",
 * "whitespace_as_suffix": booleans, "user_defined": [strings]} */
bool ses_spm_norm_open(ses_spm_norm *s, const ses_json *settings, ses_arena *mem, ses_err *e);
void ses_spm_norm_save(const ses_spm_norm *s, ses_json_writer *w); /* the members */

/* *trimmed: white space at the end was taken off; may be NULL. */
bool ses_spm_norm_run(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      bool *trimmed, ses_err *e);

/* The same for a part of a text that begins with a space and stands behind something else than a space: the
 * space becomes one, nothing is put in front and nothing taken off at the ends. */
bool ses_spm_norm_run_inner(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end,
                            ses_text *out, ses_err *e);

/* Whether no rule and no symbol has a space in it, so that none goes across one. */
bool ses_spm_norm_is_word_local(const ses_spm_norm *s);

#endif
