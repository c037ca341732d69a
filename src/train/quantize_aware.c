/* Marks the weights that int8 inference quantizes; ses_round_operands (op) and ses_round_attention (nn)
 * round. */
#include "quantize_aware.h"

#include "model/model_desc.h"
#include "tensor/pack.h"

bool ses_model_round_i8(ses_model *m, ses_err *e)
{
    const ses_store *s = ses_model_store(m);
    size_t n = 0;
    if (!ses_model_part_neurons(m, SES_PART_MAIN))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s (%s) has no Transformer layers: quantization-aware training rounds their products",
            ses_model_class_name(m), m->desc->name);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *p = ses_store_at(s, i);
        bool too_deep = p->dense && ses_weight_dim(p->tensor, p->layout == SES_OUT_IN) > SES_GEMM_I8_MAX_K;
        if (!p->dense || p->keep_16bit || p->embedding || too_deep) continue;
        p->tensor->rounds_i8 = true;
        n++;
    }
    return n > 0 || ses_fail(e, SES_EUNSUPPORTED, "%s (%s) has no weights that int8 inference quantizes",
                             ses_model_class_name(m), m->desc->name);
}
