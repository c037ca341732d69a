/* Building a corpus from texts: repeatedly reads some megabytes of documents, tokenizes them on all threads
 * and writes them in order. The result for a document depends on its text only. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "corpus_part.h"
#include "corpus_text.h"
#include "corpus_writer.h"
#include "io/table_text.h"
#include "sesame/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CHUNK = 8 << 20,
    CHECKPOINT = 64 << 20
}; /* bytes of text tokenized at once; between two checkpoints */

typedef struct build {
    const ses_corpus_options *o;
    const ses_corpus_range *range; /* [n_files] parts of the files; NULL: all of them */
    ses_corpus_writer w;
    ses_thread_pool *pool;
    int threads;
    ses_corpus_worker *worker;
    ses_texts texts;
    uint64_t saved, done, total; /* bytes of text at the last checkpoint; of the files read; of all files */
} build;

/* ---- a chunk ---- */

static void work(void *ctx, int64_t i, void *scratch)
{
    build *b = ctx;
    (void)scratch;
    ses_corpus_worker_run(&b->worker[i]);
}

/* Assigns consecutive documents of about equal total size to each worker. */
static void assign_documents(build *b)
{
    const ses_texts *t = &b->texts;
    size_t all = 0, at = 0;
    for (size_t i = 0; i < t->n; i++) all += t->doc[i].n;
    for (int w = 0; w < b->threads; w++) {
        size_t target = all / (size_t)(b->threads - w), from = at, got = 0;
        while (at < t->n && (got < target || w + 1 == b->threads)) got += t->doc[at++].n;
        all -= got;
        b->worker[w].doc = t->doc ? t->doc + from : NULL;
        b->worker[w].n_docs = at - from;
    }
}

static bool build_chunk(build *b, const char *path, ses_err *e)
{
    if (!ses_texts_next(&b->texts, b->o->chunk_bytes > 0 ? (size_t)b->o->chunk_bytes : CHUNK, e))
        return ses_wrap(e, "%s", path);
    assign_documents(b);
    ses_parallel_for(b->pool, b->threads, work, b);
    for (int w = 0; w < b->threads; w++) {
        const ses_corpus_worker *k = &b->worker[w];
        for (size_t i = 0; i < k->n_out; i++) {
            ses_corpus_text t = ses_corpus_worker_text(k, i);
            if (!ses_corpus_writer_put(&b->w, &t, e)) return false;
        }
        if (k->failed) {
            if (e) *e = k->e;
            return ses_wrap(e, "%s", path);
        }
    }
    b->w.at.offset = b->texts.offset;
    b->w.at.line = b->texts.line;
    return true;
}

static bool report_progress(build *b, uint64_t in_file, ses_err *e)
{
    if (!b->o->progress || b->o->progress(b->o->ctx, b->done + in_file, b->total)) return true;
    if (!ses_spool_checkpoint(&b->w.spool, &b->w.at, e)) return false;
    return ses_fail(e, SES_EIO, "stopped after %" PRIu64 " documents; run the same command to resume",
                    b->w.at.head.documents);
}

static bool is_jsonl(const ses_corpus_options *o, const char *path)
{
    if (o->format != SES_CORPUS_AUTO) return o->format == SES_CORPUS_JSONL;
    return ses_is_json_lines_name(path);
}

/* Opens a file where the build continues, and limits it to its part. */
static bool open_texts(build *b, size_t file, const char *path, bool json, ses_err *e)
{
    uint64_t begin = 0, end = UINT64_MAX;
    if (b->range && !(ses_texts_border(path, json, b->range[file].begin, &begin, e) &&
                      ses_texts_border(path, json, b->range[file].end, &end, e)))
        return false;
    if (b->w.at.offset < begin) b->w.at.offset = begin;
    b->texts.limit = end;
    b->texts.encoding = b->o->encoding;
    return ses_texts_open(&b->texts, path, json, b->w.at.offset, b->w.at.line, e);
}

