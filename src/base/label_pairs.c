/* Lists of labels and their names. */
#include "label_pairs.h"

#include "str.h"

#include <string.h>

bool ses_is_label_pairs(const char *list) { return list && list[strcspn(list, ",|=")] == '='; }

bool ses_label_pairs_at(const char *list, size_t i, ses_string *label, ses_string *name)
{
    for (; i; i--) {
        list += strcspn(list, ",|");
        if (!*list++) return false;
    }
    size_t n = strcspn(list, ",|"), k = 0;
    while (k < n && list[k] != '=') k++;
    *label = (ses_string){ list, k };
    *name = k < n ? (ses_string){ list + k + 1, n - k - 1 } : (ses_string){ list + n, 0 };
    return true;
}

bool ses_label_pairs_check(const char *list, ses_err *e)
{
    ses_string label, name, other, unused;
    for (size_t i = 0; ses_label_pairs_at(list, i, &label, &name); i++) {
        if (!label.n || !name.n)
            return ses_fail(e, SES_EUSAGE, "labels: \"%s\": expected LABEL=NAME, as in 0=negative,1=positive",
                            ses_quoted_of(label.p, strcspn(label.p, ",|")).s);
        for (size_t k = 0; k < i && ses_label_pairs_at(list, k, &other, &unused); k++)
            if (label.n == other.n && !memcmp(label.p, other.p, label.n))
                return ses_fail(e, SES_EUSAGE, "labels: label \"%s\" has two names",
                                ses_quoted_of(label.p, label.n).s);
    }
    return true;
}

/* A number below n; n: it is none. */
static size_t number_of(ses_string s, size_t n)
{
    size_t x = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || x > n) return n;
        x = 10 * x + (size_t)(s.p[i] - '0');
    }
    return s.n && x < n ? x : n;
}

static bool fail_no_label(ses_string label, ses_label_name_fn *name_of, const void *ctx, size_t n, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t k = 0; k < n && list.len < 300; k++) {
        const char *s = name_of(ctx, k);
        ses_buf_appendf(&list, "%s%s", k ? ", " : "", ses_quoted_of(s, strlen(s)).s);
    }
    if (list.len >= 300) ses_buf_puts(&list, ", ...");
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EARG,
                 "labels: \"%s\" is not a label of the model; it has %s (or numbers from 0 to %zu)",
                 ses_quoted_of(label.p, label.n).s, list.data ? list.data : "none", n ? n - 1 : 0);
    ses_buf_free(&list);
    return false;
}

bool ses_label_pairs_rename(const char *list, ses_label_name_fn *name_of, const void *ctx, size_t n,
                            ses_string *name, ses_err *e)
{
    ses_string label, to;
    if (!ses_label_pairs_check(list, e)) return false;
    for (size_t k = 0; k < n; k++) name[k] = (ses_string){ 0 };
    for (size_t i = 0; ses_label_pairs_at(list, i, &label, &to); i++) {
        size_t at = 0;
        while (at < n && !ses_equal(label.p, label.n, name_of(ctx, at))) at++;
        if (at == n) at = number_of(label, n);
        if (at == n) return fail_no_label(label, name_of, ctx, n, e);
        name[at] = to;
    }
    return true;
}
