/* Dependency trees in memory. */
#include "analysis/treebank/treebank.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

/* The stored copy of s: equal strings share one. */
static bool intern(ses_treebank *t, ses_string *s, ses_err *e)
{
    int64_t at;
    if (ses_strmap_find(&t->strings, s->p, s->n, &at)) {
        s->p = t->strings.entry[at].key;
        return true;
    }
    char *copy = ses_arena_strndup(&t->arena, s->p, s->n, e);
    bool fresh;
    if (!copy || !ses_strmap_insert(&t->strings, copy, s->n, (int64_t)t->strings.count, &fresh, e))
        return false;
    s->p = copy;
    return true;
}

static bool reserve(ses_treebank *t, ses_err *e)
{
    return ses_array_reserve(&t->tree, &t->cap, t->n + 1, sizeof *t->tree, e) &&
           ses_array_reserve(&t->input, &t->input_cap, t->n + 1, sizeof *t->input, e);
}

static void append(ses_treebank *t, const ses_conllu_word *word, const ses_string *form, size_t n)
{
    t->tree[t->n] = (ses_tree){ .n = n, .word = word, .first = t->words };
    t->input[t->n] = (ses_input){ .words = form, .n_words = n };
    t->n++;
    t->words += n;
}

static bool add_sentence(ses_treebank *t, const ses_conllu_sentence *s, ses_err *e)
{
    if (!reserve(t, e)) return false;
    ses_conllu_word *word = ses_arena_array(&t->arena, s->n, sizeof *word, e);
    ses_string *form = word ? ses_arena_array(&t->arena, s->n, sizeof *form, e) : NULL;
    if (!form) return false;
    for (size_t i = 0; i < s->n; i++) {
        ses_conllu_word *w = &word[i];
        *w = s->word[i];
        if (!intern(t, &w->form, e) || !intern(t, &w->upos, e) || !intern(t, &w->xpos, e) ||
            !intern(t, &w->feats, e) || !intern(t, &w->deprel, e))
            return false;
        form[i] = w->form;
    }
    append(t, word, form, s->n);
    return true;
}

static bool note_skipped(ses_treebank *t, const ses_conllu *c, const char *path, ses_err *e)
{
    uint64_t skipped = ses_conllu_skipped(c);
    if (skipped && !t->skipped) {
        ses_buf b = { 0 };
        ses_buf_appendf(&b, "%s: %s", path, ses_conllu_first_skipped(c));
        t->first_skipped = ses_buf_ok(&b, e) ? ses_arena_strndup(&t->arena, b.data, b.len, e) : NULL;
        ses_buf_free(&b);
        if (!t->first_skipped) return false;
    }
    t->skipped += skipped;
    return true;
}

bool ses_treebank_read(ses_treebank *t, const char *path, bool skip_invalid, ses_err *e)
{
    ses_conllu_options o = { .skip_invalid = skip_invalid };
    ses_conllu *c = ses_conllu_open(path, &o, e);
    ses_conllu_sentence s;
    bool ok = c != NULL;
    while (ok && (ok = ses_conllu_next(c, &s, e)) && s.n) {
        if (s.n > SES_TREE_MAX_WORDS)
            t->too_long++;
        else
            ok = add_sentence(t, &s, e);
    }
    ok = ok && note_skipped(t, c, path, e);
    ses_conllu_free(c);
    return ok;
}

void ses_treebank_note_left_out(const ses_treebank *t, const char *path, ses_report *r)
{
    if (t->skipped)
        ses_report_note(r, "%llu invalid sentences of %s were skipped; the first: %s.",
                        (unsigned long long)t->skipped, path, t->first_skipped);
    if (t->too_long)
        ses_report_note(r, "%zu sentences of %s with more than %d words were left out.", t->too_long, path,
                        (int)SES_TREE_MAX_WORDS);
}

bool ses_treebank_part(ses_treebank *t, const ses_treebank *whole, size_t modulus, size_t from, size_t to,
                       ses_err *e)
{
    for (size_t i = 0; i < whole->n; i++) {
        if (i % modulus < from || i % modulus >= to) continue;
        if (!reserve(t, e)) return false;
        append(t, whole->tree[i].word, whole->input[i].words, whole->tree[i].n);
    }
    return true;
}

void ses_treebank_free(ses_treebank *t)
{
    ses_free(t->tree);
    ses_free(t->input);
    ses_arena_free(&t->arena);
    ses_strmap_free(&t->strings);
    *t = (ses_treebank){ 0 };
}

bool ses_tree_is_punctuation(const ses_conllu_word *w)
{
    return ses_equal(w->upos.p, w->upos.n, "PUNCT") ||
           (ses_equal(w->upos.p, w->upos.n, "_") && ses_equal(w->deprel.p, w->deprel.n, "punct"));
}

size_t ses_tree_content_words(const ses_tree *t, int32_t *node)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!ses_tree_is_punctuation(&t->word[i])) node[n++] = (int32_t)i;
    if (!n)
        for (; n < t->n; n++) node[n] = (int32_t)n;
    return n;
}

void ses_tree_depths(const ses_tree *t, int16_t *depth)
{
    for (size_t i = 0; i < t->n; i++) depth[i] = -1;
    for (size_t i = 0; i < t->n; i++) {
        int steps = 0;
        size_t top = i;
        for (; depth[top] < 0 && t->word[top].head; top = (size_t)t->word[top].head - 1) steps++;
        int d = (depth[top] < 0 ? 0 : depth[top]) + steps;
        for (size_t k = i; depth[k] < 0; k = (size_t)t->word[k].head - 1) {
            depth[k] = (int16_t)d--;
            if (!t->word[k].head) break;
        }
    }
}

/* The path between two words: both climb, the deeper one first, until they meet. */
static int path_length(const ses_tree *t, const int16_t *depth, size_t a, size_t b)
{
    int steps = 0;
    for (; a != b; steps++) {
        bool first = depth[a] >= depth[b];
        size_t *up = first ? &a : &b;
        *up = (size_t)t->word[*up].head - 1;
    }
    return steps;
}

void ses_tree_distances(const ses_tree *t, int16_t *distance)
{
    int16_t depth[SES_TREE_MAX_WORDS];
    size_t n = t->n;
    ses_tree_depths(t, depth);
    for (size_t i = 0; i < n; i++) {
        distance[i * n + i] = 0;
        for (size_t j = i + 1; j < n; j++)
            distance[i * n + j] = distance[j * n + i] = (int16_t)path_length(t, depth, i, j);
    }
}
