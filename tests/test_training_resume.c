/* Resuming a complete run on two ranks that see different folders: both follow rank 0. */
#define _DEFAULT_SOURCE
#include "comm_fixture.h"
#include "train/training_events.h"
#include "trainer_fixture.h"

/* A run of two ranks with checkpoints in dir. */
static void start(run *r, ses_comm *c, const char *dir)
{
    ses_err e = { 0 };
    run_prepare(r, 1, dir);
    r->o.comm = c;
    CHECK_MSG(run_start(r, &e), "%s", e.msg);
}

/* The files of a complete run, made of its last checkpoint. */
static void complete(const char *dir, int64_t updates)
{
    char command[400];
    snprintf(command, sizeof command,
             "cp '%s/checkpoint-%d/trainer_state.json' '%s' && echo '{}' >'%s/config.json'", dir,
             (int)updates, dir, dir);
    CHECK(!system(command));
}

static void resumes(ses_comm *c, const char *dir, const char *seen, bool want)
{
    ses_err e = { 0 };
    run r;
    ses_training_resumed out = { 0 };
    start(&r, c, dir);
    CHECK_MSG(ses_training_resume(r.trainer, seen, NULL, NULL, &out, &e), "%s", e.msg);
    CHECK_MSG(out.is_complete == want, "rank %d", ses_comm_rank(c));
    run_free(&r);
}

static void on_rank(ses_comm *c, void *ctx)
{
    const char *dir = ctx, *none = "/no/such/folder";
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    bool first = !ses_comm_rank(c);
    start(&r, c, dir);
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e), "%s", e.msg);
    int64_t updates = ses_trainer_total_updates(r.trainer);
    run_free(&r);
    CHECK(ses_comm_barrier(c, &e));
    if (first) complete(dir, updates);
    CHECK(ses_comm_barrier(c, &e));
    resumes(c, dir, dir, true);
    resumes(c, dir, first ? dir : none, true);
    resumes(c, dir, first ? none : dir, false);
}

int main(void)
{
    char dir[] = "/tmp/sesame-resume-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    CHECK(!comm_ranks(2, &(ses_comm_options){ .transport = "tcp" }, on_rank, dir));
    empty(dir);
    return check_report();
}
