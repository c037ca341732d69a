/* Encoding: the tokens of a text, with the attributes of Hugging Face Tokenizers. A copy of the library's
 * result; lists are made when they are asked for. */
#include "binding.h"

struct ses_py_encoding {
    PyObject_HEAD size_t n;
    int32_t *id, *word_id;
    ses_offset *offset, *byte_offset;
    int8_t *sequence_id;
    uint8_t *type_id, *special, *attention;
    uint32_t *string_end; /* token i is string[string_end[i - 1] .. string_end[i]) */
    char *string;
    void *block;        /* memory of the arrays */
    PyObject *overflow; /* list */
};

/* ---- making ---- */

static size_t string_bytes(const ses_encode_ctx *k, const ses_encoding *x)
{
    size_t bytes = 0, len;
    for (size_t i = 0; i < x->n; i++)
        if (ses_encode_ctx_string(k, x, i, &len)) bytes += len;
    return bytes;
}

/* Lays the arrays out in one block, widest elements first. */
static bool alloc_arrays(ses_py_encoding *x, size_t n, size_t bytes)
{
    size_t wide = sizeof *x->offset * 2 + sizeof *x->id + sizeof *x->word_id + sizeof *x->string_end;
    char *at = x->block = PyMem_Malloc(n * (wide + 4) + bytes + 1);
    if (!at) return PyErr_NoMemory();
    x->n = n;
    x->offset = (ses_offset *)(void *)at, at += n * sizeof *x->offset;
    x->byte_offset = (ses_offset *)(void *)at, at += n * sizeof *x->byte_offset;
    x->id = (int32_t *)(void *)at, at += n * sizeof *x->id;
    x->word_id = (int32_t *)(void *)at, at += n * sizeof *x->word_id;
    x->string_end = (uint32_t *)(void *)at, at += n * sizeof *x->string_end;
    x->sequence_id = (int8_t *)at, at += n;
    x->type_id = (uint8_t *)at, at += n;
    x->special = (uint8_t *)at, at += n;
    x->attention = (uint8_t *)at, at += n;
    x->string = at;
    return true;
}

static void copy_arrays(ses_py_encoding *x, const ses_encode_ctx *k, const ses_encoding *from)
{
    size_t n = from->n, end = 0, len;
    if (!n) return;
    memcpy(x->offset, from->char_offset, n * sizeof *x->offset);
    memcpy(x->byte_offset, from->byte_offset, n * sizeof *x->byte_offset);
    memcpy(x->id, from->id, n * sizeof *x->id);
    memcpy(x->word_id, from->word_id, n * sizeof *x->word_id);
    memcpy(x->sequence_id, from->sequence_id, n);
    memcpy(x->type_id, from->type_id, n);
    memcpy(x->special, from->special_mask, n);
    memcpy(x->attention, from->attention_mask, n);
    for (size_t i = 0; i < n; i++) {
        const char *s = ses_encode_ctx_string(k, from, i, &len);
        if (s) memcpy(x->string + end, s, len), end += len;
        x->string_end[i] = (uint32_t)end;
    }
}

PyObject *ses_py_encoding_new(const ses_py_state *st, const ses_encode_ctx *k, const ses_encoding *from)
{
    allocfunc make = (allocfunc)PyType_GetSlot(st->encoding, Py_tp_alloc);
    ses_py_encoding *x = (ses_py_encoding *)make(st->encoding, 0);
    if (!x) return NULL;
    if (alloc_arrays(x, from->n, string_bytes(k, from))) {
        copy_arrays(x, k, from);
        return (PyObject *)x;
    }
    Py_DECREF((PyObject *)x);
    return NULL;
}

bool ses_py_encoding_add_overflow(PyObject *encoding, PyObject *part)
{
    ses_py_encoding *x = (ses_py_encoding *)encoding;
    if (!x->overflow && !(x->overflow = PyList_New(0))) return false;
    return PyList_Append(x->overflow, part) == 0;
}

static void encoding_dealloc(PyObject *o)
{
    ses_py_encoding *x = (ses_py_encoding *)o;
    PyMem_Free(x->block);
    Py_XDECREF(x->overflow);
    ses_py_object_free(o);
}

/* ---- lists ---- */

typedef PyObject *element_fn(const ses_py_encoding *x, size_t i);

