#include "transfer_options.h"

#include "cli/ui/show_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool recurrent(const ses_transfer_args *a) { return a->head >= SES_HEAD_BILSTM; }

/* How many levels stay as they are; -1: not a number of them. Recurrent heads are for features as they are,
 * unless someone says otherwise. */
static int64_t levels(const ses_transfer_args *a)
{
    char *end;
    if (!a->freeze) return recurrent(a) && !a->unfreeze && a->adapter == SES_ADAPT_NONE ? INT64_MAX : 0;
    if (!strcmp(a->freeze, "all")) return INT64_MAX;
    long long n = strtoll(a->freeze, &end, 10);
    return end == a->freeze || *end || n < 0 ? -1 : (int64_t)n;
}

/* "256,128" as numbers; a layer that is not named is as wide as the one before. */
static bool read_sizes(const ses_transfer_args *a, ses_config_patch *c, ses_err *e)
{
    enum { USUAL = 256, WIDEST = 1 << 16 };
    const char *at = a->sizes ? a->sizes : "";
    size_t most = recurrent(a) ? SES_LEN(c->sizes) : (size_t)(a->head - SES_HEAD_LINEAR);
    while (*at) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || n < 1 || n > WIDEST)
            return ses_fail(e, SES_EUSAGE, "--head-sizes: \"%s\" is not a list of numbers from 1 to %d",
                            ses_quoted_of(a->sizes, strlen(a->sizes)).s, WIDEST);
        if (c->n_sizes == most)
            return ses_fail(e, SES_EUSAGE, "--head-sizes: this head has at most %zu hidden layers", most);
        c->sizes[c->n_sizes++] = n;
        at = *end ? end + 1 : end;
    }
    size_t least = recurrent(a) ? 1 : most;
    for (; c->n_sizes < least; c->n_sizes++)
        c->sizes[c->n_sizes] = c->n_sizes ? c->sizes[c->n_sizes - 1] : USUAL;
    return true;
}

bool ses_transfer_check(const ses_transfer_args *a, const char *model, bool takes_own, ses_err *e)
{
    bool lora = a->adapter == SES_ADAPT_LORA;
    if (levels(a) < 0)
        return ses_fail(e, SES_EUSAGE, "--freeze: \"%s\" is neither a number of levels nor all",
                        ses_quoted_of(a->freeze, strlen(a->freeze)).s);
    if (lora && !model) return ses_fail(e, SES_EUSAGE, "--adapter lora needs a trained model: --model");
    if (lora && (a->unfreeze || levels(a)))
        return ses_fail(e, SES_EUSAGE,
                        "--adapter lora leaves the model as it is: no --freeze, no --unfreeze");
    if (!lora && a->targets) return ses_fail(e, SES_EUSAGE, "--lora-targets needs --adapter lora");
    if (a->head == SES_HEAD_DEFAULT && a->sizes) return ses_fail(e, SES_EUSAGE, "--head-sizes needs --head");
    if (a->head != SES_HEAD_DEFAULT && !takes_own)
        return ses_fail(e, SES_EUSAGE, "--head is for tasks that label texts or tokens");
    if (a->unfreeze && levels(a) == INT64_MAX)
        return ses_fail(e, SES_EUSAGE, "--freeze all leaves nothing to --unfreeze");
    return true;
}

const ses_lora *ses_transfer_lora(const ses_transfer_args *a, ses_lora *l)
{
    *l = (ses_lora){ .rank = a->rank, .alpha = a->alpha, .dropout = a->lora_drop, .targets = a->targets };
    return a->adapter == SES_ADAPT_LORA ? l : NULL;
}

bool ses_transfer_config(const ses_transfer_args *a, ses_json_doc **config, ses_err *e)
{
    static const char *const heads[] = { NULL, "linear", "mlp", "mlp", "lstm", "gru" };
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    c.dropout = a->drop;
    c.attention_dropout = a->drop_attention;
    c.head_dropout = a->drop_head;
    c.scalar_mix = a->mix;
    c.head = heads[a->head];
    if (c.head && !read_sizes(a, &c, e)) return false;
    if (c.dropout < 0 && c.attention_dropout < 0 && c.head_dropout < 0 && !c.head && !c.scalar_mix)
        return true;
    ses_json_doc *d = ses_model_config_patch(ses_json_root(*config), &c, e);
    if (!d) return false;
    ses_json_free(*config);
    *config = d;
    return true;
}

