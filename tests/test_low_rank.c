/* Factorized weights: at full rank the outputs of the dense model, for every architecture; at a low rank
 * the outputs of transformers with the best approximation of each weight (fixtures/low_rank.py); saving
 * again; bad configs and options. */
#define _GNU_SOURCE
#include "check.h"
#include "random_batch.h"
#include "tune/low_rank/factorize.h"

#include <dirent.h>
#include <math.h>

enum { MOST = 1 << 16 };

/* The outputs of the heads; returns their number. */
static int64_t run(const ses_model *m, const ses_batch *b, ses_real *out)
{
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(m->dev, NULL, &e);
    bool ok = t && ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &o, &e);
    CHECK_MSG(ok, "%s", e.msg);
    for (size_t i = 0; ok && i < o.n; i++) {
        int64_t count = ses_count(o.item[i].tensor);
        if (CHECK(n + count <= MOST) && CHECK(ses_tape_read(t, o.item[i].tensor, out + n))) n += count;
    }
    ses_tape_free(t);
    return n;
}

/* |a - b| / |b| */
static double difference(const ses_real *a, const ses_real *b, int64_t n)
{
    double diff = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        diff += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(diff / norm);
}

/* Factorizes a folder; NULL: not possible, and *e has the reason. */
static ses_model *factorized(const ses_model *m, const ses_factorize_options *o, const char *to, ses_err *e)
{
    ses_factorization f;
    ses_model *small = NULL;
    bool ok = ses_factorize(&f, m, o, e) && ses_factorization_save(&f, to, true, e);
    if (ok) small = ses_model_open(to, m->dev, NULL, e);
    ses_factorization_free(&f);
    return small;
}

/* Written once more, the files are the same. */
static void check_saved_again(const ses_model *small, const char *to)
{
    char again[] = "/tmp/sesame-again-XXXXXX", cmd[200];
    ses_err e = { 0 };
    CHECK(mkdtemp(again));
    CHECK_MSG(ses_model_save(small, again, &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, &e),
              "%s", e.msg);
    snprintf(cmd, sizeof cmd,
             "cmp %s/model.safetensors %s/model.safetensors && cmp %s/config.json %s/config.json", to, again,
             to, again);
    CHECK(system(cmd) == 0);
    snprintf(cmd, sizeof cmd, "rm -r %s", again);
    CHECK(system(cmd) == 0);
}

/* Returns whether the model supports it. */
static bool test_full_rank(const char *dir, ses_device *dev, int *tables)
{
    static ses_real dense[MOST], full[MOST];
    char to[] = "/tmp/sesame-low-rank-XXXXXX", cmd[64];
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e), *small = NULL;
    if (!CHECK_MSG(m, "%s: %s", dir, e.msg)) return false;
    CHECK(mkdtemp(to));
    int64_t width = m->c.embed.width ? m->c.embed.width : m->c.hidden;
    bool supported = !ses_low_rank_unsupported(m->desc, &m->c),
         table = supported && !ses_low_rank_unsupported_table(m->desc, &m->c);
    ses_factorize_options o = { .energy = 1, .embeddings = table ? width : 0, .even_if_larger = true };
    if (m->c.vocab < width) o.embeddings = table ? m->c.vocab : 0;
    *tables += table;
    small = factorized(m, &o, to, &e);
    CHECK_MSG(supported == (small != NULL), "%s: %s", dir, e.msg);
    if (!supported) CHECK_MSG(strstr(e.msg, "cannot be factorized: "), "%s", e.msg);
    if (small) {
        random_batch x;
        random_batch_draw(&x, m, ses_model_part_layers(m, SES_PART_DECODER) > 0, 7);
        int64_t n = run(m, &x.batch, dense), k = run(small, &x.batch, full);
        CHECK_MSG(n == k && difference(full, dense, n) < 1e-5, "%s: %lld and %lld outputs differ by %g", dir,
                  (long long)n, (long long)k, difference(full, dense, n));
        CHECK(small->n_factorized > 0 && (!table || small->stack[0].token_up));
        check_saved_again(small, to);
        ses_factorization f;
        e = (ses_err){ 0 };
        CHECK(!ses_factorize(&f, small, &o, &e) && strstr(e.msg, "factorized already"));
        ses_factorization_free(&f);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", to);
    CHECK(system(cmd) == 0);
    ses_model_free(small);
    ses_model_free(m);
    return supported;
}

