/* Long words merged in parts, split between characters that no token joins, against merging the whole
 * word: random vocabularies and words. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/tokenizer_impl.h"
#include "text/vocab/bpe.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

enum { CHARS = 12, MERGES = 60, TOKENS = CHARS + MERGES, LONG = 48, N = 3000 };

static const char *const letter[CHARS] = { "a", "b", "c", "d", "e",      "f",
                                           "g", "h", "i", "j", "\u00e9", "\u65e5" };

/* Tokens merged from earlier ones; some by two merges, some before their parts. */
static ses_tokenizer *draw_tokenizer(dice *d)
{
    static char token[TOKENS][LONG];
    int pair[MERGES][2];
    int n = CHARS;
    ses_buf b = { 0 };
    ses_err e = { 0 };
    for (int i = 0; i < CHARS; i++) snprintf(token[i], LONG, "%s", letter[i]);
    for (int tries = 0; n < TOKENS && tries < 4000; tries++) {
        int l = (int)roll(d, (uint32_t)n), r = (int)roll(d, (uint32_t)n);
        bool old = strlen(token[l]) + strlen(token[r]) > 12;
        char new[LONG];
        snprintf(new, LONG, "%.20s%.20s", token[l], token[r]);
        for (int i = 0; i < n; i++) old |= !strcmp(token[i], new);
        if (!old) memcpy(token[n], new, LONG);
        if (!old) pair[n - CHARS][0] = l, pair[n - CHARS][1] = r, n++;
    }
    ses_buf_puts(&b, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < n; i++) ses_buf_appendf(&b, "%s\"%s\":%d", i ? "," : "", token[i], i);
    ses_buf_puts(&b, "},\"merges\":[");
    int shift = (int)roll(d, 7);
    for (int i = 0; i < n - CHARS; i++) {
        int k = (i + shift) % (n - CHARS);
        ses_buf_appendf(&b, "%s[\"%s\",\"%s\"]", i ? "," : "", token[pair[k][0]], token[pair[k][1]]);
    }
    ses_buf_puts(&b, "]}}");
    ses_tokenizer *t = ses_tokenizer_from_json(b.data, b.len, &e);
    CHECK_MSG(t, "%s", e.msg);
    ses_buf_free(&b);
    return t;
}

static void check_round(uint32_t round)
{
    static int32_t id[2][N];
    static uint32_t len[2][N];
    dice d = { { .seed = 31, .step = round }, 0 };
    ses_tokenizer *t = draw_tokenizer(&d);
    if (!t) return;
    const ses_bpe *m = t->model.self;
    ses_merges whole = m->merges;
    whole.filter = NULL;
    ses_arena scratch = { 0 };
    ses_err e = { 0 };
    size_t splits = 0;
    bool same = m->merges.filter != NULL;
    for (int i = 0; same && i < 30; i++) {
        size_t n = 1 + roll(&d, N - 1), k[2] = { n, n };
        for (size_t j = 0; j < n; j++) {
            id[0][j] = id[1][j] = (int32_t)roll(&d, roll(&d, 9) ? 4 + round % 9 : TOKENS);
            len[0][j] = len[1][j] = 1 + roll(&d, 3);
            splits += j && !ses_merges_may_cross(&m->merges, id[0][j - 1], id[0][j]);
        }
        same = ses_merges_apply(&m->merges, id[0], len[0], &k[0], NULL, &scratch, &e) &&
               ses_merges_apply(&whole, id[1], len[1], &k[1], NULL, &scratch, &e) && k[0] == k[1] &&
               !memcmp(id[0], id[1], k[0] * sizeof id[0][0]) &&
               !memcmp(len[0], len[1], k[0] * sizeof len[0][0]);
    }
    CHECK_MSG(same, "round %u: %s", round, e.msg);
    CHECK_MSG(splits > 100, "round %u: %zu splits", round, splits);
    ses_arena_free(&scratch);
    ses_tokenizer_free(t);
}

int main(void)
{
    for (uint32_t round = 0; round < 60; round++) check_round(round);
    return check_report();
}
