/* The format of a file by its first bytes, for errors about files that cannot be opened as models.
 * No state. */
#ifndef SES_FOLDER_FILE_KIND_H
#define SES_FOLDER_FILE_KIND_H

#include "sesame/base.h"

typedef enum {
    SES_FILE_OTHER,
    SES_FILE_MODEL,   /* a model of another program */
    SES_FILE_WEIGHTS, /* Sesame reads such files in a folder with config.json */
    SES_FILE_TEXT     /* a config, a tokenizer, ... */
} ses_file_role;

typedef struct ses_file_kind {
    const char *name;   /* with its article: "a GGUF file (llama.cpp)" */
    const char *remedy; /* what to do instead of opening it as a model */
    ses_file_role role;
    const char *file; /* name of such a file of weights in a folder; or NULL */
} ses_file_kind;

/* n: the first bytes of a file of `size` bytes, SES_FILE_KIND_BYTES or all. NULL: unknown. */
enum { SES_FILE_KIND_BYTES = 512 };
const ses_file_kind *ses_file_kind_of(const void *bytes, size_t n, uint64_t size);
/* The same of a file; NULL: unknown, or not a regular file. */
const ses_file_kind *ses_file_kind_at(const char *path);
/* The first file of a folder, in the order of names, that is a model or weights; NULL: none. */
const ses_file_kind *ses_file_kind_in(const char *dir, char name[static 256]);

/* Fails for a file of weights that is of another known format than the expected one. */
bool ses_file_kind_check(const void *bytes, size_t size, const char *expected, ses_err *e);

/* The error for a file where the folder of a model was expected, and for a folder without config.json.
 * Returns false. */
bool ses_fail_not_model_folder(const char *path, ses_err *e);

#endif
