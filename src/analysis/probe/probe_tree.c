/* Structural probes by layer: reads trees, collects states, trains and scores the probes of each layer. */

#include "analysis/state_spool.h"
#include "analysis/word_states.h"
#include "base/alloc.h"
#include "probe_kind.h"
#include "probe_setup.h"
#include "probe_tree_report.h"

#include <string.h>

#define AT(field) offsetof(ses_probe_tree_args, field)
static const ses_opt opt[] = {
    SES_OPT_INT(ses_probe_tree_args, rank, "rank", "0", 0, 1 << 16,
                "tree: rank of the map, 0: the width of the model", .was_set = AT(given.rank)),
    SES_OPT_INT(ses_probe_tree_args, epochs, "tree-epochs", "40", 1, SES_STRUCTURAL_MAX_EPOCHS,
                "tree: maximum epochs", .was_set = AT(given.epochs)),
    SES_OPT_INT(ses_probe_tree_args, draw, "draw", "2", 0, 1000,
                "tree: number of test sentences that are drawn", .was_set = AT(given.draw)),
    SES_OPT_FLAG(ses_probe_tree_args, skip_invalid, "skip-invalid",
                 "skip invalid sentences of CoNLL-U instead of failing"),
};
const ses_opt_table ses_probe_tree_options = { opt, SES_LEN(opt), "tree" };

enum { TRAIN, DEV, TEST, N_SETS };
enum { SPOOL_BYTES = 1 << 30, MIN_DRAWN = 5, MAX_DRAWN = 12 };

typedef struct tree_probe {
    ses_analysis_call *c;
    const ses_probe_args *common;
    const ses_probe_tree_args *a;
    ses_device *host; /* trains the probes */
    bool own_host;
    ses_treebank file[N_SETS], part[N_SETS];
    const ses_treebank *bank[N_SETS]; /* TEST may be DEV */
    ses_structural_gold gold[N_SETS];
    size_t first[N_SETS], rows; /* rows of each set in the spool */
    int64_t *layers;
    size_t n_layers, width;
    const int64_t *run; /* layers of the present model: all, or the best one */
    size_t n_run;
    ses_state_spool *spool;
    ses_real *x; /* [rows, width]: states of one layer */
    ses_structural_set set[N_SETS];
    ses_tree_results out;
    double best_uuas;    /* score of out.best on development data */
    int64_t done, total; /* epochs, for the progress line */
} tree_probe;

/* ---- data ---- */

static bool read_files(tree_probe *p, char *const *file, int n, ses_err *e)
{
    for (int i = 0; i < n; i++)
        if (!ses_treebank_read(&p->file[i], file[i], p->a->skip_invalid, e)) return false;
    if (n > 1) {
        for (int i = 0; i < N_SETS; i++) p->bank[i] = &p->file[i < n ? i : n - 1];
        return true;
    }
    static const size_t from[] = { 0, 8, 9, 10 };
    if (p->file[0].n < 10)
        return ses_fail(e, SES_EARG,
                        "%s: %zu sentences, expected 10 or more to split them into training, "
                        "development and test data",
                        file[0], p->file[0].n);
    for (int i = 0; i < N_SETS; i++) {
        if (!ses_treebank_part(&p->part[i], &p->file[0], 10, from[i], from[i + 1], e)) return false;
        p->bank[i] = &p->part[i];
    }
    return true;
}

static bool check_sets(tree_probe *p, char *const *file, int n, ses_err *e)
{
    for (int i = 0; i < N_SETS; i++) {
        if (!p->bank[i]->n)
            return ses_fail(e, SES_EARG, "%s: no sentence of at most %d words", file[i < n ? i : n - 1],
                            (int)SES_TREE_MAX_WORDS);
        bool same = i == TEST && p->bank[TEST] == p->bank[DEV];
        p->first[i] = same ? p->first[DEV] : p->rows;
        if (!same) p->rows += p->bank[i]->words;
        if (!ses_structural_gold_new(&p->gold[i], p->bank[i], e)) return false;
    }
    for (int i = 0; i < n; i++) {
        ses_treebank_note_left_out(&p->file[i], file[i], p->c->report);
        p->out.too_long += p->file[i].too_long;
    }
    const ses_treebank *train = p->bank[TRAIN], *test = p->bank[TEST];
    return ses_probe_note_overlap(p->c->report, train->input, train->n, test->input, test->n,
                                  &p->out.test_in_train, e);
}

