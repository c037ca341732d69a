/* libcurl, loaded at run time: the parts of its interface that downloads use. A ses_curl is loaded once and
 * used from one thread. Types of libcurl appear as void *. */
#ifndef SES_HUB_CURL_LIBRARY_H
#define SES_HUB_CURL_LIBRARY_H

#include "sesame/base.h"

/* Options: 0 + n: long, 10000 + n: pointer, 20000 + n: function, 30000 + n: int64_t. */
enum {
    SES_CURL_OPT_FOLLOWLOCATION = 52,
    SES_CURL_OPT_CONNECTTIMEOUT = 78,
    SES_CURL_OPT_NOSIGNAL = 99,
    SES_CURL_OPT_PROTOCOLS = 181,
    SES_CURL_OPT_WRITEDATA = 10001,
    SES_CURL_OPT_URL = 10002,
    SES_CURL_OPT_RANGE = 10007,
    SES_CURL_OPT_ERRORBUFFER = 10010,
    SES_CURL_OPT_USERAGENT = 10018,
    SES_CURL_OPT_HTTPHEADER = 10023,
    SES_CURL_OPT_HEADERDATA = 10029,
    SES_CURL_OPT_CAINFO = 10065,
    SES_CURL_OPT_CAPATH = 10097,
    SES_CURL_OPT_PRIVATE = 10103,
    SES_CURL_OPT_WRITEFUNCTION = 20011,
    SES_CURL_OPT_HEADERFUNCTION = 20079,
    SES_CURL_INFO_RESPONSE_CODE = 0x200002,
    SES_CURL_INFO_PRIVATE = 0x100015,
    SES_CURL_INFO_REDIRECT_URL = 0x10001F,
    SES_CURL_MSG_DONE = 1,
    SES_CURL_ERROR_SIZE = 256,
    SES_CURL_HTTP = 1,
    SES_CURL_HTTPS = 2,
};

/* CURLMsg */
typedef struct ses_curl_message {
    int kind;
    void *easy;
    union {
        void *pointer;
        int code;
    } result;
} ses_curl_message;

typedef struct ses_curl {
    void *library;
    int (*global_init)(long flags);
    void *(*easy_new)(void);
    int (*easy_set)(void *easy, int option, ...);
    int (*easy_get)(void *easy, int info, ...);
    void (*easy_free)(void *easy);
    const char *(*error_text)(int code);
    void *(*list_add)(void *list, const char *text);
    void (*list_free)(void *list);
    void *(*multi_new)(void);
    int (*multi_add)(void *multi, void *easy);
    int (*multi_remove)(void *multi, void *easy);
    int (*multi_run)(void *multi, int *running);
    int (*multi_wait)(void *multi, void *extra, unsigned n_extra, int milliseconds, int *ready);
    ses_curl_message *(*multi_message)(void *multi, int *left);
    int (*multi_free)(void *multi);
} ses_curl;

/* file: NULL: libcurl.so.4, or the GnuTLS variant. Fails with instructions if it is not installed. */
bool ses_curl_load(ses_curl *c, const char *file, ses_err *e);
void ses_curl_unload(ses_curl *c);

#endif
