/* Trainers of word vectors: tables, similar words of a text with known topics, the same bits for any number
 * of threads and after an interruption, refused settings and checkpoints. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "vectors/fasttext/fasttext_words.h"
#include "vectors/train/huffman_tree.h"
#include "vectors/train/sampling_table.h"
#include "vectors/train/subwords.h"
#include "vectors/train/vector_trainer.h"

#include <math.h>
#include <unistd.h>

enum { TOPICS = 4, TOPIC_WORDS = 12, MAX_NAMES = 24 };

static char folder[] = "/tmp/sesame-vectors-train-XXXXXX";
static char corpus[64], output[64], checkpoint[80];

/* Sentences of words of one topic, "t2w7", mixed with words of all. */
static void write_corpus(int sentences)
{
    ses_buf b = { 0 };
    uint64_t at = 0;
    ses_rng_key key = { 3, 0, 0 };
    for (int i = 0; i < sentences; i++) {
        uint32_t topic = ses_rand32(key, at++) % TOPICS;
        for (int k = 0; k < 12; k++) {
            uint32_t r = ses_rand32(key, at++);
            if (r % 5 == 0)
                ses_buf_appendf(&b, "all%u ", r / 8 % 6);
            else
                ses_buf_appendf(&b, "t%uw%u ", topic, r / 8 % TOPIC_WORDS);
        }
        ses_buf_put(&b, '\n');
    }
    CHECK(ses_file_write(corpus, b.data, b.len, true, NULL));
    ses_buf_free(&b);
}

static ses_device *device; /* NULL: on threads */
static double last_loss;

typedef struct watch {
    int calls, stop_at; /* stop at this call; 0: never */
} watch;

static bool stop_at(void *ctx, const ses_vector_report *r)
{
    watch *w = ctx;
    CHECK(r->words <= r->total || !r->total);
    if (r->total) w->calls++;
    return !w->stop_at || w->calls < w->stop_at;
}

/* Trains with settings "name=value ..."; the sum of the output, 0: failed. */
static uint64_t train(const char *model, const char *settings, int threads, bool resume, watch *w, ses_err *e)
{
    char text[256];
    const char *name[MAX_NAMES], *value[MAX_NAMES], *path = corpus;
    size_t n = 0, size;
    snprintf(text, sizeof text, "%s", settings);
    for (char *s = text; *s && n < MAX_NAMES; n++) { /* splits at '=' and at blanks */
        name[n] = s;
        s += strcspn(s, "=");
        *s++ = 0;
        value[n] = s;
        s += strcspn(s, " ");
        if (*s) *s++ = 0;
    }
    const ses_vector_trainer *t = ses_vector_trainer_find(model, e);
    ses_vector_job job = { .corpus = &path,
                           .n_corpus = 1,
                           .output = output,
                           .overwrite = true,
                           .threads = threads,
                           .device = device,
                           .resume = resume,
                           .progress = stop_at,
                           .ctx = w };
    if (!t || !ses_vector_job_set(&job, t, name, value, n, e)) return 0;
    bool ok = t->run(&job, e);
    CHECK(ok || e->code != SES_OK);
    if (!ok) return 0;
    CHECK(isfinite(job.loss) && job.loss > 0 && job.words == TOPICS * TOPIC_WORDS + 6);
    last_loss = job.loss;
    char *data = ses_file_read(output, 1 << 24, &size, e);
    uint64_t sum = ses_hash((ses_hash_key){ 1, 2 }, data, size) | 1;
    ses_free(data);
    return sum;
}

static const struct {
    const char *model, *settings;
} variant[] = {
    { "skipgram", "dim=20 epochs=20 sample=0" },
    { "skipgram", "dim=33 epochs=20 window=2 negative=13 shards=3" },
    { "skipgram", "dim=20 epochs=20 loss=hs sample=0" },
    { "skipgram", "dim=20 epochs=20 maxn=4 bucket=500 sample=0" },
    { "skipgram", "dim=20 epochs=20 maxn=3 minn=2 bucket=50 loss=hs sample=0" },
    { "cbow", "dim=20 epochs=40 sample=0" },
    { "cbow", "dim=7 epochs=40 loss=hs sample=0 seed=5" },
    { "cbow", "dim=20 epochs=40 maxn=5 bucket=500 sample=0" },
};

static double cosine(const float *a, const float *b, int dim)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < dim; i++)
        ab += (double)a[i] * (double)b[i], aa += (double)a[i] * (double)a[i],
            bb += (double)b[i] * (double)b[i];
    return ab / sqrt(aa * bb + 1e-30);
}

