/* Names of tokenizer files in a model folder. */
#include "tokenizer_files.h"

#include "base/alloc.h"
#include "base/file.h"

const char *const ses_tokenizer_file_names[SES_TOKENIZER_FILES] = {
    "tokenizer.json",    "tokenizer_config.json",
    "vocab.txt",         "vocab.json",
    "merges.txt",        "spiece.model",
    "spm.model",         "sentencepiece.bpe.model",
    "tokenizer.model",   "bpe.codes",
    "added_tokens.json", "special_tokens_map.json",
};

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
