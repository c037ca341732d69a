/* Every objective with a small model, for tests of whole runs and of gradients. */
#ifndef TESTS_OBJECTIVE_RUNS_H
#define TESTS_OBJECTIVE_RUNS_H

#include "objective_fixture.h"

typedef struct run_case {
    const char *objectives, *config;
    bool two;     /* passages of two segments */
    double to;    /* final loss at most this fraction of the first */
    double first; /* first loss below this; log(500) is 6.21; 0: any */
    const char *noise;
    double weight; /* replaced_weight; 0: 1 */
    int tying;     /* 1 + a ses_generator_tying; 0: default */
} run_case;

#define BERT_LIKE(type, more)                                                                             \
    "{\"model_type\": \"" type "\", \"vocab_size\": 500, \"hidden_size\": 16, \"num_hidden_layers\": 2, " \
    "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 80, "            \
    "\"type_vocab_size\": 2, \"initializer_range\": 0.1, \"embedding_size\": 12, " more                   \
    "\"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1}"

static const run_case run_cases[] = {
    { .objectives = "mlm", .config = BERT_LIKE("bert", ""), .to = 0.85 },
    { .objectives = "mlm:1,nsp:1", .config = BERT_LIKE("bert", ""), .two = true, .to = 0.85 },
    { .objectives = "nsp", .config = BERT_LIKE("bert", ""), .two = true, .to = 1.05 },
    { .objectives = "mlm:1,sop:0.5",
      .config = BERT_LIKE("albert", "\"inner_group_num\": 1, "),
      .two = true,
      .to = 0.85 },
    { .objectives = "mlm:1,sbo:1", .config = BERT_LIKE("bert", "\"span_boundary_size\": 8, "), .to = 0.85 },
    { .objectives = "rtd", .config = BERT_LIKE("electra", ""), .to = 0.9 },
    { .objectives = "rtd15", .config = BERT_LIKE("electra", ""), .to = 0.9 },
    { .objectives = "replace", .config = BERT_LIKE("electra", ""), .to = 0.9 },
    { .objectives = "alltok", .config = BERT_LIKE("electra", ""), .to = 0.9 },
    { .objectives = "alltok-nocopy", .config = BERT_LIKE("electra", ""), .to = 0.85 },
    { .objectives = "rtd", .config = BERT_LIKE("electra", ""), .to = 0.9, .tying = 1 + SES_TIE_NONE },
    { .objectives = "rtd", .config = BERT_LIKE("electra", ""), .to = 0.9, .tying = 1 + SES_TIE_ALL },
    { .objectives = "alltok", .config = BERT_LIKE("electra", ""), .to = 0.9, .tying = 1 + SES_TIE_ALL },
    { .objectives = "alltok", .config = BERT_LIKE("bert", ""), .to = 0.9, .tying = 1 + SES_TIE_NONE },
    { .objectives = "clm", .config = FIXTURE_GPT, .to = 0.85 },
    { .objectives = "clm", .config = BERT_LIKE("bert", ""), .to = 0.85 },
    { .objectives = "tlm", .config = BERT_LIKE("bert", ""), .two = true, .to = 0.85 },
    { .objectives = "prefix", .config = FIXTURE_GPT, .to = 0.85 },
    { .objectives = "prefix", .config = FIXTURE_T5, .to = 0.85 },
    { .objectives = "clm:1,mntp:1", .config = FIXTURE_GPT, .to = 0.85 },
    { .objectives = "mntp:1", .config = FIXTURE_GPT, .to = 0.85 },
    { .objectives = "xl", .config = FIXTURE_XL, .to = 0.85 },
    { .objectives = "plm", .config = FIXTURE_XLNET, .to = 0.85 },
    { .objectives = "t5", .config = FIXTURE_T5, .to = 0.85, .first = 7.5 },
    { .objectives = "t5:2,t2t:1", .config = FIXTURE_T5, .two = true, .to = 0.85 },
    { .objectives = "bart", .config = FIXTURE_BART, .to = 0.85, .first = 7.5 },
    { .objectives = "bart",
      .config = FIXTURE_BART,
      .to = 0.85,
      .noise = "mask,delete,infill,permute,rotate" },
    { .objectives = "mass", .config = FIXTURE_MASS, .to = 0.85 },
};

