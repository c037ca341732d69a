/* LoRA adapters against the peft library (fixtures/adapters, made by adapters.py): its adapters open with its
 * outputs, training takes the same steps, and saved adapters open again. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "adapter_fixture.h"
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"

#include <unistd.h>

static char tmp[] = "/tmp/sesame-adapter-XXXXXX";

/* Trains peft's adapter for the same number of steps, saves it and opens it again. The adapter at the start
 * is that of folder `from`; targets NULL: opened there, to be trained further. */
static void train(const char *base, const char *from, const char *to, const char *targets, const run *r,
                  ses_device *dev)
{
    ses_err e = { 0 };
    double apart;
    char out[64];
    ses_adapter_options lora = { .rank = 3, .alpha = 6, .targets = targets };
    if (!targets) lora = (ses_adapter_options){ .rank = 50 }; /* not used: the adapter has its own */
    ses_model *m = ses_model_open(
        targets ? base : from, dev,
        &(ses_model_options){ .train = true, .new_heads = true, .adapter_options = &lora }, &e);
    if (!CHECK_MSG(m, "%s", e.msg)) return;
    CHECK_MSG(pass(m, from, targets != NULL, &apart, &e) && apart == 0, "apart %g %s", apart, e.msg);
    ses_optim_options options;
    ses_optim_defaults("adamw", &options, &e);
    options.lr = r->rate;
    ses_optim *o = ses_optim_new(ses_model_store(m), &options, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    for (size_t i = 0; o && t && i < ses_json_len(r->losses); i++) step(m, t, o, r, i, &e);
    CHECK_MSG(pass(m, to, false, &apart, &e) && apart < 2e-4, "apart %g %s", apart, e.msg);
    CHECK_MSG(logits_apart(m, dev, r, &e) < 1e-3, "%s", e.msg);
    int64_t all = ses_store_element_count(ses_model_store(m)),
            moved = ses_store_trainable_count(ses_model_store(m));
    CHECK_MSG(moved > 0 && moved < all / 2, "%lld of %lld", (long long)moved, (long long)all);
    snprintf(out, sizeof out, "%s/%s", tmp, "out");
    CHECK_MSG(ses_model_save(m, out, &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, &e), "%s",
              e.msg);
    ses_model *again = ses_model_open(out, dev, NULL, &e);
    CHECK_MSG(again && logits_apart(again, dev, r, &e) < 1e-3, "%s", e.msg);
    ses_model_free(again);
    ses_tape_free(t);
    ses_optim_free(o);
    ses_model_free(m);
}

/* An adapter folder opened for training without lora: merged, and all weights are trained. */
static void train_merged(const char *adapter, const run *r, ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(adapter, dev, &(ses_model_options){ .train = true }, &e);
    if (!CHECK_MSG(m && logits_apart(m, dev, r, &e) < 2e-5, "%s", e.msg)) return;
    CHECK(ses_store_trainable_count(ses_model_store(m)) == ses_store_element_count(ses_model_store(m)));
    ses_model_free(m);
}

static void family(const char *name, const char *targets, ses_device *dev)
{
    char base[96], start[96], adapter[96], path[96];
    ses_err e = { 0 };
    run r = { 0 };
    snprintf(base, sizeof base, "tests/fixtures/adapters/%s/base", name);
    snprintf(start, sizeof start, "tests/fixtures/adapters/%s/start", name);
    snprintf(adapter, sizeof adapter, "tests/fixtures/adapters/%s/adapter", name);
    snprintf(path, sizeof path, "tests/fixtures/adapters/%s/run.json", name);
    printf("%s\n", name);
    if (!CHECK_MSG(read_run(&r, path, &e), "%s", e.msg)) return;
    ses_model *m = ses_model_open(adapter, dev, NULL, &e); /* merged */
    CHECK_MSG(m && logits_apart(m, dev, &r, &e) < 2e-5, "%s", e.msg);
    ses_model_free(m);
    train(base, start, adapter, targets, &r, dev);
    train(base, start, adapter, NULL, &r, dev);
    train_merged(adapter, &r, dev);
    ses_json_free(r.doc);
}

/* ---- rejected adapters ---- */

static void refuse_open(const char *dir, const ses_model_options *o, ses_device *dev, const char *message)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, o, &e);
    CHECK(!m);
    CHECK_MSG(strstr(e.msg, message), "got \"%s\"", e.msg);
    ses_model_free(m);
}

