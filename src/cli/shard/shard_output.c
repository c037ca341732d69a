/* Resumable output of a shard. */
#define _DEFAULT_SOURCE /* flock */
#include "shard_output.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds between two records of the progress: syncs take at most one percent of the time. */
static double pause_after(double cost) { return cost < 1e-3 ? 0.1 : cost > 0.3 ? 30 : 100 * cost; }

bool ses_shard_output_active(const ses_shard_output *o) { return o->before >= 0 && o->path; }

/* ---- progress ---- */

/* Hashes the bytes up to the last complete block. */
static bool update_hash(ses_shard_output *o, ses_err *e)
{
    if (!ses_shard_hash_file(STDOUT_FILENO, o->partial, o->hashed, o->at.bytes, &o->sha, e)) return false;
    o->hashed = o->at.bytes;
    ses_sha copy = o->sha;
    ses_sha_hex(&copy, o->at.sha256);
    return true;
}

static bool save_progress(ses_shard_output *o, ses_err *e)
{
    double start = ses_seconds();
    if (!update_hash(o, e)) return false;
    if (fsync(STDOUT_FILENO)) return ses_fail_write(o->partial, errno, e);
    if (!ses_shard_marker_write(o->progress, o->plan, o->identity, &o->at, NULL, e)) return false;
    o->saved_block = o->at.block;
    double now = ses_seconds();
    o->next_save = now + pause_after(now - start);
    return true;
}

static bool reach_border(ses_shard_output *o, uint64_t block, ses_err *e)
{
    off_t bytes = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (bytes < 0) return ses_fail_write(o->partial, errno, e);
    o->at.block = block;
    o->at.bytes = (uint64_t)bytes;
    o->at.records = o->finished;
    o->at.failed = o->failed;
    return true;
}

/* A record begins a block. The border is reached once all records before it are finished: now, if none is
 * under way. */
static bool add_border(ses_shard_output *o, uint64_t block, ses_err *e)
{
    o->fed_block = block;
    if (o->fed == o->finished) return o->finished == o->at.records || reach_border(o, block, e);
    if (o->first == o->n) o->first = o->n = 0;
    if (!ses_array_reserve(&o->border, &o->cap, o->n + 1, sizeof *o->border, e)) return false;
    o->border[o->n++] = (ses_block_border){ o->fed, block };
    return true;
}

bool ses_shard_output_fed(ses_shard_output *o, uint64_t block, ses_err *e)
{
    if (!ses_shard_output_active(o)) return true;
    if (block > o->fed_block && !add_border(o, block, e)) return false;
    o->fed++;
    bool due = o->at.block > o->saved_block && ses_seconds() >= o->next_save;
    return !due || save_progress(o, e);
}

bool ses_shard_output_done(ses_shard_output *o, bool failed, ses_err *e)
{
    if (!ses_shard_output_active(o)) return true;
    o->finished++;
    o->failed += failed;
    if (o->first == o->n || o->border[o->first].records != o->finished) return true;
    if (!reach_border(o, o->border[o->first++].block, e)) return false;
    return ses_seconds() < o->next_save || save_progress(o, e);
}

/* ---- the beginning ---- */

static bool name_files(ses_shard_output *o, const char *path, ses_err *e)
{
    o->path = ses_strdup(path, e);
    o->partial = ses_shard_marker_path(path, ".partial", e);
    o->progress = ses_shard_marker_path(path, ".progress", e);
    o->done = ses_shard_marker_path(path, ".done", e);
    return o->path && o->partial && o->progress && o->done;
}

