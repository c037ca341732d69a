/* Gradients of every op against central differences, with the whole engine compiled in double precision. */
#include "check.h"
#include "op/op_check.h"

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(sizeof(ses_real) == 8 && dev);
    for (const ses_op *const *op = ses_ops(); dev && *op; op++)
        for (size_t i = 0; (*op)->backward && i < (*op)->n_cases; i++) {
            double worst = 0;
            ses_err_clear(&e);
            CHECK_MSG(ses_op_gradcheck(dev, *op, &(*op)->cases[i], &worst, &e), "%s case %zu: %s",
                      (*op)->name, i, e.msg);
            CHECK_MSG(worst <= 1e-6, "%s case %zu: gradient is off by %.3g", (*op)->name, i, worst);
        }
    ses_device_free(dev);
    return check_report();
}
