/* tokenizer: converts tokenizer files. */
#include "base/alloc.h"
#include "cli/command.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

#include <string.h>

typedef struct args {
    bool overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace an existing OUT"),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    if (strcmp(c->operands[0], "convert"))
        return ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected convert", c->operands[0]);
    char *path = ses_model_resolve(c->operands[1], NULL, e);
    bool ok = path && ses_tokenizer_convert(path, c->operands[2], a->overwrite, e);
    ses_free(path);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame tokenizer convert t5-base tokenizer.json", "convert spiece.model and its 100 sentinel tokens" },
    { 0 },
};

const ses_command ses_command_tokenizer = {
    .name = "tokenizer",
    .usage = "convert PATH OUT",
    .summary = "convert a tokenizer to tokenizer.json",
    .description =
        "Converts a tokenizer to a tokenizer.json that transformers loads, too. PATH is a model "
        "folder or name, a SentencePiece .model, a vocab.txt or a tokenizer.json. In a folder without "
        "tokenizer.json the older formats are read: vocab.txt; vocab.json and merges.txt; "
        "spiece.model, sentencepiece.bpe.model or spm.model; source.spm and vocab.json. "
        "tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json determine "
        "the tokenizer class.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 3,
    .max_operands = 3,
    .operand_words = "convert",
    .run = run,
};
