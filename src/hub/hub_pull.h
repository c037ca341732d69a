/* Downloads models from the Hugging Face hub into its cache. The only part of Sesame that opens connections.
 *
 * Ownership: free a ses_hub_pull with ses_hub_pull_free. Threads: one thread. */
#ifndef SES_HUB_PULL_H
#define SES_HUB_PULL_H

#include "hub_env.h"
#include "hub_files.h"

typedef struct ses_hub_pull_options {
    int parallel;     /* files at a time; 0: 4 */
    double backoff;   /* seconds before the first retry; 0: 1 */
    const char *curl; /* libcurl; NULL: libcurl.so.4 */
    /* Called several times a second with the bytes of all files that are in the cache; note: a retry, or
     * NULL. False: stop; a later call continues. May be NULL. */
    bool (*on_progress)(void *ctx, uint64_t done, const char *note);
    void *ctx;
} ses_hub_pull_options;

typedef struct ses_hub_pull ses_hub_pull;

/* Asks the hub for the files of a model. Writes nothing. NULL without an error: stopped. */
ses_hub_pull *ses_hub_pull_open(const ses_hub_name *name, const ses_hub_env *env,
                                const ses_hub_pull_options *options, ses_err *e);
/* Downloads the files that Sesame reads and the cache lacks. False without an error: stopped. */
bool ses_hub_pull_run(ses_hub_pull *p, ses_err *e);
void ses_hub_pull_free(ses_hub_pull *p);

const ses_hub_files *ses_hub_pull_files(const ses_hub_pull *p);
const char *ses_hub_pull_dir(const ses_hub_pull *p);                /* the snapshot's folder */
uint64_t ses_hub_pull_have(const ses_hub_pull *p, size_t i);        /* bytes of file i in the cache */
uint64_t ses_hub_pull_total(const ses_hub_pull *p, uint64_t *have); /* bytes of the chosen files */

#endif
