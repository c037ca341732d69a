/* Building and merging of corpus shards. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_shards.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/shard/shard_marker.h"
#include "cli/shard/shard_merge.h"
#include "data/corpus/corpus_part.h"

#include <stdio.h>
#include <string.h>

/* ---- building ---- */

/* The ranges of all files; the range of a file in other shards is empty. */
static ses_corpus_range *ranges_of(const ses_shard_plan *p, ses_err *e)
{
    size_t n;
    ses_span *span = ses_shard_plan_spans(p, p->first, p->last, &n, e);
    ses_corpus_range *r = span ? ses_alloc_array(p->n_files, sizeof *r, e) : NULL;
    uint64_t first = 0;
    for (size_t i = 0, k = 0; r && i < p->n_files; first += p->file[i++].blocks) {
        r[i] = (ses_corpus_range){ 0, 0 };
        if (k < n && span[k].first_block < first + p->file[i].blocks)
            r[i] = (ses_corpus_range){ span[k].begin, span[k].end }, k++;
    }
    ses_free(span);
    return r;
}

/* Facts that a merge needs besides the part. */
static char *extra_of(const ses_corpus_options *o, const ses_corpus_shard *part, ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "unknown_id", o->unk_id);
    ses_json_member_bool(w, "keeps_duplicates", o->keep_duplicates);
    ses_json_member_array(w, "cut_documents");
    for (size_t i = 0; i < part->n_split; i++) ses_json_put_uint(w, part->split[i]);
    ses_json_end_array(w);
    ses_json_end_object(w);
    char *text = ses_json_writer_take(w, &n, e);
    ses_json_writer_free(w);
    return text;
}

static bool write_marker(const ses_shard_plan *p, const char *path, const char *identity,
                         const ses_corpus_options *o, const ses_corpus_shard *part, ses_err *e)
{
    ses_corpus *c = ses_corpus_open(path, e);
    char *extra = c ? extra_of(o, part, e) : NULL;
    ses_shard_counts n = { .block = p->last };
    if (c) n.records = (uint64_t)ses_corpus_info_of(c)->documents;
    bool ok = extra && ses_shard_done_write(path, p, identity, &n, extra, e);
    ses_corpus_free(c);
    ses_free(extra);
    return ok;
}

/* Records in PATH.progress that this command makes PATH. *is_own: it was recorded before, so that PATH
 * without PATH.done is left from a process that was killed between the two. */
static bool claim(const ses_shard_plan *p, const char *path, const char *identity, bool overwrite,
                  bool *is_own, ses_err *e)
{
    ses_shard_counts n = { 0 };
    char *marker = ses_shard_marker_path(path, ".progress", e);
    ses_json_doc *doc = marker && !overwrite ? ses_shard_marker_read(marker, &n, e) : NULL;
    bool ok = marker && e->code == SES_OK;
    *is_own = false;
    if (doc)
        *is_own = ok = ses_shard_marker_check(doc, path, identity, "partial result", e);
    else if (ok && (overwrite || !ses_path_exists(path)))
        ok = ses_shard_marker_write(marker, p, identity, &n, NULL, e);
    ses_json_free(doc);
    ses_free(marker);
    return ok;
}

static bool unclaim(const char *path, ses_err *e)
{
    char *marker = ses_shard_marker_path(path, ".progress", e);
    bool ok = marker && ses_file_remove(marker, e);
    ses_free(marker);
    return ok;
}

bool ses_corpus_build_shard(const ses_call *c, const char *path, const char *text, const char *tokenizer,
                            const ses_corpus_options *o, int64_t *resumed, bool *complete, ses_err *e)
{
    ses_shard shard;
    ses_shard_plan p = { 0 };
    ses_shard_counts n;
    ses_corpus_shard part = { 0 };
    const char *models[] = { tokenizer, NULL };
    bool ok = ses_shard_parse(text, &shard, e) && ses_shard_plan_make(&p, shard, o->files, o->n_files, e);
    char *identity = ok ? ses_shard_identity(c, &p, &(ses_shard_conditions){ models, NULL }, e) : NULL;
    ses_corpus_range *range = identity ? ranges_of(&p, e) : NULL;
    part.range = range;
    ok = range && ses_shard_is_complete(c, path, identity, o->overwrite, &n, complete, e);
    if (ok && !*complete) {
        bool is_own = false;
        ses_corpus_options own = *o;
        ok = claim(&p, path, identity, o->overwrite, &is_own, e);
        if (is_own && ses_path_exists(path)) own.overwrite = true;
        ok = ok && ses_corpus_build_part(path, &own, &part, resumed, e) &&
             write_marker(&p, path, identity, o, &part, e) && unclaim(path, e);
    }
    ses_free(part.split);
    ses_free(range);
    ses_free(identity);
    ses_shard_plan_free(&p);
    return ok;
}

/* ---- merging ---- */

static bool read_split(const ses_json *list, uint64_t **out, size_t *n, ses_err *e)
{
    *n = ses_json_len(list);
    *out = ses_alloc_array(*n + 1, sizeof **out, e);
    for (size_t i = 0; *out && i < *n; i++)
        if (!ses_json_uint(ses_json_at(list, i), &(*out)[i]))
            return ses_fail(e, SES_EFORMAT, "cut_documents");
    return *out != NULL;
}

bool ses_corpus_merge_shards(const char *path, char *const *part, size_t n, bool overwrite, ses_err *e)
{
    ses_shard_set set = { 0 };
    ses_corpus_shard_file *file = ses_alloc_array(n, sizeof *file, e);
    uint64_t **split = file ? ses_alloc_array(n, sizeof *split, e) : NULL;
    bool ok = split && ses_shard_set_open(&set, "corpus", part, n, e), keep = false;
    for (size_t i = 0; ok && i < n; i++) {
        const ses_json *v = ses_json_root(set.marker[i]);
        int64_t unknown = -1;
        ses_json_int(ses_json_get(v, "unknown_id"), &unknown);
        ses_json_bool(ses_json_get(v, "keeps_duplicates"), &keep);
        ok = read_split(ses_json_get(v, "cut_documents"), &split[i], &file[i].n_split, e) ||
             ses_wrap(e, "%s.done", part[i]);
        file[i].path = part[i];
        file[i].unk_id = (int32_t)unknown;
        file[i].split = split[i];
    }
    ok = ok && ses_corpus_merge(path, file, n, keep, overwrite, e);
    for (size_t i = 0; split && i < n; i++) ses_free(split[i]);
    ses_free(split);
    ses_free(file);
    ses_shard_set_free(&set);
    return ok;
}
