/* Pipeline: texts to results. A call takes a sequence of items, each (text, pair, list) with None for what it
 * lacks, and returns a result for each. */
#include "binding.h"

typedef struct pipeline {
    PyObject_HEAD const ses_py_state *st;
    ses_pipeline *p;
    PyObject *device;
    PyObject *parent; /* the Pipeline whose model this one shares; NULL: its own */
    ses_py_lock lock;
} pipeline;

/* ---- opening ---- */

/* Settings of a sentence encoder, not of a call: its model is shared then, but not its modules. */
static bool sets_encoder(const ses_setting *s)
{
    for (; s->name; s++)
        if (!strcmp(s->name, "normalize") || !strcmp(s->name, "no_normalize") ||
            !strcmp(s->name, "pooling") || !strcmp(s->name, "layer"))
            return true;
    return false;
}

static bool open_library(pipeline *self, PyObject *task, PyObject *model, PyObject *device,
                         PyObject *settings, const char *base)
{
    ses_err e = { 0 };
    const char *task_name, *dir;
    ses_setting *set = ses_py_settings(settings);
    const pipeline *parent = (const pipeline *)self->parent;
    ses_pipeline_options o = { .settings = set, .base_model = base };
    ses_device *dev = parent ? NULL : ses_py_device_of(self->st, device);
    bool ok = set && (dev || parent) && ses_py_text_or_none(task, "task", &task_name) &&
              ses_py_text_or_none(model, "model", &dir);
    if (ok && parent) {
        o.tokenizer = ses_pipeline_tokenizer(parent->p);
        if (!sets_encoder(set)) o.encoder = ses_pipeline_encoder(parent->p);
        if (!o.encoder) o.model = ses_pipeline_model(parent->p);
    }
    if (ok) {
        Py_BEGIN_ALLOW_THREADS;
        self->p = ses_pipeline_open_with(task_name, dir, dev, &o, &e);
        Py_END_ALLOW_THREADS;
        if (!self->p) ses_py_raise(self->st, &e, NULL);
    }
    PyMem_Free(set);
    return self->p != NULL;
}

/* Pipeline(task, model, device, settings, parent=None, base_model=None) */
static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "task", "model", "device", "settings", "parent", "base_model", NULL };
    const ses_py_state *st = PyType_GetModuleState(type);
    PyObject *task, *model, *device, *settings, *parent = Py_None;
    const char *base = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UOOO!|Oz:Pipeline", names, &task, &model, &device,
                                     &PyTuple_Type, &settings, &parent, &base))
        return NULL;
    if (parent != Py_None && Py_TYPE(parent) != type) {
        PyErr_SetString(PyExc_TypeError, "parent must be a Pipeline");
        return NULL;
    }
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pipeline *self = (pipeline *)make(type, 0);
    if (!self) return NULL;
    self->st = st;
    if (parent != Py_None) self->parent = Py_NewRef(parent);
    self->device = Py_NewRef(parent != Py_None ? ((pipeline *)parent)->device : device);
    PyObject *path = model == Py_None ? Py_NewRef(Py_None) : ses_py_path(model);
    bool ok = path && ses_py_lock_init(&self->lock) &&
              (!self->parent || ses_py_device_of(st, self->device)) &&
              open_library(self, task, path, self->device, settings, base);
    Py_XDECREF(path);
    if (ok) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void pipeline_dealloc(PyObject *o)
{
    pipeline *self = (pipeline *)o;
    if (!ses_py_lock_is_foreign(&self->lock)) ses_pipeline_free(self->p);
    ses_py_lock_free(&self->lock);
    Py_XDECREF(self->parent);
    Py_XDECREF(self->device);
    ses_py_object_free(o);
}

/* ---- items ---- */

typedef struct items {
    PyObject *kept; /* a tuple that keeps the strings alive */
    ses_item *item;
    ses_string *word; /* the strings of all lists, in order */
    size_t n;
} items;

