/* Structural probes against a torch twin, spanning trees against networkx, correlations against scipy:
 * bench/peers/analysis/trees.py fixture prints the expected numbers. Treebanks: distances, limits, errors. */
#define _POSIX_C_SOURCE 200809L
#include "analysis/probe/structural_scores.h"
#include "math/correlation.h"
#include "math/graph/mst.h"
#include "structural_fixture.h"

#include <math.h>
#include <unistd.h>

static bool near(double got, double want, double tolerance) { return fabs(got - want) <= tolerance; }

static double weight_of(const void *ctx, size_t i, size_t j)
{
    const double *w = ctx; /* [8 (8 - 1) / 2]: pairs in order */
    return w[i * 8 - i * (i + 1) / 2 + j - i - 1];
}

static void spanning_tree(void)
{
    static const double w[28] = { 0.5,  6.75, 1.5, 8.5,  7.5,  6.25, 2.0,  8.5,  4.0, 9.5,
                                  5.25, 7.75, 5.5, 3.75, 7.25, 0.25, 0.25, 4.75, 9.5, 2.0,
                                  9.5,  8.5,  0.5, 5.5,  2.75, 9.25, 9.0,  7.0 };
    static const int32_t want[8] = { -1, 0, 5, 0, 5, 3, 2, 0 };
    int32_t parent[8];
    double key[8], sum = 0;
    ses_mst(weight_of, w, 8, parent, key);
    for (size_t i = 0; i < 8; i++) CHECK(parent[i] == want[i]);
    for (size_t i = 1; i < 8; i++) {
        size_t p = (size_t)parent[i];
        sum += p < i ? weight_of(w, p, i) : weight_of(w, i, p);
    }
    CHECK(sum == 7.0);
    ses_mst_reroot(parent, 6);
    static const int32_t rerooted[8] = { 3, 0, 6, 5, 5, 2, -1, 0 };
    for (size_t i = 0; i < 8; i++) CHECK(parent[i] == rerooted[i]);
    static const double ties[28] = { 0 };
    ses_mst(weight_of, ties, 8, parent, key);
    for (size_t i = 1; i < 8; i++) CHECK(parent[i] == 0); /* (0, 1), (0, 2), ... come first */
    ses_mst(weight_of, ties, 1, parent, key);
    CHECK(parent[0] == -1);
}

static void correlations(void)
{
    double a[12] = { 2, 0, 1, 3, 0, 0, 0, 5, 5, 3, 2, 3 }, b[12] = { 1, 1, 2, 0, 4, 4, 0, 2, 1, 2, 2, 2 },
           work[24];
    CHECK(near(ses_spearman(a, b, 12, work), -0.1679544267314484, 1e-12));
    double flat[3] = { 1, 1, 1 }, c[3] = { 1, 2, 3 };
    CHECK(isnan(ses_spearman(flat, c, 3, work)));
}

static void check_losses(ses_device *dev, const toy *t, ses_structural_kind kind, const double want[3][2],
                         ses_structural_probe *p)
{
    ses_err e = { 0 };
    ses_structural_options o = toy_options(kind);
    if (!CHECK_MSG(ses_structural_train(p, dev, &o, &t->train, &t->dev, &e), "%s", e.msg)) return;
    CHECK(p->epochs == 3 && p->best == 3);
    for (int i = 0; i < 3; i++)
        CHECK_MSG(near(p->train[i], want[i][0], 1e-5) && near(p->dev[i], want[i][1], 1e-5),
                  "epoch %d: %.7g %.7g", i + 1, p->train[i], p->dev[i]);
}

static void check_scores(const ses_structural_scores *s, const double want[5], const char *what)
{
    CHECK_MSG(near(s->uuas, want[0], 1e-9) && near(s->dspr, want[1], 1e-9) && near(s->nspr, want[2], 1e-9) &&
                  near(s->root, want[3], 1e-9) && near(s->root_of_several, want[4], 1e-9),
              "%s: %.12g %.12g %.12g %.12g %.12g", what, s->uuas, s->dspr, s->nspr, s->root,
              s->root_of_several);
}

/* The trained B depends neither on the number of threads nor on an earlier run. */
static void twin(int threads, ses_real *b)
{
    static const double distance[3][2] = { { 1.106895, 1.484239 },
                                           { 1.013676, 1.364764 },
                                           { 0.8912336, 1.206612 } };
    static const double depth[3][2] = { { 0.9278203, 1.248903 },
                                        { 0.9115031, 1.229226 },
                                        { 0.889819, 1.186355 } };
    static const double probed[5] = { 7.0 / 18, 0.45873051520219876, -0.10167176261681987, 4.0 / 6, 0.6 };
    static const double ordered[5] = { 12.0 / 18, 0.6270556842967117, 0.33265365239991074, 2.0 / 6, 0.2 };
    ses_err e = { 0 };
    ses_device_options o = { .threads = threads };
    ses_device *dev = ses_device_open("cpu", &o, &e);
    toy t;
    if (!CHECK(dev && toy_new(&t, &e))) return;
    ses_structural_probe a = { 0 }, d = { 0 };
    ses_structural_scores s = { 0 };
    check_losses(dev, &t, SES_STRUCTURAL_DISTANCE, distance, &a);
    check_losses(dev, &t, SES_STRUCTURAL_DEPTH, depth, &d);
    CHECK(ses_structural_score(&a, &d, dev, &t.train, &s, &e));
    check_scores(&s, probed, "probe");
    CHECK(s.edges == 18 && s.sentences == 6 && s.sentences_of_several == 5);
    CHECK(ses_structural_score_order(&t.gold, &s, &e));
    check_scores(&s, ordered, "order");
    memcpy(b, a.b, TOY_RANK * TOY_WIDTH * sizeof *b);
    ses_structural_free(&a);
    ses_structural_free(&d);
    toy_free(&t);
    ses_device_free(dev);
}

