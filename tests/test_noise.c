/* Corruptions: rates, protected tokens, and that the passage can be restored. */
#include "objective_fixture.h"

#include <math.h>

/* ---- masking ---- */

typedef struct counted {
    int64_t plain, chosen, masked, random, kept, split_words, special, wrong, touching;
} counted;

static bool starts_word(const ses_passage *p, int64_t i) { return i == 0 || i == p->split || p->starts[i]; }

static void count_row(counted *c, const ses_masking *m, const ses_special_tokens *x, const ses_passage *p,
                      const int32_t *chosen, const int32_t *out)
{
    for (int64_t i = 0; i < p->n; i++) {
        bool special = x->special[p->id[i]];
        c->plain += !special;
        c->special += special && chosen[i];
        if (!chosen[i]) {
            c->wrong += out[i] != p->id[i];
        } else {
            c->chosen++;
            if (out[i] == x->mask)
                c->masked++;
            else if (out[i] == p->id[i])
                c->kept++;
            else
                c->random++;
            c->wrong += out[i] != x->mask && x->special[out[i]];
        }
        if (m->unit != SES_MASK_TOKENS && i && !starts_word(p, i) && !chosen[i] != !chosen[i - 1] &&
            !special && !x->special[p->id[i - 1]])
            c->split_words++;
        if (m->unit == SES_MASK_SPANS && i && chosen[i] && chosen[i - 1] && chosen[i] != chosen[i - 1])
            c->touching++;
    }
}

/* A word with a special token is not a candidate; for single tokens every ordinary token is. */
static int64_t candidates(const ses_word_spans *w) { return w->tokens; }

static void check_masking(ses_mask_unit unit, double rate, int64_t rows)
{
    static text t;
    ses_special_tokens x = fixture_lexicon();
    ses_masking m = {
        .unit = unit, .rate = rate, .mask_rate = 0.8, .random_rate = 0.1, .geometric_p = 0.2, .max_words = 10
    };
    if (unit == SES_MASK_NGRAMS) m.max_words = 3;
    ses_word_spans w = { 0 };
    counted c = { 0 };
    int64_t may = 0;
    int32_t chosen[LONGEST], out[LONGEST];
    for (int64_t r = 0; r < rows; r++) {
        ses_passage p = fixture_passage(&t, (uint64_t)(r % 512), 100 + r % 29, r % 3 == 0);
        ses_rng_stream d = ses_rng_stream_of(1, (uint64_t)r, SES_RNG_MASK);
        if (!ses_mask_choose(&m, &p, x.special, &d, &w, chosen, NULL)) return;
        ses_mask_apply(&m, &p, &x, chosen, &d, out);
        may += candidates(&w);
        count_row(&c, &m, &x, &p, chosen, out);
    }
    double got = 100 * (double)c.chosen / (double)may, n = (double)c.chosen;
    CHECK_MSG(fabs(got - 100 * rate) < 0.1, "unit %d: %.3f %% chosen of %lld", (int)unit, got,
              (long long)may);
    /* a random token equals the old one with probability 1 / vocabulary */
    double same = 0.1 / (VOCAB - FIRST_WORD);
    CHECK_MSG(fabs((double)c.masked / n - 0.8) < 1e-3, "unit %d: %f masks", (int)unit, (double)c.masked / n);
    CHECK_MSG(fabs((double)c.random / n - 0.1 + same) < 1e-3, "unit %d: %f", (int)unit, (double)c.random / n);
    CHECK_MSG(fabs((double)c.kept / n - 0.1 - same) < 1e-3, "unit %d: %f", (int)unit, (double)c.kept / n);
    CHECK(c.special == 0 && c.wrong == 0);
    CHECK_MSG(c.split_words == 0, "unit %d: %lld words split", (int)unit, (long long)c.split_words);
    CHECK_MSG(c.touching == 0, "%lld spans beside each other", (long long)c.touching);
    ses_word_spans_free(&w);
}

