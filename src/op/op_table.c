/* The table of all ops of ops.def. */
#include "op.h"

static const ses_op *const table[] = {
#define SES_OP(name, params) &ses_op_##name,
#include "sesame/unstable/ops.def"
#undef SES_OP
    NULL
};

const ses_op *const *ses_ops(void) { return table; }
