/* Pruning during training in double precision: 50 updates against PyTorch, and the gradient of scores against
 * finite differences of the factors of blocks. */
#include "model_fixture.h"
#include "movement_cases.h"

static double loss_of(const ses_model *m, ses_tape *t, bool backward)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_real x = 0;
    ses_batch b = fixture_batch(false);
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ 0 }, &out, &e), "%s", e.msg);
    if (backward) ses_backward(t, out.loss);
    CHECK(ses_tape_read(t, out.loss, &x));
    return (double)x;
}

/* The straight-through gradient of a score is the slope of the loss in the factor of its block. */
static void check_block(const ses_pruner *p, ses_tape *t, const ses_prune_group *g, int64_t k, double grad)
{
    const double step = 1e-5;
    double loss[2], was = (double)g->factor[k];
    for (int i = 0; i < 2; i++) {
        g->factor[k] = (ses_real)(was + (i ? step : -step));
        for (int j = 0; j < g->n_parts; j++) {
            const ses_pruned_weight *w = &p->weight[g->part[j].weight];
            p->dev->k_f32.block_scale(&p->dev->exec, w->param->tensor->f + g->part[j].offset,
                                      w->dense + g->part[j].offset, g->factor, g->part[j].grid);
        }
        loss[i] = loss_of(p->model, t, false);
    }
    g->factor[k] = (ses_real)was;
    ses_pruner_restore((ses_pruner *)(uintptr_t)p, p->updates);
    double slope = (loss[1] - loss[0]) / (2 * step);
    CHECK_MSG(fabs(slope - grad) < 1e-7 + 1e-5 * fabs(slope), "%s[%lld]: gradient %.9f, slope %.9f", g->name,
              (long long)k, grad, slope);
}

static void test_gradients(const char *block)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_json_doc *config = fixture_config("BertForSequenceClassification", &e);
    ses_model *m =
        ses_model_new(ses_json_root(config), dev, &(ses_model_options){ .train = true, .seed = 6 }, &e);
    ses_optim_options optim;
    ses_pruning_options o = ses_pruning_defaults();
    o.criterion = "movement", o.block = block, o.keep = 0.5;
    CHECK(ses_optim_defaults("adamw", &optim, &e));
    ses_pruner *p = m ? ses_pruner_new(&o, m, &optim, 10, &e) : NULL;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    if (CHECK_MSG(p && t, "%s", e.msg)) {
        for (size_t i = 0; i < p->n_groups; i++) /* some scores, so that half of the blocks are masked */
            for (int64_t k = 0; k < p->group[i].n_blocks; k++)
                p->group[i].score->f[k] = (ses_real)sin(7.3 * (double)(k + (int64_t)i));
        ses_pruner_restore(p, 10);
        CHECK(ses_pruner_kept(p) < 0.65);
        ses_store_zero_grad(p->store);
        ses_store_zero_grad(p->scores);
        loss_of(m, t, true);
        ses_pruner_gradients(p, 1);
        for (size_t i = 0; i < p->n_groups; i++)
            for (int64_t k = 0; k < p->group[i].n_blocks; k += 1 + p->group[i].n_blocks / 3)
                check_block(p, t, &p->group[i], k, (double)p->group[i].score->grad[k]);
        for (size_t i = 0; i < p->n_weights; i++) /* masked weights have no gradient */
            for (int64_t k = 0; k < p->weight[i].n; k++)
                if (p->weight[i].param->tensor->f[k] == 0) CHECK(p->weight[i].param->tensor->grad[k] == 0);
    }
    ses_tape_free(t);
    ses_pruner_free(p);
    ses_model_free(m);
    ses_json_free(config);
    ses_device_free(dev);
}

int main(void)
{
    static const char *const blocks[] = { "8x8", "1x4", "1x1", "row", "column", "unit" };
    for (size_t i = 0; i < SES_LEN(blocks); i++) test_gradients(blocks[i]);
    ses_device *dev = ses_device_open("cpu", NULL, NULL);
    for (size_t i = 0; i < SES_LEN(movement_cases); i++) test_movement_case(dev, &movement_cases[i], 1e-6);
    ses_device_free(dev);
    return check_report();
}
