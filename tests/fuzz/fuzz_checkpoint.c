/* A checkpoint of a small trainer, with one file replaced by the input: trainer_state.json (an object),
 * manifest.json (an input that starts with "manifest ") or optimizer.safetensors (any other); then the plan
 * of a pretraining run, pretrain.json, and the totals in run.json and times.jsonl. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "fuzz_folder.h"
#include "io/manifest.h"
#include "pretrain/pretrain_impl.h"
#include "sesame/unstable/dataset.h"
#include "sesame/unstable/trainer.h"
#include "train/ranks.h"

static const char config[] =
    "{\"architectures\": [\"BertForSequenceClassification\"], \"model_type\": \"bert\", \"vocab_size\": 5, "
    "\"hidden_size\": 2, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"intermediate_size\": 2, "
    "\"max_position_embeddings\": 4, \"type_vocab_size\": 1, \"hidden_act\": \"gelu\"}";
static const char prefix[] = "manifest ";

typedef struct file {
    const char *name;
    char *data; /* as the trainer wrote it */
    size_t n;
} file;

static file state = { .name = "trainer_state.json" }, optimizer = { .name = "optimizer.safetensors" },
            manifest = { .name = "manifest.json" };
static char dir[40], checkpoint[64];
static ses_device *dev;
static ses_json_doc *document; /* the model borrows it */
static ses_model *model;
static ses_dataset *examples;
static ses_batches *batches;
static ses_trainer *trainer;

static void put(const char *folder, const char *name, const void *data, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    fuzz_file(path, data, n);
}

static void keep(file *f)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", checkpoint, f->name);
    MUST(f->data = ses_file_read(path, 1 << 20, &f->n, NULL));
}

static void clean(void)
{
    ses_free(state.data);
    ses_free(optimizer.data);
    ses_free(manifest.data);
    ses_trainer_free(trainer);
    ses_batches_free(batches);
    ses_dataset_free(examples);
    ses_model_free(model);
    ses_json_free(document);
    ses_device_free(dev);
    ses_dir_remove(checkpoint, NULL);
    ses_dir_remove(dir, NULL);
}

/* A run of 4 updates with a checkpoint after the second. */
static void start(void)
{
    ses_err e = { 0 };
    ses_step_result s;
    fuzz_folder(dir);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint-2", dir);
    MUST(!atexit(clean));
    MUST(dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e));
    MUST(document = ses_json_parse(config, strlen(config), &e));
    MUST(model = ses_model_new(ses_json_root(document), dev, &(ses_model_options){ .train = true }, &e));
    MUST(examples = ses_dataset_new(SES_TARGET_CLASS, 0, 1, &e));
    for (int32_t i = 0; i < 4; i++)
        MUST(ses_dataset_add(examples, &(ses_sequence){ .n = 1, .ids = &i, .label = i % 2 }, &e));
    MUST(batches = ses_batches_new(examples, &(ses_batching){ .max_examples = 2 }, &e));
    ses_trainer_options o = { .model = model,
                              .source = ses_batches_source(batches),
                              .updates = 4,
                              .dir = dir,
                              .settings = "{\"lr\": 0.01}" };
    MUST(ses_optim_defaults("adamw", &o.optim, &e) && ses_schedule_defaults("linear", &o.schedule, &e));
    MUST(trainer = ses_trainer_new(&o, &e));
    MUST(ses_trainer_step(trainer, &s, &e) && ses_trainer_step(trainer, &s, &e));
    MUST(ses_trainer_save(trainer, &e));
    keep(&state);
    keep(&optimizer);
    keep(&manifest);
}

/* Replaces the file, resumes and restores the file. */
static void resume(file *f, const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_resume_result from;
    char path[128];
    snprintf(path, sizeof path, "%s/manifest.json", checkpoint);
    put(checkpoint, f->name, data, n);
    if (f != &manifest) MUST(ses_file_remove(path, &e) && ses_manifest_write(checkpoint, &e));
    bool ok = ses_trainer_resume(trainer, &from, &e);
    const ses_train_state *at = ses_trainer_state(trainer);
    MUST(ok == (e.code == SES_OK) && (!ok || from.found));
    MUST(at->updates >= 0 && at->updates <= 4 && at->index >= 0 && at->accumulated >= 0);
    ses_training_options run = { .output = dir, .resume = true };
    MUST(ses_ranks_set_lanes(&run, NULL) && run.lanes > 0);
    put(checkpoint, f->name, f->data, f->n);
}

static void load_plan(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_pretrain p = { .o = { .max_seconds = 1, .run = { .output = dir, .resume = true } } };
    put(dir, SES_RUN_PLAN, data, n);
    bool ok = ses_pretrain_load_plan(&p, &e);
    MUST(ok == (e.code == SES_OK) && (!ok || p.updates > 0));
    put(dir, SES_RUN_INFO, data, n);
    put(dir, SES_RUN_TIMES, data, n);
    ses_run_totals t = ses_run_totals_read(dir, dir, ses_trainer_state(trainer));
    MUST(t.loss_count >= 0 && t.seconds >= 0 && t.joules >= 0 && t.window >= 0 && t.window <= t.loss_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t skip = strlen(prefix);
    if (!trainer) start();
    if (n >= skip && !memcmp(data, prefix, skip))
        resume(&manifest, data + skip, n - skip);
    else
        resume(n && *data == '{' ? &state : &optimizer, data, n);
    load_plan(data, n);
    return 0;
}
