/* What a pretraining run leaves in its folder, and what it says at the end. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "command_text.h"
#include "loss_curve_svg.h"
#include "pretrain_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- how long it is ---- */

static bool write_json(const char *dir, const char *name, ses_json_writer *w, bool overwrite, ses_err *e)
{
    size_t n;
    char *path = ses_path_join(dir, name, e);
    const char *text = path ? ses_json_writer_text(w, &n, e) : NULL;
    bool ok = text && ses_file_write(path, text, n, overwrite, e);
    ses_free(path);
    return ok;
}

bool ses_pretrain_remember(const ses_pretrain *p, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_int(w, "updates", ses_trainer_total_updates(p->trainer));
    ses_json_end_object(w);
    bool ok = write_json(p->a->output, SES_RUN_PLAN, w, true, e);
    ses_json_writer_free(w);
    return ok;
}

bool ses_pretrain_recall(ses_pretrain *p, ses_err *e)
{
    if (!p->a->resume || !p->a->max_time) return true; /* else the options say it */
    char *path = ses_path_join(p->a->output, SES_RUN_PLAN, e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) {
        ses_json_doc *d = ses_json_load(path, 1 << 16, e);
        ok = d && (ses_json_int(ses_json_get(ses_json_root(d), "updates"), &p->updates) ||
                   ses_fail(e, SES_EFORMAT, "%s: says no number of updates", path));
        ses_json_free(d);
    }
    ses_free(path);
    return ok;
}

/* ---- results ---- */

static void put_train(const ses_pretrain *p, ses_json_writer *w)
{
    ses_run_log_put_results(&p->run_log, w);
    ses_json_member_int(w, "train_tokens", ses_trainer_state(p->trainer)->tokens);
}

static void put_eval(const ses_pretrain *p, ses_json_writer *w)
{
    if (!p->scores.n) return;
    ses_json_member_real(w, "eval_loss", p->eval_loss);
    for (size_t i = 0; i < p->scores.n; i++) {
        char key[80];
        snprintf(key, sizeof key, "eval_%s", p->scores.item[i].name);
        ses_json_member_real(w, key, p->scores.item[i].value);
    }
    for (size_t i = 0; i < p->aim->n_primary; i++) {
        char key[80];
        snprintf(key, sizeof key, "eval_%s_by_frequency", ses_pretrain_way(p, i));
        if (!isnan(p->by_frequency[i])) ses_json_member_real(w, key, p->by_frequency[i]);
    }
}

static bool write_results(const ses_pretrain *p, const char *dir, const char *name, bool train, bool eval,
                          ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(4, e);
    if (!w) return false;
    ses_json_begin_object(w);
    if (train) put_train(p, w);
    if (eval) put_eval(p, w);
    ses_json_end_object(w);
    bool ok = write_json(dir, name, w, false, e);
    ses_json_writer_free(w);
    return ok;
}

/* ---- files ---- */

/* For the reference, which looks up the special tokens' names there. */
static bool write_tokenizer_config(const ses_pretrain *p, const char *dir, ses_err *e)
{
    const ses_special_tokens *x = p->lexicon;
    int32_t unknown = ses_tokenizer_token_to_id(p->tokenizer, "[UNK]", 5);
    if (unknown < 0) unknown = ses_tokenizer_token_to_id(p->tokenizer, "<unk>", 5);
    const struct {
        const char *key;
        int32_t id;
    } role[] = { { "mask_token", x->mask }, { "cls_token", x->cls }, { "sep_token", x->sep },
                 { "bos_token", x->bos },   { "eos_token", x->eos }, { "pad_token", x->pad },
                 { "unk_token", unknown } };
    char *path = ses_path_join(dir, "tokenizer_config.json", e);
    bool there = path && ses_path_exists(path);
    ses_free(path);
    if (there || !path) return there;
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "tokenizer_class", "PreTrainedTokenizerFast");
    int64_t most = ses_model_max_tokens(p->model);
    if (most > 0 && most < 1 << 20) ses_json_member_int(w, "model_max_length", most);
    for (size_t i = 0; i < SES_LEN(role); i++) {
        size_t n;
        const char *s = role[i].id >= 0 ? ses_tokenizer_id_to_token(p->tokenizer, role[i].id, &n) : NULL;
        if (s) ses_json_put_key(w, role[i].key), ses_json_put_stringn(w, s, n);
    }
    ses_json_end_object(w);
    bool ok = write_json(dir, "tokenizer_config.json", w, false, e);
    ses_json_writer_free(w);
    return ok;
}

