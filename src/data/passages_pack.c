/* Packing of the documents of a block into rows. */
#include "passages_impl.h"

#include "base/alloc.h"

static bool add(ses_passages *r, ses_packed_row c, ses_err *e)
{
    if (!ses_array_reserve(&r->row, &r->row_cap, r->n_rows + 1, sizeof *r->row, e)) return false;
    r->row[r->n_rows++] = c;
    return true;
}

static bool add_unit(ses_passages *r, int64_t at, ses_err *e)
{
    if (!ses_array_reserve(&r->unit, &r->unit_cap, r->n_units + 1, sizeof *r->unit, e)) return false;
    r->unit[r->n_units++] = (uint32_t)at;
    return true;
}

/* Divides a document into units: its sentences; sentences longer than max_len are split into pieces of
 * similar length. unit[n_units] is the end of the document. */
static bool find_units(ses_passages *r, const ses_mixture_doc *m, int64_t max_len, ses_err *e)
{
    const ses_corpus *c = r->part[m->part].corpus;
    r->n_units = 0;
    for (int64_t s = 0; s < m->d.n_sentences; s++) {
        int64_t from = ses_corpus_sentence_start(c, &m->d, s),
                n = ses_corpus_sentence_start(c, &m->d, s + 1) - from;
        int64_t pieces = (n + max_len - 1) / max_len;
        for (int64_t k = 0; k < pieces; k++)
            if (!add_unit(r, from + n * k / pieces, e)) return false;
    }
    if (!add_unit(r, m->d.n_tokens, e)) return false;
    r->n_units--;
    return true;
}

static bool spans_documents(const ses_passages *r)
{
    return !r->o.break_at_documents && r->o.packing != SES_PACK_DOC_SENTENCES;
}

/* ---- one segment ---- */

/* The row being packed. */
typedef struct open_row {
    ses_packed_row c;
    int64_t cost; /* tokens, including reserved separators */
} open_row;

static bool close_row(ses_passages *r, open_row *o, ses_err *e)
{
    bool ok = !o->c.n || (o->c.split = o->c.n, add(r, o->c, e));
    *o = (open_row){ 0 };
    return ok;
}

static bool append(ses_passages *r, open_row *o, size_t doc, int64_t first, int64_t n)
{
    int64_t cost = n + (o->c.n && first == 0 ? r->o.separator_tokens : 0);
    if (o->cost + cost > r->o.seq_len) return false;
    if (!o->c.n) o->c = (ses_packed_row){ .doc = (uint32_t)doc, .first = (uint32_t)first };
    o->c.n += (uint32_t)n;
    o->cost += cost;
    return true;
}

static bool pack_sentences(ses_passages *r, ses_err *e)
{
    open_row row = { 0 };
    for (size_t p = 0; p < r->n_docs; p++) {
        bool joins = p && spans_documents(r) && r->doc[p].part == r->doc[p - 1].part;
        if (!joins && !close_row(r, &row, e)) return false;
        if (!find_units(r, &r->doc[p], r->o.seq_len, e)) return false;
        for (size_t u = 0; u < r->n_units; u++) {
            int64_t first = r->unit[u], n = r->unit[u + 1] - first;
            if (append(r, &row, p, first, n)) continue;
            if (!close_row(r, &row, e)) return false;
            append(r, &row, p, first, n);
        }
    }
    return close_row(r, &row, e);
}

static bool pack_blocks(ses_passages *r, ses_err *e)
{
    open_row row = { 0 };
    for (size_t p = 0; p < r->n_docs; p++) {
        bool joins = p && spans_documents(r) && r->doc[p].part == r->doc[p - 1].part;
        if (!joins && !close_row(r, &row, e)) return false;
        for (int64_t at = 0, n; at < r->doc[p].d.n_tokens; at += n) {
            int64_t left = r->o.seq_len - row.cost - (row.c.n && at == 0 ? r->o.separator_tokens : 0);
            n = r->doc[p].d.n_tokens - at;
            if (n > left) n = left > 0 ? left : 0;
            if (n) append(r, &row, p, at, n);
            if (row.cost >= r->o.seq_len || !n)
                if (!close_row(r, &row, e)) return false;
        }
    }
    return close_row(r, &row, e);
}

/* ---- two segments ---- */

