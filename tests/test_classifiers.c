/* Classifiers that read texts: probabilities of scikit-learn (fixtures/classifiers.f64, made by
 * classifiers.py), the same bits on any number of threads and after saving, words, damaged folders, refused
 * settings and data. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/file.h"
#include "check.h"
#include "vectors/classify/bag.h"
#include "vectors/classify/classifier.h"

#include <math.h>
#include <unistd.h>

enum { TRAIN = 60, TEST = 7, ALL = TRAIN + TEST, MAX_TEXT = 200 };

static uint64_t state;
static size_t below(size_t n)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (size_t)((z ^ z >> 31) % n);
}

static char buffer[ALL][MAX_TEXT];
static ses_string text[ALL];
static int32_t label[ALL];

/* The texts of classifiers.py. */
static void draw_texts(size_t classes)
{
    static const char *const word[] = { "Good",   "bad",   "FILM",     "the",       "a",           "was,",
                                        "it",     "isn't", "not.",     "plot!",     "\xc3\x89lan", "x2",
                                        "(dull)", "cast",  "'quoted'", "end-to-end" };
    state = 1000 + classes;
    for (size_t i = 0; i < ALL; i++) {
        size_t n = 0, y = i % classes, words;
        char one[32][20];
        /* the number of words is drawn before the words */
        words = 1 + below(12);
        for (size_t k = 0; k < words; k++)
            snprintf(one[k], sizeof one[k], "%s", word[below(3) == 0 ? y : below(SES_LEN(word))]);
        for (size_t k = 0; k < words; k++)
            n += (size_t)snprintf(buffer[i] + n, MAX_TEXT - n, "%s%s", k ? " " : "", one[k]);
        text[i] = (ses_string){ buffer[i], n };
        label[i] = (int32_t)y;
    }
}

static ses_classifier_job job_of(size_t classes, ses_classifier_settings s)
{
    return (
        ses_classifier_job){ .text = text, .label = label, .n = TRAIN, .n_labels = classes, .settings = s };
}

static ses_classifier *train(const char *method, size_t classes, ses_classifier_settings s,
                             ses_thread_pool *pool)
{
    ses_err e = { 0 };
    ses_classifier_job job = job_of(classes, s);
    job.pool = pool;
    const ses_classifier_kind *k = ses_classifier_find(method, &e);
    ses_classifier *c = k ? ses_classifier_train(k, &job, &e) : NULL;
    CHECK_MSG(c, "%s: %s", method, e.msg);
    return c;
}

static void predict(const ses_classifier *c, double *out)
{
    ses_err e = { 0 };
    CHECK_MSG(ses_classifier_run(c, text + TRAIN, TEST, NULL, out, &e), "%s", e.msg);
}

/* ---- scikit-learn ---- */

static const struct {
    const char *method;
    ses_classifier_settings settings;
    double tolerance;
} cases[] = {
    { "nb", { 0 }, 1e-10 },          { "nb", { .counts = SES_COUNT_ALL, .alpha = 0.5 }, 1e-10 },
    { "nb-svm", { 0 }, 1e-4 },       { "nb-svm", { .beta = 1 }, 1e-4 },
    { "logreg", { .c = 10 }, 1e-4 },
};

static void against_scikit_learn(void)
{
    static double want[4000];
    FILE *f = fopen("tests/fixtures/classifiers.f64", "rb");
    if (!CHECK(f)) return;
    size_t have = fread(want, sizeof *want, SES_LEN(want), f), at = 0;
    fclose(f);
    for (size_t classes = 2; classes <= 3; classes++) {
        draw_texts(classes);
        for (int64_t n = 1; n <= 2; n++)
            for (size_t i = 0; i < SES_LEN(cases); i++) {
                ses_classifier_settings s = cases[i].settings;
                double got[TEST * 3], worst = 0;
                s.ngrams = n;
                ses_classifier *c = train(cases[i].method, classes, s, NULL);
                if (!c) return;
                predict(c, got);
                for (size_t k = 0; k < TEST * classes && at < have; k++, at++)
                    worst = fmax(worst, fabs(got[k] - want[at]));
                CHECK_MSG(worst <= cases[i].tolerance,
                          "%s (case %zu), %zu classes, n-grams %d: differs by %g", cases[i].method, i,
                          classes, (int)n, worst);
                ses_classifier_free(c);
            }
    }
    CHECK(at == have);
}

