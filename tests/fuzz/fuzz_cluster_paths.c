/* Files of word clusters. */
#include "fuzz.h"
#include "vectors/cluster/cluster_paths.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_cluster_paths p = { 0 };
    ses_err e = { 0 };
    bool ok = ses_cluster_paths_from_text(&p, (const char *)data, n, &e);
    MUST(ok || e.code == SES_EFORMAT);
    for (size_t i = 0; ok && i < p.words.count; i++) {
        const ses_strmap_entry *w = &p.words.entry[i];
        const char *path = ses_cluster_path(&p, w->key, w->len);
        MUST(path == p.path[i] && strspn(path, "01") == strlen(path) && p.count[i] >= 0);
    }
    ses_cluster_paths_free(&p);
    return 0;
}
