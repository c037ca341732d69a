/* info: what a model is, without running it. */
#include "base/file.h"
#include "cli/compute_args.h"
#include "cli/inspect/model_info.h"

typedef struct args {
    bool json;
    int64_t tokens;
    bool tensors, strict;
} args;

static const ses_opt opt[] = {
    { .name = "tensors",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, tensors),
      .help = "list all tensors instead: shape, dtype, smallest and largest number, norm, NaN count; "
              "works for any safetensors or PyTorch file and architecture" },
    { .name = "tokens",
      .type = SES_OPT_INT,
      .offset = offsetof(args, tokens),
      .def = "0",
      .min = 0,
      .max = 1 << 24,
      .help =
          "estimate activations for one sequence of so many tokens; 0: 512, or the longest the model takes" },
    SES_OPT_STRICT(args, strict),
    SES_OPT_JSON(args, json),
};

/* What was found stands on stdout whole, whatever turns out to be wrong with the numbers. */
static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_model_info i = { 0 };
    bool ok = ses_model_info_read(&i, c->operands[0], a->tokens, a->tensors, a->strict, e);
    if (ok && !i.model && ses_path_is_dir(i.path) && !c->quiet && !a->json)
        fprintf(stderr, "sesame: only the tensors are shown: %s\n", i.problem.msg);
    if (ok && i.model && !c->quiet) ses_notify_unused_tensors(i.model);
    if (ok && a->json)
        ok = ses_model_info_print_json(&i, a->tensors, e);
    else if (ok && a->tensors)
        ok = ses_model_info_show_tensors(&i, &c->out, e);
    else if (ok)
        ok = ses_model_info_show(&i, &c->out, e);
    if (ok && !ses_tensor_stats_check_finite(i.weights, i.stats, e)) ok = ses_wrap(e, "%s", c->operands[0]);
    ses_model_info_free(&i);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame info bert-base-uncased",
      "architecture, sizes, parameters and memory of the model in this folder" },
    { "sesame info bert-base-uncased --tensors | less", "every tensor of its weights" },
    { "sesame info model.safetensors --tensors --json", "the tensors of one file, for a program" },
    { 0 },
};

const ses_command ses_command_info = {
    .name = "info",
    .usage = "DIR",
    .summary = "show architecture, parameters, memory, labels",
    .description =
        "Looks at a model folder (config.json and weights) without running it: architecture and heads, "
        "sizes, parameters by part, labels, files, and the memory it needs.\n\n"
        "Memory: weights in f32 are used where the file is mapped, others are converted to a copy; "
        "matrices get a second copy in the order the kernels read, made when first used. Activations are "
        "an estimate for one sequence: (9 x hidden size + feed-forward size) x 4 bytes a token, and "
        "(2 x hidden size + vocabulary) x 4 more under a masked-LM head.\n\n"
        "All weights are read once, and a NaN or infinity among them is an error (exit 3) told after "
        "everything else. --tensors also takes a single file of weights, and lists folders of "
        "architectures that Sesame cannot run.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .has_model_operand = true,
    .run = run,
};
