/* The common part of `curve`, `ladder`, `compress` and `finetune --grid`: a folder of many runs that can be
 * continued, results in NAME.json, and a report. Jobs: job_runner.h.
 *
 * Ownership: the settings and the command line are the experiment's, see ses_experiment_free; everything else
 * is borrowed. Main thread only. */
#ifndef SES_CLI_EXPERIMENT_H
#define SES_CLI_EXPERIMENT_H

#include "base/dir.h"
#include "cli/command.h"
#include "cli/train/command_text.h"
#include "figure/report.h"

/* Begins the struct of an experiment, which its functions get. */
typedef struct ses_experiment ses_experiment;
struct ses_experiment {
    ses_call *c;
    const char *name;             /* "curve": the results are in curve.json */
    const char *noun, *title;     /* what the folder holds, for messages: "curve"; of the page */
    const char *output, *model;   /* folder; of the page, NULL: none */
    const char *hint;             /* after a refusal of other settings: "--overwrite repeats all runs" */
    const char *ignored;          /* settings that may differ, as in ses_settings_check */
    bool resume, overwrite, json; /* options */
    bool keeps_foreign;           /* overwrite: only a folder that is empty or has NAME.json */
    uint64_t seed;
    char *settings; /* JSON object, the member "settings"; NULL: NAME.json has none to compare */
    char *command;  /* the command line */
    void (*put)(const void *experiment, ses_json_writer *w); /* members of NAME.json, after the settings */
    bool (*fill)(const void *experiment, ses_report *r,
                 ses_err *e);                                 /* tables, figures, notes; NULL: own ones */
    void (*fill_page)(const void *experiment, ses_report *r); /* what only the page has; NULL: nothing */
};

/* Sets settings and command: of the call, with values that its data have. */
bool ses_experiment_describe(ses_experiment *x, const ses_command_value *value, size_t n, ses_err *e);
void ses_experiment_free(ses_experiment *x); /* settings, command */

/* Creates and locks the folder; of several processes at once, one succeeds. Waits up to `wait` seconds for
 * a run that is ending. Fails if the folder has files and neither resume nor overwrite is set, if it has
 * results of other settings, or if overwrite may not replace it; then it is as before. Free with
 * ses_dir_lock_free. */
ses_dir_lock *ses_experiment_lock(const ses_experiment *x, double wait, ses_err *e);

bool ses_experiment_write(const ses_experiment *x, const char *dir, ses_err *e); /* NAME.json */
bool ses_experiment_print_json(const ses_experiment *x, ses_err *e);

/* Prints the report, or the JSON, and writes picture and page; a path may be NULL. overwrite: existing files
 * are replaced. */
bool ses_experiment_show(const ses_experiment *x, const char *svg, const char *html, bool overwrite,
                         ses_err *e);
/* The same with NAME.svg, if has_picture, and NAME.html in the folder. */
bool ses_experiment_show_in_folder(const ses_experiment *x, bool has_picture, ses_err *e);

/* Says how to continue if a signal has stopped it; returns whether it was not stopped. */
bool ses_experiment_end(const ses_experiment *x, bool stopped);

#endif
