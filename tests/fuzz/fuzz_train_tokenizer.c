/* The file of `train-tokenizer --stages`. A trained tokenizer opens and encodes a text. The first byte gives
 * the type. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"
#include "sesame/tokenizer.h"

static const char corpus[] =
    "The keeper counts plums.\nA bell rings, and he counts.\n\xc3\x9c\x62\x65r 12 bells\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    static const char *const types[] = { "wordpiece", "bpe", "unigram", "wordlevel" };
    char dir[40], stages[64], texts[64], out[64], *list[16];
    const char *words[16] = { "--type", types[data[0] % 4], "--vocab-size", "90", "--threads", "1", "-o",
                              out,      "--stages",         stages,         texts };
    for (size_t i = 0; i < 16; i++) list[i] = (char *)(uintptr_t)words[i];
    ses_err e = { 0 };
    fuzz_folder(dir);
    snprintf(stages, sizeof stages, "%s/stages.json", dir);
    snprintf(texts, sizeof texts, "%s/texts", dir);
    snprintf(out, sizeof out, "%s/tokenizer.json", dir);
    fuzz_file(stages, data + 1, n - 1);
    fuzz_file(texts, corpus, sizeof corpus - 1);
    bool ok = fuzz_command("train-tokenizer", list, &e);
    MUST(ok == !e.code && ok == !access(out, F_OK));
    ses_tokenizer *t = ok ? ses_tokenizer_open(out, &e) : NULL;
    MUST(!ok || t);
    ses_encode_ctx *x = t ? ses_encode_ctx_new(t, &e) : NULL;
    ses_err ignored = { 0 };
    if (x) ses_encode(x, &(ses_input){ .text = { corpus, 24 } }, &(ses_encode_options){ 0 }, &ignored);
    ses_encode_ctx_free(x);
    ses_tokenizer_free(t);
    unlink(stages);
    unlink(texts);
    unlink(out);
    rmdir(dir);
    return 0;
}
