/* The order of an epoch: documents shuffled, stretches of them cut into rows, rows shuffled. */
#include "passages_impl.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STRETCH = 4 << 20, MOST_COPIES = 10000 }; /* tokens of a stretch */
enum { FOR_COPIES = 101, FOR_ORDER, FOR_ROWS, FOR_CUTS };

/* ---- making one ---- */

static const ses_corpus_info *facts(const ses_passages *r, size_t part)
{
    return ses_corpus_info_of(r->part[part].corpus);
}

static bool pairs(const ses_passages *r)
{
    return r->o.packing == SES_PACK_SEGMENT_PAIR || r->o.packing == SES_PACK_SENTENCE_PAIR;
}

ses_member ses_passages_member(const ses_passages *r, uint32_t number)
{
    int32_t part = 0;
    while (number >= r->base[part + 1]) part++;
    return (ses_member){ part, number, ses_corpus_document(r->part[part].corpus, number - r->base[part]) };
}

static bool check(const ses_passages_options *o, ses_err *e)
{
    if (!o->n_parts) return ses_fail(e, SES_EARG, "no corpus");
    if (o->seq_len < 2 || o->seq_len > 1 << 20)
        return ses_fail(e, SES_EARG, "rows of %lld tokens; 2 to %d are possible", (long long)o->seq_len,
                        1 << 20);
    if (!(o->exponent >= 0 && o->exponent <= 10))
        return ses_fail(e, SES_EARG, "an exponent of %g for the mixture; 0 to 1 are usual", o->exponent);
    for (size_t i = 0; i < o->n_parts; i++)
        if (!(o->parts[i].weight > 0 && isfinite(o->parts[i].weight)))
            return ses_fail(e, SES_EARG, "corpus %zu has weight %g; more than 0 is expected", i + 1,
                            o->parts[i].weight);
    return true;
}

/* Documents that can be used: in this half of the corpus; for pairs, with something to make two of. */
static bool find_usable(ses_passages *r, ses_err *e)
{
    uint64_t all = 0;
    for (size_t i = 0; i < r->o.n_parts; i++) all += (uint64_t)facts(r, i)->documents;
    if (all > UINT32_MAX)
        return ses_fail(e, SES_EARG, "more than %" PRIu32 " documents in a mixture", UINT32_MAX);
    r->base = ses_alloc_array(r->o.n_parts + 1, sizeof *r->base, e);
    r->usable_at = ses_alloc_array(r->o.n_parts + 1, sizeof *r->usable_at, e);
    r->usable = ses_alloc_array((size_t)all + 1, sizeof *r->usable, e);
    if (!r->base || !r->usable_at || !r->usable) return false;
    uint32_t n = 0;
    for (size_t i = 0; i < r->o.n_parts; i++) {
        r->base[i + 1] = r->base[i] + (uint32_t)facts(r, i)->documents;
        for (int64_t k = 0; k < facts(r, i)->documents; k++) {
            ses_document d = ses_corpus_document(r->part[i].corpus, k);
            bool enough = pairs(r) ? d.n_sentences > 1 || d.n_tokens > r->o.seq_len / 2 : d.n_tokens > 0;
            if (enough && d.held_out == r->o.held_out) r->usable[n++] = r->base[i] + (uint32_t)k;
        }
        r->usable_at[i + 1] = n;
        if (r->usable_at[i] < n) continue;
        const char *half = r->o.held_out ? "held out" : "to train with";
        return pairs(r) && facts(r, i)->documents
                   ? ses_fail(
                         e, SES_EARG,
                         "corpus %zu: no document %s has two sentences, and pairs are asked for; lines are "
                         "sentences, build it with --split-sentences where they are not",
                         i + 1, half)
                   : ses_fail(e, SES_EARG, "corpus %zu: no document is %s", i + 1, half);
    }
    if (r->o.pairing == SES_PAIRS_RANDOM && n < 2)
        return ses_fail(e, SES_EARG,
                        "a second segment of another document is asked for, and there is one document");
    return true;
}

