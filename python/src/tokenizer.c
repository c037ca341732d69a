/* TokenizerCore: texts to encodings and back. The package's Tokenizer adds the arguments of Hugging Face
 * Tokenizers and transformers. */
#include "binding.h"

typedef struct tokenizer {
    PyObject_HEAD const ses_py_state *st;
    ses_tokenizer *t;
    ses_encode_ctx *k;
    ses_py_lock lock;
} tokenizer;

/* ---- opening ---- */

static bool open_tokenizer(tokenizer *self, PyObject *path, PyObject *json, int lower)
{
    ses_err e = { 0 };
    ses_string text = { 0 };
    const char *file = NULL;
    if (json != Py_None && !ses_py_string(json, "json", &text)) return false;
    if (json == Py_None && !ses_py_text_or_none(path, "path", &file)) return false;
    Py_BEGIN_ALLOW_THREADS;
    if (text.p) {
        self->t = ses_tokenizer_from_json(text.p, text.n, &e);
    } else {
        char *dir = ses_model_resolve(file ? file : "", NULL, &e);
        self->t = dir ? ses_tokenizer_open_lower(dir, lower, &e) : NULL;
        free(dir);
    }
    self->k = self->t ? ses_encode_ctx_new(self->t, &e) : NULL;
    Py_END_ALLOW_THREADS;
    if (!self->k) ses_py_raise(self->st, &e, NULL);
    return self->k != NULL;
}

/* TokenizerCore(path=None, json=None, lower=False) */
static PyObject *tokenizer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "json", "lower", NULL };
    PyObject *path = Py_None, *json = Py_None;
    int lower = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOp:TokenizerCore", names, &path, &json, &lower))
        return NULL;
    if ((path == Py_None) == (json == Py_None)) {
        PyErr_SetString(PyExc_TypeError, "either path or json is required");
        return NULL;
    }
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tokenizer *self = (tokenizer *)make(type, 0);
    if (!self) return NULL;
    self->st = PyType_GetModuleState(type);
    PyObject *file = path == Py_None ? Py_NewRef(path) : ses_py_path(path);
    bool ok = file && ses_py_lock_init(&self->lock) && open_tokenizer(self, file, json, lower);
    Py_XDECREF(file);
    if (ok) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void tokenizer_dealloc(PyObject *o)
{
    tokenizer *self = (tokenizer *)o;
    ses_encode_ctx_free(self->k);
    ses_tokenizer_free(self->t);
    ses_py_lock_free(&self->lock);
    ses_py_object_free(o);
}

/* A tokenizer has no threads, so that it works after a fork: with a new workspace and lock, as another thread
 * may have used the old ones. */
static bool take(tokenizer *self)
{
    if (ses_py_lock_is_foreign(&self->lock)) {
        ses_err e = { 0 };
        ses_encode_ctx *k = ses_encode_ctx_new(self->t, &e);
        if (!k) return ses_py_raise(self->st, &e, NULL);
        self->k = k;
        if (!ses_py_lock_init(&self->lock)) return false;
    }
    return ses_py_lock_take(&self->lock, self->st, "tokenizer");
}

/* ---- input ---- */

/* Strings of a text or of its words, which the Python object keeps alive. */
static bool read_text(PyObject *o, ses_string *text, ses_string **words, size_t *n)
{
    if (!PyTuple_Check(o)) return ses_py_string(o, "a text", text);
    Py_ssize_t count = PyTuple_Size(o);
    *words = PyMem_Calloc((size_t)count + 1, sizeof **words);
    if (!*words) return PyErr_NoMemory();
    *n = (size_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(o, i);
        if (!one || !ses_py_string(one, "a word", &(*words)[i])) return false;
    }
    return true;
}

typedef struct source {
    ses_input in;
    ses_string *words, *pair_words;
} source;

static void source_free(source *s)
{
    PyMem_Free(s->words);
    PyMem_Free(s->pair_words);
}

static bool read_source(PyObject *text, PyObject *pair, source *s)
{
    *s = (source){ 0 };
    if (!read_text(text, &s->in.text, &s->words, &s->in.n_words)) return false;
    s->in.words = s->words;
    if (pair == Py_None) return true;
    if (!read_text(pair, &s->in.pair, &s->pair_words, &s->in.n_pair_words)) return false;
    s->in.pair_words = s->pair_words;
    return true;
}

/* ---- encoding ---- */

