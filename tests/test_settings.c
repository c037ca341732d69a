/* Settings of training runs by name (sesame/finetune.h, sesame/pretrain.h): defaults, spelling, errors. */
#include "check.h"
#include "sesame/sesame.h"

static bool finetune_fails(const char *name, const char *value, const char *message)
{
    ses_err e = { 0 };
    ses_setting set[] = { { name, value }, { 0 } };
    ses_finetune_settings *s = ses_finetune_settings_new(set, &e);
    ses_finetune_settings_free(s);
    bool ok = !s && e.code == SES_EUSAGE && strstr(e.msg, message);
    if (!ok) printf("    got: %s\n", s ? "no error" : e.msg);
    return ok;
}

static void test_finetune(void)
{
    ses_err e = { 0 };
    ses_setting set[] = { { "task", "classify" }, { "batch_size", "8" },  { "weight-decay", "0.5" },
                          { "optimizer", "sgd" }, { "recompute", NULL },  { "lora_rank", "4" },
                          { "head", "mlp1" },     { "bootstrap", "100" }, { 0 } };
    ses_finetune_settings *s = ses_finetune_settings_new(set, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    ses_finetune_options o = ses_finetune_settings_options(s), d = ses_finetune_defaults();
    CHECK_STR(o.data.task, "classify");
    CHECK(o.run.batch_size == 8 && o.run.weight_decay == 0.5 && o.run.recompute && o.bootstrap == 100);
    CHECK_STR(o.run.optimizer, "sgd");
    CHECK(o.transfer.lora_rank == 4 && o.transfer.head == SES_HEAD_MLP1);
    CHECK(o.run.epochs == d.run.epochs && o.run.lr == d.run.lr && o.run.seed == d.run.seed &&
          o.run.warmup == d.run.warmup && o.confidence == 95);
    ses_finetune_settings_free(s);
    CHECK(finetune_fails("batch_sise", "8",
                         "finetune has no option \"batch_sise\"; did you mean 'batch_size'"));
    CHECK(finetune_fails("batch_size", "0", "batch_size"));
    CHECK(finetune_fails("batch_size", "many", "batch_size"));
    CHECK(finetune_fails("optimizer", "adam2", "optimizer"));
    s = ses_finetune_settings_new(NULL, &e);
    CHECK(s);
    ses_finetune_settings_free(s);
}

static void test_pretrain(void)
{
    ses_err e = { 0 };
    ses_setting set[] = { { "corpus", "a.ids" },    { "corpus", "b.ids:2" },
                          { "max_time", "1h30m" },  { "packing", "blocks" },
                          { "mask_rate", "0.3" },   { "set", "hidden_size=8" },
                          { "objective", "clm:1" }, { 0 } };
    ses_pretrain_settings *s = ses_pretrain_settings_new(set, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    ses_pretrain_options o;
    CHECK(ses_pretrain_settings_options(s, &o, &e));
    CHECK(o.n_corpora == 2 && o.n_set == 1 && o.max_seconds == 5400 && o.packing == SES_PACK_BLOCKS);
    CHECK_STR(o.corpora[1], "b.ids:2");
    CHECK_STR(o.objectives, "clm:1");
    CHECK(o.objective.mask_rate == 0.3 && o.run.lr == ses_pretrain_defaults().run.lr);
    ses_pretrain_settings_free(s);
    s = ses_pretrain_settings_new((ses_setting[]){ { "max_time", "soon" }, { 0 } }, &e);
    CHECK(s && !ses_pretrain_settings_options(s, &o, &e) && strstr(e.msg, "expected a duration"));
    ses_pretrain_settings_free(s);
    ses_pretrain_settings_free(NULL);
}

int main(void)
{
    test_finetune();
    test_pretrain();
    return check_report();
}
