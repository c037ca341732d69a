/* Metrics against the tools they follow: fixtures/metrics.f32 holds their scores of 1,000 random cases
 * of each family (its recipe is metrics.py), and the cases are drawn here again. Then edges, and the
 * bootstrap. */
#include "check.h"
#include "metric/score_range.h"
#include "metric/word_ids.h"
#include "sesame/base.h"
#include "sesame/metric.h"

#include <math.h>

enum { CASES = 1000, ROOM = 512, TEXT = 16384 };

static float *expected;
static size_t n_expected, at;

/* ---- draws, as Draw of metrics.py ---- */

static uint64_t state;
static void begin(int family, int c) { state = (uint64_t)family * 1000003 + (uint64_t)c; }
static int below(int n)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

/* ---- one score against the next expected number ---- */

static int wrong; /* reported for the first few of a family */
static bool agrees(const char *metric, const ses_evaluation *v, const char *const *names)
{
    ses_scores s = { 0 };
    ses_err e = { 0 };
    bool ok = ses_metric_run(metric, v, NULL, &s, &e);
    if (!ok) printf("    %s\n", e.msg);
    for (; *names; names++) {
        double want = at < n_expected ? (double)expected[at++] : NAN, got = NAN;
        bool there = ses_scores_find(&s, *names, &got);
        if (isnan(got)) got = 0; /* undefined: written as 0 */
        bool near = there && fabs(got - want) <= 1e-6 * (1 + fabs(want));
        if (!near && wrong++ < 5) printf("    %s: %s is %.9g, expected %.9g\n", metric, *names, got, want);
        ok = ok && near;
    }
    ses_scores_free(&s);
    return ok;
}
#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- families ---- */

static int32_t true_labels[ROOM], pred[ROOM];

static bool labels(void)
{
    int k = 2 + below(5), n = 1 + below(60), noise = 1 + below(10);
    for (int i = 0; i < n; i++) {
        int a = below(k), b = below(k);
        true_labels[i] = a < b ? a : b;
        int p = below(k);
        pred[i] = below(noise) ? true_labels[i] : p;
    }
    ses_evaluation v = {
        .n = (size_t)n, .true_labels = true_labels, .pred_labels = pred, .n_labels = (size_t)k
    };
    const char *const *names = k == 2 ? NAMES("precision", "recall", "f1", "precision_macro", "recall_macro",
                                              "f1_macro", "f1_weighted")
                                      : NAMES("1_precision", "1_recall", "1_f1", "precision_macro",
                                              "recall_macro", "f1_macro", "f1_weighted");
    bool a = agrees("accuracy", &v, NAMES("accuracy")), f = agrees("f1", &v, names);
    return agrees("matthews", &v, NAMES("matthews_correlation")) && a && f;
}

static bool reals(void)
{
    double a[ROOM], b[ROOM];
    int n = 2 + below(40), grain = 1 + below(50);
    for (int i = 0; i < n; i++) {
        int x = below(grain);
        a[i] = x / 4.0;
        b[i] = (x + 3 * below(grain)) / 8.0;
    }
    ses_evaluation v = { .n = (size_t)n, .true_reals = a, .pred_reals = b };
    bool p = agrees("pearson", &v, NAMES("pearson"));
    return agrees("spearman", &v, NAMES("spearmanr")) && p;
}

static bool determination(void)
{
    double a[ROOM], b[ROOM];
    int n = 2 + below(40), grain = 1 + below(6);
    for (int i = 0; i < n; i++) {
        b[i] = a[i] = below(grain) / 4.0;
        if (below(3)) b[i] += (below(9) - 4) / 8.0;
    }
    ses_evaluation v = { .n = (size_t)n, .true_reals = a, .pred_reals = b };
    return agrees("r2", &v, NAMES("r2"));
}

static bool sets(void)
{
    uint8_t g[ROOM], p[ROOM];
    int k = 2 + below(5), n = 1 + below(30);
    for (int i = 0; i < n * k; i++) {
        g[i] = below(3) == 0;
        p[i] = g[i];
        if (!below(4)) p[i] = (uint8_t)below(2);
    }
    ses_evaluation v = { .n = (size_t)n, .true_sets = g, .pred_sets = p, .n_labels = (size_t)k };
    return agrees("multilabel", &v, NAMES("accuracy", "f1_micro", "f1_macro"));
}

