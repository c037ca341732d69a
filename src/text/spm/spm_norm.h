/* SentencePiece's normalizer: character map, white space, dummy prefix. On the tokenizer's arena,
 * read-only. */
#ifndef SES_TEXT_SPM_NORM_H
#define SES_TEXT_SPM_NORM_H

#include "charsmap.h"
#include "text/vocab/trie.h"

typedef struct ses_spm_norm {
    ses_string base64; /* the map as in the file; n 0: none */
    ses_charsmap map;
    ses_trie user; /* user-defined symbols stay unchanged */
    ses_string *symbol;
    size_t n_symbols;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_as_suffix;
    bool passthrough[128]; /* ASCII characters that stay unchanged before ASCII */
} ses_spm_norm;

/* Settings: {"charsmap": base64, "add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces",
 * "whitespace_as_suffix": booleans, "user_defined": [strings]} */
bool ses_spm_norm_open(ses_spm_norm *s, const ses_json *settings, ses_arena *mem, ses_err *e);
void ses_spm_norm_save(const ses_spm_norm *s, ses_json_writer *w); /* writes the settings as members */

/* *trimmed: trailing white space was removed; may be NULL. */
bool ses_spm_norm_run(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      bool *trimmed, ses_err *e);

/* The same for an inner part of a text that starts with a space and does not follow a space: exactly one
 * space remains, no prefix is added, and nothing is removed at the ends. */
bool ses_spm_norm_run_inner(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end,
                            ses_text *out, ses_err *e);

/* Whether no rule and no symbol contains a space, so that none crosses a word boundary. */
bool ses_spm_norm_is_word_local(const ses_spm_norm *s);

#endif
