/* Sentence classification made from dependency trees: labels and changes of sentences. */
#include "analysis/treebank/surface_tasks.h"

#include "analysis/treebank/surface_lists.h"
#include "base/alloc.h"
#include "base/str.h"
#include "data/rng_stream.h"

#include <string.h>

static const char *const task_list[] = {
#define SES_SURFACE_TASK(id, name, description) name,
#include "analysis/treebank/surface_tasks.def"
#undef SES_SURFACE_TASK
};

const char *ses_surface_task_name(ses_surface_task t) { return task_list[t]; }

ses_surface_task ses_surface_task_find(const char *name)
{
    for (int t = 0; t < SES_SURFACE_TASKS; t++)
        if (!strcmp(task_list[t], name)) return (ses_surface_task)t;
    return SES_SURFACE_TASKS;
}

/* A sentence that is labeled. */
typedef struct maker {
    ses_surface_set *set;
    const ses_surface_lists *lists;
    const ses_tree *tree;
    const ses_string *form; /* the words as they are, or changed */
    ses_rng_stream draws;
    bool changes; /* half of the sentences are changed */
} maker;

static ses_string literal(const char *s) { return (ses_string){ s, strlen(s) }; }

static const ses_string none = { NULL, 0 };

/* ---- length and depth ---- */

static ses_string length_label(const maker *m)
{
    static const struct {
        size_t most;
        const char *name;
    } bin[] = {
        { 4, "1-4" }, { 8, "5-8" }, { 12, "9-12" }, { 16, "13-16" }, { 20, "17-20" }, { 25, "21-25" }
    };
    for (size_t i = 0; i < SES_LEN(bin); i++)
        if (m->tree->n <= bin[i].most) return literal(bin[i].name);
    return literal("26+");
}

static ses_string depth_label(const maker *m)
{
    static const char *const name[] = { "0", "1", "2", "3", "4", "5", "6", "7+" };
    int16_t depth[SES_TREE_MAX_WORDS];
    int deepest = 0;
    ses_tree_depths(m->tree, depth);
    for (size_t i = 0; i < m->tree->n; i++)
        if (depth[i] > deepest) deepest = depth[i];
    return literal(name[deepest < 7 ? deepest : 7]);
}

/* ---- words ---- */

/* The chosen word, if the sentence has exactly one of them. */
static ses_string word_label(const maker *m)
{
    ses_string found = none;
    for (size_t i = 0; i < m->tree->n; i++) {
        int64_t at;
        if (!ses_surface_find_chosen(m->lists, m->tree->word[i].form, &at)) continue;
        const ses_strmap_entry *x = &m->lists->chosen.entry[at];
        if (found.p && found.p != x->key) return none;
        found = (ses_string){ x->key, x->len };
    }
    return found;
}

/* A copy of the words that may be changed. */
static ses_string *copy_words(maker *m, ses_err *e)
{
    ses_string *form = ses_arena_array(&m->set->arena, m->tree->n, sizeof *form, e);
    if (form) memcpy(form, m->form, m->tree->n * sizeof *form);
    return form;
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

static bool can_swap(const maker *m, size_t i)
{
    const ses_conllu_word *w = m->tree->word;
    return !ses_tree_is_punctuation(&w[i]) && !ses_tree_is_punctuation(&w[i + 1]) &&
           !same(w[i].form, w[i + 1].form);
}

/* Swaps a random pair of neighbors, neither of which is punctuation. */
static bool shift_label(maker *m, ses_string *label, ses_err *e)
{
    size_t n = m->tree->n, pairs = 0, at = 0;
    for (size_t i = 0; i + 1 < n; i++) pairs += can_swap(m, i);
    if (!pairs) return true;
    size_t pick = (size_t)ses_draw_below(&m->draws, (int64_t)pairs);
    for (size_t i = 0; i + 1 < n; i++)
        if (can_swap(m, i) && !pick--) at = i;
    *label = literal(m->changes ? "swapped" : "original");
    if (!m->changes) return true;
    ses_string *form = copy_words(m, e);
    if (!form) return false;
    ses_string first = form[at];
    form[at] = form[at + 1];
    form[at + 1] = first;
    m->form = form;
    return true;
}

static bool is_replaceable(const ses_conllu_word *w)
{
    return ses_equal(w->upos.p, w->upos.n, "NOUN") || ses_equal(w->upos.p, w->upos.n, "VERB");
}

/* Replaces a random noun or verb by a word of similar frequency with the same XPOS. */
static bool odd_label(maker *m, ses_string *label, ses_err *e)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < m->tree->n; i++) count += is_replaceable(&m->tree->word[i]);
    if (!count) return true;
    size_t pick = (size_t)ses_draw_below(&m->draws, (int64_t)count);
    for (size_t i = 0; i < m->tree->n; i++)
        if (is_replaceable(&m->tree->word[i]) && !pick--) at = i;
    ses_string other = ses_surface_replacement(m->lists, &m->tree->word[at], &m->draws);
    if (!other.p) return true;
    *label = literal(m->changes ? "replaced" : "original");
    if (!m->changes) return true;
    ses_string *form = copy_words(m, e);
    if (!form) return false;
    form[at] = other;
    m->form = form;
    return true;
}

