/* Names of models on the Hugging Face hub: ORG/NAME[@REVISION], hf://ORG/NAME[@REVISION]; and the names that
 * servers and caches give to files. Values own no memory. */
#ifndef SES_HUB_NAME_H
#define SES_HUB_NAME_H

#include "sesame/base.h"

enum {
    SES_HUB_ID_MAX = 96,
    SES_HUB_REVISION_MAX = 200,
    SES_HUB_PATH_MAX = 1024,
    SES_HUB_COMMIT = 40, /* hex digits */
};

#define SES_HUB_FOLDER_PREFIX "models--"

typedef struct ses_hub_name {
    char id[SES_HUB_ID_MAX + 1];             /* "ORG/NAME", or "NAME" of the oldest models */
    char revision[SES_HUB_REVISION_MAX + 1]; /* branch, tag or commit; "main" if none was given */
    char folder[2 * SES_HUB_ID_MAX + 16];    /* "models--ORG--NAME" */
} ses_hub_name;

/* Whether text can be the name of a hub model rather than a path: hf://..., or ORG/NAME with valid
 * characters. */
bool ses_hub_name_is(const char *text);
/* Parses a name; also accepts NAME without ORG. Fails for invalid characters. */
bool ses_hub_name_parse(const char *text, ses_hub_name *out, ses_err *e);
/* The name for a folder of the cache, "models--ORG--NAME"; revision "main". False: another folder. */
bool ses_hub_name_of_folder(const char *folder, ses_hub_name *out);
/* The model whose snapshot a folder is (.../models--ORG--NAME/snapshots/COMMIT). False: another folder. */
bool ses_hub_name_of_snapshot(const char *dir, ses_hub_name *out);

bool ses_hub_is_commit(const char *text); /* 40 lower-case hex digits */
bool ses_hub_is_hex(const char *text, size_t n);
/* Whether a path from outside stays below the folder it is joined to: relative, valid UTF-8, without control
 * characters, backslashes, empty parts, "." and "..". */
bool ses_hub_path_is_safe(const char *path, size_t n);

/* Name for messages and cards: "ORG/NAME" for a snapshot of the cache, otherwise the last component. */
typedef struct ses_model_label {
    char s[256];
} ses_model_label;
ses_model_label ses_model_label_of(const char *dir);

#endif