/* Share of the words whose nearest word has the same topic. */
static double topic_score(void)
{
    float x[TOPICS * TOPIC_WORDS][64];
    int topic[TOPICS * TOPIC_WORDS], n = 0, right = 0, dim, words;
    char word[32];
    FILE *f = fopen(output, "r");
    if (!f || fscanf(f, "%d %d", &words, &dim) != 2 || dim > 64) return 0;
    while (fscanf(f, "%31s", word) == 1) {
        float row[64];
        for (int i = 0; i < dim; i++)
            if (fscanf(f, "%f", &row[i]) != 1) return 0;
        if (word[0] != 't' || n == TOPICS * TOPIC_WORDS) continue;
        topic[n] = word[1];
        memcpy(x[n++], row, sizeof row);
    }
    fclose(f);
    for (int i = 0; i < n; i++) {
        int best = -1;
        for (int j = 0; j < n; j++)
            if (j != i && (best < 0 || cosine(x[i], x[j], dim) > cosine(x[i], x[best], dim))) best = j;
        right += best >= 0 && topic[best] == topic[i];
    }
    return (double)right / n;
}

static void variants(void)
{
    for (size_t i = 0; i < SES_LEN(variant); i++) {
        ses_err e = { 0 };
        watch w = { 0 };
        uint64_t one = train(variant[i].model, variant[i].settings, 1, false, &w, &e);
        CHECK_MSG(one, "%s %s: %s", variant[i].model, variant[i].settings, e.msg);
        double score = topic_score();
        CHECK_MSG(score > 0.9, "%s %s: %g", variant[i].model, variant[i].settings, score);
        CHECK(train(variant[i].model, variant[i].settings, 2, false, &w, &e) == one);
        CHECK(train(variant[i].model, variant[i].settings, 8, false, &w, &e) == one);
        for (int at = 1; at <= 4; at += 3) { /* stop, then stop again, then finish with other threads */
            w = (watch){ .stop_at = at };
            CHECK(!train(variant[i].model, variant[i].settings, 2, false, &w, &e) &&
                  ses_path_exists(checkpoint));
            e = (ses_err){ 0 };
            w = (watch){ .stop_at = 2 };
            CHECK(!train(variant[i].model, variant[i].settings, 1, true, &w, &e));
            e = (ses_err){ 0 };
            w = (watch){ 0 };
            CHECK_MSG(train(variant[i].model, variant[i].settings, 3, true, &w, &e) == one, "%s", e.msg);
            CHECK(!ses_path_exists(checkpoint));
        }
    }
    ses_err e = { 0 };
    watch w = { 0 };
    CHECK(train("skipgram", "dim=20 seed=1", 1, false, &w, &e) !=
          train("skipgram", "dim=20 seed=2", 1, false, &w, &e));
}

/* The trainer of GPUs with the reference kernel. Without a learning rate it computes the losses of the same
 * pairs as threads. */
static void on_device(void)
{
    static const char *const text[] = { "dim=20 lr=0 epochs=1", "dim=9 lr=0 epochs=2 loss=hs window=9",
                                        "dim=20 lr=0 epochs=1 sample=0.01 shards=5 negative=20" };
    ses_err e = { 0 };
    watch w = { 0 };
    ses_device *cpu = ses_device_open("cpu", NULL, &e);
    for (size_t i = 0; i < 2 * SES_LEN(text); i++) {
        const char *model = i % 2 ? "cbow" : "skipgram";
        device = NULL;
        CHECK(train(model, text[i / 2], 1, false, &w, &e));
        double loss = last_loss;
        device = cpu;
        CHECK(train(model, text[i / 2], 1, false, &w, &e));
        CHECK_MSG(fabs(loss - last_loss) < 1e-6 * loss, "%s %s: loss %.9g, on threads %.9g", model,
                  text[i / 2], last_loss, loss);
    }
    for (size_t i = 0; i < SES_LEN(variant); i++) {
        const char *model = variant[i].model, *settings = variant[i].settings;
        e = (ses_err){ 0 }, w = (watch){ 0 };
        uint64_t one = train(model, settings, 1, false, &w, &e);
        if (strstr(settings, "maxn")) {
            CHECK(!one && strstr(e.msg, "--maxn: subwords are trained on a CPU only"));
            continue;
        }
        double score = topic_score();
        CHECK_MSG(one && score > 0.9, "%s %s: %g %s", model, settings, score, e.msg);
        w = (watch){ .stop_at = 3 };
        CHECK(!train(model, settings, 1, false, &w, &e) && ses_path_exists(checkpoint));
        e = (ses_err){ 0 }, w = (watch){ 0 }, device = NULL;
        CHECK(!train(model, settings, 1, true, &w, &e) && strstr(e.msg, "another processor"));
        e = (ses_err){ 0 }, device = cpu;
        CHECK_MSG(train(model, settings, 1, true, &w, &e) == one, "%s %s: %s", model, settings, e.msg);
    }
    e = (ses_err){ 0 };
    CHECK(!train("skipgram", "lr=100", 1, false, &w, &e) && strstr(e.msg, "diverged"));
    device = NULL;
    ses_device_free(cpu);
}

