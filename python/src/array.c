/* Array: numbers in C order with the buffer protocol. Rows and ranges of rows are views of the same memory.
 * */
#include "binding.h"

static const struct {
    const char *name, *format;
} dtypes[SES_DTYPE_COUNT] = {
    [SES_F32] = { "float32", "f" }, [SES_F64] = { "float64", "d" }, [SES_I64] = { "int64", "q" },
    [SES_I32] = { "int32", "i" },   [SES_I8] = { "int8", "b" },     [SES_U8] = { "uint8", "B" },
};

const char *ses_py_dtype_name(ses_dtype d) { return dtypes[d].name; }

Py_ssize_t ses_py_array_size(const ses_py_array *a)
{
    Py_ssize_t n = 1;
    for (int i = 0; i < a->ndim; i++) n *= a->shape[i];
    return n;
}

/* ---- making ---- */

static ses_py_array *alloc(const ses_py_state *st, ses_dtype dtype, int ndim)
{
    allocfunc make = (allocfunc)PyType_GetSlot(st->array, Py_tp_alloc);
    ses_py_array *a = (ses_py_array *)make(st->array, 0);
    if (!a) return NULL;
    a->st = st;
    a->dtype = dtype;
    a->ndim = ndim;
    return a;
}

static void set_strides(ses_py_array *a)
{
    Py_ssize_t stride = (Py_ssize_t)ses_dtype_size(a->dtype);
    for (int i = a->ndim - 1; i >= 0; i--) {
        a->strides[i] = stride;
        stride *= a->shape[i] > 0 ? a->shape[i] : 1;
    }
}

ses_py_array *ses_py_array_new(const ses_py_state *st, ses_dtype dtype, int ndim, const int64_t *shape)
{
    size_t bytes = ses_dtype_size(dtype);
    if (ndim > SES_PY_MAX_DIM) {
        PyErr_Format(PyExc_ValueError, "an array has at most %d axes", SES_PY_MAX_DIM);
        return NULL;
    }
    ses_py_array *a = alloc(st, dtype, ndim);
    if (!a) return NULL;
    for (int i = 0; i < ndim; i++) {
        a->shape[i] = (Py_ssize_t)shape[i];
        bool fits = !shape[i] || bytes <= (size_t)PY_SSIZE_T_MAX / (size_t)shape[i];
        bytes = fits ? bytes * (size_t)shape[i] : SIZE_MAX;
        if (!fits) break;
    }
    set_strides(a);
    if (bytes != SIZE_MAX) a->data = malloc(bytes ? bytes : 1);
    if (a->data) return a;
    PyErr_NoMemory();
    Py_DECREF((PyObject *)a);
    return NULL;
}

PyObject *ses_py_array_rows(ses_py_array *a, Py_ssize_t first, Py_ssize_t n, bool drop)
{
    ses_py_array *v = alloc(a->st, a->dtype, a->ndim - drop);
    if (!v) return NULL;
    for (int i = drop; i < a->ndim; i++) v->shape[i - drop] = a->shape[i];
    if (!drop) v->shape[0] = n;
    set_strides(v);
    v->data = (char *)a->data + first * a->strides[0];
    v->base = Py_NewRef(a->base ? a->base : (PyObject *)a);
    return (PyObject *)v;
}

static void array_dealloc(PyObject *o)
{
    ses_py_array *a = (ses_py_array *)o;
    if (a->base)
        Py_DECREF(a->base);
    else
        free(a->data);
    ses_py_object_free(o);
}