static void test_masking(void)
{
    check_masking(SES_MASK_TOKENS, 0.15, 100000); /* more than 10^7 tokens */
    check_masking(SES_MASK_WORDS, 0.15, 100000);
    check_masking(SES_MASK_NGRAMS, 0.15, 100000);
    check_masking(SES_MASK_SPANS, 0.15, 100000);
    check_masking(SES_MASK_TOKENS, 0.4, 10000);
    check_masking(SES_MASK_WORDS, 0.8, 10000);
}

/* SpanBERT's span lengths: geometric, truncated at 10 and renormalized, mean 3.8 words. */
static void test_lengths(void)
{
    ses_rng_stream d = ses_rng_stream_of(3, 4, 5);
    double sum = 0, harmonic[4] = { 0 }, poisson = 0, squares = 0;
    enum { N = 1000000 };
    for (int i = 0; i < N; i++) {
        sum += (double)ses_draw_geometric(&d, 0.2, 10);
        harmonic[ses_draw_harmonic(&d, 3)]++;
        double k = (double)ses_draw_poisson(&d, 3);
        poisson += k, squares += k * k;
    }
    CHECK_MSG(fabs(sum / N - 3.797) < 0.01, "%f", sum / N);
    CHECK(fabs(harmonic[1] / N - 6.0 / 11) < 2e-3 && fabs(harmonic[3] / N - 2.0 / 11) < 2e-3);
    CHECK_MSG(fabs(poisson / N - 3) < 0.01 && fabs(squares / N - 12) < 0.1, "%f", poisson / N);
}

static void test_edges(void)
{
    static text t;
    ses_special_tokens x = fixture_lexicon();
    ses_word_spans w = { 0 };
    int32_t chosen[LONGEST];
    for (int unit = SES_MASK_TOKENS; unit <= SES_MASK_SPANS; unit++)
        for (int64_t n = 1; n < 6; n++)
            for (uint64_t r = 0; r < 50; r++) {
                ses_passage p = fixture_passage(&t, r, n, false);
                ses_masking m = {
                    .unit = (ses_mask_unit)unit, .rate = r % 2 ? 1 : 0.15, .geometric_p = 0.2, .max_words = 10
                };
                ses_rng_stream d = ses_rng_stream_of(1, r, 1);
                if (r == 49) memset(t.id, 0, sizeof t.id); /* nothing can be masked */
                if (!ses_mask_choose(&m, &p, x.special, &d, &w, chosen, NULL)) return;
                int64_t count = 0;
                for (int64_t i = 0; i < n; i++) count += chosen[i] != 0;
                CHECK(count <= w.tokens);
                if (m.rate == 1 && unit < SES_MASK_NGRAMS) CHECK(count == w.tokens);
            }
    ses_word_spans_free(&w);
}

/* ---- spans taken out whole ---- */

/* Gaps and spans cover the text; their total sizes are as requested; spans do not touch. */
static void test_spans(void)
{
    ses_ints lengths = { 0 };
    int64_t tokens = 0, noise = 0, spans = 0, wrong = 0;
    ses_span_options s = { .rate = 0.15, .mean_length = 3, .max_spans = 100 };
    for (uint64_t r = 0; r < 60000; r++) {
        ses_rng_stream d = ses_rng_stream_of(1, r, 2);
        int64_t n = 150 + (int64_t)(r % 50), sum = 0;
        if (!ses_spans_draw(n, &s, &d, &lengths, NULL)) return;
        for (size_t i = 0; i < lengths.n; i++) {
            wrong += lengths.p[i] < 1;
            sum += lengths.p[i];
            if (i % 2) noise += lengths.p[i], spans++;
        }
        wrong += sum != n || lengths.n % 2;
        tokens += n;
    }
    double rate = 100 * (double)noise / (double)tokens, mean = (double)noise / (double)spans;
    CHECK_MSG(tokens > 10000000 && fabs(rate - 15) < 0.1, "%f %%", rate);
    CHECK_MSG(fabs(mean - 3) < 0.02, "mean length %f", mean);
    CHECK(wrong == 0);
    for (int64_t n = 1; n < 30; n++)
        for (uint64_t r = 0; r < 20; r++) { /* short texts, few sentinels, much noise */
            ses_rng_stream d = ses_rng_stream_of(1, r, 2);
            ses_span_options few = { .rate = r % 2 ? 0.9 : 0.15, .mean_length = 3, .max_spans = 2 };
            int64_t sum = 0;
            CHECK(ses_spans_draw(n, &few, &d, &lengths, NULL) && lengths.n <= 4 && lengths.n % 2 == 0);
            for (size_t i = 0; i < lengths.n; i++) sum += lengths.p[i];
            CHECK(sum == n);
        }
    ses_ints_free(&lengths);
}

