/* Hub names, lists of files, cards and the search in a cache with every allocation failing in turn. */
#define _XOPEN_SOURCE 700
#include "oom.h"

#include "base/file.h"
#include "hub/card.h"
#include "hub/hub_cache.h"
#include "hub/hub_scan.h"

#include <sys/stat.h>
#include <unistd.h>

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static char top[100];

static bool read_list(void *ctx, ses_err *e)
{
    ses_hub_files f, again = { 0 };
    size_t n;
    ses_json_doc *d = ses_json_parse(ctx, strlen(ctx), e), *tree = NULL;
    bool ok = d && ses_hub_files_from_api(&f, ses_json_root(d), e);
    char *text = ok ? ses_hub_files_tree(&f, &n, e) : NULL;
    if (text) tree = ses_json_parse(text, n, e);
    ok = tree && ses_hub_files_from_tree(&again, ses_json_root(tree), COMMIT, e);
    if (d && f.item) ses_hub_files_free(&f);
    ses_hub_files_free(&again);
    ses_json_free(tree);
    ses_json_free(d);
    free(text);
    return ok;
}

static bool read_card(void *ctx, ses_err *e)
{
    ses_card c;
    bool ok = ses_card_parse(&c, ctx, strlen(ctx), e);
    ses_card_free(&c);
    return ok;
}

static bool find(void *ctx, ses_err *e)
{
    char *dir = ses_hub_find(ctx, e);
    free(dir);
    return dir != NULL;
}

static bool list(void *ctx, ses_err *e)
{
    ses_hub_list l;
    (void)ctx;
    bool ok = ses_hub_list_read(&l, top, e);
    if (ok) ses_hub_list_free(&l);
    return ok;
}

static void put(const char *path, const char *text)
{
    char full[400], *slash;
    snprintf(full, sizeof full, "%s/models--a--b/%s", top, path);
    slash = strrchr(full, '/');
    *slash = 0;
    CHECK(ses_dir_make(full, NULL));
    *slash = '/';
    CHECK(ses_file_write(full, text, strlen(text), true, NULL));
}

int main(void)
{
    char api[] =
        "{\"sha\":\"" COMMIT "\",\"siblings\":[{\"rfilename\":\"config.json\",\"size\":1,\"blobId\":\"" COMMIT
        "\"},{\"rfilename\":\"a/b\",\"size\":2}]}";
    char card[] = "---\nlicense: mit\ntags:\n- a\n- b: [c, 'd']\ntext: |\n  e\n---\n# f\n", name[] = "a/b";
    oom_sweep("list", read_list, api);
    oom_sweep("card", read_card, card);
    snprintf(top, sizeof top, "/tmp/sesame-hub-oom-%ld", (long)getpid());
    put("refs/main", COMMIT);
    put("snapshots/" COMMIT "/config.json", "{}");
    put("snapshots/" COMMIT "/model-1.safetensors", "x");
    put("snapshots/" COMMIT "/model.safetensors.index.json",
        "{\"weight_map\": {\"a\": \"model-1.safetensors\"}}");
    setenv("HF_HUB_CACHE", top, 1);
    oom_sweep("find", find, name);
    put("trees/" COMMIT ".json",
        "{\"format_version\": 1, \"files\": {\"config.json\": {\"size\": 2, \"blob_id\": \"" COMMIT "\"}}}");
    oom_sweep("find by list", find, name);
    oom_sweep("ls", list, NULL);
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", top);
    CHECK(system(command) == 0);
    return check_report();
}