/* Draws a random second segment: at most `want` tokens from the start of a sentence of another document. */
static void draw_other(ses_passages *r, ses_packed_row *c, int64_t want, ses_rng_stream *d)
{
    uint32_t all = r->usable_at[r->o.n_parts], mine = r->doc[c->doc].number, pick = 0;
    for (int i = 0; i < 16; i++) { /* almost always ends after one or two draws */
        pick = (uint32_t)ses_draw_below(d, all);
        if (r->usable[pick] != mine) break;
    }
    if (r->usable[pick] == mine) pick = (pick + 1) % all;
    ses_mixture_doc m = ses_passages_doc(r, r->usable[pick]);
    int64_t first =
                ses_corpus_sentence_start(r->part[m.part].corpus, &m.d, ses_draw_below(d, m.d.n_sentences)),
            n = m.d.n_tokens - first;
    c->random = true;
    c->other = m.number;
    c->other_first = (uint32_t)first;
    c->n = c->split + (uint32_t)(n < want ? n : want);
}

/* Units [from, split) and [split, to) as a pair, truncated at its outer ends, the longer segment first. */
static ses_packed_row pair_of(const ses_passages *r, size_t doc, size_t from, size_t split, size_t to)
{
    int64_t begin = r->unit[from], middle = r->unit[split], end = r->unit[to];
    int64_t over = end - begin - r->o.seq_len, half = r->o.seq_len / 2;
    if (over > 0) {
        int64_t a = middle - begin, b = end - middle;
        int64_t keep = a <= half ? a : b <= half ? r->o.seq_len - b : half;
        begin = middle - keep;
        end = middle + (r->o.seq_len - keep < b ? r->o.seq_len - keep : b);
    }
    return (ses_packed_row){ .doc = (uint32_t)doc,
                             .first = (uint32_t)begin,
                             .n = (uint32_t)(end - begin),
                             .split = (uint32_t)(middle - begin) };
}

static bool add_pair(ses_passages *r, ses_packed_row c, bool negative, ses_rng_stream *d, ses_err *e)
{
    if (negative && r->o.pairing == SES_PAIRS_RANDOM) draw_other(r, &c, r->o.seq_len - c.split, d);
    if (negative && r->o.pairing == SES_PAIRS_SWAPPED) c.swapped = true, c.split = c.n - c.split;
    return add(r, c, e);
}

/* Sentences up to a target length, with a random split between them. After a random pair, the unused second
 * segment starts the next one (BERT's create_pretraining_data). */
static bool segment_pairs(ses_passages *r, size_t doc, ses_rng_stream *d, ses_err *e)
{
    for (size_t from = 0; from + 1 < r->n_units;) {
        bool shorter = ses_draw_unit(d) < r->o.short_seq_prob,
             negative = ses_draw_unit(d) < r->o.negative_rate;
        int64_t target = shorter ? 2 + ses_draw_below(d, r->o.seq_len - 1) : r->o.seq_len;
        size_t to = from + 2;
        while (to < r->n_units && (int64_t)r->unit[to + 1] - r->unit[from] <= target) to++;
        size_t split = from + 1 + (size_t)ses_draw_below(d, (int64_t)(to - from - 1));
        negative = negative && r->o.pairing != SES_PAIRS_POSITIVE;
        if (!add_pair(r, pair_of(r, doc, from, split, to), negative, d, e)) return false;
        from = negative && r->o.pairing == SES_PAIRS_RANDOM ? split : to;
    }
    return true;
}

static bool sentence_pairs(ses_passages *r, size_t doc, ses_rng_stream *d, ses_err *e)
{
    for (size_t from = 0; from + 1 < r->n_units; from += 2) {
        ses_packed_row c = pair_of(r, doc, from, from + 1, from + 2);
        bool negative = ses_draw_unit(d) < r->o.negative_rate && r->o.pairing != SES_PAIRS_POSITIVE;
        if (!add_pair(r, c, negative, d, e)) return false;
        ses_packed_row *last = &r->row[r->n_rows - 1];
        if (!last->random) continue;
        ses_mixture_doc m = ses_passages_doc(r, last->other); /* one sentence only */
        const ses_corpus *k = r->part[m.part].corpus;
        int64_t s = ses_corpus_sentence_of_token(k, &m.d, last->other_first);
        int64_t n = ses_corpus_sentence_start(k, &m.d, s + 1) - last->other_first;
        if (n < (int64_t)(last->n - last->split)) last->n = last->split + (uint32_t)n;
    }
    return true;
}

bool ses_passages_pack(ses_passages *r, ses_rng_stream *d, ses_err *e)
{
    r->n_rows = 0;
    if (r->o.packing == SES_PACK_BLOCKS) return pack_blocks(r, e);
    if (r->o.packing == SES_PACK_FULL_SENTENCES || r->o.packing == SES_PACK_DOC_SENTENCES)
        return pack_sentences(r, e);
    for (size_t p = 0; p < r->n_docs; p++) {
        bool ok =
            find_units(r, &r->doc[p], r->o.seq_len / 2, e) &&
            (r->o.packing == SES_PACK_SEGMENT_PAIR ? segment_pairs(r, p, d, e) : sentence_pairs(r, p, d, e));
        if (!ok) return false;
    }
    return true;
}
