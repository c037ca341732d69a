/* A line of --jsonl as the item of every task, and the request's copy of it, which must be valid UTF-8. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "fuzz.h"
#include "task/pipeline_impl.h"

static void check_text(ses_string s) { MUST(!s.p || ses_utf8_valid(s.p, s.n) == s.n); }

static void read_for(const ses_task *t, const ses_json *v)
{
    ses_err e = { 0 };
    ses_item item = { 0 };
    ses_string *list = NULL;
    void *args = ses_alloc(t->args_size, &e);
    MUST(args && ses_opt_defaults(t->opt, t->n_opt, args, &e));
    ses_pipeline p = { .task = t, .settings.args = args };
    if (ses_pipeline_item_from_json(&p, v, &item, &list, &e)) {
        ses_request r = { 0 };
        MUST(item.text.p || item.pair.p || item.list);
        MUST(ses_request_copy_item(&r, &item, &e) && r.item.n_list == item.n_list);
        check_text(r.item.text);
        check_text(r.item.pair);
        for (size_t i = 0; i < r.item.n_list; i++) check_text(r.item.list[i]);
        ses_arena_free(&r.mem);
    } else {
        MUST(e.code == SES_EFORMAT && e.msg[0]);
    }
    ses_free(list);
    ses_opt_free(t->opt, t->n_opt, args);
    ses_free(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_json_doc *doc = ses_json_parse((const char *)data, n, NULL);
    for (const ses_task_entry *t = ses_task_entries(); doc && t->name; t++)
        if (t->summary) read_for(t->task, ses_json_root(doc));
    ses_json_free(doc);
    return 0;
}
