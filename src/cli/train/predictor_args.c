/* Opening of fine-tuned models for eval, predict and quantize. */
#include "predictor_args.h"

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(ses_predictor_args, data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_predictor_args, task, ses_task_option_table),
};
const ses_opt_table ses_predictor_option_table = { opt, SES_LEN(opt) };

static bool on_event(void *ctx, const ses_training_event *ev)
{
    ses_open_predictor *r = ctx;
    if (ev->kind == SES_TRAINING_NOTICE && (ev->is_warning || !r->call->quiet))
        fprintf(stderr, "%s%s\n", ev->is_warning ? "sesame: " : "", ev->text);
    if (ev->kind != SES_TRAINING_EVALUATING) return true;
    r->line.total = ev->total;
    ses_progress_show(&r->line, ev->done);
    if (ev->done == ev->total) ses_progress_end(&r->line);
    return true;
}

bool ses_open_predictor_open(ses_open_predictor *r, const ses_predictor_args *a, const char *dir,
                             const ses_call *c, ses_err *e)
{
    ses_device_options d = ses_compute_device_options(&a->compute);
    ses_predictor_options o = { .data = a->data,
                                .task = a->task,
                                .base = a->adapter ? dir : NULL,
                                .bootstrap = a->bootstrap.resamples,
                                .confidence = a->bootstrap.confidence,
                                .seed = a->bootstrap.seed,
                                .on_event = on_event,
                                .ctx = r };
    *r = (ses_open_predictor){ .call = c,
                               .line = ses_progress_start(stderr, &c->err, c->quiet, "sequences", 0) };
    r->dev = ses_device_open(a->compute.device, &d, e);
    r->predictor = r->dev ? ses_predictor_open(a->adapter ? a->adapter : dir, &o, r->dev, e) : NULL;
    return r->predictor != NULL;
}

void ses_open_predictor_free(ses_open_predictor *r)
{
    ses_progress_end(&r->line);
    ses_predictor_free(r->predictor);
    ses_device_free(r->dev);
    *r = (ses_open_predictor){ 0 };
}
