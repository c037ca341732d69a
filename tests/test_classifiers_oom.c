/* Classifiers with every allocation failing in turn: training and prediction. */
#include "oom.h"

#include "vectors/classify/classifier.h"

static const ses_string text[] = {
    { "a good film", 11 }, { "a bad film", 10 }, { "good good", 9 }, { "so bad", 6 }
};
static const int32_t label[] = { 0, 1, 0, 1 };

static bool train(void *ctx, ses_err *e)
{
    double p[2 * SES_LEN(text)];
    ses_classifier_job job = { .text = text, .label = label, .n = SES_LEN(text), .n_labels = 2 };
    job.settings.vectors = "tests/fixtures/vectors/glove.txt";
    if (strcmp(ctx, "cbow")) job.settings.vectors = NULL;
    const ses_classifier_kind *k = ses_classifier_find(ctx, e);
    ses_classifier *c = k ? ses_classifier_train(k, &job, e) : NULL;
    bool ok = c && ses_classifier_run(c, text, SES_LEN(text), NULL, p, e);
    ses_classifier_free(c);
    return ok;
}

int main(void)
{
    for (size_t i = 0; ses_classifier_at(i); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", ses_classifier_at(i)->name);
        oom_sweep(name, train, name);
    }
    return check_report();
}