static void the_majority(void)
{
    double p[TEST * 2];
    draw_texts(2);
    for (size_t i = 0; i < 15; i++) label[2 * i] = 1; /* 15 of 60 texts stay in class 0 */
    ses_classifier *c = train("majority", 2, (ses_classifier_settings){ 0 }, NULL);
    if (!c) return;
    predict(c, p);
    for (size_t i = 0; i < TEST; i++)
        CHECK(fabs(p[2 * i] - log(16.0 / 62)) < 1e-15 && fabs(p[2 * i + 1] - log(46.0 / 62)) < 1e-15);
    ses_classifier_free(c);
}

/* ---- bits ---- */

static void same_bits_on_threads(void)
{
    ses_err e = { 0 };
    ses_thread_pool *two = ses_thread_pool_new(2, &e), *eight = ses_thread_pool_new(8, &e);
    if (!CHECK(two && eight)) return;
    draw_texts(3);
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        double p[3][TEST * 3];
        ses_thread_pool *pool[] = { NULL, two, eight };
        for (size_t k = 0; k < 3; k++) {
            ses_classifier *c = train(cases[i].method, 3, cases[i].settings, pool[k]);
            if (c) predict(c, p[k]);
            ses_classifier_free(c);
        }
        CHECK(!memcmp(p[0], p[1], sizeof p[0]) && !memcmp(p[0], p[2], sizeof p[0]));
    }
    ses_thread_pool_free(two);
    ses_thread_pool_free(eight);
}

static const char *const names[] = { "no", "yes", "per\"haps" };

static void write_vectors(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!CHECK(f)) return;
    fputs("good 1 0 0.5\nbad -1 0 0.25\nfilm 0 1 -0.5\nthe 0.1 0.1 0.1\nfilm 9 9 9\n",
          f); /* the first film counts */
    fclose(f);
}

static ses_classifier *reopen(const char *dir, ses_err *e)
{
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", dir);
    ses_json_doc *d = ses_json_load(path, 1 << 20, e);
    ses_classifier *c = d ? ses_classifier_open(dir, ses_json_root(d), e) : NULL;
    ses_json_free(d);
    return c;
}

static void remove_files(const char *dir)
{
    static const char *const files[] = { "config.json", "model.safetensors", "vocab.txt", "words.txt" };
    char path[300];
    for (size_t i = 0; i < SES_LEN(files); i++)
        snprintf(path, sizeof path, "%s/%s", dir, files[i]), unlink(path);
}

/* A file of the folder is truncated to every length: the folder must not open. */
static void truncate_file(const char *dir, const char *name)
{
    char path[300];
    size_t n;
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *whole = ses_file_read(path, 1 << 24, &n, &e);
    if (!whole) return; /* the method has no such file */
    for (size_t k = 0; k < n; k += n < 800 ? 1 : n / 300) {
        ses_err why = { 0 };
        CHECK(ses_file_write(path, whole, k, true, &e));
        ses_classifier *c = reopen(dir, &why);
        CHECK_MSG(!c && why.code == SES_EFORMAT && strstr(why.msg, dir), "%s, %zu of %zu bytes: %s", name, k,
                  n, why.msg);
        ses_classifier_free(c);
    }
    CHECK(ses_file_write(path, whole, n, true, &e));
    free(whole);
}

