/* A small tokenizer and corpora built with it, in a temporary folder. */
#ifndef TESTS_CORPUS_FIXTURE_H
#define TESTS_CORPUS_FIXTURE_H

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "sesame/pretrain.h"

#include <unistd.h>

static const char corpus_tokenizer[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
    "\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{\"[PAD]\":0,\"[UNK]\":"
    "1,"
    "\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"a\":5,\"b\":6,\"c\":7,\"d\":8,\"e\":9,\"##a\":10,\"##b\":11,"
    "\"##c\":12,\"##d\":13,\"##e\":14,\".\":15}}}";

typedef struct corpus_fixture {
    char dir[64];
    ses_tokenizer *tokenizer;
} corpus_fixture;

static inline corpus_fixture corpus_begin(void)
{
    corpus_fixture f = { .dir = "/tmp/sesame-corpus-XXXXXX" };
    ses_err e = { 0 };
    if (!mkdtemp(f.dir)) exit(1);
    f.tokenizer = ses_tokenizer_from_json(corpus_tokenizer, strlen(corpus_tokenizer), &e);
    CHECK_MSG(f.tokenizer, "%s", e.msg);
    return f;
}

static inline void corpus_end(corpus_fixture *f)
{
    ses_tokenizer_free(f->tokenizer);
    CHECK(ses_dir_remove(f->dir, NULL));
}

/* dir/name, valid for the next three calls. */
static inline const char *corpus_path(const corpus_fixture *f, const char *name)
{
    static char path[4][128];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", f->dir, name);
    return p;
}

/* Builds a corpus from a text; sets the tokenizer and files of the options. NULL on failure. */
static inline ses_corpus *corpus_of(const corpus_fixture *f, const char *name, const char *text,
                                    ses_corpus_options o, ses_err *e)
{
    char file[128], out[128];
    const char *files[] = { file };
    int64_t resumed;
    snprintf(file, sizeof file, "%s/%s%s", f->dir, name, o.format == 2 ? ".jsonl" : ".txt");
    snprintf(out, sizeof out, "%s/%s", f->dir, name);
    if (!ses_file_write(file, text, strlen(text), true, e)) return NULL;
    o.tokenizer = f->tokenizer;
    o.unk_id = 1;
    o.files = files;
    o.n_files = 1;
    o.overwrite = true;
    return ses_corpus_build(out, &o, &resumed, e) ? ses_corpus_open(out, e) : NULL;
}

/* Documents of random words and sentences, about this many bytes. */
static inline void corpus_text(ses_buf *b, size_t bytes, unsigned seed)
{
    while (b->len < bytes) {
        for (unsigned s = 0; s < 1 + seed / 7 % 9; s++) {
            for (unsigned w = 0; w < 1 + seed / 3 % 11; w++) {
                for (unsigned i = 0; i <= seed % 3; i++) {
                    seed = seed * 1664525u + 1013904223u;
                    ses_buf_put(b, (char)('a' + seed % 6 % 5));
                    seed ^= seed >> 15;
                }
                ses_buf_put(b, ' ');
            }
            ses_buf_puts(b, ".\n");
        }
        ses_buf_put(b, '\n');
    }
}

#endif
