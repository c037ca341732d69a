/* The list of methods, and the ones that need a few lines only. */
#include "ladder.h"

static bool run_classifier(ses_ladder *l, const ses_ladder_method *m, const char *dir, int64_t seed,
                           ses_err *e)
{
    return ses_ladder_run_classifier(l, m, dir, seed, NULL, e);
}

#define SES_LADDER_CLASSIFIER(id, name_, classifier_, ngrams_, seeded_, summary_) \
    const ses_ladder_method ses_ladder_method_##id = { .name = name_,             \
                                                       .summary = summary_,       \
                                                       .seeded = seeded_,         \
                                                       .run = run_classifier,     \
                                                       .classifier = classifier_, \
                                                       .ngrams = ngrams_ };
#define SES_LADDER_METHOD(id)
#include "ladder_methods.def"
#undef SES_LADDER_METHOD
#undef SES_LADDER_CLASSIFIER

const ses_ladder_method *ses_ladder_method_at(size_t i)
{
    static const ses_ladder_method *const list[] = {
#define SES_LADDER_METHOD(id) &ses_ladder_method_##id,
#define SES_LADDER_CLASSIFIER(id, ...) &ses_ladder_method_##id,
#include "ladder_methods.def"
#undef SES_LADDER_METHOD
#undef SES_LADDER_CLASSIFIER
    };
    return i < SES_LEN(list) ? list[i] : NULL;
}

static bool run_vectors(ses_ladder *l, const ses_ladder_method *m, const char *dir, int64_t seed, ses_err *e)
{
    return ses_ladder_with_vectors(l, m, dir, seed, ses_ladder_run_classifier, e);
}

const ses_ladder_method ses_ladder_method_vectors = { .name = "vectors",
                                                      .summary = "mean of word vectors, logistic regression",
                                                      .seeded = true,
                                                      .classifier = "cbow",
                                                      .check = ses_ladder_check_vectors,
                                                      .run = run_vectors };

/* An LSTM language model, or a sequence autoencoder, of the training texts, whose weights start an LSTM
 * classifier (Dai and Le 2015). */
static bool run_lm(ses_ladder *l, const ses_ladder_method *m, const char *dir, int64_t seed, ses_err *e)
{
    return ses_ladder_run_lstm(l, dir, seed, m == &ses_ladder_method_lm_lstm ? "causal" : "autoencoder", e);
}

const ses_ladder_method ses_ladder_method_lm_lstm = {
    .name = "lm-lstm", .summary = "LSTM, started as a language model", .seeded = true, .run = run_lm
};
const ses_ladder_method ses_ladder_method_sa_lstm = {
    .name = "sa-lstm", .summary = "LSTM, started as a sequence autoencoder", .seeded = true, .run = run_lm
};

static bool run_model(ses_ladder *l, const ses_ladder_method *m, const char *dir, int64_t seed, ses_err *e)
{
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    (void)m;
    o.model = l->a->model;
    o.run.epochs = l->a->epochs;
    o.run.lr = l->a->lr;
    return ses_ladder_finetune(l, o, dir, e);
}

const ses_ladder_method ses_ladder_method_finetuned = { .name = "finetuned",
                                                        .summary = "the model, fine-tuned",
                                                        .seeded = true,
                                                        .check = ses_ladder_check_model,
                                                        .run = run_model };
