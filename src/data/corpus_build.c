/* Building a corpus from texts: repeatedly reads some megabytes of documents, tokenizes them on all threads
 * and writes them in order. The result for a document depends on its text only. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "corpus_spool.h"
#include "corpus_text.h"
#include "corpus_tokens.h"
#include "sesame/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CHUNK = 8 << 20,
    CHECKPOINT = 64 << 20
}; /* bytes of text tokenized at once; between two checkpoints */

/* Set of document hashes, which need no further hashing. */
typedef struct seen {
    uint64_t *slot; /* 0: free */
    size_t n, slots;
} seen;

typedef struct build {
    const ses_corpus_options *o;
    ses_build_progress at;
    ses_spool spool;
    seen seen;
    ses_thread_pool *pool;
    int threads;
    ses_corpus_worker *worker;
    ses_texts texts;
    uint64_t saved, done, total; /* bytes of text at the last checkpoint; of the files read; of all files */
} build;

/* ---- duplicates ---- */

static bool seen_add(seen *s, uint64_t hash, bool *fresh, ses_err *e)
{
    if (2 * s->n >= s->slots) {
        seen old = *s;
        s->slots = old.slots ? 2 * old.slots : 1024;
        s->slot = ses_alloc_array(s->slots, sizeof *s->slot, e);
        if (!s->slot) return *s = old, false;
        s->n = 0;
        for (size_t i = 0; i < old.slots; i++)
            if (old.slot[i]) seen_add(s, old.slot[i], fresh, e);
        ses_free(old.slot);
    }
    if (!hash) hash = 1;
    size_t i = hash & (s->slots - 1);
    while (s->slot[i] && s->slot[i] != hash) i = (i + 1) & (s->slots - 1);
    *fresh = !s->slot[i];
    if (*fresh) s->slot[i] = hash, s->n++;
    return true;
}

static bool add_existing(void *ctx, const ses_corpus_entry *d, ses_err *e)
{
    bool fresh;
    return seen_add(ctx, d->hash, &fresh, e);
}

/* ---- writing ---- */

static bool put_tokens(build *b, const ses_corpus_text *t, ses_err *e)
{
    ses_spool *s = &b->spool;
    char block[1024];
    size_t n = (size_t)t->tokens;
    bool ok = true;
    if (b->at.head.id_bytes == 4) ok = ses_spool_put(s, PART_TOKENS, t->id, n * sizeof *t->id, e);
    for (size_t i = 0; i < n && b->at.head.id_bytes == 2 && ok;) {
        size_t k = 0;
        for (; k < sizeof block / 2 && i < n; k++, i++) {
            uint16_t id = (uint16_t)t->id[i];
            memcpy(block + 2 * k, &id, 2);
        }
        ok = ses_spool_put(s, PART_TOKENS, block, 2 * k, e);
    }
    for (size_t i = 0; i < n && ok;) {
        size_t k = 0;
        for (; k < sizeof block && i < n; k++) {
            unsigned bits = 0;
            for (int bit = 0; bit < 8 && i < n; bit++, i++) bits |= (unsigned)t->word[i] << bit;
            block[k] = (char)bits;
        }
        ok = ses_spool_put(s, PART_WORDS, block, k, e);
    }
    return ok && ses_spool_put(s, PART_SENTENCES, t->sentence, (size_t)t->sentences * sizeof *t->sentence, e);
}

static bool put_document(build *b, const ses_corpus_text *t, ses_err *e)
{
    ses_corpus_header *h = &b->at.head;
    bool fresh = true;
    h->bytes += t->bytes;
    h->bad_lines += t->bad_lines;
    if (!t->tokens) return h->empty++, true;
    if (!b->o->keep_duplicates && !seen_add(&b->seen, t->hash, &fresh, e)) return false;
    if (!fresh) return h->duplicates++, true;
    if (t->continues) h->split_documents++;
    ses_corpus_entry d = { h->tokens, h->sentences, t->hash };
    if (h->documents == UINT32_MAX)
        return ses_fail(e, SES_EARG, "more than %" PRIu32 " documents", UINT32_MAX);
    if (!put_tokens(b, t, e) || !ses_spool_put(&b->spool, PART_DOCUMENTS, &d, sizeof d, e)) return false;
    h->tokens += (uint64_t)t->tokens;
    h->sentences += (uint64_t)t->sentences;
    h->unknown += (uint64_t)t->unknown;
    h->documents++;
    if (ses_corpus_is_held_out(t->hash, h->held_out_fraction))
        h->held_out++, h->held_out_tokens += (uint64_t)t->tokens;
    static const char zero[8] = { 0 }; /* the bits of the next document begin at a new byte */
    return ses_spool_put(&b->spool, PART_WORDS, zero,
                         (size_t)(h->tokens / 8 + h->documents - b->spool.size[PART_WORDS]), e);
}

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
            if (!put_document(b, &t, e)) return false;
        }
        if (k->failed) {
            if (e) *e = k->e;
            return ses_wrap(e, "%s", path);
        }
    }
    b->at.offset = b->texts.offset;
    b->at.line = b->texts.line;
    return true;
}

