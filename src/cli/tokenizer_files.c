#include "tokenizer_files.h"

const char *const ses_tokenizer_file[SES_TOKENIZER_FILES] = {
    "tokenizer.json",    "tokenizer_config.json",
    "vocab.txt",         "vocab.json",
    "merges.txt",        "spiece.model",
    "spm.model",         "sentencepiece.bpe.model",
    "tokenizer.model",   "bpe.codes",
    "added_tokens.json", "special_tokens_map.json",
};
