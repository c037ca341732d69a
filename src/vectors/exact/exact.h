/* Programs of others that are reproduced bit for bit, quirks included: word2vec.c, fastText, GloVe. A program
 * is one file, exact_NAME.c, and one line in exact_programs.def. They run on one thread; the faster trainers
 * without the quirks are in vectors/train.
 *
 * Ownership: a job borrows everything; programs free what they allocate before they return. */
#ifndef SES_VECTORS_EXACT_H
#define SES_VECTORS_EXACT_H

#include "sesame/base.h"

typedef enum { SES_EXACT_REAL, SES_EXACT_INTEGER, SES_EXACT_WORD } ses_exact_type;

typedef struct ses_exact_setting {
    const char *name, *def; /* as on the original's command line, without hyphens */
    ses_exact_type type;
} ses_exact_setting;

/* Reports progress; false: stop. */
typedef bool ses_exact_progress(void *ctx, int64_t done, int64_t total);

enum { SES_EXACT_MAX_SETTINGS = 20 };

typedef struct ses_exact_job {
    const char *corpus, *output;
    bool binary, overwrite;
    double value[SES_EXACT_MAX_SETTINGS];     /* number of each setting, in the order of the program's list */
    const char *text[SES_EXACT_MAX_SETTINGS]; /* the same as text; NULL: neither given nor a default */
    ses_exact_progress *progress;
    void *ctx;
    int64_t words; /* result: vocabulary size */
} ses_exact_job;

typedef struct ses_exact_program {
    const char *name;
    const ses_exact_setting *setting;
    size_t n_settings;
    bool (*run)(ses_exact_job *job, ses_err *e);
} ses_exact_program;

#define SES_EXACT(name) extern const ses_exact_program ses_exact_##name;
#include "exact_programs.def"
#undef SES_EXACT

const ses_exact_program *ses_exact_find(const char *name, ses_err *e);
/* Fills job->text and job->value from names and values as typed; the others get their defaults. Fails for a
 * setting that the program does not have and for a value that is not a number. */
bool ses_exact_set(const ses_exact_program *p, const char *const *name, const char *const *value, size_t n,
                   ses_exact_job *job, ses_err *e);
/* Fails unless low <= value <= high. */
bool ses_exact_range(const ses_exact_program *p, const ses_exact_job *job, size_t i, double low, double high,
                     ses_err *e);

#endif
