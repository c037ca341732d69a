/* ModelCore: ids in, named outputs as arrays. Sequences of a batch may have different lengths; outputs are
 * padded with zeros to the longest one, as [sequences, tokens, ...]. */
#include "binding.h"

typedef struct model {
    PyObject_HEAD const ses_py_state *st;
    ses_model *m;
    ses_tape *tape;
    PyObject *device;
    ses_py_lock lock;
} model;

/* ---- opening ---- */

static bool open_model(model *self, PyObject *path, const ses_model_options *o)
{
    ses_err e = { 0 };
    const char *name;
    ses_device *dev = ses_py_device_of(self->st, self->device);
    if (!dev || !ses_py_text_or_none(path, "model", &name)) return false;
    Py_BEGIN_ALLOW_THREADS;
    self->m = ses_model_open(name, dev, o, &e);
    self->tape = self->m ? ses_tape_new(dev, NULL, &e) : NULL;
    Py_END_ALLOW_THREADS;
    if (!self->tape) ses_py_raise(self->st, &e, NULL);
    return self->tape != NULL;
}

/* ModelCore(path, device, class_name=None, no_head=False, base_model=None) */
static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "device", "class_name", "no_head", "base_model", NULL };
    PyObject *path, *device;
    int no_head = 0;
    ses_model_options o = { 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|zpz:ModelCore", names, &path, &device, &o.class_name,
                                     &no_head, &o.base))
        return NULL;
    o.no_head = no_head;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    model *self = (model *)make(type, 0);
    if (!self) return NULL;
    self->st = PyType_GetModuleState(type);
    self->device = Py_NewRef(device);
    PyObject *dir = ses_py_path(path);
    bool ok = dir && ses_py_lock_init(&self->lock) && open_model(self, dir, &o);
    Py_XDECREF(dir);
    if (ok) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void model_dealloc(PyObject *o)
{
    model *self = (model *)o;
    if (!ses_py_lock_is_foreign(&self->lock)) {
        ses_tape_free(self->tape);
        ses_model_free(self->m);
    }
    ses_py_lock_free(&self->lock);
    Py_XDECREF(self->device);
    ses_py_object_free(o);
}

/* ---- input ---- */

/* Sequences of integers, concatenated. */
typedef struct packed {
    int32_t *x, *cu_seqlens;
    int64_t seqs, longest;
} packed;

static void packed_free(packed *p)
{
    PyMem_Free(p->x);
    PyMem_Free(p->cu_seqlens);
}

static bool refuse_number(PyObject *x, const char *what)
{
    PyObject *type = PyType_GetName(Py_TYPE(x));
    if (PyIndex_Check(x))
        PyErr_Format(PyExc_ValueError, "%s: %S is out of range", what, x);
    else if (type)
        PyErr_Format(PyExc_TypeError, "%s must be integers in lists of one or two levels, not %U", what,
                     type);
    Py_XDECREF(type);
    return false;
}

static bool read_numbers(PyObject *sequence, const char *what, int32_t *to)
{
    for (Py_ssize_t i = 0, n = PyTuple_Size(sequence); i < n; i++) {
        PyObject *item = PyTuple_GetItem(sequence, i);
        int overflow = 0;
        if (!PyIndex_Check(item)) return refuse_number(item, what);
        long long x = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (x == -1 && PyErr_Occurred()) return false;
        if (overflow || x < INT32_MIN || x > INT32_MAX) return refuse_number(item, what);
        to[i] = (int32_t)x;
    }
    return true;
}

/* A tuple of tuples of int. */
static bool read_packed(PyObject *o, const char *what, packed *p)
{
    int64_t total = 0;
    *p = (packed){ 0 };
    if (o == Py_None) return true;
    Py_ssize_t seqs = PyTuple_Check(o) ? PyTuple_Size(o) : 0;
    for (Py_ssize_t s = 0; s < seqs; s++) {
        PyObject *one = PyTuple_GetItem(o, s);
        Py_ssize_t n = PyTuple_Check(one) ? PyTuple_Size(one) : 0;
        if (!n) seqs = 0; /* refused below */
        total += n;
        if (n > p->longest) p->longest = n;
    }
    if (!seqs || total > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be a batch of sequences, each with at least one number",
                     what);
        return false;
    }
    p->x = PyMem_Calloc((size_t)total, sizeof *p->x);
    p->cu_seqlens = PyMem_Calloc((size_t)seqs + 1, sizeof *p->cu_seqlens);
    if (!p->x || !p->cu_seqlens) return PyErr_NoMemory();
    p->seqs = seqs;
    for (Py_ssize_t s = 0; s < seqs; s++) {
        PyObject *one = PyTuple_GetItem(o, s);
        if (!read_numbers(one, what, p->x + p->cu_seqlens[s])) return false;
        p->cu_seqlens[s + 1] = p->cu_seqlens[s] + (int32_t)PyTuple_Size(one);
    }
    return true;
}

