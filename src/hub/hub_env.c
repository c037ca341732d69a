/* Reads the environment variables of the hub: programs find the cache of the official client without
 * settings of their own. */
#include "hub_env.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TOKEN_MAX = 4096 };

/* Empty counts as unset. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_true(const char *name)
{
    static const char *const words[] = { "1", "on", "yes", "true" };
    const char *value = variable(name);
    for (size_t i = 0; value && i < SES_LEN(words); i++)
        if (!strcasecmp(value, words[i])) return true;
    return false;
}

/* A copy of a path with "~" replaced by the home folder. */
static char *expand(const char *path, ses_err *e)
{
    const char *home = variable("HOME");
    bool tilde = path[0] == '~' && (path[1] == '/' || !path[1]);
    if (!tilde || !home) return ses_strdup(path, e);
    return ses_path_join(home, path[1] ? path + 2 : "", e);
}

static char *below(const char *dir, const char *name, ses_err *e)
{
    char *from = expand(dir, e), *path = from ? ses_path_join(from, name, e) : NULL;
    ses_free(from);
    return path;
}

/* A file or folder of the Hugging Face home folder. */
static char *in_home(const char *name, ses_err *e)
{
    const char *home = variable("HF_HOME"), *xdg = variable("XDG_CACHE_HOME");
    if (home) return below(home, name, e);
    if (!xdg && !variable("HOME")) {
        ses_fail(e, SES_EIO, "no Hugging Face cache: set HF_HOME or HOME");
        return NULL;
    }
    char *base = below(xdg ? xdg : "~/.cache", "huggingface", e),
         *path = base ? ses_path_join(base, name, e) : NULL;
    ses_free(base);
    return path;
}

char *ses_hub_cache_dir(ses_err *e)
{
    const char *set = variable("HF_HUB_CACHE");
    if (!set) set = variable("HUGGINGFACE_HUB_CACHE");
    return set ? expand(set, e) : in_home("hub", e);
}

/* *out stays NULL for an empty text. A token is one line of printable ASCII: it becomes a header. */
static bool set_token(char **out, const char *text, size_t n, const char *from, ses_err *e)
{
    ses_string s = ses_trim((ses_string){ text, n });
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7F)
            return ses_fail(e, SES_EARG, "%s: the token has a space or a control character at byte %zu", from,
                            i);
    return !s.n || (*out = ses_strndup(s.p, s.n, e));
}

static bool read_token(ses_hub_env *env, ses_err *e)
{
    const char *set = variable("HF_TOKEN"), *path = variable("HF_TOKEN_PATH");
    if (!set) set = variable("HUGGING_FACE_HUB_TOKEN");
    if (is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return true;
    if (set) return set_token(&env->token, set, strlen(set), "HF_TOKEN", e);
    char *file = path ? expand(path, e) : in_home("token", NULL);
    if (!file) return !path; /* no home folder: no token */
    size_t n = 0;
    bool exists = ses_path_exists(file);
    char *text = exists ? ses_file_read(file, TOKEN_MAX, &n, e) : NULL;
    bool ok = !exists || (text ? set_token(&env->token, text, n, file, e) : ses_wrap(e, "file of the token"));
    if (text) memset(text, 0, n);
    ses_free(text);
    ses_free(file);
    return ok;
}

static bool read_endpoint(ses_hub_env *env, ses_err *e)
{
    const char *set = variable("HF_ENDPOINT");
    env->endpoint = ses_strdup(set ? set : "https://huggingface.co", e);
    if (!env->endpoint) return false;
    ses_path_trim(env->endpoint);
    if ((strncmp(env->endpoint, "https://", 8) && strncmp(env->endpoint, "http://", 7)) ||
        strpbrk(env->endpoint, " \t\r\n?#@"))
        return ses_fail(e, SES_EARG, "HF_ENDPOINT: \"%s\" is not the URL of a server: https://HOST[:PORT]",
                        ses_quoted_of(env->endpoint, strlen(env->endpoint)).s);
    return true;
}

/* libcurl itself does not read these variables; the curl command, requests and httpx do. SSL_CERT_DIR may
 * also be a list of folders or name none, which OpenSSL ignores: libcurl's authorities then. */
static bool read_authorities(ses_hub_env *env, ses_err *e)
{
    static const char *const names[] = { "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE" };
    const char *dir = variable("SSL_CERT_DIR"), *set = NULL, *name = NULL;
    for (size_t i = 0; i < SES_LEN(names) && !set; i++) set = variable(name = names[i]);
    if (!set && (!dir || !ses_path_is_dir(dir))) return true;
    env->authorities = expand(set ? set : dir, e);
    if (!env->authorities || ses_path_exists(env->authorities)) return env->authorities != NULL;
    return ses_fail(e, SES_EIO, "%s: \"%s\" does not exist; expected a file with certificates of authorities",
                    name, ses_quoted_of(env->authorities, strlen(env->authorities)).s);
}

bool ses_hub_env_read(ses_hub_env *env, ses_err *e)
{
    const char *timeout = variable("HF_HUB_DOWNLOAD_TIMEOUT");
    *env = (ses_hub_env){ .offline = is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE"),
                          .no_links = is_true("HF_HUB_DISABLE_SYMLINKS"),
                          .no_progress = is_true("HF_HUB_DISABLE_PROGRESS_BARS"),
                          .timeout = timeout ? (int)strtol(timeout, NULL, 10) : 0 };
    if (env->timeout <= 0 || env->timeout > 3600) env->timeout = 10;
    env->cache = ses_hub_cache_dir(e);
    if (env->cache && read_endpoint(env, e) && read_token(env, e) && read_authorities(env, e)) return true;
    ses_hub_env_free(env);
    return false;
}

void ses_hub_env_free(ses_hub_env *env)
{
    if (env->token) memset(env->token, 0, strlen(env->token));
    ses_free(env->cache);
    ses_free(env->endpoint);
    ses_free(env->token);
    ses_free(env->authorities);
    *env = (ses_hub_env){ 0 };
}
