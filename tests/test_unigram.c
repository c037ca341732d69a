/* Viterbi search of Unigram against a naive search over all pieces, on random vocabularies with many equal
 * scores and sums. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/tokenizer_impl.h"
#include "text/vocab/unigram_model.h"

#include <math.h>

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

enum { PIECES = 300, MAX_PIECE = 40, MAX_WORD = 400 };

typedef struct piece {
    char byte[MAX_PIECE];
    size_t n;
    double score;
} piece;

static const char *const letter[] = {
    "a", "b", "c", "e", "t", ".", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x91\x8d", "z"
};

static size_t draw_string(dice *d, char *out, size_t chars, uint32_t kinds)
{
    size_t n = 0;
    for (size_t i = 0; i < chars; i++) {
        const char *s = letter[roll(d, kinds)];
        memcpy(out + n, s, strlen(s));
        n += strlen(s);
    }
    return n;
}

/* Piece 0 is the unknown token; no duplicates. "z" and others may not be pieces. */
static size_t draw_pieces(dice *d, piece *p, uint32_t kinds)
{
    size_t n = 1;
    p[0] = (piece){ "<unk>", 5, 0 };
    for (int i = 0; i < PIECES - 1; i++) {
        piece x = { .score = -1.0 - roll(d, 40) / (roll(d, 4) ? 4.0 : 7.0) };
        x.n = draw_string(d, x.byte, 1 + roll(d, roll(d, 8) ? 4 : 10), kinds);
        bool old = false;
        for (size_t j = 0; j < n; j++) old |= p[j].n == x.n && !memcmp(p[j].byte, x.byte, x.n);
        if (!old) p[n++] = x;
    }
    return n;
}

static ses_tokenizer *make(const piece *p, size_t n)
{
    ses_err e = { 0 };
    size_t len;
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_json_begin_object(w);
    ses_json_put_key(w, "model");
    ses_json_begin_object(w);
    ses_json_put_key(w, "type");
    ses_json_put_string(w, "Unigram");
    ses_json_put_key(w, "unk_id");
    ses_json_put_int(w, 0);
    ses_json_put_key(w, "vocab");
    ses_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_array(w);
        ses_json_put_stringn(w, p[i].byte, p[i].n);
        ses_json_put_real(w, p[i].score);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &len, &e);
    ses_tokenizer *t = text ? ses_tokenizer_from_json(text, len, &e) : NULL;
    CHECK_MSG(t, "%s", e.msg);
    ses_json_writer_free(w);
    return t;
}

/* From each position in order, try every piece that fits, the shortest first; a path is replaced only by a
 * better one. Consecutive unknown characters become one token. */
static size_t plain(const ses_unigram *m, const piece *p, size_t pieces, const char *word, size_t n,
                    ses_token *out)
{
    static double sum[MAX_WORD + 1];
    static size_t start[MAX_WORD + 1];
    static int32_t id[MAX_WORD + 1];
    for (size_t i = 0; i <= n; i++) sum[i] = i ? -INFINITY : 0;
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t cp;
        step = ses_utf8_decode(word + i, n - i, &cp);
        bool single = false;
        for (size_t len = 1; i + len <= n; len++)
            for (size_t k = 1; k < pieces; k++) {
                if (p[k].n != len || memcmp(p[k].byte, word + i, len)) continue;
                single |= len == step;
                if (m->score[k] + sum[i] > sum[i + len])
                    sum[i + len] = m->score[k] + sum[i], start[i + len] = i, id[i + len] = (int32_t)k;
            }
        if (!single && m->unk_score + sum[i] > sum[i + step])
            sum[i + step] = m->unk_score + sum[i], start[i + step] = i, id[i + step] = 0;
    }
    size_t count = 0;
    for (size_t end = n; end; end = start[end]) {
        if (count && !id[end] && !out[count - 1].id)
            out[count - 1].begin = (uint32_t)start[end];
        else
            out[count++] = (ses_token){ id[end], (uint32_t)start[end], (uint32_t)end };
    }
    for (size_t i = 0; i < count / 2; i++) {
        ses_token swap = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swap;
    }
    return count;
}

static void check_round(uint32_t round)
{
    static piece p[PIECES];
    static ses_token want[MAX_WORD];
    char word[MAX_WORD];
    dice d = { { .seed = 41, .step = round }, 0 };
    uint32_t kinds = round % 3 ? 6 : (uint32_t)SES_LEN(letter) - 1;
    size_t n = draw_pieces(&d, p, kinds);
    ses_tokenizer *t = make(p, n);
    if (!t) return;
    ses_token_list got = { 0 };
    ses_arena scratch = { 0 };
    ses_err e = { 0 };
    int wrong = 0;
    for (int i = 0; i < 60; i++) {
        size_t len = draw_string(&d, word, 1 + roll(&d, i % 4 ? 12 : 100),
                                 round % 2 ? kinds : (uint32_t)SES_LEN(letter));
        size_t count = plain(t->model.self, p, n, word, len, want);
        got.n = 0;
        bool ok = ses_unigram_encode(t->model.self, word, len, &got, &scratch, &e) && got.n == count;
        wrong += !ok || memcmp(got.token, want, count * sizeof *want);
    }
    CHECK_MSG(!wrong, "round %u: %d of 60 words", round, wrong);
    ses_token_list_free(&got);
    ses_arena_free(&scratch);
    ses_tokenizer_free(t);
}

int main(void)
{
    for (uint32_t round = 0; round < 30; round++) check_round(round);
    return check_report();
}
