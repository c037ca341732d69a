/* Heads on models that read from left to right, as BERT with "is_decoder": their first token attends to no
 * other, so a classifier of it learns nothing. A linear one of the last token replaces it. */
#include "tune/finetune_impl.h"

#include "model/model_desc.h"

/* Does the class for the head classify the first token of a causal model? */
static bool reads_first_token(const ses_head *head, const ses_json *config, bool *reads, ses_err *e)
{
    ses_config c;
    const ses_model_desc *d = ses_config_find_model(config, e);
    const char *name = d ? ses_model_class_for_heads(config, &head->name, 1, e) : NULL;
    const ses_class *class = name ? ses_config_class(d, config, name, e) : NULL;
    *reads = false;
    if (!class) return false;
    if (d->encoder_decoder) return true;
    if (!ses_config_read(d, config, &c, e)) return false;
    ses_summary kind = class->summary ? class->summary : c.summary.kind;
    *reads = c.attention.causal && !c.custom_head.kind && !c.head.pooled_width &&
             (class->pooler || kind == SES_SUMMARY_FIRST);
    return true;
}

bool ses_left_to_right_config(ses_finetune *f, ses_err *e)
{
    const ses_head *head = f->task->head;
    bool per_text = head && (head->axis == SES_LABEL_PER_SEQUENCE || head->axis == SES_LABEL_PER_QUESTION);
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    if (!per_text || head->pretrained || f->task->lm_head) return true;
    if (!reads_first_token(head, ses_finetune_base_config(f), &f->reads_last_token, e)) return false;
    if (!f->reads_last_token) return true;
    if (f->o.open_model)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s: the open model reads from left to right, and its head reads the first token, which "
            "attends to no other; give its folder as model, which then gets a head on the last token",
            f->task->name);
    if (!head->allows_custom)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s: the model reads from left to right, and its head for this task reads the first "
                        "token, which attends to no other; use a model whose head reads the last token, as "
                        "gpt2",
                        f->task->name);
    c.head = "linear";
    ses_json_doc *d = ses_model_config_patch(ses_json_root(f->config), &c, e);
    if (!d) return false;
    ses_json_free(f->config);
    f->config = d;
    return true;
}
