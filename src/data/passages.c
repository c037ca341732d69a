/* The order of an epoch: shuffles documents, packs blocks of them into rows, shuffles the rows of each
 * block. */
#include "passages_impl.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK_TOKENS = 4 << 20, MAX_COPIES = 10000 };
enum { FOR_COPIES = 101, FOR_ORDER, FOR_ROWS, FOR_PACKING }; /* purposes of random streams */

/* ---- creation ---- */

static const ses_corpus_info *corpus_info(const ses_passages *r, size_t part)
{
    return ses_corpus_info_of(r->part[part].corpus);
}

static bool packs_pairs(const ses_passages *r)
{
    return r->o.packing == SES_PACK_SEGMENT_PAIR || r->o.packing == SES_PACK_SENTENCE_PAIR;
}

ses_mixture_doc ses_passages_doc(const ses_passages *r, uint32_t number)
{
    int32_t part = 0;
    while (number >= r->base[part + 1]) part++;
    return (ses_mixture_doc){ part, number,
                              ses_corpus_document(r->part[part].corpus, number - r->base[part]) };
}

static bool check(const ses_passages_options *o, ses_err *e)
{
    if (!o->n_parts) return ses_fail(e, SES_EARG, "no corpus");
    if (o->seq_len < 2 || o->seq_len > 1 << 20)
        return ses_fail(e, SES_EARG, "sequence length %lld, expected 2 to %d", (long long)o->seq_len,
                        1 << 20);
    if (!(o->exponent >= 0 && o->exponent <= 10))
        return ses_fail(e, SES_EARG, "mixture exponent %g, expected 0 to 10", o->exponent);
    for (size_t i = 0; i < o->n_parts; i++)
        if (!(o->parts[i].weight > 0 && isfinite(o->parts[i].weight)))
            return ses_fail(e, SES_EARG, "corpus %zu has weight %g, expected more than 0", i + 1,
                            o->parts[i].weight);
    return true;
}

/* Collects the usable documents: in the requested split and, for pairs, with more than one sentence. */
static bool find_usable(ses_passages *r, ses_err *e)
{
    uint64_t all = 0;
    for (size_t i = 0; i < r->o.n_parts; i++) all += (uint64_t)corpus_info(r, i)->documents;
    if (all > UINT32_MAX)
        return ses_fail(e, SES_EARG, "more than %" PRIu32 " documents in a mixture", UINT32_MAX);
    r->base = ses_alloc_array(r->o.n_parts + 1, sizeof *r->base, e);
    r->usable_at = ses_alloc_array(r->o.n_parts + 1, sizeof *r->usable_at, e);
    r->usable = ses_alloc_array((size_t)all + 1, sizeof *r->usable, e);
    if (!r->base || !r->usable_at || !r->usable) return false;
    uint32_t n = 0;
    for (size_t i = 0; i < r->o.n_parts; i++) {
        r->base[i + 1] = r->base[i] + (uint32_t)corpus_info(r, i)->documents;
        for (int64_t k = 0; k < corpus_info(r, i)->documents; k++) {
            ses_document d = ses_corpus_document(r->part[i].corpus, k);
            bool enough =
                packs_pairs(r) ? d.n_sentences > 1 || d.n_tokens > r->o.seq_len / 2 : d.n_tokens > 0;
            if (enough && d.held_out == r->o.held_out) r->usable[n++] = r->base[i] + (uint32_t)k;
        }
        r->usable_at[i + 1] = n;
        if (r->usable_at[i] < n) continue;
        const char *split = r->o.held_out ? "held-out" : "training";
        return packs_pairs(r) && corpus_info(r, i)->documents
                   ? ses_fail(e, SES_EARG,
                              "corpus %zu: no %s document has two sentences, which pairs need; if its lines "
                              "are paragraphs, rebuild it with sentence splitting (split-sentences)",
                              i + 1, split)
                   : ses_fail(e, SES_EARG, "corpus %zu: no %s documents", i + 1, split);
    }
    if (r->o.pairing == SES_PAIRS_RANDOM && n < 2)
        return ses_fail(e, SES_EARG, "random pairs need at least two documents");
    return true;
}

/* copies: the corpus gets a fraction q ~ weight * tokens ^ exponent of an epoch's tokens; divided by its own
 * fraction. */
static bool find_copies(ses_passages *r, ses_err *e)
{
    double all = 0, sum = 0;
    r->copies = ses_alloc_array(r->o.n_parts, sizeof *r->copies, e);
    double *tokens = ses_alloc_array(r->o.n_parts, sizeof *tokens, e);
    for (size_t i = 0; i < r->o.n_parts && r->copies && tokens; i++) {
        for (uint32_t k = r->usable_at[i]; k < r->usable_at[i + 1]; k++)
            tokens[i] += (double)ses_passages_doc(r, r->usable[k]).d.n_tokens;
        r->copies[i] = r->part[i].weight * pow(tokens[i], r->o.exponent);
        all += tokens[i];
        sum += r->copies[i];
    }
    bool ok = r->copies && tokens;
    for (size_t i = 0; ok && i < r->o.n_parts; i++) {
        r->copies[i] = r->o.n_parts == 1 ? 1 : r->copies[i] / sum * all / tokens[i];
        if (r->copies[i] > MAX_COPIES)
            ok = ses_fail(e, SES_EARG,
                          "corpus %zu would be repeated %.0f times per epoch: its weight is too large", i + 1,
                          r->copies[i]);
    }
    ses_free(tokens);
    return ok;
}

