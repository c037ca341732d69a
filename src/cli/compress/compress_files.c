/* Files of candidates, and the chosen model. */
#include "compress.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "io/manifest.h"
#include "model/model_desc.h"
#include "train/train_folder.h"

#include <math.h>
#include <string.h>

enum { RECORD_MAX = 1 << 20 };

char *ses_compress_path(const ses_compress *z, size_t i, const char *ending, ses_err *e)
{
    char file[200];
    snprintf(file, sizeof file, "%s%s", z->candidate[i].name, ending);
    return ses_path_join(z->root, file, e);
}

/* ---- records ---- */

/* Figures of a candidate by their names in JSON. */
static double *figure_at(ses_candidate *x, size_t i, const char **name)
{
    static const char *const names[] = { "score",
                                         "low",
                                         "high",
                                         "drop",
                                         "latency",
                                         "texts_per_second",
                                         "memory_bytes",
                                         "bytes",
                                         "parameters",
                                         "flops_per_token",
                                         "joules_per_text",
                                         "speed",
                                         "batch_speed",
                                         "energy_ratio" };
    double *const at[] = { &x->score,       &x->low,          &x->high,
                           &x->drop,        &x->cost.latency, &x->cost.throughput,
                           &x->cost.memory, &x->cost.bytes,   &x->cost.parameters,
                           &x->cost.flops,  &x->cost.joules,  &x->speed,
                           &x->rate,        &x->energy_ratio };
    if (i >= SES_LEN(names)) return NULL;
    *name = names[i];
    return at[i];
}

static void put_lines(ses_json_writer *w, const char *key, const char *text)
{
    ses_json_member_array(w, key);
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        ses_json_put_stringn(w, text, n);
        text += n + (text[n] == '\n');
    }
    ses_json_end_array(w);
}

void ses_compress_put_candidate(const ses_compress *z, const ses_candidate *x, ses_json_writer *w)
{
    ses_candidate copy = *x;
    const char *name;
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", x->name);
    ses_json_member_string(w, "state",
                           x->is_measured                    ? "measured"
                           : x->base.state == SES_JOB_DONE   ? "made"
                           : x->base.state == SES_JOB_FAILED ? "failed"
                                                             : "open");
    ses_json_member_string(w, "model", x->dir);
    if (x->files) {
        ses_json_put_key(w, "files");
        ses_json_put_value(w, ses_json_root(x->files));
    }
    put_lines(w, "commands", x->commands.data);
    ses_json_member_real(w, "seconds", x->base.seconds);
    if (x->is_measured) {
        for (size_t i = 0; figure_at(&copy, i, &name); i++)
            ses_json_member_real(w, name, *figure_at(&copy, i, &name));
        ses_json_member_string(w, "machine", z->machine);
        ses_json_member_int(w, "timed_texts", z->a->texts);
        ses_json_member_int(w, "rounds", z->a->rounds);
        ses_json_member_bool(w, "on_front", x->on_front);
        ses_json_member_bool(w, "chosen", x->is_chosen);
    } else if (*x->base.reason)
        ses_json_member_string(w, "reason", x->base.reason);
    if (x->is_measured && isnan(x->cost.joules)) ses_json_member_string(w, "energy_note", z->energy_note);
    ses_json_end_object(w);
}

bool ses_compress_write_candidate(const ses_compress *z, size_t i, ses_err *e)
{
    char file[200];
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_compress_put_candidate(z, &z->candidate[i], w);
    snprintf(file, sizeof file, "%s.json", z->candidate[i].name);
    return ses_json_record_save(w, 2, z->root, file, true, e);
}

static void read_commands(const ses_json *list, ses_buf *out)
{
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const char *line = ses_json_string(ses_json_at(list, i), NULL);
        if (line) ses_buf_appendf(out, "%s\n", line);
    }
}

/* Whether the times are of the texts and rounds of this call. */
static bool is_timed_so(const ses_compress *z, const ses_json *root)
{
    int64_t texts = 0, rounds = 0;
    return ses_json_int(ses_json_get(root, "timed_texts"), &texts) && texts == z->a->texts &&
           ses_json_int(ses_json_get(root, "rounds"), &rounds) && rounds == z->a->rounds;
}

/* Figures of a candidate that was measured in the same way; false: it is to be measured again. */
static bool read_figures(ses_compress *z, ses_candidate *x, const ses_json *root)
{
    double *at, score;
    const char *name, *machine = ses_json_string(ses_json_get(root, "machine"), NULL),
                      *state = ses_json_string(ses_json_get(root, "state"), NULL),
                      *note = ses_json_string(ses_json_get(root, "energy_note"), NULL);
    if (!state || strcmp(state, "measured") || !machine || strcmp(machine, z->machine) ||
        !is_timed_so(z, root) || !ses_json_real(ses_json_get(root, "score"), &score))
        return false;
    for (size_t k = 0; (at = figure_at(x, k, &name)); k++)
        if (!ses_json_real(ses_json_get(root, name), at)) *at = NAN;
    if (note) snprintf(z->energy_note, sizeof z->energy_note, "%s", note);
    return true;
}

/* The model of the command line, not one that was made. */
static bool is_given(const ses_compress *z, const ses_candidate *x) { return !strcmp(x->dir, z->model); }

