/* finetune --adapt and --first: stages before the run. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "finetune_stages.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "command_text.h"
#include "finetune_command.h"
#include "finetune_inputs.h"
#include "option_setting.h"
#include "pretrain_command.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_files.h"
#include "train/checkpoint_dir.h"
#include "train/train_folder.h"
#include "train_monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_stage_args, adapt, "adapt", "FILE",
        "before the run, continue pretraining of --model on this text (a sentence or paragraph per line, "
        "blank lines between documents), with masked or causal language modeling as the model's own; "
        "kept in OUT/adapted"),
    SES_OPT_INT(ses_stage_args, adapt_steps, "adapt-steps", "0", 0, 1e9,
                "updates of --adapt; 0: one pass over the text"),
    SES_OPT_LIST(ses_stage_args, adapt_set, "adapt-set", "NAME=VALUE",
                 "an option of sesame pretrain for --adapt, e.g. lr=1e-4 or length=64"),
    SES_OPT_TEXT(
        ses_stage_args, first, "first", "FILE",
        "before the run, train on this data of an intermediate task (STILTs); kept in OUT/stage-1. Options "
        "of training apply to both unless --first-set changes them; --train-size and --shots do not"),
    SES_OPT_TEXT(ses_stage_args, first_task, "first-task", "TASK",
                 "its task; default: detected from the file", .completion = "tasks"),
    SES_OPT_TEXT(ses_stage_args, first_eval, "first-eval", "FILE", "its evaluation data"),
    SES_OPT_LIST(ses_stage_args, first_set, "first-set", "NAME=VALUE",
                 "another option of the intermediate task, e.g. epochs=1, lr=3e-5 or label=gold_label"),
};
const ses_opt_table ses_stage_option_table = { opt, SES_LEN(opt), "stages" };

/* ---- options of a stage ---- */

/* Sets options of a command from NAME=VALUE. from: the option that has the list. */
static bool apply(const ses_opt_list *list, const char *from, const ses_command *cmd, void *args, ses_err *e)
{
    ses_setting_rule r = { .from = from, .refused = "output|model", .no_lists = true };
    for (size_t i = 0; i < list->n; i++)
        if (!ses_option_setting_apply(cmd, list->item[i], &r, args, e)) return false;
    return true;
}

static bool check(const ses_finetune_args *a, ses_err *e)
{
    const ses_stage_args *s = &a->stages;
    if (!s->adapt && (s->adapt_steps || s->adapt_set.n))
        return ses_fail(e, SES_EUSAGE, "--adapt-steps and --adapt-set need --adapt FILE");
    if (!s->first && (s->first_task || s->first_eval || s->first_set.n))
        return ses_fail(e, SES_EUSAGE, "--first-task, --first-eval and --first-set need --first FILE");
    if (s->adapt && !a->s.o.model)
        return ses_fail(e, SES_EUSAGE,
                        "--adapt continues the pretraining of a model: --model DIR is required");
    if (a->s.method || a->s.o.embed)
        return ses_fail(e, SES_EUSAGE, "--adapt and --first need a model, not --%s",
                        a->s.method ? "method" : "embed");
    if (a->grid.n || a->seeds > 1)
        return ses_fail(e, SES_EUSAGE,
                        "--adapt and --first belong to one run: search with --model "
                        "OUT/adapted or OUT/stage-1 of an earlier run");
    if (!a->s.train.run.output) return ses_fail(e, SES_EUSAGE, "--adapt and --first need --output OUT");
    if (s->adapt && !ses_path_exists(s->adapt))
        return ses_fail(e, SES_EIO, "--adapt %s: No such file or directory", s->adapt);
    return true;
}

/* ---- folders ---- */

/* The options of a run in folder dir, inside an OUT that may be resumed. */
static void set_folder(ses_train_args *t, const char *dir)
{
    t->run.resume = t->run.resume && (ses_checkpoint_any(dir) || ses_train_folder_has_result(dir));
    t->run.overwrite = !t->run.resume;
    t->run.output = dir;
}

static bool is_inside(const char *path, const char *dir)
{
    char *p = path ? realpath(path, NULL) : NULL, *d = p ? realpath(dir, NULL) : NULL;
    size_t n = d ? strlen(d) : 0;
    bool inside = n && !strncmp(p, d, n) && (!p[n] || p[n] == '/');
    free(p);
    free(d);
    return inside;
}

