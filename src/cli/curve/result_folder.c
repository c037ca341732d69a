/* The folder of a command that makes many runs: may it be used? */
#include "result_folder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/train/command_text.h"

enum { FILE_MAX = 1 << 28 };

static bool check_earlier(const ses_result_folder *f, ses_err *e)
{
    char *path = ses_path_join(f->dir, f->file, e);
    if (!path) return false;
    ses_json_doc *was = ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, e) : NULL;
    const ses_json *settings = was ? ses_json_get(ses_json_root(was), "settings") : NULL;
    bool ok = settings || (e && e->code) || ses_fail(e, SES_EIO, "%s: no %s to resume from", f->dir, f->file);
    ok = ok && settings && ses_settings_check(settings, f->settings, f->ignored, f->dir, f->hint, e);
    ses_json_free(was);
    ses_free(path);
    return ok;
}

/* Was the folder made by this command? */
static bool check_own(const ses_result_folder *f, ses_err *e)
{
    char *path = ses_path_join(f->dir, f->file, e);
    bool ok = path && (ses_path_exists(path) ||
                       ses_fail(e, SES_EIO,
                                "%s: has files but no %s: --overwrite replaces a %s only; give an empty or a "
                                "new folder",
                                f->dir, f->file, f->noun));
    ses_free(path);
    return ok;
}

static bool check(const ses_result_folder *f, ses_err *e)
{
    bool empty = true;
    if (f->resume && f->overwrite)
        return ses_fail(e, SES_EUSAGE, "--resume continues a %s, --overwrite replaces it: set one", f->noun);
    if (!ses_path_exists(f->dir)) return true;
    if (!ses_dir_is_empty(f->dir, ".lock", &empty, e)) return false;
    if (empty) return true;
    if (f->overwrite) return !f->keeps_foreign || check_own(f, e);
    if (!f->resume)
        return ses_fail(e, SES_EIO, "%s: not empty: --resume continues its %s, --overwrite replaces it",
                        f->dir, f->noun);
    return check_earlier(f, e);
}

/* The second check: another run may have begun and ended since the first. */
ses_dir_lock *ses_result_folder_lock(const ses_result_folder *f, double wait, ses_err *e)
{
    if (!check(f, e) || !ses_dir_make(f->dir, e)) return NULL;
    ses_dir_lock *lock = ses_dir_lock_wait(f->dir, wait, e);
    if (!lock || check(f, e)) return lock;
    ses_dir_lock_free(lock);
    return NULL;
}
