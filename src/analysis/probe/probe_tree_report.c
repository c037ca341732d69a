/* Report of structural probes: a table, curves by layer, drawn trees, JSON. */
#include "probe_tree_report.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>

static double percent(double x) { return 100 * x; }

/* A correlation; none if no sentence has 5 to 50 words. */
static void put_correlation(ses_figure *t, double x)
{
    if (isnan(x))
        ses_figure_cell(t, "%s", "");
    else
        ses_figure_cell(t, "%.3f", x);
}

static void put_row(ses_figure *t, const char *name, const ses_structural_scores *s)
{
    ses_figure_cell(t, "%s", name);
    ses_figure_cell(t, "%.1f", percent(s->uuas));
    put_correlation(t, s->dspr);
    ses_figure_cell(t, "%.1f", percent(s->root));
    ses_figure_cell(t, "%.1f", percent(s->root_of_several));
    put_correlation(t, s->nspr);
}

static void put_layers(ses_figure *t, const char *what, const ses_tree_layer *layer, size_t n, bool added_0)
{
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%lld%s", what, (long long)layer[i].layer,
                 added_0 && !layer[i].layer ? " (baseline)" : "");
        put_row(t, name, &layer[i].scores);
    }
}

static void put_table(ses_report *r, const ses_tree_results *x)
{
    ses_figure *t =
        ses_report_table(r, "Structural probes by layer", "Layer|>UUAS|>DSpr|>Root %|>Root % (2+)|>NSpr");
    put_layers(t, "", x->layer, x->n, x->added_0);
    put_layers(t, "random weights, layer ", x->random, x->n_random, false);
    put_row(t, "word order", &x->order);
}

typedef double score_fn(const ses_structural_scores *s);
static double uuas(const ses_structural_scores *s) { return percent(s->uuas); }
static double root(const ses_structural_scores *s) { return percent(s->root_of_several); }

/* Curves of one score: the model, random weights, word order. work: [2 n] */
static void put_curves(ses_report *r, const ses_tree_results *x, const char *title, const char *label,
                       score_fn *score, double *work)
{
    ses_figure *f = ses_report_lines(r, title, "layer", label);
    double *at = work, *y = work + x->n;
    ses_figure_series s = { .name = "model", .x = at, .y = y };
    for (size_t i = 0; i < x->n; i++) at[i] = (double)x->layer[i].layer, y[i] = score(&x->layer[i].scores);
    s.n = (int64_t)x->n;
    ses_figure_line(f, &s);
    for (size_t i = 0; i < x->n; i++) y[i] = score(&x->order);
    s.name = "word order";
    s.dashed = true;
    ses_figure_line(f, &s);
    for (size_t i = 0; i < x->n_random; i++)
        at[i] = (double)x->random[i].layer, y[i] = score(&x->random[i].scores);
    s.name = "random weights";
    s.n = (int64_t)x->n_random;
    if (s.n) ses_figure_line(f, &s);
}

/* Heads of the content words among themselves: a head that is punctuation is replaced by its own head. */
static void gold_heads(const ses_tree *t, const int32_t *node, size_t n, int32_t *head)
{
    int32_t slot[SES_TREE_MAX_WORDS];
    for (size_t i = 0; i < t->n; i++) slot[i] = -1;
    for (size_t k = 0; k < n; k++) slot[node[k]] = (int32_t)k;
    for (size_t k = 0; k < n; k++) {
        int h = t->word[node[k]].head;
        while (h && slot[h - 1] < 0) h = t->word[h - 1].head;
        head[k] = h ? slot[h - 1] : -1;
    }
}

static void put_tree(ses_report *r, const ses_drawn_tree *d, int64_t layer)
{
    int32_t node[SES_TREE_MAX_WORDS], gold[SES_TREE_MAX_WORDS];
    const char *word[SES_TREE_MAX_WORDS];
    size_t n = ses_tree_content_words(d->tree, node), right = 0;
    gold_heads(d->tree, node, n, gold);
    for (size_t k = 0; k < n; k++) {
        word[k] = d->tree->word[node[k]].form.p;
        int32_t h = gold[k];
        if (h >= 0) right += d->predicted[k] == h || d->predicted[h] == (int32_t)k;
    }
    char title[128];
    snprintf(title, sizeof title, "Layer %lld: gold above, predicted below; %zu of %zu edges",
             (long long)layer, right, n - 1);
    ses_report_arcs(r, title, (int64_t)n, word, gold, d->predicted);
}

/* ---- JSON ---- */