/* Fails if a file that the run starts from would be removed. */
static bool check_overwrite(const ses_finetune_args *a, ses_err *e)
{
    const char *out = a->s.train.run.output;
    const struct {
        const char *option, *path;
    } used[] = { { "model", a->s.o.model }, { "config", a->s.o.config }, { "tokenizer", a->s.o.tokenizer } };
    for (size_t i = 0; i < SES_LEN(used); i++)
        if (is_inside(used[i].path, out))
            return ses_fail(e, SES_EUSAGE,
                            "--%s %s is in --output %s, which is replaced: name another folder",
                            used[i].option, used[i].path, out);
    return true;
}

/* The corpus of --adapt, next to the folder of that stage. Free with ses_free. */
static char *corpus_path(const char *out, ses_err *e) { return ses_path_join(out, "adapted.ids", e); }

/* Removes what an earlier run left in OUT. */
static bool clear_output(const char *out, const char *const *dirs, size_t n, ses_err *e)
{
    char *corpus = corpus_path(out, e);
    bool ok = corpus && ses_train_folder_clear(out, e) && ses_file_remove(corpus, e);
    for (size_t i = 0; ok && i < n; i++) ok = ses_dir_remove_all(dirs[i], e);
    ses_free(corpus);
    return ok;
}

/* OUT gets run.json at once, so that --resume finds the options also during a stage. */
static bool begin_output(const ses_finetune_args *a, const char *const *dirs, size_t n, ses_err *e)
{
    const ses_training_options *r = &a->s.train.run;
    if (!r->resume && (!ses_train_folder_check(r, e) || !check_overwrite(a, e))) return false;
    if (!ses_dir_make(r->output, e) || (!r->resume && !clear_output(r->output, dirs, n, e))) return false;
    ses_command_text text = { 0 };
    char *path = ses_path_join(r->output, SES_RUN_INFO, e);
    bool ok =
        path && ses_command_text_make(&ses_command_finetune, a, &text, e) &&
        (ses_path_exists(path) ||
         ses_run_info_write(&(ses_run_info){ .command = text.line, .options = text.options }, r->output, e));
    ses_free(path);
    ses_command_text_free(&text);
    return ok;
}

/* ---- finished stages ---- */

static ses_json_doc *open_info(const char *dir, ses_err *e)
{
    enum { FILE_MAX = 1 << 28 };
    char *path = ses_path_join(dir, SES_RUN_INFO, e);
    ses_json_doc *d = path ? ses_json_load_object(path, FILE_MAX, e) : NULL;
    ses_free(path);
    return d;
}

/* Fails if this command would run the finished stage in dir with other options. */
static bool check_finished(const ses_command *cmd, const void *args, const char *dir, const char *hint,
                           ses_err *e)
{
    static const char *const irrelevant = "output|resume|overwrite|corpus|threads|isa|device|json|log|"
                                          "tensorboard|core-watts|co2-per-kwh|price-per-hour|price-per-kwh|"
                                          "bootstrap|confidence|keep|save-every|lanes";
    ses_command_text text = { 0 };
    ses_json_doc *was = open_info(dir, e);
    bool ok = was && ses_command_text_make(cmd, args, &text, e) &&
              ses_settings_check(ses_json_get(ses_json_root(was), "options"), text.options, irrelevant, dir,
                                 hint, e);
    ses_command_text_free(&text);
    ses_json_free(was);
    return ok;
}

/* Fails if run.json of OUT names another text of --adapt. */
static bool check_text(const ses_finetune_args *a, ses_err *e)
{
    const char *out = a->s.train.run.output;
    ses_json_doc *d = open_info(out, e);
    const char *was =
        d ? ses_json_string(ses_json_get(ses_json_get(ses_json_root(d), "options"), "adapt"), NULL) : NULL;
    bool ok = d && (!was || !strcmp(was, a->stages.adapt) ||
                    ses_fail(e, SES_EARG, "%s: was run with adapt %s, not %s; --overwrite repeats all stages",
                             out, was, a->stages.adapt));
    ses_json_free(d);
    return ok;
}

/* ---- the stage of --adapt ---- */

