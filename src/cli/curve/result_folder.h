/* The folder of a command that makes many runs and can continue them: curve, compress, ladder.
 * Everything is borrowed; main thread only. */
#ifndef SES_CLI_RESULT_FOLDER_H
#define SES_CLI_RESULT_FOLDER_H

#include "base/dir.h"
#include "cli/command.h"

typedef struct ses_result_folder {
    const char *dir;
    const char *file; /* with the results; its member "settings" has the settings of the call */
    const char *noun; /* what the folder holds, for messages: "curve" */
    const char *hint; /* end of the message about other settings: "--overwrite repeats all cells" */
    const char *settings, *ignored; /* as in ses_settings_check */
    bool resume, overwrite;
    bool keeps_foreign; /* overwrite: only a folder that is empty or has `file` */
} ses_result_folder;

/* Creates and locks the folder; of several processes at once, one succeeds. Waits up to `wait` seconds for
 * a run that is ending. Fails if the folder has files and neither resume nor overwrite is set, if it has
 * results of other settings, or if overwrite may not replace it; then it is as before. Free with
 * ses_dir_lock_free. */
ses_dir_lock *ses_result_folder_lock(const ses_result_folder *f, double wait, ses_err *e);

#endif
