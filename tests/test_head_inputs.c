/* head_inputs: the last linear layer of every classifier of tests/golden, applied to them, gives the
 * logits. */
#include "check.h"
#include "model/model_desc.h"
#include "random_batch.h"
#include "tensor/device_impl.h"

#include <dirent.h>
#include <math.h>

static bool read(ses_tape *t, const ses_outputs *o, const char *name, ses_real *out, int64_t most, int64_t *n)
{
    const ses_output *x = ses_outputs_find(o, name);
    *n = x ? ses_count(x->tensor) : 0;
    return CHECK_MSG(x && *n <= most, "%s", name) && CHECK(ses_tape_read(t, x->tensor, out));
}

static void compare(const char *dir, const ses_model *m, ses_device *dev)
{
    static ses_real in[1 << 14], logit[1 << 12], w[1 << 14], b[1 << 10];
    const ses_param *weight = ses_store_find(ses_model_store(m), "classify.out.weight"),
                    *bias = ses_store_find(ses_model_store(m), "classify.out.bias");
    if (!weight || m->c.head.score_act != SES_ACT_NONE) return;
    random_batch x;
    ses_outputs o;
    ses_err e = { 0 };
    int64_t n, classes;
    random_batch_draw(&x, m, false, 3);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_output_request r = { .logits = true, .head_inputs = true };
    bool ok = t && ses_model_forward(m, t, &x.batch, &r, &o, &e);
    if (CHECK_MSG(ok, "%s: %s", dir, e.msg) && read(t, &o, "head_inputs", in, SES_LEN(in), &n) &&
        read(t, &o, "logits", logit, SES_LEN(logit), &classes)) {
        int64_t seqs = x.batch.seqs, width = n / seqs;
        classes /= seqs;
        CHECK(ses_count(weight->tensor) == width * classes);
        CHECK(ses_device_read(dev, weight->tensor, 0, width * classes, w, &e));
        if (bias) CHECK(ses_device_read(dev, bias->tensor, 0, classes, b, &e));
        for (int64_t i = 0; i < seqs * classes; i++) {
            double sum = bias ? (double)b[i % classes] : 0;
            for (int64_t j = 0; j < width; j++)
                sum += (double)in[i / classes * width + j] * (double)w[i % classes * width + j];
            CHECK_MSG(fabs(sum - (double)logit[i]) < 1e-4, "%s: %g, not %g", dir, sum, (double)logit[i]);
        }
    }
    ses_tape_free(t);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    DIR *d = opendir("tests/golden");
    int classifiers = 0;
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        ses_model *m = ses_model_open(path, dev, NULL, &e);
        if (!CHECK_MSG(m, "%s: %s", path, e.msg)) continue;
        if (m->class->head[0].head == &ses_head_sequence_classification) {
            compare(path, m, dev);
            classifiers++;
        }
        ses_model_free(m);
    }
    if (d) closedir(d);
    CHECK_MSG(classifiers >= 10, "%d", classifiers);
    ses_device_free(dev);
    return check_report();
}