/* Array(object): a copy of a buffer. */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "object", NULL };
    const ses_py_state *st = PyType_GetModuleState(type);
    PyObject *from;
    Py_buffer b;
    int64_t shape[SES_PY_MAX_DIM];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Array", names, &from)) return NULL;
    for (int d = 0; d < SES_DTYPE_COUNT; d++) {
        if (!dtypes[d].name) continue;
        if (!ses_py_buffer(from, "object", (ses_dtype)d, SES_PY_MAX_DIM, &b)) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError) || d == SES_U8) return NULL;
            PyErr_Clear();
            continue;
        }
        for (int i = 0; i < b.ndim; i++) shape[i] = b.shape[i];
        ses_py_array *a = ses_py_array_new(st, (ses_dtype)d, b.ndim, shape);
        if (a && b.len) memcpy(a->data, b.buf, (size_t)b.len);
        PyBuffer_Release(&b);
        return (PyObject *)a;
    }
    return NULL;
}

/* ---- the buffer protocol ---- */

static int get_buffer(PyObject *o, Py_buffer *view, int flags)
{
    ses_py_array *a = (ses_py_array *)o;
    *view = (Py_buffer){ .obj = Py_NewRef(o), .buf = a->data };
    view->itemsize = (Py_ssize_t)ses_dtype_size(a->dtype);
    view->len = ses_py_array_size(a) * view->itemsize;
    view->ndim = a->ndim;
    if (flags & PyBUF_FORMAT) view->format = (char *)(uintptr_t)dtypes[a->dtype].format;
    if (flags & PyBUF_ND) view->shape = a->shape;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = a->strides;
    return 0;
}

/* Does a format of the struct module name this dtype, in native byte order? */
static bool is_format(const char *format, ses_dtype d)
{
    if (!format) return d == SES_U8;
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (strlen(format) != 1) return false;
    if (d == SES_I64) return *format == 'q' || (*format == 'l' && sizeof(long) == 8);
    if (d == SES_I32) return *format == 'i' || (*format == 'l' && sizeof(long) == 4);
    return *format == dtypes[d].format[0];
}

static bool refuse(PyObject *kind, const char *what, ses_dtype d, const char *got)
{
    PyErr_Format(kind, "%s must be a C-contiguous array of %s, not %s", what, dtypes[d].name, got);
    return false;
}

bool ses_py_buffer(PyObject *o, const char *what, ses_dtype dtype, int max_ndim, Py_buffer *out)
{
    char text[96];
    if (!PyObject_CheckBuffer(o)) {
        PyObject *name = PyType_GetName(Py_TYPE(o));
        if (name)
            PyErr_Format(PyExc_TypeError, "%s must be an array of %s (buffer protocol), not %U", what,
                         dtypes[dtype].name, name);
        Py_XDECREF(name);
        return false;
    }
    if (PyObject_GetBuffer(o, out, PyBUF_STRIDES | PyBUF_FORMAT) < 0) return false;
    if (!is_format(out->format, dtype)) {
        PyOS_snprintf(text, sizeof text, "of format \"%s\"; convert it, as with astype(\"%s\")",
                      out->format ? out->format : "B", dtypes[dtype].name);
        PyBuffer_Release(out);
        return refuse(PyExc_TypeError, what, dtype, text);
    }
    bool contiguous = PyBuffer_IsContiguous(out, 'C');
    if (contiguous && out->ndim >= 1 && out->ndim <= max_ndim) return true;
    PyOS_snprintf(text, sizeof text,
                  contiguous ? "with %d axes" : "strided; copy it, as with ascontiguousarray", out->ndim);
    PyBuffer_Release(out);
    return refuse(PyExc_ValueError, what, dtype, text);
}

/* ---- elements ---- */

PyObject *ses_py_array_item(const ses_py_array *a, Py_ssize_t i)
{
    switch (a->dtype) {
    case SES_F32: return PyFloat_FromDouble((double)((const float *)a->data)[i]);
    case SES_F64: return PyFloat_FromDouble(((const double *)a->data)[i]);
    case SES_I64: return PyLong_FromLongLong(((const int64_t *)a->data)[i]);
    case SES_I32: return PyLong_FromLong(((const int32_t *)a->data)[i]);
    case SES_I8: return PyLong_FromLong(((const int8_t *)a->data)[i]);
    default: return PyLong_FromLong(((const uint8_t *)a->data)[i]);
    }
}

