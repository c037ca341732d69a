/* Device: where models compute, with its threads. Models and pipelines keep their device open. */
#include "binding.h"

#include <stdio.h>

static bool choose_dtype(const char *name, ses_dtype *out)
{
    static const struct {
        const char *name;
        ses_dtype dtype;
    } known[] = { { "f32", SES_F32 },     { "f16", SES_F16 },     { "bf16", SES_BF16 },    { "int8", SES_I8 },
                  { "float32", SES_F32 }, { "float16", SES_F16 }, { "bfloat16", SES_BF16 } };
    if (!name) return true;
    for (size_t i = 0; i < SES_LEN(known); i++)
        if (!strcmp(known[i].name, name)) {
            *out = known[i].dtype;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "dtype must be f32, f16, bf16 or int8, not \"%s\"", name);
    return false;
}

static bool choose_isa(const char *name, ses_isa *out)
{
    if (!name) return true;
    char known[128] = "";
    for (int i = SES_ISA_REF; i < SES_ISA_COUNT; i++) {
        if (!strcmp(ses_isa_name((ses_isa)i), name)) {
            *out = (ses_isa)i;
            return true;
        }
        size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", ses_isa_name((ses_isa)i));
    }
    PyErr_Format(PyExc_ValueError, "isa must be one of %s, not \"%s\"", known, name);
    return false;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "name", "threads", "dtype", "isa", NULL };
    const ses_py_state *st = PyType_GetModuleState(type);
    const char *name = "cpu", *dtype = NULL, *isa = NULL;
    ses_device_options o = { 0 };
    ses_err e = { 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|sizz:Device", names, &name, &o.threads, &dtype, &isa))
        return NULL;
    if (!choose_dtype(dtype, &o.dtype) || !choose_isa(isa, &o.isa)) return NULL;
    if (o.threads < 0 || o.threads > 1024) {
        PyErr_Format(PyExc_ValueError, "threads must be 0 to 1024, not %d", o.threads);
        return NULL;
    }
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    ses_py_device *d = (ses_py_device *)make(type, 0);
    if (!d) return NULL;
    d->st = st;
    d->pid = ses_py_pid();
    Py_BEGIN_ALLOW_THREADS;
    d->dev = ses_device_open(name, &o, &e);
    Py_END_ALLOW_THREADS;
    if (d->dev) return (PyObject *)d;
    Py_DECREF((PyObject *)d);
    return ses_py_raise(st, &e, NULL);
}

static void device_dealloc(PyObject *o)
{
    ses_py_device *d = (ses_py_device *)o;
    if (d->pid == ses_py_pid()) ses_device_free(d->dev); /* else its threads do not exist here */
    ses_py_object_free(o);
}

ses_device *ses_py_device_of(const ses_py_state *st, PyObject *o)
{
    if (Py_TYPE(o) != st->device) {
        PyErr_SetString(PyExc_TypeError, "device must be a Device");
        return NULL;
    }
    const ses_py_device *d = (const ses_py_device *)o;
    if (d->pid == ses_py_pid()) return d->dev;
    PyErr_SetString(
        st->fork_error,
        "this device was opened before fork(), and its threads do not exist in the new process: open "
        "one here, or start processes with multiprocessing's \"spawn\"");
    return NULL;
}

static PyObject *get_name(PyObject *o, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(ses_device_name(((const ses_py_device *)o)->dev));
}

static PyObject *get_threads(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromLong(ses_device_threads(((const ses_py_device *)o)->dev));
}

static PyObject *device_repr(PyObject *o)
{
    const ses_py_device *d = (const ses_py_device *)o;
    return PyUnicode_FromFormat("sesame.Device('%s', threads=%d)", ses_device_name(d->dev),
                                ses_device_threads(d->dev));
}

static PyGetSetDef attributes[] = {
    { "name", get_name, NULL, "The name it was opened with: \"cpu\".", NULL },
    { "threads", get_threads, NULL, "Number of CPU threads.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "Device(name='cpu', threads=0, dtype=None, isa=None)\n--\n\nWhere models compute: \"cpu\", or "
      "\"cuda\" in builds with CUDA. threads 0: one per core. dtype: of dense weights, f32, f16, bf16 "
      "or int8; bf16 also of the operands of products, in training too, on processors with bf16 "
      "instructions. isa: the highest instruction set, such as ref, avx2 or avx512." },
    { Py_tp_new, device_new },
    { Py_tp_dealloc, device_dealloc },
    { Py_tp_repr, device_repr },
    { Py_tp_getset, attributes },
    { 0 },
};

PyType_Spec ses_py_device_spec = {
    .name = "sesame.Device",
    .basicsize = sizeof(ses_py_device),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
