/* Arrays for other libraries without a copy: DLPack (version 1 and the form before it) and the C data
 * interface of Arrow. Each capsule keeps the array alive until its consumer calls the release function,
 * from any thread. */
#include "binding.h"

static void drop_reference(PyObject *o)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(o);
    PyGILState_Release(gil);
}

/* ---- DLPack ---- */

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed { /* before version 1 */
    dl_tensor tensor;
    void *ctx;
    void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *ctx;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_CPU = 1, DL_FLAG_IS_COPIED = 2 };

/* One block for either struct, with the arrays that it points to. */
typedef struct dl_block {
    union {
        dl_managed old;
        dl_versioned versioned;
    };
    int64_t shape[SES_PY_MAX_DIM], strides[SES_PY_MAX_DIM];
} dl_block;

static void delete_old(dl_managed *m)
{
    drop_reference(m->ctx);
    free(m);
}

static void delete_versioned(dl_versioned *m)
{
    drop_reference(m->ctx);
    free(m);
}

static void fill_tensor(dl_tensor *t, const ses_py_array *a, dl_block *b)
{
    bool real = a->dtype == SES_F32 || a->dtype == SES_F64;
    *t = (dl_tensor){ .data = a->data, .ndim = a->ndim, .shape = b->shape, .strides = b->strides };
    t->device.type = DL_CPU;
    t->dtype.code = (uint8_t)(real ? 2 : a->dtype == SES_U8 ? 1 : 0);
    t->dtype.bits = (uint8_t)(8 * ses_dtype_size(a->dtype));
    t->dtype.lanes = 1;
    for (int i = 0; i < a->ndim; i++) {
        b->shape[i] = a->shape[i];
        b->strides[i] = a->strides[i] / (Py_ssize_t)ses_dtype_size(a->dtype);
    }
}

/* The consumer renames a capsule that it takes. */
static void free_capsule(PyObject *capsule)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        if (m && m->deleter) m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (m && m->deleter) m->deleter(m);
    }
    PyErr_Restore(type, value, trace);
}

static PyObject *make_capsule(ses_py_array *a, bool versioned, bool copied)
{
    dl_block *b = calloc(1, sizeof *b);
    if (!b) return PyErr_NoMemory();
    if (versioned) {
        b->versioned = (dl_versioned){ .version = { 1, 0 },
                                       .ctx = Py_NewRef((PyObject *)a),
                                       .deleter = delete_versioned };
        b->versioned.flags = copied ? DL_FLAG_IS_COPIED : 0;
        fill_tensor(&b->versioned.tensor, a, b);
    } else {
        b->old = (dl_managed){ .ctx = Py_NewRef((PyObject *)a), .deleter = delete_old };
        fill_tensor(&b->old.tensor, a, b);
    }
    PyObject *capsule = PyCapsule_New(b, versioned ? "dltensor_versioned" : "dltensor", free_capsule);
    if (capsule) return capsule;
    Py_DECREF((PyObject *)a);
    free(b);
    return NULL;
}

static ses_py_array *copy_array(const ses_py_array *a)
{
    int64_t shape[SES_PY_MAX_DIM];
    for (int i = 0; i < a->ndim; i++) shape[i] = a->shape[i];
    ses_py_array *c = ses_py_array_new(a->st, a->dtype, a->ndim, shape);
    if (c) memcpy(c->data, a->data, (size_t)ses_py_array_size(a) * ses_dtype_size(a->dtype));
    return c;
}

/* None, or (1, 0): the memory is a CPU's. */
static bool check_device(PyObject *device)
{
    int type, id;
    if (device == Py_None) return true;
    if (!PyTuple_Check(device)) {
        PyErr_SetString(PyExc_TypeError, "dl_device must be a tuple (type, id)");
        return false;
    }
    if (!PyArg_ParseTuple(device, "ii", &type, &id)) return false;
    if (type == DL_CPU) return true;
    PyErr_SetString(PyExc_BufferError, "the array is in CPU memory: dl_device must be (1, 0)");
    return false;
}

PyObject *ses_py_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    int major = 0, minor = 0;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream must be None: the array is in CPU memory");
        return NULL;
    }
    if (version != Py_None && (!PyTuple_Check(version) || !PyArg_ParseTuple(version, "ii", &major, &minor))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "max_version must be a tuple (major, minor)");
        return NULL;
    }
    if (!check_device(device)) return NULL;
    if (copy != Py_True) return make_capsule((ses_py_array *)self, major >= 1, false);
    ses_py_array *c = copy_array((ses_py_array *)self);
    PyObject *capsule = c ? make_capsule(c, major >= 1, true) : NULL;
    Py_XDECREF((PyObject *)c);
    return capsule;
}

PyObject *ses_py_array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- Arrow ---- */

typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *);
    void *ctx;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *);
    void *ctx;
} arrow_array;

/* The memory behind the struct of an axis, freed by its release function. Consumers may move a struct, or a
 * child, and release it elsewhere. */
typedef struct schema_block {
    char format[32];
    arrow_schema child, *child_at;
} schema_block;

typedef struct array_block {
    const void *buffers[2];
    arrow_array child, *child_at;
    PyObject *owner;
} array_block;

static void release_schema(arrow_schema *s)
{
    schema_block *b = s->ctx;
    if (b->child.release) b->child.release(&b->child);
    free(b);
    s->release = NULL;
}

static void release_array(arrow_array *x)
{
    array_block *b = x->ctx;
    if (b->child.release) b->child.release(&b->child);
    drop_reference(b->owner);
    free(b);
    x->release = NULL;
}

/* Axis `axis` and the axes after it: the last one holds numbers, the others lists of a fixed size. */
static bool fill_schema(arrow_schema *s, const ses_py_array *a, int axis)
{
    static const char *const formats[SES_DTYPE_COUNT] = {
        [SES_F32] = "f", [SES_F64] = "g", [SES_I64] = "l", [SES_I32] = "i", [SES_I8] = "c", [SES_U8] = "C",
    };
    schema_block *b = calloc(1, sizeof *b);
    if (!b) return PyErr_NoMemory();
    enum { NULLABLE = 2 };
    *s = (arrow_schema){
        .format = b->format, .name = axis ? "item" : "", .release = release_schema, .ctx = b
    };
    if (axis + 1 >= a->ndim) {
        PyOS_snprintf(b->format, sizeof b->format, "%s", formats[a->dtype]);
        return true;
    }
    PyOS_snprintf(b->format, sizeof b->format, "+w:%lld", (long long)a->shape[axis + 1]);
    b->child_at = &b->child;
    s->n_children = 1;
    s->children = &b->child_at;
    if (fill_schema(&b->child, a, axis + 1)) {
        b->child.flags = NULLABLE;
        return true;
    }
    s->release(s);
    return false;
}

static bool fill_array(arrow_array *x, ses_py_array *a, int axis, int64_t length)
{
    array_block *b = calloc(1, sizeof *b);
    if (!b) return PyErr_NoMemory();
    b->owner = Py_NewRef((PyObject *)a);
    *x = (arrow_array){ .length = length, .buffers = b->buffers, .release = release_array, .ctx = b };
    x->n_buffers = 1; /* a bitmap of nulls, absent */
    if (axis + 1 >= a->ndim) {
        b->buffers[1] = a->data;
        x->n_buffers = 2;
        return true;
    }
    b->child_at = &b->child;
    x->n_children = 1;
    x->children = &b->child_at;
    if (fill_array(&b->child, a, axis + 1, length * a->shape[axis + 1])) return true;
    x->release(x);
    return false;
}

static void free_schema(PyObject *capsule)
{
    arrow_schema *s = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (s && s->release) s->release(s);
    free(s);
}

static void free_array(PyObject *capsule)
{
    arrow_array *x = PyCapsule_GetPointer(capsule, "arrow_array");
    if (x && x->release) x->release(x);
    free(x);
}

PyObject *ses_py_array_arrow_schema(PyObject *self, PyObject *unused)
{
    (void)unused;
    const ses_py_array *a = (const ses_py_array *)self;
    if (!a->ndim) {
        PyErr_SetString(PyExc_ValueError, "an array without axes has no Arrow form");
        return NULL;
    }
    arrow_schema *s = calloc(1, sizeof *s);
    if (!s) return PyErr_NoMemory();
    PyObject *capsule = fill_schema(s, a, 0) ? PyCapsule_New(s, "arrow_schema", free_schema) : NULL;
    if (capsule) return capsule;
    if (s->release) s->release(s);
    free(s);
    return NULL;
}

PyObject *ses_py_array_arrow(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "requested_schema", NULL };
    PyObject *requested = Py_None; /* a wish, which may be ignored */
    ses_py_array *a = (ses_py_array *)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_array__", names, &requested)) return NULL;
    PyObject *schema = ses_py_array_arrow_schema(self, NULL);
    arrow_array *x = schema ? calloc(1, sizeof *x) : NULL;
    if (schema && !x) PyErr_NoMemory();
    PyObject *array = NULL;
    if (x && fill_array(x, a, 0, a->shape[0])) array = PyCapsule_New(x, "arrow_array", free_array);
    if (!array && x) {
        if (x->release) x->release(x);
        free(x);
    }
    PyObject *both = array ? PyTuple_Pack(2, schema, array) : NULL;
    Py_XDECREF(schema);
    Py_XDECREF(array);
    return both;
}
