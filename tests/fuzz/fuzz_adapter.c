/* adapter_config.json to a model without values, with a small BERT as base. The first byte, if it is a digit,
 * selects the kind of tensors beside it; head_config.json of adapter-hub has the same text. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "fuzz_folder.h"
#include "sesame/model.h"

static const char base[] = "tests/fixtures/adapters/bert/base";

/* Tensors of each kind: a file of a fixture, its name in the folder. */
static const char *const weights[][2] = {
    { "adapters/bert/adapter/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_kinds/ia3-bert/adapter/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_kinds/bitfit-bert/adapter/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_kinds/prompt-bert/adapter/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_kinds/prefix-bert/adapter/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_kinds/projection-bert/start/adapter_model.safetensors", "adapter_model.safetensors" },
    { "adapter_hub/seq/adapter/adapter.safetensors", "adapter.safetensors" },
    { "adapter_hub/seq-hub/adapter/pytorch_model_head.bin", "pytorch_model_head.bin" },
};

static char dir[40];

static void put(const char *name, const void *data, size_t n)
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    fuzz_file(path, data, n);
}

static void remove_folder(void) { ses_dir_remove(dir, NULL); }

/* One folder for the whole run: the tensors if they are others than before, the config anew. */
static bool folder(size_t kind)
{
    static bool made, filled;
    static size_t last;
    char path[120];
    size_t n;
    if (!made) {
        fuzz_folder(dir);
        made = !atexit(remove_folder);
    }
    if (filled && kind == last) return made;
    snprintf(path, sizeof path, "tests/fixtures/%s", weights[kind][0]);
    char *data = ses_file_read(path, 1 << 20, &n, NULL);
    if (data) put(weights[kind][1], data, n);
    filled = data != NULL, last = kind;
    ses_free(data);
    return made && filled; /* false: not run from the source folder */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ses_device *dev; /* one for all: a try is short */
    ses_err e = { 0 };
    if (!dev) dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    size_t kind =
        n && data[0] >= '0' && data[0] < (int)('0' + SES_LEN(weights)) ? (size_t)(data[0] - '0') : 0;
    if (!dev || !folder(kind)) return 0;
    if (kind) data++, n--;
    put("adapter_config.json", data, n);
    put("head_config.json", data, n);
    /* the base model is given, or found by the config */
    ses_adapter_options lora = { .rank = 2 }; /* trained further */
    ses_model_options o = { .check_only = true, .base = n % 2 ? NULL : base };
    if (n % 4 > 1) o.train = true, o.adapter_options = &lora;
    ses_model *m = ses_model_open(dir, dev, &o, &e);
    MUST((m != NULL) == (e.code == SES_OK));
    ses_model_free(m);
    return 0;
}
