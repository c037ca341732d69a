/* `sesame run --json` prints the outputs of transformers for the golden cases, and `info` estimates
 * activation memory close to the use of a forward pass. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/alloc.h"
#include "cli/command.h"
#include "cli/inspect/model_info.h"
#include "cli/inspect/run_model.h"
#include "sesame/safetensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

extern const ses_command ses_command_run;

/* Calls a command with argv as typed after its name; stdout goes to the file. */
static bool call(const ses_command *cmd, char **argv, const char *out, ses_err *e)
{
    ses_call c = { .operands = argv, .out = { .width = 80 }, .err = { .width = 80 }, .quiet = true };
    void *args = ses_alloc(cmd->args_size, e);
    const ses_opt_group group = { cmd->opt, cmd->n_opt, args };
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    c.args = args;
    bool ok = ses_options_parse(&group, 1, argv, false, &c.n_operands, e) && cmd->run(&c, e);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(fd);
    ses_options_free(&group, 1);
    ses_free(args);
    return ok;
}

/* A padded tensor of the golden file, as doubles. */
typedef struct padded {
    const ses_tensor_entry *x;
    double *v;
} padded;

static padded load(const ses_safetensors *golden, const char *name)
{
    padded p = { ses_safetensors_find(golden, name), NULL };
    if (!p.x) return p;
    p.v = malloc((size_t)p.x->count * sizeof *p.v);
    CHECK(ses_convert(p.v, SES_F64, p.x->data, p.x->dtype, (size_t)p.x->count, NULL));
    return p;
}

typedef struct golden_case {
    ses_safetensors *golden;
    padded ids, mask, segments;
    int64_t rows, width, choices;
} golden_case;

static bool real_token(const golden_case *g, int64_t row, int64_t i)
{
    return !g->mask.v || g->mask.v[row * g->width + i] != 0;
}

/* Writes the ids as lines. false: segment ids decrease, which a line cannot express. */
static bool write_lines(const golden_case *g, const char *path)
{
    FILE *f = fopen(path, "w");
    bool ok = f != NULL;
    for (int64_t row = 0; ok && row < g->rows; row++) {
        double segment = 0;
        for (int64_t i = 0; i < g->width; i++) {
            int64_t at = row * g->width + i;
            if (!real_token(g, row, i)) continue;
            double here = g->segments.v ? g->segments.v[at] : 0;
            ok = ok && here >= segment;
            for (; segment < here; segment++) fputs(" |", f);
            fprintf(f, "%s%.0f", row % 2 ? "," : " ", g->ids.v[at]);
        }
        fputs("\n", f);
    }
    if (f) fclose(f);
    return ok;
}

/* Flattens nested arrays; returns the number of values. */
static size_t flatten(const ses_json *v, double *out, size_t n)
{
    double x;
    if (ses_json_type_of(v) != SES_JSON_ARRAY) {
        if (!ses_json_real(v, &x)) return n;
        if (out) out[n] = x;
        return n + 1;
    }
    for (size_t i = 0; i < ses_json_len(v); i++) n = flatten(ses_json_at(v, i), out, n);
    return n;
}

/* The expected values of a row of the golden file: [rows, width, ...] without padding, [rows, heads,
 * width, width] without padded pairs, [rows, ...] complete. */
static size_t expected(const golden_case *g, const padded *p, int64_t row, double *out)
{
    const ses_tensor_entry *x = p->x;
    int64_t per = x->count / x->dim[0], S = g->width;
    const double *v = p->v + row * per;
    size_t n = 0;
    if (x->rank == 4) {
        for (int64_t i = 0; i < per; i++)
            if (real_token(g, row, i / S % S) && real_token(g, row, i % S)) out[n++] = v[i];
    } else if (x->rank >= 2 && x->dim[1] == S && x->dim[0] == g->rows) {
        for (int64_t i = 0; i < per; i++)
            if (real_token(g, row, i / (per / S))) out[n++] = v[i];
    } else {
        for (int64_t i = 0; i < per; i++) out[n++] = v[i];
    }
    return n;
}

