/* Rows: each token once, boundaries as the packing requires, correct pairs, and the same rows in any order of
 * calls. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_fixture.h"

#include "sesame/pretrain.h"

static ses_corpus *random_corpus(const corpus_fixture *f, const char *name, size_t bytes, unsigned seed,
                                 double held_share)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    corpus_text(&b, bytes, seed);
    ses_corpus *c = corpus_of(f, name, b.data, (ses_corpus_options){ .held_out_fraction = held_share }, &e);
    CHECK_MSG(c, "%s", e.msg);
    ses_buf_free(&b);
    return c;
}

/* All tokens of the held-out documents, or of the others. */
static int32_t *all_tokens(const ses_corpus *c, bool held_out, int64_t *n)
{
    const ses_corpus_info *x = ses_corpus_info_of(c);
    int32_t *id = ses_alloc_array((size_t)x->tokens + 1, sizeof *id, NULL);
    *n = 0;
    for (int64_t i = 0; i < x->documents; i++) {
        ses_document d = ses_corpus_document(c, i);
        if (d.held_out != held_out) continue;
        ses_corpus_read(c, &d, 0, d.n_tokens, id + *n, NULL);
        *n += d.n_tokens;
    }
    return id;
}

/* Rows in order, end to end, are the text. */
static void all_once(const ses_corpus *c, ses_packing packing, int64_t length, bool apart, bool held_out)
{
    ses_err e = { 0 };
    ses_mixture_part part = { c, 1 };
    ses_passages_options o = { .parts = &part,
                               .n_parts = 1,
                               .exponent = 1,
                               .packing = packing,
                               .seq_len = length,
                               .separator_tokens = 1,
                               .break_at_documents = apart,
                               .held_out = held_out,
                               .in_order = true };
    ses_passages *r = ses_passages_new(&o, &e);
    CHECK_MSG(r, "%s", e.msg);
    if (!r) return;
    int64_t n, at = 0, rows = ses_passages_count(r, 0, &e), bad = 0;
    int32_t *id = all_tokens(c, held_out, &n);
    bool alone = apart || packing == SES_PACK_DOC_SENTENCES,
         whole = packing != SES_PACK_BLOCKS && length >= 40;
    CHECK(ses_passages_tokens(r, 0, &e) == n);
    for (int64_t i = 0; i < rows; i++) {
        ses_passage p;
        if (!CHECK(ses_passages_at(r, 0, i, &p, &e))) break;
        int64_t documents = 0;
        for (int64_t k = 1; k < p.n; k++) documents += (p.starts[k] & SES_STARTS_DOCUMENT) != 0;
        bad += p.n + documents > length || p.n < 1 || at + p.n > n || p.split != p.n || p.is_negative;
        bad += (alone && documents) || (whole && !(p.starts[0] & SES_STARTS_SENTENCE));
        if (at + p.n > n) break;
        bad += memcmp(p.id, id + at, (size_t)p.n * sizeof *id) != 0;
        at += p.n;
    }
    CHECK_MSG(!bad && at == n, "packing %d, length %lld: %lld bad, %lld of %lld tokens", (int)packing,
              (long long)length, (long long)bad, (long long)at, (long long)n);
    if (packing == SES_PACK_BLOCKS && !apart && length >= 40) CHECK(n / rows > length * 8 / 10);
    ses_passages_free(r);
    ses_free(id);
}

/* Rows below min_tokens are skipped and counted; the others are unchanged. */
static void short_rows(const ses_corpus *c)
{
    ses_err e = { 0 };
    ses_mixture_part part = { c, 1 };
    ses_passages_options o = { .parts = &part,
                               .n_parts = 1,
                               .exponent = 1,
                               .packing = SES_PACK_DOC_SENTENCES,
                               .seq_len = 40,
                               .in_order = true };
    ses_passages *all = ses_passages_new(&o, &e);
    o.min_tokens = 12;
    ses_passages *r = ses_passages_new(&o, &e);
    CHECK_MSG(all && r, "%s", e.msg);
    int64_t rows = all && r ? ses_passages_count(all, 0, &e) : 0, n = 0;
    for (int64_t i = 0; i < rows; i++) {
        ses_passage a, b;
        if (!CHECK(ses_passages_at(all, 0, i, &a, &e))) break;
        if (a.n < o.min_tokens) continue;
        CHECK(ses_passages_at(r, 0, n++, &b, &e) && a.n == b.n &&
              !memcmp(a.id, b.id, (size_t)a.n * sizeof *a.id));
    }
    CHECK(n > 0 && n < rows && ses_passages_count(r, 0, &e) == n);
    CHECK(ses_passages_skipped(r, 0, &e) == rows - n && ses_passages_skipped(all, 0, &e) == 0);
    ses_passages_free(all);
    ses_passages_free(r);
    o.min_tokens = 41;
    CHECK(!ses_passages_new(&o, &e) && strstr(e.msg, "passages have fewer than 41 tokens"));
}