/* copies: share q of an epoch's tokens, q ~ weight * tokens ^ exponent, over the tokens there are. */
static bool find_copies(ses_passages *r, ses_err *e)
{
    double all = 0, sum = 0;
    r->copies = ses_alloc_array(r->o.n_parts, sizeof *r->copies, e);
    double *tokens = ses_alloc_array(r->o.n_parts, sizeof *tokens, e);
    for (size_t i = 0; i < r->o.n_parts && r->copies && tokens; i++) {
        for (uint32_t k = r->usable_at[i]; k < r->usable_at[i + 1]; k++)
            tokens[i] += (double)ses_passages_member(r, r->usable[k]).d.n_tokens;
        r->copies[i] = r->part[i].weight * pow(tokens[i], r->o.exponent);
        all += tokens[i];
        sum += r->copies[i];
    }
    bool ok = r->copies && tokens;
    for (size_t i = 0; ok && i < r->o.n_parts; i++) {
        r->copies[i] = r->o.n_parts == 1 ? 1 : r->copies[i] / sum * all / tokens[i];
        if (r->copies[i] > MOST_COPIES)
            ok =
                ses_fail(e, SES_EARG, "corpus %zu would be seen %.0f times an epoch: its weight is too large",
                         i + 1, r->copies[i]);
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
    r->epoch = r->here = -1;
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
    ses_free(r->stretch);
    ses_free(r->member);
    ses_free(r->cut);
    ses_free(r->unit);
    ses_free(r->id);
    ses_free(r->starts);
    ses_free(r);
}

/* ---- an epoch ---- */

static uint64_t epoch_key(int64_t epoch, uint64_t of) { return (uint64_t)epoch << 40 | of; }

static bool lay_order(ses_passages *r, int64_t epoch, ses_err *e)
{
    size_t n = 0;
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, epoch_key(epoch, 0), FOR_COPIES);
    for (size_t i = 0; i < r->o.n_parts; i++)
        for (uint32_t k = r->usable_at[i]; k < r->usable_at[i + 1]; k++) {
            int64_t copies = r->copies[i] == 1 ? 1 : ses_draw_round(&d, r->copies[i]);
            size_t room = n + (size_t)copies + 1; /* for the one there is at least, too */
            if (!ses_array_reserve(&r->order, &r->order_cap, room, sizeof *r->order, e)) return false;
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

static bool add_stretch(ses_passages *r, size_t from, ses_err *e)
{
    if (!ses_array_reserve(&r->stretch, &r->stretch_cap, r->stretches + 2, sizeof *r->stretch, e))
        return false;
    r->stretch[r->stretches++] = (ses_stretch){ .from = from };
    r->stretch[r->stretches] = (ses_stretch){ .from = r->n_order };
    return true;
}

static void shuffle_rows(ses_passages *r, int64_t stretch)
{
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, epoch_key(r->epoch, (uint64_t)stretch), FOR_ROWS);
    for (size_t i = r->cuts; !r->o.in_order && i > 1; i--) {
        size_t k = (size_t)ses_draw_below(&d, (int64_t)i);
        ses_passage_cut x = r->cut[i - 1];
        r->cut[i - 1] = r->cut[k];
        r->cut[k] = x;
    }
}

/* Its documents, corpus after corpus, so that few rows would have to hold two languages. */
static bool enter(ses_passages *r, int64_t stretch, ses_err *e)
{
    if (r->here == stretch) return true;
    const ses_stretch *s = &r->stretch[stretch];
    size_t n = s[1].from - s->from;
    r->here = -1;
    if (!ses_array_reserve(&r->member, &r->member_cap, n, sizeof *r->member, e)) return false;
    r->members = 0;
    for (size_t part = 0; part < r->o.n_parts; part++)
        for (size_t i = s->from; i < s[1].from; i++)
            if (r->order[i] >= r->base[part] && r->order[i] < r->base[part + 1])
                r->member[r->members++] = ses_passages_member(r, r->order[i]);
    ses_rng_stream d = ses_rng_stream_of(r->o.seed, epoch_key(r->epoch, (uint64_t)stretch), FOR_CUTS);
    if (!ses_passages_cut(r, &d, e)) return false;
    shuffle_rows(r, stretch);
    r->here = stretch;
    return true;
}

static bool begin_epoch(ses_passages *r, int64_t epoch, ses_err *e)
{
    if (r->epoch == epoch) return true;
    r->epoch = r->here = -1;
    r->stretches = 0;
    r->tokens = 0;
    if (!lay_order(r, epoch, e)) return false;
    int64_t tokens = STRETCH, rows = 0;
    for (size_t i = 0; i < r->n_order; i++) {
        if (tokens >= STRETCH && !add_stretch(r, i, e)) return false;
        if (tokens >= STRETCH) tokens = 0;
        tokens += ses_passages_member(r, r->order[i]).d.n_tokens;
    }
    r->epoch = epoch;
    for (size_t i = 0; i < r->stretches; i++) {
        if (!enter(r, (int64_t)i, e)) return r->epoch = -1, false;
        r->stretch[i].rows = rows;
        rows += (int64_t)r->cuts;
        for (size_t k = 0; k < r->cuts; k++) r->tokens += r->cut[k].n;
    }
    r->stretch[r->stretches].rows = rows;
    if (rows > 0) return true;
    r->epoch = -1;
    return ses_fail(e, SES_EARG, "the texts give no row");
}

int64_t ses_passages_count(ses_passages *r, int64_t epoch, ses_err *e)
{
    return begin_epoch(r, epoch, e) ? r->stretch[r->stretches].rows : -1;
}

int64_t ses_passages_tokens(ses_passages *r, int64_t epoch, ses_err *e)
{
    return begin_epoch(r, epoch, e) ? r->tokens : -1;
}

/* ---- a row ---- */

static const ses_passage_cut *find(ses_passages *r, int64_t epoch, int64_t i, ses_err *e)
{
    if (!begin_epoch(r, epoch, e)) return NULL;
    size_t low = 0, high = r->stretches;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (r->stretch[mid].rows <= i)
            low = mid;
        else
            high = mid;
    }
    return enter(r, (int64_t)low, e) ? &r->cut[i - r->stretch[low].rows] : NULL;
}