/* The BERT adapter with another config. */
static void refuse_config(const char *config, ses_device *dev, const char *message)
{
    char path[96], to[96], dir[64];
    size_t n;
    ses_err e = { 0 };
    snprintf(dir, sizeof dir, "%s/bad", tmp);
    ses_dir_make(dir, &e);
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    snprintf(to, sizeof to, "%s/adapter_model.safetensors", dir);
    char *data =
        ses_file_read("tests/fixtures/adapters/bert/adapter/adapter_model.safetensors", 1 << 20, &n, &e);
    CHECK(data && ses_file_write(to, data, n, true, &e) &&
          ses_file_write(path, config, strlen(config), true, &e));
    ses_free(data);
    refuse_open(dir, &(ses_model_options){ .base = "tests/fixtures/adapters/bert/base" }, dev, message);
}

static void refusals(ses_device *dev)
{
    const char *bert = "tests/fixtures/adapters/bert/base", *adapter = "tests/fixtures/adapters/bert/adapter";
    ses_adapter_options wrong = { .rank = 2, .alpha = 4, .targets = "query,keys" },
                        fine = { .rank = 2, .alpha = 4 };
    refuse_open(bert, &(ses_model_options){ .train = true, .adapter_options = &wrong }, dev,
                "no LoRA target is called \"keys\"; choose from query, key, value, dense");
    refuse_open(adapter, &(ses_model_options){ .adapter_options = &fine }, dev, "set train");
    refuse_open(
        adapter,
        &(ses_model_options){ .train = true, .adapter_options = &(ses_adapter_options){ .dropout = 1 } }, dev,
        "dropout 1, expected a rate from 0 to below 1");
    refuse_open(
        bert, &(ses_model_options){ .train = true, .adapter_options = &(ses_adapter_options){ .alpha = 1 } },
        dev, "rank 0");
    refuse_open(adapter, &(ses_model_options){ .base = "tests/fixtures/adapters/gpt2/base" }, dev, "");
    refuse_config("{\"peft_type\": \"OFT\"}", dev, "\"peft_type\" is \"OFT\", expected one of LORA, IA3");
    refuse_config("{\"peft_type\": \"LORA\", \"use_dora\": true}", dev, "\"use_dora\" is true");
    refuse_config("{\"peft_type\": \"LORA\", \"alpha_pattern\": {\"q\": 1}}", dev, "\"alpha_pattern\"");
    refuse_config("{\"peft_type\": \"LORA\"}", dev, "\"lora_alpha\" is missing");
    refuse_config("{\"peft_type\": \"LORA\", \"lora_alpha\": 1, \"init_lora_weights\": \"pissa\"}", dev,
                  "pissa");
    refuse_config("[]", dev, "adapter_config.json: an object expected, not an array");
    char base[64], path[96];
    ses_err e = { 0 };
    snprintf(base, sizeof base, "%s/base", tmp);
    snprintf(path, sizeof path, "%s/config.json", base);
    CHECK(ses_dir_make(base, &e) && ses_file_write(path, "[1]", 3, true, &e));
    refuse_open(adapter, &(ses_model_options){ .base = base }, dev,
                "config.json: an object expected, not an array");
}

/* An adapter folder without config.json uses its base model's, changed for its task. */
static void derived(void)
{
    ses_err e = { 0 };
    int64_t n = 0;
    ses_json_doc *d = ses_model_config_open("tests/fixtures/adapters/roberta/adapter", NULL, &e);
    const ses_json *c = d ? ses_json_root(d) : NULL;
    CHECK_STR(ses_json_string(ses_json_at(ses_json_get(c, "architectures"), 0), NULL),
              "RobertaForTokenClassification");
    CHECK(ses_json_int(ses_json_get(c, "hidden_size"), &n) && n == 8);
    ses_json_free(d);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!dev || !mkdtemp(tmp)) return 1;
    family("bert", "query,value,dense", dev);
    family("gpt2", "c_attn,c_proj,ffn.up", dev);
    family("roberta", "query,key", dev);
    family("deberta", "in_proj,pos_proj", dev);
    family("t5", "q,v,wi", dev);
    refusals(dev);
    derived();
    ses_dir_remove(tmp, &e);
    ses_device_free(dev);
    return check_report();
}