static void compare(const golden_case *g, const char *name, const ses_json *got, int64_t row,
                    const char *where)
{
    char full[64];
    snprintf(full, sizeof full, "output.%s", name);
    padded p = load(g->golden, full);
    if (!CHECK_MSG(p.x, "%s: the golden file has no %s", where, full)) return;
    double *want = malloc((size_t)p.x->count * sizeof *want), most = 1, worst = 0;
    size_t n = expected(g, &p, row, want), m = flatten(got, NULL, 0);
    double *have = malloc((m + 1) * sizeof *have);
    flatten(got, have, 0);
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n && n == m; i++) worst = fmax(worst, fabs(want[i] - have[i]));
    CHECK_MSG(n == m, "%s: %s of row %d: %zu numbers, expected %zu", where, name, (int)row, m, n);
    CHECK_MSG(worst <= 2e-5 * most, "%s: %s of row %d: off by %g", where, name, (int)row, worst);
    free(have);
    free(want);
    free(p.v);
}

static void compare_inside(const golden_case *g, const ses_json *sequence, int64_t row, const char *where)
{
    static const char *const layered[] = { "hidden_states",         "attentions",
                                           "encoder_hidden_states", "encoder_attentions",
                                           "decoder_hidden_states", "decoder_attentions",
                                           "cross_attentions" };
    int found = 0;
    for (size_t i = 0; i < SES_LEN(layered); i++) {
        const ses_json *all = ses_json_get(sequence, layered[i]);
        char name[48];
        found += ses_json_len(all) > 0;
        snprintf(name, sizeof name, "output.%s.0", layered[i]);
        if (!ses_safetensors_find(g->golden, name)) continue; /* not in the golden file */
        for (size_t l = 0; l < ses_json_len(all); l++) {
            snprintf(name, sizeof name, "%s.%zu", layered[i], l);
            compare(g, name, ses_json_at(all, l), row, where);
        }
    }
    bool attends = false;
    for (size_t i = 0; i < SES_LEN(layered); i++) {
        char name[48];
        snprintf(name, sizeof name, "output.%s.0", layered[i]);
        attends |= strstr(name, "attentions") && ses_safetensors_find(g->golden, name);
    }
    CHECK_MSG(found >= 1 + attends, "%s: no hidden states or no attentions", where);
}

static void compare_line(const golden_case *g, const ses_json *line, int64_t row, const char *where)
{
    static const char *const name[] = {
        "logits",     "prediction_logits", "seq_relationship_logits", "sop_logits",      "start_logits",
        "end_logits", "last_hidden_state", "pooler_output",           "sentence_vectors"
    };
    int found = 0;
    for (size_t i = 0; i < SES_LEN(name); i++)
        if (ses_json_get(line, name[i])) {
            compare(g, name[i], ses_json_get(line, name[i]), row, where);
            found++;
        }
    CHECK_MSG(found, "%s: no output on line %d", where, (int)row);
    if (!g->choices) compare_inside(g, line, row, where);
    for (int64_t i = 0; i < g->choices; i++)
        compare_inside(g, ses_json_at(ses_json_get(line, "sequences"), (size_t)i), row * g->choices + i,
                       where);
}

static void compare_lines(const golden_case *g, const char *path, const char *where)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    int64_t row = 0;
    FILE *f = fopen(path, "r");
    while (f && (n = getline(&text, &room, f)) > 0) {
        ses_err e = { 0 };
        ses_json_doc *d = ses_json_parse(text, (size_t)n - 1, &e);
        if (CHECK_MSG(d, "%s: line %d: %s", where, (int)row + 1, e.msg))
            compare_line(g, ses_json_root(d), row, where);
        ses_json_free(d);
        row++;
    }
    CHECK_MSG(row == (g->choices ? g->rows / g->choices : g->rows), "%s: %d lines", where, (int)row);
    free(text);
    if (f) fclose(f);
}

/* Whether a line can express the case: no permutations, no memories. */
static bool can_say(const ses_safetensors *golden)
{
    static const char *const known[] = {
        "input_ids",           "attention_mask",  "token_type_ids",       "langs",        "labels",
        "next_sentence_label", "start_positions", "sentence_order_label", "end_positions"
    };
    for (size_t i = 0; i < ses_safetensors_count(golden); i++) {
        const char *name = ses_safetensors_at(golden, i)->name;
        bool here = strncmp(name, "input.", 6) != 0;
        for (size_t k = 0; k < SES_LEN(known); k++) here |= !here && !strcmp(name + 6, known[k]);
        if (!here) return false;
    }
    return true;
}