/* Opens FILE.partial for this process alone, and makes it standard output. */
static bool redirect(ses_shard_output *o, ses_err *e)
{
    int fd = open(o->partial, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return ses_fail_write(o->partial, errno, e);
    bool ok = true;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        ok = ses_fail(e, SES_EIO, "%s: another process is writing it", o->partial);
    fflush(stdout);
    o->before = ok ? dup(STDOUT_FILENO) : -1;
    if (ok && (o->before < 0 || dup2(fd, STDOUT_FILENO) < 0)) ok = ses_fail_write(o->partial, errno, e);
    close(fd);
    return ok;
}

/* Takes over the complete blocks of FILE.partial. */
static bool take_over(ses_shard_output *o, const ses_shard_counts *n, ses_err *e)
{
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) || (uint64_t)st.st_size < n->bytes)
        return ses_fail(e, SES_EFORMAT, "%s: shorter than its record %s; use --overwrite to start over",
                        o->partial, ses_path_basename(o->progress));
    o->at = *n;
    if (!update_hash(o, e)) return false;
    if (strcmp(o->at.sha256, n->sha256))
        return ses_fail(e, SES_EFORMAT,
                        "%s: damaged: its SHA-256 is not that of %s; use --overwrite to start over",
                        o->partial, ses_path_basename(o->progress));
    o->fed = o->finished = n->records;
    o->failed = n->failed;
    o->saved_block = n->block;
    if (!o->call->quiet)
        fprintf(stderr,
                "sesame: shard %" PRId64 "/%" PRId64 ": continues at block %" PRIu64 " of %" PRIu64
                " to %" PRIu64 "\n",
                o->plan->shard.index, o->plan->shard.count, n->block, o->plan->first, o->plan->last);
    return true;
}

static bool discard(const ses_shard_output *o, ses_err *e)
{
    return ses_file_remove(o->progress, e) && ses_file_remove(o->partial, e);
}

/* A process killed between the last two steps has renamed FILE, but not written FILE.done. */
static bool finish_marker(ses_shard_output *o, const ses_shard_counts *n, bool *complete, ses_err *e)
{
    ses_shard_counts now = *n;
    int fd = open(o->path, O_RDONLY | O_CLOEXEC);
    ses_sha sha = ses_sha256_start();
    bool ok = fd >= 0 ? ses_shard_hash_file(fd, o->path, 0, n->bytes, &sha, e)
                      : ses_fail(e, SES_EIO, "%s: %s", o->path, strerror(errno));
    if (fd >= 0) close(fd);
    if (ok) ses_sha_hex(&sha, now.sha256);
    if (ok && strcmp(now.sha256, n->sha256)) ok = ses_fail_exists(o->path, e);
    *complete = ok = ok && ses_shard_marker_write(o->done, o->plan, o->identity, n, NULL, e);
    return ok && discard(o, e);
}

static bool start(ses_shard_output *o, bool overwrite, bool *complete, ses_err *e)
{
    ses_shard_counts n;
    if (overwrite && !discard(o, e)) return false;
    ses_json_doc *record = ses_shard_marker_read(o->progress, &n, e);
    bool found = record != NULL;
    bool ok =
        !e->code && (!found || ses_shard_marker_check(record, o->path, o->identity, "partial result", e));
    ses_json_free(record);
    if (!ok) return false;
    bool exists = !overwrite && ses_path_exists(o->path);
    bool renamed = !ses_path_exists(o->partial) || ses_path_same(o->partial, o->path);
    if (exists && found && n.block == o->plan->last && renamed) return finish_marker(o, &n, complete, e);
    if (exists) return ses_fail_exists(o->path, e);
    if (!redirect(o, e) || (found && !take_over(o, &n, e))) return false;
    off_t end = (off_t)o->at.bytes;
    return (!ftruncate(STDOUT_FILENO, end) && lseek(STDOUT_FILENO, end, SEEK_SET) == end) ||
           ses_fail_write(o->partial, errno, e);
}

