/* Tests of a single stage: opened from its settings, saved, rejected settings. */
#ifndef TESTS_STEP_FIXTURE_H
#define TESTS_STEP_FIXTURE_H

#include "check.h"
#include "text/stage.h"

#include <string.h>

typedef struct opened {
    ses_json_doc *doc;
    ses_arena mem;
    ses_stage_instance step;
} opened;

static inline bool open_step(opened *o, ses_stage_kind kind, const char *settings, ses_err *e)
{
    *o = (opened){ .doc = ses_json_parse(settings, strlen(settings), e) };
    return o->doc && ses_stage_instance_open(&o->step, kind, ses_json_root(o->doc), &o->mem, e);
}

static inline void shut(opened *o)
{
    ses_stage_instance_close(&o->step);
    ses_arena_free(&o->mem);
    ses_json_free(o->doc);
}

/* Saved settings open again and are saved identically. */
static inline void check_saved(ses_stage_kind kind, const char *settings)
{
    opened o = { 0 }, again = { 0 };
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(0, &e), *w2 = ses_json_writer_new(0, &e);
    const char *text = NULL, *text2 = NULL;
    if (open_step(&o, kind, settings, &e)) {
        ses_stage_instance_save(&o.step, w);
        text = ses_json_writer_text(w, NULL, &e);
    }
    if (text && open_step(&again, kind, text, &e)) {
        ses_stage_instance_save(&again.step, w2);
        text2 = ses_json_writer_text(w2, NULL, &e);
    }
    CHECK_MSG(text && text2 && !strcmp(text, text2), "%s", e.msg);
    ses_json_writer_free(w);
    ses_json_writer_free(w2);
    shut(&o);
    shut(&again);
}

static inline void check_refused(ses_stage_kind kind, const char *settings, const char *message)
{
    opened o;
    ses_err e = { 0 };
    CHECK(!open_step(&o, kind, settings, &e));
    CHECK_MSG(strstr(e.msg, message), "got \"%s\"", e.msg);
    shut(&o);
}

#endif