static bool add_overflow(tokenizer *self, PyObject *encoding)
{
    ses_err e = { 0 };
    for (size_t i = 0, n = ses_encode_ctx_overflow_count(self->k); i < n; i++) {
        const ses_encoding *x = ses_encode_ctx_overflow(self->k, i, &e);
        PyObject *part = x ? ses_py_encoding_new(self->st, self->k, x) : ses_py_raise(self->st, &e, NULL);
        bool ok = part && ses_py_encoding_add_overflow(encoding, part);
        Py_XDECREF(part);
        if (!ok) return false;
    }
    return true;
}

static PyObject *encode_source(tokenizer *self, const source *s, const ses_encode_options *o)
{
    enum { LONG_TEXT = 4096 }; /* shorter ones take less time than passing the interpreter lock on */
    ses_err e = { 0 };
    bool ok;
    if (s->in.text.n + s->in.pair.n < LONG_TEXT) {
        ok = ses_encode(self->k, &s->in, o, &e);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        ok = ses_encode(self->k, &s->in, o, &e);
        Py_END_ALLOW_THREADS;
    }
    if (!ok) return ses_py_raise(self->st, &e, NULL);
    PyObject *x = ses_py_encoding_new(self->st, self->k, ses_encode_ctx_result(self->k));
    if (x && !add_overflow(self, x)) Py_CLEAR(x);
    return x;
}

static bool read_options(PyObject *args, PyObject *kwargs, PyObject **text, PyObject **pair,
                         ses_encode_options *o)
{
    static char *names[] = { "text",       "pair",     "special",       "truncation",
                             "max_length", "stride",   "truncate_left", "full_overflow",
                             "pad_to",     "pad_left", "stored",        NULL };
    int special = 1, truncation = 0, left = 0, full = 0, pad_left = 0, stored = 0;
    long long max_length = 0, stride = 0, pad_to = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OpiLLppLpp:encode", names, text, pair, &special,
                                     &truncation, &max_length, &stride, &left, &full, &pad_to, &pad_left,
                                     &stored))
        return false;
    if (truncation < 0 || truncation > SES_TRUNCATE_ONLY_SECOND) {
        PyErr_SetString(PyExc_ValueError, "unknown kind of truncation");
        return false;
    }
    *o = (ses_encode_options){ .no_special = !special,
                               .use_stored_limits = stored,
                               .truncation = (ses_truncation)truncation,
                               .max_length = max_length,
                               .stride = stride,
                               .truncate_left = left,
                               .full_overflow = full,
                               .pad_to = pad_to,
                               .pad_left = pad_left };
    return true;
}

static PyObject *tokenizer_encode(PyObject *o, PyObject *args, PyObject *kwargs)
{
    tokenizer *self = (tokenizer *)o;
    PyObject *text, *pair = Py_None, *x = NULL;
    ses_encode_options options;
    source s;
    if (!read_options(args, kwargs, &text, &pair, &options)) return NULL;
    if (read_source(text, pair, &s) && take(self)) {
        x = encode_source(self, &s, &options);
        ses_py_lock_release(&self->lock);
    }
    source_free(&s);
    return x;
}

/* ---- decoding ---- */

static PyObject *tokenizer_decode(PyObject *o, PyObject *args)
{
    tokenizer *self = (tokenizer *)o;
    PyObject *ids, *out = NULL;
    int skip_special = 1;
    ses_err e = { 0 };
    ses_string text;
    if (!PyArg_ParseTuple(args, "O|p:decode", &ids, &skip_special)) return NULL;
    PyObject *kept = PySequence_Tuple(ids);
    if (!kept) return NULL;
    Py_ssize_t n = PyTuple_Size(kept);
    int32_t *id = PyMem_Calloc((size_t)n + 1, sizeof *id);
    if (!id) PyErr_NoMemory();
    for (Py_ssize_t i = 0; id && i < n && !PyErr_Occurred(); i++) {
        long long x = PyLong_AsLongLong(PyTuple_GetItem(kept, i));
        if (!PyErr_Occurred() && (x < 0 || x > INT32_MAX))
            PyErr_Format(PyExc_ValueError, "%lld is not an id", x);
        id[i] = (int32_t)x;
    }
    if (!PyErr_Occurred() && take(self)) {
        bool ok = ses_decode(self->k, id, (size_t)n, !skip_special, &text.p, &text.n, &e);
        out = ok ? ses_py_str(text) : ses_py_raise(self->st, &e, NULL);
        ses_py_lock_release(&self->lock);
    }
    PyMem_Free(id);
    Py_DECREF(kept);
    return out;
}

