/* bilstm: a bidirectional LSTM over word vectors, maximum over the tokens, all weights trained. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sesame/vectors.h"
#include "vectors/word_tokenizer.h"

static bool write_tokenizer(const char *vectors, const char *path, ses_err *e)
{
    int64_t skipped;
    ses_vectors *v = ses_vectors_open(vectors, e);
    bool ok = v && ses_vectors_read_words(v, 0, e) && ses_word_tokenizer_write(v, path, true, &skipped, e);
    ses_vectors_free(v);
    return ok;
}

static bool train(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                  const char *vectors, ses_err *e)
{
    char *tokenizer = ses_path_join(l->root, "words.json", e);
    bool ok = tokenizer && write_tokenizer(vectors, tokenizer, e);
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    (void)r;
    o.config = "bilstm";
    o.tokenizer = tokenizer;
    o.vectors = vectors;
    o.run.epochs = 8;
    o.run.lr = 1e-3;
    ok = ok && ses_ladder_finetune(l, o, dir, e);
    if (tokenizer) ses_file_remove(tokenizer, NULL);
    ses_free(tokenizer);
    return ok;
}

static bool run(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed, ses_err *e)
{
    return ses_ladder_with_vectors(l, r, dir, seed, train, e);
}

const ses_ladder_method ses_ladder_method_bilstm = { .name = "bilstm",
                                                     .summary = "bidirectional LSTM over word vectors",
                                                     .seeded = true,
                                                     .check = ses_ladder_check_vectors,
                                                     .run = run };