static PyObject *make_list(PyObject *o, element_fn *element)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    PyObject *list = PyList_New((Py_ssize_t)x->n);
    for (size_t i = 0; list && i < x->n; i++) {
        PyObject *one = element(x, i);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0) Py_CLEAR(list);
    }
    return list;
}

/* -1 is None. */
static PyObject *number_or_none(long n) { return n < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(n); }

#define LIST(name, value)                                                            \
    static PyObject *name##_at(const ses_py_encoding *x, size_t i) { return value; } \
    static PyObject *get_##name(PyObject *o, void *unused)                           \
    {                                                                                \
        (void)unused;                                                                \
        return make_list(o, name##_at);                                              \
    }

LIST(ids, PyLong_FromLong(x->id[i]))
LIST(type_ids, PyLong_FromLong(x->type_id[i]))
LIST(attention_mask, PyLong_FromLong(x->attention[i]))
LIST(special_tokens_mask, PyLong_FromLong(x->special[i]))
LIST(word_ids, number_or_none(x->word_id[i]))
LIST(sequence_ids, number_or_none(x->sequence_id[i]))
LIST(offsets, Py_BuildValue("(kk)", (unsigned long)x->offset[i].begin, (unsigned long)x->offset[i].end))
LIST(byte_offsets,
     Py_BuildValue("(kk)", (unsigned long)x->byte_offset[i].begin, (unsigned long)x->byte_offset[i].end))
LIST(tokens, ses_py_str((ses_string){ x->string + (i ? x->string_end[i - 1] : 0),
                                      x->string_end[i] - (i ? x->string_end[i - 1] : 0) }))

static PyObject *get_overflowing(PyObject *o, void *unused)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    (void)unused;
    return x->overflow ? PyList_GetSlice(x->overflow, 0, PyList_Size(x->overflow)) : PyList_New(0);
}

static PyObject *get_n_sequences(PyObject *o, void *unused)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    int n = 1;
    (void)unused;
    for (size_t i = 0; i < x->n; i++)
        if (x->sequence_id[i] + 1 > n) n = x->sequence_id[i] + 1;
    return PyLong_FromLong(n);
}

/* ---- positions ---- */

/* Token i as an argument; -1 and an exception: out of range. */
static Py_ssize_t token_argument(const ses_py_encoding *x, PyObject *arg)
{
    Py_ssize_t i = PyNumber_AsSsize_t(arg, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return -1;
    if (i >= 0 && (size_t)i < x->n) return i;
    PyErr_SetString(PyExc_IndexError, "no such token");
    return -1;
}

static PyObject *token_to_chars(PyObject *o, PyObject *arg)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    Py_ssize_t i = token_argument(x, arg);
    if (i < 0) return NULL;
    if (x->sequence_id[i] < 0) Py_RETURN_NONE;
    return offsets_at(x, (size_t)i);
}

static PyObject *token_to_word(PyObject *o, PyObject *arg)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    Py_ssize_t i = token_argument(x, arg);
    return i < 0 ? NULL : word_ids_at(x, (size_t)i);
}

static PyObject *token_to_sequence(PyObject *o, PyObject *arg)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    Py_ssize_t i = token_argument(x, arg);
    return i < 0 ? NULL : sequence_ids_at(x, (size_t)i);
}

/* The token at a character of a sequence; -1: none. */
static Py_ssize_t find_char(const ses_py_encoding *x, unsigned long at, int sequence)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->sequence_id[i] == sequence && x->offset[i].begin <= at && at < x->offset[i].end)
            return (Py_ssize_t)i;
    return -1;
}

static PyObject *char_to_token(PyObject *o, PyObject *args)
{
    unsigned long at;
    int sequence = 0;
    if (!PyArg_ParseTuple(args, "k|i:char_to_token", &at, &sequence)) return NULL;
    return number_or_none((long)find_char((const ses_py_encoding *)o, at, sequence));
}

static PyObject *char_to_word(PyObject *o, PyObject *args)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    unsigned long at;
    int sequence = 0;
    if (!PyArg_ParseTuple(args, "k|i:char_to_word", &at, &sequence)) return NULL;
    Py_ssize_t i = find_char(x, at, sequence);
    return i < 0 ? Py_NewRef(Py_None) : word_ids_at(x, (size_t)i);
}