bool ses_transfer_groups(const ses_transfer_args *a, const ses_model *m, double decay, ses_layer_groups *l,
                         ses_optim_options *o, ses_layer_groups **gradual, ses_err *e)
{
    int64_t most = SES_MAX_GROUPS / 2 - 2, n = ses_model_layer_count(m);
    l->layers = n > most ? most : n; /* the upper ones share a level then */
    int64_t frozen = levels(a);
    l->frozen = l->min_frozen = frozen > l->layers + 1 ? l->layers + 1 : frozen;
    *gradual = a->unfreeze ? l : NULL;
    return ses_optim_set_layer_groups(o, l, decay, a->layer_decay, e);
}

void ses_transfer_settings(const ses_transfer_args *a, ses_json_writer *w)
{
    ses_json_member_real(w, "layer_decay", a->layer_decay);
    ses_json_member_int(w, "freeze", levels(a) == INT64_MAX ? -1 : levels(a));
    ses_json_member_int(w, "head", a->head);
    ses_json_member_string(w, "head_sizes", a->sizes);
    ses_json_member_bool(w, "mix_layers", a->mix);
    ses_json_member_bool(w, "unfreeze", a->unfreeze);
    ses_json_member_real(w, "dropout", a->drop);
    ses_json_member_real(w, "attention_dropout", a->drop_attention);
    ses_json_member_real(w, "classifier_dropout", a->drop_head);
    if (a->adapter != SES_ADAPT_LORA) return;
    ses_json_member_int(w, "lora_rank", a->rank);
    ses_json_member_real(w, "lora_alpha", a->alpha);
    ses_json_member_real(w, "lora_dropout", a->lora_drop);
    ses_json_member_string(w, "lora_targets", a->targets);
}

void ses_transfer_card(const ses_transfer_args *a, ses_buf *b)
{
    if (a->adapter == SES_ADAPT_LORA)
        ses_buf_appendf(b, "| trained | LoRA of rank %lld, alpha %g, dropout %g, beside %s |\n",
                        (long long)a->rank, a->alpha, a->lora_drop,
                        a->targets ? a->targets : "queries and values");
    else if (a->unfreeze)
        ses_buf_appendf(b, "| trained | one layer more each epoch, from the top |\n");
    else if (levels(a) == INT64_MAX)
        ses_buf_appendf(b, "| trained | the head alone |\n");
    else if (levels(a))
        ses_buf_appendf(b, "| trained | all but the lowest %lld levels |\n", (long long)levels(a));
    if (a->layer_decay < 1)
        ses_buf_appendf(b, "| rates | each layer's is %g of the one above |\n", a->layer_decay);
}

/* Of a head that the reference does not have. */
static void use_own(const ses_model *m, ses_buf *b)
{
    if (!ses_json_get(ses_model_config(m), "sesame_head")) return;
    ses_buf_appendf(
        b, "\nThe head is Sesame's own: `sesame_head` in config.json says which, its weights are called "
           "`sesame_head.*`. `sesame` opens this folder as it is; the reference library has no such "
           "class and loads the model below it: `transformers.AutoModel.from_pretrained(FOLDER)`.\n");
}

void ses_transfer_use(const ses_transfer_args *a, const ses_model *m, ses_buf *b)
{
    use_own(m, b);
    if (a->adapter != SES_ADAPT_LORA) return;
    ses_buf_appendf(b,
                    "\nAn adapter: `sesame` opens this folder as it is, `sesame convert` merges it into its "
                    "model. In Python:\n\n```python\n"
                    "base = transformers.%s.from_pretrained(BASE, num_labels=%lld)\n"
                    "model = peft.PeftModel.from_pretrained(base, FOLDER)\n```\n",
                    ses_model_class_name(m), (long long)ses_model_label_count(m));
}
