/* vectors eval: scores word vectors on analogies and similarities. */
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "vector_options.h"
#include "vectors/analogies.h"
#include "word_lists.h"

typedef struct args {
    const char *analogies;
    ses_opt_list similarity;
    int64_t limit, threads;
    int rules, method;
    bool json, keep_case, unknown_is_wrong, limit_given, rules_given, method_given;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, analogies, "analogies", "FILE",
                 "questions of four words, in sections that begin with \": NAME\" (questions-words.txt)"),
    SES_OPT_LIST(args, similarity, "similarity", "PATH",
                 "list of word pairs, or a folder of lists; see 'sesame vectors similarity'"),
    SES_OPT_CHOICE(args, rules, "rules", "word2vec", "word2vec|gensim",
                   "count analogies as compute-accuracy or as gensim's evaluate_word_analogies",
                   .was_set = offsetof(args, rules_given)),
    SES_OPT_CHOICE(args, method, "method", "3cosadd", "3cosadd|3cosmul", "how analogies are answered",
                   .was_set = offsetof(args, method_given)),
    SES_OPT_INT(args, limit, "restrict", NULL, 0, 1e9,
                "use the first N words of the file, 0: all (default: 30000 for analogies by the rules of "
                "word2vec, else 300000)",
                .value = "N", .zero_word = "all", .was_set = offsetof(args, limit_given)),
    SES_OPT_FLAG(args, keep_case, "case", "words that differ in case are different"),
    SES_OPT_FLAG(args, unknown_is_wrong, "unknown-is-wrong",
                 "questions with unknown words count as wrong, such pairs as 0; default: they are left out"),
    SES_OPT_THREADS(args, threads),
    SES_OPT_JSON(args, json),
};

enum { WORD2VEC_LIMIT = 30000 };

static int64_t analogy_limit(const args *a)
{
    if (a->limit_given) return a->limit;
    return a->rules == SES_ANALOGY_WORD2VEC ? WORD2VEC_LIMIT : SES_WORD_LISTS_LIMIT;
}

static int64_t list_limit(const args *a) { return a->limit_given ? a->limit : SES_WORD_LISTS_LIMIT; }

/* ---- analogies ---- */

static double percent(const ses_analogy_section *s)
{
    return s->scored ? 100 * (double)s->correct / (double)s->scored : 0;
}

static void put_row(ses_text_table *t, const ses_term *term, const ses_analogy_section *s, const char *name,
                    ses_style style)
{
    char bar[SES_BAR_SIZE];
    ses_text_table_cell(t, "%s", name);
    ses_text_table_style(t, style);
    ses_text_table_cell(t, "%lld", (long long)s->questions);
    ses_text_table_cell(t, "%lld", (long long)s->scored);
    ses_text_table_cell(t, "%lld", (long long)s->correct);
    ses_text_table_cell(t, "%.2f %%", percent(s));
    ses_text_table_style(t, style);
    ses_text_table_cell(t, "%s", ses_bar_text(term, bar, percent(s) / 100, 20));
    ses_text_table_style(t, SES_BLUE);
}

static bool show_analogies(const ses_call *c, const ses_analogy_result *r, ses_err *e)
{
    static const int importance[] = { 0, 2, 3, 3, 0, 1 };
    ses_text_table *t = ses_text_table_new("Analogies|>Questions|>Known|>Correct|>Accuracy|", e);
    if (!t) return false;
    for (size_t i = 0; i < r->n; i++) put_row(t, &c->out, &r->section[i], r->section[i].name, SES_PLAIN);
    ses_analogy_section semantic = ses_analogy_sum(r, 0, SES_ANALOGY_SEMANTIC),
                        syntactic = ses_analogy_sum(r, SES_ANALOGY_SEMANTIC, r->n),
                        all = ses_analogy_sum(r, 0, r->n);
    if (r->n > SES_ANALOGY_SEMANTIC) {
        put_row(t, &c->out, &semantic, "semantic", SES_BOLD);
        put_row(t, &c->out, &syntactic, "syntactic", SES_BOLD);
    }
    put_row(t, &c->out, &all, "total", SES_BOLD);
    ses_text_table_fit(t, c->out.width, importance);
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    if (r->invalid && !c->quiet)
        fprintf(stderr, "%lld lines are not four words and were left out\n", (long long)r->invalid);
    return ok;
}

static void put_section(ses_json_writer *w, const char *key, const ses_analogy_section *s)
{
    if (key) ses_json_put_key(w, key);
    ses_json_begin_object(w);
    if (s->name) ses_json_member_string(w, "section", s->name);
    ses_json_member_int(w, "questions", s->questions);
    ses_json_member_int(w, "scored", s->scored);
    ses_json_member_int(w, "correct", s->correct);
    ses_json_put_key(w, "accuracy");
    if (s->scored)
        ses_json_put_real(w, (double)s->correct / (double)s->scored);
    else
        ses_json_put_null(w);
    ses_json_end_object(w);
}

