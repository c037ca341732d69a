/* Reader of corpus files: mapped, with the whole index checked by the open. */
#include "corpus_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

_Static_assert(sizeof(ses_corpus_header) <= CORPUS_HEADER_BYTES, "the header fits");
_Static_assert(sizeof(ses_corpus_entry) == 24, "entries have the layout of the file");

struct ses_corpus {
    ses_mmap map; /* zeroed if `data` is borrowed */
    const unsigned char *data;
    ses_corpus_header head;
    ses_corpus_info info;
    const void *ids;
    const uint8_t *words;
    const uint32_t *sentence;
    const ses_corpus_entry *document;
};

uint64_t ses_corpus_hash(const void *p, size_t n)
{
    static const ses_hash_key key = { 0x736573616d65, 2 };
    return ses_hash(key, p, n);
}

bool ses_corpus_check_held_out(const ses_corpus_header *h, ses_err *e)
{
    bool one = h->documents == 1;
    return h->held_out < h->documents ||
           ses_fail(e, SES_EARG,
                    "all documents (%" PRIu64
                    ") are held out, none is left for training: choose a smaller part "
                    "than %g, or give more documents%s",
                    h->documents, h->held_out_fraction, one ? " (blank lines separate them)" : "");
}

bool ses_corpus_is_held_out(uint64_t hash, double fraction)
{
    static const ses_hash_key key = { 0x736573616d65, 3 };
    return (double)(ses_hash(key, &hash, sizeof hash) >> 11) * 0x1p-53 < fraction;
}

/* ---- layout ---- */

static bool part_size(const ses_corpus_header *h, int part, size_t *out)
{
    size_t words;
    switch (part) {
    case PART_TOKENS: return ses_mul_size((size_t)h->tokens, h->id_bytes, out);
    case PART_WORDS:
        return ses_add_size((size_t)(h->tokens / 8), (size_t)h->documents, &words) && (*out = words, true);
    case PART_SENTENCES: return ses_mul_size((size_t)h->sentences, sizeof(uint32_t), out);
    default: return ses_mul_size((size_t)h->documents, sizeof(ses_corpus_entry), out);
    }
}

bool ses_corpus_layout(const ses_corpus_header *h, size_t at[CORPUS_PARTS + 1])
{
    at[0] = CORPUS_HEADER_BYTES;
    for (int i = 0; i < CORPUS_PARTS; i++) {
        size_t size, end;
        if (!part_size(h, i, &size) || !ses_add_size(at[i], size, &end) || !ses_add_size(end, 7, &end))
            return false;
        at[i + 1] = end & ~(size_t)7;
    }
    return true;
}

size_t ses_corpus_part_bytes(const ses_corpus_header *h, int part)
{
    size_t n = 0;
    return part_size(h, part, &n) ? n : 0;
}

/* ---- checks ---- */

static bool check_head(const ses_corpus *c, size_t n, ses_err *e)
{
    const ses_corpus_header *h = &c->head;
    size_t at[CORPUS_PARTS + 1];
    if (h->version != CORPUS_VERSION)
        return ses_fail(e, SES_EUNSUPPORTED, "format version %" PRIu32 ", expected %d: rebuild the corpus",
                        h->version, CORPUS_VERSION);
    if (h->hash != ses_corpus_hash(c->data, offsetof(ses_corpus_header, hash)))
        return ses_fail(e, SES_EFORMAT, "damaged header");
    bool fits =
        h->vocab && h->vocab <= INT32_MAX && (h->id_bytes == 4 || (h->id_bytes == 2 && h->vocab <= 65536));
    if (!fits || h->tokens > INT64_MAX / 8 || h->sentences > h->tokens || h->documents > h->sentences ||
        h->documents > UINT32_MAX || !(h->held_out_fraction >= 0 && h->held_out_fraction <= 1) ||
        memchr(h->label, 0, 32) == NULL)
        return ses_fail(e, SES_EFORMAT, "inconsistent header");
    if (!ses_corpus_layout(h, at) || at[CORPUS_PARTS] != n)
        return ses_fail(e, SES_EFORMAT, "%zu bytes, expected %zu: %s; rebuild the corpus", n,
                        at[CORPUS_PARTS],
                        n < at[CORPUS_PARTS] ? "the file is truncated" : "extra bytes at its end");
    return true;
}