bool ses_shard_output_begin(ses_shard_output *o, const ses_call *c, const ses_shard_plan *p, const char *path,
                            char *identity, bool overwrite, bool *complete, ses_err *e)
{
    *o = (ses_shard_output){ .call = c,
                             .plan = p,
                             .identity = identity,
                             .overwrite = overwrite,
                             .before = -1,
                             .sha = ses_sha256_start() };
    *complete = false;
    o->at.block = o->saved_block = p->first;
    bool ok = identity && name_files(o, path, e) &&
              ses_shard_is_complete(c, path, identity, overwrite, &o->at, complete, e);
    if (ok && !*complete) {
        o->at = (ses_shard_counts){ .block = p->first };
        ok = start(o, overwrite, complete, e);
    }
    o->failed = o->at.failed;
    o->fed_block = o->at.block;
    o->next_save = ses_seconds() + pause_after(0);
    return ok;
}

/* ---- the end ---- */

static bool sync_folder(const char *path, ses_err *e)
{
    char *dir = ses_path_parent(path, e);
    bool ok = dir && ses_dir_sync(dir, e);
    ses_free(dir);
    return ok;
}

bool ses_shard_output_commit(ses_shard_output *o, ses_err *e)
{
    if (!ses_stdout_flush(e) || !reach_border(o, o->plan->last, e) || !save_progress(o, e)) return false;
    if (!ses_file_place(o->partial, o->path, o->overwrite, e)) return false;
    o->committed = true;
    return sync_folder(o->path, e) &&
           ses_shard_marker_write(o->done, o->plan, o->identity, &o->at, NULL, e) &&
           ses_file_remove(o->progress, e);
}

/* Records the complete blocks after a failure, as far as the disk allows. */
static void keep_progress(ses_shard_output *o)
{
    ses_err ignored = { 0 };
    if (o->at.block > o->saved_block) save_progress(o, &ignored);
    if (o->saved_block == o->plan->first)
        discard(o, &ignored);
    else if (!o->call->quiet)
        fprintf(stderr,
                "sesame: shard %" PRId64 "/%" PRId64 ": stopped at block %" PRIu64 " of %" PRIu64
                " to %" PRIu64 "; the same command continues\n",
                o->plan->shard.index, o->plan->shard.count, o->saved_block, o->plan->first, o->plan->last);
}

void ses_shard_output_end(ses_shard_output *o, ses_err *e)
{
    if (o->before >= 0) {
        fflush(stdout);
        clearerr(stdout);
        ses_stdout_rename(e, o->partial);
        if (!o->committed) keep_progress(o);
        dup2(o->before, STDOUT_FILENO);
        close(o->before);
    }
    ses_free(o->path);
    ses_free(o->partial);
    ses_free(o->progress);
    ses_free(o->done);
    ses_free(o->identity);
    ses_free(o->border);
    *o = (ses_shard_output){ .before = -1 };
}

/* ---- the shard of a call ---- */

bool ses_shard_job_begin(ses_shard_job *j, const ses_call *c, const char *text, const char *const *file,
                         size_t n, const ses_shard_conditions *conditions, const char *to, bool overwrite,
                         ses_err *e)
{
    ses_shard shard;
    j->out.before = -1;
    if (!ses_shard_parse(text, &shard, e) || !ses_shard_plan_make(&j->plan, shard, file, n, e)) return false;
    if (!shard.count || !to) return true;
    char *identity = ses_shard_identity(c, &j->plan, conditions, e);
    return identity && ses_shard_output_begin(&j->out, c, &j->plan, to, identity, overwrite, &j->complete, e);
}

bool ses_shard_job_given(const ses_shard_job *j) { return j->plan.shard.count > 0; }

uint64_t ses_shard_job_block(const ses_shard_job *j)
{
    return ses_shard_output_active(&j->out) ? j->out.at.block : j->plan.first;
}

void ses_shard_job_end(ses_shard_job *j, ses_err *e)
{
    ses_shard_output_end(&j->out, e);
    ses_shard_plan_free(&j->plan);
}

const char *ses_shard_job_label(const ses_shard_job *j, char buf[48], const char *otherwise)
{
    if (!ses_shard_job_given(j)) return otherwise;
    snprintf(buf, 48, "shard %" PRId64 "/%" PRId64, j->plan.shard.index, j->plan.shard.count);
    return buf;
}