/* ---- states ---- */

static bool take_states(void *ctx, const ses_state_batch *b, ses_err *e)
{
    tree_probe *p = ctx;
    if (!ses_state_spool_add(p->spool, b->x, b->rows, e)) return false;
    p->out.windowed += b->windowed;
    ses_analysis_progress(p->c, "hidden states", (int64_t)ses_state_spool_rows(p->spool), (int64_t)p->rows);
    return true;
}

static bool collect_states(tree_probe *p, const ses_model *m, ses_err *e)
{
    ses_word_states_options o = { .unit = SES_STATES_OF_WORDS,
                                  .first_piece = p->common->first_piece,
                                  .decoder = p->common->decoder,
                                  .layers = p->run,
                                  .n_layers = p->n_run };
    ses_state_spool_free(p->spool);
    p->out.windowed = 0;
    p->spool = ses_state_spool_new(p->n_run, p->width, SPOOL_BYTES, p->c->tmp_dir, e);
    if (!p->spool) return false;
    for (int i = 0; i < N_SETS; i++) {
        if (i == TEST && p->bank[TEST] == p->bank[DEV]) continue;
        if (!ses_word_states_run(m, p->c->tokenizer, p->bank[i]->input, p->bank[i]->n, &o, take_states, p, e))
            return false;
    }
    return true;
}

/* Reads the states of layer k from the spool. */
static bool read_layer(tree_probe *p, size_t k, ses_err *e)
{
    enum { ROWS = 1024 };
    float *part = ses_alloc_array(ROWS * p->width, sizeof *part, e);
    bool ok = part != NULL;
    for (size_t at = 0; ok && at < p->rows; at += ROWS) {
        size_t n = p->rows - at < ROWS ? p->rows - at : ROWS;
        ok = ses_state_spool_read(p->spool, k, at, n, part, e);
        for (size_t i = 0; ok && i < n * p->width; i++) p->x[at * p->width + i] = part[i];
    }
    ses_free(part);
    for (int i = 0; i < N_SETS; i++)
        p->set[i] = (ses_structural_set){ &p->gold[i], p->x + p->first[i] * p->width };
    return ok;
}

/* ---- probes ---- */

static bool show_epoch(void *ctx, int epoch)
{
    tree_probe *p = ctx;
    ses_analysis_progress(p->c, "structural probes", p->done + epoch, p->total);
    return true;
}

static bool train_probe(tree_probe *p, ses_structural_kind kind, ses_structural_probe *out, ses_err *e)
{
    ses_structural_options o = ses_structural_defaults(kind, p->width);
    if (p->a->rank) o.rank = (size_t)p->a->rank;
    o.epochs = (int)p->a->epochs;
    o.seed = p->c->seed;
    o.progress = show_epoch;
    o.progress_ctx = p;
    bool ok = ses_structural_train(out, p->host, &o, &p->set[TRAIN], &p->set[DEV], e);
    p->done += p->a->epochs;
    return ok;
}

static void free_map(ses_structural_probe *p)
{
    ses_free(p->b);
    p->b = NULL;
}

/* The predictions of the drawn sentences. */
typedef struct prediction_copy {
    tree_probe *p;
    ses_real **distance, **depth; /* [n_drawn]; one of them is NULL */
} prediction_copy;

static void copy_prediction(void *ctx, size_t i, const ses_real *x)
{
    prediction_copy *c = ctx;
    const ses_treebank *t = c->p->bank[TEST];
    for (size_t k = 0; k < c->p->out.n_drawn; k++) {
        if (c->p->out.drawn[k].tree != &t->tree[i]) continue;
        size_t n = t->tree[i].n;
        memcpy(c->distance ? c->distance[k] : c->depth[k], x, (c->distance ? n * n : n) * sizeof *x);
    }
}

