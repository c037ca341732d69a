/* Derives the merge list of a SentencePiece BPE model. */
#include "legacy_merges.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <stdlib.h>

typedef struct merge {
    double score;        /* score of the merged piece */
    int32_t left, right; /* ids */
    uint32_t left_chars, right_chars;
    uint32_t order; /* tie break */
} merge;

typedef struct merge_list {
    merge *item;
    size_t n, cap;
} merge_list;

static bool push(merge_list *c, merge x, ses_err *e)
{
    if (!ses_array_reserve(&c->item, &c->cap, c->n + 1, sizeof *c->item, e)) return false;
    c->item[c->n++] = x;
    return true;
}

static int by_ids(const void *a, const void *b)
{
    const merge *x = a, *y = b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

/* Highest score first; then the longer left part, then the longer right part. */
static int by_score(const void *a, const void *b)
{
    const merge *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->left_chars != y->left_chars) return x->left_chars > y->left_chars ? -1 : 1;
    if (x->right_chars != y->right_chars) return x->right_chars > y->right_chars ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static bool add_merges(const ses_legacy_converter *o, ses_string s, double score, merge_list *c, ses_err *e)
{
    size_t start = c->n;
    uint32_t chars = 0, left = 0;
    chars = (uint32_t)ses_utf8_count(s.p, s.n);
    for (size_t i = 1; i < s.n; i++) {
        if (ses_utf8_continues(s.p[i])) continue;
        left++;
        int32_t l = ses_vocab_id(&o->vocab, s.p, i);
        int32_t r = l < 0 ? -1 : ses_vocab_id(&o->vocab, s.p + i, s.n - i);
        if (r >= 0 && !push(c, (merge){ score, l, r, left, chars - left, 0 }, e)) return false;
    }
    if (c->n > start) qsort(c->item + start, c->n - start, sizeof *c->item, by_ids);
    for (size_t i = start; i < c->n; i++) c->item[i].order = (uint32_t)i;
    return true;
}

static void put_name(ses_json_writer *w, ses_string s) { ses_json_put_stringn(w, s.p, s.n); }

bool ses_legacy_put_spm_bpe(ses_legacy_converter *o, const ses_string *name, const double *score, size_t n,
                            size_t unk, bool bytes, ses_err *e)
{
    merge_list c = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) ok = add_merges(o, name[i], score[i], &c, e);
    if (ok && c.n) qsort(c.item, c.n, sizeof *c.item, by_score);
    ses_json_writer *w = o->w;
    ses_json_member_object(w, "model");
    ses_json_member_string(w, "type", "BPE");
    ses_json_put_key(w, "dropout");
    ses_json_put_null(w);
    ses_json_put_key(w, "unk_token");
    put_name(w, name[unk]);
    ses_json_member_bool(w, "fuse_unk", true);
    ses_json_member_bool(w, "byte_fallback", bytes);
    ses_json_put_key(w, "vocab");
    ses_vocab_save(&o->vocab, w);
    ses_json_member_array(w, "merges");
    for (size_t i = 0; ok && i < c.n; i++) {
        ses_json_begin_array(w);
        put_name(w, name[c.item[i].left]);
        put_name(w, name[c.item[i].right]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_free(c.item);
    return ok;
}