/* Against transformers with weights of low rank. */
static void test_low_rank(const char *name, const ses_json *all, ses_device *dev)
{
    static ses_real got[MOST], expected[MOST];
    char to[] = "/tmp/sesame-low-rank-XXXXXX", cmd[300];
    ses_err e = { 0 };
    int32_t ids[16], cu[2] = { 0 };
    int64_t n = 0, rank = 0, table = 0, id;
    const ses_json *rows = ses_json_get(ses_json_get(all, "logits"), name), *list = ses_json_get(all, "ids");
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (CHECK(ses_json_int(ses_json_at(list, i), &id))) ids[cu[1]++] = (int32_t)id;
    for (size_t i = 0; i < ses_json_len(rows); i++)
        for (size_t j = 0; j < ses_json_len(ses_json_at(rows, i)); j++) {
            double x = NAN;
            ses_json_real(ses_json_at(ses_json_at(rows, i), j), &x);
            expected[n++] = (ses_real)x;
        }
    CHECK(ses_json_int(ses_json_get(all, "rank"), &rank) && ses_json_int(ses_json_get(all, "table"), &table));
    snprintf(cmd, sizeof cmd, "tests/golden/%s", name);
    ses_model *m = ses_model_open(cmd, dev, &(ses_model_options){ .no_packing = true }, &e);
    CHECK(mkdtemp(to));
    ses_model *small =
        m ? factorized(m, &(ses_factorize_options){ .rank = rank, .embeddings = table }, to, &e) : NULL;
    if (CHECK_MSG(small, "%s: %s", name, e.msg)) {
        ses_batch b = { .seqs = 1, .tokens = cu[1], .cu_seqlens = cu, .ids = ids };
        CHECK(run(small, &b, got) == n);
        CHECK_MSG(difference(got, expected, n) < 1e-5, "%s: differs by %g", name,
                  difference(got, expected, n));
        CHECK(run(m, &b, got) == n && difference(got, expected, n) > 1e-2);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", to);
    CHECK(system(cmd) == 0);
    ses_model_free(small);
    ses_model_free(m);
}

static void test_ranks(ses_device *dev)
{
    ses_err e = { 0 };
    ses_factorization f;
    ses_model *m =
        ses_model_open("tests/golden/bert-classify", dev, &(ses_model_options){ .no_packing = true }, &e);
    if (!CHECK_MSG(m, "%s", e.msg)) return;
    for (int only = SES_FACTORIZE_ALL; only <= SES_FACTORIZE_FFN; only++) {
        CHECK_MSG(ses_factorize(
                      &f, m, &(ses_factorize_options){ .energy = 0.7, .only = (ses_factorize_part)only }, &e),
                  "%s", e.msg);
        CHECK(f.n == (only == SES_FACTORIZE_ALL ? 12 : only == SES_FACTORIZE_ATTENTION ? 8 : 4));
        for (size_t i = 0; i < f.n; i++) {
            const ses_factors *x = &f.item[i];
            CHECK(!x->rank || (x->energy >= 0.7 && x->rank * (x->out + x->in) < x->out * x->in));
            CHECK(!strncmp(x->name, "encoder.layer.", 14) && !x->rank == !x->a);
        }
        CHECK(f.after < f.before);
        ses_factorization_free(&f);
    }
    CHECK(ses_factorize(&f, m, &(ses_factorize_options){ .ratio = 0.5 }, &e));
    for (size_t i = 0; i < f.n; i++)
        CHECK(f.item[i].rank * (f.item[i].out + f.item[i].in) <= f.item[i].out * f.item[i].in / 2);
    ses_factorization_free(&f);
    static const struct {
        ses_factorize_options o;
        const char *message;
    } bad[] = {
        { { 0 }, "no rank" },
        { { .rank = 4, .ratio = 0.5 }, "exclude each other" },
        { { .rank = -1 }, "expected at least 1" },
        { { .rank = 1000 }, "expected at most" },
        { { .ratio = 1 }, "below 1" },
        { { .ratio = -0.5 }, "above 0" },
        { { .energy = 1.5 }, "at most 1" },
        { { .energy = NAN }, "at most 1" },
        { { .energy = 1 }, "no weight becomes smaller" },
        { { .embeddings = 1000 }, "expected at most" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        e = (ses_err){ 0 };
        CHECK_MSG(!ses_factorize(&f, m, &bad[i].o, &e) && strstr(e.msg, bad[i].message), "%zu: %s", i, e.msg);
        ses_factorization_free(&f);
    }
    ses_model_free(m);
}

static void refuse(const char *low_rank, const char *message, ses_device *dev)
{
    char text[700];
    ses_err e = { 0 };
    int n = snprintf(text, sizeof text,
                     "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": 37, "
                     "\"hidden_size\": 20, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
                     "\"intermediate_size\": 28, \"max_position_embeddings\": 16, \"sesame_low_rank\": %s}",
                     low_rank);
    ses_json_doc *doc = ses_json_parse(text, (size_t)n, &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
    CHECK_MSG(message ? !m && strstr(e.msg, message) : m != NULL, "%s: %s", low_rank, e.msg);
    ses_model_free(m);
    ses_json_free(doc);
}

#define UP "\"encoder.layer.0.intermediate.dense\""
static void test_configs(ses_device *dev)
{
    refuse("{}", NULL, dev);
    refuse("null", NULL, dev);
    refuse("{\"weights\": {" UP ": 20}}", NULL, dev);
    refuse("{\"embeddings\": 20, \"weights\": {}}", NULL, dev);
    refuse("{\"weights\": {" UP ": 21}}", "\"encoder.layer.0.intermediate.dense\" is 21, expected at most 20",
           dev);
    refuse("{\"weights\": {" UP ": 0}}", "encoder.layer.0.intermediate.dense", dev);
    refuse("{\"weights\": {" UP ": 1.5}}", "not a rank", dev);
    refuse("{\"weights\": {" UP ": 4, \"encoder.layer.2.intermediate.dense\": 4}}",
           "names \"encoder.layer.2.intermediate.dense\", but a BertModel has no such dense layer", dev);
    refuse("{\"weights\": {" UP ": 4, " UP ": 4}}", "", dev);
    refuse("{\"weights\": [4]}", "must be an object", dev);
    refuse("{\"embeddings\": 0}", "expected a rank of 1 to 20", dev);
    refuse("{\"embeddings\": 21}", "expected a rank of 1 to 20", dev);
    refuse("{\"embeddings\": \"4\"}", "an integer", dev);
    refuse("{\"table\": 4}", "unknown key \"table\"", dev);
    refuse("[]", "must be an object", dev);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    DIR *d = opendir("tests/golden");
    int supported = 0, tables = 0;
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        supported += test_full_rank(path, dev, &tables);
    }
    if (d) closedir(d);
    CHECK_MSG(supported >= 70 && tables >= 30, "%d supported, %d with tables", supported, tables);
    ses_json_doc *doc = ses_json_load("tests/fixtures/low_rank.json", 1 << 20, &e);
    if (CHECK_MSG(doc, "%s", e.msg)) {
        test_low_rank("bert-masked-lm", ses_json_root(doc), dev);
        test_low_rank("modernbert-masked-lm", ses_json_root(doc), dev);
    }
    test_ranks(dev);
    test_configs(dev);
    ses_json_free(doc);
    ses_device_free(dev);
    return check_report();
}
