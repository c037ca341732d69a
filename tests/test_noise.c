/* What is corrupted: how much of it, where it may not be, and that it can be undone. */
#include "objective_fixture.h"

#include <math.h>

/* ---- masking ---- */

typedef struct counted {
    int64_t plain, chosen, masked, random, kept, cut_words, special, wrong, touching;
} counted;

static bool starts_word(const ses_passage *p, int64_t i) { return i == 0 || i == p->split || p->starts[i]; }

static void count_row(counted *c, const ses_masking *m, const ses_lexicon *x, const ses_passage *p,
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
            c->cut_words++;
        if (m->unit == SES_MASK_SPANS && i && chosen[i] && chosen[i - 1] && chosen[i] != chosen[i - 1])
            c->touching++;
    }
}

/* A word with a special token in it is no candidate; of tokens every plain one is. */
static int64_t candidates(const ses_bounds *w) { return w->tokens; }

static void check_masking(ses_mask_unit unit, double rate, int64_t rows)
{
    static text t;
    ses_lexicon x = fixture_lexicon();
    ses_masking m = { .unit = unit, .rate = rate, .as_mask = 0.8, .as_random = 0.1, .p = 0.2, .longest = 10 };
    if (unit == SES_MASK_NGRAMS) m.longest = 3;
    ses_bounds w = { 0 };
    counted c = { 0 };
    int64_t may = 0;
    int32_t chosen[LONGEST], out[LONGEST];
    for (int64_t r = 0; r < rows; r++) {
        ses_passage p = fixture_passage(&t, (uint64_t)(r % 512), 100 + r % 29, r % 3 == 0);
        ses_draws d = ses_draws_of(1, (uint64_t)r, SES_DRAW_MASK);
        if (!ses_mask_choose(&m, &p, x.special, &d, &w, chosen, NULL)) return;
        ses_mask_apply(&m, &p, &x, chosen, &d, out);
        may += candidates(&w);
        count_row(&c, &m, &x, &p, chosen, out);
    }
    double got = 100 * (double)c.chosen / (double)may, n = (double)c.chosen;
    CHECK_MSG(fabs(got - 100 * rate) < 0.1, "unit %d: %.3f %% chosen of %lld", (int)unit, got,
              (long long)may);
    /* a random token is the old one once in a vocabulary */
    double same = 0.1 / (VOCAB - FIRST_WORD);
    CHECK_MSG(fabs((double)c.masked / n - 0.8) < 1e-3, "unit %d: %f masks", (int)unit, (double)c.masked / n);
    CHECK_MSG(fabs((double)c.random / n - 0.1 + same) < 1e-3, "unit %d: %f", (int)unit, (double)c.random / n);
    CHECK_MSG(fabs((double)c.kept / n - 0.1 - same) < 1e-3, "unit %d: %f", (int)unit, (double)c.kept / n);
    CHECK(c.special == 0 && c.wrong == 0);
    CHECK_MSG(c.cut_words == 0, "unit %d: %lld words cut", (int)unit, (long long)c.cut_words);
    CHECK_MSG(c.touching == 0, "%lld spans beside each other", (long long)c.touching);
    ses_bounds_free(&w);
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

/* Lengths of SpanBERT's spans: geometric, cut at 10 and scaled, 3.8 words on average. */
static void test_lengths(void)
{
    ses_draws d = ses_draws_of(3, 4, 5);
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
    ses_lexicon x = fixture_lexicon();
    ses_bounds w = { 0 };
    int32_t chosen[LONGEST];
    for (int unit = SES_MASK_TOKENS; unit <= SES_MASK_SPANS; unit++)
        for (int64_t n = 1; n < 6; n++)
            for (uint64_t r = 0; r < 50; r++) {
                ses_passage p = fixture_passage(&t, r, n, false);
                ses_masking m = {
                    .unit = (ses_mask_unit)unit, .rate = r % 2 ? 1 : 0.15, .p = 0.2, .longest = 10
                };
                ses_draws d = ses_draws_of(1, r, 1);
                if (r == 49) memset(t.id, 0, sizeof t.id); /* nothing that may be masked */
                if (!ses_mask_choose(&m, &p, x.special, &d, &w, chosen, NULL)) return;
                int64_t count = 0;
                for (int64_t i = 0; i < n; i++) count += chosen[i] != 0;
                CHECK(count <= w.tokens);
                if (m.rate == 1 && unit < SES_MASK_NGRAMS) CHECK(count == w.tokens);
            }
    ses_bounds_free(&w);
}

int main(void)
{
    test_masking();
    test_lengths();
    test_edges();
    return check_report();
}
