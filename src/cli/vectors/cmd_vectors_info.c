/* vectors info: describes a file of word vectors. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "vectors/vectors_impl.h"
#include "word_output.h"

#include <math.h>
#include <string.h>

enum { FIRST_WORDS = 8 };

typedef struct args {
    bool json, check;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, check, "check", "read all words and vectors: fails if the file is damaged"),
    SES_OPT_JSON(args, json),
};

/* Results of --check. */
typedef struct check {
    int64_t duplicates, zero;
    double shortest, mean, longest; /* lengths of vectors */
} check;

static bool check_all(ses_vectors *v, check *c, ses_err *e)
{
    int64_t dim = ses_vectors_dim(v), n = ses_vectors_count(v);
    float *x = ses_alloc_array((size_t)dim, sizeof *x, e);
    bool ok = x != NULL;
    double total = 0;
    for (int64_t i = 0; ok && i < n; i++) {
        double sum = 0;
        ok = ses_vectors_get(v, i, x, e);
        for (int64_t k = 0; ok && k < dim; k++) sum += (double)x[k] * x[k];
        double length = sqrt(sum);
        c->zero += sum == 0;
        c->shortest = i && c->shortest < length ? c->shortest : length;
        c->longest = c->longest > length ? c->longest : length;
        total += length;
    }
    c->mean = n ? total / (double)n : 0;
    c->duplicates = ses_vectors_duplicates(v);
    ses_free(x);
    return ok;
}

static bool put_json(const ses_vectors *v, int64_t words, const check *c, ses_err *e)
{
    ses_buf scratch = { 0 };
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "format", ses_vectors_format(v));
    ses_json_member_int(w, "words", words);
    ses_json_member_int(w, "dim", ses_vectors_dim(v));
    if (!v->is_folder) ses_json_member_uint(w, "bytes", v->n);
    ses_json_member_bool(w, "subwords", ses_vectors_has_subwords(v));
    ses_json_member_array(w, "first_words");
    for (int64_t i = 0; i < ses_vectors_count(v) && i < FIRST_WORDS; i++)
        ses_json_put_word(w, &scratch, ses_vectors_word(v, i));
    ses_json_end_array(w);
    if (c) {
        ses_json_member_int(w, "duplicates", c->duplicates);
        ses_json_member_int(w, "zero_vectors", c->zero);
        ses_json_member_object(w, "length");
        ses_json_member_real(w, "min", c->shortest);
        ses_json_member_real(w, "mean", c->mean);
        ses_json_member_real(w, "max", c->longest);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
    ses_buf_free(&scratch);
    return ses_json_writer_print(w, e);
}

static void put_text(const ses_call *call, const ses_vectors *v, int64_t words, const check *c)
{
    char number[SES_NUMBER_TEXT];
    ses_buf list = { 0 }, scratch = { 0 };
    const ses_term *t = &call->out;
    ses_show_line(t, "Format", "%s", v->format->title);
    ses_show_line(t, "Words", "%s", ses_grouped_text(number, words));
    ses_show_line(t, "Dimensions", "%lld", (long long)ses_vectors_dim(v));
    if (!v->is_folder) ses_show_line(t, "Size", "%s", ses_bytes_text(number, v->n));
    ses_show_line(t, "Subwords", "%s", ses_vectors_has_subwords(v) ? "yes" : "no");
    for (int64_t i = 0; i < ses_vectors_count(v) && i < FIRST_WORDS; i++)
        ses_buf_appendf(&list, "%s%s", i ? " " : "", ses_word_text(&scratch, ses_vectors_word(v, i)));
    if (list.data) {
        char escaped[512];
        ses_escape_controls(escaped, sizeof escaped, list.data);
        ses_show_line(t, "First words", "%s", escaped);
    }
    if (c) {
        ses_show_line(t, "Duplicates", "%s", ses_grouped_text(number, c->duplicates));
        ses_show_line(t, "Zero vectors", "%s", ses_grouped_text(number, c->zero));
        ses_show_line(t, "Lengths", "%.4g to %.4g, mean %.4g", c->shortest, c->longest, c->mean);
    }
    ses_buf_free(&list);
    ses_buf_free(&scratch);
}

static bool run(ses_call *call, ses_err *e)
{
    const args *a = call->args;
    check c = { 0 };
    ses_vectors *v = ses_vectors_open(call->operands[0], e);
    if (!v) return false;
    /* Only the header and the first words, unless the format has no count. */
    bool all = a->check || ses_vectors_stated_count(v) < 0;
    bool ok = ses_vectors_read_words(v, all ? 0 : FIRST_WORDS, e) && (!a->check || check_all(v, &c, e));
    int64_t words = ses_vectors_stated_count(v);
    if (ok && a->json)
        ok = put_json(v, words, a->check ? &c : NULL, e);
    else if (ok)
        put_text(call, v, words, a->check ? &c : NULL);
    ses_vectors_free(v);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors info vectors.bin", "format, number of words, dimensions" },
    { "sesame vectors info --check vectors.bin", "verify the whole file" },
    { 0 },
};

const ses_command ses_command_vectors_info = {
    .name = "vectors-info",
    .usage = "FILE",
    .summary = "describe a file of word vectors",
    .description = "Describes a file of word vectors. The format is detected from its contents.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
