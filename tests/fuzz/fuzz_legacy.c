/* Tokenizer files of older folders, separated by lines of "--"; an empty section is an absent file. A
 * tokenizer that opens has a vocabulary. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_folder.h"

#include "sesame/tokenizer.h"

static const char *const name[] = {
    "tokenizer_config.json",  "vocab.txt", "vocab.json", "merges.txt", "added_tokens.json",
    "special_tokens_map.json"
};

/* Length of the section at the start of the text; *skip: with its separator. */
static size_t section(const char *text, size_t n, size_t *skip)
{
    for (size_t i = 0; i + 3 <= n; i++)
        if ((!i || text[i - 1] == '\n') && !memcmp(text + i, "--\n", 3)) return *skip = i + 3, i;
    return *skip = n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], path[80];
    ses_err e = { 0 };
    const char *text = (const char *)data;
    if (!n) return 0;
    fuzz_folder(dir);
    for (size_t i = 0, skip; i < SES_LEN(name); i++, text += skip, n -= skip) {
        size_t len = section(text, n, &skip);
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        if (len) fuzz_file(path, text, len);
    }
    ses_tokenizer *t = ses_tokenizer_open(dir, &e);
    MUST(!t == (e.code != SES_OK));
    MUST(!t || ses_tokenizer_vocab_size(t) >= 0);
    ses_tokenizer_free(t);
    for (size_t i = 0; i < SES_LEN(name); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        unlink(path);
    }
    rmdir(dir);
    return 0;
}
