/* Opens the files of a TensorFlow checkpoint. */
#include "tf_read.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "tf_family.h"

#include <inttypes.h>
#include <string.h>

bool ses_tf_index_open(ses_tf_index *x, const char *dir, const char *prefix, ses_err *e)
{
    ses_buf name = { 0 };
    size_t n;
    ses_buf_appendf(&name, "%s.index", prefix);
    char *path = ses_buf_ok(&name, e) ? ses_path_join(dir, name.data, e) : NULL;
    char *bytes = path ? ses_file_read(path, SES_TF_MAX_INDEX, &n, e) : NULL;
    bool ok = false;
    if (bytes) {
        ok = ses_check_not_lfs(bytes, n, "index", e) && ses_tf_index_parse(x, bytes, n, e);
        if (!ok) ses_wrap(e, "%s", path);
        if (!ok) ses_tf_index_free(x);
    }
    ses_free(bytes);
    ses_free(path);
    ses_buf_free(&name);
    return ok;
}

static bool read_shard(ses_safetensors *s, const ses_tf_family *f, const ses_tf_index *x, int64_t shard,
                       const char *file, ses_shard_source *get, void *ctx, ses_err *e)
{
    const void *bytes = NULL;
    size_t n = 0;
    if (!get(ctx, file, &bytes, &n, e))
        return ses_wrap(e, "shard %" PRId64 " of %" PRId64, shard + 1, x->shards);
    return (ses_check_not_lfs(bytes, n, "weights", e) && ses_tf_shard_check(x, shard, bytes, n, e) &&
            ses_tf_add(s, f, x, shard, bytes, file, e)) ||
           ses_wrap(e, "%s", file);
}

bool ses_tf_read(ses_safetensors *s, const ses_tf_index *x, const char *prefix, const char *class,
                 ses_shard_source *get, void *ctx, ses_err *e)
{
    const ses_tf_family *f = ses_tf_family_of(x, class, e);
    bool ok = f != NULL;
    ses_buf name = { 0 };
    for (int64_t i = 0; ok && i < x->shards; i++) {
        name.len = 0;
        ses_buf_appendf(&name, "%s.data-%05" PRId64 "-of-%05" PRId64, prefix, i, x->shards);
        ok = ses_buf_ok(&name, e);
        const char *file = ok ? ses_arena_strndup(&s->arena, name.data, name.len, e) : NULL;
        ok = file && read_shard(s, f, x, i, file, get, ctx, e);
    }
    ses_buf_free(&name);
    return ok;
}
