/* Unigram training (Kudo 2018): starts with many candidates, then alternates between estimating their
 * probabilities by expectation maximization over all segmentations and removing the pieces whose loss
 * costs the least likelihood, until the vocabulary is small enough. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "unigram_lattice.h"
#include "unigram_seed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 1000000, ROUNDS = 2 };
/* fraction of pieces that survive one pruning; pieces with a lower expected count than RARE are removed */
static const double SHRINK = 0.75, RARE = 0.5;

typedef struct trainer {
    const ses_tokenizer_train_options *o;
    const ses_counted_words *words;
    ses_arena mem; /* strings of the pieces */
    ses_arena tries[2];
    ses_piece_model m;
    ses_lattice lattice;
    size_t cap;
    int turn;
} trainer;

/* ---- pieces ---- */

static bool put(trainer *t, const char *p, size_t n, double score, ses_err *e)
{
    ses_piece_model *m = &t->m;
    if (m->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 4096;
        ses_string *piece = ses_realloc_array(m->piece, cap, sizeof *piece, e);
        if (!piece) return false;
        m->piece = piece;
        double *s = ses_realloc_array(m->score, cap, sizeof *s, e);
        if (!s) return false;
        m->score = s;
        t->cap = cap;
    }
    m->piece[m->n] = (ses_string){ p, n };
    m->score[m->n++] = score;
    return true;
}

static bool rebuild(trainer *t, ses_err *e)
{
    ses_arena_free(&t->tries[t->turn]);
    t->turn ^= 1;
    return ses_piece_model_build(&t->m, &t->tries[t->turn], e);
}

/* Keep the listed pieces, in this order; piece 0 stays. */
static bool keep_pieces(trainer *t, const uint32_t *list, size_t n, ses_err *e)
{
    ses_string *piece = ses_alloc_array(n + 1, sizeof *piece, e);
    double *score = piece ? ses_alloc_array(n + 1, sizeof *score, e) : NULL;
    for (size_t i = 0; score && i < n; i++) {
        piece[1 + i] = t->m.piece[list[i]];
        score[1 + i] = t->m.score[list[i]];
    }
    if (score) {
        ses_free(t->m.piece);
        ses_free(t->m.score);
        t->m.piece = piece;
        t->m.score = score;
        t->m.n = t->cap = n + 1;
    } else {
        ses_free(piece);
    }
    return score != NULL;
}

typedef struct letter {
    uint32_t point;
    int64_t count;
} letter;

static int by_count(const void *a, const void *b)
{
    const letter *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->point > y->point ? -1 : x->point < y->point;
}

enum { POINTS = 0x110000 };

/* All characters, the most frequent first. */
static letter *letters(const trainer *t, size_t *n, ses_err *e)
{
    int64_t *count = ses_alloc_array(POINTS, sizeof *count, e);
    letter *list = NULL;
    *n = 0;
    for (size_t i = 0; count && i < t->words->n; i++)
        for (size_t at = 0; at < t->words->word[i].n;) {
            uint32_t c;
            at += ses_utf8_next(t->words->word[i].p + at, &c);
            *n += !count[c];
            count[c] += t->words->word[i].count;
        }
    if (count) list = ses_alloc_array(*n + 1, sizeof *list, e);
    for (uint32_t c = 0, k = 0; list && c < POINTS; c++)
        if (count[c]) list[k++] = (letter){ c, count[c] };
    if (list) qsort(list, *n, sizeof *list, by_count);
    ses_free(count);
    return list;
}

static bool put_points(trainer *t, const uint32_t *point, uint32_t n, double score, ses_err *e)
{
    char text[4 * 16], *copy;
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) len += ses_utf8_encode(point[i], text + len);
    copy = ses_arena_strndup(&t->mem, text, len, e);
    return copy && put(t, copy, len, score, e);
}

