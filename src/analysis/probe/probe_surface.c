/* Probes of tasks made from trees. Every sentence is one row with the labels of all tasks; a changed
 * sentence is another row, with the label of its task only. */
#include "probe_surface.h"

#include "analysis/treebank/surface_tasks.h"
#include "base/alloc.h"
#include "base/str.h"
#include "probe_run.h"
#include "probe_setup.h"

#include <stdio.h>
#include <string.h>

typedef struct surface {
    const ses_analysis_call *c;
    ses_surface_task task[SES_SURFACE_TASKS];
    size_t n_tasks;
    ses_surface_lists lists; /* words of the training data */
    ses_probe_data d;
} surface;

static bool add_task(surface *s, const char *name, size_t n, ses_err *e)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)(n < 63 ? n : 63), name);
    ses_surface_task t = ses_surface_task_find(copy);
    if (t == SES_SURFACE_TASKS) {
        ses_buf list = { 0 };
        for (int i = 0; i < SES_SURFACE_TASKS; i++)
            ses_buf_appendf(&list, "%s%s", i ? ", " : "", ses_surface_task_name((ses_surface_task)i));
        ses_fail(e, SES_EUSAGE, "--task: unknown task \"%s\", expected all, or of %s",
                 ses_quoted_of(name, n).s, list.data ? list.data : "");
        ses_buf_free(&list);
        return false;
    }
    for (size_t i = 0; i < s->n_tasks; i++)
        if (s->task[i] == t) return true;
    s->task[s->n_tasks++] = t;
    return ses_probe_data_add_task(&s->d, copy, strlen(copy), e);
}

static bool add_tasks(surface *s, const char *names, ses_err *e)
{
    if (!names || !strcmp(names, "all")) {
        for (int t = 0; t < SES_SURFACE_TASKS; t++) {
            const char *name = ses_surface_task_name((ses_surface_task)t);
            if (!add_task(s, name, strlen(name), e)) return false;
        }
        return s->d.drops_tasks = true;
    }
    for (const char *p = names; p;) {
        const char *comma = strchr(p, ',');
        if (!add_task(s, p, comma ? (size_t)(comma - p) : strlen(p), e)) return false;
        p = comma ? comma + 1 : NULL;
    }
    return true;
}

/* Adds a row with labels [n_tasks]. The control task draws a label for each first word. */
static bool add_row(surface *s, const ses_input *in, const ses_string *label, ses_err *e)
{
    size_t row;
    return ses_probe_data_add_sentence(&s->d, in->words, in->n_words, &row, e) &&
           ses_probe_data_add(&s->d, row, row, in->words[0], label, e);
}

/* Adds the sentences of a set; made: the labeled sentences of each task. */
static bool add_sentences(surface *s, const ses_treebank *trees, const ses_surface_set *made, ses_err *e)
{
    size_t next[SES_SURFACE_TASKS] = { 0 };
    for (size_t i = 0; i < trees->n; i++) {
        ses_string label[SES_SURFACE_TASKS] = { 0 };
        bool any = false;
        for (size_t k = 0; k < s->n_tasks; k++) {
            const ses_surface_set *m = &made[k];
            if (next[k] == m->n || m->sentence[next[k]] != i) continue;
            size_t at = next[k]++;
            if (m->input[at].words == trees->input[i].words) {
                label[k] = m->label[at];
                any = true;
                continue;
            }
            ses_string alone[SES_SURFACE_TASKS] = { 0 };
            alone[k] = m->label[at];
            if (!add_row(s, &m->input[at], alone, e)) return false;
        }
        if (any && !add_row(s, &trees->input[i], label, e)) return false;
    }
    return true;
}

static bool add_set(surface *s, const ses_treebank *trees, int set, ses_err *e)
{
    ses_surface_set made[SES_SURFACE_TASKS] = { 0 };
    bool ok = set != SES_PROBE_TRAIN || ses_surface_lists_new(&s->lists, trees, e);
    ses_probe_data_begin(&s->d, set);
    for (size_t k = 0; ok && k < s->n_tasks; k++)
        ok = ses_surface_make(&made[k], s->task[k], trees, &s->lists, s->c->seed + (uint64_t)set, e);
    ok = ok && add_sentences(s, trees, made, e);
    for (size_t k = 0; k < s->n_tasks; k++) ses_surface_set_free(&made[k]);
    return ok;
}

static bool read_sets(surface *s, char *const *file, int n, bool skip_invalid, ses_treebank *whole,
                      ses_treebank *part, ses_err *e)
{
    static const size_t from[] = { 0, 8, 9, 10 }; /* as ses_probe_in_set */
    for (int i = 0; i < n; i++) {
        if (!ses_treebank_read(&whole[i], file[i], skip_invalid, e)) return false;
        ses_treebank_note_left_out(&whole[i], file[i], s->c->report);
        s->d.left_out += whole[i].too_long;
    }
    for (int set = 0; set < SES_PROBE_SETS; set++) {
        const ses_treebank *t = &whole[set < n ? set : n - 1];
        if (n == 1 && !ses_treebank_part(&part[set], whole, 10, from[set], from[set + 1], e)) return false;
        if (!add_set(s, n == 1 ? &part[set] : t, set, e)) return false;
    }
    return true;
}

bool ses_probe_surface(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e)
{
    surface s = { .c = c, .d = { .kind = "text", .unit = SES_STATES_TEXT_MEAN + a->classify.pool } };
    ses_treebank whole[SES_PROBE_SETS] = { 0 }, part[SES_PROBE_SETS] = { 0 };
    bool ok = ses_probe_check_options(a, SES_PROBE_TEXT_CONLLU, e) && ses_probe_check_pool(c, a, e) &&
              add_tasks(&s, a->classify.task, e) &&
              read_sets(&s, file, n, a->tree.skip_invalid, whole, part, e) &&
              ses_probe_data_end(&s.d, c->report, e) && ses_probe_run(c, a, &s.d, e);
    for (int i = 0; i < SES_PROBE_SETS; i++) {
        ses_treebank_free(&part[i]);
        ses_treebank_free(&whole[i]);
    }
    ses_surface_lists_free(&s.lists);
    ses_probe_data_free(&s.d);
    return ok;
}
