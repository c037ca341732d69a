#include "transfer.h"

#include "show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many levels stay as they are; -1: not a number of them. */
static int64_t levels(const ses_transfer_args *a)
{
    char *end;
    if (!a->freeze) return 0;
    if (!strcmp(a->freeze, "all")) return INT64_MAX;
    long long n = strtoll(a->freeze, &end, 10);
    return end == a->freeze || *end || n < 0 ? -1 : (int64_t)n;
}

bool ses_transfer_check(const ses_transfer_args *a, const char *model, ses_err *e)
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
    if (a->unfreeze && levels(a) == INT64_MAX)
        return ses_fail(e, SES_EUSAGE, "--freeze all leaves nothing to --unfreeze");
    return true;
}

const ses_lora *ses_transfer_lora(const ses_transfer_args *a, ses_lora *l)
{
    *l = (ses_lora){ .rank = a->rank, .alpha = a->alpha, .drop = a->lora_drop, .targets = a->targets };
    return a->adapter == SES_ADAPT_LORA ? l : NULL;
}

bool ses_transfer_config(const ses_transfer_args *a, ses_json_doc **config, ses_err *e)
{
    ses_model_change c = SES_NO_CHANGE;
    c.drop = a->drop;
    c.drop_attention = a->drop_attention;
    c.drop_head = a->drop_head;
    if (c.drop < 0 && c.drop_attention < 0 && c.drop_head < 0) return true;
    ses_json_doc *d = ses_model_config_change(ses_json_root(*config), &c, e);
    if (!d) return false;
    ses_json_free(*config);
    *config = d;
    return true;
}

bool ses_transfer_groups(const ses_transfer_args *a, const ses_model *m, double decay, ses_layers *l,
                         ses_optim_options *o, ses_layers **gradual, ses_err *e)
{
    int64_t most = SES_MAX_GROUPS / 2 - 2, n = ses_model_layers(m);
    l->layers = n > most ? most : n; /* the upper ones share a level then */
    int64_t frozen = levels(a);
    l->frozen = l->least = frozen > l->layers + 1 ? l->layers + 1 : frozen;
    *gradual = a->unfreeze ? l : NULL;
    return ses_groups_of_layers(o, l, decay, a->fall, e);
}

void ses_transfer_settings(const ses_transfer_args *a, ses_json_writer *w)
{
    ses_json_number(w, "layer_decay", a->fall);
    ses_json_pair(w, "freeze", a->freeze);
    ses_json_flag(w, "unfreeze", a->unfreeze);
    ses_json_number(w, "dropout", a->drop);
    ses_json_number(w, "attention_dropout", a->drop_attention);
    ses_json_number(w, "classifier_dropout", a->drop_head);
    if (a->adapter != SES_ADAPT_LORA) return;
    ses_json_count(w, "lora_rank", a->rank);
    ses_json_number(w, "lora_alpha", a->alpha);
    ses_json_number(w, "lora_dropout", a->lora_drop);
    ses_json_pair(w, "lora_targets", a->targets);
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
    if (a->fall < 1) ses_buf_appendf(b, "| rates | each layer's is %g of the one above |\n", a->fall);
}

void ses_transfer_use(const ses_transfer_args *a, const ses_model *m, ses_buf *b)
{
    if (a->adapter != SES_ADAPT_LORA) return;
    ses_buf_appendf(b,
                    "\nAn adapter: `sesame` opens this folder as it is, `sesame convert` merges it into its "
                    "model. In Python:\n\n```python\n"
                    "base = transformers.%s.from_pretrained(BASE, num_labels=%lld)\n"
                    "model = peft.PeftModel.from_pretrained(base, FOLDER)\n```\n",
                    ses_model_class(m), (long long)ses_model_labels(m));
}
