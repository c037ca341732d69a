/* Packings: where the rows of a stretch of documents begin and end. */
#include "passages_impl.h"

#include "base/alloc.h"

static bool add(ses_passages *r, ses_passage_cut c, ses_err *e)
{
    if (!ses_array_reserve(&r->cut, &r->cut_cap, r->cuts + 1, sizeof *r->cut, e)) return false;
    r->cut[r->cuts++] = c;
    return true;
}

static bool add_unit(ses_passages *r, int64_t at, ses_err *e)
{
    if (!ses_array_reserve(&r->unit, &r->unit_cap, r->units + 1, sizeof *r->unit, e)) return false;
    r->unit[r->units++] = (uint32_t)at;
    return true;
}

/* The sentences of a document, those longer than `most` in pieces of much the same length: unit[0 .. units),
 * and the document's end behind them. */
static bool find_units(ses_passages *r, const ses_member *m, int64_t most, ses_err *e)
{
    const ses_corpus *c = r->part[m->part].corpus;
    r->units = 0;
    for (int64_t s = 0; s < m->d.n_sentences; s++) {
        int64_t from = ses_corpus_sentence_start(c, &m->d, s),
                n = ses_corpus_sentence_start(c, &m->d, s + 1) - from;
        int64_t pieces = (n + most - 1) / most;
        for (int64_t k = 0; k < pieces; k++)
            if (!add_unit(r, from + n * k / pieces, e)) return false;
    }
    if (!add_unit(r, m->d.n_tokens, e)) return false;
    r->units--;
    return true;
}

static bool across(const ses_passages *r)
{
    return !r->o.break_at_documents && r->o.packing != SES_PACK_DOC_SENTENCES;
}

/* ---- one segment ---- */

/* The row in the making. */
typedef struct open_row {
    ses_passage_cut c;
    int64_t cost; /* tokens, and what is left free for documents' starts */
} open_row;

static bool close_row(ses_passages *r, open_row *o, ses_err *e)
{
    bool ok = !o->c.n || (o->c.split = o->c.n, add(r, o->c, e));
    *o = (open_row){ 0 };
    return ok;
}

static bool take(ses_passages *r, open_row *o, size_t place, int64_t first, int64_t n)
{
    int64_t cost = n + (o->c.n && first == 0 ? r->o.separator_tokens : 0);
    if (o->cost + cost > r->o.seq_len) return false;
    if (!o->c.n) o->c = (ses_passage_cut){ .place = (uint32_t)place, .first = (uint32_t)first };
    o->c.n += (uint32_t)n;
    o->cost += cost;
    return true;
}

static bool cut_sentences(ses_passages *r, ses_err *e)
{
    open_row row = { 0 };
    for (size_t p = 0; p < r->members; p++) {
        bool joins = p && across(r) && r->member[p].part == r->member[p - 1].part;
        if (!joins && !close_row(r, &row, e)) return false;
        if (!find_units(r, &r->member[p], r->o.seq_len, e)) return false;
        for (size_t u = 0; u < r->units; u++) {
            int64_t first = r->unit[u], n = r->unit[u + 1] - first;
            if (take(r, &row, p, first, n)) continue;
            if (!close_row(r, &row, e)) return false;
            take(r, &row, p, first, n);
        }
    }
    return close_row(r, &row, e);
}

static bool cut_blocks(ses_passages *r, ses_err *e)
{
    open_row row = { 0 };
    for (size_t p = 0; p < r->members; p++) {
        bool joins = p && across(r) && r->member[p].part == r->member[p - 1].part;
        if (!joins && !close_row(r, &row, e)) return false;
        for (int64_t at = 0, n; at < r->member[p].d.n_tokens; at += n) {
            int64_t room = r->o.seq_len - row.cost - (row.c.n && at == 0 ? r->o.separator_tokens : 0);
            n = r->member[p].d.n_tokens - at;
            if (n > room) n = room > 0 ? room : 0;
            if (n) take(r, &row, p, at, n);
            if (row.cost >= r->o.seq_len || !n)
                if (!close_row(r, &row, e)) return false;
        }
    }
    return close_row(r, &row, e);
}

/* ---- two segments ---- */

/* A second segment from elsewhere: a sentence of another document and what follows it, `want` tokens at
 * most. */
