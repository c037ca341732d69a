/* The module sesame._sesame: its state, types and functions. */
#include "binding.h"

PyMODINIT_FUNC PyInit__sesame(void);

PyTypeObject *ses_py_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type) return NULL;
    if (PyModule_AddType(module, (PyTypeObject *)type) == 0) return (PyTypeObject *)type;
    Py_DECREF(type);
    return NULL;
}

void ses_py_object_free(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

PyObject *ses_py_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    PyObject *name = PyType_GetName(type);
    if (name) PyErr_Format(PyExc_TypeError, "%U objects are made by functions of sesame", name);
    Py_XDECREF(name);
    return NULL;
}

/* ---- functions ---- */

static PyObject *default_model(PyObject *module, PyObject *arg)
{
    const char *task;
    (void)module;
    if (!ses_py_text_or_none(arg, "task", &task)) return NULL;
    const char *name = task ? ses_model_default(task) : NULL;
    if (!name) Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

static PyObject *resolve(PyObject *module, PyObject *arg)
{
    const ses_py_state *st = PyModule_GetState(module);
    ses_err e = { 0 };
    const char *name;
    PyObject *path = ses_py_path(arg), *out = NULL;
    if (path && ses_py_text_or_none(path, "model", &name)) {
        char *dir = ses_model_resolve(name, NULL, &e);
        out = dir ? PyUnicode_DecodeFSDefault(dir) : ses_py_raise(st, &e, NULL);
        free(dir);
    }
    Py_XDECREF(path);
    return out;
}

static PyMethodDef functions[] = {
    { "default_model", default_model, METH_O, "Name of the bundled model for a task, or None." },
    { "resolve", resolve, METH_O, "Folder of a model, given its path or name." },
    { "trim", ses_py_trim, METH_VARARGS, "The first numbers of each row, scaled to length 1 if wanted." },
    { "similarity", ses_py_similarity, METH_VARARGS, "Similarity of the rows of two arrays." },
    { "quantize", ses_py_quantize, METH_VARARGS, "Vectors with fewer bits per number." },
    { "finetune", ses_py_finetune, METH_VARARGS, "Runs a fine-tuning." },
    { "pretrain", ses_py_pretrain, METH_VARARGS, "Runs a pretraining." },
    { 0 },
};

/* ---- the module ---- */

static int execute(PyObject *module)
{
    ses_py_state *st = PyModule_GetState(module);
    if (!ses_py_add_errors(module, st)) return -1;
    if (!(st->array = ses_py_add_type(module, &ses_py_array_spec)) ||
        !(st->device = ses_py_add_type(module, &ses_py_device_spec)) ||
        !(st->tokenizer = ses_py_add_type(module, &ses_py_tokenizer_spec)) ||
        !(st->encoding = ses_py_add_type(module, &ses_py_encoding_spec)) ||
        !(st->pipeline = ses_py_add_type(module, &ses_py_pipeline_spec)) ||
        !(st->model = ses_py_add_type(module, &ses_py_model_spec)))
        return -1;
    return PyModule_AddStringConstant(module, "version", ses_version());
}

static void clear_state(ses_py_state *st)
{
    Py_CLEAR(st->error);
    Py_CLEAR(st->fork_error);
    for (int i = 0; i < SES_PY_CODES; i++) Py_CLEAR(st->by_code[i]);
    Py_CLEAR(st->array);
    Py_CLEAR(st->device);
    Py_CLEAR(st->tokenizer);
    Py_CLEAR(st->encoding);
    Py_CLEAR(st->pipeline);
    Py_CLEAR(st->model);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const ses_py_state *st = PyModule_GetState(module);
    Py_VISIT(st->error);
    Py_VISIT(st->fork_error);
    for (int i = 0; i < SES_PY_CODES; i++) Py_VISIT(st->by_code[i]);
    Py_VISIT(st->array);
    Py_VISIT(st->device);
    Py_VISIT(st->tokenizer);
    Py_VISIT(st->encoding);
    Py_VISIT(st->pipeline);
    Py_VISIT(st->model);
    return 0;
}

static int clear(PyObject *module)
{
    clear_state(PyModule_GetState(module));
    return 0;
}

static void release(void *module) { clear(module); }

static PyModuleDef_Slot slots[] = { { Py_mod_exec, execute }, { 0 } };

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sesame._sesame",
    .m_doc = "The C library behind the package sesame.",
    .m_size = sizeof(ses_py_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__sesame(void) { return PyModuleDef_Init(&definition); }
