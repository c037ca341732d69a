#include "pass.h"

#include "base/alloc.h"
#include "model/model_desc.h"

bool ses_pass_open(ses_pass *p, const ses_model *m, ses_err *e)
{
    *p = (ses_pass){ .model = m, .tape = ses_tape_new(m->dev, NULL, e) };
    return p->tape != NULL;
}

void ses_pass_close(ses_pass *p)
{
    ses_tape_free(p->tape);
    ses_batch_builder_free(&p->in);
    ses_free(p->host);
    *p = (ses_pass){ 0 };
}

void ses_pass_begin(ses_pass *p, const ses_output_request *want)
{
    p->request = *want;
    if (p->in.rows.n) p->request.rows = p->in.rows.p, p->request.n_rows = (int64_t)p->in.rows.n;
    p->batch = ses_batch_builder_batch(&p->in);
    ses_batch_builder_clear(&p->in);
    ses_tape_reset(p->tape, &(ses_tape_options){ .record = p->record });
}

bool ses_pass_run(ses_pass *p, const ses_output_request *want, ses_err *e)
{
    ses_pass_begin(p, want);
    return ses_model_forward(p->model, p->tape, &p->batch, &p->request, &p->out, e);
}

const ses_output *ses_pass_output(const ses_pass *p, const char *name, ses_err *e)
{
    const ses_output *o = ses_outputs_find(&p->out, name);
    if (!o) ses_fail(e, SES_EUNSUPPORTED, "%s has no output \"%s\"", ses_model_class_name(p->model), name);
    return o;
}

const ses_real *ses_pass_read(ses_pass *p, const char *name, ses_err *e)
{
    const ses_output *o = ses_pass_output(p, name, e);
    if (!o || !ses_array_reserve(&p->host, &p->host_cap, (size_t)ses_count(o->tensor), sizeof *p->host, e))
        return NULL;
    if (ses_tape_read(p->tape, o->tensor, p->host)) return p->host;
    ses_tape_ok(p->tape, e);
    return NULL;
}