static void test_fragment(void)
{
    int64_t tokens = 0, inside = 0, wrong = 0;
    for (uint64_t r = 0; r < 100000; r++) {
        ses_rng_stream d = ses_rng_stream_of(1, r, 2);
        int64_t n = 90 + (int64_t)(r % 31), begin, len = ses_span_draw(n, 0.5, &d, &begin);
        wrong += begin < 0 || begin + len > n || len < 1;
        tokens += n, inside += len;
    }
    CHECK(wrong == 0 && fabs(100 * (double)inside / (double)tokens - 50) < 0.1);
}

/* ---- BART's noises ---- */

enum { PERMUTE = 1, DELETE = 2, HIDE = 4, INFILL = 8, ROTATE = 16 };

static bool noise(ses_noised_text *t, int which, const ses_passage *p, uint64_t r)
{
    ses_rng_stream d = ses_rng_stream_of(1, r, 2);
    return ses_noised_text_init(t, p, NULL) && (!(which & PERMUTE) || ses_noise_permute(t, &d, NULL)) &&
           (!(which & DELETE) || ses_noise_delete(t, 0.3, &d, NULL)) &&
           (!(which & HIDE) || ses_noise_mask(t, 0.3, 4, &d, NULL)) &&
           (!(which & INFILL) || ses_noise_infill(t, 0.3, 3, false, 4, &d, NULL)) &&
           (!(which & ROTATE) || ses_noise_rotate(t, &d, NULL));
}

