/* Strings, paths, settings and JSON values between Python and the library. */
#include "binding.h"

bool ses_py_string(PyObject *o, const char *what, ses_string *out)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(o)) {
        PyObject *type = PyType_GetName(Py_TYPE(o));
        if (type) PyErr_Format(PyExc_TypeError, "%s must be str, not %U", what, type);
        Py_XDECREF(type);
        return false;
    }
    out->p = PyUnicode_AsUTF8AndSize(o, &n);
    if (out->p) out->n = (size_t)n;
    return out->p != NULL;
}

bool ses_py_text_or_none(PyObject *o, const char *what, const char **out)
{
    ses_string s;
    *out = NULL;
    if (!o || o == Py_None) return true;
    if (!ses_py_string(o, what, &s)) return false;
    if (strlen(s.p) != s.n) {
        PyErr_Format(PyExc_ValueError, "%s contains a NUL character", what);
        return false;
    }
    *out = s.p;
    return true;
}

PyObject *ses_py_path(PyObject *o)
{
    PyObject *path = PyOS_FSPath(o), *s = NULL;
    if (!path) return NULL;
    if (PyUnicode_Check(path)) return path;
    s = PyUnicode_DecodeFSDefaultAndSize(PyBytes_AsString(path), PyBytes_Size(path));
    Py_DECREF(path);
    return s;
}

PyObject *ses_py_str(ses_string s)
{
    return PyUnicode_DecodeUTF8(s.p ? s.p : "", (Py_ssize_t)s.n, "replace");
}

/* ---- JSON ---- */

static PyObject *from_array(const ses_json *v)
{
    size_t n = ses_json_len(v);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *x = ses_py_from_json(ses_json_at(v, i));
        if (!x || PyList_SetItem(list, (Py_ssize_t)i, x) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *from_object(const ses_json *v)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0, n = ses_json_len(v); dict && i < n; i++) {
        ses_string name;
        name.p = ses_json_key(v, i, &name.n);
        PyObject *key = ses_py_str(name), *x = key ? ses_py_from_json(ses_json_at(v, i)) : NULL;
        if (!x || PyDict_SetItem(dict, key, x) < 0) Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(x);
    }
    return dict;
}

PyObject *ses_py_from_json(const ses_json *v)
{
    ses_string s = { 0 };
    double x = 0;
    int64_t i = 0;
    uint64_t u = 0;
    bool b = false;
    switch (ses_json_type_of(v)) {
    case SES_JSON_BOOL: ses_json_bool(v, &b); return PyBool_FromLong(b);
    case SES_JSON_INT: ses_json_int(v, &i); return PyLong_FromLongLong(i);
    case SES_JSON_UINT: ses_json_uint(v, &u); return PyLong_FromUnsignedLongLong(u);
    case SES_JSON_REAL: ses_json_real(v, &x); return PyFloat_FromDouble(x);
    case SES_JSON_STRING: s.p = ses_json_string(v, &s.n); return ses_py_str(s);
    case SES_JSON_ARRAY: return from_array(v);
    case SES_JSON_OBJECT: return from_object(v);
    case SES_JSON_NULL: break;
    }
    Py_RETURN_NONE;
}

PyObject *ses_py_from_writer(const ses_py_state *st, ses_json_writer *w)
{
    ses_err e = { 0 };
    size_t n;
    const char *text = ses_json_writer_text(w, &n, &e);
    ses_json_doc *doc = text ? ses_json_parse(text, n, &e) : NULL;
    if (!doc) return ses_py_raise(st, &e, NULL);
    PyObject *value = ses_py_from_json(ses_json_root(doc));
    ses_json_free(doc);
    return value;
}

/* ---- settings ---- */

static bool read_setting(PyObject *pair, ses_setting *out)
{
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "settings must be pairs of a name and a value");
        return false;
    }
    return ses_py_text_or_none(PyTuple_GetItem(pair, 0), "the name of a setting", &out->name) &&
           ses_py_text_or_none(PyTuple_GetItem(pair, 1), "the value of a setting", &out->value);
}

ses_setting *ses_py_settings(PyObject *pairs)
{
    Py_ssize_t n = PyTuple_Check(pairs) ? PyTuple_Size(pairs) : -1;
    if (n < 0) {
        PyErr_SetString(PyExc_TypeError, "settings must be a tuple");
        return NULL;
    }
    ses_setting *s = PyMem_Calloc((size_t)n + 1, sizeof *s);
    if (!s) return (ses_setting *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++)
        if (!read_setting(PyTuple_GetItem(pairs, i), &s[i])) {
            PyMem_Free(s);
            return NULL;
        }
    return s;
}
