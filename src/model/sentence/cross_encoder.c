/* Cross-encoders of sentence-transformers: pair classifiers with an activation on the logits. */
#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "sentence_impl.h"

#include <string.h>

/* The activation's name in config_sentence_transformers.json, or in config.json (current and older key);
 * NULL: none. */
static const char *activation_name(const ses_json *about, const ses_json *config)
{
    const ses_json *own = ses_json_get(config, "sentence_transformers");
    const char *path = ses_json_string(ses_json_get(about, "activation_fn"), NULL);
    if (!path) path = ses_json_string(ses_json_get(own, "activation_fn"), NULL);
    if (!path) path = ses_json_string(ses_json_get(config, "sbert_ce_default_activation_function"), NULL);
    return path;
}

static bool is_classifier(const ses_model *m, ses_err *e)
{
    const ses_head *h = m->class->head[0].head;
    return h == &ses_head_sequence_classification ||
           ses_fail(e, SES_EUNSUPPORTED, "a cross-encoder needs a sequence classification head, %s has none",
                    ses_model_class_name(m));
}

bool ses_cross_encoder_activation(const ses_model *m, const char *dir, ses_act *out, ses_err *e)
{
    enum { CONFIG_MAX = 1 << 20 };
    ses_json_doc *about = NULL;
    if (!is_classifier(m, e)) return ses_wrap(e, "%s", dir);
    char *path = ses_path_join(dir, "config_sentence_transformers.json", e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) ok = (about = ses_json_load(path, CONFIG_MAX, e)) != NULL;
    *out = ses_model_label_count(m) == 1 ? SES_ACT_SIGMOID : SES_ACT_NONE;
    const char *name = activation_name(ses_json_root(about), ses_model_config(m));
    if (ok && name) ok = ses_act_from_path(name, out, e) || ses_wrap(e, "%s", dir);
    ses_json_free(about);
    ses_free(path);
    return ok;
}

ses_tensor *ses_cross_encoder_score(const ses_model *m, ses_act act, ses_tape *t, const ses_batch *b,
                                    ses_err *e)
{
    ses_outputs out;
    if (!is_classifier(m, e) || !ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &out, e))
        return NULL;
    ses_tensor *x = out.n ? out.item[out.n - 1].tensor : NULL;
    if (act != SES_ACT_NONE) x = ses_activate(t, x, act);
    return ses_tape_ok(t, e) ? x : NULL;
}
