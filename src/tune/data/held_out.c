/* A part of the training file held out for evaluation. */
#include "held_out.h"

#include "base/number.h"
#include "data/examples_sample.h"

#include <math.h>
#include <string.h>

static bool parse(const char *eval, double *percent)
{
    size_t n = eval ? strlen(eval) : 0;
    return n > 1 && eval[n - 1] == '%' && strspn(eval, "0123456789.") == n - 1 &&
           ses_parse_number(eval, n - 1, percent);
}

bool ses_held_out_is(const char *eval)
{
    double percent;
    return parse(eval, &percent);
}

bool ses_held_out_take(const char *eval, uint64_t seed, const ses_examples *all, ses_examples **train,
                       ses_examples **part, ses_err *e)
{
    double percent = 0;
    size_t n = ses_examples_count(all);
    *train = *part = NULL;
    if (!parse(eval, &percent) || percent <= 0 || percent >= 100)
        return ses_fail(e, SES_EUSAGE, "eval %s: expected a part above 0%% and below 100%%", eval);
    ses_sample s = { .size = (int64_t)ceil((double)n * percent / 100 - 1e-9), .seed = seed };
    if (s.size >= (int64_t)n)
        return ses_fail(e, SES_EARG, "eval %s of %zu examples leaves none for training", eval, n);
    *part = ses_examples_sample(all, &s, e);
    s.others = true;
    *train = *part ? ses_examples_sample(all, &s, e) : NULL;
    return *train != NULL;
}
