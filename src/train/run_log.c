/* Log of a training run: see run_log.h. */
#define _POSIX_C_SOURCE 200809L
#include "run_log.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number_text.h"
#include "comm/comm_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 50 }; /* updates per entry of log_history; transformers: 500 */

static double wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether a line was written before the checkpoint: an update up to its own, or an evaluation up to its last
 * one. A line that is not a log entry is kept. */
static bool is_before(const char *line, size_t n, const ses_train_state *at)
{
    ses_json_doc *d = ses_json_parse(line, n, NULL);
    const ses_json *root = d ? ses_json_root(d) : NULL;
    int64_t step = 0;
    bool known = ses_json_int(ses_json_get(root, "step"), &step), update = ses_json_get(root, "grad_norm");
    ses_json_free(d);
    return !known || step <= (update ? at->updates : at->evaluated);
}

/* Removes what a killed run logged after the checkpoint, and an incomplete last line: a resumed run writes
 * these lines again. A pipe or device is left alone. */
static bool truncate_file(const char *path, const ses_train_state *at, ses_err *e)
{
    struct stat st;
    size_t n = 0, kept = 0;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return true;
    char *text = ses_file_read(path, SIZE_MAX / 2, &n, e);
    if (!text) return false;
    for (const char *end; (end = memchr(text + kept, '\n', n - kept));) {
        if (!is_before(text + kept, (size_t)(end - text) - kept, at)) break;
        kept = (size_t)(end - text) + 1;
    }
    bool ok = kept == n || truncate(path, (off_t)kept) == 0 || ses_fail_write(path, errno, e);
    ses_free(text);
    return ok;
}

static FILE *open_file(const char *path, bool append)
{
    FILE *f = fopen(path, append ? "a" : "w");
    if (f) setvbuf(f, NULL, _IOLBF, BUFSIZ); /* whole lines reach the file even if the process is killed */
    return f;
}

ses_energy_args ses_training_energy(const ses_training_options *o)
{
    return (ses_energy_args){ .core_watts = o->core_watts,
                              .co2_per_kwh = o->co2_per_kwh,
                              .price_per_hour = o->price_per_hour,
                              .price_per_kwh = o->price_per_kwh };
}

bool ses_run_log_open(ses_run_log *l, const ses_run_log_options *o, ses_trainer *t, ses_err *e)
{
    const ses_train_state *at = ses_trainer_state(t);
    *l = (ses_run_log){ .options = *o,
                        .trainer = t,
                        .resumed_update = at->updates,
                        .loss_sum = o->before.loss_sum,
                        .loss_count = o->before.loss_count,
                        .window_sum = o->before.window_sum,
                        .window = o->before.window };
    if (!o->before.has_times) {
        l->first_update = at->updates;
        l->first_tokens = at->tokens;
        l->first_sequences = at->sequences;
    }
    if (o->path && o->append && !truncate_file(o->path, at, e)) return false;
    if (o->path && !(l->file = open_file(o->path, o->append))) return ses_fail_write(o->path, errno, e);
    if (o->tensorboard_dir &&
        !(l->events = ses_event_file_new(o->tensorboard_dir, wall_clock(), at->updates + 1, e)))
        return false;
    l->start = ses_seconds() - o->before.seconds;
    ses_energy_meter_start(&l->meter, &o->counters);
    return true;
}

/* Adds the energy before a resume. */
static ses_energy add_before(ses_energy x, const ses_run_totals *before)
{
    x.joules += before->joules;
    x.gpu_joules += before->gpu_joules;
    if (before->gpu_joules > 0) x.gpu = SES_GPU_MEASURED;
    return x;
}

/* Energy and memory that a rank has used. */
typedef struct rank_use {
    double cpu_joules, gpu_joules;
    uint64_t peak_memory;
    bool measured;
    char gpu[32]; /* PCI bus id; "": none */
} rank_use;