static bool report_progress(build *b, uint64_t in_file, ses_err *e)
{
    if (!b->o->progress || b->o->progress(b->o->ctx, b->done + in_file, b->total)) return true;
    if (!ses_spool_checkpoint(&b->spool, &b->at, e)) return false;
    return ses_fail(e, SES_EIO, "stopped after %" PRIu64 " documents; run the same command to resume",
                    b->at.head.documents);
}

static bool is_jsonl(const ses_corpus_options *o, const char *path)
{
    if (o->format != SES_CORPUS_AUTO) return o->format == SES_CORPUS_JSONL;
    return ses_input_stream_has_suffix(path, ".jsonl") || ses_input_stream_has_suffix(path, ".ndjson") ||
           ses_input_stream_has_suffix(path, ".json");
}

static bool build_file(build *b, const char *path, ses_err *e)
{
    bool json = is_jsonl(b->o, path);
    for (int i = 0; i < b->threads; i++) b->worker[i].json = json;
    bool ok = ses_texts_open(&b->texts, path, json, b->at.offset, b->at.line, e) || ses_wrap(e, "%s", path);
    while (ok && !(b->texts.end && b->texts.used == b->texts.buf.len)) {
        ok = build_chunk(b, path, e);
        if (ok && b->at.head.bytes - b->saved >= CHECKPOINT) {
            ok = ses_spool_checkpoint(&b->spool, &b->at, e);
            b->saved = b->at.head.bytes;
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
    if (!w) return NULL;
    ses_json_begin_array(w);
    snprintf(hex, sizeof hex, "%016" PRIx64, b->at.head.tokenizer);
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
    ses_json_put_real(w, o->held_out_fraction);
    ses_json_end_array(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) copy = ses_strdup(text, e);
    ses_json_writer_free(w);
    return copy;
}

static bool prepare(build *b, ses_err *e)
{
    const ses_corpus_options *o = b->o;
    ses_corpus_header *h = &b->at.head;
    int64_t vocab = ses_tokenizer_vocab_size(o->tokenizer);
    h->vocab = (uint64_t)vocab;
    h->id_bytes = vocab <= 65536 ? 2 : 4;
    h->held_out_fraction = o->held_out_fraction;
    if (o->label) snprintf(h->label, sizeof h->label, "%s", o->label);
    if (!(o->held_out_fraction >= 0 && o->held_out_fraction < 1))
        return ses_fail(e, SES_EARG, "held-out fraction %g, expected at least 0 and below 1",
                        o->held_out_fraction);
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
    ses_free(b->seen.slot);
    ses_spool_free(&b->spool);
}

static bool run(build *b, const char *path, int64_t *resumed, ses_err *e)
{
    const ses_corpus_options *o = b->o;
    char *settings = settings_of(b, e);
    bool ok = settings && ses_spool_open(&b->spool, path, settings, o->restart, &b->at, e);
    ses_free(settings);
    if (!ok) return false;
    *resumed = (int64_t)b->at.head.documents;
    b->saved = b->at.head.bytes;
    if (!o->keep_duplicates &&
        !ses_spool_documents(&b->spool, b->at.head.documents, add_existing, &b->seen, e))
        return false;
    for (size_t i = 0; i < o->n_files; i++) {
        struct stat st = { 0 };
        if (i >= b->at.file && !build_file(b, o->files[i], e)) return false;
        if (i >= b->at.file) b->at.offset = b->at.line = 0, b->at.file = i + 1;
        if (stat(o->files[i], &st) == 0 && S_ISREG(st.st_mode)) b->done += (uint64_t)st.st_size;
    }
    if (!b->at.head.documents)
        return ses_fail(e, SES_EFORMAT, "no text in %s%s", o->n_files ? o->files[0] : "any file",
                        o->n_files > 1 ? " and the other files" : "");
    return ses_spool_finish(&b->spool, path, o->overwrite, &b->at.head, e);
}

bool ses_corpus_build(const char *path, const ses_corpus_options *o, int64_t *resumed, ses_err *e)
{
    build b = { .o = o };
    *resumed = 0;
    bool ok = false;
    if (ses_path_exists(path) && !o->overwrite)
        ses_fail(e, SES_EIO, "%s: file exists; use the option overwrite to replace it", path);
    else
        ok = prepare(&b, e) && run(&b, path, resumed, e);
    if (!ok && b.spool.lock && !b.spool.has_journal) ses_dir_remove(b.spool.dir, NULL);
    build_free(&b);
    return ok;
}