/* First token of a word and the one after its last; false: no such word. */
static bool find_word(const ses_py_encoding *x, long word, int sequence, size_t *begin, size_t *end)
{
    bool found = false;
    for (size_t i = 0; i < x->n; i++) {
        if (x->sequence_id[i] != sequence || x->word_id[i] != word) continue;
        if (!found) *begin = i;
        *end = i + 1;
        found = true;
    }
    return found;
}

static PyObject *word_to_tokens(PyObject *o, PyObject *args)
{
    long word;
    int sequence = 0;
    size_t begin, end;
    if (!PyArg_ParseTuple(args, "l|i:word_to_tokens", &word, &sequence)) return NULL;
    if (word < 0 || !find_word((const ses_py_encoding *)o, word, sequence, &begin, &end)) Py_RETURN_NONE;
    return Py_BuildValue("(nn)", (Py_ssize_t)begin, (Py_ssize_t)end);
}

static PyObject *word_to_chars(PyObject *o, PyObject *args)
{
    const ses_py_encoding *x = (const ses_py_encoding *)o;
    long word;
    int sequence = 0;
    size_t begin, end;
    if (!PyArg_ParseTuple(args, "l|i:word_to_chars", &word, &sequence)) return NULL;
    if (word < 0 || !find_word(x, word, sequence, &begin, &end)) Py_RETURN_NONE;
    return Py_BuildValue("(kk)", (unsigned long)x->offset[begin].begin,
                         (unsigned long)x->offset[end - 1].end);
}

static Py_ssize_t encoding_length(PyObject *o) { return (Py_ssize_t)((const ses_py_encoding *)o)->n; }

static PyObject *encoding_repr(PyObject *o)
{
    return PyUnicode_FromFormat("sesame.Encoding(num_tokens=%zd)", encoding_length(o));
}

static PyGetSetDef attributes[] = {
    { "ids", get_ids, NULL, "Token ids.", NULL },
    { "type_ids", get_type_ids, NULL, "Token types (segments).", NULL },
    { "tokens", get_tokens, NULL, "The strings of the tokens.", NULL },
    { "offsets", get_offsets, NULL, "(begin, end) of each token in its text, in characters.", NULL },
    { "byte_offsets", get_byte_offsets, NULL, "The same in bytes of UTF-8.", NULL },
    { "attention_mask", get_attention_mask, NULL, "0: padding.", NULL },
    { "special_tokens_mask", get_special_tokens_mask, NULL, "1: special token or padding.", NULL },
    { "word_ids", get_word_ids, NULL, "Number of each token's word; None: special token.", NULL },
    { "words", get_word_ids, NULL, "The same as word_ids.", NULL },
    { "sequence_ids", get_sequence_ids, NULL, "0: text, 1: pair, None: special token.", NULL },
    { "overflowing", get_overflowing, NULL, "Encodings of the parts that truncation removed.", NULL },
    { "n_sequences", get_n_sequences, NULL, "1, or 2 for a pair.", NULL },
    { 0 },
};

static PyMethodDef methods[] = {
    { "token_to_chars", token_to_chars, METH_O, "(begin, end) of a token; None: special token." },
    { "token_to_word", token_to_word, METH_O, "Number of a token's word, or None." },
    { "token_to_sequence", token_to_sequence, METH_O, "0, 1 or None for a token." },
    { "char_to_token", char_to_token, METH_VARARGS,
      "char_to_token(position, sequence=0, /)\n--\n\nThe token there." },
    { "char_to_word", char_to_word, METH_VARARGS,
      "char_to_word(position, sequence=0, /)\n--\n\nThe word there." },
    { "word_to_tokens", word_to_tokens, METH_VARARGS,
      "word_to_tokens(word, sequence=0, /)\n--\n\n(begin, end) in tokens." },
    { "word_to_chars", word_to_chars, METH_VARARGS,
      "word_to_chars(word, sequence=0, /)\n--\n\n(begin, end) in characters." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "The tokens of a text, by Tokenizer.encode." },
    { Py_tp_new, ses_py_no_new },
    { Py_tp_dealloc, encoding_dealloc },
    { Py_tp_repr, encoding_repr },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_sq_length, encoding_length },
    { 0 },
};

PyType_Spec ses_py_encoding_spec = {
    .name = "sesame.Encoding",
    .basicsize = sizeof(ses_py_encoding),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
