/* The task of a model without run.json: it follows from the class in config.json. */
#include "tune/finetuner.h"

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "task/prompt/pattern_file.h"

#include <string.h>

/* Does a model with these heads belong to the task? */
static bool has_heads(const ses_finetune_task *k, const ses_head_use head[SES_MAX_OUTPUT_HEADS])
{
    bool two = head[1].head != NULL;
    if (k->lm_head) return two && head[0].head == k->lm_head && head[1].head == k->head;
    return !two && k->head && (head[0].head == k->head || head[0].head == k->other_head);
}

const char *ses_finetune_task_of_heads(const ses_head_use head[SES_MAX_OUTPUT_HEADS], const ses_config *c)
{
    static const char *const kinds[] = { [SES_PROBLEM_UNSET] = "",
                                         [SES_PROBLEM_REGRESSION] = "regression",
                                         [SES_PROBLEM_SINGLE] = "single_label_classification",
                                         [SES_PROBLEM_MULTI] = "multi_label_classification" };
    const char *kind = kinds[c->head.problem], *name;
    if (!*kind) kind = kinds[c->labels == 1 ? SES_PROBLEM_REGRESSION : SES_PROBLEM_SINGLE];
    for (size_t i = 0; head[0].head && (name = ses_finetune_task_name(i, NULL)); i++) {
        const ses_finetune_task *k = ses_finetune_task_find(name);
        bool fits = has_heads(k, head) || (k->ways[SES_WAY_GPT] && has_heads(k->ways[SES_WAY_GPT], head));
        if (fits && (!k->problem_type || !strcmp(k->problem_type, kind))) return name;
    }
    return NULL;
}

static const char *task_of_config(const ses_json *config, ses_err *e)
{
    ses_config c;
    if (ses_classifier_is_config(config)) return ses_finetune_task_by_classifier.name;
    const ses_model_desc *d = ses_config_find_model(config, e);
    const ses_class *class = d ? ses_config_class(d, config, NULL, e) : NULL;
    if (!class) return NULL;
    c = d->defaults;
    if (!d->read_parts && !ses_config_read(d, config, &c, e)) return NULL;
    const char *name = ses_finetune_task_of_heads(class->head, &c);
    if (!name)
        ses_fail(e, SES_EUSAGE, "no run.json, and a %s has no head of a fine-tuning task: set a task",
                 class->name);
    return name;
}

static bool has_patterns(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, SES_PATTERN_FILE, e);
    bool has = path && ses_path_exists(path);
    ses_free(path);
    return has;
}

const char *ses_finetune_task_of_folder(const char *dir, const char *base, ses_err *e)
{
    if (ses_sentence_is_encoder_dir(dir)) return ses_finetune_task_embed.name;
    if (has_patterns(dir, e)) return ses_finetune_task_by_cloze.name;
    ses_json_doc *config = ses_model_config_open(dir, base, e);
    const char *name = config ? task_of_config(ses_json_root(config), e) : NULL;
    if (config && !name) ses_wrap(e, "%s", dir);
    ses_json_free(config);
    return name;
}
