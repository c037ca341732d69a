/* Parsing of option values. */
#include "opt_table.h"

#include "alloc.h"
#include "number.h"
#include "str.h"
#include "suggest.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ses_opt_spelling ses_opt_match(const ses_opt *o, const char *name, size_t n, const char **value)
{
    if (strlen(o->name) == n && !memcmp(o->name, name, n)) return SES_OPT_BY_NAME;
    size_t length = o->alias ? strcspn(o->alias, "=") : 0;
    if (!length || length != n || memcmp(o->alias, name, n) != 0) return SES_OPT_NO_MATCH;
    if (!o->alias[length]) return SES_OPT_BY_ALIAS;
    *value = o->alias + length + 1;
    return SES_OPT_BY_FLAG;
}

const char *ses_opt_value_name(const ses_opt *o)
{
    static const char *const by_type[] = {
        [SES_OPT_IS_FLAG] = "",     [SES_OPT_IS_TEXT] = "TEXT", [SES_OPT_IS_INT] = "N",
        [SES_OPT_IS_REAL] = "X",    [SES_OPT_IS_SIZE] = "SIZE", [SES_OPT_IS_CHOICE] = "ONE",
        [SES_OPT_IS_LIST] = "TEXT",
    };
    return o->value ? o->value : o->choices ? o->choices : by_type[o->type];
}

static bool in_range(const ses_opt *o, double x)
{
    return (o->min == 0 && o->max == 0) || (x >= o->min && x <= o->max);
}

static bool range_error(const ses_opt *o, const char *from, const char *text, ses_err *e)
{
    if (o->max == HUGE_VAL && strtod(text, NULL) < o->min)
        return ses_fail(e, SES_EUSAGE, "%s: %s is too small: the minimum is %.15g", from, text, o->min);
    if (o->max == HUGE_VAL || o->min == o->max)
        return ses_fail(e, SES_EUSAGE, "%s: %s is out of range", from, text);
    return ses_fail(e, SES_EUSAGE, "%s: %s is out of range: %.15g to %.15g", from, text, o->min, o->max);
}

/* Rejects leading blanks, hex, nan and inf, which strtoll and strtod accept. */
static bool starts_number(const char *text)
{
    text += *text == '-' || *text == '+';
    text += *text == '.';
    return *text >= '0' && *text <= '9' && !strpbrk(text, "xX");
}

static bool set_int(const ses_opt *o, int64_t *out, const char *from, const char *text, ses_err *e)
{
    char *end = NULL;
    if (o->zero_word && !strcmp(text, o->zero_word)) {
        *out = 0;
        return true;
    }
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a whole number%s%s", from, text,
                        o->zero_word ? " or " : "", o->zero_word ? o->zero_word : "");
    if (errno || !in_range(o, (double)x)) return range_error(o, from, text, e);
    *out = x;
    return true;
}

static bool set_real(const ses_opt *o, double *out, const char *from, const char *text, ses_err *e)
{
    char *end = NULL;
    double x = strtod(text, &end);
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a number", from, text);
    if (!isfinite(x) || !in_range(o, x)) return range_error(o, from, text, e);
    *out = x;
    return true;
}

static bool set_size(const ses_opt *o, int64_t *out, const char *from, const char *text, ses_err *e)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    int64_t unit = 1;
    const char *u = *end ? strchr(units, *end) : NULL;
    if (u) {
        unit <<= 10 * (u - units + 1);
        end++;
        if (!strcmp(end, "iB") || !strcmp(end, "B")) end += strlen(end);
    }
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a size, like 4096, 512K, 64M or 2G", from, text);
    int64_t bytes = 0;
    if (errno || !ses_mul_i64(x, unit, &bytes) || bytes < 0 || !in_range(o, (double)bytes))
        return ses_fail(e, SES_EUSAGE, "%s: %s is out of range", from, text);
    *out = bytes;
    return true;
}

static bool set_choice(const ses_opt *o, int *out, const char *from, const char *text, ses_err *e)
{
    const char *word;
    size_t len;
    ses_suggestion s = { .word = text };
    for (int i = 0; ses_list_at(o->choices, (size_t)i, &word, &len); i++) {
        if (ses_equal(word, len, text)) {
            *out = i;
            return !o->check || o->check(from, i, e);
        }
        ses_suggest_offer(&s, word, len);
    }
    ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not one of %s", from, text, o->choices);
    return ses_suggest_add(&s, "", e);
}

static bool set_list(ses_opt_list *l, const char *text, ses_err *e)
{
    const char **item = ses_realloc_array(l->item, l->n + 1, sizeof *item, e);
    if (!item) return false;
    l->item = item;
    l->item[l->n++] = text;
    return true;
}

static bool set_flag(bool *out, const char *from, const char *text, ses_err *e)
{
    if (text && strcmp(text, "true") && strcmp(text, "false"))
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not true or false", from, text);
    *out = !text || !strcmp(text, "true");
    return true;
}

static bool set(const ses_opt *o, void *args, const char *from, const char *text, ses_err *e)
{
    void *at = (char *)args + o->offset;
    switch (o->type) {
    case SES_OPT_IS_FLAG: return set_flag(at, from, text, e);
    case SES_OPT_IS_TEXT: *(const char **)at = text; return true;
    case SES_OPT_IS_INT: return set_int(o, at, from, text, e);
    case SES_OPT_IS_REAL: return set_real(o, at, from, text, e);
    case SES_OPT_IS_SIZE: return set_size(o, at, from, text, e);
    case SES_OPT_IS_CHOICE: return set_choice(o, at, from, text, e);
    case SES_OPT_IS_LIST: return set_list(at, text, e);
    }
    return false;
}