static bool check_document(const ses_corpus *c, uint64_t i, ses_err *e)
{
    const ses_corpus_header *h = &c->head;
    const ses_corpus_entry *d = &c->document[i];
    bool last = i + 1 == h->documents;
    uint64_t token = last ? h->tokens : d[1].token, sentence = last ? h->sentences : d[1].sentence;
    if (i == 0 && (d->token || d->sentence))
        return ses_fail(e, SES_EFORMAT, "document 1 does not begin at token 0");
    if (token <= d->token || token > h->tokens || sentence <= d->sentence || sentence > h->sentences ||
        token - d->token > UINT32_MAX)
        return ses_fail(e, SES_EFORMAT, "document %" PRIu64 " ends before it begins", i + 1);
    const uint32_t *s = c->sentence + d->sentence;
    uint64_t n = sentence - d->sentence;
    bool good = s[0] == 0 && s[n - 1] < token - d->token;
    for (uint64_t k = 1; k < n; k++) good &= s[k] > s[k - 1];
    return good || ses_fail(e, SES_EFORMAT, "document %" PRIu64 ": sentences out of order", i + 1);
}

static void set_info(ses_corpus *c)
{
    const ses_corpus_header *h = &c->head;
    c->info = (ses_corpus_info){ .vocab_size = (int64_t)h->vocab,
                                 .documents = (int64_t)h->documents,
                                 .sentences = (int64_t)h->sentences,
                                 .tokens = (int64_t)h->tokens,
                                 .unknown_tokens = (int64_t)h->unknown,
                                 .bytes = (int64_t)h->bytes,
                                 .duplicates = (int64_t)h->duplicates,
                                 .empty = (int64_t)h->empty,
                                 .invalid_lines = (int64_t)h->bad_lines,
                                 .split_documents = (int64_t)h->split_documents,
                                 .held_out = (int64_t)h->held_out,
                                 .held_out_tokens = (int64_t)h->held_out_tokens,
                                 .held_out_fraction = h->held_out_fraction,
                                 .tokenizer_fingerprint = h->tokenizer,
                                 .content_hash = ses_corpus_hash(h->part, sizeof h->part) };
    memcpy(c->info.label, h->label, sizeof h->label);
}

static bool read_all(ses_corpus *c, size_t n, ses_err *e)
{
    size_t at[CORPUS_PARTS + 1];
    if (n < CORPUS_HEADER_BYTES || memcmp(c->data, CORPUS_MAGIC, 8))
        return ses_fail(e, SES_EFORMAT, "not a corpus file; create one with `sesame corpus build`");
    memcpy(&c->head, c->data, sizeof c->head);
    if (!check_head(c, n, e) || !ses_corpus_layout(&c->head, at)) return false;
    c->ids = c->data + at[PART_TOKENS];
    c->words = c->data + at[PART_WORDS];
    c->sentence = (const uint32_t *)(const void *)(c->data + at[PART_SENTENCES]);
    c->document = (const ses_corpus_entry *)(const void *)(c->data + at[PART_DOCUMENTS]);
    for (uint64_t i = 0; i < c->head.documents; i++)
        if (!check_document(c, i, e)) return false;
    set_info(c);
    return true;
}

ses_corpus *ses_corpus_from_memory(const void *data, size_t n, ses_err *e)
{
    ses_corpus *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    c->data = data;
    if (read_all(c, n, e)) return c;
    ses_corpus_free(c);
    return NULL;
}

ses_corpus *ses_corpus_open(const char *path, ses_err *e)
{
    ses_mmap map;
    if (!ses_mmap_open(&map, path, e)) return NULL;
    ses_corpus *c = ses_corpus_from_memory(map.data, map.size, e);
    if (c) return c->map = map, c;
    ses_mmap_free(&map);
    ses_wrap(e, "%s", path);
    return NULL;
}