static bool stop_at_once(void *ctx, int epoch)
{
    *(int *)ctx = epoch;
    return false;
}

/* A rate of 0 never improves the loss: it stops after `patience` epochs and keeps the first B. */
static void stopping(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    toy t;
    if (!CHECK(dev && toy_new(&t, &e))) return;
    ses_structural_options o = toy_options(SES_STRUCTURAL_DISTANCE);
    ses_structural_probe p;
    int seen = 0;
    o.rate = 0;
    o.epochs = 40;
    CHECK(ses_structural_train(&p, dev, &o, &t.train, &t.dev, &e) && p.epochs == 6 && p.best == 1);
    ses_structural_free(&p);
    o.progress = stop_at_once;
    o.progress_ctx = &seen;
    CHECK(ses_structural_train(&p, dev, &o, &t.train, &t.dev, &e) && p.epochs == 1 && seen == 1);
    ses_structural_free(&p);
    t.x[8] = NAN;
    CHECK(!ses_structural_train(&p, dev, &o, &t.train, &t.dev, &e));
    CHECK_STR(e.msg, "loss nan in epoch 1: the states are not finite numbers");
    ses_structural_free(&p);
    toy_free(&t);
    ses_device_free(dev);
}

static void drawn_tree(void)
{
    static const ses_real distance[25] = { 0, 1, 4, 9, 1, 1, 0, 1, 9, 1, 4, 1, 0,
                                           1, 1, 9, 9, 1, 0, 1, 1, 1, 1, 1, 0 };
    static const ses_real depth[5] = { 3, 2, 1, 2, 0 };
    ses_conllu_word w[5];
    for (int i = 0; i < 5; i++) {
        const char *upos = i == 4 ? "PUNCT" : "X";
        w[i] = (ses_conllu_word){ .head = i, .upos = { upos, strlen(upos) }, .deprel = { "_", 1 } };
    }
    int32_t head[5];
    ses_structural_tree(&(ses_tree){ .n = 5, .word = w }, distance, depth, head);
    CHECK(head[0] == 1 && head[1] == 2 && head[2] == -1 && head[3] == 2);
}

static void treebanks(void)
{
    char path[] = "/tmp/sesame-trees-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!CHECK(f)) return;
    fprintf(f, "1\ta\t_\tX\t_\t_\t9\tx\t_\t_\n\n");
    fprintf(f, "1\tA\t_\tX\t_\t_\t2\tx\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n3\t.\t_\t_\t_\t_\t1\tpunct\t_"
               "\t_\n\n");
    for (int i = 1; i <= SES_TREE_MAX_WORDS + 1; i++)
        fprintf(f, "%d\tw\t_\tX\t_\t_\t%d\tx\t_\t_\n", i, i - 1);
    CHECK(fclose(f) == 0);
    ses_err e = { 0 };
    ses_treebank t = { 0 };
    CHECK(!ses_treebank_read(&t, path, false, &e) && strstr(e.msg, "line 1: HEAD 9, expected 0 to 1"));
    ses_err_clear(&e);
    ses_treebank_free(&t);
    CHECK(ses_treebank_read(&t, path, true, &e) && ses_treebank_read(&t, path, true, &e));
    CHECK(t.n == 2 && t.words == 6 && t.skipped == 2 && t.too_long == 2);
    CHECK(t.first_skipped && strstr(t.first_skipped, path) && strstr(t.first_skipped, "HEAD 9"));
    int16_t distance[9];
    int32_t node[3];
    ses_tree_distances(&t.tree[1], distance);
    static const int16_t want[9] = { 0, 1, 1, 1, 0, 2, 1, 2, 0 };
    CHECK(!memcmp(distance, want, sizeof want));
    CHECK(ses_tree_content_words(&t.tree[1], node) == 2 && node[1] == 1 && t.tree[1].first == 3);
    CHECK(t.input[1].n_words == 3 && !strcmp(t.input[1].words[0].p, "A"));
    CHECK(t.tree[0].word[0].form.p == t.tree[1].word[0].form.p); /* stored once */
    ses_treebank_free(&t);
    unlink(path);
}

int main(void)
{
    ses_real one[TOY_RANK * TOY_WIDTH] = { 0 }, three[TOY_RANK * TOY_WIDTH] = { 1 };
    spanning_tree();
    correlations();
    twin(1, one);
    twin(3, three);
    CHECK(!memcmp(one, three, sizeof one));
    stopping();
    drawn_tree();
    treebanks();
    return check_report();
}
