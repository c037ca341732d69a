/* The ring buffer of word records and its index. */
#include "word_store.h"

#include "base/alloc.h"

enum { UNITS = 1 << SES_WORD_STORE_BITS };

bool ses_word_store_open(ses_word_store *s, ses_err *e)
{
    s->head = 1; /* 0 means none */
    s->ring = ses_alloc_huge(UNITS + SES_WORD_STORE_SLACK / 8, sizeof *s->ring, e);
    s->index = ses_alloc_array((size_t)4 << SES_WORD_STORE_INDEX_BITS, sizeof *s->index, e);
    if (s->ring && s->index) return true;
    ses_word_store_close(s);
    return false;
}

void ses_word_store_close(ses_word_store *s)
{
    ses_free(s->ring);
    ses_free(s->index);
    *s = (ses_word_store){ 0 };
}

void ses_word_store_clear(ses_word_store *s)
{
    s->head = 1;
    memset(s->index, 0, ((size_t)4 << SES_WORD_STORE_INDEX_BITS) * sizeof *s->index);
}

ses_word_record *ses_word_store_put(ses_word_store *s, const ses_word_record *like, const char *word,
                                    uint32_t *position)
{
    size_t offsets = like->tiles ? (size_t)like->n + 1 : 2 * (size_t)like->n;
    size_t parts = offsets * (like->len > SES_WORD_STORE_NARROW ? 2 : 1) + (like->split ? like->n : 0);
    size_t bytes = sizeof *like + like->n * sizeof(int32_t) + like->len + parts + like->names;
    uint32_t units = (uint32_t)((bytes + 7) / 8);
    if (ses_word_store_exhausted(s)) return NULL;
    uint32_t left = UNITS - (s->head & (UNITS - 1)); /* records are contiguous */
    if (left < units) s->head += left;
    *position = s->head;
    s->head += units;
    ses_word_record *x = (ses_word_record *)&s->ring[*position & (UNITS - 1)];
    *x = *like;
    memcpy(ses_word_record_parts_of(x).key, word, like->len);
    return x;
}

/* Replaces, in this order: the entry with the same hash, a free one, the oldest of the four. */
void ses_word_store_add_index(ses_word_store *s, uint64_t hash, uint32_t position)
{
    uint64_t *b = ses_word_store_bucket(s, hash);
    int to = 0;
    for (int i = 0; i < 4; i++) {
        if (b[i] >> 32 == (uint32_t)hash) {
            to = i;
            break;
        }
        if ((uint32_t)b[i] < (uint32_t)b[to]) to = i;
    }
    b[to] = (uint64_t)(uint32_t)hash << 32 | position;
}