/* ---- grammar ---- */

static size_t root_of(const ses_tree *t)
{
    size_t i = 0;
    while (t->word[i].head) i++;
    return i;
}

/* The first child of the root in this relation, with or without a subtype; NULL: none. */
static const ses_conllu_word *child_of_root(const ses_tree *t, const char *relation)
{
    int root = (int)root_of(t) + 1;
    for (size_t i = 0; i < t->n; i++) {
        ses_string r = ses_conllu_relation(t->word[i].deprel);
        if (t->word[i].head == root && ses_equal(r.p, r.n, relation)) return &t->word[i];
    }
    return NULL;
}

/* The value of a feature as one of two labels; none: another value. */
static ses_string choose(ses_string value, const char *a, const char *b)
{
    if (!value.p) return none;
    return ses_equal(value.p, value.n, a) ? literal(a) : ses_equal(value.p, value.n, b) ? literal(b) : none;
}

static ses_string number_label(const maker *m, const char *relation)
{
    const ses_conllu_word *w = child_of_root(m->tree, relation);
    return w ? choose(ses_conllu_feature(w->feats, "Number"), "Sing", "Plur") : none;
}

static ses_string finite_tense(const ses_conllu_word *w)
{
    ses_string form = w ? ses_conllu_feature(w->feats, "VerbForm") : none;
    if (!form.p || !ses_equal(form.p, form.n, "Fin")) return none;
    return choose(ses_conllu_feature(w->feats, "Tense"), "Past", "Pres");
}

/* Tense of the root, if it is finite, else of its auxiliary or copula. */
static ses_string tense_label(const maker *m)
{
    ses_string t = finite_tense(&m->tree->word[root_of(m->tree)]);
    if (!t.p) t = finite_tense(child_of_root(m->tree, "aux"));
    return t.p ? t : finite_tense(child_of_root(m->tree, "cop"));
}

/* ---- sets ---- */

static bool label_sentence(maker *m, ses_surface_task task, ses_string *label, ses_err *e)
{
    switch (task) {
    case SES_SURFACE_length: *label = length_label(m); return true;
    case SES_SURFACE_depth: *label = depth_label(m); return true;
    case SES_SURFACE_word_content: *label = word_label(m); return true;
    case SES_SURFACE_bigram_shift: return shift_label(m, label, e);
    case SES_SURFACE_odd_word: return odd_label(m, label, e);
    case SES_SURFACE_subject_number: *label = number_label(m, "nsubj"); return true;
    case SES_SURFACE_object_number: *label = number_label(m, "obj"); return true;
    case SES_SURFACE_tense: *label = tense_label(m); return true;
    case SES_SURFACE_TASKS: break;
    }
    return ses_fail(e, SES_EARG, "no such task");
}

static bool append(ses_surface_set *s, const maker *m, size_t sentence, ses_string label, ses_err *e)
{
    if (!ses_array_reserve(&s->input, &s->input_cap, s->n + 1, sizeof *s->input, e) ||
        !ses_array_reserve(&s->label, &s->label_cap, s->n + 1, sizeof *s->label, e) ||
        !ses_array_reserve(&s->sentence, &s->sentence_cap, s->n + 1, sizeof *s->sentence, e))
        return false;
    s->input[s->n] = (ses_input){ .words = m->form, .n_words = m->tree->n };
    s->label[s->n] = label;
    s->sentence[s->n++] = sentence;
    return true;
}

bool ses_surface_make(ses_surface_set *s, ses_surface_task task, const ses_treebank *trees,
                      const ses_surface_lists *lists, uint64_t seed, ses_err *e)
{
    for (size_t i = 0; i < trees->n; i++) {
        maker m = { .set = s, .lists = lists, .tree = &trees->tree[i], .form = trees->input[i].words };
        m.draws = ses_rng_stream_of(seed, i, (uint32_t)task + 1);
        m.changes = ses_draw_below(&m.draws, 2);
        ses_string label = none;
        if (!label_sentence(&m, task, &label, e)) return false;
        if (label.p && !append(s, &m, i, label, e)) return false;
    }
    return true;
}

void ses_surface_set_free(ses_surface_set *s)
{
    ses_free(s->input);
    ses_free(s->label);
    ses_free(s->sentence);
    ses_arena_free(&s->arena);
    *s = (ses_surface_set){ 0 };
}
