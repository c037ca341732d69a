/* Names and sizes of dtypes, names of activations. */
#include "sesame/unstable/tensor.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[SES_DTYPE_COUNT] = {
    [SES_F32] = { "F32", 4 },   [SES_F16] = { "F16", 2 }, [SES_BF16] = { "BF16", 2 },
    [SES_F64] = { "F64", 8 },   [SES_I64] = { "I64", 8 }, [SES_I32] = { "I32", 4 },
    [SES_I16] = { "I16", 2 },   [SES_I8] = { "I8", 1 },   [SES_U8] = { "U8", 1 },
    [SES_BOOL] = { "BOOL", 1 },
};

size_t ses_dtype_size(ses_dtype d) { return (unsigned)d < SES_DTYPE_COUNT ? dtypes[d].size : 0; }
const char *ses_dtype_name(ses_dtype d) { return (unsigned)d < SES_DTYPE_COUNT ? dtypes[d].name : "?"; }

bool ses_dtype_from_name(const char *name, ses_dtype *out)
{
    for (int d = 0; name && d < SES_DTYPE_COUNT; d++)
        if (strcmp(name, dtypes[d].name) == 0) return *out = (ses_dtype)d, true;
    return false;
}

/* The first name of an activation is the one ses_act_name returns. */
static const struct {
    const char *name;
    ses_act act;
} acts[] = {
    { "linear", SES_ACT_NONE },
    { "identity", SES_ACT_NONE },
    { "none", SES_ACT_NONE },
    { "gelu", SES_ACT_GELU },
    { "gelu_python", SES_ACT_GELU },
    { "gelu_new", SES_ACT_GELU_TANH },
    { "gelu_pytorch_tanh", SES_ACT_GELU_TANH },
    { "gelu_fast", SES_ACT_GELU_TANH },
    { "gelu_accurate", SES_ACT_GELU_TANH },
    { "relu", SES_ACT_RELU },
    { "silu", SES_ACT_SILU },
    { "swish", SES_ACT_SILU },
    { "tanh", SES_ACT_TANH },
    { "sigmoid", SES_ACT_SIGMOID },
};

const char *ses_act_name(ses_act act)
{
    for (size_t i = 0; i < SES_LEN(acts); i++)
        if (acts[i].act == act) return acts[i].name;
    return "?";
}

bool ses_act_from_name(const char *name, ses_act *out)
{
    for (size_t i = 0; name && i < SES_LEN(acts); i++)
        if (strcmp(name, acts[i].name) == 0) return *out = acts[i].act, true;
    return false;
}
