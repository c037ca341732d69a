/* The files of the web page: found by path, complete, small, consistent with each other. */
#include "check.h"
#include "serve/web_files.h"

#include <stdio.h>
#include <string.h>

static const ses_web_file *find(const char *path) { return ses_web_find((ses_string){ path, strlen(path) }); }

static void test_find(void)
{
    const ses_web_file *page = find("/");
    if (!CHECK(page != NULL)) return;
    CHECK(!page->gzip && page->size > 100);
    CHECK(!memcmp(page->bytes, "<!doctype html>", 15));
    CHECK_STR(page->content_type, "text/html; charset=utf-8");
    const ses_web_file *app = find("/ui/app.js");
    if (!CHECK(app != NULL)) return;
    CHECK_STR(app->content_type, "text/javascript; charset=utf-8");
    CHECK(find("") == NULL && find("/ui") == NULL && find("/ui/") == NULL && find("/ui/app.jsx") == NULL);
    CHECK(find("/index.html") == NULL && find("/ui/../ui/app.js") == NULL);
    CHECK(ses_web_find((ses_string){ "/ui/app.js.old", 10 }) == app); /* the length counts */
}

static void test_table(void)
{
    size_t total = 0;
    int n = 0;
    for (const ses_web_file *f = ses_web_files; f->path; f++, n++) {
        total += f->size;
        CHECK_MSG(find(f->path) == f, "%s is listed twice", f->path);
        CHECK_MSG(f->size > 0, "%s is empty", f->path);
        CHECK_MSG(strlen(f->etag) == 18 && f->etag[0] == '"' && f->etag[17] == '"', "%s: %s", f->path,
                  f->etag);
        bool is_gzip = f->size > 2 && f->bytes[0] == 0x1f && f->bytes[1] == 0x8b;
        CHECK_MSG(is_gzip == f->gzip, "%s: gzip is %d", f->path, f->gzip);
        for (const ses_web_file *g = ses_web_files; g < f; g++) CHECK(strcmp(f->etag, g->etag) != 0);
    }
    CHECK(n > 10);
    CHECK_MSG(total < 300 * 1024, "the page has %zu bytes; 300 KiB is the limit", total);
}

/* Every file that the page names exists; nothing comes from another host; no inline code. */
static void test_references(void)
{
    const ses_web_file *page = find("/");
    if (!CHECK(page != NULL)) return;
    char text[16384], path[128];
    if (!CHECK(page->size < sizeof text)) return;
    memcpy(text, page->bytes, page->size);
    text[page->size] = 0;
    int n = 0;
    for (const char *p = text; (p = strstr(p, "\"/ui/")) != NULL; n++) {
        p++;
        snprintf(path, sizeof path, "%.*s", (int)strcspn(p, "\""), p);
        CHECK_MSG(find(path) != NULL, "index.html names %s", path);
    }
    CHECK(n >= 4);
    CHECK(strstr(text, "://") == NULL && strstr(text, "style=") == NULL && strstr(text, "<style") == NULL);
    CHECK(strstr(text, "<script>") == NULL && strstr(text, " onclick=") == NULL);
    CHECK(!strncmp(ses_web_security_policy, "default-src 'self'", 18));
    CHECK(strstr(ses_web_security_policy, "unsafe") == NULL);
}

int main(void)
{
    test_find();
    test_table();
    test_references();
    return check_report();
}