int64_t ses_passages_length(ses_passages *r, int64_t epoch, int64_t i, ses_err *e)
{
    const ses_passage_cut *c = find(r, epoch, i, e);
    return c ? (int64_t)c->n : -1;
}

/* Tokens [at, end) of a row, from token `first` of this member on. */
static void read_from(ses_passages *r, size_t place, int64_t first, int64_t at, int64_t end)
{
    for (; at < end; place++, first = 0) {
        const ses_member *m = &r->member[place];
        int64_t n = m->d.n_tokens - first < end - at ? m->d.n_tokens - first : end - at;
        ses_corpus_read(r->part[m->part].corpus, &m->d, first, n, r->id + at, r->starts + at);
        at += n;
    }
}

bool ses_passages_at(ses_passages *r, int64_t epoch, int64_t i, ses_passage *out, ses_err *e)
{
    const ses_passage_cut *c = find(r, epoch, i, e);
    if (!c) return false;
    int64_t n = c->n, split = c->split;
    *out = (ses_passage){ .id = r->id,
                          .starts = r->starts,
                          .n = n,
                          .split = split,
                          .is_negative = c->random || c->swapped,
                          .number = epoch_key(epoch, (uint64_t)i),
                          .corpus = r->member[c->place].part };
    if (c->random) {
        ses_member m = ses_passages_member(r, c->other);
        read_from(r, c->place, c->first, 0, split);
        ses_corpus_read(r->part[m.part].corpus, &m.d, c->other_first, n - split, r->id + split,
                        r->starts + split);
    } else if (c->swapped) { /* what stood second comes first */
        read_from(r, c->place, (int64_t)c->first + n - split, 0, split);
        read_from(r, c->place, c->first, split, n);
    } else {
        read_from(r, c->place, c->first, 0, n);
    }
    return true;
}
