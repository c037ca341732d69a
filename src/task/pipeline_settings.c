/* Settings by name ("top_k") applied to a task's option struct: for a whole pipeline, or for one item. */
#include "base/alloc.h"
#include "pipeline_impl.h"

bool ses_task_setting_is_file(const ses_task *t, const char *name)
{
    ses_opt o;
    return ses_opt_find(t->opt, t->n_opt, name, "", &o, NULL) && o.value &&
           (strstr(o.value, "FILE") || strstr(o.value, "DIR"));
}

static bool find_option(const ses_task *t, const char *name, ses_opt *out, ses_err *e)
{
    return ses_opt_find(t->opt, t->n_opt, name, ses_task_canonical_name(t), out, e);
}

/* Options borrow their texts, so the value is copied into mem first. A flag may have no value. */
static bool set_option(const ses_opt *o, void *args, const ses_setting *s, ses_arena *mem, ses_err *e)
{
    const char *value = s->value ? ses_arena_strndup(mem, s->value, strlen(s->value), e) : NULL;
    return (value || !s->value) && ses_opt_set(o, args, s->name, value, e);
}

/* ---- of a pipeline ---- */

void *ses_task_args_new(const ses_task *t, const char *called_name, const ses_setting *settings,
                        ses_arena *mem, ses_err *e)
{
    void *args = ses_alloc(t->args_size, e);
    bool ok = args && ses_opt_defaults(t->opt, t->n_opt, args, e);
    ses_opt o;
    for (; ok && settings && settings->name; settings++)
        ok = find_option(t, settings->name, &o, e) && set_option(&o, args, settings, mem, e);
    const char *name = ok ? ses_arena_strndup(mem, called_name, strlen(called_name), e) : NULL;
    if (name && ses_task_set_called_name(t, args, name, e)) return args;
    ses_task_args_free(t, args);
    return NULL;
}

void ses_task_args_free(const ses_task *t, void *args)
{
    if (!args) return;
    ses_opt_free(t->opt, t->n_opt, args);
    ses_free(args);
}

/* ---- of an item ---- */

bool ses_request_apply_settings(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_task *t = p->task;
    const ses_setting *s = r->item.settings;
    r->args = p->settings.args;
    if (!s || !s->name) return true;
    void *args = ses_arena_array(&r->mem, 1, t->args_size, e);
    if (!args) return false;
    if (t->args_size) memcpy(args, p->settings.args, t->args_size);
    for (; s->name; s++) {
        ses_opt o;
        if (!find_option(t, s->name, &o, e)) return false;
        if (!ses_task_allows_item_setting(t, o.name))
            return ses_fail(e, SES_EUSAGE, "\"%s\" is a setting of the whole pipeline, not of an item",
                            s->name);
        if (!set_option(&o, args, s, &r->mem, e)) return false;
    }
    r->args = args;
    return true;
}
