/* The ops, by name. Each is described in its file, src/op/NAME.c. All return NULL once the tape has failed. */
#ifndef SESAME_OPS_H
#define SESAME_OPS_H

#include "sesame/tape.h"

#define SES_OP(name, params) ses_tensor *ses_##name params;
#include "sesame/ops.def"
#undef SES_OP

#endif
