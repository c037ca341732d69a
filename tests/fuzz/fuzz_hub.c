/* The hub's list of files and trees/COMMIT.json to a list; header lines; names. Paths never leave the folder,
 * hashes are hex digits. */
#include "fuzz.h"
#include "hub/http_headers.h"
#include "hub/hub_files.h"

static void check(const ses_hub_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        char path[SES_HUB_PATH_MAX + 8];
        const ses_hub_file *x = &f->item[i];
        snprintf(path, sizeof path, "/%s/", x->path);
        MUST(x->path[0] != '/' && !strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//"));
        MUST(!strpbrk(x->path, "\\\n\r\033") && x->size <= (uint64_t)1 << 44);
        MUST(strspn(x->sha1, "0123456789abcdef") == strlen(x->sha1) && strlen(x->sha1) % 40 == 0);
        MUST(strspn(x->sha256, "0123456789abcdef") == strlen(x->sha256) && strlen(x->sha256) % 64 == 0);
        MUST(!i || strcmp(f->item[i - 1].path, x->path) < 0);
    }
}

static void read_json(const char *data, size_t n)
{
    ses_json_doc *d = ses_json_parse(data, n, NULL);
    for (int tree = 0; d && tree < 2; tree++) {
        ses_hub_files f;
        ses_err e = { 0 };
        bool ok = tree ? ses_hub_files_from_tree(&f, ses_json_root(d),
                                                 "0123456789abcdef0123456789abcdef01234567", &e)
                       : ses_hub_files_from_api(&f, ses_json_root(d), &e);
        MUST(ok == (e.code == SES_OK) && (ok || !f.n));
        check(&f);
        ses_hub_files_free(&f);
    }
    ses_json_free(d);
}

static void read_text(const char *text, size_t n)
{
    char copy[512];
    ses_hub_name name;
    ses_http_headers h = ses_http_headers_new();
    ses_http_headers_read(&h, text, n);
    MUST(!h.has_range || h.first <= h.total);
    MUST(h.retry_after >= -1 && h.limit_resets >= -1);
    snprintf(copy, sizeof copy, "%.*s", (int)(n < 500 ? n : 500), text);
    if (ses_hub_name_parse(copy, &name, NULL)) {
        ses_hub_name back;
        MUST(!strchr(name.folder, '/') && !strstr(name.revision, "..") && name.revision[0] != '/');
        MUST(ses_hub_name_of_folder(name.folder, &back) && !strcmp(back.id, name.id));
    }
    (void)ses_url_same_origin(copy, copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n && data[0] == '{')
        read_json((const char *)data, n);
    else
        read_text((const char *)data, n);
    return 0;
}