/* Ranks of one machine read the same counters of its processors, and may share a GPU: each counts once. */
static void add_rank(ses_energy *sum, const ses_comm *c, const rank_use *all, int r)
{
    bool cpu = true, gpu = true;
    for (int i = 0; i < r; i++) {
        if (strcmp(ses_comm_host(c, i), ses_comm_host(c, r))) continue;
        if (all[i].measured && all[r].measured) cpu = false;
        if (!strcmp(all[i].gpu, all[r].gpu)) gpu = false;
    }
    sum->joules += (cpu ? all[r].cpu_joules : 0) + (gpu ? all[r].gpu_joules : 0);
    sum->gpu_joules += gpu ? all[r].gpu_joules : 0;
}

/* Replaces the energy of this rank by that of all of them, and its memory by that of the largest. */
static bool sum_ranks(const ses_run_log *l, ses_energy *x, uint64_t *peak_memory, ses_err *e)
{
    ses_comm *c = l->options.comm;
    int n = ses_comm_size(c);
    if (n == 1) return true;
    rank_use mine = { .cpu_joules = x->joules - x->gpu_joules,
                      .gpu_joules = x->gpu_joules,
                      .peak_memory = *peak_memory,
                      .measured = x->measured };
    snprintf(mine.gpu, sizeof mine.gpu, "%s", l->options.counters.gpu ? l->options.counters.gpu : "");
    rank_use *all = ses_alloc_array((size_t)n, sizeof *all, e);
    if (!all || !ses_comm_allgather_equal(c, &mine, sizeof mine, all, e)) {
        ses_free(all);
        return false;
    }
    x->joules = x->gpu_joules = 0;
    for (int r = 0; r < n; r++) {
        add_rank(x, c, all, r);
        if (all[r].peak_memory > *peak_memory) *peak_memory = all[r].peak_memory;
    }
    size_t used = strlen(x->source);
    snprintf(x->source + used, sizeof x->source - used, "; sum of %d ranks", n);
    ses_free(all);
    return true;
}

void ses_run_log_restore(ses_run_log *l, const ses_run_log_options *o, ses_trainer *t)
{
    const ses_train_state *at = ses_trainer_state(t);
    *l = (ses_run_log){ .options = *o,
                        .trainer = t,
                        .seconds = fmax(o->before.seconds, 1e-9),
                        .loss_sum = o->before.loss_sum,
                        .loss_count = o->before.loss_count,
                        .energy = add_before((ses_energy){ .source = "totals of the last checkpoint" },
                                             &o->before) };
    if (o->before.has_times) return;
    l->first_update = at->updates;
    l->first_tokens = at->tokens;
    l->first_sequences = at->sequences;
}

double ses_run_log_elapsed(const ses_run_log *l) { return ses_seconds() - l->start; }

bool ses_run_log_totals(const ses_run_log *l, ses_run_totals *out, ses_err *e)
{
    ses_energy_meter meter = l->meter; /* the measurement continues */
    ses_energy x = ses_energy_meter_stop(&meter, l->options.energy.core_watts);
    uint64_t peak_memory = 0;
    if (!sum_ranks(l, &x, &peak_memory, e)) return false;
    x = add_before(x, &l->options.before);
    *out = (ses_run_totals){ .seconds = ses_run_log_elapsed(l),
                             .joules = x.joules,
                             .gpu_joules = x.gpu_joules,
                             .loss_sum = l->loss_sum,
                             .loss_count = l->loss_count,
                             .has_times = true,
                             .window_sum = l->window_sum,
                             .window = l->window };
    return true;
}

bool ses_run_log_share(ses_run_log *l, ses_err *e)
{
    if (ses_comm_size(l->options.comm) == 1) return true;
    if (!sum_ranks(l, &l->energy, &l->peak_memory, e)) return false;
    l->energy = add_before(l->energy, &l->options.before);
    return true;
}

void ses_run_log_close(ses_run_log *l)
{
    if (!l->trainer || l->seconds > 0) return; /* never opened, or closed already */
    l->seconds = fmax(ses_run_log_elapsed(l), 1e-9);
    l->energy = ses_energy_meter_stop(&l->meter, l->options.energy.core_watts);
    l->peak_memory = ses_peak_memory();
    if (ses_comm_size(l->options.comm) == 1) l->energy = add_before(l->energy, &l->options.before);
    bool bad = l->file && ferror(l->file) != 0;
    if (l->file && (fclose(l->file) || bad) && !l->error.code)
        ses_fail_write(l->options.path, bad ? 0 : errno, &l->error);
    l->file = NULL;
    ses_event_file_free(l->events);
    l->events = NULL;
}