static bool show_bytes(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    return !ses_train_monitor_signal();
}

/* Tokenizes the text to a corpus. */
static bool build_corpus(const ses_finetune_args *a, const char *model, const char *path, ses_err *e)
{
    ses_tokenizer_config facts;
    char *home = ses_tokenizer_home(model, NULL, e);
    ses_tokenizer *t = home ? ses_tokenizer_open(home, e) : NULL;
    bool ok = t && ses_tokenizer_config_read(&facts, home, "", NULL, t, e);
    ses_corpus_options o = { .tokenizer = t,
                             .unk_id = ok ? facts.role[SES_ROLE_UNK] : -1,
                             .files = &a->stages.adapt,
                             .n_files = 1,
                             .overwrite = true,
                             .threads = 1,
                             .progress = show_bytes };
    int64_t resumed;
    ok = ok && (ses_corpus_build(path, &o, &resumed, e) || ses_wrap(e, "--adapt"));
    ses_tokenizer_free(t);
    ses_free(home);
    return ok;
}

/* The objective that the model was pretrained with. */
static const char *own_objective(const char *model, ses_err *e)
{
    static const struct {
        const char *head, *objective;
    } known[] = { { "masked-lm", "mlm" }, { "causal-lm", "clm" } };
    ses_json_doc *config = ses_model_config_open(model, NULL, e);
    const char *found = NULL;
    for (size_t i = 0; config && !found && i < SES_LEN(known); i++) {
        ses_err ignored = { 0 };
        if (ses_model_class_for_head(ses_json_root(config), known[i].head, &ignored))
            found = known[i].objective;
    }
    if (config && !found)
        ses_fail(e, SES_EUNSUPPORTED,
                 "--adapt: %s has neither a masked nor a causal language model; name an "
                 "objective of sesame pretrain: --adapt-set objective=NAME",
                 model);
    ses_json_free(config);
    return found;
}

static bool names_objective(const ses_stage_args *s)
{
    for (size_t i = 0; i < s->adapt_set.n; i++)
        if (!strncmp(s->adapt_set.item[i], "objective=", strlen("objective="))) return true;
    return false;
}

static bool set_pretrain(const ses_finetune_args *a, const char *model, const char **corpus, const char *dir,
                         ses_pretrain_args *p, ses_err *e)
{
    const ses_command *cmd = &ses_command_pretrain;
    const char *objective = names_objective(&a->stages) ? "mlm" : own_objective(model, e);
    *p = (ses_pretrain_args){ 0 };
    if (!objective || !ses_opt_defaults(cmd->opt, cmd->n_opt, p, e)) return false;
    p->compute = a->compute;
    p->compute.json = false;
    p->s.options.model = model;
    p->s.options.objectives = objective;
    p->s.corpora = (ses_opt_list){ corpus, 1 };
    p->s.train.run.lr = a->s.train.run.lr;
    p->s.train.run.seed = a->s.train.run.seed;
    p->s.train.run.steps = a->stages.adapt_steps;
    p->s.train.run.resume = a->s.train.run.resume;
    set_folder(&p->s.train, dir);
    return apply(&a->stages.adapt_set, "adapt-set", cmd, p, e);
}

static bool run_adapt(ses_call *c, const ses_finetune_args *a, const char *model, const char *dir, bool done,
                      ses_err *e)
{
    ses_pretrain_args p;
    ses_call call = { .command = &ses_command_pretrain,
                      .args = &p,
                      .out = c->out,
                      .err = c->err,
                      .quiet = c->quiet || a->compute.json };
    char *corpus = corpus_path(a->s.train.run.output, e);
    const char *list[] = { corpus };
    bool ok = corpus && check_text(a, e) && set_pretrain(a, model, list, dir, &p, e);
    if (ok && done)
        ok = check_finished(&ses_command_pretrain, &p, dir,
                            "--adapt-set can keep it, --overwrite repeats all stages", e);
    else if (ok)
        ok = (ses_path_exists(corpus) || build_corpus(a, model, corpus, e)) &&
             ses_pretrain_command(&call, e) && ses_file_remove(corpus, e);
    ses_free(corpus);
    return ok;
}

/* ---- the stage of --first ---- */

