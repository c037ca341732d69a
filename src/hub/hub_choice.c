/* The files of a model that Sesame reads. */
#include "base/str.h"
#include "hub_files.h"

#include <string.h>

/* Names that are read in the main folder and in a module's folder. */
static const struct {
    const char *name;
    ses_hub_use use;
} known[] = {
    { "config.json", SES_HUB_CONFIG },
    { "bert_config.json", SES_HUB_CONFIG }, /* google-research's and OpenAI's names */
    { "albert_config.json", SES_HUB_CONFIG },
    { "xlnet_config.json", SES_HUB_CONFIG },
    { "generator_config.json", SES_HUB_CONFIG },
    { "hparams.json", SES_HUB_CONFIG },
    { "vocab_chinese.txt", SES_HUB_TOKENIZER },
    { "encoder.json", SES_HUB_TOKENIZER },
    { "vocab.bpe", SES_HUB_TOKENIZER },
    { "30k-clean.model", SES_HUB_TOKENIZER },
    { "sentencepiece.model", SES_HUB_TOKENIZER },
    { "adapter_config.json", SES_HUB_CONFIG },
    { "head_config.json", SES_HUB_CONFIG },
    { "modules.json", SES_HUB_CONFIG },
    { "generation_config.json", SES_HUB_OPTIONAL },
    { "config_sentence_transformers.json", SES_HUB_OPTIONAL },
    { "README.md", SES_HUB_OPTIONAL },
    { "tokenizer.json", SES_HUB_TOKENIZER },
    { "vocab.txt", SES_HUB_TOKENIZER },
    { "vocab.json", SES_HUB_TOKENIZER },
    { "target_vocab.json", SES_HUB_TOKENIZER },
    { "merges.txt", SES_HUB_TOKENIZER },
    { "bpe.codes", SES_HUB_TOKENIZER },
    { "spiece.model", SES_HUB_TOKENIZER },
    { "spm.model", SES_HUB_TOKENIZER },
    { "sentencepiece.bpe.model", SES_HUB_TOKENIZER },
    { "tokenizer.model", SES_HUB_TOKENIZER },
    { "source.spm", SES_HUB_TOKENIZER },
    { "target.spm", SES_HUB_TOKENIZER },
    { "tokenizer_config.json", SES_HUB_OPTIONAL },
    { "added_tokens.json", SES_HUB_OPTIONAL },
    { "special_tokens_map.json", SES_HUB_OPTIONAL },
};

/* Kinds of weights, in the order of preference: a single file, an index, its shards BEGIN...END. */
static const struct {
    const char *single, *index, *begin, *end;
} weights[] = {
    { "model.safetensors", "model.safetensors.index.json", "model-", ".safetensors" },
    { "pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-", ".bin" },
    { "model.sesame-int8", "model.sesame-int8.index.json", "model-", ".sesame-int8" },
};

static bool begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);
    return n >= k && !strcmp(s + n - k, with);
}

/* The name of the file in its folder, if that is one of Sesame's: the main folder, or "1_Pooling" and the
 * like; *dir: bytes of the folder with its slash. NULL: another folder. */
static const char *name_in_folder(const char *path, size_t *dir)
{
    const char *slash = strchr(path, '/');
    *dir = slash ? (size_t)(slash + 1 - path) : 0;
    if (!slash) return path;
    size_t digits = strspn(path, "0123456789");
    if (!digits || path[digits] != '_' || strchr(slash + 1, '/')) return NULL;
    return slash + 1;
}

/* Whether the folder path[0, dir) contains the file `name`. The list is sorted by path. */
static bool folder_has(const ses_hub_files *f, const char *path, size_t dir, const char *name)
{
    char full[SES_HUB_PATH_MAX + 64];
    if (dir + strlen(name) >= sizeof full) return false;
    memcpy(full, path, dir);
    memcpy(full + dir, name, strlen(name) + 1);
    size_t low = 0, high = f->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(f->item[mid].path, full);
        if (!order) return true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

static bool is_tf_checkpoint(const char *name)
{
    return strstr(name, ".ckpt") && (ends(name, ".index") || strstr(name, ".data-")) && !strchr(name, '/');
}

static ses_hub_use weights_use(const ses_hub_files *f, const char *path, size_t dir)
{
    const char *name = path + dir;
    for (size_t i = 0; i < SES_LEN(weights); i++) {
        bool single = folder_has(f, path, dir, weights[i].single),
             sharded = folder_has(f, path, dir, weights[i].index);
        if (!single && !sharded) continue;
        if (single) return strcmp(name, weights[i].single) ? SES_HUB_SKIPPED : SES_HUB_WEIGHTS;
        bool shard = begins(name, weights[i].begin) && ends(name, weights[i].end);
        return shard || !strcmp(name, weights[i].index) ? SES_HUB_WEIGHTS : SES_HUB_SKIPPED;
    }
    return is_tf_checkpoint(name) ? SES_HUB_WEIGHTS : SES_HUB_SKIPPED;
}

static ses_hub_use use_of(const ses_hub_files *f, const char *path)
{
    static const char *const adapters[] = { "adapter_model.safetensors", "adapter.safetensors",
                                            "model_head.safetensors", "pytorch_adapter.bin",
                                            "pytorch_model_head.bin" };
    size_t dir;
    const char *name = name_in_folder(path, &dir);
    if (!name) return SES_HUB_SKIPPED;
    for (size_t i = 0; i < SES_LEN(known); i++)
        if (!strcmp(name, known[i].name))
            return dir && !strcmp(name, "README.md") ? SES_HUB_SKIPPED : known[i].use;
    if (begins(name, "sentence_") && ends(name, "_config.json")) return SES_HUB_OPTIONAL;
    for (size_t i = 0; i < SES_LEN(adapters); i++)
        if (!strcmp(name, adapters[i])) return SES_HUB_WEIGHTS;
    return weights_use(f, path, dir);
}

void ses_hub_files_choose(ses_hub_files *f)
{
    bool has_fast = folder_has(f, "", 0, "tokenizer.json");
    for (size_t i = 0; i < f->n; i++) {
        ses_hub_file *x = &f->item[i];
        x->use = use_of(f, x->path);
        /* older tokenizer files are read without a tokenizer.json */
        if (x->use == SES_HUB_TOKENIZER && has_fast && strcmp(x->path, "tokenizer.json"))
            x->use = SES_HUB_OPTIONAL;
    }
}

bool ses_hub_files_check_usable(const ses_hub_files *f, ses_err *e)
{
    static const char *const foreign[] = { "tf_model.h5", "flax_model.msgpack", "rust_model.ot", ".gguf",
                                           ".onnx" };
    const char *found = NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (f->item[i].use == SES_HUB_WEIGHTS || f->item[i].use == SES_HUB_TOKENIZER) return true;
        for (size_t k = 0; k < SES_LEN(foreign) && !found; k++)
            if (ends(f->item[i].path, foreign[k])) found = f->item[i].path;
    }
    return ses_fail(e, SES_EUNSUPPORTED,
                    "no files that Sesame reads: expected config.json with model.safetensors or "
                    "pytorch_model.bin%s%s",
                    found ? "; found " : "", found ? ses_quoted_of(found, strlen(found)).s : "");
}