static void refusals(void)
{
    static const struct {
        const char *model, *settings, *message;
    } bad[] = {
        { "glov", "", "unknown; expected one of skipgram, cbow" },
        { "cbow", "dim=0", "--dim 0: expected a number from 1 to 65536" },
        { "cbow", "dim=x", "expected an integer" },
        { "cbow", "loss=softmax", "expected one of ns|hs" },
        { "cbow", "alpha=1", "--alpha is not an option of --model cbow" },
        { "cbow", "minn=5 maxn=3", "--minn 5 is larger than --maxn 3" },
        { "cbow", "min-count=1000000", "occurs at least 1000000 times" },
        { "cbow", "max-vocab=1", "a vocabulary of one word" },
        { "skipgram", "lr=100", "diverged" },
    };
    watch w = { 0 };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        CHECK(!train(bad[i].model, bad[i].settings, 2, false, &w, &e));
        CHECK_MSG(strstr(e.msg, bad[i].message), "%s", e.msg);
    }
    ses_err e = { 0 };
    CHECK(!train("cbow", "dim=20", 1, true, &w, &e) && strstr(e.msg, "nothing to resume"));
    ses_err_clear(&e);
    w.stop_at = 1;
    CHECK(!train("cbow", "dim=20", 1, false, &w, &e));
    w.stop_at = 0;
    ses_err_clear(&e);
    CHECK(!train("cbow", "dim=21", 1, true, &w, &e) && strstr(e.msg, "other settings"));
    ses_err_clear(&e);
    CHECK(ses_file_write(checkpoint, "not a checkpoint", 16, true, NULL));
    CHECK(!train("cbow", "dim=20", 1, true, &w, &e) && e.code == SES_EFORMAT);
    unlink(checkpoint);
}

static void tables(void)
{
    static const char *const word[] = { "a", "bc",
                                        "d\xc3\xa9"
                                        "f",
                                        "ghij", "</s>" };
    static const int64_t count[] = { 50, 20, 16, 9, 1 };
    ses_word_vocab v = { 0 };
    ses_fasttext_dictionary d = { 0 };
    ses_err e = { 0 };
    for (size_t i = 0; i < SES_LEN(word); i++)
        for (int64_t k = 0; k < count[i]; k++) ses_word_vocab_count(&v, word[i], strlen(word[i]), &e);
    ses_huffman_tree t = { 0 };
    CHECK(ses_huffman_tree_build(&t, &v, &e));
    static const int64_t length[] = { 1, 2, 3, 4, 4 };
    double kraft = 0;
    for (int i = 0; i < 5; i++) {
        CHECK(t.start[i + 1] - t.start[i] == length[i] &&
              t.node[t.start[i]] >> 1 == 3); /* the root is the last */
        kraft += pow(0.5, (double)(t.start[i + 1] - t.start[i]));
    }
    CHECK(fabs(kraft - 1) < 1e-12 && t.node[t.start[3] + 3] == (t.node[t.start[4] + 3] ^ 1));
    ses_huffman_tree_free(&t);

    ses_sampling_cell *cell = ses_sampling_table(&v, 0.75, &e);
    double drawn[5] = { 0 }, total = 0;
    enum { DRAWS = 200000 };
    for (uint64_t i = 0; i < DRAWS; i++)
        drawn[ses_sampling_draw(cell, v.n, ses_rand32((ses_rng_key){ 1, 2, 3 }, i))]++;
    for (int i = 0; i < 5; i++) total += pow((double)count[i], 0.75);
    for (int i = 0; i < 5; i++) CHECK(fabs(drawn[i] / DRAWS - pow((double)count[i], 0.75) / total) < 0.005);
    ses_free(cell);

    ses_subwords s = { 0 }; /* the rows of fastText's dictionary, which test_vectors_exact verifies */
    ses_buf b = { 0 };
    for (size_t i = 0; i < SES_LEN(word) - 1; i++)
        for (int64_t k = 0; k < count[i]; k++) ses_buf_appendf(&b, "%s ", word[i]);
    CHECK(ses_fasttext_count(&d, ses_fasttext_reader_of(b.data, b.len), &e) &&
          ses_fasttext_drop_rare(&d, 1, 0, &e) && ses_fasttext_add_ngrams(&d, 2, 4, 100, &e));
    CHECK(ses_subwords_build(&s, &v, 2, 4, 100, &e));
    for (size_t i = 0; i + 1 < SES_LEN(word); i++) {
        size_t n = s.start[i + 1] - s.start[i];
        CHECK(n == d.word[i].n_rows);
        for (size_t k = 1; k < n && k < d.word[i].n_rows; k++)
            CHECK(s.row[s.start[i] + k] - (int32_t)v.n ==
                  d.rows.row[d.word[i].first_row + k] - (int32_t)d.n_words);
    }
    ses_subwords_free(&s);
    ses_fasttext_dictionary_free(&d);
    ses_buf_free(&b);
    ses_word_vocab_free(&v);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    snprintf(corpus, sizeof corpus, "%s/corpus", folder);
    snprintf(output, sizeof output, "%s/out", folder);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", output);
    write_corpus(700);
    tables();
    variants();
    on_device();
    refusals();
    unlink(corpus);
    unlink(output);
    rmdir(folder);
    return check_report();
}