/* Whether the folder has the files that the record lists. A given model may have more. */
static bool check_files(const ses_compress *z, size_t i, const ses_json *record, ses_err *e)
{
    const ses_candidate *x = &z->candidate[i];
    if (!ses_path_is_dir(x->dir)) return ses_fail(e, SES_EFORMAT, "its folder is missing");
    return ses_manifest_compare(ses_json_get(record, "files"), "its record", x->dir, is_given(z, x), e);
}

/* Takes over what an earlier call has made. False: its files differ from the record. */
static bool take_over(ses_compress *z, size_t i, const ses_json *root, ses_err *e)
{
    ses_candidate *x = &z->candidate[i];
    const char *state = ses_json_string(ses_json_get(root, "state"), NULL),
               *why = ses_json_string(ses_json_get(root, "reason"), NULL);
    if (why) snprintf(x->base.reason, sizeof x->base.reason, "%s", why);
    if (!state || (strcmp(state, "measured") && strcmp(state, "made"))) return true; /* it is tried again */
    if (!check_files(z, i, root, e)) return false;
    x->base.state = SES_JOB_DONE;
    x->is_measured = read_figures(z, x, root);
    ses_json_real(ses_json_get(root, "seconds"), &x->base.seconds);
    read_commands(ses_json_get(root, "commands"), &x->commands);
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_json_put_value(w, ses_json_get(root, "files"));
    x->files = ses_json_writer_parse(w, e);
    return x->files && ses_buf_ok(&x->commands, e);
}

/* A failed candidate is tried again; its reason stays until then. */
bool ses_compress_read_candidate(ses_compress *z, size_t i, ses_err *e)
{
    ses_err why = { 0 };
    ses_candidate *x = &z->candidate[i];
    char *path = ses_compress_path(z, i, ".json", e);
    if (!path) return false;
    ses_json_doc *d = ses_path_exists(path) ? ses_json_record_load(path, RECORD_MAX, true, &why) : NULL;
    bool ok = !why.code && (!d || take_over(z, i, ses_json_root(d), &why));
    ses_json_free(d);
    ses_free(path);
    if (ok) return true;
    if (why.code == SES_ENOMEM) return ses_fail(e, why.code, "%s", why.msg);
    if (d && is_given(z, x))
        return ses_fail(e, SES_EFORMAT,
                        "%s: not the model that the candidates were made of: %s; restore it, or use "
                        "--overwrite to repeat all candidates",
                        x->dir, why.msg);
    fprintf(stderr, "%s: %s: it is made again\n", x->name, why.msg);
    return true;
}

bool ses_compress_note_files(ses_compress *z, size_t i, ses_err *e)
{
    ses_candidate *x = &z->candidate[i];
    if (!ses_path_is_dir(x->dir)) return true; /* the name of a bundled model */
    ses_json_writer *w = ses_json_writer_new(0, e);
    bool ok = w && ses_manifest_put(w, x->dir, SES_MANIFEST_SHA256, e);
    if (!ok) ses_json_writer_free(w);
    ses_json_free(x->files);
    x->files = ok ? ses_json_writer_parse(w, e) : NULL;
    return x->files != NULL;
}

/* ---- the chosen model ---- */

typedef struct copy_job {
    const char *from, *to;
    ses_err *e;
    bool ok;
} copy_job;

/* Files that prediction reads, and the records of training. */
static bool copy_entry(void *ctx, const char *name)
{
    static const char *const others[] = { "report.html", "log.jsonl",          "times.jsonl",
                                          "README.md",   "trainer_state.json", SES_RUN_INFO };
    copy_job *j = ctx;
    bool exists;
    for (size_t i = 0; i < SES_LEN(others); i++)
        if (!strcmp(name, others[i])) return true;
    char *path = *name != '.' ? ses_path_join(j->from, name, j->e) : NULL;
    if (path && !ses_path_is_dir(path)) j->ok = ses_train_folder_copy(j->from, name, j->to, &exists, j->e);
    ses_free(path);
    return j->ok;
}

/* quantize and others leave out these files: they come from the model it was made from. */
static bool copy_records(const ses_compress *z, const char *to, ses_err *e)
{
    static const char *const names[] = { "README.md", SES_RUN_INFO };
    bool ok = true;
    for (size_t k = 0; k < SES_LEN(names); k++) {
        bool exists = false;
        for (size_t i = z->chosen; ok && !exists; i = z->candidate[i].parent) {
            ok = ses_train_folder_copy(z->candidate[i].dir, names[k], to, &exists, e);
            if (!i) break;
        }
    }
    return ok;
}

bool ses_compress_write_model(const ses_compress *z, ses_err *e)
{
    char *dir = ses_path_join(z->output, "model", e);
    copy_job j = { z->candidate[z->chosen].dir, dir, e, true };
    char rule[80];
    const char *exit_rule = ses_compress_rule_of(&z->candidate[z->chosen], rule, sizeof rule);
    bool ok = dir && ses_dir_remove_all(dir, e) && ses_dir_make(dir, e) &&
              ses_dir_each(j.from, copy_entry, &j, e) && j.ok && copy_records(z, dir, e) &&
              (!exit_rule || ses_exit_rule_store(dir, exit_rule, e)) && ses_compress_write_card(z, dir, e);
    ses_free(dir);
    return ok;
}