/* Highest score first; of equal ones the last in alphabetical order, as in HF Tokenizers. */
static int by_score(const void *a, const void *b)
{
    const ses_seed_candidate *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    return x->len > y->len ? -1 : x->len < y->len;
}

/* Initial pieces: characters with their counts and repeated substrings with their scores, as log
 * probabilities. */
static bool seed(trainer *t, ses_err *e)
{
    uint32_t *text = NULL;
    ses_seed_candidate *list = NULL;
    size_t n_text, n = 0, n_letters = 0;
    letter *each = letters(t, &n_letters, e);
    bool ok = each && put(t, NULL, 0, 0, e) && ses_unigram_seed(t->words, &text, &n_text, &list, &n, e);
    for (size_t i = 0; ok && i < n_letters; i++)
        ok = put_points(t, &each[i].point, 1, (double)each[i].count, e);
    if (ok && n) qsort(list, n, sizeof *list, by_score);
    for (size_t i = 0; ok && i < n && t->m.n <= SEEDS; i++)
        ok = put_points(t, text + list[i].at, list[i].len, list[i].score, e);
    double sum = 0;
    for (size_t i = 1; i < t->m.n; i++) sum += t->m.score[i];
    for (size_t i = 1; i < t->m.n; i++) t->m.score[i] = log(t->m.score[i]) - log(sum);
    ses_free(each);
    ses_free(list);
    ses_free(text);
    return ok && rebuild(t, e);
}

/* ---- expectation maximization ---- */

static double digamma(double x)
{
    double y = 0;
    for (; x < 7; x++) y -= 1 / x;
    x -= 0.5;
    double a = 1 / x, b = a * a, c = b * b;
    return y + log(x) + b / 24 - 7 * c / 960 + 31 * c * b / 8064 - 127 * c * c / 30720;
}

static bool run_em(trainer *t, ses_err *e)
{
    size_t n = 0;
    double sum = 0, log_prob, *expected = ses_alloc_array(t->m.n, sizeof *expected, e);
    uint32_t *list = expected ? ses_alloc_array(t->m.n, sizeof *list, e) : NULL;
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < t->words->n; i++)
        ok = ses_lattice_add_expected(&t->lattice, &t->m, &t->words->word[i], expected, &log_prob, e);
    for (size_t i = 1; ok && i < t->m.n; i++) {
        if (expected[i] < RARE) continue;
        list[n++] = (uint32_t)i;
        sum += expected[i];
    }
    for (size_t i = 0; ok && i < n; i++) t->m.score[list[i]] = digamma(expected[list[i]]) - digamma(sum);
    ok = ok && keep_pieces(t, list, n, e);
    ses_free(list);
    ses_free(expected);
    return ok && rebuild(t, e);
}

/* ---- pruning ---- */

typedef struct piece_use { /* usage of a piece */
    double times;          /* occurrences in the best segmentations of all words */
    double words;          /* occurrences of the words that contain it */
    bool always;           /* has no alternative segmentation */
    double loss;
} piece_use;

static bool count_uses(trainer *t, piece_use *use, double *all, ses_err *e)
{
    int found;
    *all = 0;
    for (size_t i = 0; i < t->words->n; i++) {
        const ses_counted_word *w = &t->words->word[i];
        if (!ses_lattice_best(&t->lattice, &t->m, w->p, w->n, 1, &found, e)) return false;
        *all += (double)w->count;
        for (size_t j = 0; found && j < t->lattice.n_path[0]; j++) {
            use[t->lattice.path[0][j]].times += (double)w->count;
            use[t->lattice.path[0][j]].words += (double)w->count;
        }
    }
    return true;
}

/* Likelihood lost if piece i is replaced by its second-best segmentation. Like HF Tokenizers, counts as
 * many new occurrences as there are pieces in the vocabulary, although the number of pieces in the
 * segmentation is meant. */