typedef struct input {
    packed ids, segments, target;
    ses_batch batch;
} input;

static void input_free(input *in)
{
    packed_free(&in->ids);
    packed_free(&in->segments);
    packed_free(&in->target);
}

static bool same_lengths(const packed *a, const packed *b)
{
    return a->seqs == b->seqs &&
           !memcmp(a->cu_seqlens, b->cu_seqlens, ((size_t)a->seqs + 1) * sizeof *a->cu_seqlens);
}

static bool read_input(input *in, PyObject *ids, PyObject *segments, PyObject *target, int choices)
{
    *in = (input){ 0 };
    if (ids == Py_None) {
        PyErr_SetString(PyExc_TypeError, "input_ids is None, expected a batch of sequences of integers");
        return false;
    }
    if (!read_packed(ids, "input_ids", &in->ids) || !read_packed(segments, "token_type_ids", &in->segments) ||
        !read_packed(target, "decoder_input_ids", &in->target))
        return false;
    if (in->segments.x && !same_lengths(&in->ids, &in->segments)) {
        PyErr_SetString(PyExc_ValueError, "token_type_ids must have the shape of input_ids");
        return false;
    }
    if (in->target.x && in->target.seqs != in->ids.seqs) {
        PyErr_SetString(PyExc_ValueError, "decoder_input_ids must have as many sequences as input_ids");
        return false;
    }
    in->batch = (ses_batch){ .seqs = in->ids.seqs,
                             .tokens = in->ids.cu_seqlens[in->ids.seqs],
                             .cu_seqlens = in->ids.cu_seqlens,
                             .ids = in->ids.x,
                             .segments = in->segments.x,
                             .choices = choices,
                             .target_cu_seqlens = in->target.cu_seqlens,
                             .target_ids = in->target.x };
    return true;
}

/* ---- outputs ---- */

/* Rows of sequences, padded: [seqs, longest, cols]; [seqs, longest] for one of several columns. */
static PyObject *pad_rows(const ses_py_state *st, const ses_output *o, const packed *p, const float *x)
{
    int64_t stride = ses_rank(o->tensor) < 2 ? 1 : ses_cols(o->tensor), cols = o->cols ? o->cols : stride;
    bool flat = cols == 1 && (o->cols || ses_rank(o->tensor) < 2);
    int64_t shape[3] = { p->seqs, p->longest, cols };
    ses_py_array *a = ses_py_array_new(st, SES_F32, flat ? 2 : 3, shape);
    if (!a) return NULL;
    memset(a->data, 0, (size_t)(p->seqs * p->longest * cols) * sizeof *x);
    for (int64_t s = 0; s < p->seqs; s++)
        for (int64_t i = p->cu_seqlens[s]; i < p->cu_seqlens[s + 1]; i++)
            memcpy((float *)a->data + (s * p->longest + i - p->cu_seqlens[s]) * cols, x + i * stride + o->col,
                   (size_t)cols * sizeof *x);
    return (PyObject *)a;
}

/* [heads, queries, keys] of each sequence, padded: [seqs, heads, queries, keys]. */
static PyObject *pad_attention(const ses_py_state *st, const ses_output *o, const packed *q, const packed *k,
                               const float *x)
{
    int64_t cells = 0;
    for (int64_t s = 0; s < q->seqs; s++)
        cells +=
            (int64_t)(q->cu_seqlens[s + 1] - q->cu_seqlens[s]) * (k->cu_seqlens[s + 1] - k->cu_seqlens[s]);
    int64_t heads = ses_count(o->tensor) / cells, shape[4] = { q->seqs, heads, q->longest, k->longest };
    ses_py_array *a = ses_py_array_new(st, SES_F32, 4, shape);
    if (!a) return NULL;
    memset(a->data, 0, (size_t)ses_py_array_size(a) * sizeof *x);
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t queries = q->cu_seqlens[s + 1] - q->cu_seqlens[s],
                keys = k->cu_seqlens[s + 1] - k->cu_seqlens[s];
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < queries; i++, x += keys)
                memcpy((float *)a->data + ((s * heads + h) * q->longest + i) * k->longest, x,
                       (size_t)keys * sizeof *x);
    }
    return (PyObject *)a;
}

static PyObject *plain(const ses_py_state *st, const ses_output *o, const float *x)
{
    int rank = ses_rank(o->tensor);
    int64_t stride = ses_cols(o->tensor), cols = o->cols ? o->cols : stride, rows = ses_rows(o->tensor);
    int64_t shape[SES_MAX_DIM];
    for (int i = 0; i < rank; i++) shape[i] = o->tensor->dim[i];
    if (rank) shape[rank - 1] = cols;
    ses_py_array *a = ses_py_array_new(st, SES_F32, rank, shape);
    for (int64_t i = 0; a && i < rows; i++)
        memcpy((float *)a->data + i * cols, x + i * stride + o->col, (size_t)cols * sizeof *x);
    return (PyObject *)a;
}