static Py_ssize_t array_length(PyObject *o)
{
    const ses_py_array *a = (const ses_py_array *)o;
    if (a->ndim) return a->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of an array without axes");
    return -1;
}

static PyObject *array_at(PyObject *o, Py_ssize_t i)
{
    ses_py_array *a = (ses_py_array *)o;
    if (!a->ndim || i < 0 || i >= a->shape[0]) {
        PyErr_SetString(PyExc_IndexError, "array index out of range");
        return NULL;
    }
    return a->ndim == 1 ? ses_py_array_item(a, i) : ses_py_array_rows(a, i, 1, true);
}

static PyObject *subscript(PyObject *o, PyObject *key);

/* a[i, j, ...]: one index after another. A range may only be the last index. */
static PyObject *subscript_tuple(PyObject *o, PyObject *key)
{
    PyObject *at = Py_NewRef(o);
    for (Py_ssize_t i = 0, n = PyTuple_Size(key); at && i < n; i++) {
        PyObject *next, *one = PyTuple_GetItem(key, i);
        if (i + 1 < n && PySlice_Check(one)) {
            PyErr_SetString(PyExc_TypeError,
                            "only the last index may be a range; use numpy.asarray for others");
            next = NULL;
        } else {
            next = PyObject_GetItem(at, one);
        }
        Py_DECREF(at);
        at = next;
    }
    return at;
}

static PyObject *subscript(PyObject *o, PyObject *key)
{
    ses_py_array *a = (ses_py_array *)o;
    if (PyTuple_Check(key)) return subscript_tuple(o, key);
    if (PySlice_Check(key)) {
        Py_ssize_t begin, end, step, n = array_length(o);
        if (n < 0 || PySlice_Unpack(key, &begin, &end, &step) < 0) return NULL;
        Py_ssize_t rows = PySlice_AdjustIndices(n, &begin, &end, step);
        if (step == 1) return ses_py_array_rows(a, begin, rows, false);
        PyErr_SetString(PyExc_ValueError, "ranges have step 1; use numpy.asarray for others");
        return NULL;
    }
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    return array_at(o, i < 0 && a->ndim ? i + a->shape[0] : i);
}

static PyObject *to_list(const ses_py_array *a, int axis, Py_ssize_t *at)
{
    if (axis == a->ndim) return ses_py_array_item(a, (*at)++);
    PyObject *list = PyList_New(a->shape[axis]);
    for (Py_ssize_t i = 0; list && i < a->shape[axis]; i++) {
        PyObject *x = to_list(a, axis + 1, at);
        if (!x || PyList_SetItem(list, i, x) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *array_tolist(PyObject *o, PyObject *unused)
{
    Py_ssize_t at = 0;
    (void)unused;
    return to_list((const ses_py_array *)o, 0, &at);
}

/* ---- NumPy ---- */

static PyObject *as_numpy(PyObject *o)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *view = PyMemoryView_FromObject(o), *out = NULL;
    if (numpy && view) out = PyObject_CallMethod(numpy, "asarray", "O", view);
    Py_XDECREF(numpy);
    Py_XDECREF(view);
    return out;
}

static PyObject *array_numpy(PyObject *o, PyObject *unused)
{
    (void)unused;
    return as_numpy(o);
}

static PyObject *array_array(PyObject *o, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy)) return NULL;
    PyObject *x = as_numpy(o), *out = NULL;
    if (!x) return NULL;
    PyObject *own = PyObject_GetAttrString(x, "dtype");
    int same = !own ? -1 : dtype == Py_None ? 1 : PyObject_RichCompareBool(own, dtype, Py_EQ);
    if (same == 1)
        out = copy == Py_True ? PyObject_CallMethod(x, "copy", NULL) : Py_NewRef(x);
    else if (same == 0 && copy == Py_False)
        PyErr_SetString(PyExc_ValueError, "another dtype needs a copy");
    else if (same == 0)
        out = PyObject_CallMethod(x, "astype", "O", dtype);
    Py_XDECREF(own);
    Py_DECREF((PyObject *)x);
    return out;
}

