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

/* Whether the run had the default, after which checkpoints are deleted at the end. */
static bool keeps_by_default(const ses_json *options)
{
    const ses_json *keep = ses_json_get(options, "keep-checkpoints");
    const char *text = ses_json_string(keep, NULL);
    int64_t n = 0;
    return text ? !strcmp(text, "1") : ses_json_int(keep, &n) && n == 1;
}

ses_json_doc *ses_train_args_open_stored(const ses_train_args *a, ses_err *e)
{
    const char *dropped[4] = { NULL };
    size_t n = 0;
    ses_json_doc *stored = ses_run_info_open(a->run.output, e);
    const ses_json *options = ses_json_get(ses_json_root(stored), "options");
    if (a->run.steps || a->has_epochs) dropped[n++] = "max-time";
    if (!a->run.steps && a->has_epochs) dropped[n++] = "steps";
    if (keeps_by_default(options)) dropped[n++] = "keep-checkpoints";
    if (!stored || !n) return stored;
    ses_json_doc *copy = copy_without(options, dropped, e);
    ses_json_free(stored);
    return copy;
}
