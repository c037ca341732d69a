/* Closest candidate by edit distance. */
#include "suggest.h"

#include "str.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 48 };

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance of a and b: insertions, deletions, substitutions, swaps of neighbors
 * (Damerau-Levenshtein). */
static size_t edits(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[3][MAX_WORD + 1]; /* rows i - 2, i - 1 and i, by i mod 3 */
    for (size_t j = 0; j <= nb; j++) row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *above = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = min_size(above[j - 1] + (a[i - 1] != b[j - 1]), min_size(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_size(now[j], two[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

void ses_suggest_offer(ses_suggestion *s, const char *candidate, size_t len)
{
    size_t n = strlen(s->word);
    if (!n || n > MAX_WORD || len > MAX_WORD) return;
    size_t d = edits(s->word, n, candidate, len);
    if (n >= 2 && n < len && !memcmp(s->word, candidate, n)) d = 1; /* a prefix of the candidate */
    if (d > (n < 3 ? 1 : (n + 2) / 3)) return;                      /* a third of the letters may be wrong */
    if (s->best && d >= s->distance) return;
    s->best = candidate;
    s->best_len = len;
    s->distance = d;
}

bool ses_suggest_add(const ses_suggestion *s, const char *prefix, ses_err *e)
{
    if (!s->best || !e) return false;
    size_t n = strlen(e->msg);
    snprintf(e->msg + n, sizeof e->msg - n, "; did you mean '%s%.*s'?", prefix, (int)s->best_len, s->best);
    return false;
}

bool ses_fail_unknown(ses_err *e, ses_code code, const char *what, ses_string word, ses_name_fn *name_of,
                      const void *ctx)
{
    const char *name;
    ses_buf list = { 0 };
    for (size_t i = 0; (name = name_of(ctx, i)); i++) ses_buf_appendf(&list, "%s%s", i ? ", " : "", name);
    if (ses_buf_ok(&list, e))
        ses_fail(e, code, "unknown %s \"%s\"; choose one of %s", what, ses_quoted_of(word.p, word.n).s,
                 list.data ? list.data : "none");
    ses_buf_free(&list);
    return false;
}
