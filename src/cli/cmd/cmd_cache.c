/* cache: lists, removes and verifies the models in the Hugging Face cache. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "hub/hub_env.h"
#include "hub/hub_scan.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct args {
    bool json, yes, dry_run;
    double hours;
} args;

static const ses_opt opt[] = {
    SES_OPT_JSON(args, json),
    SES_OPT_FLAG(args, yes, "yes", "rm, prune: do not ask", .letter = 'y'),
    SES_OPT_FLAG(args, dry_run, "dry-run", "rm, prune: list what would be removed"),
    SES_OPT_REAL(args, hours, "older-than", "24", 0, 1e6, "prune: minimum age of unused files",
                 .value = "HOURS"),
};

static const char *const states[] = { "complete", "incomplete", "damaged" };

/* Whether a list "main, v1" contains a ref. */
static bool has_ref(const char *refs, const char *ref)
{
    for (const char *at = refs; *at;) {
        size_t n = strcspn(at, ",");
        if (n == strlen(ref) && !strncmp(at, ref, n)) return true;
        at += n + (at[n] ? 2 : 0);
    }
    return false;
}

/* Whether the operands after the action name this entry; none: all. */
static bool is_named(const ses_call *c, const ses_hub_entry *x)
{
    for (int i = 1; i < c->n_operands; i++) {
        ses_hub_name name;
        if (!ses_hub_name_parse(c->operands[i], &name, NULL) || strcmp(name.id, x->name.id)) continue;
        if (!strchr(c->operands[i], '@')) return true;
        size_t n = strlen(name.revision);
        if ((n >= 7 && !strncmp(x->name.revision, name.revision, n)) || has_ref(x->refs, name.revision))
            return true;
    }
    return c->n_operands == 1;
}

static bool check_names(const ses_call *c, const ses_hub_list *l, ses_err *e)
{
    for (int i = 1; i < c->n_operands; i++) {
        ses_hub_name name;
        bool found = false;
        if (!ses_hub_name_parse(c->operands[i], &name, e)) return false;
        for (size_t k = 0; k < l->n && !found; k++) found = !strcmp(l->item[k].name.id, name.id);
        if (!found) return ses_fail(e, SES_EIO, "%s: not in the cache %s", c->operands[i], l->cache);
    }
    return true;
}

/* ---- ls ---- */

static const char *ago(char buf[32], int64_t t)
{
    double days = t ? difftime(time(NULL), (time_t)t) / 86400 : -1;
    if (days < 0)
        snprintf(buf, 32, "-");
    else if (days < 1)
        snprintf(buf, 32, "today");
    else
        snprintf(buf, 32, "%.0f day%s ago", days, days < 1.5 ? "" : "s");
    return buf;
}

