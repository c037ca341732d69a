/* Runs ops on their test cases. */
#include "op_check.h"

#include <math.h>
#include <string.h>

static int64_t count(const int64_t dim[SES_MAX_DIM])
{
    int64_t n = dim[0] ? 1 : 0;
    for (int i = 0; i < SES_MAX_DIM && dim[i]; i++) n *= dim[i];
    return n;
}

/* Input i of a case: the given integers, or normal random numbers times the case's scale. */
static ses_tensor *input(ses_trial *r, ses_tape *t, const ses_case *c, int i, const ses_perturbation *change,
                         ses_err *e)
{
    int64_t n = count(c->dim[i]);
    if (c->ints[i]) return ses_tape_ints(t, c->ints[i], n);
    ses_real *x = ses_arena_array(&r->mem, (size_t)n, sizeof *x, e);
    ses_rng_key key = { .seed = 17, .site = (uint32_t)i };
    for (int64_t j = 0; x && j < n; j++)
        x[j] = (ses_real)((c->scale ? c->scale : 1) * ses_rand_normal(key, (uint64_t)j));
    if (x && change && change->input == i) x[change->index] += (ses_real)change->delta;
    ses_tensor *y = x ? ses_tape_input(t, x, c->dim[i]) : NULL;
    if (y) y->requires_grad = !(c->constant >> i & 1);
    return y;
}

/* sum_j w_j x_j with random weights, so that every element of x has its own gradient. */
static ses_tensor *weighted_sum(ses_trial *r, ses_tape *t, ses_tensor *x, ses_err *e)
{
    int64_t n = ses_count(x);
    ses_real *w = ses_arena_array(&r->mem, (size_t)n, sizeof *w, e);
    for (int64_t j = 0; w && j < n; j++)
        w[j] = (ses_real)ses_rand_normal((ses_rng_key){ .seed = 23 }, (uint64_t)j);
    if (w && n == 1) /* a loss, which is always f32 */
        return ses_reshape(t, ses_scale(t, x, (double)w[0]), SES_DIM(1));
    ses_tensor *weight = w ? ses_tape_input(t, w, SES_DIM(1, n)) : NULL;
    return ses_reshape(
        t, ses_linear(t, ses_reshape(t, x, SES_DIM(1, n)), weight, NULL, SES_ACT_NONE, SES_OUT_IN),
        SES_DIM(1));
}

static ses_real *read_out(ses_trial *r, ses_tape *t, const ses_tensor *x, int64_t *n, ses_err *e)
{
    *n = ses_count(x);
    ses_real *y = x ? ses_arena_array(&r->mem, (size_t)*n, sizeof *y, e) : NULL;
    if (y) ses_tape_read(t, x, y);
    return y;
}

static void run_on(ses_trial *r, ses_tape *t, const ses_op *op, const ses_case *c,
                   const ses_perturbation *change, ses_err *e)
{
    ses_tensor *in[SES_MAX_IN] = { NULL };
    int n_in = 0;
    for (int i = 0; i < SES_MAX_IN; i++)
        if (c->dim[i][0] || c->ints[i]) {
            in[i] = input(r, t, c, i, change, e);
            n_in = i + 1;
        }
    ses_node *n = ses_apply_node(t, op, in, n_in, c->attr);
    if (!n) return;
    r->out = read_out(r, t, n->out, &r->n_out, e);
    r->aux = read_out(r, t, n->aux, &r->n_aux, e);
    ses_tensor *loss = weighted_sum(r, t, n->out, e);
    ses_real sum = 0;
    if (!ses_tape_read(t, loss, &sum)) return;
    r->loss = (double)sum;
    ses_backward(t, loss);
    for (int i = 0; i < n_in; i++) {
        if (!in[i] || !in[i]->requires_grad) continue;
        ses_tensor grad = *in[i];
        grad.dtype = SES_REAL, grad.master = NULL;
        grad.data = in[i]->grad; /* NULL: the op computed none; the comparison reports it */
        if (grad.data) r->grad[i] = read_out(r, t, &grad, &r->n_grad[i], e);
    }
}

bool ses_trial_run(ses_trial *r, ses_device *dev, const ses_op *op, const ses_case *c,
                   const ses_perturbation *change, ses_err *e)
{
    memset(r, 0, sizeof *r);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, e);
    if (!t) return false;
    run_on(r, t, op, c, change, e);
    bool ok = ses_tape_ok(t, e) && (!e || !e->code);
    ses_tape_free(t);
    return ok;
}

void ses_trial_free(ses_trial *r) { ses_arena_free(&r->mem); }

static double relative_error(const ses_real *a, const ses_real *ref, int64_t n)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)ref[i]);
        if (!(d <= worst)) worst = d;
        largest = fmax(largest, fabs((double)ref[i]));
    }
    return worst == 0 ? 0 : worst / fmax(largest, 1e-30);
}

double ses_trial_distance(const ses_trial *a, const ses_trial *ref, const ses_case *c, const char **where)
{
    static const char *const grad_name[SES_MAX_IN] = { "grad 0", "grad 1", "grad 2", "grad 3", "grad 4",
                                                       "grad 5", "grad 6", "grad 7", "grad 8", "grad 9" };
    double tol = c->tol ? c->tol : 1e-5, worst = 0;
    *where = "out";
    if (a->n_out != ref->n_out || a->n_aux != ref->n_aux) return INFINITY;
    worst = relative_error(a->out, ref->out, ref->n_out);
    double d = relative_error(a->aux, ref->aux, ref->n_aux);
    if (!(d <= worst)) worst = d, *where = "aux";
    for (int i = 0; i < SES_MAX_IN; i++) {
        bool both = a->grad[i] && ref->grad[i], none = !a->grad[i] && !ref->grad[i];
        d = both ? relative_error(a->grad[i], ref->grad[i], ref->n_grad[i]) : none ? 0 : INFINITY;
        if (!(d <= worst)) worst = d, *where = grad_name[i];
    }
    return worst / tol;
}
