/* Compares the settings of two runs: of a run and the one it continues, of two ranks. Nothing is kept. */
#ifndef SES_TRAIN_SETTINGS_COMPARE_H
#define SES_TRAIN_SETTINGS_COMPARE_H

#include "sesame/json.h"

typedef struct ses_setting_difference {
    const char *key; /* borrowed from a or b; NULL: all settings are equal */
    char a[200], b[200];
} ses_setting_difference;

/* The first setting that differs between two JSON objects. Some settings are written only if they are given,
 * so one may be absent in either. False: out of memory. */
bool ses_settings_compare(const ses_json *a, const ses_json *b, ses_setting_difference *out, ses_err *e);

#endif
