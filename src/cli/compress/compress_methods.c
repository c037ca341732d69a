/* Methods of `sesame compress` and the candidates they make. */
#include "compress.h"

#include "base/alloc.h"
#include "base/number_text.h"
#include "base/str.h"
#include "base/suggest.h"
#include "tune/finetuner.h"

#include <stdlib.h>
#include <string.h>

static const ses_compress_method methods[] = {
#define SES_COMPRESS(name_, kind_, tasks_, type_, values_, default_, trains_, after_, steps_, summary_) \
    {                                                                                                   \
        name_,   SES_COMPRESS_##kind_,                                                                  \
        tasks_,  SES_COMPRESS_##type_,                                                                  \
        values_, default_,                                                                              \
        trains_, after_,                                                                                \
        steps_,  summary_                                                                               \
    },
#include "compress_methods.def"
#undef SES_COMPRESS
};

enum { MAX_CANDIDATES = 200, MAX_NAME = 120 };

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < SES_LEN(methods) ? methods[i].name : NULL;
}

static const ses_compress_method *find(const char *name, size_t n, ses_err *e)
{
    char word[MAX_NAME];
    ses_suggestion s = { .word = word };
    for (size_t i = 0; i < SES_LEN(methods); i++)
        if (ses_equal(name, n, methods[i].name)) return &methods[i];
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    for (size_t i = 0; i < SES_LEN(methods); i++)
        ses_suggest_offer(&s, methods[i].name, strlen(methods[i].name));
    ses_fail_unknown(e, SES_EUSAGE, "method", (ses_string){ name, n }, name_at, NULL);
    ses_suggest_add(&s, "", e);
    return NULL;
}

/* ---- chains ---- */

static size_t find_candidate(const ses_compress *z, const char *name, size_t n)
{
    size_t i = 0;
    while (i < z->n && !ses_equal(name, n, z->candidate[i].name)) i++;
    return i;
}

/* Whether a chain has this method. */
static bool contains(const ses_compress *z, size_t i, const char *method)
{
    for (; i; i = z->candidate[i].parent)
        if (!strcmp(z->candidate[i].method->name, method)) return true;
    return false;
}

/* Digits with at most one point, in the range of the method. Values become parts of paths. */
static bool check_value(const ses_compress_method *m, ses_string v, ses_err *e)
{
    static const char *const range[] = { [SES_COMPRESS_NONE] = "",
                                         [SES_COMPRESS_PART] = "above 0 and below 1",
                                         [SES_COMPRESS_COUNT] = "above 0 and below 1, or a whole number",
                                         [SES_COMPRESS_UNIT] = "above 0 and at most 1" };
    char text[24] = "";
    size_t digits = 0, points = 0;
    for (size_t i = 0; i < v.n; i++) digits += v.p[i] >= '0' && v.p[i] <= '9', points += v.p[i] == '.';
    bool ok = digits && points <= 1 && digits + points == v.n && v.n < sizeof text;
    if (ok) memcpy(text, v.p, v.n);
    double x = ok ? strtod(text, NULL) : 0;
    ok = ok && x > 0 &&
         (x < 1 || (m->type == SES_COMPRESS_UNIT && x == 1) || (m->type == SES_COMPRESS_COUNT && !points));
    return ok || ses_fail(e, SES_EUSAGE, "%s:%s: expected a number %s, as %s:%.*s", m->name,
                          ses_quoted_of(v.p, v.n).s, range[m->type], m->name, (int)strcspn(m->values, ","),
                          m->values);
}