static bool alloc_predictions(tree_probe *p, ses_real **distance, ses_real **depth, ses_err *e)
{
    for (size_t k = 0; k < p->out.n_drawn; k++) {
        size_t n = p->out.drawn[k].tree->n;
        if (!(distance[k] = ses_alloc_array(n * n, sizeof **distance, e)) ||
            !(depth[k] = ses_alloc_array(n, sizeof **depth, e)))
            return false;
    }
    return true;
}

/* Predicts the drawn trees with the probes of a layer. */
static bool predict_drawn(tree_probe *p, const ses_tree_layer *l, ses_err *e)
{
    size_t n = p->out.n_drawn;
    ses_real **distance = ses_alloc_array(n, sizeof *distance, e);
    ses_real **depth = distance ? ses_alloc_array(n, sizeof *depth, e) : NULL;
    prediction_copy distances = { .p = p, .distance = distance }, depths = { .p = p, .depth = depth };
    bool ok = depth && alloc_predictions(p, distance, depth, e) &&
              ses_structural_predict(&l->distance, p->host, &p->set[TEST], copy_prediction, &distances, e) &&
              ses_structural_predict(&l->depth, p->host, &p->set[TEST], copy_prediction, &depths, e);
    for (size_t k = 0; ok && k < n; k++)
        ses_structural_tree(p->out.drawn[k].tree, distance[k], depth[k], p->out.drawn[k].predicted);
    for (size_t k = 0; depth && k < n; k++) ses_free(distance[k]), ses_free(depth[k]);
    ses_free(distance);
    ses_free(depth);
    return ok;
}

static bool probe_layer(tree_probe *p, size_t k, bool draw, ses_tree_layer *l, ses_err *e)
{
    ses_structural_scores dev = { 0 };
    l->layer = p->run[k];
    bool ok = read_layer(p, k, e) && train_probe(p, SES_STRUCTURAL_DISTANCE, &l->distance, e) &&
              train_probe(p, SES_STRUCTURAL_DEPTH, &l->depth, e) &&
              ses_structural_score(&l->distance, &l->depth, p->host, &p->set[TEST], &l->scores, e) &&
              (!draw || ses_structural_score(&l->distance, &l->depth, p->host, &p->set[DEV], &dev, e));
    bool baseline = k == 0 && p->out.added_0;
    if (ok && draw && !baseline && (k == p->out.added_0 || dev.uuas > p->best_uuas)) {
        p->out.best = k, p->best_uuas = dev.uuas;
        ok = predict_drawn(p, l, e);
    }
    free_map(&l->distance);
    free_map(&l->depth);
    return ok || ses_wrap(e, "layer %lld", (long long)l->layer);
}

static bool probe_model(tree_probe *p, const ses_model *m, ses_tree_layer *layer, bool draw, ses_err *e)
{
    if (!collect_states(p, m, e)) return false;
    for (size_t k = 0; k < p->n_run; k++)
        if (!probe_layer(p, k, draw, &layer[k], e)) return false;
    return true;
}

static bool probe_random(tree_probe *p, ses_err *e)
{
    if (!p->common->classify.random_all) p->run = &p->layers[p->out.best];
    p->n_run = p->out.n_random;
    ses_model *m = ses_model_random_twin(p->c->model, p->c->seed, e);
    bool ok = m && probe_model(p, m, p->out.random, false, e);
    ses_model_free(m);
    return ok;
}

/* ---- the run ---- */

