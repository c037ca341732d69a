/* The space of a search: values, ranges, combinations, random points. */
#include "search_space.h"

#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/train/finetune_command.h"

#include <math.h>
#include <string.h>

enum { SITE = 0x73726368 };

static bool find_option(const char *name, ses_opt *out, ses_err *e)
{
    static const char *const common =
        "task|output|log|tensorboard|seeds|resume|overwrite|json|metric|eval|search|trials|eta";
    const ses_command *c = &ses_command_finetune;
    ses_suggestion s = { .word = name };
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); (o = ses_opt_next(&it));) {
        ses_suggest_offer(&s, o->name, strlen(o->name));
        if (strcmp(o->name, name)) continue;
        if (o->type != SES_OPT_IS_LIST && !ses_list_has(common, name)) {
            *out = *o;
            return true;
        }
        return ses_fail(e, SES_EUSAGE, "--grid: --%s is the same for all runs", name);
    }
    ses_fail(e, SES_EUSAGE, "--grid: unknown option \"%s\"", name);
    return ses_suggest_add(&s, "", e);
}

/* ---- axes ---- */

/* Parses "1e-5,3e-5". */
static bool parse_values(ses_search_axis *x, const char *list, ses_arena *mem, ses_err *e)
{
    size_t n = 1;
    for (const char *c = list; *c; c++) n += *c == ',';
    x->value = ses_arena_array(mem, n, sizeof *x->value, e);
    if (!x->value) return false;
    for (x->n = 0; x->n < n; x->n++) {
        size_t len = strcspn(list, ",");
        const char *value = x->value[x->n] = ses_arena_strndup(mem, list, len, e);
        if (!value) return false;
        list += len + (list[len] == ',');
        for (size_t k = 0; k < x->n; k++)
            if (!strcmp(x->value[k], value))
                return ses_fail(e, SES_EUSAGE, "--grid: %s=%s is given twice", x->opt.name, value);
    }
    return true;
}

/* Parses "1e-5..1e-4:log"; dots: at "..". */
static bool parse_range(ses_search_axis *x, const char *text, const char *dots, ses_err *e)
{
    const char *end = dots + 2 + strcspn(dots + 2, ":");
    x->is_log = !strcmp(end, ":log");
    if (x->opt.type != SES_OPT_IS_INT && x->opt.type != SES_OPT_IS_REAL)
        return ses_fail(e, SES_EUSAGE, "--grid %s: not a number, list its values: %s=A,B", x->opt.name,
                        x->opt.name);
    if ((*end && !x->is_log) || !ses_parse_number(text, (size_t)(dots - text), &x->low) ||
        !ses_parse_number(dots + 2, (size_t)(end - dots - 2), &x->high) || x->low >= x->high ||
        (x->is_log && x->low <= 0))
        return ses_fail(
            e, SES_EUSAGE,
            "--grid %s=%s: expected LOW..HIGH or LOW..HIGH:log, LOW below HIGH and for log above 0",
            x->opt.name, ses_quoted_of(text, strlen(text)).s);
    if (x->opt.type == SES_OPT_IS_INT &&
        (x->low != rint(x->low) || x->high != rint(x->high) || fabs(x->low) > 1e15 || x->high > 1e15))
        return ses_fail(e, SES_EUSAGE, "--grid %s=%s: expected whole numbers", x->opt.name,
                        ses_quoted_of(text, strlen(text)).s);
    return true;
}

bool ses_search_space_add(ses_search_space *s, const char *text, ses_arena *mem, ses_err *e)
{
    ses_search_axis *x = &s->axis[s->n_axes];
    size_t len = strcspn(text, "=");
    if (s->n_axes == SES_SEARCH_AXES)
        return ses_fail(e, SES_EUSAGE, "--grid: more than %d options", SES_SEARCH_AXES);
    if (!text[len] || !text[len + 1])
        return ses_fail(e, SES_EUSAGE, "--grid %s: expected NAME=VALUE,VALUE... or NAME=LOW..HIGH", text);
    const char *name = ses_arena_strndup(mem, text, len, e);
    if (!name || !find_option(name, &x->opt, e)) return false;
    for (size_t i = 0; i < s->n_axes; i++)
        if (!strcmp(s->axis[i].opt.name, name))
            return ses_fail(e, SES_EUSAGE, "--grid: %s is given twice", name);
    s->n_axes++;
    const char *values = text + len + 1, *dots = strstr(values, "..");
    bool is_number =
        x->opt.type == SES_OPT_IS_INT || x->opt.type == SES_OPT_IS_REAL; /* a path may contain dots */
    return dots && is_number ? parse_range(x, values, dots, e) : parse_values(x, values, mem, e);
}

/* ---- points ---- */

size_t ses_search_space_points(const ses_search_space *s, size_t max)
{
    size_t n = 1;
    for (size_t i = 0; i < s->n_axes && n && n <= max; i++) n *= s->axis[i].n;
    return n;
}

static double unit(uint64_t seed, size_t point, size_t axis)
{
    return ldexp(ses_rand32((ses_rng_key){ seed, (uint32_t)axis, SITE }, point) + 0.5, -32);
}

static const char *draw(const ses_search_axis *x, double u, ses_arena *mem, ses_err *e)
{
    char text[40];
    if (x->n) return x->value[(size_t)(u * (double)x->n)];
    bool whole = x->opt.type == SES_OPT_IS_INT;
    double low = whole && !x->is_log ? x->low - 0.5 : x->low,
           high = whole && !x->is_log ? x->high + 0.5 : x->high,
           y = x->is_log ? exp(log(low) + u * (log(high) - log(low))) : low + u * (high - low);
    if (whole)
        snprintf(text, sizeof text, "%.0f", fmin(fmax(rint(y), x->low), x->high));
    else
        snprintf(text, sizeof text, "%.4g", fmin(fmax(y, x->low), x->high));
    return ses_arena_strndup(mem, text, strlen(text), e);
}

bool ses_search_space_draw(ses_search_space *s, size_t n, uint64_t seed, ses_arena *mem, ses_err *e)
{
    s->drawn = ses_arena_array(mem, n * s->n_axes + 1, sizeof *s->drawn, e);
    bool ok = s->drawn != NULL;
    for (size_t i = 0; ok && i < n; i++)
        for (size_t k = 0; ok && k < s->n_axes; k++) {
            s->drawn[i * s->n_axes + k] = draw(&s->axis[k], unit(seed, i, k), mem, e);
            ok = s->drawn[i * s->n_axes + k] != NULL;
        }
    return ok;
}

const char *ses_search_space_value(const ses_search_space *s, size_t point, size_t axis)
{
    if (s->drawn) return s->drawn[point * s->n_axes + axis];
    for (size_t i = s->n_axes - 1; i > axis; i--) point /= s->axis[i].n;
    return s->axis[axis].value[point % s->axis[axis].n];
}