static bool write_card(const ses_pretrain *p, const char *dir, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    const ses_train_state *at = ses_trainer_state(p->trainer);
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "---\nlibrary_name: transformers\ntags:\n- sesame\n---\n\n# %s\n\n",
                    ses_path_name_of(a->output).s);
    ses_buf_appendf(&b, "%s, pretrained with the objective %s.\n\n| | |\n|---|---|\n",
                    ses_model_class_name(p->model), a->objective);
    ses_buf_appendf(&b, "| begun with | %s |\n", a->model ? ses_path_name_of(a->model).s : "random weights");
    for (size_t i = 0; i < p->n_parts; i++) {
        const ses_corpus_info *f = ses_corpus_info_of(p->corpus[i]);
        ses_buf_appendf(&b,
                        "| text | %s: %" PRId64 " tokens, %" PRId64 " documents, %" PRId64 " held out |\n",
                        ses_path_name_of(a->corpus.item[i]).s, f->tokens, f->documents, f->held_out);
    }
    ses_buf_appendf(
        &b, "| trained | %" PRId64 " updates of %" PRId64 ", %" PRId64 " tokens in sequences of %s |\n",
        at->updates, ses_trainer_total_updates(p->trainer), at->tokens, a->length);
    ses_buf_appendf(
        &b, "| optimizer | %s, rate %g, %s, warm-up %g, decay %g, clip %g |\n| seed | %" PRId64 " |\n",
        ses_optim_name((size_t)a->optimizer, NULL), a->lr, ses_schedule_name((size_t)a->schedule, NULL),
        a->warmup, a->decay, a->clip, a->seed);
    if (p->scores.n) ses_buf_puts(&b, "\nOn the documents held out:\n\n| score | value |\n|---|---|\n");
    for (size_t i = 0; i < p->scores.n; i++)
        ses_buf_appendf(&b, "| %s | %.4f |\n", p->scores.item[i].name, p->scores.item[i].value);
    char *path = ses_path_join(dir, "README.md", e);
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, false, e);
    ses_free(path);
    ses_buf_free(&b);
    return ok;
}

static bool write_run(const ses_pretrain *p, const char *dir, ses_err *e)
{
    ses_command_text text;
    if (!ses_command_text_make(&ses_command_pretrain, p->a, &text, e)) return false;
    ses_run_info info = { .command = text.line,
                          .options = text.options,
                          .model = p->model,
                          .metric = "loss",
                          .lower_is_better = true };
    bool ok = ses_run_info_write(&info, dir, e);
    ses_command_text_free(&text);
    return ok;
}

static bool write_curve(const ses_pretrain *p, const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, "curve.svg", e);
    bool ok = path && ses_loss_curve_svg(p->log, path, ses_path_name_of(p->a->output).s, e);
    ses_free(path);
    return ok;
}

static bool write_all(void *ctx, const char *dir, ses_err *e)
{
    ses_pretrain *p = ctx;
    const char *from = p->a->tokenizer ? p->a->tokenizer : p->a->model;
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_model_save(p->model, dir, &(ses_save_options){ .dtype = SES_F32 }, e) &&
              ses_train_folder_tokenizer(from, p->tokenizer, dir, e) && write_tokenizer_config(p, dir, e) &&
              ses_trainer_write_state(p->trainer, state, false, e) &&
              write_results(p, dir, "train_results.json", true, false, e) &&
              (!p->scores.n || write_results(p, dir, "eval_results.json", false, true, e)) &&
              write_results(p, dir, "all_results.json", true, true, e) && write_card(p, dir, e) &&
              write_run(p, dir, e) && write_curve(p, dir, e);
    ses_free(state);
    return ok;
}

bool ses_pretrain_write(ses_pretrain *p, ses_err *e)
{
    if (!ses_train_folder_write(p->a->output, write_all, p, e)) return false;
    if (!p->generator) return true;
    char *dir = ses_path_join(p->a->output, "generator", e);
    bool ok = dir && ses_model_save(p->generator, dir,
                                    &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, e);
    ses_free(dir);
    return ok;
}

/* ---- the end ---- */

void ses_pretrain_summary(const ses_pretrain *p, const ses_call *c, ses_run_end end)
{
    const ses_term *t = &c->out;
    if (p->a->shared.json) return;
    ses_show_line(t, "Model", "%s: %s", p->a->output, ses_model_class_name(p->model));
    for (size_t i = 0; i < p->scores.n; i++)
        ses_show_line(t, i ? "" : "Held out", "%s %.4f", p->scores.item[i].name, p->scores.item[i].value);
    for (size_t i = 0; i < p->aim->n_primary; i++)
        if (!isnan(p->by_frequency[i]))
            ses_show_line(t, i ? "" : "Frequency", "alone would give %s_loss %.4f", ses_pretrain_way(p, i),
                          p->by_frequency[i]);
    ses_training_stats stats = ses_run_log_stats(&p->run_log);
    ses_train_monitor_show_summary(&p->monitor, p->trainer, &stats, &p->a->energy, t, end);
    ses_show_line(t, "Curve", "%s/curve.svg", p->a->output);
}

bool ses_pretrain_print(const ses_pretrain *p, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", p->a->output);
    put_train(p, w);
    put_eval(p, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}
