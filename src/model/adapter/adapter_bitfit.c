/* BitFit (Ben Zaken et al. 2022): only the biases and the head are trained. The peft library has no such
 * type. The file holds the trained tensors whole, named as peft names modules that it saves whole
 * ("base_model.model." + transformers' name), so that reading replaces the values of the base model;
 * "peft_type" is "BITFIT". */
#include "adapter_impl.h"

#include <string.h>

static bool check(const ses_adapter_options *o, ses_err *e)
{
    (void)o, (void)e;
    return true;
}

static bool read(ses_adapter *a, const ses_json *c, ses_err *e)
{
    (void)a, (void)c, (void)e;
    return true;
}

static bool trains(const char *name) { return ses_adapter_name_ends(name, "bias", 4); }

static bool end(ses_adapter *a, ses_err *e)
{
    const ses_store *s = a->declaring->store;
    if (!a->is_new) return true;
    for (size_t i = 0; i < ses_store_count(s); i++)
        if (ses_store_at(s, i)->role == SES_PARAM_TRAINED && trains(ses_store_at(s, i)->name)) return true;
    return ses_fail(e, SES_EUNSUPPORTED, "BitFit trains biases, and %s has none here: choose another adapter",
                    a->declaring->desc->name);
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    (void)m, (void)a;
    ses_json_member_string(w, "bias", "all");
}

const ses_adapter_desc ses_adapter_bitfit = {
    .name = "bitfit",
    .title = "BitFit",
    .peft_type = "BITFIT",
    .file = SES_PEFT_FILES,
    .prefix = SES_ADAPTER_PREFIX,
    .merges = true,
    .check = check,
    .read = read,
    .trains = trains,
    .end = end,
    .put = put,
};