static void save_and_open(const char *method, const char *dir, const char *vectors)
{
    double before[TEST * 3], after[TEST * 3];
    ses_err e = { 0 };
    ses_classifier *c = train(method, 3, (ses_classifier_settings){ .vectors = vectors }, NULL);
    if (!c) return;
    predict(c, before);
    CHECK_MSG(ses_classifier_save(c, dir, names, &e), "%s", e.msg);
    ses_classifier_free(c);
    c = reopen(dir, &e);
    if (CHECK_MSG(c, "%s: %s", method, e.msg)) {
        predict(c, after);
        CHECK(!memcmp(before, after, sizeof before));
    }
    ses_classifier_free(c);
    truncate_file(dir, "model.safetensors");
    truncate_file(dir, "vocab.txt");
    truncate_file(dir, "words.txt");
    remove_files(dir);
}

/* ---- damaged folders ---- */

static void refuse_config(const char *dir, const char *config, const char *message)
{
    char path[300];
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/config.json", dir);
    CHECK(ses_file_write(path, config, strlen(config), true, &e));
    ses_classifier *c = reopen(dir, &e);
    CHECK_MSG(!c && strstr(e.msg, message), "%s: %s", config, e.msg);
    ses_classifier_free(c);
    remove_files(dir);
}

static void damaged_configs(const char *dir)
{
#define HEAD "{\"model_type\":\"sesame_classifier\",\"method\":"
#define LABELS "\"id2label\":{\"0\":\"a\",\"1\":\"b\"}"
    refuse_config(dir, HEAD "\"nb\",\"format\":2," LABELS "}",
                  "format 2 of the classifier; this version reads format 1");
    refuse_config(dir, HEAD "\"nb\"," LABELS "}", "format 0");
    refuse_config(dir, HEAD "\"svm\",\"format\":1," LABELS "}",
                  "unknown method \"svm\"; choose one of majority, nb");
    refuse_config(dir, HEAD "7,\"format\":1," LABELS "}", "the method is missing");
    refuse_config(dir, HEAD "\"nb\",\"format\":1}", "id2label has 0 labels");
    refuse_config(dir, HEAD "\"majority\",\"format\":1," LABELS ",\"classifier\":{\"counts\":[1]}}",
                  "expected a number of texts per label");
    refuse_config(dir, HEAD "\"nb\",\"format\":1," LABELS ",\"classifier\":{\"words\":\"all\"}}",
                  "words: expected one of blank|text");
    refuse_config(
        dir,
        HEAD
        "\"nb\",\"format\":1," LABELS
        ",\"classifier\":{\"words\":\"text\",\"features\":\"count\",\"link\":\"softmax\",\"ngrams\":99}}",
        "ngrams: expected an integer from 1 to 16");
}

/* ---- words ---- */

static void check_words(const char *s, ses_words_rule rule, const char *want)
{
    ses_words w = { 0 };
    ses_err e = { 0 };
    CHECK(ses_words_split(&w, (ses_string){ s, strlen(s) }, rule, &e));
    CHECK_STR(w.text.data ? w.text.data : "", want);
    ses_words_free(&w);
}

static void words(void)
{
    check_words("Don't STOP, it's 5 o'clock!", SES_WORDS_TEXT, "don't stop , it's 5 o'clock !");
    check_words("'quoted' dogs' rock''n", SES_WORDS_TEXT, "' quoted ' dogs ' rock ' ' n");
    check_words("  na\xc3\x8fve\tcaf\xc3\x89\n\xe2\x80\x9cx\xe2\x80\x9d ", SES_WORDS_TEXT,
                "na\xc3\xafve caf\xc3\xa9 \xe2\x80\x9c x \xe2\x80\x9d");
    check_words(" Don't  STOP, now\n", SES_WORDS_BLANK, "Don't STOP, now");
    check_words("bad \xff\xfe byte", SES_WORDS_TEXT, "bad \xff \xfe byte");
    check_words("a\xff\xe4z x", SES_WORDS_BLANK, "a\xff\xe4z x");
    check_words("ab\xe4\xb8\xad\xe6\x96\x87z 1990's", SES_WORDS_TEXT,
                "ab \xe4\xb8\xad \xe6\x96\x87 z 1990's");
    check_words("Don't ab\xe4\xb8\xad, x_1\xff!", SES_WORDS_RUNS, "don t ab\xe4\xb8\xad x_1");
    check_words("...", SES_WORDS_RUNS, "");
    check_words("", SES_WORDS_TEXT, "");
    check_words(" \t\n", SES_WORDS_BLANK, "");
}