static void draw_other(ses_passages *r, ses_passage_cut *c, int64_t want, ses_rng_stream *d)
{
    uint32_t all = r->usable_at[r->o.n_parts], mine = r->member[c->place].number, pick = 0;
    for (int i = 0; i < 16; i++) { /* all but never more than one or two */
        pick = (uint32_t)ses_draw_below(d, all);
        if (r->usable[pick] != mine) break;
    }
    if (r->usable[pick] == mine) pick = (pick + 1) % all;
    ses_member m = ses_passages_member(r, r->usable[pick]);
    int64_t first =
                ses_corpus_sentence_start(r->part[m.part].corpus, &m.d, ses_draw_below(d, m.d.n_sentences)),
            n = m.d.n_tokens - first;
    c->random = true;
    c->other = m.number;
    c->other_first = (uint32_t)first;
    c->n = c->split + (uint32_t)(n < want ? n : want);
}

/* Units [from, split) and [split, to) as a pair, cut to length at its outer ends, the longer one first. */
static ses_passage_cut pair_of(const ses_passages *r, size_t place, size_t from, size_t split, size_t to)
{
    int64_t begin = r->unit[from], middle = r->unit[split], end = r->unit[to];
    int64_t over = end - begin - r->o.seq_len, half = r->o.seq_len / 2;
    if (over > 0) {
        int64_t a = middle - begin, b = end - middle;
        int64_t keep = a <= half ? a : b <= half ? r->o.seq_len - b : half;
        begin = middle - keep;
        end = middle + (r->o.seq_len - keep < b ? r->o.seq_len - keep : b);
    }
    return (ses_passage_cut){ .place = (uint32_t)place,
                              .first = (uint32_t)begin,
                              .n = (uint32_t)(end - begin),
                              .split = (uint32_t)(middle - begin) };
}

static bool add_pair(ses_passages *r, ses_passage_cut c, bool strange, ses_rng_stream *d, ses_err *e)
{
    if (strange && r->o.pairing == SES_PAIRS_RANDOM) draw_other(r, &c, r->o.seq_len - c.split, d);
    if (strange && r->o.pairing == SES_PAIRS_SWAPPED) c.swapped = true, c.split = c.n - c.split;
    return add(r, c, e);
}

/* Sentences up to a target length, a border drawn among them; of a pair with random second segment, what was
 * to be the second begins the next one (Devlin et al., create_pretraining_data). */
static bool segment_pairs(ses_passages *r, size_t place, ses_rng_stream *d, ses_err *e)
{
    for (size_t from = 0; from + 1 < r->units;) {
        bool shorter = ses_draw_unit(d) < r->o.short_seq_prob,
             strange = ses_draw_unit(d) < r->o.negative_rate;
        int64_t target = shorter ? 2 + ses_draw_below(d, r->o.seq_len - 1) : r->o.seq_len;
        size_t to = from + 2;
        while (to < r->units && (int64_t)r->unit[to + 1] - r->unit[from] <= target) to++;
        size_t split = from + 1 + (size_t)ses_draw_below(d, (int64_t)(to - from - 1));
        strange = strange && r->o.pairing != SES_PAIRS_POSITIVE;
        if (!add_pair(r, pair_of(r, place, from, split, to), strange, d, e)) return false;
        from = strange && r->o.pairing == SES_PAIRS_RANDOM ? split : to;
    }
    return true;
}

static bool sentence_pairs(ses_passages *r, size_t place, ses_rng_stream *d, ses_err *e)
{
    for (size_t from = 0; from + 1 < r->units; from += 2) {
        ses_passage_cut c = pair_of(r, place, from, from + 1, from + 2);
        bool strange = ses_draw_unit(d) < r->o.negative_rate && r->o.pairing != SES_PAIRS_POSITIVE;
        if (!add_pair(r, c, strange, d, e)) return false;
        ses_passage_cut *last = &r->cut[r->cuts - 1];
        if (!last->random) continue;
        ses_member m = ses_passages_member(r, last->other); /* one sentence only */
        const ses_corpus *k = r->part[m.part].corpus;
        int64_t s = ses_corpus_sentence_of_token(k, &m.d, last->other_first);
        int64_t n = ses_corpus_sentence_start(k, &m.d, s + 1) - last->other_first;
        if (n < (int64_t)(last->n - last->split)) last->n = last->split + (uint32_t)n;
    }
    return true;
}

bool ses_passages_cut(ses_passages *r, ses_rng_stream *d, ses_err *e)
{
    r->cuts = 0;
    if (r->o.packing == SES_PACK_BLOCKS) return cut_blocks(r, e);
    if (r->o.packing == SES_PACK_FULL_SENTENCES || r->o.packing == SES_PACK_DOC_SENTENCES)
        return cut_sentences(r, e);
    for (size_t p = 0; p < r->members; p++) {
        bool ok =
            find_units(r, &r->member[p], r->o.seq_len / 2, e) &&
            (r->o.packing == SES_PACK_SEGMENT_PAIR ? segment_pairs(r, p, d, e) : sentence_pairs(r, p, d, e));
        if (!ok) return false;
    }
    return true;
}
