/* finetune and pretrain: settings by name, progress by a callback, results as a dict. */
#include "binding.h"

#include <math.h>

/* ---- progress ---- */

typedef struct monitor {
    PyObject *callback;    /* receives events; NULL: none */
    PyThreadState *thread; /* while the interpreter lock is released */
} monitor;

static bool put_number(PyObject *dict, const char *key, double x)
{
    PyObject *value = isnan(x) ? Py_NewRef(Py_None) : PyFloat_FromDouble(x);
    bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool put_count(PyObject *dict, const char *key, int64_t n)
{
    PyObject *value = PyLong_FromLongLong(n);
    bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool put_string(PyObject *dict, const char *key, const char *text)
{
    PyObject *value = ses_py_str(ses_str(text));
    bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool put_scores(PyObject *dict, const ses_scores *s)
{
    PyObject *scores = PyDict_New();
    bool ok = scores != NULL;
    for (size_t i = 0; ok && s && i < s->n; i++) ok = put_number(scores, s->item[i].name, s->item[i].value);
    ok = ok && PyDict_SetItemString(dict, "scores", scores) == 0;
    Py_XDECREF(scores);
    return ok;
}

static bool put_step(PyObject *dict, const ses_step_result *s)
{
    return put_number(dict, "loss", s->loss) && put_number(dict, "epoch", s->epoch) &&
           put_number(dict, "lr", s->updated ? s->lr : NAN) &&
           put_number(dict, "grad_norm", s->updated ? s->grad_norm : NAN) &&
           put_count(dict, "tokens", s->tokens);
}

static bool fill_event(PyObject *dict, const ses_training_event *v)
{
    static const char *const kinds[] = { "started", "step", "evaluating", "evaluated", "notice" };
    if (!put_string(dict, "kind", kinds[v->kind])) return false;
    if (v->trainer && !(put_count(dict, "update", ses_trainer_state(v->trainer)->updates) &&
                        put_count(dict, "updates", ses_trainer_total_updates(v->trainer))))
        return false;
    switch (v->kind) {
    case SES_TRAINING_STEP: return put_step(dict, v->step);
    case SES_TRAINING_EVALUATING:
        return put_count(dict, "done", v->done) && put_count(dict, "total", v->total);
    case SES_TRAINING_EVALUATED:
        return put_number(dict, "loss", v->loss) && put_number(dict, "metric", v->metric) &&
               put_scores(dict, v->scores) &&
               PyDict_SetItemString(dict, "is_best", v->is_best ? Py_True : Py_False) == 0;
    case SES_TRAINING_NOTICE:
        return put_string(dict, "text", v->text ? v->text : "") &&
               PyDict_SetItemString(dict, "is_warning", v->is_warning ? Py_True : Py_False) == 0;
    case SES_TRAINING_STARTED: break;
    }
    return true;
}

/* Does the callback want to continue? Only False stops. */
static bool call_back(const monitor *m, const ses_training_event *v)
{
    PyObject *dict = PyDict_New(), *answer = NULL;
    if (dict && fill_event(dict, v)) answer = PyObject_CallFunctionObjArgs(m->callback, dict, NULL);
    bool proceed = answer && answer != Py_False;
    Py_XDECREF(dict);
    Py_XDECREF(answer);
    return proceed;
}

static bool on_event(void *ctx, const ses_training_event *v)
{
    monitor *m = ctx;
    PyEval_RestoreThread(m->thread);
    bool proceed = !PyErr_Occurred() && PyErr_CheckSignals() == 0 && (!m->callback || call_back(m, v));
    m->thread = PyEval_SaveThread();
    return proceed;
}

/* ---- a run ---- */

/* The two kinds of runs as the functions below see them. */
typedef struct job {
    const ses_py_state *st;
    ses_device *dev;
    monitor monitor;
    const ses_setting *settings;
    void *run, *parsed; /* the run, and its settings */
    const char *output; /* its folder, borrowed from the settings */
} job;

typedef struct job_kind {
    bool (*start)(job *j, ses_err *e); /* sets run, parsed and output */
    bool (*run)(job *j, ses_run_end *end, ses_err *e);
    void (*put_results)(const job *j, ses_json_writer *w);
    void (*release)(job *j);
} job_kind;

static bool start_finetune(job *j, ses_err *e)
{
    if (!(j->parsed = ses_finetune_settings_new(j->settings, e))) return false;
    ses_finetune_options o = ses_finetune_settings_options(j->parsed);
    if (!!o.model + !!o.config + !!o.embed != 1)
        return ses_fail(e, SES_EUSAGE,
                        "either model (trained weights), or config or embed (random weights) is required");
    j->output = o.run.output;
    o.on_event = on_event;
    o.ctx = &j->monitor;
    j->run = ses_finetune_new(&o, j->dev, e);
    return j->run != NULL;
}

static bool run_finetune(job *j, ses_run_end *end, ses_err *e) { return ses_finetune_run(j->run, end, e); }
static void put_finetune(const job *j, ses_json_writer *w) { ses_finetune_put_results(j->run, w); }

static void release_finetune(job *j)
{
    ses_finetune_free(j->run);
    ses_finetune_settings_free(j->parsed);
}

static bool start_pretrain(job *j, ses_err *e)
{
    ses_pretrain_options o;
    if (!(j->parsed = ses_pretrain_settings_new(j->settings, e)) ||
        !ses_pretrain_settings_options(j->parsed, &o, e))
        return false;
    j->output = o.run.output;
    o.on_event = on_event;
    o.ctx = &j->monitor;
    j->run = ses_pretrain_new(&o, j->dev, e);
    return j->run != NULL;
}

static bool run_pretrain(job *j, ses_run_end *end, ses_err *e) { return ses_pretrain_run(j->run, end, e); }
static void put_pretrain(const job *j, ses_json_writer *w) { ses_pretrain_put_results(j->run, w); }

static void release_pretrain(job *j)
{
    ses_pretrain_free(j->run);
    ses_pretrain_settings_free(j->parsed);
}

static const job_kind finetune = { start_finetune, run_finetune, put_finetune, release_finetune },
                      pretrain = { start_pretrain, run_pretrain, put_pretrain, release_pretrain };

/* {"end", "output", ...} with the members of all_results.json, unless the run was stopped. */
static PyObject *results(const job *j, const job_kind *kind, ses_run_end end)
{
    static const char *const ends[] = { "complete", "stopped", "early_stopped", "was_complete" };
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    if (!w) return ses_py_raise(j->st, &e, NULL);
    ses_json_begin_object(w);
    ses_json_member_string(w, "end", ends[end]);
    ses_json_member_string(w, "output", j->output);
    if (end != SES_RUN_STOPPED) kind->put_results(j, w);
    ses_json_end_object(w);
    PyObject *dict = ses_py_from_writer(j->st, w);
    ses_json_writer_free(w);
    return dict;
}

static PyObject *run_job(PyObject *module, PyObject *args, const job_kind *kind)
{
    job j = { .st = PyModule_GetState(module) };
    PyObject *device, *settings, *callback = Py_None, *dict = NULL;
    ses_run_end end = SES_RUN_COMPLETE;
    ses_err e = { 0 };
    if (!PyArg_ParseTuple(args, "OO|O", &device, &settings, &callback)) return NULL;
    ses_setting *set = ses_py_settings(settings);
    j.dev = set ? ses_py_device_of(j.st, device) : NULL;
    if (j.dev) {
        j.settings = set;
        if (callback != Py_None) j.monitor.callback = callback;
        j.monitor.thread = PyEval_SaveThread();
        bool ok = kind->start(&j, &e) && kind->run(&j, &end, &e);
        PyEval_RestoreThread(j.monitor.thread);
        if (ok && !PyErr_Occurred())
            dict = results(&j, kind, end);
        else if (!PyErr_Occurred())
            ses_py_raise(j.st, &e, NULL);
        kind->release(&j);
    }
    PyMem_Free(set);
    return dict;
}

PyObject *ses_py_finetune(PyObject *module, PyObject *args) { return run_job(module, args, &finetune); }
PyObject *ses_py_pretrain(PyObject *module, PyObject *args) { return run_job(module, args, &pretrain); }
