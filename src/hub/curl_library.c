/* Loads libcurl. */
#include "curl_library.h"

#include <dlfcn.h>
#include <string.h>

enum { GLOBAL_ALL = 3 };

/* ISO C has no conversion from void * to a function pointer; POSIX guarantees the representation. */
static bool load(const ses_curl *c, const char *name, void *function)
{
    void *symbol = dlsym(c->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_all(ses_curl *c)
{
    return load(c, "curl_global_init", &c->global_init) && load(c, "curl_easy_init", &c->easy_new) &&
           load(c, "curl_easy_setopt", &c->easy_set) && load(c, "curl_easy_getinfo", &c->easy_get) &&
           load(c, "curl_easy_cleanup", &c->easy_free) && load(c, "curl_easy_strerror", &c->error_text) &&
           load(c, "curl_slist_append", &c->list_add) && load(c, "curl_slist_free_all", &c->list_free) &&
           load(c, "curl_multi_init", &c->multi_new) && load(c, "curl_multi_add_handle", &c->multi_add) &&
           load(c, "curl_multi_remove_handle", &c->multi_remove) &&
           load(c, "curl_multi_perform", &c->multi_run) && load(c, "curl_multi_poll", &c->multi_wait) &&
           load(c, "curl_multi_info_read", &c->multi_message) &&
           load(c, "curl_multi_cleanup", &c->multi_free);
}

bool ses_curl_load(ses_curl *c, const char *file, ses_err *e)
{
    static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    *c = (ses_curl){ 0 };
    for (size_t i = 0; i < SES_LEN(files) && !c->library; i++) {
        c->library = dlopen(file ? file : files[i], RTLD_NOW | RTLD_LOCAL);
        if (file) break;
    }
    if (!c->library)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "downloads need libcurl, and %s is not installed; on Debian: apt install libcurl4",
                        file ? file : files[0]);
    bool ok = load_all(c);
    if (!ok) ses_fail(e, SES_EUNSUPPORTED, "libcurl is too old: downloads need version 7.66 or later");
    if (ok && c->global_init(GLOBAL_ALL)) ok = ses_fail(e, SES_EIO, "libcurl cannot be initialized");
    if (!ok) ses_curl_unload(c);
    return ok;
}

/* The library stays loaded: its TLS part may have registered functions that run when the process ends. */
void ses_curl_unload(ses_curl *c) { *c = (ses_curl){ 0 }; }
