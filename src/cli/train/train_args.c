/* Stored options of resumed training runs. */
#include "train_args.h"

#include "train/train_folder.h"

#include <string.h>

/* A copy of the stored options that lacks some of them. */
static ses_json_doc *copy_without(const ses_json *options, const char *const *dropped, ses_err *e)
{
    const ses_json *v;
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_object(w, "options");
    for (size_t i = 0; (v = ses_json_at(options, i)); i++) {
        const char *key = ses_json_key(options, i, &n);
        size_t k = 0;
        while (key && dropped[k] && strcmp(dropped[k], key)) k++;
        if (!key || dropped[k]) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, v);
    }
    ses_json_end_object(w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &n, e);
    ses_json_doc *copy = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

ses_json_doc *ses_train_args_open_stored(const ses_train_args *a, ses_err *e)
{
    static const char *const by_steps[] = { "max-time", NULL };
    static const char *const by_epochs[] = { "max-time", "steps", NULL };
    ses_json_doc *stored = ses_run_info_open(a->run.output, e);
    const char *const *dropped = a->run.steps ? by_steps : a->has_epochs ? by_epochs : NULL;
    if (!stored || !dropped) return stored;
    ses_json_doc *copy = copy_without(ses_json_get(ses_json_root(stored), "options"), dropped, e);
    ses_json_free(stored);
    return copy;
}