/* A new candidate: the chain of n bytes, whose last method is `link`. */
static bool add(ses_compress *z, const char *chain, size_t n, const char *link, size_t parent, ses_err *e)
{
    size_t len = n - (size_t)(link - chain), name = 0;
    while (name < len && link[name] != ':') name++;
    const ses_compress_method *m = find(link, name, e);
    if (!m) return false;
    const ses_candidate *before = &z->candidate[parent];
    if (before->method && before->method->kind > SES_COMPRESS_TRANSFORM && before->method->kind >= m->kind)
        return ses_fail(e, SES_EUSAGE, "%.*s: %s ends a chain: put it last", (int)n, chain,
                        before->method->name);
    if (m->after && !contains(z, parent, m->after))
        return ses_fail(e, SES_EUSAGE, "%.*s: %s needs %s before it: %s+%.*s", (int)n, chain, m->name,
                        m->after, m->after, (int)len, link);
    if ((name < len) != (m->values != NULL))
        return ses_fail(e, SES_EUSAGE,
                        m->values ? "%.*s: %s needs a value here, as %s:%.*s"
                                  : "%.*s: %s has no value; write %s",
                        (int)n, chain, m->name, m->name, m->values ? (int)strcspn(m->values, ",") : 0,
                        m->values ? m->values : "");
    if (m->values && !check_value(m, (ses_string){ link + name + 1, len - name - 1 }, e)) return false;
    if (z->n == MAX_CANDIDATES || n >= MAX_NAME)
        return ses_fail(e, SES_EUSAGE, "--methods: more than %d candidates, or a longer name than %d bytes",
                        MAX_CANDIDATES, MAX_NAME);
    ses_candidate *x = &z->candidate[z->n];
    *x = (ses_candidate){ .method = m, .parent = parent };
    x->name = ses_strndup(chain, n, e);
    x->value = x->name ? ses_strndup(link + name + (name < len), len - name - (name < len), e) : NULL;
    x->base = (ses_planned_job){ .name = x->name, .after = x->parent };
    z->n += x->name != NULL;
    return x->value != NULL;
}

bool ses_compress_add_chain(ses_compress *z, const char *chain, size_t n, size_t *index, ses_err *e)
{
    size_t parent = 0;
    for (size_t begin = 0, end; begin <= n; begin = end + 1) {
        for (end = begin; end < n && chain[end] != '+';) end++;
        size_t at = find_candidate(z, chain, end);
        if (at == z->n && !add(z, chain, end, chain + begin, parent, e)) return false;
        parent = at;
    }
    if (index) *index = parent;
    return true;
}

/* ---- --methods ---- */

/* Adds an entry of --methods; a method without a value: with all of its own. */
static bool add_entry(ses_compress *z, ses_string entry, ses_err *e)
{
    char chain[2 * MAX_NAME];
    const ses_compress_method *m = NULL;
    ses_string v;
    for (size_t i = 0; i < SES_LEN(methods); i++)
        if (ses_equal(entry.p, entry.n, methods[i].name)) m = &methods[i];
    if (m && m->kind == SES_COMPRESS_RULE) return true; /* combine adds it */
    if (!m || !m->values) return ses_compress_add_chain(z, entry.p, entry.n, NULL, e);
    for (size_t k = 0; ses_comma_item(m->values, k, &v); k++) {
        int n = snprintf(chain, sizeof chain, "%s:%.*s", m->name, (int)v.n, v.p);
        if (!ses_compress_add_chain(z, chain, (size_t)n, NULL, e)) return false;
    }
    return true;
}

/* Every chain of transformations with each precision that --methods names alone. */
static bool combine(ses_compress *z, ses_err *e)
{
    size_t n = z->n;
    for (size_t p = 1; p < n; p++) {
        if (z->candidate[p].parent || z->candidate[p].method->kind != SES_COMPRESS_PRECISION) continue;
        for (size_t i = 1; i < n; i++) {
            char chain[2 * MAX_NAME];
            if (z->candidate[i].method->kind != SES_COMPRESS_TRANSFORM) continue;
            int len = snprintf(chain, sizeof chain, "%s+%s", z->candidate[i].name, z->candidate[p].name);
            if (!ses_compress_add_chain(z, chain, (size_t)len, NULL, e)) return false;
        }
    }
    return true;
}