static void items_free(items *x)
{
    PyMem_Free(x->item);
    PyMem_Free(x->word);
    Py_XDECREF(x->kept);
}

static size_t list_size(PyObject *item)
{
    PyObject *list = PyTuple_Check(item) && PyTuple_Size(item) == 3 ? PyTuple_GetItem(item, 2) : NULL;
    return list && PyTuple_Check(list) ? (size_t)PyTuple_Size(list) : 0;
}

/* One item; its words go to *word, which moves on. */
static bool read_item(PyObject *o, ses_item *out, ses_string **word)
{
    if (PyUnicode_Check(o)) return ses_py_string(o, "a text", &out->text);
    if (!PyTuple_Check(o) || PyTuple_Size(o) != 3) {
        PyErr_SetString(PyExc_TypeError, "an item must be a str or a tuple (text, pair, list)");
        return false;
    }
    PyObject *text = PyTuple_GetItem(o, 0), *pair = PyTuple_GetItem(o, 1), *list = PyTuple_GetItem(o, 2);
    if (text != Py_None && !ses_py_string(text, "a text", &out->text)) return false;
    if (pair != Py_None && !ses_py_string(pair, "the second text", &out->pair)) return false;
    if (list == Py_None) return true;
    if (!PyTuple_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "the list of an item must be a tuple of str");
        return false;
    }
    out->list = *word;
    out->n_list = list_size(o);
    for (size_t i = 0; i < out->n_list; i++)
        if (!ses_py_string(PyTuple_GetItem(list, (Py_ssize_t)i), "an entry of a list", (*word)++))
            return false;
    return true;
}

static bool read_items(PyObject *sequence, items *out)
{
    size_t words = 0;
    *out = (items){ .kept = PySequence_Tuple(sequence) };
    if (!out->kept) return false;
    out->n = (size_t)PyTuple_Size(out->kept);
    for (size_t i = 0; i < out->n; i++) words += list_size(PyTuple_GetItem(out->kept, (Py_ssize_t)i));
    out->item = PyMem_Calloc(out->n + 1, sizeof *out->item);
    out->word = PyMem_Calloc(words + 1, sizeof *out->word);
    ses_string *word = out->word;
    if (!out->item || !word) return PyErr_NoMemory();
    for (size_t i = 0; i < out->n; i++) {
        out->item[i].number = (int64_t)i;
        if (!read_item(PyTuple_GetItem(out->kept, (Py_ssize_t)i), &out->item[i], &word)) return false;
    }
    return true;
}

/* ---- a run ---- */

typedef enum {
    OUT_OBJECTS, /* a list of what `--json` prints */
    OUT_ARRAYS,  /* a list of arrays [vectors, size] */
    OUT_VECTORS  /* one array [items, size] */
} out_kind;

typedef struct run {
    const ses_py_state *st;
    out_kind kind;
    bool keep_going;
    PyObject *list;        /* results so far */
    ses_py_array *stack;   /* OUT_VECTORS */
    size_t n;              /* items */
    int64_t first;         /* position of the first item in the caller's sequence, for errors */
    int64_t failed_item;   /* -1: none */
    PyObject *stream;      /* receives generated text; NULL: none */
    PyObject *progress;    /* OUT_VECTORS: receives the number of finished items now and then; NULL: none */
    PyThreadState *thread; /* while the interpreter lock is released */
} run;

/* Takes the interpreter lock in a callback of the library. */
static void enter(run *r) { PyEval_RestoreThread(r->thread); }
static void leave(run *r) { r->thread = PyEval_SaveThread(); }

/* A Python exception is set: the library returns with this error. */
static bool stopped(ses_err *e) { return ses_fail(e, SES_EIO, "stopped by an exception"); }

static PyObject *result_object(run *r, const ses_result *x)
{
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    if (!w) return ses_py_raise(r->st, &e, NULL);
    ses_result_write_json(x, w);
    PyObject *o = ses_py_from_writer(r->st, w);
    ses_json_writer_free(w);
    return o;
}

