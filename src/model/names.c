/* Parameter names: patterns that translate Sesame's names to transformers' names and back. */
#include "model_desc.h"

#include <stdio.h>
#include <string.h>

/* Matches a name against a pattern: # is a number, a final * the rest. */
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

/* Fills number and rest into a transformers pattern; false: buf is too small. inner: layers per group. */
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

bool ses_name_to_hf_alias(const ses_model *m, const char *name, int which, char *buf, size_t n)
{
    const ses_model_desc *d = m->desc;
    /* first the table selected by the config, then all */
    for (size_t i = 0; i <= SES_LEN(d->tensors); i++) {
        const ses_name_table *table = &d->tensors[i ? i - 1 : (size_t)m->c.name_table];
        for (size_t k = 0; k < table->n; k++) { /* an empty table has a null pointer */
            const ses_tensor_name *t = &table->name[k];
            int number = 0;
            const char *rest = "";
            const char *hf_name = t->hf_name + (*t->hf_name == '~');
            if ((*t->hf_name == '~' && m->c.embed.tied) || !match(t->name, name, &number, &rest) || which--)
                continue;
            bool head = *hf_name == '/', base_class = m->class == &d->class[0];
            return expand(buf, n, head || base_class ? "" : ses_class_prefix(m), hf_name + head, number,
                          m->c.layers_per_group ? (int)m->c.layers_per_group : 1, rest);
        }
    }
    /* parameters of custom heads, which transformers does not have, keep their names */
    static const char *const custom = "own.";
    if (strncmp(name, custom, strlen(custom)) || which) return false;
    return (size_t)snprintf(buf, n, "sesame_head.%s", name + strlen(custom)) < n;
}

bool ses_name_to_hf(const ses_model *m, const char *name, char *buf, size_t n)
{
    return ses_name_to_hf_alias(m, name, 0, buf, n);
}

const ses_tensor *ses_model_projection(const ses_model *m)
{
    return m->stack[1].token ? m->stack[1].token : m->stack[0].token;
}

bool ses_name_to_hf_any(const ses_model *m, const char *name, int which, char *buf, size_t n)
{
    int known = 0;
    while (known <= which && ses_name_to_hf_alias(m, name, known, buf, n)) known++;
    if (known > which) return true;
    const ses_param *p = ses_store_find(m->store, name);
    bool twin = m->c.embed.tied && p && p->tensor == ses_model_projection(m);
    return twin && ses_name_to_hf_alias(m, "lm.out.weight", which - known, buf, n);
}