static void json_scores(ses_json_writer *w, const ses_structural_scores *s)
{
    ses_json_member_real(w, "uuas", s->uuas);
    ses_json_member_real(w, "dspr", s->dspr);
    ses_json_member_real(w, "root", s->root);
    ses_json_member_real(w, "root_of_several", s->root_of_several);
    ses_json_member_real(w, "nspr", s->nspr);
}

static void json_losses(ses_json_writer *w, const char *key, const double *x, int n)
{
    ses_json_member_array(w, key);
    for (int i = 0; i < n; i++) ses_json_put_real(w, x[i]);
    ses_json_end_array(w);
}

static void json_probe(ses_json_writer *w, const char *key, const ses_structural_probe *p)
{
    ses_json_member_object(w, key);
    ses_json_member_int(w, "best_epoch", p->best);
    json_losses(w, "train_loss", p->train, p->epochs);
    json_losses(w, "dev_loss", p->dev, p->epochs);
    ses_json_end_object(w);
}

static void json_layers(ses_json_writer *w, const char *key, const ses_tree_layer *layer, size_t n)
{
    ses_json_member_array(w, key);
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", layer[i].layer);
        json_scores(w, &layer[i].scores);
        json_probe(w, "distance", &layer[i].distance);
        json_probe(w, "depth", &layer[i].depth);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void json_data(ses_json_writer *w, const char *key, const ses_treebank *t)
{
    ses_json_member_object(w, key);
    ses_json_member_uint(w, "sentences", t->n);
    ses_json_member_uint(w, "words", t->words);
    ses_json_end_object(w);
}

static void json_trees(ses_json_writer *w, const ses_tree_results *x)
{
    ses_json_member_array(w, "trees");
    for (size_t i = 0; i < x->n_drawn; i++) {
        const ses_tree *t = x->drawn[i].tree;
        int32_t node[SES_TREE_MAX_WORDS], gold[SES_TREE_MAX_WORDS];
        size_t n = ses_tree_content_words(t, node);
        gold_heads(t, node, n, gold);
        ses_json_begin_object(w);
        ses_json_member_array(w, "words");
        for (size_t k = 0; k < n; k++) ses_json_put_string(w, t->word[node[k]].form.p);
        ses_json_end_array(w);
        ses_json_member_array(w, "heads");
        for (size_t k = 0; k < n; k++) ses_json_put_int(w, gold[k]);
        ses_json_end_array(w);
        ses_json_member_array(w, "predicted");
        for (size_t k = 0; k < n; k++) ses_json_put_int(w, x->drawn[i].predicted[k]);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_json(ses_json_writer *w, const ses_tree_results *x)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "kind", "tree");
    json_data(w, "train", x->train);
    json_data(w, "dev", x->dev);
    json_data(w, "test", x->test);
    ses_json_member_uint(w, "sentences_left_out", x->too_long);
    if (x->test_in_train) ses_json_member_uint(w, "test_sentences_in_train", x->test_in_train);
    ses_json_member_uint(w, "sentences_in_windows", x->windowed);
    ses_json_member_object(w, "word_order");
    json_scores(w, &x->order);
    ses_json_end_object(w);
    json_layers(w, "layers", x->layer, x->n);
    if (x->random) json_layers(w, "random_weights", x->random, x->n_random);
    ses_json_member_int(w, "best_layer", x->layer[x->best].layer);
    json_trees(w, x);
    ses_json_end_object(w);
}

static void put_notes(ses_report *r, const ses_tree_results *x)
{
    ses_report_note(r, "%zu sentences of training data, %zu of development, %zu of test data.", x->train->n,
                    x->dev->n, x->test->n);
    ses_report_note(
        r, "UUAS: edges of the minimum spanning tree that are in the gold tree, without punctuation. "
           "DSpr, NSpr: Spearman correlation of distances and depths, lengths 5 to 50. Root %%: sentences "
           "with the right root; (2+): without sentences of one word.");
    if (x->test == x->dev)
        ses_report_note(r, "The scores are of the development data, which also chose the epoch.");
}

bool ses_tree_report(ses_report *r, const ses_tree_results *x, ses_err *e)
{
    double *work = ses_alloc_array(2 * x->n, sizeof *work, e);
    if (!work) return false;
    put_json(ses_report_json(r), x);
    put_table(r, x);
    put_curves(r, x, "Undirected edges found", "UUAS", uuas, work);
    put_curves(r, x, "Roots found in sentences of two words or more", "root %", root, work);
    for (size_t i = 0; i < x->n_drawn; i++) put_tree(r, &x->drawn[i], x->layer[x->best].layer);
    put_notes(r, x);
    ses_free(work);
    return ses_report_ok(r, e);
}