/* Draws tagged sequences and compares the scores of `names`. */
static bool tagged(const char *metric, const char *prefixes, const char *const *names)
{
    char name[16][8] = { "O" };
    const char *label[16] = { name[0] };
    size_t cu[8] = { 0 }, n = 0, k = strlen(prefixes), n_labels = 1;
    for (size_t p = 0; p < k; p++)
        for (int t = 0; t < 3; t++, n_labels++) {
            snprintf(name[n_labels], sizeof name[0], "%c-%c", prefixes[p], "XYZ"[t]);
            label[n_labels] = name[n_labels];
        }
    int seqs = 1 + below(4);
    for (int s = 0; s < seqs; s++) {
        for (int left = 1 + below(12); left; left--, n++) {
            int32_t two[2];
            for (int i = 0; i < 2; i++) {
                int p = below((int)k + 1), t = below(3);
                two[i] = p == (int)k ? 0 : 1 + 3 * p + t;
            }
            true_labels[n] = two[0];
            pred[n] = below(4) ? two[0] : two[1];
        }
        cu[s + 1] = n;
    }
    ses_evaluation v = { .n = (size_t)seqs,
                         .true_labels = true_labels,
                         .pred_labels = pred,
                         .cu = cu,
                         .n_labels = n_labels,
                         .labels = label };
    return agrees(metric, &v, names);
}

#define ENTITY_SCORES NAMES("precision", "recall", "f1_macro")

static bool entity(void) { return tagged("entity", "BIES", ENTITY_SCORES); }

static bool token_f1(void)
{
    return tagged("token_f1", "BI",
                  NAMES("token_accuracy", "token_precision_micro", "token_recall_micro", "token_f1_micro",
                        "token_precision_macro", "token_recall_macro", "token_f1_macro"));
}

static bool strict(void)
{
    static const char *const scheme[][2] = { { "entity_iob1", "BI" },    { "entity_iob2", "BI" },
                                             { "entity_ioe1", "IE" },    { "entity_ioe2", "IE" },
                                             { "entity_iobes", "BIES" }, { "entity_bilou", "BILU" } };
    int s = below(6);
    return tagged(scheme[s][0], scheme[s][1], ENTITY_SCORES);
}

static char text[64][TEXT / 16];
static const char *texts[64];

static void join(char *to, const char *s)
{
    size_t n = strlen(to);
    snprintf(to + n, TEXT / 16 - n, "%s", s);
}

static void answer(char *to, int most)
{
    static const char *const word[] = {
        "the",
        "The",
        "a",
        "An",
        "an",
        "cat",
        "Cat's",
        "dog,",
        "U.S.",
        "na\u00efve",
        "\u039f\u0394\u039f\u03a3",
        "\u03bf\u03b4\u03bf\u03c2",
        "the-cat",
        "thecat",
        "a_b",
        "ab",
        "\u0130zmir",
        "1,000",
        "1000",
        "\u00a0",
        "\u2014",
        "a\u2014b",
        "New",
        "york",
        "York!",
        "!",
        "'",
        "\u2019s",
        "the\u2019",
        "\u00c9cole",
        "\u00e9cole",
        "\t",
    };
    *to = 0;
    for (int n = below(most + 1), i = 0; i < n; i++) {
        if (i) join(to, " ");
        join(to, word[below(SES_LEN(word))]);
    }
}

static bool squad(void)
{
    const char *right[4], *said = text[0];
    size_t cu[2] = { 0, 0 };
    cu[1] = 1 + (size_t)below(3);
    for (size_t k = 0; k < cu[1]; k++) answer(text[k + 1], 3), right[k] = text[k + 1];
    if (below(4) == 0) { /* metrics.py writes it in upper case: no matter after normalization */
        ses_buf b = { 0 };
        ses_lower_append(&b, right[0], strlen(right[0]));
        snprintf(text[0], sizeof text[0], "%s", b.data ? b.data : "");
        ses_buf_free(&b);
    } else
        answer(text[0], 4);
    ses_evaluation v = { .n = 1, .pred_texts = &said, .ref_texts = right, .ref_cu = cu };
    return agrees("squad", &v, NAMES("exact_match", "f1"));
}