/* ---- attributes ---- */

static PyObject *get_shape(PyObject *o, void *unused)
{
    const ses_py_array *a = (const ses_py_array *)o;
    PyObject *shape = PyTuple_New(a->ndim);
    (void)unused;
    for (int i = 0; shape && i < a->ndim; i++) {
        PyObject *n = PyLong_FromSsize_t(a->shape[i]);
        if (!n || PyTuple_SetItem(shape, i, n) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *o, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(ses_py_dtype_name(((const ses_py_array *)o)->dtype));
}

static PyObject *get_ndim(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((const ses_py_array *)o)->ndim);
}

static PyObject *get_size(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(ses_py_array_size((const ses_py_array *)o));
}

static PyObject *get_nbytes(PyObject *o, void *unused)
{
    const ses_py_array *a = (const ses_py_array *)o;
    (void)unused;
    return PyLong_FromSsize_t(ses_py_array_size(a) * (Py_ssize_t)ses_dtype_size(a->dtype));
}

static PyObject *array_repr(PyObject *o)
{
    PyObject *shape = get_shape(o, NULL);
    PyObject *s = shape ? PyUnicode_FromFormat("sesame.Array(shape=%R, dtype='%s')", shape,
                                               ses_py_dtype_name(((const ses_py_array *)o)->dtype))
                        : NULL;
    Py_XDECREF(shape);
    return s;
}

static PyGetSetDef attributes[] = {
    { "shape", get_shape, NULL, "Sizes of the axes, outermost first.", NULL },
    { "dtype", get_dtype, NULL, "Type of the numbers, as \"float32\".", NULL },
    { "ndim", get_ndim, NULL, "Number of axes.", NULL },
    { "size", get_size, NULL, "Number of elements.", NULL },
    { "nbytes", get_nbytes, NULL, "Bytes of the elements.", NULL },
    { 0 },
};

static PyMethodDef methods[] = {
    { "tolist", array_tolist, METH_NOARGS, "The numbers as nested lists." },
    { "numpy", array_numpy, METH_NOARGS, "A NumPy array that shares the memory." },
    { "__array__", (PyCFunction)(void (*)(void))array_array, METH_VARARGS | METH_KEYWORDS,
      "The same for numpy.asarray." },
    { "__dlpack__", (PyCFunction)(void (*)(void))ses_py_array_dlpack, METH_VARARGS | METH_KEYWORDS,
      "A DLPack capsule that shares the memory." },
    { "__dlpack_device__", ses_py_array_dlpack_device, METH_NOARGS, "The device of DLPack: (1, 0), a CPU." },
    { "__arrow_c_array__", (PyCFunction)(void (*)(void))ses_py_array_arrow, METH_VARARGS | METH_KEYWORDS,
      "Arrow capsules that share the memory: rows are lists of fixed size." },
    { "__arrow_c_schema__", ses_py_array_arrow_schema, METH_NOARGS, "The Arrow type, as a capsule." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "Array(object)\n--\n\nNumbers in C order. NumPy, PyTorch and Arrow read the memory without a "
      "copy: numpy.asarray(a), torch.from_dlpack(a), pyarrow.array(a). Array(object) copies any object "
      "with the buffer protocol." },
    { Py_tp_new, array_new },
    { Py_tp_dealloc, array_dealloc },
    { Py_tp_repr, array_repr },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_bf_getbuffer, get_buffer },
    { Py_sq_length, array_length },
    { Py_sq_item, array_at },
    { Py_mp_length, array_length },
    { Py_mp_subscript, subscript },
    { 0 },
};

PyType_Spec ses_py_array_spec = {
    .name = "sesame.Array",
    .basicsize = sizeof(ses_py_array),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
