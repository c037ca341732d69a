/* CUDA kernels of word vectors against ref, on odd sizes: rounds of skip-gram and CBOW, tiles of GloVe. Also
 * the trainers on a GPU: the same bits again and after an interruption, words of a topic nearest to each
 * other. Skipped without a GPU. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "check.h"
#include "tensor/device_impl.h"
#include "vectors/train/vector_trainer.h"

#include <math.h>
#include <unistd.h>

static ses_device *gpu;

static uint32_t draw(uint64_t i) { return ses_rand32((ses_rng_key){ 21, 1, 2 }, i); }

static void *put(const void *from, size_t size)
{
    void *to = gpu->mem->alloc(gpu, size, NULL);
    gpu->mem->upload(gpu, to, from, size);
    return to;
}

static double worst_of(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}

/* ---- word_rounds ---- */

typedef struct shape {
    int64_t n, parts, part_words, words, cols;
    int32_t window, outputs;
    bool bags, tree;
    int64_t first, count;
} shape;

/* A text with frequent and rare words, kept with all probabilities. */
static void make_text(const shape *s, int32_t *id, uint32_t *keep)
{
    for (int64_t i = 0; i < s->n; i++) {
        double u = draw((uint64_t)i) / 4294967296.0;
        id[i] = draw((uint64_t)(i + s->n)) % 30 == 0 ? -1 : (int32_t)((double)s->words * u * u * u);
    }
    for (int64_t i = 0; i < s->words; i++) keep[i] = i % 3 ? UINT32_MAX : draw((uint64_t)i) | 1u << 30;
}

/* Alias cells, or paths of different nodes: word i has 1 + i % outputs of them. */
static void make_outputs(const shape *s, ses_sampling_cell *cell, int64_t *start, int32_t *path)
{
    start[0] = 0;
    for (int64_t i = 0; i < s->words; i++) {
        int64_t length = 1 + i % s->outputs;
        cell[i] = (ses_sampling_cell){ draw((uint64_t)i), (int32_t)(draw((uint64_t)i) % s->words) };
        for (int64_t k = 0; k < length; k++)
            path[start[i] + k] = 2 * (int32_t)((i + 3 * k) % s->words) + (int32_t)(draw((uint64_t)k) & 1);
        start[i + 1] = start[i] + length;
    }
}

static void run_rounds(ses_device *d, const ses_word_rounds *rounds, int64_t calls)
{
    ses_word_rounds r = *rounds;
    r.scratch = d->mem->alloc(d, (size_t)d->k_f32.word_rounds_size(&d->exec, &r), NULL);
    for (int64_t done = 0, part = (r.count + calls - 1) / calls; done < rounds->count; done += part) {
        r.first = rounds->first + done, r.rate = rounds->rate + done;
        r.count = rounds->count - done < part ? rounds->count - done : part;
        d->k_f32.word_rounds(&d->exec, &r);
    }
    d->mem->free(d, r.scratch);
}

