/* GloVe's four programs (vocab_count, cooccur, shuffle, glove) in sequence, one thread, bit for bit, with
 * their deviations from a textbook version: everything is in double precision; biases step without the
 * learning rate; squared gradients start at 1; the output is word plus context vector; "<unk>", the mean of
 * the last 100 words, is the last line. */
#include "exact.h"

#include "base/alloc.h"
#include "base/str.h"
#include "glibc_random.h"
#include "glove_records.h"

#include <math.h>
#include <string.h>

enum { VECTOR_SIZE, WINDOW_SIZE, X_MAX, ITER, SEED, MEMORY, MIN_COUNT, ETA, ALPHA, N_SETTINGS };
static const ses_exact_setting setting[N_SETTINGS] = {
    [VECTOR_SIZE] = { "vector-size", "50", SES_EXACT_INTEGER },
    [WINDOW_SIZE] = { "window-size", "15", SES_EXACT_INTEGER },
    [X_MAX] = { "x-max", "100", SES_EXACT_REAL },
    [ITER] = { "iter", "25", SES_EXACT_INTEGER },
    [SEED] = { "seed", "1", SES_EXACT_INTEGER },
    [MEMORY] = { "memory", NULL, SES_EXACT_REAL },
    [MIN_COUNT] = { "min-count", "1", SES_EXACT_INTEGER },
    [ETA] = { "eta", "0.05", SES_EXACT_REAL },
    [ALPHA] = { "alpha", "0.75", SES_EXACT_REAL },
};
enum { PROGRESS_EVERY = 1 << 16, RARE = 100, MAX_DIM = 1 << 16 };
static const double COUNT_MEMORY = 3, SHUFFLE_MEMORY = 2,
                    CLIP = 100; /* defaults of cooccur, shuffle and glove */

typedef struct trainer {
    ses_exact_job *job;
    ses_mmap file;
    ses_glove_vocab vocab;
    ses_record_file counts, shuffled;
    int dim, width; /* width: with the bias */
    double *weight, *squares, *step[2];
} trainer;

static bool make_weights(trainer *t, ses_err *e)
{
    size_t n;
    ses_glibc_random g = ses_glibc_random_of((uint32_t)(int64_t)t->job->value[SEED]);
    if (!ses_mul_size(2 * t->vocab.n, (size_t)t->width, &n))
        return ses_fail(e, SES_ENOMEM, "too many weights");
    t->weight = ses_alloc_huge(n, sizeof *t->weight, e);
    t->squares = ses_alloc_huge(n, sizeof *t->squares, e);
    for (int i = 0; i < 2; i++) t->step[i] = ses_alloc_array((size_t)t->dim, sizeof *t->step[i], e);
    if (!t->weight || !t->squares || !t->step[0] || !t->step[1]) return false;
    for (size_t i = 0; i < n; i++) {
        t->weight[i] = (ses_glibc_rand(&g) / (double)SES_GLIBC_RAND_MAX - 0.5) / t->dim;
        t->squares[i] = 1;
    }
    return true;
}

static double finite_or_zero(double x) { return isfinite(x) ? x : 0; }

/* Steps of one side's row; false: one is not finite, and the row must stay. */
static bool adapt(const double *restrict other, double *restrict squares, double *restrict step, double f,
                  double eta, int dim)
{
    bool finite = true;
    for (int i = 0; i < dim; i++) {
        double g = fmin(fmax(f * other[i], -CLIP), CLIP) * eta;
        step[i] = g / sqrt(squares[i]);
        finite &= isfinite(step[i]) != 0;
        squares[i] += g * g;
    }
    return finite;
}

static void train_pair(trainer *t, const ses_record *r)
{
    size_t width = (size_t)t->width,
           at[2] = { ((size_t)r->word - 1) * width, ((size_t)r->context - 1 + t->vocab.n) * width };
    double *w[2] = { t->weight + at[0], t->weight + at[1] },
           *s[2] = { t->squares + at[0], t->squares + at[1] };
    const double *value = t->job->value;
    int dim = t->dim;
    double diff = 0;
    for (int i = 0; i < dim; i++) diff += w[0][i] * w[1][i];
    diff += w[0][dim] + w[1][dim] - log(r->value);
    double f = r->value > value[X_MAX] ? diff : pow(r->value / value[X_MAX], value[ALPHA]) * diff;
    if (!isfinite(diff) || !isfinite(f)) return;
    bool finite = adapt(w[1], s[0], t->step[0], f, value[ETA], dim);
    finite &= adapt(w[0], s[1], t->step[1], f, value[ETA], dim);
    for (int k = 0; finite && k < 2; k++)
        for (int i = 0; i < dim; i++) w[k][i] -= t->step[k][i];
    for (int k = 0; k < 2; k++) w[k][dim] -= finite_or_zero(f / sqrt(s[k][dim]));
    for (int k = 0; k < 2; k++) s[k][dim] += f * f;
}