/* Batches of one and of all sequences give identical bits, hence identical lines. */
static void check_case(const char *name, const char *tmp, bool lm)
{
    char dir[320], golden[400], ids[128], out[128], choices[16];
    snprintf(dir, sizeof dir, "tests/golden/%s", name);
    snprintf(golden, sizeof golden, "%s/golden.safetensors", dir);
    snprintf(ids, sizeof ids, "%s/ids", tmp);
    snprintf(out, sizeof out, "%s/out", tmp);
    ses_err e = { 0 };
    golden_case g = { .golden = ses_safetensors_open(golden, &e) };
    if (!CHECK_MSG(g.golden, "%s", e.msg)) return;
    if (!can_say(g.golden)) {
        ses_safetensors_free(g.golden);
        return;
    }
    g.ids = load(g.golden, "input.input_ids");
    g.mask = load(g.golden, "input.attention_mask");
    g.segments = load(g.golden, "input.token_type_ids");
    if (!g.segments.x) g.segments = load(g.golden, "input.langs"); /* XLM: language ids */
    g.width = g.ids.x->dim[g.ids.x->rank - 1];
    g.rows = g.ids.x->count / g.width;
    g.choices = g.ids.x->rank == 3 ? g.ids.x->dim[1] : 0;
    snprintf(choices, sizeof choices, "%d", (int)g.choices);
    static const char *const batch[] = { "1", "100000" };
    bool said = write_lines(&g, ids);
    if (!said) SKIP("segments that go back to 0");
    for (size_t i = 0; said && i < SES_LEN(batch); i++) {
        const char *argv[] = { dir,
                               ids,
                               "--json",
                               "--batch-tokens",
                               batch[i],
                               "--hidden-states",
                               "--attentions",
                               "--choices",
                               choices,
                               lm ? "--logits" : NULL,
                               NULL };
        CHECK_MSG(call(&ses_command_run, (char **)argv, out, &e), "%s: %s", name, e.msg);
        compare_lines(&g, out, name);
    }
    free(g.ids.v);
    free(g.mask.v);
    free(g.segments.v);
    ses_safetensors_free(g.golden);
}

/* Whether the decoder of the model has its own input. *lm: the model predicts tokens. */
static bool reads_target(const char *dir, bool *lm)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .check_only = true }, &e);
    bool reads = m && ses_model_reads_target(m);
    const ses_head *head = m ? m->class->head[0].head : NULL;
    *lm = head == &ses_head_masked_lm || head == &ses_head_causal_lm || head == &ses_head_copy_lm;
    CHECK_MSG(m, "%s", e.msg);
    ses_model_free(m);
    ses_device_free(dev);
    return reads;
}

static const char config[] =
    "{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"], \"hidden_size\": 128, "
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 2, \"intermediate_size\": 512, "
    "\"max_position_embeddings\": 512, \"vocab_size\": %d}";

/* The memory of the tape equals the estimate, except for rounding of the arena. */
static void check_estimate(int vocab)
{
    enum { T = 512 };
    char text[512];
    static int32_t ids[T];
    int32_t cu[2] = { 0, T };
    ses_err e = { 0 };
    ses_outputs out;
    snprintf(text, sizeof text, config, vocab);
    ses_json_doc *doc = ses_json_parse(text, strlen(text), &e);
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_model *m = ses_model_new(ses_json_root(doc), dev, NULL, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_batch b = { .seqs = 1, .tokens = T, .cu_seqlens = cu, .ids = ids };
    CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e), "%s", e.msg);
    double share = (double)ses_tape_bytes(t) / (double)ses_model_info_activations(m, T);
    CHECK_MSG(share > 0.8 && share < 1.5, "vocabulary %d: the tape has %.2f of the estimate", vocab, share);
    ses_tape_free(t);
    ses_model_free(m);
    ses_device_free(dev);
    ses_json_free(doc);
}

/* All cases with one stack. The decoder input of two stacks is derived from labels, which run does not
 * read. */
static void check_all(const char *tmp)
{
    DIR *d = opendir("tests/golden");
    CHECK(d);
    for (const struct dirent *x; d && (x = readdir(d)) != NULL;) {
        bool lm;
        char path[320];
        snprintf(path, sizeof path, "tests/golden/%s", x->d_name);
        if (x->d_name[0] == '.' || reads_target(path, &lm)) continue;
        check_case(x->d_name, tmp, lm);
    }
    if (d) closedir(d);
}

int main(void)
{
    char tmp[] = "/tmp/sesame-run-XXXXXX", path[64];
    if (!mkdtemp(tmp)) return 1;
    check_all(tmp);
    check_estimate(1000);
    check_estimate(30522);
    snprintf(path, sizeof path, "%s/ids", tmp);
    unlink(path);
    snprintf(path, sizeof path, "%s/out", tmp);
    unlink(path);
    rmdir(tmp);
    return check_report();
}