static bool compute_loss(trainer *t, piece_use *use, uint32_t i, double sum, double all, bool *candidate,
                         ses_err *e)
{
    int found;
    ses_string p = t->m.piece[i];
    if (!ses_lattice_best(&t->lattice, &t->m, p.p, p.n, 2, &found, e)) return false;
    bool whole = t->lattice.n_path[0] == 1;
    use[i].always = found < 2 || whole;
    *candidate = false;
    if (use[i].times == 0 && !use[i].always) return true;
    if (found < 2 || !whole) { /* no alternative: keep it */
        use[i].loss = INFINITY;
        *candidate = true;
        return true;
    }
    if (use[i].words == 0) return true;
    size_t n = t->lattice.n_path[1];
    double now = log(use[i].times) - log(sum), then = 0;
    double total = log(sum + use[i].times * (double)(t->m.n - 1));
    for (size_t j = 0; j < n; j++) then += log(use[t->lattice.path[1][j]].times + use[i].times) - total;
    use[i].loss = use[i].words / all * (now - then);
    *candidate = true;
    return true;
}

typedef struct ranked {
    uint32_t piece;
    double loss;
} ranked;

static int by_loss(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->loss != y->loss) return x->loss > y->loss ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

static bool prune(trainer *t, size_t wanted, ses_err *e)
{
    size_t target = (size_t)((double)t->m.n * SHRINK), n = 0;
    double sum = 0, all;
    piece_use *use = ses_alloc_array(t->m.n, sizeof *use, e);
    ranked *rank = use ? ses_alloc_array(t->m.n, sizeof *rank, e) : NULL;
    uint32_t *list = rank ? ses_alloc_array(t->m.n, sizeof *list, e) : NULL;
    bool ok = list && count_uses(t, use, &all, e);
    if (target < wanted) target = wanted;
    for (size_t i = 0; ok && i < t->m.n; i++) sum += use[i].times;
    for (uint32_t i = 1; ok && i < t->m.n; i++) {
        bool candidate;
        ok = compute_loss(t, use, i, sum, all, &candidate, e);
        if (ok && candidate) rank[n++] = (ranked){ i, use[i].loss };
    }
    if (ok) {
        /* pieces without an alternative first, then by decreasing loss */
        qsort(rank, n, sizeof *rank, by_loss);
        if (n > target - 1) n = target - 1;
        for (size_t i = 0; i < n; i++) list[i] = rank[i].piece;
        ok = keep_pieces(t, list, n, e);
    }
    ses_free(list);
    ses_free(rank);
    ses_free(use);
    return ok && rebuild(t, e);
}

/* ---- final vocabulary ---- */

typedef struct scored {
    ses_string s;
    double score;
} scored;

static int by_likelihood(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    size_t n = x->s.n < y->s.n ? x->s.n : y->s.n;
    int d = memcmp(x->s.p, y->s.p, n);
    return d ? d : x->s.n < y->s.n ? -1 : x->s.n > y->s.n;
}

/* Estimate the probabilities of the final pieces once more, by maximum likelihood. A piece that is never
 * expected gets the probability of half an occurrence. */
static bool estimate_final(trainer *t, scored *list, size_t n, ses_err *e)
{
    enum { TIMES = 4 };
    double *expected = NULL, log_prob;
    t->m.n = 1;
    for (size_t i = 0; i < n; i++)
        if (!put(t, list[i].s.p, list[i].s.n, list[i].score, e)) return false;
    bool ok = rebuild(t, e) && (expected = ses_alloc_array(n + 1, sizeof *expected, e));
    for (int round = 0; ok && round < TIMES; round++) {
        double sum = 0;
        memset(expected, 0, (n + 1) * sizeof *expected);
        for (size_t i = 0; ok && i < t->words->n; i++)
            ok = ses_lattice_add_expected(&t->lattice, &t->m, &t->words->word[i], expected, &log_prob, e);
        for (size_t i = 1; i <= n; i++) {
            if (expected[i] < RARE) expected[i] = RARE;
            sum += expected[i];
        }
        for (size_t i = 1; i <= n; i++) t->m.score[i] = log(expected[i] / sum);
    }
    for (size_t i = 0; ok && i < n; i++) list[i].score = t->m.score[1 + i];
    ses_free(expected);
    return ok;
}