/* Learnable text: a token determines the next. */
static inline ses_passage easy_passage(text *t, uint64_t number, int64_t n, bool two)
{
    ses_passage p = fixture_passage(t, number, n, two);
    for (int64_t i = 0; i < n; i++) t->id[i] = FIRST_WORD + (int32_t)((number * 7 + (uint64_t)i) % 12);
    p.is_negative = number % 2;
    for (int64_t i = p.split; p.is_negative && i < n; i++) t->id[i] = FIRST_WORD + 12 + t->id[i] % 12;
    return p;
}

/* Model, generator, objective mix, and batches of passages. */
typedef struct objective_run {
    const run_case *c;
    ses_json_doc *config, *small;
    ses_special_tokens x;
    ses_objective_mix *mix;
    ses_device *dev;
    ses_model *model, *generator;
    int64_t seqs, length;
    text t;
} objective_run;

static inline bool run_batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    objective_run *r = ctx;
    uint64_t first = (uint64_t)(epoch * 1000 + index) * (uint64_t)r->seqs;
    ses_objective_mix_begin_batch(r->mix, ses_objective_mix_choose(r->mix, (uint64_t)index),
                                  (double)index / 100);
    for (int64_t i = 0; i < r->seqs; i++) {
        int64_t fits = ses_objective_mix_max_passage(r->mix);
        ses_passage p = easy_passage(&r->t, first + (uint64_t)i, fits - i % 3, r->c->two);
        if (!ses_objective_mix_add_passage(r->mix, &p, e)) return false;
    }
    return ses_objective_mix_end_batch(r->mix, out, e);
}

static inline int64_t run_count(void *ctx, int64_t epoch)
{
    (void)ctx, (void)epoch;
    return 1000;
}

static inline void run_close(objective_run *r)
{
    ses_model_free(r->model);
    ses_model_free(r->generator);
    ses_objective_mix_free(r->mix);
    ses_device_free(r->dev);
    ses_json_free(r->small);
    ses_json_free(r->config);
}

/* pieces: of recurrent objectives. */
static inline bool run_open(objective_run *r, const run_case *c, int threads, int64_t pieces, ses_err *e)
{
    *r = (objective_run){ .c = c, .x = fixture_lexicon(), .seqs = 4, .length = 32 };
    ses_objective_options o = ses_objective_defaults;
    o.noise = c->noise;
    o.pieces = pieces;
    o.replaced_weight = c->weight > 0 ? c->weight : 5;
    o.generator_tying = c->tying - 1;
    r->dev = ses_device_open("cpu", &(ses_device_options){ .threads = threads }, e);
    r->config = r->dev ? ses_json_parse(c->config, strlen(c->config), e) : NULL;
    if (!r->config) return false;
    ses_objective_mix_options options = {
        .objectives = c->objectives, .o = o, .special_tokens = &r->x, .length = r->length, .seed = 5
    };
    r->mix = ses_objective_mix_new(&options, ses_json_root(r->config), e);
    const char *class_name = r->mix ? ses_objective_mix_class(r->mix, ses_json_root(r->config), e) : NULL;
    if (!class_name) return false;
    ses_model_options m = { .class_name = class_name, .train = true, .random_init = true, .seed = 1 };
    r->model = ses_model_new(ses_json_root(r->config), r->dev, &m, e);
    if (r->model && (ses_objective_mix_needs(r->mix) & SES_NEEDS_GENERATOR)) {
        double fraction = c->tying == 1 + SES_TIE_ALL ? 1 : 0.5;
        r->small = ses_generator_config(ses_json_root(r->config), fraction, e);
        m.class_name = r->small ? ses_model_class_for_head(ses_json_root(r->small), "masked-lm", e) : NULL;
        m.seed = 2;
        if (m.class_name) r->generator = ses_model_new(ses_json_root(r->small), r->dev, &m, e);
        if (!r->generator) return false;
    }
    return r->model && ses_objective_mix_set_models(r->mix, r->model, r->generator, e);
}

#endif
