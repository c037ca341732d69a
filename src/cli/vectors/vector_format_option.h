/* Options whose value is a format that ses_vectors_save writes. */
#ifndef SES_CLI_VECTOR_FORMAT_OPTION_H
#define SES_CLI_VECTOR_FORMAT_OPTION_H

/* Names of SES_OPT_CHOICE, all of ses_vectors_writable_format. */
#define SES_VECTOR_FORMAT_CHOICES "word2vec|word2vec-binary|vec|glove|safetensors|fasttext"

/* The name of a choice, as ses_vectors_save takes it; NULL: not given. */
const char *ses_vector_format_name(int choice);

#endif
