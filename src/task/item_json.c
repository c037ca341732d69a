/* Items from JSON objects, by the task's names for their fields. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "pipeline_impl.h"

#include <stdio.h>

/* The value under the first of "a|b|c" that is present and not null; NULL: none. */
static const ses_json *get_any(const ses_json *v, const char *names)
{
    const char *word;
    size_t n;
    for (size_t i = 0; ses_list_at(names, i, &word, &n); i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, word);
        const ses_json *found = ses_json_get(v, key);
        if (found && ses_json_type_of(found) != SES_JSON_NULL) return found;
    }
    return NULL;
}

/* Messages name the first of the alternatives. */
static int first_len(const char *names) { return (int)strcspn(names, "|"); }

static bool missing(const char *names, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "key \"%.*s\" is missing", first_len(names), names);
}

static bool read_text(const ses_json *v, const char *names, bool required, ses_string *out, ses_err *e)
{
    const ses_json *s = names ? get_any(v, names) : NULL;
    if (!s) return !required || !names || missing(names, e);
    out->p = ses_json_string(s, &out->n);
    return out->p || ses_fail(e, SES_EFORMAT, "key \"%.*s\" must be a string, not %s", first_len(names),
                              names, ses_json_type_name(ses_json_type_of(s)));
}

static bool read_list(const ses_json *v, const char *names, bool required, ses_item *item, ses_string **list,
                      ses_err *e)
{
    const ses_json *a = names ? get_any(v, names) : NULL;
    if (!a) return !required || !names || missing(names, e);
    size_t n;
    *list = ses_json_strings(a, &n, e);
    if (!*list) return ses_wrap(e, "key \"%.*s\"", first_len(names), names);
    item->list = *list;
    item->n_list = n;
    return true;
}

bool ses_pipeline_item_from_json(const ses_pipeline *p, const ses_json *v, ses_item *item, ses_string **list,
                                 ses_err *e)
{
    const ses_item_schema *schema = &p->task->item_schema;
    *list = NULL;
    if (ses_json_type_of(v) == SES_JSON_STRING) {
        item->text.p = ses_json_string(v, &item->text.n);
        return true;
    }
    if (ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "expected an object or a string, not %s",
                        ses_json_type_name(ses_json_type_of(v)));
    if (!read_list(v, schema->list, schema->requires_list, item, list, e)) return false;
    bool option = ses_task_count_pair_options(p->task, p->settings.args) > 0;
    bool words = schema->list_replaces_text && item->list;
    if (!read_text(v, schema->text, !words && !option, &item->text, e) ||
        !read_text(v, schema->pair, schema->requires_pair && !option, &item->pair, e))
        return false;
    return item->text.p || item->pair.p || item->list || missing(schema->text, e);
}
