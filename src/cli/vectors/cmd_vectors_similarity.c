/* vectors similarity: correlation of cosines with similarities by people. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "vector_options.h"
#include "word_lists.h"

typedef struct args {
    ses_word_pairs_options pairs;
    int64_t limit;
    bool json, keep_case;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(args, limit, "restrict", "300000", 0, 1e9, "use the first N words of the file; 0: all",
                .value = "N", .zero_word = "all"),
    SES_OPT_FLAG(args, keep_case, "case", "words that differ in case are different"),
    SES_OPT_FLAG(args, pairs.unknown_is_zero, "unknown-as-zero",
                 "pairs with an unknown word have similarity 0; default: they are left out"),
    SES_OPT_FLAG(args, pairs.subwords, "subwords",
                 "unknown words have the vectors of their subwords, if the file has any"),
    SES_OPT_JSON(args, json),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_word_lists lists = { 0 };
    ses_vectors *v = NULL;
    bool ok = true;
    for (int i = 1; ok && i < c->n_operands; i++) ok = ses_word_lists_add(&lists, c->operands[i], e);
    ok = ok && (v = ses_vectors_open(c->operands[0], e)) && ses_vectors_read_words(v, a->limit, e) &&
         ses_word_lists_evaluate(&lists, v, a->limit, a->keep_case ? SES_FOLD_NONE : SES_FOLD_UNICODE,
                                 &a->pairs, e);
    if (ok) ses_report_duplicate_words(c, c->operands[0], v);
    if (ok && a->json) {
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (w) ses_word_lists_put_json(&lists, w);
        ok = w && ses_json_writer_print(w, e);
    } else
        ok = ok && ses_word_lists_show(&lists, &c->out, e);
    ses_vectors_free(v);
    ses_word_lists_free(&lists);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors similarity vectors.bin wordsim353.txt simlex999.txt", "Spearman's rho of two lists" },
    { "sesame vectors similarity vectors.bin word-sim", "all lists in a folder" },
    { 0 },
};

const ses_command ses_command_vectors_similarity = {
    .name = "vectors-similarity",
    .usage = "FILE LIST...",
    .summary = "compare cosines with similarities by people",
    .description =
        "Compares the cosines of word pairs with similarities by people, by Spearman's and Pearson's "
        "correlation, as gensim's evaluate_word_pairs. A LIST has a line per pair: two words and a "
        "number, separated by tabs or blanks; of a folder all lists are used.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = -1,
    .is_action = true,
    .run = run,
};