/* Whether --methods, or the default, has a rule by its name alone. */
static bool wants_rule(const ses_compress *z, const ses_compress_method *m)
{
    ses_string entry;
    if (!z->a->methods) return m->is_default;
    for (size_t k = 0; ses_comma_item(z->a->methods, k, &entry); k++)
        if (ses_equal(entry.p, entry.n, m->name)) return true;
    return false;
}

/* The rules, with all of their values, after the chains they fit. */
static bool add_rules(ses_compress *z, ses_err *e)
{
    for (size_t r = 0; r < SES_LEN(methods); r++) {
        const ses_compress_method *m = &methods[r];
        size_t n = z->n;
        ses_string v;
        if (m->kind != SES_COMPRESS_RULE || !wants_rule(z, m)) continue;
        for (size_t i = 1; i < n; i++)
            for (size_t k = 0; contains(z, i, m->after) && ses_comma_item(m->values, k, &v); k++) {
                char chain[2 * MAX_NAME];
                if (z->candidate[i].method->kind == SES_COMPRESS_RULE) continue;
                int len =
                    snprintf(chain, sizeof chain, "%s+%s:%.*s", z->candidate[i].name, m->name, (int)v.n, v.p);
                if (!ses_compress_add_chain(z, chain, (size_t)len, NULL, e)) return false;
            }
    }
    return true;
}

bool ses_compress_lacks_rule(const ses_compress *z, size_t i)
{
    if (!i || z->candidate[i].method->kind == SES_COMPRESS_RULE) return false;
    for (size_t r = 0; r < SES_LEN(methods); r++)
        if (methods[r].after && contains(z, i, methods[r].after)) return true;
    return false;
}

/* A rule that --methods names without the method it follows: that method, too. */
static bool add_missing(ses_compress *z, ses_err *e)
{
    for (size_t r = 0; z->a->methods && r < SES_LEN(methods); r++) {
        const char *after = methods[r].after;
        bool found = !after || !wants_rule(z, &methods[r]);
        for (size_t i = 1; !found && i < z->n; i++) found = contains(z, i, after);
        if (!found && !ses_compress_add_chain(z, after, strlen(after), NULL, e)) return false;
    }
    return true;
}

/* Methods that the user names must be possible. */
static bool check_trained(const ses_compress *z, ses_err *e)
{
    for (size_t i = 1; z->a->methods && !z->a->train && i < z->n; i++)
        if (z->candidate[i].method->trains)
            return ses_fail(e, SES_EUSAGE, "%s needs training data: give --data FILE", z->candidate[i].name);
    return true;
}

const char *ses_compress_rule_of(const ses_candidate *x, char *buf, size_t size)
{
    if (!x->method || x->method->kind != SES_COMPRESS_RULE) return NULL;
    snprintf(buf, size, "entropy:%s", x->value);
    return buf;
}

bool ses_compress_choose_methods(ses_compress *z, ses_err *e)
{
    ses_string entry;
    z->candidate = ses_alloc_array(MAX_CANDIDATES, sizeof *z->candidate, e);
    if (!z->candidate) return false;
    z->candidate[0].name = ses_strdup("original", e);
    z->candidate[0].value = ses_strdup("", e);
    z->n = 1;
    z->candidate[0].base = (ses_planned_job){ .name = z->candidate[0].name, .after = SIZE_MAX };
    if (!z->candidate[0].name || !z->candidate[0].value) return false;
    for (size_t i = 0; !z->a->methods && i < SES_LEN(methods); i++)
        if (methods[i].is_default &&
            !add_entry(z, (ses_string){ methods[i].name, strlen(methods[i].name) }, e))
            return false;
    for (size_t k = 0; ses_comma_item(z->a->methods, k, &entry); k++)
        if (!add_entry(z, entry, e)) return ses_wrap(e, "--methods");
    return (add_missing(z, e) && check_trained(z, e) && combine(z, e) && add_rules(z, e)) ||
           ses_wrap(e, "--methods");
}
