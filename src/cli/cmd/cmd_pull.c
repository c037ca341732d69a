/* pull: downloads a model from the Hugging Face hub into its cache. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "hub/hub_pull.h"

#include <string.h>

typedef struct args {
    bool dry_run, json;
    int64_t parallel;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, dry_run, "dry-run", "list the files and their sizes, download nothing"),
    SES_OPT_INT(args, parallel, "parallel", "4", 1, 32, "files at a time", .value = "N"),
    SES_OPT_JSON(args, json),
};

typedef struct pull_job {
    const ses_call *call;
    ses_progress line;
    bool quiet; /* no notes about retries */
} pull_job;

static bool on_progress(void *ctx, uint64_t done, const char *note)
{
    pull_job *j = ctx;
    if (note && !j->quiet) {
        ses_progress_end(&j->line);
        fputs("sesame: ", stderr);
        ses_put_escaped(stderr, note);
        putc('\n', stderr);
    }
    if (j->line.total) ses_progress_show(&j->line, (int64_t)done);
    return !ses_train_monitor_should_stop();
}

/* ---- output ---- */

static const char *state_of(const ses_hub_pull *p, size_t i)
{
    uint64_t have = ses_hub_pull_have(p, i);
    return have == ses_hub_pull_files(p)->item[i].size ? "cached" : have ? "partial" : "missing";
}

