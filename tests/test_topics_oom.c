/* Topic models, Brown clusters and their files with every allocation failing in turn. */
#include "oom.h"

#include "vectors/cluster/brown.h"
#include "vectors/topic/topic_model.h"

static const ses_string texts[] = { { "red green blue red", 18 },
                                    { "red blue dog cat", 16 },
                                    { "dog cat bird dog", 16 } };

static ses_topic_settings settings(ses_topic_method method)
{
    return (ses_topic_settings){
        .method = method,
        .terms = { .split = SES_WORDS_RUNS, .stop_words = true, .min_texts = 1, .max_share = 1 },
        .passes = 1,
        .lda = { .topics = 2, .chunk = 2, .iterations = 3, .decay = 0.5, .offset = 1, .threshold = 0.001 },
        .lsa = { .topics = 2, .oversampling = 1, .rounds = 2, .tolerance = 0 },
    };
}

static bool train(void *ctx, ses_err *e)
{
    ses_topic_model m = { 0 };
    ses_topic_settings s = settings(*(ses_topic_method *)ctx);
    bool stopped;
    double y[6], perplexity;
    bool ok = ses_topic_train(&m, &s, texts, 3, NULL, 1, NULL, NULL, &stopped, e) &&
              ses_topic_infer(&m, texts, 3, y, &perplexity, &(size_t){ 0 }, e);
    ses_topic_model_free(&m);
    return ok;
}

static bool cluster(void *ctx, ses_err *e)
{
    ses_brown_words w = { 0 };
    ses_brown b = { 0 };
    ses_brown_options o = { .min_count = 1 };
    ses_thread_pool *pool = ses_thread_pool_new(1, e);
    bool ok = pool && ses_brown_words_read(&w, ctx, &o, e) && ses_brown_fit(&b, &w, 2, &o, pool, e);
    ses_brown_free(&b);
    ses_brown_words_free(&w);
    ses_thread_pool_free(pool);
    return ok;
}

int main(void)
{
    ses_topic_method lda = SES_TOPICS_LDA, lsa = SES_TOPICS_LSA;
    char text[] = "tests/fuzz/corpus/fuzz_conllu/short";
    oom_sweep("LDA", train, &lda);
    oom_sweep("LSA", train, &lsa);
    oom_sweep("clusters", cluster, text);
    return check_report();
}