static int by_number(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Every remaining token is one of the passage, none twice; restored to its source position, with the targets
 * for the rest, the passage is complete. Returns the number of remaining tokens. */
static int64_t check_noised(const ses_noised_text *t, const ses_passage *p)
{
    int32_t from[2 * LONGEST];
    int64_t n = 0, wrong = 0;
    for (size_t i = 0; i < t->id.n; i++) {
        if (t->source_pos.p[i] < 0)
            wrong += t->id.p[i] != 4;
        else
            wrong += t->id.p[i] != p->id[t->source_pos.p[i]], from[n++] = t->source_pos.p[i];
    }
    qsort(from, (size_t)n, sizeof *from, by_number);
    for (int64_t i = 0; i < n; i++) wrong += from[i] < 0 || from[i] >= p->n || (i && from[i] == from[i - 1]);
    CHECK(wrong == 0 && t->starts.n == t->id.n && t->source_pos.n == t->id.n);
    return n;
}

/* Infilling only: remaining tokens are in order, each removed span has one mask and consists of whole words;
 * no two masks are adjacent. */
static void check_infilled(const ses_noised_text *t, const ses_passage *p)
{
    int64_t next = 0, wrong = 0;
    for (size_t i = 0; i < t->id.n; i++) {
        bool mask = t->source_pos.p[i] < 0;
        if (mask) {
            wrong += i + 1 < t->id.n && t->source_pos.p[i + 1] < 0;
            next = i + 1 < t->id.n ? t->source_pos.p[i + 1] : p->n;
            wrong += next < p->n && !p->starts[next];
        } else {
            wrong += t->source_pos.p[i] != next++;
        }
    }
    CHECK(wrong == 0 && next == p->n);
}

static bool in_order(const ses_noised_text *t, const ses_passage *p, int flags)
{
    for (size_t i = 1; i < t->source_pos.n; i++)
        if (t->source_pos.p[i] != t->source_pos.p[i - 1] + 1 && !(p->starts[t->source_pos.p[i]] & flags))
            return false;
    return true;
}

static void test_bart(void)
{
    static text x;
    static const int all[] = { PERMUTE, DELETE, HIDE, INFILL, ROTATE, INFILL | PERMUTE, 31 };
    ses_noised_text t = { 0 };
    for (size_t k = 0; k < SES_LEN(all); k++) {
        int64_t tokens = 0, left = 0, words = 0, kept = 0;
        for (uint64_t r = 0; r < 20000; r++) {
            ses_passage p = fixture_passage(&x, r % 512, 120 + (int64_t)(r % 13), false);
            if (!noise(&t, all[k], &p, r)) return;
            tokens += p.n;
            left += check_noised(&t, &p);
            if (all[k] == INFILL) check_infilled(&t, &p);
            if (all[k] == PERMUTE) CHECK(in_order(&t, &p, SES_STARTS_SENTENCE));
            if (all[k] == HIDE) CHECK(t.id.n == (size_t)p.n);
            for (int64_t i = 0; i < p.n; i++) words += p.starts[i] != 0;
            for (size_t i = 0; i < t.id.n; i++) kept += t.source_pos.p[i] >= 0 && p.starts[t.source_pos.p[i]];
            if (r > 2000 && all[k] != INFILL && all[k] != DELETE && all[k] != HIDE) break;
        }
        double rate = 100 - 100 * (double)left / (double)tokens;
        if (all[k] == DELETE || all[k] == HIDE)
            CHECK_MSG(fabs(rate - 30) < 0.1, "noise %d: %f", all[k], rate);
        double of_words = 100 - 100 * (double)kept / (double)words;
        if (all[k] == INFILL) CHECK_MSG(fabs(of_words - 30) < 0.1, "%f %% of words", of_words);
        if (all[k] == PERMUTE || all[k] == ROTATE) CHECK(left == tokens);
    }
    for (int64_t n = 1; n < 9; n++)
        for (uint64_t r = 0; r < 100; r++) { /* short texts, all noise functions, high rates */
            ses_passage p = fixture_passage(&x, r, n, false);
            ses_rng_stream d = ses_rng_stream_of(1, r, 2);
            CHECK(noise(&t, 31, &p, r) && t.id.n > 0);
            check_noised(&t, &p);
            CHECK(ses_noised_text_init(&t, &p, NULL) && ses_noise_infill(&t, 1, 0.5, r % 2, 4, &d, NULL));
            CHECK(check_noised(&t, &p) == 0 && t.id.n == 1);
        }
    ses_noised_text_free(&t);
}

/* ---- reading orders ---- */

/* Definition: i attends to j if j is context, if j precedes i in the order, or if j is i and not a target. */
static void test_order(void)
{
    enum { N = 40 };
    for (uint64_t r = 0; r < 200; r++) {
        uint8_t role[N], hidden[N * N];
        int32_t turn[N], when[N], rank = 0;
        ses_rng_stream d = ses_rng_stream_of(1, r, 2), roles = ses_rng_stream_of(2, r, 2);
        int64_t n = 1 + (int64_t)(r % N), wrong = 0;
        for (int64_t i = 0; i < n; i++) role[i] = (uint8_t)(ses_draw_below(&roles, 6) % 3);
        ses_permutation_mask(role, n, &d, turn, hidden);
        for (int64_t i = 0; i < n; i++) { /* the same order, as ranks */
            when[i] = 0;
            for (int64_t j = 0; j < n; j++) when[i] += role[j] && turn[j] < turn[i];
            rank += role[i] && turn[i] < 0;
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                bool before = role[i] && when[j] < when[i], self = i == j && role[i] == SES_PERM_FUNCTIONAL;
                bool sees = role[j] == SES_PERM_CONTEXT || before || self;
                wrong += hidden[i * n + j] == sees;
            }
        CHECK(wrong == 0 && rank == 0);
    }
}

int main(void)
{
    test_spans();
    test_fragment();
    test_bart();
    test_order();
    test_masking();
    test_lengths();
    test_edges();
    return check_report();
}
