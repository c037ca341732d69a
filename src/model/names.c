/* Names of parameters: Sesame's by patterns to the reference's, and back. */
#include "model_desc.h"

#include <stdio.h>
#include <string.h>

/* Match a name against a pattern of ours; # takes digits, * at the end takes the rest. */
static bool match(const char *pattern, const char *name, int *number, const char **rest)
{
    for (;; pattern++) {
        if (*pattern == '*') {
            *rest = name;
            return true;
        }
        if (*pattern == '#') {
            int len = 0;
            if (sscanf(name, "%d%n", number, &len) != 1) return false;
            name += len;
            continue;
        }
        if (*pattern != *name) return false;
        if (!*name++) return true;
    }
}

/* Their pattern with number and rest put in; false when buf is too small. inner: layers in a group. */
static bool expand(char *buf, size_t n, const char *prefix, const char *pattern, int number, int inner,
                   const char *rest)
{
    size_t at = 0;
    int len = snprintf(buf, n, "%s", prefix);
    for (at = (size_t)len; *pattern && at < n; pattern++) {
        if (*pattern == '#')
            len = snprintf(buf + at, n - at, "%d", number / inner);
        else if (*pattern == '@')
            len = snprintf(buf + at, n - at, "%d", number % inner);
        else if (*pattern == '*')
            len = snprintf(buf + at, n - at, "%s", rest);
        else
            len = snprintf(buf + at, n - at, "%c", *pattern);
        at += (size_t)len;
    }
    return at < n;
}

const char *ses_class_prefix(const ses_model *m)
{
    return m->class->prefix ? m->class->prefix : m->desc->prefix;
}

bool ses_name_to_hf_alias(const ses_model *m, const char *ours, int which, char *buf, size_t n)
{
    const ses_model_desc *d = m->desc;
    for (size_t i = 0; i <= SES_LEN(d->tensors); i++) { /* the table asked first, then all */
        const ses_name_table *table = &d->tensors[i ? i - 1 : (size_t)m->c.name_table];
        for (const ses_tensor_name *t = table->name; t < table->name + table->n; t++) {
            int number = 0;
            const char *rest = "";
            const char *theirs = t->hf_name + (*t->hf_name == '~');
            if ((*t->hf_name == '~' && m->c.embed.tied) || !match(t->name, ours, &number, &rest) || which--)
                continue;
            bool head = *theirs == '/', base_class = m->class == &d->class[0];
            return expand(buf, n, head || base_class ? "" : ses_class_prefix(m), theirs + head, number,
                          m->c.layers_per_group ? (int)m->c.layers_per_group : 1, rest);
        }
    }
    /* of heads that the reference does not have, the same in every model */
    static const char *const own = "own.";
    if (strncmp(ours, own, strlen(own)) || which) return false;
    return (size_t)snprintf(buf, n, "sesame_head.%s", ours + strlen(own)) < n;
}

bool ses_name_to_hf(const ses_model *m, const char *ours, char *buf, size_t n)
{
    return ses_name_to_hf_alias(m, ours, 0, buf, n);
}

const ses_tensor *ses_model_projection(const ses_model *m)
{
    return m->stack[1].token ? m->stack[1].token : m->stack[0].token;
}

bool ses_name_to_hf_any(const ses_model *m, const char *ours, int which, char *buf, size_t n)
{
    int known = 0;
    while (known <= which && ses_name_to_hf_alias(m, ours, known, buf, n)) known++;
    if (known > which) return true;
    const ses_param *p = ses_store_find(m->store, ours);
    bool twin = m->c.embed.tied && p && p->tensor == ses_model_projection(m);
    return twin && ses_name_to_hf_alias(m, "lm.out.weight", which - known, buf, n);
}