static bool train(trainer *t, ses_err *e)
{
    int64_t n = t->shuffled.n, all = n * (int64_t)t->job->value[ITER];
    bool ok = true;
    for (int64_t done = 0; ok && done < all;) {
        ses_record_reader from = { 0 };
        ses_record r;
        ok = ses_record_reader_open(&from, &t->shuffled, 0, n, e);
        for (int64_t i = 0; ok && i < n; i++, done++) {
            ok = ses_record_reader_next(&from, &r, e);
            if (ok && r.word > 0 && r.context > 0) train_pair(t, &r);
            if (ok && done % PROGRESS_EVERY == 0 && t->job->progress &&
                !t->job->progress(t->job->ctx, done, all))
                ok = ses_fail(e, SES_EIO, "interrupted; nothing was written");
        }
        ses_record_reader_free(&from);
    }
    return ok;
}

/* ---- output ---- */

static bool write_text(const trainer *t, ses_file_writer *w, ses_err *e)
{
    size_t n = t->vocab.n, rare = n < RARE ? n : RARE, width = (size_t)t->width, dim = (size_t)t->dim;
    double *unknown[2] = { t->step[0], t->step[1] };
    ses_buf line = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const double *a = t->weight + i * width, *b = t->weight + (n + i) * width;
        ses_buf_puts(&line, t->vocab.word[i].text);
        for (size_t c = 0; c < dim; c++) ses_buf_appendf(&line, " %f", a[c] + b[c]);
        ses_buf_put(&line, '\n');
        ok = ses_buf_ok(&line, e) && ses_file_writer_put(w, line.data, line.len, e);
        line.len = 0;
    }
    for (size_t k = 0; k < 2; k++) {
        memset(unknown[k], 0, dim * sizeof *unknown[k]);
        for (size_t i = n - rare; i < n; i++)
            for (size_t c = 0; c < dim; c++)
                unknown[k][c] += t->weight[(k * n + i) * width + c] / (double)rare;
    }
    ses_buf_puts(&line, "<unk>");
    for (size_t c = 0; c < dim; c++) ses_buf_appendf(&line, " %f", unknown[0][c] + unknown[1][c]);
    ses_buf_put(&line, '\n');
    ok = ok && ses_buf_ok(&line, e) && ses_file_writer_put(w, line.data, line.len, e);
    ses_buf_free(&line);
    return ok;
}

static bool write_vectors(const trainer *t, ses_err *e)
{
    ses_file_writer *w = ses_file_writer_open(t->job->output, t->job->overwrite, e);
    size_t n = 2 * t->vocab.n * (size_t)t->width;
    bool ok = w &&
              (t->job->binary ? ses_file_writer_put(w, t->weight, n * sizeof *t->weight, e)
                              : write_text(t, w, e)) &&
              ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}

static bool check(const ses_exact_job *job, ses_err *e)
{
    const ses_exact_program *p = &ses_exact_glove;
    if (job->value[SEED] == 0)
        return ses_fail(e, SES_EUSAGE, "--seed 0: GloVe takes the clock; give another seed");
    return ses_exact_range(p, job, VECTOR_SIZE, 1, MAX_DIM, e) &&
           ses_exact_range(p, job, WINDOW_SIZE, 1, 1 << 20, e) &&
           ses_exact_range(p, job, ITER, 0, 1 << 20, e) &&
           ses_exact_range(p, job, MIN_COUNT, 0, 1 << 30, e) &&
           ses_exact_range(p, job, SEED, -2147483648.0, 4294967295.0, e) &&
           (!job->text[MEMORY] || ses_exact_range(p, job, MEMORY, 1e-5, 1 << 20, e));
}

static bool run(ses_exact_job *job, ses_err *e)
{
    trainer *t = ses_alloc(sizeof *t, e);
    const double *value = job->value;
    if (!t) return false;
    t->job = job;
    t->dim = (int)value[VECTOR_SIZE];
    t->width = t->dim + 1;
    double count_memory = job->text[MEMORY] ? value[MEMORY] : COUNT_MEMORY,
           shuffle_memory = job->text[MEMORY] ? value[MEMORY] : SHUFFLE_MEMORY;
    bool ok = check(job, e) && ses_mmap_open(&t->file, job->corpus, e) &&
              ses_glove_count(&t->vocab, &t->file, job->corpus, (int64_t)value[MIN_COUNT], e) &&
              ses_glove_cooccur(&t->counts, job->output, &t->vocab, &t->file, job->corpus,
                                (int)value[WINDOW_SIZE], count_memory, e) &&
              ses_glove_shuffle(&t->shuffled, job->output, &t->counts, (uint32_t)(int64_t)value[SEED],
                                shuffle_memory, e);
    ses_record_file_free(&t->counts);
    ok = ok && make_weights(t, e) && train(t, e) && write_vectors(t, e);
    job->words = (int64_t)t->vocab.n;
    ses_record_file_free(&t->shuffled);
    ses_glove_vocab_free(&t->vocab);
    ses_mmap_free(&t->file);
    void *own[] = { t->weight, t->squares, t->step[0], t->step[1], t };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    return ok;
}

const ses_exact_program ses_exact_glove = { "glove", setting, N_SETTINGS, run };