/* All characters are included; the rest is filled in the order of the last pruning. Special tokens have
 * score 0. */
static bool finish(trainer *t, ses_trained_vocab *out, ses_err *e)
{
    size_t n_letters, n = 0, room = (size_t)t->o->vocab_size - out->n, special = out->n;
    letter *each = letters(t, &n_letters, e);
    scored *list = each ? ses_alloc_array(n_letters + t->m.n, sizeof *list, e) : NULL;
    bool *taken = list ? ses_alloc_array(t->m.n, sizeof *taken, e) : NULL, ok = taken != NULL;
    double least = 0, penalty = 0;
    for (size_t i = 1; ok && i < t->m.n; i++)
        if (t->m.score[i] < least) least = t->m.score[i];
    for (size_t i = 0; ok && i < n_letters; i++) {
        char text[4];
        size_t len = ses_utf8_encode(each[i].point, text);
        int32_t piece = ses_trie_find(&t->m.trie, text, len);
        if (piece > 0) {
            taken[piece] = true;
            list[n++] = (scored){ t->m.piece[piece], t->m.score[piece] };
            continue;
        }
        char *copy = ses_arena_strndup(&t->mem, text, len, e);
        ok = copy != NULL;
        list[n++] = (scored){ { copy, len }, least + penalty };
        penalty += 0.0001;
    }
    for (size_t i = 1; ok && i < t->m.n && n < room; i++)
        if (!taken[i]) list[n++] = (scored){ t->m.piece[i], t->m.score[i] };
    ok = ok && estimate_final(t, list, n, e);
    if (ok) qsort(list, n, sizeof *list, by_likelihood);
    for (size_t i = 0; ok && i < n; i++) ok = ses_trained_vocab_put(out, list[i].s.p, list[i].s.n, e);
    out->score = ok ? ses_alloc_array(out->n, sizeof *out->score, e) : NULL;
    for (size_t i = 0; out->score && i < n; i++) out->score[special + i] = list[i].score;
    ses_free(taken);
    ses_free(list);
    ses_free(each);
    return out->score != NULL;
}

static bool check_vocab_size(const trainer *t, const ses_trained_vocab *out, ses_err *e)
{
    size_t n;
    letter *each = letters(t, &n, e);
    ses_free(each);
    if (!each) return false;
    if ((int64_t)(n + out->n) <= t->o->vocab_size) return true;
    return ses_fail(e, SES_EARG, "vocab_size %lld is too small for %zu characters and %zu special tokens",
                    (long long)t->o->vocab_size, n, out->n);
}

bool ses_train_unigram(const ses_tokenizer_train_options *o, const ses_counted_words *words,
                       ses_trained_vocab *out, ses_err *e)
{
    trainer t = { .o = o, .words = words };
    size_t wanted = (size_t)o->vocab_size * 11 / 10, before = 0;
    bool ok = check_vocab_size(&t, out, e) && seed(&t, e);
    size_t first = t.m.n;
    while (ok) {
        for (int i = 0; ok && i < ROUNDS; i++) ok = run_em(&t, e);
        ok = ok && ses_tokenizer_train_report(o, "pruning", (int64_t)(first - t.m.n),
                                              (int64_t)first - (int64_t)wanted, e);
        if (!ok || t.m.n <= wanted || t.m.n == before) break;
        before = t.m.n;
        ok = prune(&t, wanted, e);
    }
    ok = ok && finish(&t, out, e);
    ses_lattice_free(&t.lattice);
    ses_free(t.m.piece);
    ses_free(t.m.score);
    ses_arena_free(&t.tries[0]);
    ses_arena_free(&t.tries[1]);
    ses_arena_free(&t.mem);
    return ok;
}
