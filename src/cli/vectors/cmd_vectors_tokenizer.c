/* vectors tokenizer: writes the word-level tokenizer of a file of vectors. */
#include "base/file.h"
#include "cli/command.h"
#include "sesame/vectors.h"
#include "vector_options.h"
#include "vectors/word_tokenizer.h"

typedef struct args {
    const char *output;
    int64_t limit;
    bool overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_OUTPUT_FILE(args, output, "file to write, as tokenizer.json"),
    SES_OPT_INT(args, limit, "restrict", "0", 0, 1e7, "use the first N words of the file; 0: all",
                .value = "N", .zero_word = "all"),
    SES_OPT_OVERWRITE(args, overwrite),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    int64_t skipped;
    char count[SES_NUMBER_TEXT];
    if (!ses_output_file_check(a->output, a->overwrite, e)) return false;
    ses_vectors *v = ses_vectors_open(c->operands[0], e);
    bool ok = v && ses_vectors_read_words(v, a->limit, e) &&
              ses_word_tokenizer_write(v, a->output, a->overwrite, &skipped, e);
    if (ok && !c->quiet)
        fprintf(stderr, "%s: %s words\n", a->output, ses_grouped_text(count, ses_vectors_count(v) - skipped));
    if (ok) ses_report_duplicate_words(c, c->operands[0], v);
    if (ok && !c->quiet && skipped)
        fprintf(stderr, "%s words are not UTF-8 and were left out\n", ses_grouped_text(count, skipped));
    ses_vectors_free(v);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors tokenizer vectors.bin --output words.json", "the vocabulary of vectors.bin" },
    { "sesame finetune --config bilstm --vectors vectors.bin --tokenizer words.json --task classify --train "
      "train.tsv --output bilstm",
      "a recurrent classifier that starts with these vectors" },
    { 0 },
};

const ses_command ses_command_vectors_tokenizer = {
    .name = "vectors-tokenizer",
    .usage = "FILE",
    .summary = "write a tokenizer with the words of a file",
    .description =
        "Writes a word-level tokenizer whose vocabulary are the words of FILE, after [PAD], [UNK] and "
        "[SEP]. It splits texts at blanks and punctuation marks, and lower-cases them unless a word "
        "of FILE has a capital letter. [SEP] ends each text.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
