/* Test cases of CheckList: see checklist_cases.h. */
#include "checklist_cases.h"

#include "base/json/json_helpers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const ses_checklist_type_name[SES_CHECKLIST_TYPES] = { "MFT", "INV", "DIR" };

static bool read_type(const ses_json *v, ses_checklist_type *type, ses_err *e)
{
    ses_string name;
    if (!ses_json_lines_string(v, "type", &name, e)) return false;
    for (*type = 0; name.p && *type < SES_CHECKLIST_TYPES; ++*type)
        if (!strcmp(name.p, ses_checklist_type_name[*type])) return true;
    return ses_fail(e, SES_EFORMAT, "key \"type\": %s%s%s, expected \"MFT\", \"INV\" or \"DIR\"",
                    name.p ? "\"" : "", name.p ? ses_quoted_of(name.p, name.n).s : "absent",
                    name.p ? "\"" : "");
}

static bool plain_string(const ses_json *v, ses_string *out)
{
    out->p = ses_json_string(v, &out->n);
    return out->p && strlen(out->p) == out->n;
}

static bool read_text(const ses_json *v, ses_checklist_text *t, ses_err *e)
{
    bool pair = ses_json_type_of(v) == SES_JSON_ARRAY && ses_json_len(v) == 2;
    if (pair ? plain_string(ses_json_at(v, 0), &t->text) && plain_string(ses_json_at(v, 1), &t->pair)
             : plain_string(v, &t->text))
        return true;
    return ses_fail(e, SES_EFORMAT, "a text is %s, expected a string or a list of two strings",
                    ses_json_type_name(ses_json_type_of(v)));
}

static bool read_label(const ses_json *v, ses_arena *mem, ses_string *label, ses_err *e)
{
    int64_t i;
    char digits[24];
    if (plain_string(v, label)) return true;
    if (!ses_json_int(v, &i))
        return ses_fail(e, SES_EFORMAT, "a label is %s, expected a name or a number",
                        ses_json_type_name(ses_json_type_of(v)));
    label->n = (size_t)snprintf(digits, sizeof digits, "%" PRId64, i);
    label->p = ses_arena_strndup(mem, digits, label->n, e);
    return label->p != NULL;
}

static bool read_labels(const ses_json *v, ses_arena *mem, ses_checklist_text *t, size_t n, ses_err *e)
{
    const ses_json *one = ses_json_get(v, "label"), *all = ses_json_get(v, "labels");
    if (one && all) return ses_fail(e, SES_EFORMAT, "both \"label\" and \"labels\": expected one of them");
    if (all && (ses_json_type_of(all) != SES_JSON_ARRAY || ses_json_len(all) != n))
        return ses_fail(e, SES_EFORMAT, "key \"labels\": expected a list of %zu, one for each text", n);
    for (size_t i = 0; i < n && (one || all); i++)
        if (!read_label(one ? one : ses_json_at(all, i), mem, &t[i].label, e)) return false;
    return true;
}

static bool read_expectation(const ses_json *v, ses_checklist_case *c, ses_err *e)
{
    ses_string direction;
    const ses_json *tolerance = ses_json_get(v, "tolerance");
    if (!ses_json_lines_string(v, "direction", &direction, e)) return false;
    c->decreasing = direction.p && !strcmp(direction.p, "decreasing");
    if (direction.p && !c->decreasing && strcmp(direction.p, "increasing"))
        return ses_fail(e, SES_EFORMAT,
                        "key \"direction\": \"%s\", expected \"increasing\" or \"decreasing\"",
                        ses_quoted_of(direction.p, direction.n).s);
    if (!tolerance || (ses_json_real(tolerance, &c->tolerance) && c->tolerance >= 0 && c->tolerance <= 1))
        return true;
    return ses_fail(e, SES_EFORMAT, "key \"tolerance\": expected a number from 0 to 1");
}

bool ses_checklist_case_read(const ses_json *v, ses_arena *mem, ses_checklist_case *out, ses_err *e)
{
    const ses_json *list = ses_json_get(v, "texts"), *single = ses_json_get(v, "text");
    *out = (ses_checklist_case){ 0 };
    if (!read_type(v, &out->type, e) || !ses_json_lines_string(v, "capability", &out->capability, e) ||
        !ses_json_lines_string(v, "name", &out->name, e) || !read_expectation(v, out, e))
        return false;
    if (!out->capability.p) out->capability = (ses_string){ "", 0 };
    if (!out->name.p) out->name = (ses_string){ "", 0 };
    out->n = single ? 1 : ses_json_type_of(list) == SES_JSON_ARRAY ? ses_json_len(list) : 0;
    size_t least = out->type == SES_CHECKLIST_MFT ? 1 : 2;
    if (out->n < least || (single && list))
        return ses_fail(e, SES_EFORMAT, "key \"texts\": expected a list of at least %zu texts for %s", least,
                        ses_checklist_type_name[out->type]);
    ses_checklist_text *t = ses_arena_array(mem, out->n, sizeof *t, e);
    out->text = t;
    for (size_t i = 0; t && i < out->n; i++)
        if (!read_text(single ? single : ses_json_at(list, i), &t[i], e)) return false;
    if (!t || !read_labels(v, mem, t, out->n, e)) return false;
    if (out->type == SES_CHECKLIST_MFT && !t[0].label.p)
        return ses_fail(e, SES_EFORMAT, "expected the key \"label\": what an MFT tests for");
    return true;
}
