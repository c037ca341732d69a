/* Appending of tokenized documents to a corpus. */
#include "corpus_writer.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

/* ---- duplicates ---- */

static bool seen_add(ses_hash_set *s, uint64_t hash, bool *fresh, ses_err *e)
{
    if (2 * s->n >= s->slots) {
        ses_hash_set old = *s;
        s->slots = old.slots ? 2 * old.slots : 1024;
        s->slot = ses_alloc_array(s->slots, sizeof *s->slot, e);
        if (!s->slot) return *s = old, false;
        s->n = 0;
        for (size_t i = 0; i < old.slots; i++)
            if (old.slot[i]) seen_add(s, old.slot[i], fresh, e);
        ses_free(old.slot);
    }
    if (!hash) hash = 1;
    size_t i = hash & (s->slots - 1);
    while (s->slot[i] && s->slot[i] != hash) i = (i + 1) & (s->slots - 1);
    *fresh = !s->slot[i];
    if (*fresh) s->slot[i] = hash, s->n++;
    return true;
}

static bool add_existing(void *ctx, const ses_corpus_entry *d, ses_err *e)
{
    bool fresh;
    return seen_add(ctx, d->hash, &fresh, e);
}

bool ses_corpus_writer_recall(ses_corpus_writer *w, ses_err *e)
{
    return w->keep_duplicates ||
           ses_spool_documents(&w->spool, w->at.head.documents, add_existing, &w->seen, e);
}

void ses_corpus_writer_free(ses_corpus_writer *w)
{
    ses_free(w->seen.slot);
    ses_spool_free(&w->spool);
}

/* ---- writing ---- */

static bool put_tokens(ses_corpus_writer *w, const ses_corpus_text *t, ses_err *e)
{
    ses_spool *s = &w->spool;
    char block[1024];
    size_t n = (size_t)t->tokens;
    bool ok = true;
    if (w->at.head.id_bytes == 4) ok = ses_spool_put(s, PART_TOKENS, t->id, n * sizeof *t->id, e);
    for (size_t i = 0; i < n && w->at.head.id_bytes == 2 && ok;) {
        size_t k = 0;
        for (; k < sizeof block / 2 && i < n; k++, i++) {
            uint16_t id = (uint16_t)t->id[i];
            memcpy(block + 2 * k, &id, 2);
        }
        ok = ses_spool_put(s, PART_TOKENS, block, 2 * k, e);
    }
    for (size_t i = 0; i < n && ok;) {
        size_t k = 0;
        for (; k < sizeof block && i < n; k++) {
            unsigned bits = 0;
            for (int bit = 0; bit < 8 && i < n; bit++, i++) bits |= (unsigned)t->word[i] << bit;
            block[k] = (char)bits;
        }
        ok = ses_spool_put(s, PART_WORDS, block, k, e);
    }
    return ok && ses_spool_put(s, PART_SENTENCES, t->sentence, (size_t)t->sentences * sizeof *t->sentence, e);
}

bool ses_corpus_writer_put(ses_corpus_writer *w, const ses_corpus_text *t, ses_err *e)
{
    ses_corpus_header *h = &w->at.head;
    bool fresh = true;
    h->bytes += t->bytes;
    h->bad_lines += t->bad_lines;
    if (!t->tokens) return h->empty++, true;
    if (!w->keep_duplicates && !seen_add(&w->seen, t->hash, &fresh, e)) return false;
    if (!fresh) return h->duplicates++, true;
    if (t->continues && !ses_spool_note_split(&w->spool, h->documents, e)) return false;
    if (t->continues) h->split_documents++;
    ses_corpus_entry d = { h->tokens, h->sentences, t->hash };
    if (h->documents == UINT32_MAX)
        return ses_fail(e, SES_EARG, "more than %" PRIu32 " documents", UINT32_MAX);
    if (!put_tokens(w, t, e) || !ses_spool_put(&w->spool, PART_DOCUMENTS, &d, sizeof d, e)) return false;
    h->tokens += (uint64_t)t->tokens;
    h->sentences += (uint64_t)t->sentences;
    h->unknown += (uint64_t)t->unknown;
    h->documents++;
    if (ses_corpus_is_held_out(t->hash, h->held_out_fraction))
        h->held_out++, h->held_out_tokens += (uint64_t)t->tokens;
    static const char zero[8] = { 0 }; /* the bits of the next document begin at a new byte */
    return ses_spool_put(&w->spool, PART_WORDS, zero,
                         (size_t)(h->tokens / 8 + h->documents - w->spool.size[PART_WORDS]), e);
}