static PyObject *result_array(run *r, const ses_result *x)
{
    int64_t shape[2] = { x->n_vectors, x->vector_size };
    ses_py_array *a = ses_py_array_new(r->st, SES_F32, 2, shape);
    size_t bytes = (size_t)(shape[0] * shape[1]) * sizeof *x->vectors;
    if (a && bytes) memcpy(a->data, x->vectors, bytes);
    return (PyObject *)a;
}

static bool append(PyObject *list, PyObject *x)
{
    bool ok = x && PyList_Append(list, x) == 0;
    Py_XDECREF(x);
    return ok;
}

static bool show_progress(run *r, int64_t done)
{
    PyObject *answer = r->progress ? PyObject_CallFunction(r->progress, "L", (long long)done) : NULL;
    Py_XDECREF(answer);
    return answer || !r->progress;
}

/* Needs the interpreter lock only now and then: for the array, and to notice signals. */
static bool add_vector(run *r, const ses_result *x, ses_err *e)
{
    enum { SIGNALS_EVERY = 32 };
    bool ok = true;
    if (!r->stack || x->item->number % SIGNALS_EVERY == 0) {
        enter(r);
        int64_t shape[2] = { (int64_t)r->n, x->vector_size };
        if (!r->stack) r->stack = ses_py_array_new(r->st, SES_F32, 2, shape);
        ok = r->stack && PyErr_CheckSignals() == 0 && show_progress(r, x->item->number);
        leave(r);
        if (!ok) return stopped(e);
    }
    if (x->vector_size != r->stack->shape[1])
        return ses_fail(e, SES_EUNSUPPORTED, "vectors of different sizes cannot be stacked");
    memcpy((char *)r->stack->data + x->item->number * r->stack->strides[0], x->vectors,
           (size_t)r->stack->strides[0]);
    return true;
}

static bool on_result(void *ctx, const ses_result *x, ses_err *e)
{
    run *r = ctx;
    if (r->kind == OUT_VECTORS) return add_vector(r, x, e);
    enter(r);
    bool ok = append(r->list, r->kind == OUT_ARRAYS ? result_array(r, x) : result_object(r, x)) &&
              PyErr_CheckSignals() == 0;
    leave(r);
    return ok || stopped(e);
}

static bool on_item_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    run *r = ctx;
    if (!r->keep_going) {
        r->failed_item = item->number;
        return ses_fail(e, why->code, "%s", why->msg);
    }
    enter(r);
    bool ok = append(r->list, ses_py_exception(r->st, why)) && PyErr_CheckSignals() == 0;
    leave(r);
    return ok || stopped(e);
}

static bool on_stream(void *ctx, const char *piece, size_t n)
{
    run *r = ctx;
    enter(r);
    PyObject *text = PyErr_Occurred() ? NULL : ses_py_str((ses_string){ piece, n });
    PyObject *answer = text ? PyObject_CallFunctionObjArgs(r->stream, text, NULL) : NULL;
    bool ok = answer && PyErr_CheckSignals() == 0;
    Py_XDECREF(text);
    Py_XDECREF(answer);
    leave(r);
    return ok;
}

static bool should_stop(void *ctx)
{
    run *r = ctx;
    enter(r);
    bool stop = PyErr_Occurred() || PyErr_CheckSignals() != 0;
    leave(r);
    return stop;
}

static bool feed_all(ses_pipeline *p, run *r, const items *in, ses_err *e)
{
    bool ok = true;
    ses_pipeline_set_callback(p, on_result, r);
    ses_pipeline_set_error_callback(p, on_item_error, r);
    ses_pipeline_set_stream(p, r->stream ? on_stream : NULL, r);
    ses_pipeline_set_stop(p, should_stop, r);
    r->thread = PyEval_SaveThread();
    for (size_t i = 0; ok && i < in->n; i++) ok = ses_pipeline_feed(p, &in->item[i], e);
    if (ok) ok = ses_pipeline_flush(p, e);
    PyEval_RestoreThread(r->thread);
    ses_pipeline_set_callback(p, NULL, NULL);
    ses_pipeline_set_error_callback(p, NULL, NULL);
    ses_pipeline_set_stream(p, NULL, NULL);
    ses_pipeline_set_stop(p, NULL, NULL);
    return ok && !PyErr_Occurred();
}

