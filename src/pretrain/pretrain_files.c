/* The output folder of a pretraining run: the plan, the final model and its files. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "hub/card.h"
#include "hub/hub_name.h"
#include "pretrain_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t MAX_UPDATES = 1000000000000; /* as option --steps */

/* ---- the plan ---- */

bool ses_pretrain_save_plan(const ses_pretrain *p, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "updates", ses_trainer_total_updates(p->trainer));
    ses_json_end_object(w);
    return ses_json_writer_save(w, p->o.run.output, SES_RUN_PLAN, true, e);
}

bool ses_pretrain_load_plan(ses_pretrain *p, ses_err *e)
{
    if (!p->o.run.resume || !(p->o.max_seconds > 0) || !p->o.run.output) return true;
    char *path = ses_path_join(p->o.run.output, SES_RUN_PLAN, e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) {
        ses_json_doc *d = ses_json_load(path, 1 << 16, e);
        ok = d && ((ses_json_int(ses_json_get(ses_json_root(d), "updates"), &p->updates) && p->updates > 0 &&
                    p->updates <= MAX_UPDATES) ||
                   ses_fail(e, SES_EFORMAT, "%s: expected a number \"updates\" from 1 to %" PRId64, path,
                            MAX_UPDATES));
        ses_json_free(d);
    }
    ses_free(path);
    return ok;
}

/* ---- results ---- */

const char *ses_pretrain_loss_name(const ses_pretrain *p, size_t primary)
{
    const ses_objective *o = p->objectives->item[primary].objective;
    return o->needs & SES_NEEDS_GENERATOR ? "generator" : o->name;
}

static void put_train(const ses_pretrain *p, ses_json_writer *w)
{
    ses_run_log_put_results(&p->run_log, w);
    if (p->trainer) ses_json_member_int(w, "train_tokens", ses_trainer_state(p->trainer)->tokens);
    if (p->n_shortened_words) ses_json_member_int(w, "train_shortened_words", p->n_shortened_words);
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
    for (size_t i = 0; i < p->objectives->n_primary; i++) {
        char key[80];
        snprintf(key, sizeof key, "eval_%s_by_frequency", ses_pretrain_loss_name(p, i));
        if (!isnan(p->unigram_loss[i])) ses_json_member_real(w, key, p->unigram_loss[i]);
    }
}

void ses_pretrain_put_results(const ses_pretrain *p, ses_json_writer *w)
{
    put_train(p, w);
    put_eval(p, w);
}

static bool write_results(const ses_pretrain *p, const char *dir, const char *name, bool train, bool eval,
                          ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(4, e);
    ses_json_begin_object(w);
    if (train) put_train(p, w);
    if (eval) put_eval(p, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, name, false, e);
}

/* ---- files ---- */

/* transformers reads the names of the special tokens from tokenizer_config.json. */
static bool write_tokenizer_config(const ses_pretrain *p, const char *dir, ses_err *e)
{
    const ses_special_tokens *x = p->special_tokens;
    int32_t unknown = ses_tokenizer_token_to_id(p->tokenizer, "[UNK]", 5);
    if (unknown < 0) unknown = ses_tokenizer_token_to_id(p->tokenizer, "<unk>", 5);
    const struct {
        const char *key;
        int32_t id;
    } role[] = { { "mask_token", x->mask }, { "cls_token", x->cls }, { "sep_token", x->sep },
                 { "bos_token", x->bos },   { "eos_token", x->eos }, { "pad_token", x->pad },
                 { "unk_token", unknown } };
    char *path = ses_path_join(dir, "tokenizer_config.json", e);
    bool exists = path && ses_path_exists(path);
    ses_free(path);
    if (exists || !path) return exists;
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "tokenizer_class", "PreTrainedTokenizerFast");
    int64_t max_tokens = ses_model_max_tokens(p->model);
    if (max_tokens > 0 && max_tokens < 1 << 20) ses_json_member_int(w, "model_max_length", max_tokens);
    for (size_t i = 0; i < SES_LEN(role); i++) {
        size_t n;
        const char *s = role[i].id >= 0 ? ses_tokenizer_id_to_token(p->tokenizer, role[i].id, &n) : NULL;
        if (s) ses_json_put_key(w, role[i].key), ses_json_put_stringn(w, s, n);
    }
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, "tokenizer_config.json", false, e);
}