/* The sentences to draw: the first of the test data with 5 to 12 words that are not punctuation. */
static bool choose_drawn(tree_probe *p, ses_err *e)
{
    const ses_treebank *t = p->bank[TEST];
    size_t wanted = (size_t)p->a->draw;
    if (!(p->out.drawn = ses_alloc_array(wanted, sizeof *p->out.drawn, e))) return false;
    for (size_t i = 0; i < t->n && p->out.n_drawn < wanted; i++) {
        int32_t node[SES_TREE_MAX_WORDS];
        size_t n = ses_tree_content_words(&t->tree[i], node);
        if (n < MIN_DRAWN || n > MAX_DRAWN) continue;
        ses_drawn_tree *d = &p->out.drawn[p->out.n_drawn];
        if (!(d->predicted = ses_alloc_array(n, sizeof *d->predicted, e))) return false;
        d->tree = &t->tree[i];
        p->out.n_drawn++;
    }
    return true;
}

static bool prepare(tree_probe *p, char *const *file, int n, ses_err *e)
{
    p->layers = ses_alloc_array(SES_LAYER_SET_MAX, sizeof *p->layers, e);
    if (!p->layers || !ses_probe_check_options(p->common, SES_PROBE_TREES, e) ||
        !ses_probe_choose_layers(p->c, p->common->decoder, p->layers, &p->n_layers, &p->out.added_0, e))
        return false;
    p->width = (size_t)ses_word_states_width(p->c->model, p->common->decoder);
    if (!read_files(p, file, n, e) || !check_sets(p, file, n, e) || !choose_drawn(p, e)) return false;
    p->host = p->c->dev;
    if (!p->host->is_host) {
        ses_device_options threads = { .threads = ses_device_threads(p->c->dev) };
        p->own_host = true;
        if (!(p->host = ses_device_open("cpu", &threads, e))) return false;
    }
    bool random = !p->common->no_random;
    p->run = p->layers, p->n_run = p->out.n = p->n_layers;
    p->out.n_random = !random ? 0 : p->common->classify.random_all ? p->n_layers : 1;
    p->total = (int64_t)(p->out.n + p->out.n_random) * 2 * p->a->epochs;
    p->out.train = p->bank[TRAIN], p->out.dev = p->bank[DEV], p->out.test = p->bank[TEST];
    p->x = ses_alloc_huge(p->rows * p->width, sizeof *p->x, e);
    p->out.layer = p->x ? ses_alloc_array(p->n_layers, sizeof *p->out.layer, e) : NULL;
    if (p->out.layer && random &&
        !(p->out.random = ses_alloc_array(p->out.n_random, sizeof *p->out.random, e)))
        return false;
    return p->out.layer && ses_structural_score_order(&p->gold[TEST], &p->out.order, e);
}

static void free_layers(ses_tree_layer *layer, size_t n)
{
    for (size_t k = 0; layer && k < n; k++) {
        ses_structural_free(&layer[k].distance);
        ses_structural_free(&layer[k].depth);
    }
    ses_free(layer);
}

static void tree_probe_free(tree_probe *p)
{
    free_layers(p->out.layer, p->n_layers);
    free_layers(p->out.random, p->out.n_random);
    for (size_t k = 0; k < p->out.n_drawn; k++) ses_free(p->out.drawn[k].predicted);
    ses_free(p->out.drawn);
    for (int i = 0; i < N_SETS; i++) {
        ses_structural_gold_free(&p->gold[i]);
        ses_treebank_free(&p->part[i]);
        ses_treebank_free(&p->file[i]);
    }
    ses_state_spool_free(p->spool);
    ses_free(p->layers);
    ses_free(p->x);
    if (p->own_host) ses_device_free(p->host);
}

static bool run(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e)
{
    tree_probe p = { .c = c, .common = a, .a = &a->tree };
    bool ok = prepare(&p, file, n, e) && probe_model(&p, c->model, p.out.layer, true, e) &&
              (!p.out.random || probe_random(&p, e)) && ses_tree_report(c->report, &p.out, e);
    if (ok) ses_probe_note_windows(c, p.out.windowed);
    tree_probe_free(&p);
    return ok;
}

const ses_probe_kind ses_probe_kind_tree = { .name = "tree",
                                             .operands = "TRAIN.conllu [DEV.conllu [TEST.conllu]]",
                                             .min_files = 1,
                                             .max_files = N_SETS,
                                             .run = run };
