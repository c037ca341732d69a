/* manifest.json: every file of the folder is listed and unchanged. */
#define _DEFAULT_SOURCE
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "io/manifest.h"

#include <stdlib.h>
#include <string.h>

static char dir[] = "/tmp/manifest.XXXXXX";

static void put(const char *name, const char *text)
{
    ses_err e = { 0 };
    char path[80];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_MSG(ses_file_write(path, text, strlen(text), true, &e), "%s", e.msg);
}

/* The check fails with this text in its message. */
static void fails(const char *text)
{
    ses_err e = { 0 };
    CHECK(!ses_manifest_check(dir, &e) && e.code == SES_EFORMAT);
    CHECK_MSG(strstr(e.msg, text), "%s", e.msg);
}

int main(void)
{
    static const char *const empty[] = { "[]",        "[null]", "[{\"size\": 1, \"siphash\": \"0\"}]",
                                         "\"a.bin\"", "3",      "{}" };
    ses_err e = { 0 };
    CHECK(mkdtemp(dir));
    put("a.bin", "abc");
    put("b.bin", "");
    CHECK_MSG(ses_manifest_write(dir, &e) && ses_manifest_check(dir, &e), "%s", e.msg);
    put(".hidden", "x");
    CHECK_MSG(ses_manifest_check(dir, &e), "%s", e.msg);
    put("a.bin", "abd");
    fails("a.bin is damaged");
    put("a.bin", "ab");
    fails("a.bin has 2 bytes; expected 3");
    put("a.bin", "abc");
    put("c.bin", "new");
    fails("manifest.json does not list c.bin");
    for (size_t i = 0; i < SES_LEN(empty); i++) {
        put("manifest.json", empty[i]);
        fails("manifest.json lists no files");
    }
    put("manifest.json", "{\"a.bin\": [], \"b.bin\": 1, \"c.bin\": null}");
    fails("\"a.bin\": expected size and siphash");
    CHECK(ses_dir_remove(dir, &e));
    return check_report();
}