bool ses_opt_set(const ses_opt *o, void *args, const char *from, const char *text, ses_err *e)
{
    if (!text && o->implicit_value) text = o->implicit_value;
    if (!set(o, args, from, text, e)) return false;
    if (o->was_set) *(bool *)((char *)args + o->was_set) = true;
    return true;
}

bool ses_opt_takes_word(const ses_opt *o, const char *text)
{
    const char *word;
    size_t len, n = text ? strlen(text) : 0, ending = o->value_ending ? strlen(o->value_ending) : 0;
    if (o->value_ending && !ending) return n && *text != '-';
    if (ending && n > ending && !strcmp(text + n - ending, o->value_ending)) return true;
    double x;
    if (n && o->value_is_number && ses_parse_number(text, n, &x)) return true;
    for (size_t i = 0; text && ses_list_at(o->choices, i, &word, &len); i++)
        if (ses_equal(word, len, text)) return true;
    return false;
}

ses_opt_iter ses_opt_begin(const ses_opt *opt, size_t n)
{
    ses_opt_iter it = { .depth = 0 };
    it.level[0].next = opt;
    it.level[0].end = n ? opt + n : opt;
    return it;
}

const ses_opt *ses_opt_next(ses_opt_iter *it)
{
    while (it->depth >= 0) {
        int d = it->depth;
        if (it->level[d].next == it->level[d].end) {
            it->depth--;
            continue;
        }
        const ses_opt *o = it->level[d].next++;
        size_t offset = it->level[d].offset;
        if (o->table) {
            assert(d + 1 < SES_OPT_MAX_DEPTH);
            it->level[d + 1].next = o->table->opt;
            it->level[d + 1].end = o->table->opt + o->table->n;
            it->level[d + 1].offset = offset + o->offset;
            it->level[d + 1].group = o->table->group ? o->table->group : it->level[d].group;
            it->depth++;
            continue;
        }
        it->current = *o;
        it->current.offset += offset;
        if (!o->group) it->current.group = it->level[d].group;
        if (o->was_set) it->current.was_set += offset;
        return &it->current;
    }
    return NULL;
}

const char *ses_opt_given(const ses_opt_table *t, const void *args)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n); (o = ses_opt_next(&it));)
        if (o->was_set && *(const bool *)((const char *)args + o->was_set)) return o->name;
    return NULL;
}

bool ses_opt_defaults(const ses_opt *opt, size_t n, void *args, ses_err *e)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) {
        if (o->type == SES_OPT_IS_CHOICE) *(int *)((char *)args + o->offset) = -1;
        if (o->def && !set(o, args, o->name, o->def, e)) return false;
    }
    return true;
}

void ses_opt_free(const ses_opt *opt, size_t n, void *args)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) {
        if (o->type != SES_OPT_IS_LIST) continue;
        ses_opt_list *l = (ses_opt_list *)(void *)((char *)args + o->offset);
        ses_free(l->item);
        *l = (ses_opt_list){ 0 };
    }
}

/* ---- lists of numbers ---- */

enum { MAX_LIST_NUMBER = 1 << 20 };

/* Reads "7" or "9-12"; *at moves behind it. */
static bool read_range(const char **at, long long *from, long long *to)
{
    char *end;
    *from = *to = strtoll(*at, &end, 10);
    if (end == *at || *from > MAX_LIST_NUMBER || *from < -MAX_LIST_NUMBER) return false;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9' && *from >= 0) {
        const char *second = end + 1;
        *to = strtoll(second, &end, 10);
        if (*to < *from || *to > MAX_LIST_NUMBER) return false;
    }
    *at = end;
    return !*end || *end == ',';
}

bool ses_int_ranges_parse(const char *text, int64_t *out, size_t max, size_t *n, ses_err *e)
{
    const char *at = text;
    *n = 0;
    for (bool more = true; more;) {
        long long from, to;
        if (!read_range(&at, &from, &to) || (size_t)(to - from) >= max - *n) break;
        for (; from <= to; from++) out[(*n)++] = from;
        more = *at == ',';
        at += more;
        if (!more) return true;
        if (*n == max) break;
    }
    return ses_fail(e, SES_EUSAGE, "expected a list of up to %zu numbers, as 0,4,9-12 or -1, not \"%s\"", max,
                    ses_quoted_of(text, strlen(text)).s);
}

/* ---- by name ---- */

static bool same_name(const char *option, const char *name)
{
    for (; *option && *name; option++, name++)
        if (*option != *name && !(*option == '-' && *name == '_')) return false;
    return *option == *name;
}

bool ses_opt_find(const ses_opt *opt, size_t n, const char *name, const char *owner, ses_opt *out, ses_err *e)
{
    const ses_opt *o;
    ses_suggestion near = { .word = name };
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) {
        *out = *o;
        if (same_name(o->name, name)) return true;
        ses_suggest_offer(&near, o->name, strlen(o->name));
    }
    char best[64]; /* spelled like settings: top_k */
    snprintf(best, sizeof best, "%.*s", near.best ? (int)near.best_len : 0, near.best ? near.best : "");
    for (char *c = best; *c; c++) *c = (char)(*c == '-' ? '_' : *c);
    if (near.best) near.best = best, near.best_len = strlen(best);
    ses_fail(e, SES_EUSAGE, "%s has no option \"%s\"", owner, name);
    return ses_suggest_add(&near, "", e);
}

bool ses_opt_set_all(const ses_opt *opt, size_t n, void *args, const char *owner, const ses_setting *settings,
                     ses_err *e)
{
    ses_opt o;
    for (; settings && settings->name; settings++)
        if (!ses_opt_find(opt, n, settings->name, owner, &o, e) ||
            !ses_opt_set(&o, args, settings->name, settings->value, e))
            return false;
    return true;
}
