/* The list of evaluations that need no fine-tuning run. */
#include "direct_eval.h"

#include <string.h>

static const ses_direct_eval evals[] = {
#define SES_DIRECT_EVAL(name, function, files, texts) { #name, files, texts, ses_eval_##function },
#include "direct_evals.def"
#undef SES_DIRECT_EVAL
};

const ses_direct_eval *ses_direct_eval_find(const char *task)
{
    for (size_t i = 0; task && i < SES_LEN(evals); i++)
        if (!strcmp(evals[i].name, task)) return &evals[i];
    return NULL;
}