static bool list_json(const ses_call *c, const ses_hub_list *l, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "cache", l->cache);
    ses_json_member_uint(w, "bytes", l->disk_bytes);
    ses_json_member_array(w, "models");
    for (size_t i = 0; i < l->n; i++) {
        const ses_hub_entry *x = &l->item[i];
        if (!is_named(c, x)) continue;
        ses_json_begin_object(w);
        ses_json_member_string(w, "model", x->name.id);
        ses_json_member_string(w, "commit", *x->name.revision ? x->name.revision : NULL);
        ses_json_member_list(w, "refs", x->refs);
        ses_json_member_string(w, "path", x->dir ? x->dir : x->repo);
        ses_json_member_uint(w, "bytes", x->bytes);
        ses_json_member_int(w, "last_used", x->used);
        ses_json_member_string(w, "state", states[x->state]);
        if (*x->detail) ses_json_member_string(w, "detail", x->detail);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool list_text(const ses_call *c, const ses_hub_list *l, ses_err *e)
{
    char size[SES_NUMBER_TEXT], when[32];
    ses_text_table *t = ses_text_table_new("Model|Revision|>Size|Last used|State", e);
    for (size_t i = 0; t && i < l->n; i++) {
        const ses_hub_entry *x = &l->item[i];
        if (!is_named(c, x)) continue;
        ses_text_table_cell(t, "%s", x->name.id);
        ses_text_table_style(t, SES_BOLD);
        ses_text_table_cell(t, "%.12s%s%s%s", x->name.revision, *x->refs ? " (" : "", x->refs,
                            *x->refs ? ")" : "");
        ses_text_table_cell(t, "%s", ses_bytes_text(size, x->bytes));
        ses_text_table_cell(t, "%s", ago(when, x->used));
        ses_text_table_cell(t, "%s%s%s", states[x->state], *x->detail ? ": " : "", x->detail);
        if (x->state != SES_HUB_COMPLETE) ses_text_table_style(t, SES_YELLOW);
    }
    bool ok = t && (!l->n || ses_text_table_print(t, stdout, &c->out, 0, e));
    ses_text_table_free(t);
    if (ok && !c->quiet) {
        fflush(stdout);
        fprintf(stderr, "%s in %s\n", l->n ? ses_bytes_text(size, l->disk_bytes) : "No models", l->cache);
    }
    return ok;
}

static bool run_ls(ses_call *c, const char *cache, ses_err *e)
{
    const args *a = c->args;
    ses_hub_list l;
    if (!ses_hub_list_read(&l, cache, e)) return false;
    bool ok = check_names(c, &l, e) && (a->json ? list_json(c, &l, e) : list_text(c, &l, e));
    ses_hub_list_free(&l);
    return ok;
}

/* ---- rm, prune ---- */

static bool plan_json(const ses_hub_plan *p, bool removed, size_t skipped, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_bool(w, "removed", removed);
    ses_json_member_uint(w, "bytes", p->bytes);
    ses_json_member_uint(w, "skipped", skipped);
    ses_json_member_array(w, "files");
    for (size_t i = 0; i < p->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "path", p->item[i].path);
        ses_json_member_string(w, "kind", p->item[i].kind);
        ses_json_member_uint(w, "bytes", p->item[i].bytes);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static void show_plan(const ses_call *c, const ses_hub_plan *p, FILE *out)
{
    char size[SES_NUMBER_TEXT];
    if (c->quiet) return;
    for (size_t i = 0; i < p->n; i++) {
        fprintf(out, "%-9s %10s  ", p->item[i].kind, ses_bytes_text(size, p->item[i].bytes));
        ses_put_escaped(out, p->item[i].path);
        putc('\n', out);
    }
}

/* Asks the user. --yes is required if no terminal is there to ask. */
static bool confirm(const ses_call *c, const ses_hub_plan *p, ses_err *e)
{
    char size[SES_NUMBER_TEXT], answer[8] = "";
    if (!isatty(STDIN_FILENO) || !c->err.tty)
        return ses_fail(e, SES_EUSAGE, "%s would be removed: add --yes, or --dry-run to list the files",
                        ses_bytes_text(size, p->bytes));
    show_plan(c, p, stderr);
    fprintf(stderr, "Remove %s? [y/N] ", ses_bytes_text(size, p->bytes));
    if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
        return fputs("Nothing was removed.\n", stderr), false; /* exit status 1 */
    return true;
}

/* exact: the user has named a commit in full. */
static bool remove_plan(const ses_call *c, const ses_hub_plan *p, bool exact, ses_err *e)
{
    const args *a = c->args;
    char size[SES_NUMBER_TEXT];
    size_t skipped = 0;
    if (p->n && !a->dry_run && !a->yes && !exact && !confirm(c, p, e)) return false;
    if (!a->dry_run && !ses_hub_plan_run(p, &skipped, e)) return false;
    if (a->json) return plan_json(p, !a->dry_run, skipped, e);
    if (a->dry_run) show_plan(c, p, stdout);
    if (c->quiet) return true;
    printf("%s%s\n", ses_bytes_text(size, p->bytes), a->dry_run ? " would be removed" : " removed");
    if (skipped) fprintf(stderr, "%zu files are in use by another process and were kept.\n", skipped);
    return true;
}

static bool run_rm(ses_call *c, const char *cache, ses_err *e)
{
    ses_hub_plan p = { 0 };
    bool ok = true, exact = true;
    if (c->n_operands < 2)
        return ses_fail(e, SES_EUSAGE, "missing argument; usage: sesame cache rm ORG/NAME[@REVISION]...");
    for (int i = 1; ok && i < c->n_operands; i++) {
        const char *at = strchr(c->operands[i], '@');
        exact = exact && at && ses_hub_is_commit(at + 1);
        ok = ses_hub_plan_remove(&p, cache, c->operands[i], e);
    }
    ok = ok && remove_plan(c, &p, exact, e);
    ses_hub_plan_free(&p);
    return ok;
}

static bool run_prune(ses_call *c, const char *cache, ses_err *e)
{
    const args *a = c->args;
    ses_hub_plan p = { 0 };
    if (c->n_operands > 1) return ses_fail(e, SES_EUSAGE, "unexpected argument '%s'", c->operands[1]);
    bool ok = ses_hub_plan_prune(&p, cache, a->hours, e) && remove_plan(c, &p, false, e);
    ses_hub_plan_free(&p);
    return ok;
}

/* ---- verify ---- */

typedef struct verify_job {
    const ses_call *call;
    ses_progress line;
    ses_json_writer *w; /* NULL: text */
    size_t files, bad;
} verify_job;

static bool on_bytes(void *ctx, uint64_t done)
{
    verify_job *j = ctx;
    ses_progress_show(&j->line, (int64_t)done);
    return !ses_train_monitor_should_stop();
}

static bool on_file(void *ctx, const ses_hub_entry *x, const char *path, bool ok, const char *what)
{
    verify_job *j = ctx;
    j->files++;
    j->bad += !ok;
    if (ok) return true;
    if (j->w) {
        ses_json_begin_object(j->w);
        ses_json_member_string(j->w, "model", x->name.id);
        ses_json_member_string(j->w, "commit", x->name.revision);
        ses_json_member_string(j->w, "path", path);
        ses_json_member_string(j->w, "problem", what);
        ses_json_end_object(j->w);
        return true;
    }
    ses_progress_end(&j->line);
    printf("%s@%.12s: ", x->name.id, x->name.revision);
    ses_put_escaped(stdout, path);
    printf("%s", *path ? ": " : "");
    ses_put_escaped(stdout, what);
    putchar('\n');
    return true;
}

static bool verify_all(ses_call *c, const ses_hub_list *l, verify_job *j, ses_err *e)
{
    uint64_t total = 0;
    ses_hub_verify v = { .on_file = on_file, .on_bytes = on_bytes, .ctx = j };
    for (size_t i = 0; i < l->n; i++) total += is_named(c, &l->item[i]) ? l->item[i].bytes : 0;
    j->line = ses_progress_start(stderr, &c->err, c->quiet, "verify", (int64_t)total);
    ses_train_monitor_catch_signals();
    bool ok = true;
    for (size_t i = 0; ok && i < l->n; i++)
        if (is_named(c, &l->item[i])) ok = ses_hub_verify_entry(&v, l->cache, &l->item[i], e);
    ses_progress_end(&j->line);
    return ok;
}

static bool run_verify(ses_call *c, const char *cache, ses_err *e)
{
    const args *a = c->args;
    ses_hub_list l;
    verify_job j = { .call = c };
    if (!ses_hub_list_read(&l, cache, e)) return false;
    bool ok = check_names(c, &l, e);
    if (ok && a->json) {
        ok = (j.w = ses_json_writer_new(0, e)) != NULL;
        if (ok) ses_json_begin_object(j.w), ses_json_member_array(j.w, "problems");
    }
    ok = ok && verify_all(c, &l, &j, e);
    if (ok && a->json) {
        ses_json_end_array(j.w);
        ses_json_member_uint(j.w, "files", j.files);
        ses_json_end_object(j.w);
        ok = ses_json_writer_print(j.w, e);
        j.w = NULL;
    } else if (ok && !c->quiet) {
        printf("%zu files verified, %zu damaged or unknown\n", j.files, j.bad);
        if (j.bad)
            fputs("'sesame cache rm MODEL' and 'sesame pull MODEL' load a damaged model again.\n", stderr);
    }
    ses_json_writer_free(j.w);
    ses_hub_list_free(&l);
    return ok && !j.bad;
}

static bool run(ses_call *c, ses_err *e)
{
    static const struct {
        const char *name;
        bool (*run)(ses_call *c, const char *cache, ses_err *e);
    } actions[] = { { "ls", run_ls }, { "rm", run_rm }, { "prune", run_prune }, { "verify", run_verify } };
    size_t i = 0;
    while (i < SES_LEN(actions) && strcmp(c->operands[0], actions[i].name)) i++;
    if (i == SES_LEN(actions))
        return ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected ls, rm, prune or verify",
                        c->operands[0]);
    char *cache = ses_hub_cache_dir(e);
    bool ok = cache && actions[i].run(c, cache, e);
    ses_free(cache);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame cache ls", "models, revisions, sizes, last use, and whether files are missing" },
    { "sesame cache rm ORG/NAME --yes", "remove a model with all its revisions" },
    { "sesame cache prune --dry-run", "what no branch or tag uses" },
    { "sesame cache verify", "compare every file with its hash" },
    { 0 },
};

const ses_command ses_command_cache = {
    .name = "cache",
    .usage = "ls|rm|prune|verify [ORG/NAME[@REVISION]...]",
    .summary = "list and clean the Hugging Face cache",
    .description =
        "Shows and cleans the cache of the Hugging Face libraries, in which 'sesame pull' stores models "
        "(HF_HUB_CACHE, HF_HOME). Data sets and other contents of the cache are not touched.\n\n"
        "ls lists models and their revisions. rm removes models, or single revisions with the blobs that no "
        "other revision uses. It asks first; without a terminal it needs --yes, unless each name ends in a "
        "full "
        "commit. prune removes revisions without a branch or tag, blobs without a revision, and partial "
        "files, "
        "if they are older than --older-than. verify computes the hash of every file; exit status 1: some "
        "are "
        "damaged. Files that another process downloads are kept.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .operand_words = "ls|rm|prune|verify",
    .run = run,
};
