/* The list of formats. */
#include "vectors/vectors_impl.h"

#define SES_VECTOR_FORMAT(name) extern const ses_word_format ses_word_format_##name;
#include "vector_formats.def"
#undef SES_VECTOR_FORMAT

static const ses_word_format *const list[] = {
#define SES_VECTOR_FORMAT(name) &ses_word_format_##name,
#include "vector_formats.def"
#undef SES_VECTOR_FORMAT
};

const ses_word_format *ses_word_format_at(size_t i) { return i < SES_LEN(list) ? list[i] : NULL; }