ses_passages *ses_passages_new(const ses_passages_options *o, ses_err *e)
{
    if (!check(o, e)) return NULL;
    ses_passages *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->o = *o;
    r->epoch = r->current_block = -1;
    r->part = ses_alloc_array(o->n_parts, sizeof *r->part, e);
    r->id = ses_alloc_array((size_t)o->seq_len, sizeof *r->id, e);
    r->starts = ses_alloc_array((size_t)o->seq_len, sizeof *r->starts, e);
    if (r->part && r->id && r->starts) {
        memcpy(r->part, o->parts, o->n_parts * sizeof *r->part);
        r->o.parts = r->part;
        if (find_usable(r, e) && find_copies(r, e) && ses_passages_count(r, 0, e) > 0) return r;
    }
    ses_passages_free(r);
    return NULL;
}

void ses_passages_free(ses_passages *r)
{
    if (!r) return;
    ses_free(r->part);
    ses_free(r->base);
    ses_free(r->usable);
    ses_free(r->usable_at);
    ses_free(r->copies);
    ses_free(r->order);
    ses_free(r->block);
    ses_free(r->doc);
    ses_free(r->row);
    ses_free(r->unit);
    ses_free(r->id);
    ses_free(r->starts);
    ses_free(r);
}

/* ---- an epoch ---- */

static uint64_t epoch_key(int64_t epoch, uint64_t of) { return (uint64_t)epoch << 40 | of; }

/* The first epoch with the same rows. */
static int64_t original(const ses_passages *r, int64_t epoch)
{
    return r->o.copies > 0 ? epoch % r->o.copies : epoch;
}

static bool build_order(ses_passages *r, int64_t epoch, ses_err *e)
{
    epoch = original(r, epoch);
    size_t n = 0;
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, epoch_key(epoch, 0), FOR_COPIES);
    for (size_t i = 0; i < r->o.n_parts; i++)
        for (uint32_t k = r->usable_at[i]; k < r->usable_at[i + 1]; k++) {
            int64_t copies = r->copies[i] == 1 ? 1 : ses_draw_round(&d, r->copies[i]);
            size_t want = n + (size_t)copies + 1; /* + 1: the order is never empty */
            if (!ses_array_reserve(&r->order, &r->order_cap, want, sizeof *r->order, e)) return false;
            for (int64_t c = 0; c < copies; c++) r->order[n++] = r->usable[k];
        }
    if (!n) r->order[n++] = r->usable[0];
    r->n_order = n;
    d = ses_rng_stream_of(r->o.seed, epoch_key(epoch, 0), FOR_ORDER);
    for (size_t i = n; !r->o.in_order && i > 1; i--) {
        size_t k = (size_t)ses_draw_below(&d, (int64_t)i);
        uint32_t x = r->order[i - 1];
        r->order[i - 1] = r->order[k];
        r->order[k] = x;
    }
    return true;
}

static bool add_block(ses_passages *r, size_t from, ses_err *e)
{
    if (!ses_array_reserve(&r->block, &r->block_cap, r->n_blocks + 2, sizeof *r->block, e)) return false;
    r->block[r->n_blocks++] = (ses_shuffle_block){ .from = from };
    r->block[r->n_blocks] = (ses_shuffle_block){ .from = r->n_order };
    return true;
}

static void shuffle_rows(ses_passages *r, int64_t block)
{
    for (size_t i = 0; i < r->n_rows; i++) r->row[i].index = (uint32_t)i;
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, epoch_key(r->epoch, (uint64_t)block), FOR_ROWS);
    for (size_t i = r->n_rows; !r->o.in_order && i > 1; i--) {
        size_t k = (size_t)ses_draw_below(&d, (int64_t)i);
        ses_packed_row x = r->row[i - 1];
        r->row[i - 1] = r->row[k];
        r->row[k] = x;
    }
}

static void remove_short_rows(ses_passages *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_rows; i++)
        if ((int64_t)r->row[i].n >= r->o.min_tokens) r->row[n++] = r->row[i];
    r->n_short = r->n_rows - n;
    r->n_rows = n;
}

/* Packs a block. Its documents are grouped by corpus, so that few rows contain two languages. */
static bool pack_block(ses_passages *r, int64_t block, ses_err *e)
{
    if (r->current_block == block) return true;
    const ses_shuffle_block *s = &r->block[block];
    size_t n = s[1].from - s->from;
    r->current_block = -1;
    if (!ses_array_reserve(&r->doc, &r->doc_cap, n, sizeof *r->doc, e)) return false;
    r->n_docs = 0;
    for (size_t part = 0; part < r->o.n_parts; part++)
        for (size_t i = s->from; i < s[1].from; i++)
            if (r->order[i] >= r->base[part] && r->order[i] < r->base[part + 1])
                r->doc[r->n_docs++] = ses_passages_doc(r, r->order[i]);
    uint64_t key = epoch_key(original(r, r->epoch), (uint64_t)block);
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, key, FOR_PACKING);
    if (!ses_passages_pack(r, &d, e)) return false;
    remove_short_rows(r);
    shuffle_rows(r, block);
    r->current_block = block;
    return true;
}