static void test_rounds(const shape *s)
{
    int64_t rows = 2 * s->words, weights = rows * s->cols;
    int32_t *id = ses_alloc_array((size_t)s->n, sizeof *id, NULL);
    uint32_t *keep = ses_alloc_array((size_t)s->words, sizeof *keep, NULL);
    ses_sampling_cell *cell = ses_alloc_array((size_t)s->words, sizeof *cell, NULL);
    int64_t *start = ses_alloc_array((size_t)s->words + 1, sizeof *start, NULL);
    int32_t *path = ses_alloc_array((size_t)(s->words * s->outputs), sizeof *path, NULL);
    float *w = ses_alloc_array((size_t)weights, sizeof *w, NULL), *from = w,
          *x[2] = { ses_alloc_array((size_t)weights, sizeof *w, NULL),
                    ses_alloc_array((size_t)weights, sizeof *w, NULL) };
    float rate[128];
    double sums[3][2] = { { 0 } };
    ses_device *cpu = ses_device_open("cpu", &(ses_device_options){ .isa = SES_ISA_REF }, NULL);
    for (int64_t i = 0; i < weights; i++) w[i] = ((float)(draw((uint64_t)i) >> 8) * 0x1p-24f - 0.5f) * 0.4f;
    for (int64_t i = 0; i < s->count; i++) rate[i] = 0.05f - 0.0003f * (float)i;
    make_text(s, id, keep);
    make_outputs(s, cell, start, path);
    ses_word_rounds r = { .n = s->n,
                          .parts = s->parts,
                          .part_words = s->part_words,
                          .words = s->words,
                          .window = s->window,
                          .outputs = s->outputs,
                          .bags = s->bags,
                          .in_rows = s->words,
                          .rows = rows,
                          .cols = s->cols,
                          .in_step = 0.6f,
                          .out_step = 0.5f,
                          .keep_start = 77,
                          .step_start = 99,
                          .first = s->first,
                          .count = s->count,
                          .rate = rate };
    ses_word_rounds g = r;
    g.id = put(id, (size_t)s->n * sizeof *id), g.keep = put(keep, (size_t)s->words * sizeof *keep);
    g.negatives = put(cell, (size_t)s->words * sizeof *cell);
    g.path_start = put(start, (size_t)(s->words + 1) * sizeof *start);
    g.path = put(path, (size_t)(s->words * s->outputs) * sizeof *path);
    const void *on_gpu[] = { g.id, g.keep, g.negatives, g.path_start, g.path };
    if (!s->tree) g.path = NULL;
    for (int i = 0; i < 2; i++) { /* in one call, in several */
        g.weight = put(from, (size_t)weights * sizeof *w), g.sums = put(sums[1 + i], sizeof sums[0]);
        run_rounds(gpu, &g, i ? 3 : 1);
        gpu->mem->download(gpu, x[i], g.weight, (size_t)weights * sizeof *w);
        gpu->mem->download(gpu, sums[1 + i], g.sums, sizeof sums[0]);
        gpu->mem->free(gpu, g.weight), gpu->mem->free(gpu, g.sums);
    }
    r.id = id, r.keep = keep, r.negatives = cell, r.path_start = start, r.path = s->tree ? path : NULL;
    r.weight = w, r.sums = sums[0];
    run_rounds(cpu, &r, 1);
    double worst = worst_of(w, x[0], weights);
    CHECK_MSG(worst < 2e-5, "%d columns, window %d, %d outputs: differs by %g", (int)s->cols, s->window,
              s->outputs, worst);
    CHECK_MSG(sums[0][1] > 0 && sums[0][1] == sums[1][1], "%g pairs, not %g", sums[1][1], sums[0][1]);
    CHECK_MSG(fabs(sums[0][0] - sums[1][0]) < 1e-5 * sums[0][0], "loss %.9g, not %.9g", sums[1][0],
              sums[0][0]);
    CHECK(!memcmp(x[0], x[1], (size_t)weights * sizeof *w) && sums[1][1] == sums[2][1]);
    for (size_t i = 0; i < SES_LEN(on_gpu); i++) gpu->mem->free(gpu, (void *)(uintptr_t)on_gpu[i]);
    void *own[] = { id, keep, cell, start, path, w, x[0], x[1] };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    ses_device_free(cpu);
}

static void test_all_rounds(void)
{
    static const shape shapes[] = {
        { 3000, 8, 16, 300, 112, 5, 6, false, false, 0, 20 },
        { 3000, 8, 16, 300, 112, 5, 6, true, false, 0, 20 },
        { 2001, 3, 7, 97, 4, 2, 14, false, false, 5, 33 }, /* parts that end in the middle of a round */
        { 2001, 3, 7, 97, 132, 3, 9, true, false, 70, 26 },
        { 1500, 1, 31, 61, 12, 40, 2, false, false, 0, 7 },
        { 900, 2, 5, 255, 260, 1, 64, false, false, 1, 9 },
        { 1200, 4, 9, 63, 64, 4, 33, false, true, 0, 17 },
        { 1200, 4, 9, 63, 20, 6, 8, true, true, 2, 10 },
        { 400, 1, 1, 40, 516, 2, 3, false, false, 0, 64 },
        { 5000, 16, 64, 2, 32, 5, 6, false, false, 0, 4 }, /* two words: long runs */
    };
    for (size_t i = 0; i < SES_LEN(shapes); i++) test_rounds(&shapes[i]);
}

