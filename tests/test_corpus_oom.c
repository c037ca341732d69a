/* Corpora and passages with every allocation failing in turn. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "corpus_fixture.h"
#include "sesame/pretrain.h"

typedef struct job {
    const corpus_fixture *f;
    ses_packing packing;
    bool json;
} job;

static bool read_rows(const ses_corpus *c, ses_packing packing, ses_err *e)
{
    ses_mixture_part part[] = { { c, 1 }, { c, 2 } };
    ses_passages_options o = { .parts = part,
                               .n_parts = 2,
                               .exponent = 1,
                               .packing = packing,
                               .pairing = SES_PAIRS_RANDOM,
                               .negative_rate = 0.5,
                               .seq_len = 8 };
    ses_passages *r = ses_passages_new(&o, e);
    bool ok = r != NULL;
    for (int64_t i = 0; ok && i < ses_passages_count(r, 0, e); i++) {
        ses_passage p;
        ok = ses_passages_at(r, 0, i, &p, e);
    }
    ses_passages_free(r);
    return ok;
}

static bool run(void *ctx, ses_err *e)
{
    const job *j = ctx;
    const char *text =
        j->json ? "{\"text\": \"ab c\\nd e.\"}\n{\"text\": \"a\\nb\"}\n" : "ab c\nd e.\n\na b\nc\n\nd e\n";
    ses_corpus *c = corpus_of(j->f, "oom", text,
                              (ses_corpus_options){ .format = j->json ? SES_CORPUS_JSONL : SES_CORPUS_TEXT,
                                                    .newline_tokens = true,
                                                    .restart = true },
                              e);
    bool ok = c && ses_corpus_verify(c, e) && read_rows(c, j->packing, e);
    ses_corpus_free(c);
    return ok;
}

int main(void)
{
    corpus_fixture f = corpus_begin();
    for (int i = 0; i < 3; i++) {
        job j = { &f,
                  i == 0   ? SES_PACK_BLOCKS
                  : i == 1 ? SES_PACK_FULL_SENTENCES
                           : SES_PACK_SEGMENT_PAIR,
                  i == 2 };
        oom_sweep(i == 2 ? "json" : "text", run, &j);
    }
    corpus_end(&f);
    return check_report();
}
