/* The word store against a plain list of its records: lookups return the stored record, the newest is
 * always found, overwritten ones are not. */
#include "base/rng.h"
#include "check.h"
#include "text/fast/word_store_emit.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

enum { WORDS = 20000 };

/* Word number i and its record header, as a function of i. */
static ses_word_record draw(uint32_t i, char *word)
{
    dice d = { { .seed = 21, .step = i }, 0 };
    ses_word_record x = { .len = (uint16_t)(16 + roll(&d, roll(&d, 2) ? 240 : SES_WORD_STORE_LONG - 15)),
                          .tag = i % 3 };
    x.n = (uint16_t)(1 + roll(&d, x.len));
    x.tiles = roll(&d, 2);
    x.split = roll(&d, 2);
    x.words = (uint8_t)(1 + roll(&d, 200));
    for (size_t j = 0; j < x.len; j++) word[j] = (char)roll(&d, 256);
    memcpy(word, &i, sizeof i);
    return x;
}

static uint8_t part(uint32_t i, size_t j) { return (uint8_t)(i * 31 + j * 7); }

static void fill(const ses_word_record *x, uint32_t i)
{
    ses_word_record_parts p = ses_word_record_parts_of(x);
    for (size_t j = 0; j < x->n; j++) {
        p.id[j] = (int32_t)(i ^ j);
        ses_word_record_set_offset(&p, j, (ses_offset){ part(i, j), part(i, j + 1) });
        if (x->split) p.word[j] = part(i, j + 2);
    }
}

/* Whether the record's tokens are emitted correctly. */
static bool is_right(const ses_word_record *x, uint32_t i, ses_token_buf *r)
{
    r->n = 0;
    r->n_words = 1000;
    ses_word_record_emit(r, x, i);
    bool right = r->n == x->n && r->n_words == 1000u + x->words;
    for (size_t j = 0; right && j < r->n; j++)
        right = r->id[j] == (int32_t)(i ^ j) && r->byte_offset[j].begin == i + part(i, j) &&
                r->byte_offset[j].end == i + part(i, j + 1) &&
                r->word_id[j] == 1000 + (x->split ? part(i, j + 2) : 0);
    return right;
}

static void check_ring(void)
{
    static uint32_t position[WORDS];
    static int32_t id[1100], number[1100];
    static ses_offset byte[1100];
    ses_token_buf r = { .id = id, .byte_offset = byte, .word_id = number, .cap = SES_LEN(id) };
    ses_word_store s;
    ses_err e = { 0 };
    ses_word_hash h = ses_word_hash_new();
    char word[SES_WORD_STORE_LONG];
    if (!CHECK(ses_word_store_open(&s, &e))) return;
    uint32_t newest = 0, wrong = 0, found = 0, gone = 0;
    for (uint32_t i = 0; i < WORDS; i++) { /* about 40 MB through a ring of 16 MB */
        ses_word_record like = draw(i, word);
        ses_word_record *x = ses_word_store_put(&s, &like, word, &position[i]);
        if (!CHECK(x)) break;
        fill(x, i);
        ses_word_store_add_index(&s, ses_word_store_hash(&h, word, like.len, like.tag), position[i]);
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t old = k ? i - (i * 2654435761u >> 7) % (i + 1) : i;
            ses_word_record was = draw(old, word);
            uint64_t hash = ses_word_store_hash(&h, word, was.len, was.tag);
            const ses_word_record *y = ses_word_store_at(&s, ses_word_store_find(&s, hash));
            if (y && !ses_word_record_matches(y, word, was.len, was.tag)) y = NULL;
            wrong += y && !is_right(y, old, &r);
            wrong += y && y != ses_word_store_at(&s, position[old]);
            newest += k == 0 && y;
            found += k && y;
            gone += !ses_word_store_at(&s, position[old]);
        }
    }
    CHECK_MSG(!wrong && newest == WORDS && found && gone, "%u wrong, %u new, %u found, %u gone", wrong,
              newest, found, gone);
    s.head = 1u << 31;
    ses_word_record like = draw(0, word);
    CHECK(ses_word_store_exhausted(&s) && !ses_word_store_put(&s, &like, word, &position[0]));
    ses_word_store_clear(&s);
    CHECK(!ses_word_store_find(&s, ses_word_store_hash(&h, word, like.len, like.tag)));
    CHECK(!ses_word_store_at(&s, 5) && ses_word_store_put(&s, &like, word, &position[0]) &&
          ses_word_store_at(&s, position[0]));
    ses_word_store_close(&s);
}

int main(void)
{
    check_ring();
    return check_report();
}