/* ---- glove_tiles ---- */

static void test_tiles(int64_t width, int64_t tiles, int64_t rows)
{
    int64_t most = 300, n = 2 * width * rows * tiles;
    float *w[2], *from = ses_alloc_array((size_t)n, sizeof *from, NULL),
                 *rate = ses_alloc_array((size_t)width, sizeof *rate, NULL);
    ses_glove_pair *pair = ses_alloc_array((size_t)(tiles * most), sizeof *pair, NULL);
    int64_t *start = ses_alloc_array((size_t)tiles, sizeof *start, NULL),
            *count = ses_alloc_array((size_t)tiles, sizeof *count, NULL);
    double *loss[2];
    for (int i = 0; i < 2; i++) {
        w[i] = ses_alloc_array((size_t)n, sizeof **w, NULL);
        loss[i] = ses_alloc_array((size_t)tiles, sizeof **loss, NULL);
    }
    for (int64_t i = 0; i < n; i++)
        from[i] = i / width % 2 ? 1 + (float)(i % 3) : (float)(draw((uint64_t)i) >> 8) * 0x1p-24f - 0.5f;
    for (int64_t i = 0; i < width; i++) rate[i] = i == 1 ? 1 : i == 2 ? 0 : 0.05f;
    for (int64_t t = 0; t < tiles; t++) {
        start[t] = 1000 + t * most, count[t] = t % 5 == 3 ? 0 : draw((uint64_t)t) % most;
        for (int64_t i = 0; i < most; i++) {
            uint32_t r = draw((uint64_t)(t * most + i));
            pair[t * most + i] =
                (ses_glove_pair){ (int32_t)(t * rows + r % rows), (int32_t)(t * rows + r / 7 % rows),
                                  i == 5 ? INFINITY : (float)(r % 100) / 20, (float)(r % 13) / 13 };
        }
    }
    size_t bytes = (size_t)n * sizeof *from, tile_bytes = (size_t)tiles * sizeof *start;
    for (int i = 0; i < 2; i++) memcpy(w[i], from, bytes);
    ses_glove host = { w[0], w[1], width, rate, rate, 0.4f };
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    ref.glove_tiles(NULL, &host, pair, 1000, start, count, tiles, loss[0]);
    ses_glove g = host;
    g.word = put(from, bytes), g.context = put(from, bytes);
    g.word_rate = g.context_rate = put(rate, (size_t)width * sizeof *rate);
    void *pairs = put(pair, (size_t)(tiles * most) * sizeof *pair), *starts = put(start, tile_bytes),
         *counts = put(count, tile_bytes), *losses = put(loss[1], tile_bytes);
    gpu->k.glove_tiles(&gpu->exec, &g, pairs, 1000, starts, counts, tiles, losses);
    gpu->mem->download(gpu, loss[1], losses, tile_bytes);
    for (int i = 0; i < 2; i++) {
        gpu->mem->download(gpu, from, i ? g.context : g.word, bytes);
        double worst = worst_of(from, w[i], n);
        CHECK_MSG(worst < 1e-4, "width %d, side %d: differs by %g", (int)width, i, worst);
    }
    for (int64_t t = 0; t < tiles; t++)
        CHECK_MSG(fabs(loss[0][t] - loss[1][t]) <= 1e-4 * loss[0][t], "tile %d: loss %g, not %g", (int)t,
                  loss[1][t], loss[0][t]);
    void *on_gpu[] = { g.word, g.context, (void *)(uintptr_t)g.word_rate, pairs, starts, counts, losses };
    for (size_t i = 0; i < SES_LEN(on_gpu); i++) gpu->mem->free(gpu, on_gpu[i]);
    void *own[] = { from, rate, pair, start, count, w[0], w[1], loss[0], loss[1] };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
}

