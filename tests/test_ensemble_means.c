/* Ensembles: means of scores with labels in other orders, against numpy's numbers; tags of words that one
 * model lacks; labels that differ. */
#include "check.h"
#include "tune/multi/ensemble.h"

#include <math.h>
#include <string.h>

enum { MEMBERS = 3, ROWS = 4, LABELS = 3 };

static const float scores[MEMBERS][ROWS * LABELS] = {
    { -2.41f, -3.97f, -0.75f, 1.26f, 3.41f, 0.33f, -1.66f, -2.35f, 2.25f, 4.9f, 0.82f, -3.7f },
    { -2.87f, 4.8f, 0.61f, -5.2f, -0.25f, -3.49f, -1.89f, -1.46f, -2.14f, 1.66f, -0.19f, -1.77f },
    { 1.23f, 2.49f, -4.93f, -0.77f, -2.94f, -0.52f, -3.87f, 0.06f, -0.11f, -0.91f, -3.14f, -1.19f },
};
static const int32_t order[MEMBERS][LABELS] = { { 0, 1, 2 }, { 2, 0, 1 }, { 1, 2, 0 } };
static const int32_t labels[ROWS] = { 0, 2, 1, 1 };

/* Means of softmax(scores), of 1 / (1 + exp(-scores)) and of the first column, computed by numpy. */
static const double mean_softmax[ROWS * LABELS] = {
    0.31604960371061946, 0.01113576102768223, 0.6728146352616985,  0.061749559253608734,
    0.4674795714179325,  0.47077086932845874, 0.26366406912936163, 0.25469963674261575,
    0.4816362941280226,  0.3560427926037179,  0.4209460164208359,  0.22301119097544608
};
static const double mean_sigmoid[ROWS * LABELS] = {
    0.5512639734345197,  0.026451713031068153, 0.695492436274462,  0.28627849350158546,
    0.44878471441828865, 0.4453539965121003,   0.2600089607835357, 0.23027931563137805,
    0.37118334802826175, 0.39321263526481415,  0.5892444209010053, 0.25458974487454306
};
static const double mean_real[ROWS] = { -1.349999984105428, -1.5699999332427979, -2.4733332792917886,
                                        1.8833333452542622 };
static const double loss = 1.0345402220137676;

typedef struct ensemble {
    ses_finetuner t[MEMBERS];
    ses_finetune_set s[MEMBERS];
    ses_finetune_outputs o[MEMBERS];
    ses_ensemble_member m[MEMBERS];
} ensemble;

static void begin(ensemble *x, const ses_examples *rows, size_t cols)
{
    *x = (ensemble){ 0 };
    for (size_t i = 0; i < MEMBERS; i++) {
        x->t[i] = (ses_finetuner){ .n_labels = LABELS };
        x->s[i] = (ses_finetune_set){ .rows = rows, .n_rows = ROWS };
        x->m[i] = (ses_ensemble_member){ &x->t[i], &x->s[i], &x->o[i], "model", order[i] };
        CHECK(ses_finetuner_begin_scores(&x->s[i], cols, &x->o[i], NULL));
        for (size_t r = 0; r < ROWS; r++)
            memcpy(x->o[i].score + r * cols, scores[i] + r * LABELS, cols * sizeof(float));
    }
}

static void end(ensemble *x)
{
    for (size_t i = 0; i < MEMBERS; i++) ses_finetune_outputs_free(&x->o[i]);
}

