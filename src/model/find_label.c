/* Labels of a classifier by name. */
#include "model_desc.h"

#include "base/str.h"
#include "base/suggest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *ses_model_label_text(const ses_model *m, int64_t i, char buf[SES_LABEL_TEXT])
{
    const char *name = ses_model_label_name(m, i);
    if (!name) snprintf(buf, SES_LABEL_TEXT, "LABEL_%lld", (long long)i);
    return name ? name : buf;
}

int64_t ses_model_labels_differ(const ses_model *a, const ses_model *b)
{
    for (int64_t i = 0; i < ses_model_label_count(a) && i < ses_model_label_count(b); i++) {
        const char *x = ses_model_label_name(a, i), *y = ses_model_label_name(b, i);
        if (x && y && strcmp(x, y) != 0) return i;
    }
    return -1;
}

static bool fail_unknown(const ses_model *m, ses_string text, int64_t n, ses_err *e)
{
    enum { SHOWN = 20 };
    char word[128], buf[SES_LABEL_TEXT];
    ses_buf list = { 0 };
    snprintf(word, sizeof word, "%.*s", (int)(text.n < 100 ? text.n : 100), text.p);
    ses_suggestion near = { .word = word };
    for (int64_t i = 0; i < n; i++) {
        const char *name = ses_model_label_text(m, i, buf);
        if (i < SHOWN) ses_buf_appendf(&list, "%s%s", i ? ", " : "", ses_quoted_of(name, strlen(name)).s);
        if (name != buf) ses_suggest_offer(&near, name, strlen(name));
    }
    ses_fail(e, SES_EFORMAT, "label \"%s\" is not a label of the model: %s%s",
             ses_quoted_of(text.p, text.n).s, list.data ? list.data : "it has none",
             n > SHOWN ? ", ..." : "");
    ses_buf_free(&list);
    return ses_suggest_add(&near, "", e);
}

bool ses_model_find_label(const ses_model *m, ses_string text, int64_t *label, ses_err *e)
{
    int64_t n = ses_model_label_count(m), number = 0, alike = 0;
    char buf[SES_LABEL_TEXT];
    for (int64_t i = 0; i < n; i++) {
        const char *name = ses_model_label_text(m, i, buf);
        if (ses_equal(text.p, text.n, name)) return *label = i, true;
        if (strlen(name) == text.n && !strncasecmp(name, text.p, text.n)) *label = i, alike++;
    }
    if (alike == 1) return true;
    size_t digits = 0;
    for (; digits < text.n && digits < 9 && text.p[digits] >= '0' && text.p[digits] <= '9'; digits++)
        number = 10 * number + (text.p[digits] - '0');
    if (text.n && digits == text.n && number < n) return *label = number, true;
    return fail_unknown(m, text, n, e);
}