/* The result of a run, which gives up its references. */
static PyObject *take_result(run *r)
{
    if (r->kind != OUT_VECTORS) return Py_NewRef(r->list);
    int64_t none[2] = { 0, 0 };
    return r->stack ? Py_NewRef((PyObject *)r->stack) : (PyObject *)ses_py_array_new(r->st, SES_F32, 2, none);
}

static PyObject *run_items(pipeline *self, PyObject *sequence, run *r)
{
    items in;
    ses_err e = { 0 };
    PyObject *out = NULL;
    char where[48];
    r->st = self->st;
    r->failed_item = -1;
    bool ok = read_items(sequence, &in) && (r->list = PyList_New(0)) &&
              ses_py_lock_take(&self->lock, self->st, "pipeline");
    if (ok) {
        r->n = in.n;
        bool done = feed_all(self->p, r, &in, &e);
        ses_py_lock_release(&self->lock);
        PyOS_snprintf(where, sizeof where, "item %lld", (long long)(r->first + r->failed_item));
        if (done)
            out = take_result(r);
        else if (!PyErr_Occurred())
            ses_py_raise(self->st, &e, r->failed_item >= 0 && r->first + in.n > 1 ? where : NULL);
    }
    items_free(&in);
    Py_XDECREF(r->list);
    Py_XDECREF((PyObject *)r->stack);
    return out;
}

static PyObject *pipeline_run(PyObject *o, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "items", "keep_going", "arrays", "stream", "first", NULL };
    PyObject *sequence, *stream = Py_None;
    int keep_going = 0, arrays = 0;
    long long first = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ppOL:run", names, &sequence, &keep_going, &arrays,
                                     &stream, &first))
        return NULL;
    run r = { .kind = arrays ? OUT_ARRAYS : OUT_OBJECTS, .keep_going = keep_going, .first = first };
    if (stream != Py_None) r.stream = stream;
    return run_items((pipeline *)o, sequence, &r);
}

static PyObject *pipeline_vectors(PyObject *o, PyObject *args)
{
    PyObject *sequence, *progress = Py_None;
    long long first = 0;
    if (!PyArg_ParseTuple(args, "O|OL:vectors", &sequence, &progress, &first)) return NULL;
    run r = { .kind = OUT_VECTORS, .first = first };
    if (progress != Py_None) r.progress = progress;
    return run_items((pipeline *)o, sequence, &r);
}

/* ---- attributes ---- */

static PyObject *get_max_seq_len(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(ses_pipeline_max_seq_len(((const pipeline *)o)->p));
}

static int set_max_seq_len(PyObject *o, PyObject *value, void *unused)
{
    pipeline *self = (pipeline *)o;
    (void)unused;
    long long n = value ? PyLong_AsLongLong(value) : 0;
    if (n == -1 && PyErr_Occurred()) return -1;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "max_seq_len must be at least 1");
        return -1;
    }
    if (!ses_py_lock_take(&self->lock, self->st, "pipeline")) return -1;
    bool ok = ses_pipeline_set_max_seq_len(self->p, n);
    ses_py_lock_release(&self->lock);
    if (!ok) PyErr_SetString(PyExc_ValueError, "this task never truncates");
    return ok ? 0 : -1;
}