/* ---- updates ---- */

/* Writes a finished object as a line of the log or as an entry of log_history, or both; frees it. */
static bool put_entry(ses_run_log *l, ses_json_writer *j, bool line, bool history, ses_err *e)
{
    size_t n;
    ses_json_end_object(j);
    const char *text = ses_json_writer_text(j, &n, e);
    if (text && line && l->file && fprintf(l->file, "%s\n", text) < 0 && !l->error.code)
        ses_fail_write(l->options.path, errno, &l->error);
    bool ok = text != NULL;
    if (ok && history) {
        char *members = ses_strndup(text + 1, n - 2, e);
        ok = members && ses_trainer_log(l->trainer, members, e);
        ses_free(members);
    }
    ses_json_writer_free(j);
    return ok;
}

static void log_update(ses_run_log *l, const ses_step_result *s, double loss, bool history)
{
    ses_json_writer *j = ses_json_writer_new(0, NULL);
    if (!j) return; /* an entry is missing: no reason to end a run */
    ses_json_begin_object(j);
    ses_json_member_real(j, "epoch", s->epoch);
    ses_json_member_real(j, "grad_norm", s->grad_norm);
    if (!isnan(ses_trainer_kept(l->trainer))) ses_json_member_real(j, "kept", ses_trainer_kept(l->trainer));
    ses_json_member_real(j, "learning_rate", s->lr);
    ses_json_member_real(j, "loss", loss);
    ses_json_member_int(j, "step", ses_trainer_state(l->trainer)->updates);
    put_entry(l, j, !history, history, NULL);
}

static double tokens_per_second(const ses_run_log *l, double seconds)
{
    return (double)(ses_trainer_state(l->trainer)->tokens - l->first_tokens) / fmax(seconds, 1e-9);
}

static void write_update_events(ses_run_log *l, const ses_step_result *s)
{
    const ses_event_value v[] = {
        { "train/loss", s->loss },
        { "train/learning_rate", s->lr },
        { "train/grad_norm", s->grad_norm },
        { "train/epoch", s->epoch },
        { "train/tokens_per_second", tokens_per_second(l, ses_run_log_elapsed(l)) },
    };
    if (!l->error.code)
        ses_event_file_put(l->events, wall_clock(), ses_trainer_state(l->trainer)->updates, v, SES_LEN(v),
                           &l->error);
}

void ses_run_log_on_step(ses_run_log *l, const ses_step_result *s)
{
    if (!s->updated) return;
    ses_energy_meter_update(&l->meter);
    l->loss_sum += s->loss, l->loss_count++;
    if (l->file) log_update(l, s, s->loss, false);
    if (l->events) write_update_events(l, s);
    l->window_sum += s->loss;
    if (++l->window == WINDOW || ses_trainer_done(l->trainer)) {
        log_update(l, s, l->window_sum / (double)l->window, true);
        l->window = 0, l->window_sum = 0;
    }
}

/* ---- evaluations ---- */

static void write_evaluation_events(ses_run_log *l, const ses_scores *scores, double loss)
{
    int64_t at = ses_trainer_state(l->trainer)->updates;
    ses_event_value v = { "eval/loss", loss };
    if (!l->error.code && !isnan(loss)) ses_event_file_put(l->events, wall_clock(), at, &v, 1, &l->error);
    for (size_t i = 0; scores && !l->error.code && i < scores->n; i++) {
        char tag[96];
        snprintf(tag, sizeof tag, "eval/%s", scores->item[i].name);
        v = (ses_event_value){ tag, scores->item[i].value };
        ses_event_file_put(l->events, wall_clock(), at, &v, 1, &l->error);
    }
}