static PyObject *output_array(model *self, const ses_output *o, const input *in)
{
    const packed *p = &in->ids, *t = in->target.x ? &in->target : &in->ids;
    float *x = PyMem_Malloc((size_t)ses_count(o->tensor) * sizeof *x + 1);
    PyObject *a = NULL;
    ses_err e = { 0 };
    if (!x) return PyErr_NoMemory();
    if (!ses_tape_read(self->tape, o->tensor, x)) {
        ses_tape_ok(self->tape, &e);
        ses_py_raise(self->st, &e, o->name);
    } else {
        switch (o->axis) {
        case SES_PER_TOKEN: a = pad_rows(self->st, o, p, x); break;
        case SES_PER_TARGET: a = pad_rows(self->st, o, t, x); break;
        case SES_PER_QUERY_KEY: a = pad_attention(self->st, o, p, p, x); break;
        case SES_PER_TARGET_QUERY_KEY: a = pad_attention(self->st, o, t, t, x); break;
        case SES_PER_CROSS_QUERY_KEY: a = pad_attention(self->st, o, t, p, x); break;
        default: a = plain(self->st, o, x); break;
        }
    }
    PyMem_Free(x);
    return a;
}

static PyObject *output_dict(model *self, const ses_outputs *out, const input *in)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < out->n; i++) {
        PyObject *a = output_array(self, &out->item[i], in);
        if (!a || PyDict_SetItemString(dict, out->item[i].name, a) < 0) Py_CLEAR(dict);
        Py_XDECREF(a);
    }
    return dict;
}

static PyObject *model_forward(PyObject *o, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "ids", "segments", "target", "hidden_states", "attentions", "choices", NULL };
    model *self = (model *)o;
    PyObject *ids, *segments = Py_None, *target = Py_None, *dict = NULL;
    int hidden_states = 0, attentions = 0, choices = 0;
    input in;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOppi:forward", names, &ids, &segments, &target,
                                     &hidden_states, &attentions, &choices))
        return NULL;
    if (read_input(&in, ids, segments, target, choices) && ses_py_lock_take(&self->lock, self->st, "model")) {
        ses_output_request request = { .logits = true,
                                       .hidden_states = hidden_states,
                                       .attentions = attentions };
        ses_outputs out;
        ses_err e = { 0 };
        bool ok;
        Py_BEGIN_ALLOW_THREADS;
        ses_tape_reset(self->tape, NULL);
        ok = ses_model_forward(self->m, self->tape, &in.batch, &request, &out, &e);
        Py_END_ALLOW_THREADS;
        dict = ok ? output_dict(self, &out, &in) : ses_py_raise(self->st, &e, NULL);
        ses_py_lock_release(&self->lock);
    }
    input_free(&in);
    return dict;
}

/* ---- properties ---- */

static PyObject *get_config(PyObject *o, void *unused)
{
    (void)unused;
    return ses_py_from_json(ses_model_config(((const model *)o)->m));
}

static PyObject *get_info(PyObject *o, void *unused)
{
    const ses_model *m = ((const model *)o)->m;
    (void)unused;
    return Py_BuildValue("{s:s,s:s,s:z,s:L,s:L,s:L,s:L,s:s}", "model_type", ses_model_type(m), "class_name",
                         ses_model_class_name(m), "head", ses_model_head_name(m), "max_tokens",
                         (long long)ses_model_max_tokens(m), "vocab_size", (long long)ses_model_vocab_size(m),
                         "layers", (long long)ses_model_layer_count(m), "parameters",
                         (long long)ses_store_element_count(ses_model_store(m)), "dtype",
                         ses_dtype_name(ses_model_dtype(m)));
}

static PyGetSetDef attributes[] = {
    { "config", get_config, NULL, "config.json as a dict.", NULL },
    { "info", get_info, NULL, "Properties of the model.", NULL },
    { 0 },
};

static PyMethodDef methods[] = {
    { "forward", (PyCFunction)(void (*)(void))model_forward, METH_VARARGS | METH_KEYWORDS,
      "Outputs of a batch by name." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "ModelCore(path, device, class_name=None, no_head=False, base_model=None)\n--\n\nA model; see "
      "sesame.Model." },
    { Py_tp_new, model_new },
    { Py_tp_dealloc, model_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { 0 },
};

PyType_Spec ses_py_model_spec = {
    .name = "sesame._sesame.ModelCore",
    .basicsize = sizeof(model),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
