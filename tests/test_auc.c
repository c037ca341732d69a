/* AUC against scikit-learn's roc_auc_score: ties, a single class. */
#include "check.h"
#include "math/auc.h"

#include <math.h>

int main(void)
{
    enum { N = 23 };
    float value[N], flat[N] = { 0 };
    uint8_t positive[N], all[N];
    ses_auc_item scratch[N];
    for (int i = 0; i < N; i++) {
        value[i] = (float)(i * i * 7 % 13 - 6) / 4; /* with ties */
        positive[i] = (i * 5 + i / 4) % 3 == 1;
        all[i] = 1;
    }
    CHECK(fabs(ses_auc(value, positive, N, scratch) - 0.5637254901960785) < 1e-9);
    for (int i = 0; i < N; i++) value[i] = -value[i];
    CHECK(fabs(ses_auc(value, positive, N, scratch) - (1 - 0.5637254901960785)) < 1e-9);
    CHECK(ses_auc(flat, positive, N, scratch) == 0.5);
    CHECK(isnan(ses_auc(value, all, N, scratch)));
    return check_report();
}
