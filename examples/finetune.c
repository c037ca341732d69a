/* Fine-tune a classifier on a CSV file: finetune MODEL TRAIN.csv EVAL.csv OUT. The files have the columns
 * text and label, with any number of labels. Writes the model to the folder OUT, prints its scores and
 * some predictions. */
#include "sesame/sesame.h"

#include <stdio.h>

/* One line per evaluation. Returning false would stop the run; it could be resumed later. */
static bool on_event(void *ctx, const ses_training_event *ev)
{
    (void)ctx;
    if (ev->kind == SES_TRAINING_NOTICE) fprintf(stderr, "%s\n", ev->text);
    if (ev->kind == SES_TRAINING_EVALUATED)
        fprintf(stderr, "epoch %.1f  loss %.3f  accuracy %.3f%s\n", ses_trainer_epoch(ev->trainer), ev->loss,
                ev->metric, ev->is_best ? "  best" : "");
    return true;
}

static void print_report(const ses_eval_report *r)
{
    for (size_t i = 0; i < r->n_classes; i++)
        printf("%-12s precision %.3f  recall %.3f  F1 %.3f\n", r->classes[i].name, r->classes[i].precision,
               r->classes[i].recall, r->classes[i].f1);
}

static bool print_predictions(ses_predictor *p, const char *path, ses_err *e)
{
    ses_predictions *r = ses_predictor_predict(p, path, e);
    for (size_t i = 0; r && i < ses_predictions_count(r) && i < 5; i++) {
        ses_prediction x = ses_predictions_at(r, i);
        printf("row %zu: %s (%.3f)\n", i + 1, x.label, x.score);
    }
    ses_predictions_free(r);
    return r != NULL;
}

/* A text in memory, classified by the model in the folder. */
static bool classify(const char *dir, const char *text, ses_device *dev, ses_err *e)
{
    ses_predictor_options o = ses_predictor_defaults();
    o.data.task = "classify";
    ses_predictor *p = ses_predictor_open(dir, &o, dev, e);
    ses_example_input in = { .text = text };
    ses_examples *d =
        p ? ses_examples_new(SES_DATA_CLASSIFY, &in, 1, NULL, ses_predictor_labels(p), e) : NULL;
    ses_predictions *r = d ? ses_predictor_predict_examples(p, d, e) : NULL;
    if (r) printf("\"%s\": %s\n", text, ses_predictions_at(r, 0).label);
    ses_predictions_free(r);
    ses_examples_free(d);
    ses_predictor_free(p);
    return r != NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s MODEL TRAIN.csv EVAL.csv OUT\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_finetune_options o = ses_finetune_defaults();
    o.model = argv[1];
    o.train = argv[2];
    o.eval = argv[3];
    o.run.output = argv[4];
    o.run.overwrite = true;
    o.run.lr = 1e-3;
    o.on_event = on_event;
    ses_finetune *f = dev ? ses_finetune_new(&o, dev, &e) : NULL;
    bool ok = f && ses_finetune_run(f, NULL, &e);
    if (ok) print_report(ses_finetune_report(f));
    ok = ok && print_predictions(ses_finetune_predictor(f), argv[3], &e);
    ses_finetune_free(f);
    ok = ok && classify(argv[4], "a good film", dev, &e);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_device_free(dev);
    return ok ? 0 : 1;
}