static bool build_file(build *b, size_t file, const char *path, ses_err *e)
{
    bool json = is_jsonl(b->o, path);
    for (int i = 0; i < b->threads; i++) b->worker[i].json = json;
    bool ok = open_texts(b, file, path, json, e) || ses_wrap(e, "%s", path);
    while (ok && !(b->texts.end && b->texts.used == b->texts.buf.len)) {
        ok = build_chunk(b, path, e);
        if (ok && b->w.at.head.bytes - b->saved >= CHECKPOINT) {
            ok = ses_spool_checkpoint(&b->w.spool, &b->w.at, e);
            b->saved = b->w.at.head.bytes;
        }
        ok = ok && report_progress(b, b->texts.in ? ses_input_stream_consumed(b->texts.in) : 0, e);
    }
    ses_texts_free(&b->texts);
    return ok;
}

/* ---- a build ---- */

/* Settings that a resumed build must share with the interrupted one, as a line of JSON. */
static char *settings_of(build *b, ses_err *e)
{
    const ses_corpus_options *o = b->o;
    char hex[24], *copy = NULL;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_array(w);
    snprintf(hex, sizeof hex, "%016" PRIx64, b->w.at.head.tokenizer);
    ses_json_put_string(w, hex);
    for (size_t i = 0; i < o->n_files; i++) {
        struct stat st = { 0 };
        bool there = stat(o->files[i], &st) == 0 && S_ISREG(st.st_mode);
        ses_json_put_string(w, o->files[i]);
        ses_json_put_uint(w, there ? (uint64_t)st.st_size : 0);
        ses_json_put_int(w, there ? (int64_t)st.st_mtime : 0);
        b->total += there ? (uint64_t)st.st_size : 0;
    }
    ses_json_put_int(w, o->format);
    ses_json_put_string(w, o->field);
    ses_json_put_bool(w, o->split_sentences);
    ses_json_put_bool(w, o->keep_duplicates);
    ses_json_put_bool(w, o->newline_tokens);
    if (o->encoding) ses_json_put_int(w, o->encoding);
    ses_json_put_real(w, o->held_out_fraction);
    for (size_t i = 0; b->range && i < o->n_files; i++) {
        ses_json_put_uint(w, b->range[i].begin);
        ses_json_put_uint(w, b->range[i].end);
    }
    ses_json_end_array(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) copy = ses_strdup(text, e);
    ses_json_writer_free(w);
    return copy;
}

/* All files exist and are texts: the last one may be read after hours. */
static bool check_files(const ses_corpus_options *o, ses_err *e)
{
    static const char remedy[] =
        "give a file with the texts alone, or JSON lines; --format text reads the lines as "
        "they are";
    struct stat s;
    for (size_t i = 0; i < o->n_files; i++) {
        if (strcmp(o->files[i], "-") != 0 && stat(o->files[i], &s))
            return ses_fail(e, SES_EIO, "%s: %s", o->files[i], strerror(errno));
        if (o->format == SES_CORPUS_AUTO && !is_jsonl(o, o->files[i]) &&
            !ses_refuse_table(o->files[i], remedy, e))
            return ses_wrap(e, "%s", o->files[i]);
    }
    return true;
}

static bool prepare(build *b, ses_err *e)
{
    const ses_corpus_options *o = b->o;
    ses_corpus_header *h = &b->w.at.head;
    int64_t vocab = ses_tokenizer_vocab_size(o->tokenizer);
    h->vocab = (uint64_t)vocab;
    h->id_bytes = vocab <= 65536 ? 2 : 4;
    h->held_out_fraction = o->held_out_fraction;
    if (o->encoding && b->range)
        return ses_fail(e, SES_EARG, "an encoding converts whole files: expected UTF-8 for parts of files");
    if (o->label) snprintf(h->label, sizeof h->label, "%s", o->label);
    if (!(o->held_out_fraction >= 0 && o->held_out_fraction < 1))
        return ses_fail(e, SES_EARG, "held-out fraction %g, expected at least 0 and below 1",
                        o->held_out_fraction);
    if (!check_files(o, e)) return false;
    if (!ses_tokenizer_fingerprint(o->tokenizer, &h->tokenizer, e)) return false;
    b->threads = o->threads > 0 ? o->threads : 1;
    b->pool = ses_thread_pool_new(b->threads, e);
    b->worker = ses_alloc_array((size_t)b->threads, sizeof *b->worker, e);
    if (!b->pool || !b->worker) return false;
    for (int i = 0; i < b->threads; i++)
        if (!ses_corpus_worker_open(&b->worker[i], o, e)) return false;
    return true;
}

