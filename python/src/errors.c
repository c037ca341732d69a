/* Exceptions: sesame.Error and one subclass for each code of the library, which is also a subclass of the
 * exception that Python users expect. */
#include "binding.h"

typedef struct spec {
    const char *name, *doc;
    PyObject **also; /* a built-in exception; NULL: none */
} spec;

static PyObject *add_error(PyObject *module, PyObject *base, const spec *s)
{
    char full[64];
    PyOS_snprintf(full, sizeof full, "sesame.%s", s->name);
    PyObject *bases = s->also ? PyTuple_Pack(2, base, *s->also) : PyTuple_Pack(1, base);
    PyObject *type = bases ? PyErr_NewExceptionWithDoc(full, s->doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (type && PyModule_AddObjectRef(module, s->name, type) == 0) return type;
    Py_XDECREF(type);
    return NULL;
}

bool ses_py_add_errors(PyObject *module, ses_py_state *st)
{
    const spec base = { "Error", "Base of all errors of Sesame.", NULL };
    const spec fork = { "ForkError", "The object was opened before a fork: open it again in this process.",
                        &PyExc_RuntimeError };
    const spec code[SES_PY_CODES] = {
        [SES_ENOMEM] = { "OutOfMemoryError", "Not enough memory.", &PyExc_MemoryError },
        [SES_EIO] = { "FileError", "A file cannot be opened, read or written, or a model does not exist.",
                      &PyExc_OSError },
        [SES_EFORMAT] = { "FormatError", "The contents of a file violate their format.", &PyExc_ValueError },
        [SES_EARG] = { "ArgumentError", "A value is out of range or does not fit the model.",
                       &PyExc_ValueError },
        [SES_EUNSUPPORTED] = { "UnsupportedError", "Valid input that Sesame does not implement.",
                               &PyExc_NotImplementedError },
        [SES_EUSAGE] = { "UsageError", "An option is unknown or contradicts another one.",
                         &PyExc_ValueError },
    };
    st->error = add_error(module, PyExc_Exception, &base);
    if (!st->error || !(st->fork_error = add_error(module, st->error, &fork))) return false;
    for (int i = 0; i < SES_PY_CODES; i++)
        if (code[i].name && !(st->by_code[i] = add_error(module, st->error, &code[i]))) return false;
    return true;
}

static PyObject *type_of(const ses_py_state *st, const ses_err *e)
{
    bool known = e->code > SES_OK && (int)e->code < SES_PY_CODES && st->by_code[e->code];
    return known ? st->by_code[e->code] : st->error;
}

static PyObject *message(const ses_err *e, const char *where)
{
    const char *text = e->msg[0] ? e->msg : "failed without a message";
    PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!s || !where) return s;
    PyObject *both = PyUnicode_FromFormat("%s: %U", where, s);
    Py_DECREF(s);
    return both;
}

PyObject *ses_py_raise(const ses_py_state *st, const ses_err *e, const char *where)
{
    PyObject *s = message(e, where);
    if (s) PyErr_SetObject(type_of(st, e), s);
    Py_XDECREF(s);
    return NULL;
}

PyObject *ses_py_exception(const ses_py_state *st, const ses_err *e)
{
    PyObject *s = message(e, NULL);
    PyObject *x = s ? PyObject_CallFunctionObjArgs(type_of(st, e), s, NULL) : NULL;
    Py_XDECREF(s);
    return x;
}