static uint64_t sum_of(const ses_passage *p)
{
    uint64_t h = 1469598103934665603u + (uint64_t)p->split;
    for (int64_t i = 0; i < p->n; i++) h = (h ^ (uint64_t)(p->id[i] << 3 | p->starts[i])) * 1099511628211u;
    return h;
}

/* Equal options give equal rows in any order of calls; epochs differ. */
static void same_rows(const ses_corpus *c, ses_packing packing, ses_pairing pairing)
{
    ses_err e = { 0 };
    ses_mixture_part part = { c, 1 };
    ses_passages_options o = { .parts = &part,
                               .n_parts = 1,
                               .exponent = 1,
                               .packing = packing,
                               .pairing = pairing,
                               .negative_rate = 0.5,
                               .short_seq_prob = 0.1,
                               .seq_len = 48,
                               .seed = 7 };
    ses_passages *a = ses_passages_new(&o, &e), *b = ses_passages_new(&o, &e);
    CHECK(a && b);
    if (!a || !b) return;
    int64_t rows = ses_passages_count(a, 2, &e), same = 0, other = 0;
    CHECK(ses_passages_count(b, 1, &e) > 0 && ses_passages_count(b, 2, &e) == rows);
    for (int64_t i = 0; i < rows; i++) {
        ses_passage p, q;
        int64_t k = (i * 7919) % rows;
        CHECK(ses_passages_at(a, 2, k, &p, &e));
        uint64_t want = sum_of(&p), number = p.number;
        ses_passages_at(b, 2, k, &q, &e);
        same += sum_of(&q) == want && q.number == number && ses_passages_length(b, 2, k, &e) == q.n;
    }
    for (int64_t i = 0; i < rows && i < ses_passages_count(b, 3, &e); i++) {
        ses_passage p, q;
        ses_passages_at(a, 2, i, &p, &e);
        uint64_t want = sum_of(&p);
        ses_passages_at(b, 3, i, &q, &e);
        other += sum_of(&q) != want;
    }
    CHECK_MSG(same == rows && other > rows * 9 / 10, "%lld, %lld of %lld", (long long)same, (long long)other,
              (long long)rows);
    ses_passages_free(a);
    ses_passages_free(b);
}

/* The document that contains these consecutive tokens; -1: none. */
static int64_t found_in(const ses_corpus *c, const int32_t *id, int64_t n)
{
    int32_t text[4096];
    for (int64_t i = 0; i < ses_corpus_info_of(c)->documents; i++) {
        ses_document d = ses_corpus_document(c, i);
        if (d.n_tokens > 4096) continue;
        ses_corpus_read(c, &d, 0, d.n_tokens, text, NULL);
        for (int64_t at = 0; at + n <= d.n_tokens; at++)
            if (!memcmp(text + at, id, (size_t)n * sizeof *id)) return i;
    }
    return -1;
}

static void pairs(const ses_corpus *c, ses_packing packing, ses_pairing pairing)
{
    ses_err e = { 0 };
    ses_mixture_part part = { c, 1 };
    ses_passages_options o = { .parts = &part,
                               .n_parts = 1,
                               .exponent = 1,
                               .packing = packing,
                               .pairing = pairing,
                               .negative_rate = 0.5,
                               .seq_len = 60,
                               .seed = 3 };
    ses_passages *r = ses_passages_new(&o, &e);
    CHECK_MSG(r, "%s", e.msg);
    if (!r) return;
    int64_t rows = ses_passages_count(r, 0, &e), negative = 0, bad = 0;
    for (int64_t i = 0; i < rows; i++) {
        ses_passage p;
        int32_t id[64];
        CHECK(ses_passages_at(r, 0, i, &p, &e));
        bad += p.n > 60 || p.split < 1 || p.split >= p.n;
        negative += p.is_negative;
        if (i >= 200) continue;
        int64_t b = p.n - p.split;
        memcpy(id, p.id, (size_t)p.n * sizeof *id);
        if (p.is_negative && pairing == SES_PAIRS_SWAPPED) { /* in swapped order it is the text */
            memcpy(id, p.id + p.split, (size_t)b * sizeof *id);
            memcpy(id + b, p.id, (size_t)p.split * sizeof *id);
        }
        if (p.is_negative && pairing == SES_PAIRS_RANDOM)
            bad +=
                found_in(c, id, p.split) < 0 || found_in(c, id + p.split, b) < 0 || !(p.starts[p.split] & 2);
        else
            bad += found_in(c, id, p.n) < 0;
    }
    double rate = (double)negative / (double)rows;
    CHECK_MSG(!bad, "packing %d, pairing %d: %lld bad of %lld", (int)packing, (int)pairing, (long long)bad,
              (long long)rows);
    CHECK_MSG(pairing == SES_PAIRS_POSITIVE ? rate == 0 : rate > 0.45 && rate < 0.55, "%g", rate);
    ses_passages_free(r);
}