static void features(void)
{
    static const ses_string two[] = { { "a b a b", 7 }, { "b c", 3 } };
    ses_bag_vocab v = { .rule = SES_WORDS_TEXT, .ngrams = 2 };
    ses_bags b;
    ses_err e = { 0 };
    CHECK(ses_bags_build(&v, two, 2, 1, &b, &e));
    CHECK(ses_bag_vocab_size(&v) == 6); /* a, a b, b, b a, b c, c */
    CHECK(b.begin[1] == 4 && b.begin[2] == 7 && b.count[0] == 2 && b.count[1] == 2);
    ses_bags_free(&b);
    ses_bag_vocab_free(&v);
    v = (ses_bag_vocab){ .rule = SES_WORDS_TEXT, .ngrams = 2 };
    CHECK(ses_bags_build(&v, two, 2, 2, &b, &e));
    CHECK(ses_bag_vocab_size(&v) == 3 && b.begin[1] == 3 && b.begin[2] == 4); /* a, a b, b */
    CHECK(v.index.entry[1].len == 3 && !memcmp(v.index.entry[1].key, "a b", 3));
    ses_bags_free(&b);
    ses_bag_vocab_free(&v);
    v = (ses_bag_vocab){ .rule = SES_WORDS_TEXT, .ngrams = 1 };
    CHECK(!ses_bags_build(&v, two, 2, 100, &b, &e) && strstr(e.msg, "lower --min-count"));
    ses_bag_vocab_free(&v);
}

/* Words at which a reader of lines may stumble come back unchanged; others are refused. */
static void odd_words(const char *dir)
{
    static const char *const word[] = { "\xef\xbb\xbfgood", "bad\r", "\xef\xbb\xbf", "film\r\r" };
    ses_bag_vocab v = { .ngrams = 1 }, back = { .ngrams = 1 };
    char path[300];
    bool fresh;
    int64_t at = -1;
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    for (size_t i = 0; i < SES_LEN(word); i++)
        CHECK(ses_strmap_insert(&v.index, word[i], strlen(word[i]), (int64_t)i, &fresh, &e));
    CHECK_MSG(ses_bag_vocab_save(&v, dir, "vocab.txt", &e), "%s", e.msg);
    CHECK_MSG(ses_bag_vocab_open(&back, dir, "vocab.txt", SES_LEN(word), &e), "%s", e.msg);
    for (size_t i = 0; i < SES_LEN(word); i++)
        CHECK(ses_strmap_find(&back.index, word[i], strlen(word[i]), &at) && at == (int64_t)i);
    unlink(path);
    CHECK(ses_strmap_insert(&v.index, "a\nb", 3, 4, &fresh, &e));
    CHECK(!ses_bag_vocab_save(&v, dir, "vocab.txt", &e) && strstr(e.msg, "a\nb"));
    CHECK(!ses_path_exists(path));
    ses_bag_vocab_free(&v);
    ses_bag_vocab_free(&back);
}

/* Binary vectors may have words that words.txt cannot store: they are left out. */
static void odd_vectors(const char *dir, const char *vectors)
{
    static const char *const word[] = { "\xff", "good", "a\nb", "bad" };
    FILE *f = fopen(vectors, "w");
    if (!CHECK(f)) return;
    fputs("4 2\n", f);
    for (size_t i = 0; i < SES_LEN(word); i++) {
        float x[2] = { i == 1 ? 1.0F : -1.0F, 0.5F };
        fprintf(f, "%s ", word[i]);
        fwrite(x, sizeof x, 1, f);
        putc('\n', f);
    }
    fclose(f);
    save_and_open("cbow", dir, vectors);
}

/* ---- refusals ---- */