bool ses_run_log_on_evaluation(ses_run_log *l, const ses_scores *scores, double loss, ses_err *e)
{
    ses_json_writer *j = ses_json_writer_new(0, e);
    if (!j) return false;
    ses_json_begin_object(j);
    ses_json_member_real(j, "epoch", ses_trainer_epoch(l->trainer));
    for (size_t i = 0; scores && i < scores->n; i++) {
        char key[96];
        snprintf(key, sizeof key, "eval_%s", scores->item[i].name);
        ses_json_member_real(j, key, scores->item[i].value);
    }
    double known;
    if (!scores || !ses_scores_find(scores, "loss", &known)) ses_json_member_real(j, "eval_loss", loss);
    double flops = ses_trainer_state(l->trainer)->flops;
    if (flops > 0) ses_json_member_real(j, "total_flos", flops);
    ses_json_member_int(j, "step", ses_trainer_state(l->trainer)->updates);
    bool ok = put_entry(l, j, true, true, e);
    if (l->events) write_evaluation_events(l, scores, loss);
    return ok;
}

/* ---- figures ---- */

double ses_run_log_train_loss(const ses_run_log *l)
{
    return l->loss_count ? l->loss_sum / (double)l->loss_count : NAN;
}

ses_training_stats ses_run_log_stats(const ses_run_log *l)
{
    if (!l->trainer) return (ses_training_stats){ .train_loss = NAN, .price = NAN };
    const ses_train_state *at = ses_trainer_state(l->trainer);
    ses_training_stats s = { .seconds = l->seconds,
                             .train_loss = ses_run_log_train_loss(l),
                             .first_update = l->first_update,
                             .updates = at->updates - l->first_update,
                             .sequences = at->sequences - l->first_sequences,
                             .tokens = at->tokens - l->first_tokens,
                             .joules = l->energy.joules,
                             .gpu_joules = l->energy.gpu_joules,
                             .energy_is_measured = l->energy.measured,
                             .flops = at->flops,
                             .price = ses_energy_price(&l->energy, &l->options.energy, l->seconds) };
    snprintf(s.energy_source, sizeof s.energy_source, "%s", l->energy.source);
    return s;
}

void ses_run_log_put_results(const ses_run_log *l, ses_json_writer *out)
{
    if (!l->trainer) return;
    const ses_train_state *at = ses_trainer_state(l->trainer);
    ses_json_member_real(out, "epoch", ses_trainer_epoch(l->trainer));
    ses_json_member_real(out, "train_loss", ses_run_log_train_loss(l));
    ses_json_member_real(out, "train_runtime", l->seconds);
    ses_json_member_real(out, "train_samples_per_second",
                         (double)(at->sequences - l->first_sequences) / l->seconds);
    ses_json_member_real(out, "train_steps_per_second", (double)(at->updates - l->first_update) / l->seconds);
    ses_json_member_real(out, "train_tokens_per_second", tokens_per_second(l, l->seconds));
    ses_json_member_real(out, "train_flops", at->flops);
    ses_energy_put_results(&l->energy, &l->options.energy, l->seconds, out);
    ses_json_member_int(out, "train_peak_memory_bytes",
                        (int64_t)(l->peak_memory ? l->peak_memory : ses_peak_memory()));
    if (l->options.lanes > 1) {
        ses_json_member_int(out, "train_ranks", ses_comm_size(l->options.comm));
        ses_json_member_int(out, "train_lanes", l->options.lanes);
    }
    if (l->resumed_update) ses_json_member_int(out, "train_resumed_step", l->resumed_update);
}

void ses_run_log_put_card(const ses_run_log *l, ses_buf *b, void (*put_cell)(ses_buf *b, const char *s))
{
    char energy[SES_ENERGY_TEXT], flops[SES_NUMBER_TEXT];
    double price = ses_energy_price(&l->energy, &l->options.energy, l->seconds);
    ses_buf_appendf(b, "| time | %.1f s |\n", l->seconds);
    if (l->trainer && ses_trainer_state(l->trainer)->flops > 0)
        ses_buf_appendf(b, "| FLOPs | %s |\n", ses_flops_text(flops, ses_trainer_state(l->trainer)->flops));
    ses_buf_puts(b, "| energy | ");
    put_cell(b, ses_energy_text(energy, &l->energy, &l->options.energy));
    ses_buf_puts(b, " |\n");
    if (!isnan(price)) ses_buf_appendf(b, "| price | %.4g |\n", price);
}