/* The options of the stage: its own data with the options of training. */
static bool set_first(const ses_finetune_args *a, const char *start, const char *dir, ses_finetune_args *out,
                      ses_err *e)
{
    ses_finetune_args first = *a;
    ses_finetune_data_set d = { 0 };
    if (!ses_opt_defaults(ses_further_set_table.opt, ses_further_set_table.n, &d, e)) return false;
    first.stages = (ses_stage_args){ 0 };
    first.start = start;
    first.s.o.train = a->stages.first;
    first.s.o.eval = a->stages.first_eval;
    first.s.o.train_size = first.s.o.shots = 0; /* both are for --train */
    first.s.o.data = d.data;
    first.s.o.data.task = a->stages.first_task;
    first.s.o.task = d.task;
    first.s.o.metric = first.s.o.unlabeled = NULL;
    first.s.also = first.s.teachers = (ses_opt_list){ 0 };
    first.s.train.run.log = first.s.train.run.tensorboard = NULL;
    set_folder(&first.s.train, dir);
    if (!apply(&a->stages.first_set, "first-set", &ses_command_finetune, &first, e)) return false;
    *out = first;
    return true;
}

static bool run_first(ses_call *c, const ses_finetune_args *a, const char *start, const char *dir, bool done,
                      ses_err *e)
{
    ses_finetune_args first;
    bool stopped = false;
    if (!set_first(a, start, dir, &first, e)) return false;
    if (done)
        return check_finished(&ses_command_finetune, &first, dir,
                              "--first-set can keep it, --overwrite repeats all stages", e);
    return ses_finetune_one(c, &first, true, &stopped, e) && !stopped;
}

/* ---- all stages ---- */

/* done: the stage is finished; its options are compared. */
typedef bool stage_fn(ses_call *c, const ses_finetune_args *a, const char *start, const char *dir, bool done,
                      ses_err *e);

static bool run_all(ses_call *c, const ses_finetune_args *a, const char *const dir[2], ses_err *e)
{
    static stage_fn *const stage[] = { run_adapt, run_first };
    const bool wanted[] = { a->stages.adapt != NULL, a->stages.first != NULL };
    const char *start = NULL; /* --model or --config */
    bool stopped = false;
    for (size_t i = 0; i < SES_LEN(stage); i++) {
        if (!wanted[i]) continue;
        bool complete = ses_train_folder_has_result(dir[i]);
        if (!c->quiet) fprintf(stderr, "%s: %s\n", dir[i], complete ? "complete" : "starts");
        if (!stage[i](c, a, i || !a->s.o.model ? start : a->s.o.model, dir[i], complete, e))
            return complete || e->code == SES_OK ? false : ses_wrap(e, "%s", dir[i]);
        start = dir[i];
    }
    ses_finetune_args last = *a;
    last.start = start;
    set_folder(&last.s.train, a->s.train.run.output);
    return ses_finetune_one(c, &last, false, &stopped, e) && !stopped;
}

/* The data and options of all stages that are not finished. */
static bool check_inputs(const ses_finetune_args *a, const char *const dir[2], ses_err *e)
{
    ses_row_overlap overlap;
    ses_finetune_args first;
    ses_pretrain_args p;
    const char *corpus = "";
    if (!ses_finetune_check_inputs(a, &overlap, e)) return false;
    if (a->stages.adapt && !set_pretrain(a, a->s.o.model, &corpus, dir[0], &p, e)) return false;
    bool done = a->s.train.run.resume && ses_train_folder_has_result(dir[1]);
    if (!a->stages.first || done) return true;
    return (set_first(a, NULL, dir[1], &first, e) && ses_finetune_check_inputs(&first, &overlap, e)) ||
           ses_wrap(e, "--first");
}

bool ses_finetune_stages(ses_call *c, const ses_finetune_args *a, ses_err *e)
{
    if (!check(a, e)) return false;
    const char *out = a->s.train.run.output;
    char *adapted = ses_path_join(out, "adapted", e),
         *first = adapted ? ses_path_join(out, "stage-1", e) : NULL;
    const char *const dir[] = { adapted, first };
    bool ok =
        first && check_inputs(a, dir, e) && begin_output(a, dir, SES_LEN(dir), e) && run_all(c, a, dir, e);
    ses_free(adapted);
    ses_free(first);
    return ok;
}