static void put_analogies(ses_json_writer *w, const args *a, const ses_analogy_result *r)
{
    ses_analogy_section semantic = ses_analogy_sum(r, 0, SES_ANALOGY_SEMANTIC),
                        syntactic = ses_analogy_sum(r, SES_ANALOGY_SEMANTIC, r->n),
                        all = ses_analogy_sum(r, 0, r->n);
    ses_json_member_object(w, "analogies");
    ses_json_member_string(w, "rules", a->rules == SES_ANALOGY_WORD2VEC ? "word2vec" : "gensim");
    ses_json_member_string(w, "method", a->method ? "3cosmul" : "3cosadd");
    ses_json_member_int(w, "restrict", analogy_limit(a));
    ses_json_member_array(w, "sections");
    for (size_t i = 0; i < r->n; i++) put_section(w, NULL, &r->section[i]);
    ses_json_end_array(w);
    put_section(w, "semantic", &semantic);
    put_section(w, "syntactic", &syntactic);
    put_section(w, "total", &all);
    ses_json_member_int(w, "invalid_lines", r->invalid);
    ses_json_end_object(w);
}

/* ---- both ---- */

static bool show(const ses_call *c, const ses_analogy_result *r, const ses_word_lists *l, ses_err *e)
{
    const args *a = c->args;
    if (a->analogies && !show_analogies(c, r, e)) return false;
    if (a->analogies && l->n) putchar('\n');
    return !l->n || ses_word_lists_show(l, &c->out, e);
}

static bool put_json(const ses_call *c, const ses_analogy_result *r, const ses_word_lists *l, ses_err *e)
{
    const args *a = c->args;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    if (a->analogies) put_analogies(w, a, r);
    if (l->n) {
        ses_json_put_key(w, "similarity");
        ses_word_lists_put_json(l, w);
    }
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool score(const args *a, ses_vectors *v, ses_analogy_result *r, ses_word_lists *l, ses_err *e)
{
    ses_compute_args compute = { .threads = a->threads };
    ses_analogy_options analogies = { .rules = (ses_analogy_rules)a->rules,
                                      .limit = analogy_limit(a),
                                      .multiply = a->method == 1,
                                      .keep_case = a->keep_case,
                                      .unknown_is_wrong = a->unknown_is_wrong,
                                      .threads = ses_compute_threads(&compute) };
    ses_word_pairs_options pairs = { .unknown_is_zero = a->unknown_is_wrong };
    int64_t x = a->analogies ? analogy_limit(a) : 1, y = l->n ? list_limit(a) : 1;
    return ses_vectors_read_words(v,
                                  !x || !y ? 0
                                  : x > y  ? x
                                           : y,
                                  e) &&
           (!a->analogies || ses_analogies_score(r, v, a->analogies, &analogies, e)) &&
           (!l->n || ses_word_lists_evaluate(l, v, list_limit(a),
                                             a->keep_case ? SES_FOLD_NONE : SES_FOLD_UNICODE, &pairs, e));
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_word_lists lists = { 0 };
    ses_analogy_result r = { 0 };
    ses_vectors *v = NULL;
    bool ok = a->analogies || a->similarity.n ||
              ses_fail(e, SES_EUSAGE, "nothing to do: give --analogies FILE, --similarity PATH or both");
    if (ok && !a->analogies && (a->rules_given || a->method_given))
        ok = ses_fail(e, SES_EUSAGE, "--%s has no effect without --analogies",
                      a->rules_given ? "rules" : "method");
    for (size_t i = 0; ok && i < a->similarity.n; i++)
        ok = ses_word_lists_add(&lists, a->similarity.item[i], e);
    ok = ok && (v = ses_vectors_open(c->operands[0], e)) && score(a, v, &r, &lists, e);
    if (ok) ses_report_duplicate_words(c, c->operands[0], v);
    ok = ok && (a->json ? put_json(c, &r, &lists, e) : show(c, &r, &lists, e));
    ses_vectors_free(v);
    ses_analogy_result_free(&r);
    ses_word_lists_free(&lists);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors eval vectors.bin --analogies questions-words.txt", "accuracy of each section" },
    { "sesame vectors eval vectors.bin --analogies questions-words.txt --similarity word-sim --rules gensim",
      "analogies and similarities as gensim counts them" },
    { 0 },
};

const ses_command ses_command_vectors_eval = {
    .name = "vectors-eval",
    .usage = "FILE",
    .summary = "score word vectors on analogies and similarities",
    .description =
        "Scores word vectors on analogy questions and on lists of word pairs. Counts equal the counts of "
        "word2vec's compute-accuracy and of gensim.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
