/* The extension module sesame._sesame: what its files share. Every type is a heap type, one per file; an
 * object keeps a pointer to the state of its module. Only public headers of Sesame and Python's limited API
 * of version 3.11 are used.
 *
 * Threads: the interpreter lock is released while the library computes. An object of the library that is
 * modified by a call (pipeline, workspace) has a ses_py_lock; a second thread waits for it. */
#ifndef SES_PYTHON_BINDING_H
#define SES_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "sesame/sesame.h"

#include <stdlib.h>
#include <string.h>

/* ---- state of the module ---- */

enum { SES_PY_CODES = SES_EUSAGE + 1 };

typedef struct ses_py_state {
    PyObject *error;                 /* the base of all exceptions */
    PyObject *by_code[SES_PY_CODES]; /* by ses_code */
    PyObject *fork_error;
    PyTypeObject *array, *device, *tokenizer, *encoding, *pipeline, *model;
} ses_py_state;

/* ---- errors ---- */

/* Creates the exceptions and adds them to the module. */
bool ses_py_add_errors(PyObject *module, ses_py_state *st);
/* Raises the exception of e's code; returns NULL. "where: " is put before the message unless it is NULL. */
PyObject *ses_py_raise(const ses_py_state *st, const ses_err *e, const char *where);
/* A new exception object, not raised. */
PyObject *ses_py_exception(const ses_py_state *st, const ses_err *e);

/* ---- locks and processes ---- */

typedef struct ses_py_lock {
    PyThread_type_lock lock;
    unsigned long owner; /* thread that holds it; 0: none */
    int pid;             /* process that made it */
} ses_py_lock;

int ses_py_pid(void);
bool ses_py_lock_init(ses_py_lock *l);
void ses_py_lock_free(ses_py_lock *l);
/* Waits for the lock without the interpreter lock. False and an exception: this thread has it already, by a
 * callback, or the object was made before a fork. `what` names the object. */
bool ses_py_lock_take(ses_py_lock *l, const ses_py_state *st, const char *what);
void ses_py_lock_release(ses_py_lock *l);
/* Was the object made by another process? It must not be freed then: its threads do not exist here. */
bool ses_py_lock_is_foreign(const ses_py_lock *l);

/* ---- strings and values ---- */

/* UTF-8 of a str, borrowed from it. False and a TypeError that names `what`: not a str. */
bool ses_py_string(PyObject *o, const char *what, ses_string *out);
/* The same without a NUL in it, as a C string; NULL and an exception: not such a str. None gives *out NULL.
 * */
bool ses_py_text_or_none(PyObject *o, const char *what, const char **out);
/* A path: str, or os.PathLike. A new reference to a str; NULL and an exception: neither. */
PyObject *ses_py_path(PyObject *o);
PyObject *ses_py_str(ses_string s); /* invalid UTF-8 becomes U+FFFD */
/* A parsed value as Python object, a new reference. */
PyObject *ses_py_from_json(const ses_json *v);
/* The text of a writer as Python object; NULL and an exception: the writer failed. */
PyObject *ses_py_from_writer(const ses_py_state *st, ses_json_writer *w);

/* Settings by name: a sequence of (name, value) of str or None, for the options of the library. The strings
 * are borrowed from the sequence. Free with PyMem_Free. NULL and an exception: not such a sequence. */
ses_setting *ses_py_settings(PyObject *pairs);

/* ---- types ---- */

/* Creates a type and adds it to the module. NULL and an exception: out of memory. */
PyTypeObject *ses_py_add_type(PyObject *module, PyType_Spec *spec);
void ses_py_object_free(PyObject *o); /* the end of a dealloc function */
/* tp_new of types that only the module makes. */
PyObject *ses_py_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

extern PyType_Spec ses_py_array_spec, ses_py_device_spec, ses_py_tokenizer_spec, ses_py_encoding_spec,
    ses_py_pipeline_spec, ses_py_model_spec;

/* ---- arrays ---- */

enum { SES_PY_MAX_DIM = 5 };

typedef struct ses_py_array {
    PyObject_HEAD const ses_py_state *st;
    ses_dtype dtype; /* F32, F64, I64, I32, I8 or U8 */
    int ndim;
    Py_ssize_t shape[SES_PY_MAX_DIM], strides[SES_PY_MAX_DIM]; /* strides in bytes, of a C-contiguous array */
    void *data;
    PyObject *base; /* the array whose memory this is; NULL: its own */
} ses_py_array;

/* A new array with undefined values. NULL and an exception: out of memory, or more than SES_PY_MAX_DIM
 * axes. */
ses_py_array *ses_py_array_new(const ses_py_state *st, ses_dtype dtype, int ndim, const int64_t *shape);
Py_ssize_t ses_py_array_size(const ses_py_array *a); /* elements */
/* A view of some rows of the first axis, or with `drop` of row `first` as an array of one axis less. */
PyObject *ses_py_array_rows(ses_py_array *a, Py_ssize_t first, Py_ssize_t n, bool drop);
PyObject *ses_py_array_item(const ses_py_array *a, Py_ssize_t i); /* element i as a Python number */
const char *ses_py_dtype_name(ses_dtype d);                       /* "float32" */

/* A C-contiguous buffer of this dtype with 1 to max_ndim axes, from an Array, a NumPy array or the like.
 * Release it with PyBuffer_Release. False and a TypeError or ValueError that names `what`: another dtype or
 * layout. */
bool ses_py_buffer(PyObject *o, const char *what, ses_dtype dtype, int max_ndim, Py_buffer *out);

/* Exchange with other libraries. */
PyObject *ses_py_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *ses_py_array_dlpack_device(PyObject *self, PyObject *unused);
PyObject *ses_py_array_arrow(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *ses_py_array_arrow_schema(PyObject *self, PyObject *unused);

/* Functions of the module. */
PyObject *ses_py_trim(PyObject *module, PyObject *args);
PyObject *ses_py_similarity(PyObject *module, PyObject *args);
PyObject *ses_py_quantize(PyObject *module, PyObject *args);

/* ---- devices ---- */

typedef struct ses_py_device {
    PyObject_HEAD const ses_py_state *st;
    ses_device *dev;
    int pid;
} ses_py_device;

/* The device of a Device object. NULL and an exception: not one, or opened before a fork. */
ses_device *ses_py_device_of(const ses_py_state *st, PyObject *o);

/* ---- tokenizers ---- */

typedef struct ses_py_encoding ses_py_encoding;

/* A copy of an encoding of workspace k. */
PyObject *ses_py_encoding_new(const ses_py_state *st, const ses_encode_ctx *k, const ses_encoding *x);
/* Appends an overflowing part. */
bool ses_py_encoding_add_overflow(PyObject *encoding, PyObject *part);

/* ---- training ---- */

PyObject *ses_py_finetune(PyObject *module, PyObject *args);
PyObject *ses_py_pretrain(PyObject *module, PyObject *args);

#endif