/* ---- vocabulary ---- */

static PyObject *token_to_id(PyObject *o, PyObject *arg)
{
    ses_string s;
    if (!ses_py_string(arg, "a token", &s)) return NULL;
    int32_t id = ses_tokenizer_token_to_id(((const tokenizer *)o)->t, s.p, s.n);
    if (id < 0) Py_RETURN_NONE;
    return PyLong_FromLong(id);
}

static PyObject *id_to_token(PyObject *o, PyObject *arg)
{
    const ses_tokenizer *t = ((const tokenizer *)o)->t;
    long long id = PyLong_AsLongLong(arg);
    ses_string s = { 0 };
    if (id == -1 && PyErr_Occurred()) return NULL;
    if (id >= 0 && id < ses_tokenizer_vocab_size(t)) s.p = ses_tokenizer_id_to_token(t, (int32_t)id, &s.n);
    if (!s.p) Py_RETURN_NONE;
    return ses_py_str(s);
}

static PyObject *is_special(PyObject *o, PyObject *arg)
{
    long id = PyLong_AsLong(arg);
    if (id == -1 && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(id >= 0 && id <= INT32_MAX &&
                           ses_tokenizer_is_special(((const tokenizer *)o)->t, (int32_t)id));
}

static PyObject *get_vocab(PyObject *o, PyObject *unused)
{
    const ses_tokenizer *t = ((const tokenizer *)o)->t;
    PyObject *dict = PyDict_New();
    (void)unused;
    for (int64_t i = 0; dict && i < ses_tokenizer_vocab_size(t); i++) {
        ses_string s;
        if (!(s.p = ses_tokenizer_id_to_token(t, (int32_t)i, &s.n))) continue;
        PyObject *key = ses_py_str(s), *id = key ? PyLong_FromLongLong(i) : NULL;
        if (!id || PyDict_SetItem(dict, key, id) < 0) Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(id);
    }
    return dict;
}

static PyObject *tokenizer_save(PyObject *o, PyObject *args)
{
    const tokenizer *self = (const tokenizer *)o;
    PyObject *path;
    const char *file;
    int overwrite = 0;
    ses_err e = { 0 };
    if (!PyArg_ParseTuple(args, "O|p:save", &path, &overwrite)) return NULL;
    PyObject *s = ses_py_path(path);
    bool ok = s && ses_py_text_or_none(s, "path", &file);
    if (ok && !(ok = ses_tokenizer_save(self->t, file, overwrite, &e))) ses_py_raise(self->st, &e, NULL);
    Py_XDECREF(s);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject *get_traits(PyObject *o, void *unused)
{
    const ses_tokenizer *t = ((const tokenizer *)o)->t;
    ses_tokenizer_traits x = ses_tokenizer_traits_of(t);
    (void)unused;
    return Py_BuildValue("{s:s,s:L,s:s,s:L}", "model", x.model, "max_length", (long long)x.max_length,
                         "truncation_side", x.truncate_left ? "left" : "right", "vocab_size",
                         (long long)ses_tokenizer_vocab_size(t));
}

static PyGetSetDef attributes[] = {
    { "traits", get_traits, NULL, "Model, vocabulary size and stored truncation.", NULL },
    { 0 },
};

static PyMethodDef methods[] = {
    { "encode", (PyCFunction)(void (*)(void))tokenizer_encode, METH_VARARGS | METH_KEYWORDS, "An Encoding." },
    { "decode", tokenizer_decode, METH_VARARGS, "decode(ids, skip_special_tokens=True, /)\n--\n\nThe text." },
    { "token_to_id", token_to_id, METH_O, "Id of a token, or None." },
    { "id_to_token", id_to_token, METH_O, "Token of an id, or None." },
    { "is_special", is_special, METH_O, "Is the id a special token?" },
    { "get_vocab", get_vocab, METH_NOARGS, "Ids by token." },
    { "save", tokenizer_save, METH_VARARGS,
      "save(path, overwrite=False, /)\n--\n\nWrites a tokenizer.json." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "TokenizerCore(path=None, json=None, lower=False)\n--\n\nA tokenizer; see sesame.Tokenizer." },
    { Py_tp_new, tokenizer_new },
    { Py_tp_dealloc, tokenizer_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { 0 },
};

PyType_Spec ses_py_tokenizer_spec = {
    .name = "sesame._sesame.TokenizerCore",
    .basicsize = sizeof(tokenizer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
