/* TensorFlow checkpoints if memory runs out: weights, configs and tokenizers. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/alloc.h"
#include "base/file.h"
#include "folder/tf_folder.h"
#include "io/tf/tf_read.h"
#include "sesame/model.h"
#include "text/legacy/legacy_files.h"

#include <stdio.h>
#include <unistd.h>

static bool open_weights(void *ctx, ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(ctx, e);
    bool ok = s != NULL;
    if (s) CHECK(ses_safetensors_count(s) > 20);
    ses_safetensors_free(s);
    return ok;
}

static bool open_config(void *ctx, ses_err *e)
{
    ses_json_doc *d = ses_model_config_open(ctx, NULL, e);
    bool ok = d != NULL;
    ses_json_free(d);
    return ok;
}

static bool read_tokenizer(void *ctx, ses_err *e)
{
    size_t n;
    char *text = ses_tokenizer_read_json(ctx, false, &n, e);
    bool ok = text != NULL;
    ses_free(text);
    return ok;
}

/* The file `checkpoint` decides, whatever fails. */
static bool find_prefix(void *ctx, ses_err *e)
{
    char *prefix = ses_tf_folder_prefix(ctx, e);
    bool ok = prefix != NULL;
    if (prefix) CHECK_STR(prefix, "m-1");
    ses_free(prefix);
    return ok;
}

static void check_prefix(void)
{
    static const char *const files[] = { "m-1.index", "m-2.index", "checkpoint" };
    static const char text[] = "model_checkpoint_path: \"m-1\"\n";
    char dir[] = "/tmp/tf_oom.XXXXXX", path[3][64];
    if (!CHECK(mkdtemp(dir))) return;
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", dir, files[i]);
        CHECK(ses_file_write(path[i], text, sizeof text - 1, true, NULL));
    }
    oom_sweep("prefix", find_prefix, dir);
    for (int i = 0; i < 3; i++) unlink(path[i]);
    CHECK(!rmdir(dir));
}

int main(void)
{
    static char bert[] = "tests/fixtures/tf/bert", xlnet[] = "tests/fixtures/tf/xlnet",
                t5[] = "tests/fixtures/tf/t5";
    oom_sweep("bert", open_weights, bert);
    oom_sweep("xlnet", open_weights, xlnet);
    oom_sweep("config", open_config, bert);
    oom_sweep("config of shapes", open_config, t5);
    oom_sweep("tokenizer", read_tokenizer, bert);
    check_prefix();
    return check_report();
}