static bool begin_epoch(ses_passages *r, int64_t epoch, ses_err *e)
{
    if (r->epoch == epoch) return true;
    r->epoch = r->current_block = -1;
    r->n_blocks = 0;
    r->tokens = r->skipped = 0;
    if (!build_order(r, epoch, e)) return false;
    int64_t tokens = BLOCK_TOKENS, rows = 0;
    for (size_t i = 0; i < r->n_order; i++) {
        if (tokens >= BLOCK_TOKENS && !add_block(r, i, e)) return false;
        if (tokens >= BLOCK_TOKENS) tokens = 0;
        tokens += ses_passages_doc(r, r->order[i]).d.n_tokens;
    }
    r->epoch = epoch;
    for (size_t i = 0; i < r->n_blocks; i++) {
        if (!pack_block(r, (int64_t)i, e)) return r->epoch = -1, false;
        r->block[i].rows = rows;
        rows += (int64_t)r->n_rows;
        r->skipped += (int64_t)r->n_short;
        for (size_t k = 0; k < r->n_rows; k++) r->tokens += r->row[k].n;
    }
    r->block[r->n_blocks].rows = rows;
    if (rows > 0) return true;
    r->epoch = -1;
    if (!r->skipped) return ses_fail(e, SES_EARG, "the corpora give no rows");
    return ses_fail(e, SES_EARG,
                    "all %" PRId64 " passages have fewer than %" PRId64
                    " tokens: use longer texts or sequences, or fewer pieces",
                    r->skipped, r->o.min_tokens);
}

int64_t ses_passages_count(ses_passages *r, int64_t epoch, ses_err *e)
{
    return begin_epoch(r, epoch, e) ? r->block[r->n_blocks].rows : -1;
}

int64_t ses_passages_skipped(ses_passages *r, int64_t epoch, ses_err *e)
{
    return begin_epoch(r, epoch, e) ? r->skipped : -1;
}

int64_t ses_passages_tokens(ses_passages *r, int64_t epoch, ses_err *e)
{
    return begin_epoch(r, epoch, e) ? r->tokens : -1;
}

/* ---- a row ---- */

/* *first: the rows before its block; first may be NULL. */
static const ses_packed_row *find(ses_passages *r, int64_t epoch, int64_t i, int64_t *first, ses_err *e)
{
    if (!begin_epoch(r, epoch, e)) return NULL;
    size_t low = 0, high = r->n_blocks;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (r->block[mid].rows <= i)
            low = mid;
        else
            high = mid;
    }
    if (first) *first = r->block[low].rows;
    return pack_block(r, (int64_t)low, e) ? &r->row[i - r->block[low].rows] : NULL;
}

int64_t ses_passages_length(ses_passages *r, int64_t epoch, int64_t i, ses_err *e)
{
    const ses_packed_row *c = find(r, epoch, i, NULL, e);
    return c ? (int64_t)c->n : -1;
}

/* Fills tokens [at, end) of a row, starting at token `first` of a document of the block. */
static void read_from(ses_passages *r, size_t doc, int64_t first, int64_t at, int64_t end)
{
    for (; at < end; doc++, first = 0) {
        const ses_mixture_doc *m = &r->doc[doc];
        int64_t n = m->d.n_tokens - first < end - at ? m->d.n_tokens - first : end - at;
        ses_corpus_read(r->part[m->part].corpus, &m->d, first, n, r->id + at, r->starts + at);
        at += n;
    }
}

bool ses_passages_at(ses_passages *r, int64_t epoch, int64_t i, ses_passage *out, ses_err *e)
{
    int64_t first = 0;
    const ses_packed_row *c = find(r, epoch, i, &first, e);
    if (!c) return false;
    int64_t n = c->n, split = c->split, row = r->o.copies > 0 ? first + c->index : i;
    *out = (ses_passage){ .id = r->id,
                          .starts = r->starts,
                          .n = n,
                          .split = split,
                          .is_negative = c->random || c->swapped,
                          .number = epoch_key(original(r, epoch), (uint64_t)row),
                          .corpus = r->doc[c->doc].part };
    if (c->random) {
        ses_mixture_doc m = ses_passages_doc(r, c->other);
        read_from(r, c->doc, c->first, 0, split);
        ses_corpus_read(r->part[m.part].corpus, &m.d, c->other_first, n - split, r->id + split,
                        r->starts + split);
    } else if (c->swapped) { /* the second segment comes first */
        read_from(r, c->doc, (int64_t)c->first + n - split, 0, split);
        read_from(r, c->doc, c->first, split, n);
    } else {
        read_from(r, c->doc, c->first, 0, n);
    }
    return true;
}
