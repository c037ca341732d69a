/* A tokenizer, a corpus and options of a tiny pretraining run, for tests of sesame/pretrain.h. */
#ifndef TESTS_PRETRAIN_FIXTURE_H
#define TESTS_PRETRAIN_FIXTURE_H

#include "corpus_fixture.h"
#include "sesame/pretrain.h"

typedef struct pretrain_fixture {
    corpus_fixture files;
    char tokenizer[128], corpus[128], output[128];
    const char *corpora[1];
} pretrain_fixture;

static inline void pretrain_begin(pretrain_fixture *f)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    *f = (pretrain_fixture){ .files = corpus_begin() };
    snprintf(f->tokenizer, sizeof f->tokenizer, "%s/t.json", f->files.dir);
    snprintf(f->corpus, sizeof f->corpus, "%s/c", f->files.dir);
    snprintf(f->output, sizeof f->output, "%s/out", f->files.dir);
    f->corpora[0] = f->corpus;
    corpus_text(&b, 6000, 3);
    ses_corpus *c = corpus_of(&f->files, "c", b.data, (ses_corpus_options){ .held_out_fraction = 0.2 }, &e);
    CHECK_MSG(c && ses_file_write(f->tokenizer, corpus_tokenizer, strlen(corpus_tokenizer), true, &e), "%s",
              e.msg);
    ses_corpus_free(c);
    ses_buf_free(&b);
}

static inline void pretrain_end(pretrain_fixture *f)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", f->output); /* it has subfolders */
    CHECK(!system(command));
    corpus_end(&f->files);
}

/* Six updates of masked language modeling with one layer of width 8; nothing is written. */
static inline ses_pretrain_options pretrain_options(const pretrain_fixture *f)
{
    static const char *const set[] = { "hidden_size=8", "num_hidden_layers=1", "num_attention_heads=2",
                                       "intermediate_size=16", "max_position_embeddings=32" };
    ses_pretrain_options o = ses_pretrain_defaults();
    o.corpora = f->corpora, o.n_corpora = 1, o.tokenizer = f->tokenizer;
    o.preset = "bert-tiny", o.set = set, o.n_set = SES_LEN(set);
    o.lengths = "16", o.eval_tokens = 500;
    o.run.steps = 6, o.run.batch_size = 4, o.run.accumulate = 2, o.run.eval_every = 3;
    return o;
}

#endif
