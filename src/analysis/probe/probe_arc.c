/* The kind "arc": dependency arcs of CoNLL-U. Two tasks on pairs (i, j): "arc", whether j is the head of i,
 * against another word of the sentence drawn at random; and "relation", the relation of i to its head. */
#include "base/alloc.h"
#include "base/rng.h"
#include "io/conllu.h"
#include "probe_run.h"
#include "probe_setup.h"

#include <string.h>

enum { SITE = 0x61726331 };

typedef struct arcs {
    ses_analysis_call *c;
    const ses_probe_args *a;
    ses_probe_data d;
    ses_string *word;
    size_t cap_words;
    uint64_t drawn;
    bool note; /* the file is read for the first time */
} arcs;

/* A word that is neither i nor its head. */
static size_t draw_other(arcs *t, size_t n, size_t i, size_t head)
{
    ses_rng_key key = { t->c->seed, 0, SITE };
    size_t at = (size_t)(((uint64_t)ses_rand32(key, t->drawn++) * (n - 2)) >> 32);
    size_t low = i < head ? i : head, high = i < head ? head : i;
    if (at >= low) at++;
    if (at >= high) at++;
    return at;
}

static bool add_sentence(arcs *t, const ses_conllu_sentence *s, ses_err *e)
{
    static const ses_string yes = { "head", 4 }, no = { "other", 5 }, none = { 0 };
    size_t row;
    if (!ses_array_reserve(&t->word, &t->cap_words, s->n, sizeof *t->word, e)) return false;
    for (size_t i = 0; i < s->n; i++) t->word[i] = s->word[i].form;
    if (!ses_probe_data_add_words(&t->d, t->word, s->n, &row, e)) return false;
    for (size_t i = 0; i < s->n; i++) {
        const ses_conllu_word *w = &s->word[i];
        if (!w->head) continue;
        size_t head = (size_t)w->head - 1;
        ses_string label[2] = { yes, ses_conllu_relation(w->deprel) }, other[2] = { no, none };
        if (!ses_probe_data_add(&t->d, row + i, row + head, w->form, label, e)) return false;
        if (s->n > 2 &&
            !ses_probe_data_add(&t->d, row + i, row + draw_other(t, s->n, i, head), w->form, other, e))
            return false;
    }
    return true;
}

static bool read_arcs(arcs *t, const char *path, int set, bool split, ses_err *e)
{
    ses_conllu *f =
        ses_conllu_open(path, &(ses_conllu_options){ .skip_invalid = t->a->tree.skip_invalid }, e);
    ses_conllu_sentence s = { 0 };
    bool ok = f != NULL;
    for (size_t i = 0; ok && (ok = ses_conllu_next(f, &s, e)) && s.n; i++)
        if (!split || ses_probe_in_set(i, set)) ok = add_sentence(t, &s, e);
    if (ok && t->note) ses_probe_note_skipped(t->c, f, path);
    ses_conllu_free(f);
    return ok;
}

static bool run_arc(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e)
{
    arcs t = { .c = c,
               .a = a,
               .d = { .kind = "arc", .unit = SES_STATES_OF_WORDS, .pairs = true, .drops_tasks = true } };
    bool ok = ses_probe_check_options(a, SES_PROBE_ARCS, e) && ses_probe_data_add_task(&t.d, "arc", 3, e) &&
              ses_probe_data_add_task(&t.d, "relation", 8, e);
    for (int s = 0; ok && s < SES_PROBE_SETS; s++) {
        ses_probe_data_begin(&t.d, s);
        t.note = s < n;
        ok = read_arcs(&t, file[n == 1 ? 0 : s < n ? s : n - 1], s, n == 1, e);
    }
    ok = ok && ses_probe_data_end(&t.d, c->report, e) && ses_probe_run(c, a, &t.d, e);
    ses_free(t.word);
    ses_probe_data_free(&t.d);
    return ok;
}

const ses_probe_kind ses_probe_kind_arc = { .name = "arc",
                                            .operands = "TRAIN [DEV [TEST]]",
                                            .min_files = 1,
                                            .max_files = SES_PROBE_SETS,
                                            .run = run_arc };
