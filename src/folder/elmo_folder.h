/* Folders with ELMo's original files: one *options.json and one *.hdf5. Weights, configs and tokenizers are
 * found through these functions. */
#ifndef SES_FOLDER_ELMO_FOLDER_H
#define SES_FOLDER_ELMO_FOLDER_H

#include "sesame/base.h"

/* Does the folder contain a file *options.json and a file *.hdf5, and no config.json? */
bool ses_elmo_folder_is(const char *dir);

enum { SES_ELMO_NAME = 256 };
typedef struct ses_elmo_files {
    char options[SES_ELMO_NAME], weights[SES_ELMO_NAME]; /* names without the folder */
} ses_elmo_files;

/* The names of both files. Fails if one is missing, or if there are several. */
bool ses_elmo_folder_files(const char *dir, ses_elmo_files *f, ses_err *e);

#endif
