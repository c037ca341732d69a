/* Feed-forward blocks of different widths: "sesame_ffn_widths" of config.json, one width per layer. A key of
 * ours: transformers reads models whose layers have one width. src/nn/stack_heads.c reads the list. */
#include "model/model_desc.h"

#include "base/json/json_helpers.h"

const char *ses_ffn_widths_unsupported(const ses_model_desc *d, const ses_config *c)
{
    if (d->read_parts) return "its encoder and decoder are models of their own";
    if (d->encoder_decoder) return "it is an encoder-decoder";
    if (d->vtable) return "its layers are not the shared ones";
    if (c->layer_groups) return "its layers share their weights";
    if (c->ffn.experts) return "it is a mixture of experts";
    return NULL;
}

bool ses_ffn_widths_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e)
{
    const ses_json *widths = ses_json_get(config, "sesame_ffn_widths");
    if (ses_json_type_of(widths) == SES_JSON_NULL) return true;
    const char *why = ses_ffn_widths_unsupported(d, c);
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "\"sesame_ffn_widths\" of model_type \"%s\": %s", d->name, why);
    c->ffn.widths = widths;
    return true;
}
