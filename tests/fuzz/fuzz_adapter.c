/* adapter_config.json to a model without values, with a small BERT as base. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "fuzz_folder.h"
#include "sesame/model.h"

static const char base[] = "tests/fixtures/adapters/bert/base",
                  weights[] = "tests/fixtures/adapters/bert/adapter/adapter_model.safetensors";

static char dir[40];

static void put(const char *name, const void *data, size_t n)
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    fuzz_file(path, data, n);
}

static void remove_folder(void) { ses_dir_remove(dir, NULL); }

/* One folder for the whole run: the weights once, the config anew. */
static bool folder(void)
{
    static bool made;
    size_t n;
    if (made) return true;
    char *data = ses_file_read(weights, 1 << 20, &n, NULL);
    if (data) {
        fuzz_folder(dir);
        put("adapter_model.safetensors", data, n);
        made = !atexit(remove_folder);
    }
    ses_free(data);
    return made; /* false: not run from the source folder */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ses_device *dev; /* one for all: a try is short */
    ses_err e = { 0 };
    if (!dev) dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    if (!dev || !folder()) return 0;
    put("adapter_config.json", data, n);
    /* the base model is given, or found by the config */
    ses_lora lora = { .rank = 2 }; /* trained further */
    ses_model_options o = { .check_only = true, .base = n % 2 ? NULL : base };
    if (n % 4 > 1) o.train = true, o.lora = &lora;
    ses_model *m = ses_model_open(dir, dev, &o, &e);
    MUST((m != NULL) == (e.code == SES_OK));
    ses_model_free(m);
    return 0;
}
