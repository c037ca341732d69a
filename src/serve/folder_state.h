/* The state of a folder: which folder it is, and names, sizes and times of its files. Two models of the same
 * state have the same weights. */
#ifndef SES_SERVE_FOLDER_STATE_H
#define SES_SERVE_FOLDER_STATE_H

#include "sesame/base.h"

typedef struct ses_folder_state {
    uint64_t device, number; /* the folder; number 0: unknown, equals no other */
    uint64_t files;          /* hash of its files, without subfolders */
} ses_folder_state;

ses_folder_state ses_folder_state_of(const char *dir);
bool ses_folder_state_equal(const ses_folder_state *a, const ses_folder_state *b);

#endif