static void mixture(const ses_corpus *small, const ses_corpus *large)
{
    static const struct {
        double weight[2], exponent, share; /* fraction of the small corpus, which has a fifth of the tokens */
    } mix[] = {
        { { 1, 1 }, 1, 0.2 }, { { 1, 1 }, 0, 0.5 }, { { 1, 1 }, 0.5, 1.0 / 3 }, { { 3, 1 }, 0, 0.75 }
    };
    double fifth = (double)ses_corpus_info_of(small)->tokens /
                   (double)(ses_corpus_info_of(small)->tokens + ses_corpus_info_of(large)->tokens);
    CHECK(fifth > 0.18 && fifth < 0.22);
    for (size_t k = 0; k < SES_LEN(mix); k++) {
        ses_err e = { 0 };
        ses_mixture_part part[] = { { small, mix[k].weight[0] }, { large, mix[k].weight[1] } };
        ses_passages_options o = { .parts = part,
                                   .n_parts = 2,
                                   .exponent = mix[k].exponent,
                                   .packing = SES_PACK_BLOCKS,
                                   .seq_len = 32 };
        ses_passages *r = ses_passages_new(&o, &e);
        double n[2] = { 0 };
        for (int64_t i = 0; r && i < ses_passages_count(r, 0, &e); i++) {
            ses_passage p;
            CHECK(ses_passages_at(r, 0, i, &p, &e));
            n[p.corpus] += (double)p.n;
        }
        double share = n[0] / (n[0] + n[1]);
        CHECK_MSG(share > mix[k].share - 0.03 && share < mix[k].share + 0.03, "%zu: %g", k, share);
        ses_passages_free(r);
    }
}

static void refusals(const corpus_fixture *f, const ses_corpus *c)
{
    ses_err e = { 0 };
    ses_corpus *single = corpus_of(f, "single", "a b c\n\nd e\n\nb\n", (ses_corpus_options){ 0 }, &e);
    ses_mixture_part part[] = { { c, 1 }, { single, 1 } };
    const struct {
        ses_passages_options o;
        const char *want;
    } bad[] = {
        { { .parts = part, .n_parts = 0, .seq_len = 8 }, "no corpus" },
        { { .parts = part, .n_parts = 1, .seq_len = 1 }, "sequence length 1," },
        { { .parts = part, .n_parts = 1, .seq_len = 8, .held_out = true }, "no held-out documents" },
        { { .parts = part + 1, .n_parts = 1, .seq_len = 16, .packing = SES_PACK_SEGMENT_PAIR },
          "two sentences" },
        { { .parts = &(ses_mixture_part){ c, 0 }, .n_parts = 1, .seq_len = 8 }, "has weight 0" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        e = (ses_err){ 0 };
        ses_passages *r = ses_passages_new(&bad[i].o, &e);
        CHECK_MSG(!r && strstr(e.msg, bad[i].want), "%zu: %s", i, e.msg);
        ses_passages_free(r);
    }
    ses_corpus_free(single);
}

int main(void)
{
    corpus_fixture f = corpus_begin();
    ses_corpus *c = random_corpus(&f, "c", 40000, 5, 0), *half = random_corpus(&f, "h", 40000, 9, 0.3);
    ses_corpus *large = random_corpus(&f, "l", 160000, 11, 0);
    if (c && half && large) {
        static const ses_packing one[] = { SES_PACK_BLOCKS, SES_PACK_FULL_SENTENCES, SES_PACK_DOC_SENTENCES };
        for (size_t i = 0; i < SES_LEN(one); i++)
            for (int apart = 0; apart < 2; apart++) {
                all_once(c, one[i], 5, apart, false); /* shorter than most sentences */
                all_once(c, one[i], 64, apart, false);
                all_once(half, one[i], 100, apart, apart);
            }
        for (int pairing = 0; pairing < 3; pairing++) {
            pairs(c, SES_PACK_SEGMENT_PAIR, (ses_pairing)pairing);
            pairs(c, SES_PACK_SENTENCE_PAIR, (ses_pairing)pairing);
            same_rows(c, SES_PACK_SEGMENT_PAIR, (ses_pairing)pairing);
        }
        same_rows(c, SES_PACK_BLOCKS, SES_PAIRS_POSITIVE);
        same_rows(c, SES_PACK_FULL_SENTENCES, SES_PAIRS_POSITIVE);
        mixture(c, large);
        short_rows(c);
        refusals(&f, c);
    }
    ses_corpus_free(c);
    ses_corpus_free(half);
    ses_corpus_free(large);
    corpus_end(&f);
    return check_report();
}