static ses_examples *examples(ses_data_kind kind)
{
    static const char *const name[] = { "a", "b", "c" };
    ses_example_input x[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        x[i] = (ses_example_input){ .text = "text", .label = name[labels[i]], .value = 1 };
    return ses_examples_new(kind, x, ROWS, kind == SES_DATA_CLASSIFY ? "a|b|c" : NULL, NULL, NULL);
}

static void test_scores(void)
{
    ensemble x;
    ses_err e = { 0 };
    ses_examples *rows = examples(SES_DATA_CLASSIFY), *reals = examples(SES_DATA_REGRESS);
    begin(&x, rows, LABELS);
    CHECK_MSG(ses_ensemble_combine_classes(x.m, MEMBERS, &e), "%s", e.msg);
    for (size_t k = 0; k < ROWS * LABELS; k++)
        CHECK_MSG(fabs(exp((double)x.o[0].score[k]) - mean_softmax[k]) < 1e-6, "%zu: %g", k,
                  exp((double)x.o[0].score[k]));
    CHECK_MSG(fabs(x.o[0].loss - loss) < 1e-9, "%.12f", x.o[0].loss);
    end(&x);
    begin(&x, rows, LABELS);
    CHECK(ses_ensemble_combine_sets(x.m, MEMBERS, &e));
    for (size_t k = 0; k < ROWS * LABELS; k++)
        CHECK(fabs(1 / (1 + exp(-(double)x.o[0].score[k])) - mean_sigmoid[k]) < 1e-6);
    end(&x);
    begin(&x, reals, 1);
    CHECK(ses_ensemble_combine_reals(x.m, MEMBERS, &e));
    for (size_t k = 0; k < ROWS; k++) CHECK(fabs((double)x.o[0].score[k] - mean_real[k]) < 1e-6);
    end(&x);
    begin(&x, rows, LABELS);
    x.o[2].cols = 2;
    CHECK(!ses_ensemble_combine_classes(x.m, MEMBERS, &e) && strstr(e.msg, "has 3 scores per example"));
    end(&x);
    ses_examples_free(rows);
    ses_examples_free(reals);
}

/* Words 0 to 3 of one row. Word 1 is truncated in the second model, word 3 in all. */
static void test_tags(void)
{
    ensemble x = { 0 };
    ses_err e = { 0 };
    size_t cu[ROWS + 1] = { 0, 4, 4, 4, 4 };
    int32_t tags[2][4] = { { 0, 1, 2, -1 }, { 1, -1, 0, -1 } };
    float prob[2][4 * LABELS] = { { 0.5f, 0.3f, 0.2f, 0.1f, 0.6f, 0.3f, 0.1f, 0.2f, 0.7f, 0, 0, 0 },
                                  { 0.1f, 0.8f, 0.1f, 0, 0, 0, 0.9f, 0.05f, 0.05f, 0, 0, 0 } };
    /* the second model's order: its label 2 is the first model's 0, and so on */
    for (size_t i = 0; i < 2; i++) {
        x.t[i].n_labels = LABELS;
        x.s[i].n_rows = ROWS;
        x.o[i] = (ses_finetune_outputs){ .tags = tags[i], .tag_cu = cu, .prob = prob[i] };
        x.m[i] = (ses_ensemble_member){ &x.t[i], &x.s[i], &x.o[i], "model", order[i] };
    }
    CHECK(ses_finetune_task_tag.combine(x.m, 2, &e));
    /* word 0: 0.5 + 0.1, 0.3 + 0.1, 0.2 + 0.8; word 2: 0.1 + 0.05, 0.2 + 0.9, 0.7 + 0.05 */
    CHECK(tags[0][0] == 2 && tags[0][1] == 1 && tags[0][2] == 1 && tags[0][3] == -1);
    CHECK(isnan(x.o[0].loss));
    ses_arena_free(&x.o[0].mem);
    ses_arena_free(&x.o[1].mem);
}

static void test_labels(void)
{
    static const char *const ours[] = { "a", "b", "c" }, *const theirs[] = { "c", "a", "b" },
                             *const others[] = { "a", "b", "d" };
    int32_t map[LABELS];
    ses_err e = { 0 };
    CHECK(ses_ensemble_match_labels(ours, 3, theirs, 3, "x", "y", map, &e));
    CHECK(map[0] == 1 && map[1] == 2 && map[2] == 0);
    CHECK(!ses_ensemble_match_labels(ours, 3, others, 3, "x", "y", map, &e));
    CHECK_MSG(strstr(e.msg, "x has the labels a, b, c; y has a, b, d"), "%s", e.msg);
    e = (ses_err){ 0 };
    CHECK(!ses_ensemble_match_labels(ours, 3, theirs, 2, "x", "y", map, &e) && e.code == SES_EARG);
}

int main(void)
{
    test_scores();
    test_tags();
    test_labels();
    return check_report();
}
