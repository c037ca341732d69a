/* Names of models and files on the hub. */
#include "hub_name.h"

#include "base/file.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <stdio.h>
#include <string.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* One part of ORG/NAME: letters, digits, '-', '_', '.'; neither "--" nor "..", and not at its ends. */
static bool part_is_valid(const char *s, size_t n)
{
    if (!n || strchr("-.", s[0]) || strchr("-.", s[n - 1])) return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.') return false;
        if (i && (s[i] == '-' || s[i] == '.') && s[i - 1] == s[i]) return false;
    }
    return true;
}

static bool id_is_valid(const char *s, size_t n)
{
    const char *slash = memchr(s, '/', n);
    if (n > SES_HUB_ID_MAX) return false;
    if (!slash) return part_is_valid(s, n);
    return part_is_valid(s, (size_t)(slash - s)) && part_is_valid(slash + 1, n - (size_t)(slash + 1 - s));
}

/* A branch, a tag, "refs/pr/1" or a commit. */
static bool revision_is_valid(const char *s)
{
    size_t n = strlen(s);
    return n && n <= SES_HUB_REVISION_MAX && ses_hub_path_is_safe(s, n) && !strpbrk(s, " ?#%~^:*[") &&
           !strstr(s, "..");
}

static const char *skip_scheme(const char *text) { return !strncmp(text, "hf://", 5) ? text + 5 : text; }

bool ses_hub_name_is(const char *text)
{
    const char *at = skip_scheme(text);
    if (at != text) return true;
    size_t n = strcspn(at, "@");
    return memchr(at, '/', n) && id_is_valid(at, n);
}

static bool set_id(ses_hub_name *out, const char *id, size_t n)
{
    snprintf(out->id, sizeof out->id, "%.*s", (int)n, id);
    const char *slash = strchr(out->id, '/');
    int org = slash ? (int)(slash - out->id) : 0;
    snprintf(out->folder, sizeof out->folder, SES_HUB_FOLDER_PREFIX "%.*s%s%s", org, out->id,
             slash ? "--" : "", slash ? slash + 1 : out->id);
    return true;
}

bool ses_hub_name_parse(const char *text, ses_hub_name *out, ses_err *e)
{
    const char *at = skip_scheme(text);
    size_t n = strcspn(at, "@");
    const char *revision = at[n] ? at + n + 1 : "main";
    *out = (ses_hub_name){ 0 };
    if (!id_is_valid(at, n))
        return ses_fail(
            e, SES_EARG,
            "\"%s\": not the name of a hub model; expected ORG/NAME[@REVISION] of letters, digits, "
            "'-', '_' and '.'",
            ses_quoted_of(text, strlen(text)).s);
    if (!revision_is_valid(revision))
        return ses_fail(e, SES_EARG, "\"%s\": the revision after '@' must be a branch, a tag or a commit",
                        ses_quoted_of(text, strlen(text)).s);
    snprintf(out->revision, sizeof out->revision, "%s", revision);
    return set_id(out, at, n);
}

bool ses_hub_name_of_folder(const char *folder, ses_hub_name *out)
{
    char id[SES_HUB_ID_MAX + 8];
    size_t prefix = strlen(SES_HUB_FOLDER_PREFIX);
    if (strncmp(folder, SES_HUB_FOLDER_PREFIX, prefix) || strlen(folder + prefix) >= sizeof id) return false;
    const char *at = folder + prefix, *dashes = strstr(at, "--");
    if (dashes)
        snprintf(id, sizeof id, "%.*s/%s", (int)(dashes - at), at, dashes + 2);
    else
        snprintf(id, sizeof id, "%s", at);
    return ses_hub_name_parse(id, out, NULL) && !strcmp(out->folder, folder);
}

bool ses_hub_name_of_snapshot(const char *dir, ses_hub_name *out)
{
    char path[4096], *part[3];
    int n = snprintf(path, sizeof path, "%s", dir);
    if (n <= 0 || (size_t)n >= sizeof path) return false;
    ses_path_trim(path);
    for (int i = 0; i < 3; i++) { /* COMMIT, "snapshots", folder: from the end */
        char *slash = strrchr(path, '/');
        if (!slash && i < 2) return false;
        part[i] = slash ? slash + 1 : path;
        if (slash) *slash = 0;
    }
    if (!ses_hub_is_commit(part[0]) || strcmp(part[1], "snapshots") || !ses_hub_name_of_folder(part[2], out))
        return false;
    return snprintf(out->revision, sizeof out->revision, "%s", part[0]) > 0;
}

bool ses_hub_is_hex(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) i++;
    return i == n && !text[n];
}

bool ses_hub_is_commit(const char *text) { return ses_hub_is_hex(text, SES_HUB_COMMIT); }

bool ses_hub_path_is_safe(const char *path, size_t n)
{
    if (!n || n > SES_HUB_PATH_MAX || ses_utf8_valid(path, n) != n) return false;
    for (size_t at = 0; at <= n;) {
        const char *part = path + at, *slash = memchr(part, '/', n - at);
        size_t k = slash ? (size_t)(slash - part) : n - at;
        if (!k || k > 255 || (k == 1 && part[0] == '.') || (k == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        for (size_t i = 0; i < k; i++)
            if ((unsigned char)part[i] < 0x20 || part[i] == 0x7F || part[i] == '\\') return false;
        at += k + 1;
    }
    return true;
}

ses_model_label ses_model_label_of(const char *dir)
{
    ses_model_label label;
    ses_hub_name name;
    snprintf(label.s, sizeof label.s, "%s",
             ses_hub_name_of_snapshot(dir, &name) ? name.id : ses_path_name_of(dir).s);
    return label;
}