/* README.md, the model card. */
static bool write_card(const ses_pretrain *p, const char *dir, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    const ses_train_state *at = ses_trainer_state(p->trainer);
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "---\nlibrary_name: transformers\ntags:\n- sesame\n---\n\n# %s\n\n",
                    ses_path_name_of(opt->run.output).s);
    ses_buf_appendf(&b, "%s, pretrained with the objective %s.\n\n| | |\n|---|---|\n",
                    ses_model_class_name(p->model), opt->objectives);
    ses_buf_appendf(&b, "| begun with | %s |\n",
                    p->model_dir ? ses_model_label_of(p->model_dir).s : "random weights");
    for (size_t i = 0; i < p->n_parts; i++) {
        const ses_corpus_info *f = ses_corpus_info_of(p->corpus[i]);
        ses_buf_appendf(&b,
                        "| text | %s: %" PRId64 " tokens, %" PRId64 " documents, %" PRId64 " held out |\n",
                        ses_path_name_of(opt->corpora[i]).s, f->tokens, f->documents, f->held_out);
    }
    ses_buf_appendf(
        &b, "| trained | %" PRId64 " updates of %" PRId64 ", %" PRId64 " tokens in sequences of %s |\n",
        at->updates, ses_trainer_total_updates(p->trainer), at->tokens, opt->lengths);
    ses_buf_appendf(
        &b, "| optimizer | %s, rate %g, %s, warm-up %g, decay %g, clip %g |\n| seed | %" PRId64 " |\n",
        opt->run.optimizer, opt->run.lr, opt->run.schedule, opt->run.warmup, opt->run.weight_decay,
        opt->run.max_grad_norm, opt->run.seed);
    ses_run_log_put_card(&p->run_log, &b, ses_card_put_cell);
    if (p->scores.n) ses_buf_puts(&b, "\nOn the documents held out:\n\n| score | value |\n|---|---|\n");
    for (size_t i = 0; i < p->scores.n; i++)
        ses_buf_appendf(&b, "| %s | %.4f |\n", p->scores.item[i].name, p->scores.item[i].value);
    char *path = ses_path_join(dir, "README.md", e);
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, false, e);
    ses_free(path);
    ses_buf_free(&b);
    return ok;
}

static bool write_run_info(const ses_pretrain *p, const ses_run_totals *totals, const char *dir, ses_err *e)
{
    ses_run_info info = { .command = p->o.command,
                          .options = p->o.command_options,
                          .model = p->model,
                          .metric = "loss",
                          .lower_is_better = true,
                          .totals = totals };
    return ses_run_info_write(&info, dir, e);
}

bool ses_pretrain_add_run_info(void *pretrain, const char *dir, ses_err *e)
{
    const ses_pretrain *p = pretrain;
    ses_run_totals totals;
    if (!ses_run_log_totals(&p->run_log, &totals, e)) return false;
    return !dir || (write_run_info(p, &totals, dir, e) &&
                    ses_run_times_add(p->o.run.output, ses_trainer_state(p->trainer), &totals,
                                      ses_comm_size(p->o.run.comm), e));
}

static bool write_files(void *ctx, const char *dir, ses_err *e)
{
    ses_pretrain *p = ctx;
    const char *from = p->o.tokenizer ? p->o.tokenizer : p->model_dir;
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_model_save(p->model, dir, &(ses_save_options){ .dtype = SES_F32 }, e) &&
              ses_train_folder_tokenizer(from, p->tokenizer, dir, e) && write_tokenizer_config(p, dir, e) &&
              ses_trainer_write_state(p->trainer, state, false, e) &&
              write_results(p, dir, "train_results.json", true, false, e) &&
              (!p->scores.n || write_results(p, dir, "eval_results.json", false, true, e)) &&
              write_results(p, dir, "all_results.json", true, true, e) && write_card(p, dir, e) &&
              write_run_info(p, NULL, dir, e) && (!p->o.add_files || p->o.add_files(p->o.ctx, dir, e));
    ses_free(state);
    return ok;
}

bool ses_pretrain_write(ses_pretrain *p, ses_err *e)
{
    if (!ses_train_folder_write(p->o.run.output, write_files, p, e)) return false;
    if (!p->generator) return true;
    char *dir = ses_path_join(p->o.run.output, "generator", e);
    bool ok = dir && ses_model_save(p->generator, dir,
                                    &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, e);
    ses_free(dir);
    return ok;
}
