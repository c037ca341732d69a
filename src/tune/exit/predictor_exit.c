/* Early exit in evaluation and prediction. */
#include "tune/finetune_impl.h"

#include "base/alloc.h"
#include "base/str.h"

bool ses_predictor_set_exit(ses_predictor *p, const char *rule, ses_err *e)
{
    p->has_exit = rule != NULL;
    return !rule || ses_exit_policy_parse(rule, &p->exit, e);
}

int64_t ses_predictor_exit_count(const ses_predictor *p)
{
    return p->tuner && p->tuner->model ? ses_model_exit_count(p->tuner->model) : 0;
}

bool ses_predictor_use_exit(ses_predictor *p, ses_err *e)
{
    ses_finetuner *t = p->tuner;
    bool can_exit = t->task->has_exits && t->model && !p->n_members;
    t->exit = can_exit ? ses_model_exit_policy(t->model) : NULL;
    if (!p->has_exit) return true;
    t->exit = NULL;
    if (p->exit.rule == SES_EXIT_NEVER && !(t->model && ses_model_exit_count(t->model))) return true;
    if (p->n_members)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "exit: the models of an ensemble are averaged after their last layers");
    if (!t->task->has_exits || !t->model)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "exit: texts leave early only in the task classify, with a model that has exits");
    t->exit = &p->exit;
    return ses_exit_policy_check(&p->exit, t->model, e) || ses_wrap(e, "%s", p->dir ? p->dir : "the model");
}

bool ses_eval_report_add_layers(ses_eval_report *r, const ses_finetuner *t, const ses_finetune_outputs *o,
                                ses_err *e)
{
    double sum = 0;
    if (!o->layers) return true;
    r->n_layers = (size_t)ses_model_layer_count(t->model);
    r->exit_counts = ses_alloc_array(r->n_layers + 1, sizeof *r->exit_counts, e);
    if (!r->exit_counts) return false;
    for (size_t i = 0; i < r->n; i++) {
        r->exit_counts[o->layers[i]]++;
        sum += o->layers[i];
    }
    r->mean_layers = r->n ? sum / (double)r->n : 0;
    return true;
}

void ses_eval_report_put_layers(const ses_eval_report *r, ses_json_writer *w)
{
    if (!r->exit_counts) return;
    ses_json_member_real(w, "eval_mean_layers", r->mean_layers);
    ses_json_member_array(w, "eval_exit_counts");
    for (size_t i = 1; i <= r->n_layers; i++) ses_json_put_int(w, r->exit_counts[i]);
    ses_json_end_array(w);
}