static void refuse(const char *method, const ses_classifier_job *job, ses_code code, const char *message)
{
    ses_err e = { 0 };
    const ses_classifier_kind *k = ses_classifier_find(method, &e);
    ses_classifier *c = k ? ses_classifier_train(k, job, &e) : NULL;
    CHECK_MSG(!c && e.code == code && strstr(e.msg, message), "%s: %d %s", method, (int)e.code, e.msg);
    ses_classifier_free(c);
}

static bool stop(void *ctx, int64_t done, int64_t total, double loss)
{
    (void)ctx, (void)total, (void)loss;
    return done < 3;
}

static void refusals(void)
{
    ses_classifier_settings s = { .alpha = 2 };
    s.given.alpha = true;
    draw_texts(2);
    ses_classifier_job job = job_of(2, (ses_classifier_settings){ 0 }), odd = job_of(2, s);
    refuse("majority", &odd, SES_EUSAGE, "--alpha has no effect on method majority; its settings: none");
    refuse("logreg", &odd, SES_EUSAGE, "its settings: words ngrams min-count c");
    odd.settings = (ses_classifier_settings){ .epochs = 3, .given.epochs = true };
    refuse("nb", &odd, SES_EUSAGE, "--epochs has no effect on method nb");
    refuse("nb2", &job, SES_EUSAGE, "unknown method \"nb2\"");
    refuse("cbow", &job, SES_EUSAGE, "--vectors FILE");
    job.settings.vectors = "/nonexistent";
    refuse("cbow", &job, SES_EIO, "/nonexistent");
    job = job_of(2, (ses_classifier_settings){ 0 });
    job.progress = stop;
    refuse("nb-svm", &job, SES_EARG, "training was stopped");
    refuse("logreg", &job, SES_EARG, "training was stopped");
    job.n = 0;
    refuse("nb", &job, SES_EARG, "no training texts");
    job.n = TRAIN;
    label[5] = -1;
    refuse("nb", &job, SES_EARG, "text 6 has no label");
    for (size_t i = 0; i < TRAIN; i++) label[i] = 1;
    refuse("nb", &job, SES_EARG, "all 60 texts have the same label");
    draw_texts(2);
    for (size_t i = 0; i < TRAIN; i++) text[i].n = 0;
    refuse("nb-svm", &job, SES_EARG, "no word of 60 training texts");
}

/* A label without training texts is never predicted; an empty text and unknown words have probabilities. */
static void odd_data(void)
{
    static const char *const methods[] = { "nb", "nb-svm" };
    draw_texts(2);
    text[TRAIN].n = 0;
    text[TRAIN + 1] = (ses_string){ "zebra zebra", 11 };
    for (size_t k = 0; k < SES_LEN(methods); k++) {
        double p[TEST * 3], sum;
        ses_classifier *c = train(methods[k], 3, (ses_classifier_settings){ 0 }, NULL);
        if (!c) return;
        predict(c, p);
        for (size_t i = 0; i < TEST; i++) {
            sum = exp(p[3 * i]) + exp(p[3 * i + 1]) + exp(p[3 * i + 2]);
            CHECK(fabs(sum - 1) < 1e-9 && p[3 * i + 2] < -1000);
        }
        ses_classifier_free(c);
    }
}

int main(void)
{
    char dir[] = "/tmp/sesame-classifiers-XXXXXX", vectors[100];
    if (!mkdtemp(dir)) return 1;
    snprintf(vectors, sizeof vectors, "%s/vectors.txt", dir);
    write_vectors(vectors);
    words();
    features();
    against_scikit_learn();
    the_majority();
    same_bits_on_threads();
    draw_texts(3);
    for (size_t i = 0; ses_classifier_at(i); i++) {
        const ses_classifier_kind *k = ses_classifier_at(i);
        save_and_open(k->name, dir, !strcmp(k->name, "cbow") ? vectors : NULL);
    }
    odd_words(dir);
    odd_vectors(dir, vectors);
    damaged_configs(dir);
    refusals();
    odd_data();
    unlink(vectors);
    rmdir(dir);
    return check_report();
}
