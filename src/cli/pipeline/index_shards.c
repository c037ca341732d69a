/* Building and merging of the shards of a vector index. */
#include "index_shards.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/shard/shard_merge.h"
#include "kernel/kernel.h"

#include <string.h>

/* ---- building ---- */

static bool build_planned(ses_text_index *t, const ses_call *c, const ses_text_index_args *a,
                          const ses_shard_plan *p, const char *identity, ses_err *e)
{
    size_t n;
    ses_shard_counts counts = { .block = p->last };
    ses_span *part = ses_shard_plan_spans(p, p->first, p->last, &n, e);
    if (part && !n) part[0] = (ses_span){ p->file[0].name, UINT64_MAX, UINT64_MAX, p->first }; /* no block */
    t->part = part;
    bool ok = part && ses_text_index_open(t, c, a, p->file[0].name, e);
    t->part = NULL;
    counts.records = (uint64_t)t->records;
    ok = ok && ses_shard_done_write(t->path, p, identity, &counts, NULL, e);
    ses_free(part);
    return ok;
}

bool ses_index_build_shard(ses_text_index *t, const ses_call *c, const ses_text_index_args *a,
                           const char *file, bool *complete, ses_err *e)
{
    ses_shard shard;
    ses_shard_plan p = { 0 };
    ses_shard_counts counts;
    const char *models[] = { a->model, NULL };
    ses_shard_conditions conditions = { models, ses_isa_name(ses_isa_vectors(ses_isa_best())) };
    if (!a->output) return ses_fail(e, SES_EUSAGE, "--shard needs -o INDEX, a file for each shard");
    bool ok = ses_shard_parse(a->shard, &shard, e) && ses_shard_plan_make(&p, shard, &file, 1, e);
    char *identity = ok ? ses_shard_identity(c, &p, &conditions, e) : NULL;
    ok = identity && ses_shard_is_complete(c, a->output, identity, a->rebuild, &counts, complete, e) &&
         (*complete || build_planned(t, c, a, &p, identity, e));
    ses_free(identity);
    ses_shard_plan_free(&p);
    return ok;
}

/* ---- merging ---- */

typedef struct merge {
    ses_text_index *t;
    ses_index_builder *builder;
    ses_vector_index_info info; /* header of the first shard */
    float *probe;
} merge;

static bool begin(merge *m, const ses_vector_index *x, ses_err *e)
{
    m->info = *ses_vector_index_info_of(x);
    m->builder = ses_index_builder_new(m->t->path, m->info.dtype, m->info.dim, e);
    m->probe = m->builder ? ses_alloc_array((size_t)m->info.dim, sizeof *m->probe, e) : NULL;
    if (m->probe) memcpy(m->probe, ses_vector_index_probe(x), (size_t)m->info.dim * sizeof *m->probe);
    return m->probe != NULL;
}

static bool check_same(const merge *m, const ses_vector_index *x, ses_err *e)
{
    const ses_vector_index_info *i = ses_vector_index_info_of(x);
    const ses_index_source *a = &m->info.source, *b = &i->source;
    if (i->dtype != m->info.dtype || i->dim != m->info.dim ||
        memcmp(ses_vector_index_probe(x), m->probe, (size_t)i->dim * sizeof *m->probe))
        return ses_fail(e, SES_EARG, "its model, processor or dtype differs from that of the first shard");
    return (a->size == b->size && a->hash == b->hash && a->settings == b->settings) ||
           ses_fail(e, SES_EARG, "its texts are of another file than the texts of the first shard");
}

/* Adds the texts of a shard, after `lines` lines or rows of earlier shards. */
static bool add_shard(merge *m, const char *path, int64_t lines, ses_err *e)
{
    ses_vector_index *x = ses_vector_index_open(path, e);
    bool ok = x && (ses_vector_index_verify(x, m->t->pool, e) || ses_wrap(e, "%s", path));
    ok = ok && (m->builder || begin(m, x, e)) && (check_same(m, x, e) || ses_wrap(e, "%s", path));
    int64_t n = ok ? ses_vector_index_info_of(x)->count : 0;
    for (int64_t i = 0; ok && i < n; i++) {
        ses_string text = ses_vector_index_text(x, i);
        int64_t at = ses_index_builder_count(m->builder);
        ok = ses_index_builder_add(m->builder, text.p, text.n, lines + ses_vector_index_line(x, i), e) &&
             ses_index_builder_copy(m->builder, at, x, i, e);
    }
    ses_vector_index_free(x);
    return ok;
}

bool ses_index_merge(ses_text_index *t, const ses_text_index_args *a, char *const *part, size_t n, ses_err *e)
{
    merge m = { .t = t };
    ses_shard_set set = { 0 };
    int64_t lines = 0;
    if (!a->output) return ses_fail(e, SES_EUSAGE, "--merge needs -o INDEX");
    if (!a->rebuild && ses_path_exists(a->output))
        return ses_fail(e, SES_EIO, "%s: already exists; use --rebuild to replace it", a->output);
    t->path = ses_strdup(a->output, e);
    t->pool = ses_thread_pool_new(ses_compute_threads(&(ses_compute_args){ .threads = a->threads }), e);
    bool ok = t->path && t->pool && ses_shard_set_open(&set, "index", part, n, e);
    for (size_t i = 0; ok && i < n; i++) {
        ok = add_shard(&m, part[i], lines, e);
        lines += (int64_t)set.counts[i].records;
    }
    ok = ok && ses_index_builder_write(m.builder, &m.info.source, m.info.model_name, m.probe, a->rebuild, e);
    t->reused = ok ? ses_index_builder_count(m.builder) : 0;
    t->is_written = ok;
    t->index = ok ? ses_vector_index_open(t->path, e) : NULL;
    ses_index_builder_free(m.builder);
    ses_free(m.probe);
    ses_shard_set_free(&set);
    return t->index != NULL;
}