static bool squad_v2(void)
{
    const char *right[32], *said[8];
    size_t cu[9] = { 0 };
    double sure[8];
    for (size_t i = 0; i < 8; i++) {
        size_t n = (size_t)below(3);
        for (size_t k = 0; k < n; k++) {
            char *t = text[4 * i + k];
            answer(t, 3);
            join(t, "cat");
            right[cu[i] + k] = t;
        }
        cu[i + 1] = cu[i] + n;
        said[i] = text[4 * i + 3];
        if (n && below(3) == 0)
            said[i] = right[cu[i]];
        else
            answer(text[4 * i + 3], 2);
        sure[i] = below(6) / 5.0;
    }
    ses_evaluation v = { .n = 8, .pred_texts = said, .ref_texts = right, .ref_cu = cu, .no_answer = sure };
    return agrees("squad_v2", &v, NAMES("exact", "f1", "best_f1", "best_f1_thresh"));
}

static void sentence(char *to, int most)
{
    static const char *const word[] = { "the",   "cat",       "sat",         "on",     "mat.",
                                        "The",   "cat,",      "1,000.5",     "a-b",    "3-4",
                                        "(x)",   "&quot;",    "&amp;lt;",    "..",     "U.S.",
                                        "don't", "<skipped>", "na\u00efve,", "\u00a0", "-\n",
                                        "\n",    "5.",        ".5",          "$",      "x,y" };
    *to = 0;
    for (int n = 1 + below(most), i = 0; i < n; i++) {
        join(to, word[below(SES_LEN(word))]);
        if (below(8)) join(to, " ");
    }
}

static bool bleu(void)
{
    size_t n = 1 + (size_t)below(4), refs = 1 + (size_t)below(3), cu[5] = { 0 };
    const char *said[4], *right[12];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < refs; k++) {
            sentence(text[4 * i + k], 12);
            right[i * refs + k] = text[4 * i + k];
        }
        cu[i + 1] = (i + 1) * refs;
        char *hyp = text[4 * i + 3];
        *hyp = 0;
        if (below(2)) {
            join(hyp, text[4 * i]);
            sentence(text[60], 4);
            join(hyp, text[60]);
        } else
            sentence(hyp, 12);
        said[i] = hyp;
    }
    ses_evaluation v = { .n = n, .pred_texts = said, .ref_texts = right, .ref_cu = cu };
    bool a = agrees("bleu", &v, NAMES("bleu"));
    return agrees("bleu_plain", &v, NAMES("bleu")) && a;
}

static void summary(char *to)
{
    static const char *const word[] = { "running", "runs",   "flies",         "happily",    "relational",
                                        "the",     "cats",   "skies",         "dying",      "\u212aelvin",
                                        "hopping", "agreed", "plastered",     "geology",    "enjoy",
                                        "2020",    "news",   "conditionally", "controlled", "\u0130s",
                                        "x" };
    *to = 0;
    for (int n = below(14), i = 0; i < n; i++) {
        join(to, word[below(SES_LEN(word))]);
        join(to, below(5) == 0 ? "\n" : below(5) == 0 ? ", " : " ");
    }
}

static bool rouge(void)
{
    summary(text[0]);
    summary(text[1]);
    texts[0] = text[0], texts[1] = text[1];
    ses_evaluation v = { .n = 1, .pred_texts = texts + 1, .ref_texts = texts };
    bool a = agrees("rouge", &v, NAMES("rouge1", "rouge2", "rougeL", "rougeLsum"));
    return agrees("rouge_stem", &v, NAMES("rouge2", "rougeLsum")) && a;
}

static void families(void)
{
    static const struct {
        const char *name;
        bool (*run)(void);
    } family[] = { { "scikit-learn: labels", labels },
                   { "scipy: correlations", reals },
                   { "scikit-learn: label sets", sets },
                   { "seqeval", entity },
                   { "seqeval, strict", strict },
                   { "SQuAD 1.1", squad },
                   { "SQuAD 2.0", squad_v2 },
                   { "sacrebleu", bleu },
                   { "rouge_score", rouge },
                   { "scikit-learn: R^2", determination },
                   { "scikit-learn: tags", token_f1 } };
    FILE *f = fopen("tests/fixtures/metrics.f32", "rb");
    expected = malloc(1 << 20);
    if (!CHECK(f && expected)) return;
    n_expected = fread(expected, sizeof *expected, (1 << 20) / sizeof *expected, f);
    fclose(f);
    for (size_t k = 0; k < SES_LEN(family); k++) {
        int right = 0;
        wrong = 0;
        for (int c = 0; c < CASES; c++) {
            begin((int)k, c);
            right += family[k].run();
        }
        CHECK_MSG(right == CASES, "%s: %d of %d cases agree", family[k].name, right, CASES);
    }
    CHECK(at == n_expected);
    free(expected);
}

