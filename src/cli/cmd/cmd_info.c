/* info: describes a model folder without running the model. */
#include "base/file.h"
#include "cli/compute_args.h"
#include "cli/inspect/classifier_info.h"
#include "cli/inspect/flops_info.h"
#include "cli/inspect/model_info.h"
#include "vectors/classify/classifier.h"

typedef struct args {
    bool json;
    int64_t tokens;
    bool tensors, strict, flops;
    ses_flops_args count;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, tensors, "tensors",
                 "list the tensors instead: shape, dtype, minimum, maximum, norm, NaN count; for any "
                 "architecture, safetensors or PyTorch file"),
    SES_OPT_INT(args, tokens, "tokens", "0", 0, 1 << 24,
                "sequence length of the activation memory estimate; 0: 512, or the model's maximum if lower"),
    SES_OPT_FLAG(args, flops, "flops",
                 "count FLOPs instead, from the config: DIR may be a preset (bert-base) or a config.json"),
    SES_OPT_INCLUDE(args, count, ses_flops_options),
    SES_OPT_STRICT(args, strict),
    SES_OPT_JSON(args, json),
};

/* --flops reads presets, too. */
static bool names_models(const void *a, int n)
{
    (void)n;
    return ((const args *)a)->flops;
}

/* Non-finite weights are reported after the complete output. */
static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_model_info i = { 0 };
    const char *dir = c->operands[0];
    if (a->count.given && !a->flops)
        return ses_fail(
            e, SES_EUSAGE,
            "--length, --target-length, --batch-size, --steps, --masked, --class, --generator and "
            "--recompute are options of --flops: add it");
    if (a->flops) return ses_flops_info_print(dir, &a->count, a->json, &c->out, e);
    if (!a->tensors && ses_classifier_is_dir(dir))
        return a->json ? ses_classifier_info_print_json(dir, e) : ses_classifier_info_show(dir, &c->out, e);
    bool ok = ses_model_info_read(&i, dir, a->tokens, a->tensors, a->strict, e);
    if (ok && !i.model && ses_path_is_dir(i.path) && !c->quiet && !a->json)
        fprintf(stderr, "sesame: showing only the tensors: %s\n", i.problem.msg);
    if (ok && i.model && !c->quiet) ses_notify_unused_tensors(i.model);
    if (ok && a->json)
        ok = ses_model_info_print_json(&i, a->tensors, e);
    else if (ok && a->tensors)
        ok = ses_model_info_show_tensors(&i, &c->out, e);
    else if (ok)
        ok = ses_model_info_show(&i, &c->out, e);
    if (ok && !ses_tensor_stats_check_finite(i.weights, i.stats, e)) ok = ses_wrap(e, "%s", dir);
    ses_model_info_free(&i);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame info bert-base-uncased", "architecture, sizes, parameters and memory" },
    { "sesame info bert-base-uncased --tensors | less", "all tensors of the weights" },
    { "sesame info bert-base --flops --length 512 --batch-size 256 --steps 1000000",
      "FLOPs of pretraining BERT-base" },
    { "sesame info model.safetensors --tensors --json", "the tensors of a file as JSON" },
    { 0 },
};

const ses_command ses_command_info = {
    .name = "info",
    .usage = "DIR",
    .summary = "show architecture, parameters, memory, labels",
    .description =
        "Describes a model folder (config.json and weights, or a TensorFlow checkpoint of google-research) "
        "without running the model: architecture "
        "and heads, sizes, parameters by part, labels, files and memory. Of a classifier of texts (finetune "
        "--method): method, settings, labels, features and size.\n\n"
        "Memory: f32 weights are used in the mapped file; other types are converted to an f32 copy. "
        "Weight matrices get a second, packed copy on first use. Activations are an estimate for one "
        "sequence: (9 x hidden size + intermediate size) x 4 bytes per token, plus (2 x hidden size + "
        "vocabulary size) x 4 for a masked-LM head.\n\n"
        "--flops counts the FLOPs of a forward pass and of training from the config alone, with the rules of "
        "ELECTRA's counter: 2 per multiply-add, lookups as products with one-hot vectors, the backward pass "
        "as "
        "many as the forward pass. docs/RUNS.md compares the counts.\n\n"
        "All weights are read once. A NaN or infinity among them is an error (exit 3), reported after "
        "the output. --tensors also accepts a weight file, and folders of unsupported architectures.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .has_model_operand = true,
    .names_models = names_models,
    .run = run,
};
