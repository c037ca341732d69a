/* Parameter names: patterns that translate Sesame's names to transformers' names and back. */
#include "model_desc.h"

#include <stdio.h>
#include <string.h>

bool ses_name_match(const char *pattern, const char *name, int *number, const char **rest)
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

bool ses_name_expand(char *buf, size_t n, const char *prefix, const char *pattern, int number, int inner,
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

/* A model's tables, and the prefixes: base of the base model's tensors, outer of tensors of heads. */
typedef struct tables {
    const ses_model_desc *d;
    const ses_config *c;
    const char *base, *outer;
} tables;

/* The name of number *which in the tables; otherwise counts *which down by the names there. */
static bool find(const tables *in, const char *name, int *which, char *buf, size_t n)
{
    const ses_model_desc *d = in->d;
    /* first the table selected by the config, then all */
    for (size_t i = 0; i <= SES_LEN(d->tensors); i++) {
        const ses_name_table *table = &d->tensors[i ? i - 1 : (size_t)in->c->name_table];
        for (size_t k = 0; k < table->n; k++) { /* an empty table has a null pointer */
            const ses_tensor_name *t = &table->name[k];
            int number = 0;
            const char *rest = "";
            const char *hf_name = t->hf_name + (*t->hf_name == '~');
            if ((*t->hf_name == '~' && in->c->embed.tied) || !ses_name_match(t->name, name, &number, &rest) ||
                (*which)--)
                continue;
            bool head = *hf_name == '/';
            return ses_name_expand(buf, n, head ? in->outer : in->base, hf_name + head, number,
                                   in->c->layers_per_group ? (int)in->c->layers_per_group : 1, rest);
        }
    }
    return false;
}

/* A name of the encoder (part 0) or decoder, which has the tables of another model type. */
static bool find_in_part(const ses_model *m, int part, const char *name, int *which, char *buf, size_t n)
{
    char base[64];
    const ses_part_desc *p = &m->part[part];
    snprintf(base, sizeof base, "%s%s", p->outer, p->prefix);
    return find(&(tables){ p->desc, part ? &m->c : &m->source, base, p->outer }, name, which, buf, n);
}

static bool find_in_parts(const ses_model *m, const char *name, int which, char *buf, size_t n)
{
    static const char decoder[] = "decoder.", *const decoders[] = { decoder, "lm." };
    bool in_decoder = false;
    for (size_t i = 0; i < SES_LEN(decoders); i++)
        in_decoder |= !strncmp(name, decoders[i], strlen(decoders[i]));
    if (!strncmp(name, decoder, strlen(decoder))) name += strlen(decoder);
    return find_in_part(m, in_decoder, name, &which, buf, n) ||
           (m->parts_tied && find_in_part(m, !in_decoder, name, &which, buf, n));
}

/* "embed.token_a": the name of "embed.token" with the same end. */
static bool find_factor(const ses_model *m, const char *name, int which, char *buf, size_t n)
{
    char whole[128];
    size_t len = strlen(name);
    const char *end = len > 2 ? name + len - 2 : "";
    if ((strcmp(end, "_a") && strcmp(end, "_b")) || len - 2 >= sizeof whole) return false;
    snprintf(whole, sizeof whole, "%.*s", (int)(len - 2), name);
    if (!ses_name_to_hf_alias(m, whole, which, buf, n)) return false;
    len = strlen(buf);
    return (size_t)snprintf(buf + len, n - len, "%s", end) < n - len;
}

bool ses_name_to_hf_alias(const ses_model *m, const char *name, int which, char *buf, size_t n)
{
    if (m->c.low_rank && find_factor(m, name, which, buf, n)) return true;
    const char *base = m->class == &m->desc->class[0] ? "" : ses_class_prefix(m);
    if (find(&(tables){ m->desc, &m->c, base, "" }, name, &which, buf, n)) return true;
    if (m->part[0].desc && find_in_parts(m, name, which, buf, n)) return true;
    /* parameters of custom heads, which transformers does not have, keep their names, and so do
     * parameters of adapters */
    static const char *const custom = "own.", *const adapter = "adapter.";
    if (!which && !strncmp(name, adapter, strlen(adapter))) return (size_t)snprintf(buf, n, "%s", name) < n;
    if (!which && !strncmp(name, SES_EXIT_PARAMS, strlen(SES_EXIT_PARAMS)))
        return (size_t)snprintf(buf, n, SES_EXITS_KEY ".%s", name + strlen(SES_EXIT_PARAMS)) < n;
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

/* Is it the last part of a parameter's name? A gate beside a weight is not. */
static bool is_parameter(const char *part)
{
    return !strncmp(part, "weight", strlen("weight")) || !strncmp(part, "bias", strlen("bias")) ||
           !strcmp(part, "gamma") || !strcmp(part, "beta");
}

/* Matches a name of a file against a transformers pattern: # and @ are numbers, a final * a parameter. */
static bool match_file_name(const char *pattern, const char *name)
{
    for (;; pattern++) {
        if (*pattern == '*') return is_parameter(name) && !strchr(name, '.');
        if (*pattern == '#' || *pattern == '@') {
            size_t digits = strspn(name, "0123456789");
            if (!digits) return false;
            name += digits;
            continue;
        }
        if (*pattern != *name) return false;
        if (!*name++) return true;
    }
}

/* Has the tensor the first part of the pattern, as "encoder.layer.0.x" and "encoder.layer.#.y"? */
static bool same_first_part(const char *pattern, const char *name)
{
    size_t n = strcspn(pattern, ".");
    return n == strcspn(name, ".") && !memcmp(pattern, name, n);
}

/* The kind of a name without its prefix. */
static ses_file_name kind_in_tables(const ses_model_desc *d, const char *name)
{
    ses_file_name kind = SES_NAME_ELSEWHERE;
    for (size_t i = 0; i < SES_LEN(d->tensors); i++)
        for (size_t k = 0; k < d->tensors[i].n; k++) {
            const ses_tensor_name *t = &d->tensors[i].name[k];
            const char *pattern = t->hf_name + (*t->hf_name == '~');
            bool head = *pattern == '/', pooler = !strncmp(t->name, "pooler", strlen("pooler"));
            if (match_file_name(pattern + head, name)) return *t->name ? SES_NAME_KNOWN : SES_NAME_COPY;
            if (!head && !pooler && same_first_part(pattern, name)) kind = SES_NAME_FOREIGN;
        }
    return kind;
}

static ses_file_name kind_after(const ses_model_desc *d, const char *prefix, const char *name,
                                ses_file_name kind)
{
    size_t n = strlen(prefix);
    if (kind <= SES_NAME_KNOWN || strncmp(name, prefix, n)) return kind;
    ses_file_name other = kind_in_tables(d, name + n);
    return other == SES_NAME_ELSEWHERE ? kind : other;
}

ses_file_name ses_model_file_name(const ses_model *m, const char *name)
{
    ses_file_name kind = kind_after(m->desc, "", name, SES_NAME_ELSEWHERE);
    kind = kind_after(m->desc, m->desc->prefix, name, kind);
    kind = kind_after(m->desc, ses_class_prefix(m), name, kind);
    for (size_t i = 0; i < SES_LEN(m->part) && m->part[i].desc; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%s%s", m->part[i].outer, m->part[i].prefix);
        kind = kind_after(m->part[i].desc, m->part[i].outer, name, kind);
        kind = kind_after(m->part[i].desc, prefix, name, kind);
    }
    return kind;
}

bool ses_model_check_names(const ses_model *m, ses_err *e)
{
    char name[256];
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        const ses_param *p = ses_store_at(m->store, i);
        if (p->role == SES_PARAM_TRAINED && !ses_model_tensor_name(m, i, name, sizeof name))
            return ses_fail(e, SES_EUNSUPPORTED,
                            "the config asks for \"%s\", for which files of %s models have no name", p->name,
                            m->desc->name);
    }
    return true;
}