/* ---- edges ---- */

static double score(const char *metric, const ses_evaluation *v, const char *name)
{
    ses_scores s = { 0 };
    double x = NAN;
    if (ses_metric_run(metric, v, NULL, &s, NULL)) ses_scores_find(&s, name, &x);
    ses_scores_free(&s);
    return x;
}

static void check_fails(const char *metric, const ses_evaluation *v, const char *want)
{
    ses_scores s = { 0 };
    ses_err e = { 0 };
    CHECK(!ses_metric_run(metric, v, NULL, &s, &e) && s.n == 0);
    CHECK_MSG(strstr(e.msg, want), "\"%s\" lacks \"%s\"", e.msg, want);
    ses_scores_free(&s);
}

static void edges(void)
{
    const int32_t a[] = { 0, 1, SES_IGNORE_INDEX, 1 }, b[] = { 0, 0, 7, 1 };
    ses_evaluation v = { .n = 4, .true_labels = a, .pred_labels = b, .n_labels = 2 };
    CHECK(score("accuracy", &v, "accuracy") == 2.0 / 3); /* an ignored label's prediction may be anything */
    CHECK(score("f1", &v, "f1") == 2.0 / 3);
    int64_t m[4];
    CHECK(ses_confusion_matrix(&v, m, NULL) && m[0] == 1 && m[1] == 0 && m[2] == 1 && m[3] == 1);
    v.n_labels = 1;
    check_fails("accuracy", &v, "true label 1 of item 1: expected 0 to 0");
    check_fails("accuracy", &(ses_evaluation){ .true_labels = a, .pred_labels = a, .n_labels = 2 },
                "no examples");
    check_fails("bleu", &v, "lacks the fields");
    check_fails("accurate", &v, "unknown metric \"accurate\"; choose one of accuracy, f1");

    const int32_t flat[] = { 1, 1, 1 };
    v = (ses_evaluation){ .n = 3, .true_labels = flat, .pred_labels = flat, .n_labels = 2 };
    CHECK(score("matthews", &v, "matthews_correlation") == 0);
    const double x[] = { 1, 2, 3 }, same[] = { 1, 1, 1 }, inf[] = { 1, INFINITY, 3 };
    v = (ses_evaluation){ .n = 3, .true_reals = x, .pred_reals = same };
    CHECK(isnan(score("pearson", &v, "pearson")) && isnan(score("spearman", &v, "spearmanr")));
    CHECK(fabs(score("squared_error", &v, "mse") - 5.0 / 3) < 1e-15);
    v.pred_reals = inf;
    check_fails("pearson", &v, "example 1: not a finite number");

    const double nll[] = { 2, 4 };
    const int64_t tokens[] = { 1, 2 };
    v = (ses_evaluation){ .n = 2, .nll = nll, .n_nll = tokens };
    CHECK(fabs(score("perplexity", &v, "perplexity") - exp(2)) < 1e-12);
    CHECK(isnan(score("perplexity", &v, "word_perplexity")));
    const int64_t words[] = { 1, 1 }, negative[] = { 1, -1 };
    v.n_words = words;
    CHECK(fabs(score("perplexity", &v, "word_perplexity") - exp(3)) < 1e-11);
    v.n_words = negative;
    check_fails("perplexity", &v, "example 1: the word count is negative");
    CHECK(ses_words_count("", 0) == 0 && ses_words_count(" a\u00a0bc \n\td\xff", 11) == 3);

    const char *names[] = { "O", "B-PER", "S-PER" };
    const size_t cu[] = { 0, 3 };
    const int32_t tags[] = { 0, 1, 2 };
    v = (ses_evaluation){
        .n = 1, .true_labels = tags, .pred_labels = tags, .cu = cu, .n_labels = 3, .labels = names
    };
    check_fails("entity_iob2", &v, "tag \"S-PER\" is not allowed in the IOB2 scheme");
    CHECK(score("entity", &v, "PER_number") == 2);
    check_fails("f1", &v, "not tags");
    CHECK(score("accuracy", &v, "accuracy") == 1);

    const char *none[] = { "" };
    v = (ses_evaluation){ .n = 1, .pred_texts = none, .ref_texts = none, .ref_cu = (size_t[]){ 0, 0 } };
    check_fails("squad", &v, "no accepted answer");
    check_fails("rouge", &v, "no reference");
    CHECK(score("squad_v2", &v, "NoAns_exact") == 100);
    v.ref_cu = NULL;
    CHECK(score("bleu", &v, "bleu") == 0 && score("rouge", &v, "rougeLsum") == 0);
    const char *broken[] = { "\xff\xfe the \x80" };
    v.pred_texts = v.ref_texts = broken;
    CHECK(score("squad", &v, "exact_match") == 100 && score("bleu_plain", &v, "bleu_precision_1") == 100);
}

