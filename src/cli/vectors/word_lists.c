/* Lists of word pairs. */
#include "word_lists.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/text_table.h"
#include "io/input_stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct adding {
    ses_word_lists *l;
    const char *dir;
    bool ok;
    ses_err *e;
} adding;

static bool add_path(ses_word_lists *l, char *path, ses_err *e)
{
    if (path && ses_array_reserve(&l->list, &l->cap, l->n + 1, sizeof *l->list, e)) {
        l->list[l->n++] = (ses_word_list){ .path = path };
        return true;
    }
    ses_free(path);
    return false;
}

static bool add_name(void *ctx, const char *name)
{
    adding *a = ctx;
    bool is_list = ses_input_stream_has_suffix(name, ".txt") || ses_input_stream_has_suffix(name, ".tsv") ||
                   ses_input_stream_has_suffix(name, ".csv");
    a->ok = a->ok && (name[0] == '.' || !is_list || add_path(a->l, ses_path_join(a->dir, name, a->e), a->e));
    return a->ok;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const ses_word_list *)a)->path, ((const ses_word_list *)b)->path);
}

bool ses_word_lists_add(ses_word_lists *l, const char *path, ses_err *e)
{
    size_t first = l->n;
    if (!ses_path_is_dir(path)) return add_path(l, ses_strdup(path, e), e);
    adding a = { l, path, true, e };
    if (!ses_dir_each(path, add_name, &a, e) || !a.ok) return false;
    if (l->n == first) return ses_fail(e, SES_EIO, "%s: no .txt, .tsv or .csv files", path);
    qsort(l->list + first, l->n - first, sizeof *l->list, by_path);
    return true;
}

void ses_word_lists_free(ses_word_lists *l)
{
    for (size_t i = 0; i < l->n; i++) ses_free(l->list[i].path);
    ses_free(l->list);
    *l = (ses_word_lists){ 0 };
}

bool ses_word_lists_evaluate(ses_word_lists *l, const ses_vectors *v, int64_t limit, ses_fold fold,
                             const ses_word_pairs_options *o, ses_err *e)
{
    ses_folded_words words = { 0 };
    int64_t n = ses_vectors_count(v);
    bool ok = ses_folded_words_build(&words, v, limit && limit < n ? limit : n, fold, e);
    for (size_t i = 0; ok && i < l->n; i++)
        ok = ses_word_pairs_evaluate(&l->list[i].score, v, &words, l->list[i].path, o, e);
    ses_folded_words_free(&words);
    return ok;
}

/* ---- output ---- */

static void put_correlation(ses_text_table *t, double x)
{
    if (x == x)
        ses_text_table_cell(t, "%.4f", x);
    else
        ses_text_table_cell(t, "-");
}

bool ses_word_lists_show(const ses_word_lists *l, const ses_term *term, ses_err *e)
{
    static const int importance[] = { 0, 3, 3, 2, 0, 2, 1 };
    char bar[SES_BAR_SIZE];
    ses_text_table *t = ses_text_table_new("List|>Pairs|>Known|>Coverage|>Spearman|>Pearson|", e);
    if (!t) return false;
    for (size_t i = 0; i < l->n; i++) {
        const ses_word_pairs_score *s = &l->list[i].score;
        ses_text_table_cell(t, "%s", ses_path_name_of(l->list[i].path).s);
        ses_text_table_style(t, SES_BOLD);
        ses_text_table_cell(t, "%lld", (long long)s->pairs);
        ses_text_table_cell(t, "%lld", (long long)s->known);
        ses_text_table_cell(t, "%.1f %%", s->pairs ? 100 * (double)s->known / (double)s->pairs : 0);
        put_correlation(t, s->spearman);
        put_correlation(t, s->pearson);
        ses_text_table_cell(t, "%s", ses_bar_text(term, bar, s->spearman > 0 ? s->spearman : 0, 20));
        ses_text_table_style(t, SES_BLUE);
    }
    ses_text_table_fit(t, term->width, importance);
    bool ok = ses_text_table_print(t, stdout, term, 0, e);
    ses_text_table_free(t);
    for (size_t i = 0; ok && i < l->n; i++)
        if (l->list[i].score.invalid)
            fprintf(stderr, "%s: %lld lines are not pairs and were left out\n",
                    ses_path_name_of(l->list[i].path).s, (long long)l->list[i].score.invalid);
    return ok;
}

void ses_word_lists_put_json(const ses_word_lists *l, ses_json_writer *w)
{
    ses_json_begin_array(w);
    for (size_t i = 0; i < l->n; i++) {
        const ses_word_pairs_score *s = &l->list[i].score;
        ses_json_begin_object(w);
        ses_json_member_string(w, "list", ses_path_name_of(l->list[i].path).s);
        ses_json_member_int(w, "pairs", s->pairs);
        ses_json_member_int(w, "known", s->known);
        ses_json_member_int(w, "invalid_lines", s->invalid);
        ses_json_member_real(w, "spearman", s->spearman);
        ses_json_member_real(w, "pearson", s->pearson);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}