static int set_batch_tokens(PyObject *o, PyObject *value, void *unused)
{
    pipeline *self = (pipeline *)o;
    (void)unused;
    long long n = value ? PyLong_AsLongLong(value) : 0;
    if (n == -1 && PyErr_Occurred()) return -1;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "batch_tokens must be at least 1");
        return -1;
    }
    if (!ses_py_lock_take(&self->lock, self->st, "pipeline")) return -1;
    ses_pipeline_set_batch_tokens(self->p, n);
    ses_py_lock_release(&self->lock);
    return 0;
}

static PyObject *get_warnings(PyObject *o, void *unused)
{
    (void)unused;
    return ses_py_str(ses_str(ses_pipeline_warnings(((const pipeline *)o)->p)));
}

static PyObject *get_device(PyObject *o, void *unused)
{
    (void)unused;
    return Py_NewRef(((const pipeline *)o)->device);
}

/* Name and text of each prompt of a sentence encoder; None: the pipeline has no encoder. */
static PyObject *get_encoder(PyObject *o, void *unused)
{
    (void)unused;
    const ses_sentence *s = ses_pipeline_encoder(((const pipeline *)o)->p);
    if (!s) Py_RETURN_NONE;
    PyObject *prompts = PyDict_New();
    for (size_t i = 0; prompts && i < ses_sentence_prompt_count(s); i++) {
        const char *name = ses_sentence_prompt_name(s, i);
        PyObject *text = ses_py_str(ses_str(ses_sentence_prompt(s, name)));
        if (!text || PyDict_SetItemString(prompts, name, text) < 0) Py_CLEAR(prompts);
        Py_XDECREF(text);
    }
    const char *prompt = ses_sentence_prompt(s, NULL);
    return prompts ? Py_BuildValue("{s:N,s:z,s:L,s:L,s:s,s:O}", "prompts", prompts, "default_prompt", prompt,
                                   "width", (long long)ses_sentence_width(s), "max_tokens",
                                   (long long)ses_sentence_max_tokens(s), "similarity",
                                   ses_sentence_similarity(s), "normalizes",
                                   ses_sentence_normalizes(s) ? Py_True : Py_False)
                   : NULL;
}

static PyObject *get_labels(PyObject *o, void *unused)
{
    (void)unused;
    const ses_model *m = ses_pipeline_model(((const pipeline *)o)->p);
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < ses_model_label_count(m); i++) {
        const char *name = ses_model_label_name(m, i);
        PyObject *s = name ? ses_py_str(ses_str(name)) : Py_NewRef(Py_None);
        if (!append(list, s)) Py_CLEAR(list);
    }
    return list;
}

static PyGetSetDef attributes[] = {
    { "max_seq_len", get_max_seq_len, set_max_seq_len, "Maximum length of a sequence in tokens.", NULL },
    { "batch_tokens", NULL, set_batch_tokens, "Tokens per batch.", NULL },
    { "warnings", get_warnings, NULL, "Remarks about settings without effect: lines.", NULL },
    { "device", get_device, NULL, "The Device.", NULL },
    { "encoder", get_encoder, NULL, "Properties of the sentence encoder, or None.", NULL },
    { "labels", get_labels, NULL, "Labels of the model.", NULL },
    { 0 },
};

static PyMethodDef methods[] = {
    { "run", (PyCFunction)(void (*)(void))pipeline_run, METH_VARARGS | METH_KEYWORDS,
      "run(items, keep_going=False, arrays=False, stream=None)\n--\n\nA result for each item." },
    { "vectors", pipeline_vectors, METH_VARARGS,
      "vectors(items, progress=None, /)\n--\n\nThe first vector of each result, stacked." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "Pipeline(task, model, device, settings, parent=None, base_model=None)\n--\n\nA task with its "
      "model. sesame.pipeline makes one with the arguments of transformers." },
    { Py_tp_new, pipeline_new },
    { Py_tp_dealloc, pipeline_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { 0 },
};

PyType_Spec ses_py_pipeline_spec = {
    .name = "sesame._sesame.Pipeline",
    .basicsize = sizeof(pipeline),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
