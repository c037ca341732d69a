/* Names of tokenizer files in a model folder. */
#include "tokenizer_files.h"

#include "base/alloc.h"
#include "base/file.h"
#include "folder/model_folder.h"
#include "hub/adapter_folder.h"

#include <string.h>

enum { MAX_CONFIG = 16 << 20 };

const char *const ses_tokenizer_file_names[SES_TOKENIZER_FILES] = {
    "tokenizer.json",      "tokenizer_config.json",
    "vocab.txt",           "vocab.json",
    "merges.txt",          "spiece.model",
    "spm.model",           "sentencepiece.bpe.model",
    "tokenizer.model",     "bpe.codes",
    "added_tokens.json",   "special_tokens_map.json",
    "vocab_chinese.txt",   "encoder.json",
    "vocab.bpe",           "30k-clean.model",
    "sentencepiece.model", "source.spm",
    "target.spm",          "target_vocab.json",
};

/* The names of google-research and OpenAI. */
static const char *const other_names[][2] = {
    { "vocab.txt", "vocab_chinese.txt" },
    { "vocab.json", "encoder.json" },
    { "merges.txt", "vocab.bpe" },
    { "spiece.model", "30k-clean.model" },
    { "spiece.model", "sentencepiece.model" },
};

const char *ses_tokenizer_other_name(const char *name, size_t i)
{
    for (size_t k = 0; k < SES_LEN(other_names); k++)
        if (!strcmp(other_names[k][0], name) && i-- == 0) return other_names[k][1];
    return NULL;
}

bool ses_dir_has_tokenizer(const char *dir)
{
    bool found = false;
    for (int i = 0; i < SES_TOKENIZER_FILES && !found; i++) {
        char *path = ses_path_join(dir, ses_tokenizer_file_names[i], NULL);
        found = path && ses_path_exists(path);
        ses_free(path);
    }
    return found;
}

char *ses_tokenizer_home(const char *path, const char *base, ses_err *e)
{
    if (!ses_adapter_folder_is(path) || ses_dir_has_tokenizer(path)) return ses_strdup(path, e);
    if (base) return ses_strdup(base, e);
    char *file = ses_path_join(path, SES_ADAPTER_CONFIG, e), *home = NULL;
    ses_json_doc *config = file ? ses_json_load_object(file, MAX_CONFIG, e) : NULL;
    if (config) home = ses_adapter_folder_base(path, ses_json_root(config), e);
    ses_json_free(config);
    ses_free(file);
    return home;
}
