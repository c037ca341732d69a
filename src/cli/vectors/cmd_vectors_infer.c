/* vectors infer: paragraph vectors of new texts. */
#include "cli/command.h"
#include "cli/compute_args.h"

#include "base/alloc.h"
#include "base/number.h"
#include "vectors/paragraph/paragraph.h"

enum { TEXTS_AT_ONCE = 512 };

typedef struct args {
    int64_t threads, epochs;
    bool json;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(args, epochs, "epochs", NULL, 1, 1e6,
                "passes over each text (default: the number of the training)", .value = "N"),
    SES_OPT_THREADS(args, threads),
    SES_OPT_JSON(args, json),
};

static bool print(const float *x, int64_t rows, int64_t dim, bool json, ses_buf *line, ses_err *e)
{
    for (int64_t i = 0; i < rows; i++) {
        line->len = 0;
        if (json) ses_buf_put(line, '[');
        for (int64_t c = 0; c < dim; c++) {
            char text[SES_NUMBER_CHARS];
            ses_format_float(x[i * dim + c], text);
            ses_buf_appendf(line, "%s%s", c ? json ? "," : " " : "", text);
        }
        ses_buf_puts(line, json ? "]\n" : "\n");
        if (!ses_buf_ok(line, e)) return false;
        if (fwrite(line->data, 1, line->len, stdout) != line->len)
            return ses_fail(e, SES_EIO, "cannot write");
    }
    return true;
}

static bool infer_file(const ses_pv_model *m, const char *path, const args *a, ses_thread_pool *pool,
                       ses_err *e)
{
    ses_kernels k = ses_kernels_cpu(SES_ISA_BEST);
    ses_word_reader r = { 0 };
    ses_documents d = { 0 };
    ses_buf line = { 0 };
    float *x = ses_alloc_array(TEXTS_AT_ONCE, (size_t)m->o.dim * sizeof *x, e);
    bool ok = x && ses_word_reader_open(&r, path, m->o.rule, e);
    while (ok && (ok = ses_documents_next(&d, &r, &m->vocab, TEXTS_AT_ONCE, e)) && d.n)
        ok = ses_pv_infer(m, &d, a->epochs ? a->epochs : m->o.epochs, &k, pool, x, e) &&
             print(x, d.n, m->o.dim, a->json, &line, e);
    if (!ok) ses_wrap(e, "%s", path);
    ses_word_reader_free(&r);
    ses_documents_free(&d);
    ses_buf_free(&line);
    ses_free(x);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_pv_model m = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(a->threads ? (int)a->threads : ses_cpu_count(), e);
    bool ok = pool && ses_pv_load(&m, c->operands[0], e);
    if (ok && c->n_operands == 1) ok = infer_file(&m, "-", a, pool, e);
    for (int i = 1; ok && i < c->n_operands; i++) ok = infer_file(&m, c->operands[i], a, pool, e);
    ses_pv_free(&m);
    ses_thread_pool_free(pool);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors infer reviews.safetensors < new.txt", "a vector for each line of new.txt" },
    { 0 },
};

const ses_command ses_command_vectors_infer = {
    .name = "vectors-infer",
    .usage = "FILE [TEXTS...]",
    .summary = "compute paragraph vectors of new texts",
    .description = "Computes the vectors of new texts, one text per line, with paragraph vectors trained by "
                   "'sesame vectors "
                   "train --model pv-dbow' or pv-dm. A line of numbers is written for each text; a text "
                   "without known words "
                   "gets zeros. Words and output weights do not change, and the vector of a text depends on "
                   "its words only.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .is_action = true,
    .run = run,
};
