/* Words of shell completion. */
#include "completion_words.h"

#include "base/alloc.h"
#include "base/file.h"
#include "folder/model_folder.h"
#include "hub/hub_env.h"
#include "hub/hub_scan.h"
#include "model/bundled_models.h"
#include "sesame/examples.h"
#include "sesame/finetune.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- models: bundled, in the folders of SESAME_MODELS, in the Hugging Face cache ---- */

typedef struct model_folder {
    const ses_bundled_dirs *dirs;
    size_t at;
} model_folder;

static bool is_model(const char *root, const char *name)
{
    char *dir = ses_path_join(root, name, NULL);
    bool yes = dir && (ses_model_folder_is(dir) || ses_adapter_folder_is(dir));
    ses_free(dir);
    return yes;
}

/* A name in several folders means the first. */
static bool put_model(void *ctx, const char *name)
{
    const model_folder *f = ctx;
    for (size_t i = 0; i < f->at; i++)
        if (is_model(f->dirs->dir[i], name)) return true;
    if (name[0] != '.' && !strchr(name, '\n') && is_model(f->dirs->dir[f->at], name)) puts(name);
    return true;
}

/* Models of the Hugging Face cache: by the names of their folders, without looking into them. */
static void put_cached(void)
{
    ses_buf names = { 0 };
    ses_hub_name name;
    char *cache = ses_hub_cache_dir(NULL);
    bool ok = cache && ses_hub_names(cache, &names, NULL);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1)
        if (ses_hub_name_of_folder(names.data + at, &name)) puts(name.id);
    ses_buf_free(&names);
    ses_free(cache);
}

static bool put_models(ses_err *e)
{
    ses_bundled_dirs dirs;
    bool ok = ses_bundled_find_dirs(&dirs, NULL, e);
    model_folder f = { .dirs = &dirs };
    for (; ok && f.at < dirs.n; f.at++) ses_dir_each(dirs.dir[f.at], put_model, &f, NULL);
    ses_bundled_dirs_free(&dirs);
    put_cached();
    return ok;
}

/* ---- tasks and devices ---- */

static bool put_tasks(ses_err *e)
{
    (void)e;
    const char *name;
    const ses_benchmark *b;
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++) puts(name);
    for (size_t i = 0; (b = ses_benchmark_at(i)); i++) puts(b->name);
    return true;
}

static bool put_devices(ses_err *e)
{
    (void)e;
    ses_gpu gpu;
    puts("cpu");
    for (int i = 0; ses_gpu_describe(i, &gpu); i++) {
        if (!i) puts("cuda");
        printf("cuda:%d\n", i);
    }
    return true;
}

bool ses_completion_words_print(const char *kind, bool *known, ses_err *e)
{
    static const struct {
        const char *name;
        bool (*put)(ses_err *e);
    } kinds[] = { { "models", put_models }, { "tasks", put_tasks }, { "devices", put_devices } };
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if ((*known = !strcmp(kind, kinds[i].name))) return kinds[i].put(e);
    return true;
}
