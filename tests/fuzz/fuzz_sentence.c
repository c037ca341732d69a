/* modules.json (an array) to a list of modules; a module's config.json (an object) to each kind of module. */
#include "fuzz.h"
#include "model/sentence/sentence_impl.h"

static void read_list(const ses_json *list)
{
    ses_err e = { 0 };
    ses_modules m = { 0 };
    bool ok = ses_modules_read(&m, list, &e);
    MUST(ok == (e.code == SES_OK) && m.n <= SES_MAX_MODULES);
    for (size_t i = 0; ok && i < m.n; i++) {
        char path[512];
        MUST(m.item[i].kind && m.item[i].path && m.item[i].path[0] != '/');
        snprintf(path, sizeof path, "/%s/", m.item[i].path);
        MUST(!strstr(path, "/../"));
    }
    ses_modules_free(&m);
}

static void read_config(const ses_json *config)
{
    for (const ses_module_kind *const *k = ses_module_kinds(); *k; k++) {
        ses_err e = { 0 };
        ses_module m = { .kind = *k };
        bool ok = !(*k)->read || (*k)->read(&m, config, &e);
        MUST(ok == (e.code == SES_OK));
        MUST(m.pools >= 0 && m.pools <= SES_MAX_POOLS && (!ok || !(m.dropout < 0 || m.dropout >= 1)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_json_doc *doc = ses_json_parse((const char *)data, n, NULL);
    const ses_json *root = ses_json_root(doc);
    if (ses_json_type_of(root) == SES_JSON_OBJECT)
        read_config(root);
    else if (doc)
        read_list(root);
    ses_json_free(doc);
    return 0;
}