void ses_corpus_free(ses_corpus *c)
{
    if (!c) return;
    ses_mmap_free(&c->map);
    ses_free(c);
}

bool ses_corpus_verify(const ses_corpus *c, ses_err *e)
{
    static const char *const name[] = { "tokens", "words", "sentences", "documents" };
    size_t at[CORPUS_PARTS + 1];
    if (!ses_corpus_layout(&c->head, at)) return false;
    for (int i = 0; i < CORPUS_PARTS; i++)
        if (ses_corpus_hash(c->data + at[i], ses_corpus_part_bytes(&c->head, i)) != c->head.part[i])
            return ses_fail(e, SES_EFORMAT, "damaged: checksum of the %s differs; rebuild the corpus",
                            name[i]);
    for (uint64_t i = 0; i < c->head.tokens; i++) {
        uint32_t id = c->head.id_bytes == 2 ? ((const uint16_t *)c->ids)[i] : ((const uint32_t *)c->ids)[i];
        if (id >= c->head.vocab)
            return ses_fail(e, SES_EFORMAT,
                            "token %" PRIu64 ": id %" PRIu32 " exceeds the vocabulary of %" PRIu64, i + 1, id,
                            c->head.vocab);
    }
    return true;
}

const ses_corpus_info *ses_corpus_info_of(const ses_corpus *c) { return &c->info; }

/* ---- reading ---- */

ses_document ses_corpus_document(const ses_corpus *c, int64_t i)
{
    const ses_corpus_entry *d = &c->document[i];
    bool last = (uint64_t)i + 1 == c->head.documents;
    uint64_t token = last ? c->head.tokens : d[1].token;
    uint64_t sentence = last ? c->head.sentences : d[1].sentence;
    return (ses_document){ .index = i,
                           .first_sentence = (int64_t)d->sentence,
                           .n_sentences = (int64_t)(sentence - d->sentence),
                           .first_token = (int64_t)d->token,
                           .n_tokens = (int64_t)(token - d->token),
                           .held_out = ses_corpus_is_held_out(d->hash, c->head.held_out_fraction) };
}

const ses_corpus_header *ses_corpus_header_of(const ses_corpus *c) { return &c->head; }
uint64_t ses_corpus_document_hash(const ses_corpus *c, int64_t i) { return c->document[i].hash; }

int64_t ses_corpus_sentence_start(const ses_corpus *c, const ses_document *d, int64_t s)
{
    return s < d->n_sentences ? (int64_t)c->sentence[d->first_sentence + s] : d->n_tokens;
}

int64_t ses_corpus_sentence_of_token(const ses_corpus *c, const ses_document *d, int64_t token)
{
    const uint32_t *s = c->sentence + d->first_sentence;
    int64_t low = 0, high = d->n_sentences; /* s[low] <= token < s[high] */
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        if ((int64_t)s[mid] <= token)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static void read_starts(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, uint8_t *starts)
{
    const uint8_t *bit = c->words + d->first_token / 8 + d->index;
    for (int64_t i = 0; i < n; i++) starts[i] = bit[(first + i) / 8] >> ((first + i) % 8) & 1;
    int64_t s = ses_corpus_sentence_of_token(c, d, first);
    if (ses_corpus_sentence_start(c, d, s) < first) s++;
    for (; s < d->n_sentences; s++) {
        int64_t at = ses_corpus_sentence_start(c, d, s) - first;
        if (at >= n) break;
        starts[at] |= SES_STARTS_SENTENCE | SES_STARTS_WORD;
    }
    if (first == 0 && n) starts[0] |= SES_STARTS_DOCUMENT;
}

void ses_corpus_read(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, int32_t *id,
                     uint8_t *starts)
{
    if (id && c->head.id_bytes == 2) {
        const uint16_t *from = (const uint16_t *)c->ids + d->first_token + first;
        for (int64_t i = 0; i < n; i++) id[i] = from[i];
    } else if (id) {
        memcpy(id, (const uint32_t *)c->ids + d->first_token + first, (size_t)n * sizeof *id);
    }
    if (starts) read_starts(c, d, first, n, starts);
}
