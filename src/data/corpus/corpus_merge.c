/* Merging of the parts of a corpus. Documents are appended in order by the code that builds a corpus; counts
 * that do not depend on other documents are added. */
#include "base/alloc.h"
#include "base/file.h"
#include "corpus_part.h"
#include "corpus_writer.h"

#include <inttypes.h>
#include <string.h>

typedef struct merge {
    ses_corpus_writer w;
    int32_t *id;
    uint8_t *word;
    uint32_t *sentence;
    size_t id_cap, word_cap, sentence_cap;
} merge;

/* Copies document i of a part; the arrays are valid until the next call. */
static bool read_document(merge *m, const ses_corpus *c, const ses_corpus_shard_file *part, int64_t i,
                          ses_corpus_text *out, ses_err *e)
{
    ses_document d = ses_corpus_document(c, i);
    size_t n = (size_t)d.n_tokens, sentences = (size_t)d.n_sentences;
    if (!ses_array_reserve(&m->id, &m->id_cap, n, sizeof *m->id, e) ||
        !ses_array_reserve(&m->word, &m->word_cap, n, sizeof *m->word, e) ||
        !ses_array_reserve(&m->sentence, &m->sentence_cap, sentences, sizeof *m->sentence, e))
        return false;
    *out = (ses_corpus_text){ .id = m->id,
                              .word = m->word,
                              .sentence = m->sentence,
                              .tokens = d.n_tokens,
                              .sentences = d.n_sentences,
                              .hash = ses_corpus_document_hash(c, i) };
    ses_corpus_read(c, &d, 0, d.n_tokens, m->id, m->word);
    for (size_t k = 0; k < n; k++) {
        m->word[k] &= SES_STARTS_WORD;
        out->unknown += m->id[k] == part->unk_id;
    }
    for (size_t k = 0; k < sentences; k++)
        m->sentence[k] = (uint32_t)ses_corpus_sentence_start(c, &d, (int64_t)k);
    return true;
}

static bool check_same(const ses_corpus_header *first, const ses_corpus_header *h, ses_err *e)
{
    if (h->tokenizer != first->tokenizer || h->vocab != first->vocab)
        return ses_fail(e, SES_EARG, "built with another tokenizer than the first part");
    if (h->held_out_fraction != first->held_out_fraction)
        return ses_fail(e, SES_EARG, "held-out fraction %g, the first part has %g", h->held_out_fraction,
                        first->held_out_fraction);
    return !memcmp(h->label, first->label, sizeof h->label) ||
           ses_fail(e, SES_EARG, "its label differs from that of the first part");
}

/* Takes the fields that are the same in all parts from the first one. */
static void begin_header(ses_corpus_header *h, const ses_corpus_header *first)
{
    h->vocab = first->vocab;
    h->id_bytes = first->id_bytes;
    h->held_out_fraction = first->held_out_fraction;
    h->tokenizer = first->tokenizer;
    memcpy(h->label, first->label, sizeof h->label);
}

/* Counts of texts that are not documents of the part. */
static void add_counts(ses_corpus_header *h, const ses_corpus_header *part)
{
    h->bytes += part->bytes;
    h->bad_lines += part->bad_lines;
    h->empty += part->empty;
    h->duplicates += part->duplicates;
}

/* The list comes from a file. */
static bool check_split(const ses_corpus_shard_file *part, uint64_t documents, ses_err *e)
{
    for (size_t k = 0; k < part->n_split; k++)
        if (part->split[k] >= documents || (k && part->split[k] <= part->split[k - 1]))
            return ses_fail(e, SES_EFORMAT,
                            "entry %zu of the list of split documents is %" PRIu64
                            ", expected rising numbers below %" PRIu64,
                            k + 1, part->split[k], documents);
    return true;
}

static bool add_part(merge *m, const ses_corpus_shard_file *part, ses_corpus_header *first, ses_err *e)
{
    ses_corpus *c = ses_corpus_open(part->path, e);
    bool ok = c && ses_corpus_verify(c, e);
    const ses_corpus_header *h = ok ? ses_corpus_header_of(c) : NULL;
    if (ok && !first->vocab) {
        *first = *h;
        begin_header(&m->w.at.head, h);
    }
    ok = ok && check_same(first, h, e) && check_split(part, h->documents, e);
    size_t split = 0;
    for (int64_t i = 0; ok && i < (int64_t)h->documents; i++) {
        ses_corpus_text t;
        if (!(ok = read_document(m, c, part, i, &t, e))) break;
        t.continues = split < part->n_split && part->split[split] == (uint64_t)i;
        split += t.continues;
        ok = ses_corpus_writer_put(&m->w, &t, e);
    }
    if (ok) add_counts(&m->w.at.head, h);
    ses_corpus_free(c);
    return ok || ses_wrap(e, "%s", part->path);
}

bool ses_corpus_merge(const char *path, const ses_corpus_shard_file *part, size_t n, bool keep_duplicates,
                      bool overwrite, ses_err *e)
{
    merge m = { .w.keep_duplicates = keep_duplicates };
    ses_corpus_header first = { 0 };
    if (ses_path_exists(path) && !overwrite) return ses_fail_exists(path, e);
    bool ok = ses_spool_open(&m.w.spool, path, "merge", true, &m.w.at, e);
    for (size_t i = 0; ok && i < n; i++) ok = add_part(&m, &part[i], &first, e);
    if (ok && !m.w.at.head.documents) ok = ses_fail(e, SES_EFORMAT, "no text in any part");
    ok = ok && ses_corpus_check_held_out(&m.w.at.head, e) &&
         ses_spool_finish(&m.w.spool, path, overwrite, &m.w.at.head, e);
    if (!ok && m.w.spool.lock) ses_dir_remove(m.w.spool.dir, NULL);
    ses_corpus_writer_free(&m.w);
    ses_free(m.id);
    ses_free(m.word);
    ses_free(m.sentence);
    return ok;
}