static void build_free(build *b)
{
    for (int i = 0; b->worker && i < b->threads; i++) ses_corpus_worker_free(&b->worker[i]);
    ses_free(b->worker);
    ses_thread_pool_free(b->pool);
    ses_texts_free(&b->texts);
    ses_corpus_writer_free(&b->w);
}

static bool run(build *b, const char *path, int64_t *resumed, ses_err *e)
{
    const ses_corpus_options *o = b->o;
    bool exists = !o->overwrite && ses_path_exists(path), complete = false;
    char *settings = settings_of(b, e);
    bool ok = settings != NULL;
    if (exists)
        ok = ok && ses_spool_adopt(&b->w.spool, path, settings, &b->w.at, &complete, e) &&
             (complete || ses_fail_exists(path, e));
    else
        ok = ok && ses_spool_open(&b->w.spool, path, settings, o->restart, &b->w.at, e);
    ses_free(settings);
    if (!ok) return false;
    *resumed = (int64_t)b->w.at.head.documents;
    if (complete) return true;
    b->saved = b->w.at.head.bytes;
    if (!ses_corpus_writer_recall(&b->w, e)) return false;
    for (size_t i = 0; i < o->n_files; i++) {
        struct stat st = { 0 };
        bool none = b->range && b->range[i].begin >= b->range[i].end;
        if (i >= b->w.at.file && !none && !build_file(b, i, o->files[i], e)) return false;
        if (i >= b->w.at.file) b->w.at.offset = b->w.at.line = 0, b->w.at.file = i + 1;
        if (stat(o->files[i], &st) == 0 && S_ISREG(st.st_mode)) b->done += (uint64_t)st.st_size;
    }
    if (!b->w.at.head.documents && !b->range)
        return ses_fail(e, SES_EFORMAT, "no text in %s%s", o->n_files ? o->files[0] : "any file",
                        o->n_files > 1 ? " and the other files" : "");
    if (!b->range && !ses_corpus_check_held_out(&b->w.at.head, e)) return false;
    bool had_journal = b->w.spool.has_journal;
    ok = ses_spool_checkpoint(&b->w.spool, &b->w.at, e) && /* all counts: see ses_spool_adopt */
         ses_spool_finish(&b->w.spool, path, o->overwrite, &b->w.at.head, e);
    if (!ok) b->w.spool.has_journal = had_journal;
    return ok;
}

/* Whether an existing corpus may be what a killed build of these texts has made: it has left PATH.part, and
 * the texts can be read again. */
static bool may_be_complete(const char *path, const ses_corpus_options *o, bool *may, ses_err *e)
{
    ses_buf dir = { 0 };
    ses_buf_appendf(&dir, "%s.part", path);
    bool ok = ses_buf_ok(&dir, e);
    *may = ok && ses_path_is_dir(dir.data);
    for (size_t i = 0; i < o->n_files; i++) {
        struct stat st;
        *may = *may && stat(o->files[i], &st) == 0 && S_ISREG(st.st_mode);
    }
    ses_buf_free(&dir);
    return ok;
}

bool ses_corpus_build_part(const char *path, const ses_corpus_options *o, ses_corpus_shard *part,
                           int64_t *resumed, ses_err *e)
{
    build b = { .o = o, .w.keep_duplicates = o->keep_duplicates, .range = part ? part->range : NULL };
    *resumed = 0;
    bool exists = !o->overwrite && ses_path_exists(path), may = true,
         ok = !exists || may_be_complete(path, o, &may, e);
    ok = ok && (may || ses_fail_exists(path, e)) && prepare(&b, e) && run(&b, path, resumed, e);
    if (!ok && b.w.spool.lock && !b.w.spool.has_journal) ses_dir_remove(b.w.spool.dir, NULL);
    if (part && ok) {
        part->split = b.w.spool.split;
        part->n_split = b.w.spool.n_split;
        b.w.spool.split = NULL;
    }
    build_free(&b);
    return ok;
}

bool ses_corpus_build(const char *path, const ses_corpus_options *o, int64_t *resumed, ses_err *e)
{
    return ses_corpus_build_part(path, o, NULL, resumed, e);
}