static bool print_json(const ses_hub_pull *p, const ses_hub_name *name, bool dry_run, ses_err *e)
{
    const ses_hub_files *f = ses_hub_pull_files(p);
    uint64_t have, total = ses_hub_pull_total(p, &have);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model", name->id);
    ses_json_member_string(w, "revision", name->revision);
    ses_json_member_string(w, "commit", f->commit);
    ses_json_member_string(w, "path", ses_hub_pull_dir(p));
    ses_json_member_bool(w, "dry_run", dry_run);
    ses_json_member_uint(w, "bytes", total);
    ses_json_member_uint(w, dry_run ? "to_download" : "downloaded", total - have);
    ses_json_member_array(w, "files");
    for (size_t i = 0; i < f->n; i++) {
        if (f->item[i].use == SES_HUB_SKIPPED) continue;
        ses_json_begin_object(w);
        ses_json_member_string(w, "path", f->item[i].path);
        ses_json_member_uint(w, "bytes", f->item[i].size);
        ses_json_member_string(w, *f->item[i].sha256 ? "sha256" : "git_sha1",
                               *f->item[i].sha256 ? f->item[i].sha256 : f->item[i].sha1);
        if (dry_run) ses_json_member_string(w, "state", state_of(p, i));
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool show_plan(const ses_call *c, const ses_hub_pull *p, ses_err *e)
{
    char size[SES_NUMBER_TEXT], rest[SES_NUMBER_TEXT];
    const ses_hub_files *f = ses_hub_pull_files(p);
    uint64_t have, total = ses_hub_pull_total(p, &have), skipped = 0;
    ses_text_table *t = ses_text_table_new("File|>Size|In the cache", e);
    for (size_t i = 0; t && i < f->n; i++) {
        skipped += f->item[i].use == SES_HUB_SKIPPED;
        if (f->item[i].use == SES_HUB_SKIPPED) continue;
        ses_text_table_cell(t, "%s", f->item[i].path);
        ses_text_table_cell(t, "%s", ses_bytes_text(size, f->item[i].size));
        ses_text_table_cell(t, "%s",
                            !strcmp(state_of(p, i), "cached")    ? "yes"
                            : !strcmp(state_of(p, i), "partial") ? "in part"
                                                                 : "no");
    }
    bool ok = t && ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    if (ok)
        printf("\n%s in all, %s to download; other files, not needed: %llu.\n", ses_bytes_text(size, total),
               ses_bytes_text(rest, total - have), (unsigned long long)skipped);
    return ok;
}

static void show_result(const ses_call *c, const ses_hub_pull *p, const ses_hub_name *name, uint64_t had)
{
    char size[SES_NUMBER_TEXT], got[SES_NUMBER_TEXT];
    uint64_t have, total = ses_hub_pull_total(p, &have);
    ses_show_line(&c->out, "Model", "%s, revision %s", name->id, name->revision);
    ses_show_line(&c->out, "Commit", "%s", ses_hub_pull_files(p)->commit);
    ses_show_line(&c->out, "Size", "%s, %s downloaded", ses_bytes_text(size, total),
                  ses_bytes_text(got, total - had));
    ses_show_line(&c->out, "Folder", "%s", ses_hub_pull_dir(p));
    bool main = !strcmp(name->revision, "main");
    ses_show_line(&c->out, "Use", "sesame info %s%s%s", name->id, main ? "" : "@",
                  main ? "" : name->revision);
}

static bool download(ses_call *c, ses_hub_pull *p, pull_job *j, const ses_hub_env *env, ses_err *e)
{
    uint64_t have, total = ses_hub_pull_total(p, &have);
    j->line = ses_progress_start(stderr, &c->err, c->quiet || env->no_progress, "download", (int64_t)total);
    bool ok = ses_hub_pull_run(p, e);
    ses_progress_end(&j->line);
    if (!ok && !e->code) fputs("Stopped; the same command continues the download.\n", stderr);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_hub_name name;
    ses_hub_env env;
    if (!ses_hub_name_parse(c->operands[0], &name, e)) {
        e->code = SES_EUSAGE;
        return false;
    }
    if (!ses_hub_env_read(&env, e)) return false;
    pull_job j = { .call = c, .quiet = c->quiet };
    ses_hub_pull_options o = { .parallel = (int)a->parallel, .on_progress = on_progress, .ctx = &j };
    ses_train_monitor_catch_signals();
    ses_hub_pull *p = ses_hub_pull_open(&name, &env, &o, e);
    uint64_t have = 0;
    if (p) ses_hub_pull_total(p, &have);
    bool ok = p && (a->dry_run || download(c, p, &j, &env, e));
    if (ok && a->json)
        ok = print_json(p, &name, a->dry_run, e);
    else if (ok && a->dry_run)
        ok = show_plan(c, p, e);
    else if (ok && !c->quiet)
        show_result(c, p, &name, have);
    ses_hub_pull_free(p);
    ses_hub_env_free(&env);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame pull google-bert/bert-base-uncased",
      "download a model; 'sesame info google-bert/bert-base-uncased' uses it" },
    { "sesame pull ORG/NAME@v1.0 --dry-run", "what a tag needs, without downloading it" },
    { "HF_TOKEN=$(cat token) sesame pull ORG/PRIVATE", "a private or gated model" },
    { 0 },
};

const ses_command ses_command_pull = {
    .name = "pull",
    .usage = "ORG/NAME[@REVISION]",
    .summary = "download a model from the Hugging Face hub",
    .description =
        "Downloads a model into the cache of the Hugging Face libraries, where every command finds it by its "
        "name, ORG/NAME. No other command opens a connection. REVISION is a branch, a tag or a commit; "
        "default: "
        "main.\n\n"
        "Only files that Sesame reads are downloaded: configs, tokenizers, the model card, and one format of "
        "weights (safetensors, else PyTorch, else TensorFlow checkpoints). Interrupted downloads continue. "
        "Each "
        "file is compared with its hash before it gets its name. transformers and huggingface_hub use the "
        "same "
        "files, also at the same time.\n\n"
        "Environment: HF_HOME and HF_HUB_CACHE set the cache, HF_ENDPOINT the server, HF_TOKEN, "
        "HF_TOKEN_PATH or "
        "$HF_HOME/token the token; it is sent to that server only. HF_HUB_OFFLINE=1 forbids connections. "
        "Proxies "
        "are set as for curl (https_proxy). SSL_CERT_FILE names the certificates of other authorities. Needs "
        "libcurl.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