/* ---- trainers ---- */

static char folder[] = "/tmp/sesame-cuda-words-XXXXXX", corpus[64], output[64], checkpoint[80];

static void write_corpus(void)
{
    ses_buf b = { 0 };
    for (uint64_t i = 0, at = 0; i < 3000; i++) {
        uint32_t topic = draw(at++) % 4;
        for (int k = 0; k < 12; k++, at++)
            if (draw(at) % 5 == 0)
                ses_buf_appendf(&b, "all%u ", draw(at) / 8 % 6);
            else
                ses_buf_appendf(&b, "t%uw%u ", topic, draw(at) / 8 % 40);
        ses_buf_put(&b, '\n');
    }
    CHECK(ses_file_write(corpus, b.data, b.len, true, NULL));
    ses_buf_free(&b);
}

static bool stop_at(void *ctx, const ses_vector_report *r)
{
    int *left = ctx;
    return !r->total || --*left;
}

/* Hash of the output; 0: interrupted after `reports` reports. */
static uint64_t train(const char *model, const char *setting, const char *value, bool resume, int reports)
{
    ses_err e = { 0 };
    size_t size;
    const char *path = corpus, *name[] = { "dim", setting }, *values[] = { "20", value };
    const ses_vector_trainer *t = ses_vector_trainer_find(model, &e);
    ses_vector_job job = { .corpus = &path,
                           .n_corpus = 1,
                           .output = output,
                           .overwrite = true,
                           .threads = 2,
                           .device = gpu,
                           .resume = resume,
                           .progress = stop_at,
                           .ctx = &reports };
    bool ok = ses_vector_job_set(&job, t, name, values, 2, &e) && t->run(&job, &e);
    CHECK_MSG(ok || job.stopped, "%s: %s", model, e.msg);
    if (!ok) return 0;
    CHECK(isfinite(job.loss) && job.loss > 0);
    char *data = ses_file_read(output, 1 << 24, &size, &e);
    uint64_t sum = ses_hash((ses_hash_key){ 1, 2 }, data, size) | 1;
    ses_free(data);
    return sum;
}

static void test_trainers(void)
{
    static const char *const run[][3] = { { "skipgram", "sample", "0" },
                                          { "skipgram", "loss", "hs" },
                                          { "cbow", "negative", "7" },
                                          { "glove", "x-max", "10" } };
    for (size_t i = 0; i < SES_LEN(run); i++) {
        const char *const *r = run[i];
        uint64_t whole = train(r[0], r[1], r[2], false, -1);
        CHECK_MSG(whole && train(r[0], r[1], r[2], false, -1) == whole, "%s: other bits", r[0]);
        CHECK(!train(r[0], r[1], r[2], false, 2) && ses_path_exists(checkpoint));
        CHECK_MSG(train(r[0], r[1], r[2], true, -1) == whole, "%s: other bits after an interruption", r[0]);
    }
}

int main(void)
{
    ses_err e = { 0 };
    gpu = ses_device_open("cuda", NULL, &e);
    if (!gpu) {
        SKIP(e.msg);
        return check_report();
    }
    if (!CHECK(mkdtemp(folder))) return check_report();
    snprintf(corpus, sizeof corpus, "%s/corpus", folder);
    snprintf(output, sizeof output, "%s/out", folder);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", output);
    test_all_rounds();
    for (int i = 0; i < 5; i++) test_tiles((const int64_t[]){ 4, 16, 112, 128, 272 }[i], 1 + 13 * i, 3 + i);
    write_corpus();
    test_trainers();
    unlink(corpus), unlink(output), unlink(checkpoint);
    rmdir(folder);
    CHECK_MSG(gpu->mem->ok(gpu, &e), "%s", e.msg);
    ses_device_free(gpu);
    return check_report();
}