static void stems(void)
{
    static const char *const pair[][2] = {
        { "generalizations", "gener" },
        { "flies", "fli" },
        { "dies", "die" },
        { "happy", "happi" },
        { "enjoyment", "enjoy" },
        { "radically", "radic" },
        { "geology", "geolog" },
        { "filing", "file" },
        { "controlling", "control" },
        { "feed", "feed" },
        { "yyyy", "yyyi" },
    };
    for (size_t i = 0; i < SES_LEN(pair); i++) {
        char w[32];
        snprintf(w, sizeof w, "%s", pair[i][0]);
        w[ses_porter_stem(w, strlen(w))] = 0;
        CHECK_STR(w, pair[i][1]);
    }
}

/* ---- bootstrap ---- */

static void bootstrap(void)
{
    int32_t g[200], p[200];
    begin(99, 0);
    for (int i = 0; i < 200; i++) g[i] = below(3), p[i] = below(5) ? g[i] : below(3);
    ses_evaluation v = { .n = 200, .true_labels = g, .pred_labels = p, .n_labels = 3 };
    ses_bootstrap b = { .resamples = 2000, .level = 0.95, .seed = 7 };
    ses_scores one = { 0 }, two = { 0 };
    ses_err e = { 0 };
    CHECK(ses_metric_run("accuracy", &v, &b, &one, &e) && ses_metric_run("f1", &v, &b, &one, &e));
    CHECK(ses_metric_run("accuracy", &v, &b, &two, &e) && ses_metric_run("f1", &v, &b, &two, &e));
    CHECK(one.n == two.n && !memcmp(one.item, two.item, one.n * sizeof *one.item));
    for (size_t i = 0; i < one.n; i++)
        CHECK(one.item[i].low <= one.item[i].value && one.item[i].value <= one.item[i].high);
    /* A mean of independent draws: bounds near 1.96 standard errors. */
    double a = one.item[0].value, half = 1.96 * sqrt(a * (1 - a) / 200);
    CHECK(fabs(one.item[0].low - (a - half)) < 0.012 && fabs(one.item[0].high - (a + half)) < 0.012);
    b.seed = 8;
    two.n = 0;
    CHECK(ses_metric_run("accuracy", &v, &b, &two, &e) && two.item[0].value == a);
    b.level = 1;
    CHECK(!ses_metric_run("accuracy", &v, &b, &two, &e) && strstr(e.msg, "confidence level"));
    ses_scores_free(&one);
    ses_scores_free(&two);
}

static void test_direction(void)
{
    static const char *const lower[] = { "loss", "mse", "perplexity", "mlm_loss" };
    static const char *const higher[] = {
        "accuracy", "f1", "pearson", "bleu", "", "_loss", "lossy", "unknown"
    };
    for (size_t i = 0; i < SES_LEN(lower); i++) CHECK(ses_metric_lower_is_better(lower[i]));
    for (size_t i = 0; i < SES_LEN(higher); i++) CHECK(!ses_metric_lower_is_better(higher[i]));
    static const char *const negative[] = { "pearson", "spearmanr", "matthews_correlation", "r2" };
    for (size_t i = 0; i < SES_LEN(negative); i++) CHECK(ses_metric_least(negative[i]) < -1);
    CHECK(!(ses_metric_least("accuracy") < 0) && !(ses_metric_least("mse") < 0));
}

int main(void)
{
    test_direction();
    families();
    edges();
    stems();
    bootstrap();
    for (size_t i = 0; ses_metric_at(i, NULL, NULL); i++) {
        const char *what = NULL;
        CHECK(ses_metric_at(i, &what, NULL) && what && *what);
    }
    return check_report();
}
