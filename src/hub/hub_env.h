/* Settings of the hub in the environment, with the names and the precedence of the official client.
 *
 * Ownership: free a ses_hub_env with ses_hub_env_free. Threads: the environment must not change meanwhile. */
#ifndef SES_HUB_ENV_H
#define SES_HUB_ENV_H

#include "sesame/base.h"

typedef struct ses_hub_env {
    char *cache;    /* HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
                     * ~/.cache/huggingface/hub */
    char *endpoint; /* HF_ENDPOINT without a slash at its end; https://huggingface.co */
    char *token; /* HF_TOKEN, HF_TOKEN_PATH, $HF_HOME/token; NULL: none, or HF_HUB_DISABLE_IMPLICIT_TOKEN */
    char *authorities; /* certificates of the authorities that sign servers' certificates, a file or a folder:
                        * REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR; NULL: libcurl's */
    bool offline;      /* HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE */
    bool no_links;     /* HF_HUB_DISABLE_SYMLINKS */
    bool no_progress;  /* HF_HUB_DISABLE_PROGRESS_BARS */
    int timeout;       /* HF_HUB_DOWNLOAD_TIMEOUT: seconds without data; 10 */
} ses_hub_env;

/* The folder of the cache; free with ses_free. NULL: no home folder is known. */
char *ses_hub_cache_dir(ses_err *e);
bool ses_hub_env_read(ses_hub_env *env, ses_err *e);
void ses_hub_env_free(ses_hub_env *env); /* back to zero; overwrites the token */

#endif
