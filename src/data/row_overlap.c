/* Rows of evaluation data that are rows of the training data: see row_overlap.h. */
#include "row_overlap.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "data/corpus/corpus_file.h"

#include <stdio.h>
#include <stdlib.h>

static const ses_hash_key key = { 0x726f77736f766572, 0x6c61706f66736574 };

void ses_row_set_free(ses_row_set *s)
{
    ses_free(s->hash);
    *s = (ses_row_set){ 0 };
}

bool ses_row_set_add(ses_row_set *s, const ses_string *text, size_t n, ses_err *e)
{
    uint64_t hash = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        ses_string x = ses_trim(text[i]);
        ses_hash_key next = { key.k0 ^ hash, key.k1 + i };
        hash = ses_hash(next, x.p, x.n);
        bytes += x.n;
    }
    if (!bytes) return true;
    if (!ses_array_reserve(&s->hash, &s->cap, s->n + 1, sizeof *s->hash, e)) return false;
    s->hash[s->n++] = hash;
    return true;
}

/* Words of a sentence and choices are texts of the row; negatives of a tuple are not. */
static bool add_example(ses_row_set *s, const ses_labeled_example *x, ses_data_kind kind, ses_err *e)
{
    bool parts = x->n_parts && (kind == SES_DATA_TAG || kind == SES_DATA_CHOICE);
    size_t n = 2 + (parts ? x->n_parts : 0);
    ses_string pair[2] = { x->text_a, x->text_b }, *all = parts ? ses_alloc_array(n, sizeof *all, e) : pair;
    if (!all) return false;
    all[0] = x->text_a, all[1] = x->text_b;
    for (size_t k = 2; k < n; k++) all[k] = x->parts[k - 2];
    bool ok = ses_row_set_add(s, all, n, e);
    if (parts) ses_free(all);
    return ok;
}

bool ses_row_set_add_examples(ses_row_set *s, const ses_examples *d, ses_err *e)
{
    for (size_t i = 0; i < ses_examples_count(d); i++)
        if (!add_example(s, ses_examples_at(d, i), ses_examples_kind(d), e)) return false;
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

size_t ses_row_set_distinct(ses_row_set *s)
{
    size_t n = s->n > 0;
    if (s->n) qsort(s->hash, s->n, sizeof *s->hash, ascending);
    for (size_t i = 1; i < s->n; i++) n += s->hash[i] != s->hash[i - 1];
    return n;
}

ses_row_overlap ses_row_set_overlap(ses_row_set *train, ses_row_set *eval)
{
    ses_row_overlap o = { 0, eval->n };
    if (train->n) qsort(train->hash, train->n, sizeof *train->hash, ascending);
    if (eval->n) qsort(eval->hash, eval->n, sizeof *eval->hash, ascending);
    for (size_t i = 0, k = 0; i < eval->n; i++) {
        while (k < train->n && train->hash[k] < eval->hash[i]) k++;
        o.shared += k < train->n && train->hash[k] == eval->hash[i];
    }
    return o;
}

bool ses_examples_overlap(const ses_examples *train, const ses_examples *eval, ses_row_overlap *out,
                          ses_err *e)
{
    ses_row_set t = { 0 }, v = { 0 };
    bool ok = ses_row_set_add_examples(&t, train, e) && ses_row_set_add_examples(&v, eval, e);
    if (ok) *out = ses_row_set_overlap(&t, &v);
    ses_row_set_free(&t);
    ses_row_set_free(&v);
    return ok;
}

bool ses_corpus_overlap(const ses_corpus *train, const ses_corpus *eval, ses_row_overlap *out, ses_err *e)
{
    double held_out = ses_corpus_info_of(train)->held_out_fraction;
    size_t n = (size_t)ses_corpus_info_of(eval)->documents;
    uint64_t *hash = ses_alloc_array(n + 1, sizeof *hash, e), *at;
    bool *found = hash ? ses_alloc_array(n + 1, sizeof *found, e) : NULL;
    for (size_t i = 0; found && i < n; i++) hash[i] = ses_corpus_document_hash(eval, (int64_t)i);
    if (found) qsort(hash, n, sizeof *hash, ascending);
    for (int64_t i = 0; found && i < ses_corpus_info_of(train)->documents; i++) {
        uint64_t h = ses_corpus_document_hash(train, i);
        if (!ses_corpus_is_held_out(h, held_out) && (at = bsearch(&h, hash, n, sizeof h, ascending)))
            found[at - hash] = true;
    }
    *out = (ses_row_overlap){ 0, n };
    for (size_t i = 0; found && i < n; i++) out->shared += found[i];
    bool ok = found != NULL;
    ses_free(hash);
    ses_free(found);
    return ok;
}

const char *ses_row_overlap_text(const ses_row_overlap *o, const char *eval_name, char *buf, size_t size)
{
    *buf = 0;
    if (o->shared)
        snprintf(buf, size,
                 "%s: %zu of %zu examples %s also in the training data: scores on them do not measure "
                 "generalization",
                 eval_name, o->shared, o->rows, o->shared == 1 ? "is" : "are");
    return buf;
}
