/* Folder of a run: run.json, log.jsonl, all_results.json and eval_errors.json, separated by lines of "--";
 * its curves and its report. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_folder.h"

#include "cli/inspect/run_record.h"
#include "cli/inspect/run_report.h"

#include <math.h>
#include <unistd.h>

static const char *const name[] = { "run.json", "log.jsonl", "all_results.json", "eval_errors.json" };

/* Start of the first line "--", or NULL. */
static const char *border(const char *text, size_t n)
{
    for (const char *at = text; at && n - (size_t)(at - text) >= 3; at++) {
        if (!memcmp(at, "--\n", 3)) return at;
        at = memchr(at, '\n', n - (size_t)(at - text));
        if (!at) break;
    }
    return NULL;
}

static void fill(const char *dir, const char *text, size_t n)
{
    for (size_t i = 0; i < SES_LEN(name); i++) {
        char path[64];
        const char *end = border(text, n);
        size_t len = end ? (size_t)(end - text) : n;
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        fuzz_file(path, text, len);
        len += end ? 3 : 0;
        text += len;
        n -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], path[64], svg[64];
    ses_err e = { 0 };
    ses_run_records l = { 0 };
    double step;
    fuzz_folder(dir);
    fill(dir, (const char *)data, n);
    bool ok = ses_run_records_add(&l, dir, &e);
    MUST(ok == (e.code == SES_OK) && (!ok || l.n == 1));
    for (size_t i = 0; i < l.n; i++) {
        const ses_run_record *r = &l.item[i];
        ses_run_record_final_score(r);
        ses_run_record_best_score(r, &step);
        for (size_t k = 0; k < r->n_series; k++) MUST(r->series[k].n > 0);
        for (size_t k = 0; k < 4; k++) ses_run_records_setting(&l, k);
    }
    snprintf(svg, sizeof svg, "%s/report.html", dir);
    if (ok) MUST(ses_run_records_rank(&l, &e) && ses_run_report_write(&l, svg, true, &e));
    unlink(svg);
    ses_run_records_free(&l);
    snprintf(path, sizeof path, "%s/%s", dir, name[1]);
    snprintf(svg, sizeof svg, "%s/curve.svg", dir);
    e = (ses_err){ 0 };
    ok = ses_run_curve_write(path, svg, "run", &e);
    MUST(ok == (e.code == SES_OK));
    unlink(svg);
    for (size_t i = 0; i < SES_LEN(name); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        unlink(path);
    }
    rmdir(dir);
    return 0;
}
