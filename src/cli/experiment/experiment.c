/* Experiments: settings, folder, results. */
#include "experiment.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/ui/report_output.h"
#include "cli/ui/show_values.h"

enum { FILE_MAX = 1 << 28 };

bool ses_experiment_describe(ses_experiment *x, const ses_command_value *value, size_t n, ses_err *e)
{
    ses_command_text t;
    if (!ses_command_text_with_values(x->c, value, n, &t, e)) return false;
    x->settings = t.options;
    x->command = t.line;
    return true;
}

void ses_experiment_free(ses_experiment *x)
{
    ses_free(x->settings);
    ses_free(x->command);
}

/* ---- the folder ---- */

static char *path_of(const ses_experiment *x, const char *ending, ses_err *e)
{
    char name[40];
    snprintf(name, sizeof name, "%s%s", x->name, ending);
    return ses_path_join(x->output, name, e);
}

static bool check_earlier(const ses_experiment *x, ses_err *e)
{
    char *path = path_of(x, ".json", e);
    if (!path) return false;
    ses_json_doc *was = ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, e) : NULL;
    const ses_json *settings = was ? ses_json_get(ses_json_root(was), "settings") : NULL;
    bool ok = settings || (was && !x->settings) || (e && e->code) ||
              ses_fail(e, SES_EIO, "%s: no %s.json to resume from", x->output, x->name);
    ok = ok && (!x->settings || ses_settings_check(settings, x->settings, x->ignored, x->output, x->hint, e));
    ses_json_free(was);
    ses_free(path);
    return ok;
}

/* Was the folder made by this command? */
static bool check_own(const ses_experiment *x, ses_err *e)
{
    char *path = path_of(x, ".json", e);
    bool ok =
        path && (ses_path_exists(path) ||
                 ses_fail(e, SES_EIO,
                          "%s: has files but no %s.json: --overwrite replaces a %s only; give an empty or a "
                          "new folder",
                          x->output, x->name, x->noun));
    ses_free(path);
    return ok;
}

static bool check(const ses_experiment *x, ses_err *e)
{
    bool empty = true;
    if (x->resume && x->overwrite)
        return ses_fail(e, SES_EUSAGE, "--resume continues a %s, --overwrite replaces it: set one", x->noun);
    if (!ses_path_exists(x->output)) return true;
    if (!ses_dir_is_empty(x->output, ".lock", &empty, e)) return false;
    if (empty) return true;
    if (x->overwrite) return !x->keeps_foreign || check_own(x, e);
    if (!x->resume)
        return ses_fail(e, SES_EIO, "%s: not empty: --resume continues its %s, --overwrite replaces it",
                        x->output, x->noun);
    return check_earlier(x, e);
}

/* The second check: another run may have begun and ended since the first. */
ses_dir_lock *ses_experiment_lock(const ses_experiment *x, double wait, ses_err *e)
{
    if (!check(x, e) || !ses_dir_make(x->output, e)) return NULL;
    ses_dir_lock *lock = ses_dir_lock_wait(x->output, wait, e);
    if (!lock || check(x, e)) return lock;
    ses_dir_lock_free(lock);
    return NULL;
}

/* ---- results ---- */

static void put(const ses_experiment *x, ses_json_writer *w)
{
    ses_json_begin_object(w);
    if (x->settings) ses_command_text_put_settings(x->settings, w);
    x->put(x, w);
    ses_json_end_object(w);
}

bool ses_experiment_write(const ses_experiment *x, const char *dir, ses_err *e)
{
    char name[40];
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) put(x, w);
    snprintf(name, sizeof name, "%s.json", x->name);
    return w && ses_json_writer_save(w, dir, name, true, e);
}

bool ses_experiment_print_json(const ses_experiment *x, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) put(x, w);
    return w && ses_json_writer_print(w, e);
}

bool ses_experiment_show(const ses_experiment *x, const char *svg, const char *html, bool overwrite,
                         ses_err *e)
{
    ses_report_head h = { .analysis = x->name,
                          .title = x->title,
                          .model = x->model,
                          .command = x->command,
                          .settings = x->settings,
                          .seed = x->seed };
    ses_report *r = ses_report_new(e);
    if (!r) return false;
    put(x, ses_report_json(r));
    bool ok = x->fill(x, r, e) && ses_report_ok(r, e) &&
              (x->json ? ses_experiment_print_json(x, e) : ses_report_print(r, &x->c->out, e));
    if (ok && x->fill_page) x->fill_page(x, r);
    ok = ok && ses_report_write_files(r, &h, svg, html, overwrite, e);
    ses_report_free(r);
    return ok;
}

bool ses_experiment_show_in_folder(const ses_experiment *x, bool has_picture, ses_err *e)
{
    char *svg = path_of(x, ".svg", e), *html = path_of(x, ".html", e);
    bool ok = svg && html && ses_experiment_show(x, has_picture ? svg : NULL, html, true, e);
    ses_free(svg);
    ses_free(html);
    return ok;
}

bool ses_experiment_end(const ses_experiment *x, bool stopped)
{
    (void)x;
    if (stopped) fprintf(stderr, "stopped; the same command with --resume continues\n");
    return !stopped;
}
