/* Converts ELMo's original files. The variables of the HDF5 file, with n units, projection P, F filters:
 *
 *     char_embed                                     [261, d]
 *     CNN/W_cnn_i, CNN/b_cnn_i                       [1, width, d, count], [count]
 *     CNN_high_i/W_carry, b_carry, W_transform, ...  [F, F], [F]
 *     CNN_proj/W_proj, b_proj                        [F, P], [P]
 *     RNN_0/RNN/MultiRNNCell/Celli/LSTMCell/W_0, B   [in + P, 4 n], [4 n]: gates i, j, f, o
 *     RNN_0/RNN/MultiRNNCell/Celli/LSTMCell/W_P_0    [n, P]
 *
 * RNN_1 is the backward language model. */
#include "elmo_read.h"

#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "folder/elmo_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 1 << 20, NAME = 128, WORDS = 3 };

/* ---- options.json ---- */

static const ses_json *section(const ses_json *options, const char *name, ses_err *e)
{
    const ses_json *x = ses_json_get(options, name);
    if (ses_json_type_of(x) == SES_JSON_OBJECT) return x;
    ses_fail(e, SES_EFORMAT, "\"%s\" is missing or not an object", name);
    return NULL;
}

static bool read_int(const ses_json *from, const char *key, int64_t *to, ses_err *e)
{
    return ses_json_int(ses_json_get(from, key), to) ||
           ses_fail(e, SES_EFORMAT, "\"%s\" is missing or not an integer", key);
}

/* A number or null, which is 0. */
static double number_or_0(const ses_json *from, const char *key)
{
    double x = 0;
    return ses_json_real(ses_json_get(from, key), &x) ? x : 0;
}

static void put_lstm(const ses_json *lstm, int64_t layers, int64_t size, int64_t proj, ses_json_writer *w)
{
    bool skips = false;
    ses_json_bool(ses_json_get(lstm, "use_skip_connections"), &skips);
    ses_json_member_int(w, "num_hidden_layers", layers);
    ses_json_member_int(w, "lstm_dim", size);
    ses_json_member_int(w, "projection_dim", proj);
    ses_json_member_real(w, "cell_clip", number_or_0(lstm, "cell_clip"));
    ses_json_member_real(w, "proj_clip", number_or_0(lstm, "proj_clip"));
    ses_json_member_bool(w, "use_skip_connections", skips);
}

static void put_chars(const ses_json *cnn, int64_t width, int64_t per_word, ses_json_writer *w)
{
    const char *act = ses_json_string(ses_json_get(cnn, "activation"), NULL);
    int64_t highways = 0;
    ses_json_int(ses_json_get(cnn, "n_highway"), &highways);
    ses_json_member_int(w, "char_embedding_dim", width);
    ses_json_member_int(w, "max_characters_per_token", per_word);
    ses_json_put_key(w, "filters");
    ses_json_put_value(w, ses_json_get(cnn, "filters"));
    ses_json_member_int(w, "n_highway", highways);
    ses_json_member_string(w, "activation", act ? act : "tanh");
}

ses_json_doc *ses_elmo_config_new(const ses_json *options, ses_err *e)
{
    const ses_json *lstm = section(options, "lstm", e), *cnn = lstm ? section(options, "char_cnn", e) : NULL;
    const ses_json *embedding = cnn ? section(cnn, "embedding", e) : NULL;
    int64_t layers = 1, size, proj, width, per_word, chars = SES_CHARS + 1;
    bool bidirectional = true;
    if (!embedding || !read_int(lstm, "dim", &size, e) || !read_int(lstm, "projection_dim", &proj, e) ||
        !read_int(embedding, "dim", &width, e) || !read_int(cnn, "max_characters_per_token", &per_word, e))
        return NULL;
    ses_json_int(ses_json_get(lstm, "n_layers"), &layers);
    ses_json_int(ses_json_get(cnn, "n_characters"), &chars);
    ses_json_bool(ses_json_get(options, "bidirectional"), &bidirectional);
    if (chars != SES_CHARS && chars != SES_CHARS + 1) {
        ses_fail(e, SES_EUNSUPPORTED,
                 "\"n_characters\" is %" PRId64 ", expected %d (training) or %d (inference)", chars,
                 (int)SES_CHARS, (int)SES_CHARS + 1);
        return NULL;
    }
    if (!bidirectional || ses_json_type_of(ses_json_get(cnn, "filters")) != SES_JSON_ARRAY) {
        ses_fail(e, SES_EUNSUPPORTED, "\"bidirectional\" is false, or \"filters\" is not a list");
        return NULL;
    }
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", "elmo");
    ses_json_member_array(w, "architectures");
    ses_json_put_string(w, "ElmoModel");
    ses_json_end_array(w);
    ses_json_member_int(w, "vocab_size", WORDS);
    put_chars(cnn, width, per_word, w);
    put_lstm(lstm, layers, size, proj, w);
    ses_json_member_real(w, "dropout", number_or_0(options, "dropout"));
    ses_json_member_int(w, "bos_token_id", 0);
    ses_json_member_int(w, "eos_token_id", 1);
    ses_json_member_int(w, "unk_token_id", 2);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

ses_json_doc *ses_elmo_options_open(const char *dir, const char *name, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    ses_json_doc *d = path ? ses_json_load_object(path, MAX_OPTIONS, e) : NULL;
    ses_free(path);
    return d;
}

ses_json_doc *ses_elmo_config_open(const char *dir, ses_err *e)
{
    ses_elmo_files f;
    ses_json_doc *options =
        ses_elmo_folder_files(dir, &f, e) ? ses_elmo_options_open(dir, f.options, e) : NULL;
    ses_json_doc *config = options ? ses_elmo_config_new(ses_json_root(options), e) : NULL;
    if (options && !config) ses_wrap(e, "%s/%s", dir, f.options);
    ses_json_free(options);
    return config;
}

/* ---- tensors ---- */

typedef struct converter {
    ses_safetensors *to;
    const ses_safetensors *from;
    const char *file; /* name of the file */
    bool *used;       /* [entries of from] */
} converter;

/* Finds a variable of this shape and marks it used; a dim of 0 is any number. NULL: an error. */
static const ses_tensor_entry *take(converter *c, int rank, const int64_t *dim, const char *name, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(c->from, name);
    bool fits = x && x->rank == rank;
    for (int i = 0; fits && i < rank; i++) fits = x->dim[i] > 0 && (!dim[i] || x->dim[i] == dim[i]);
    if (!x)
        ses_fail(e, SES_EFORMAT, "dataset \"%s\" is missing", name);
    else if (!fits)
        ses_fail(e, SES_EFORMAT, "dataset \"%s\" has another shape than options.json requires", name);
    if (fits) c->used[x - ses_safetensors_at(c->from, 0)] = true;
    return fits ? x : NULL;
}

/* Adds a tensor of `rows` rows (0: a vector) whose values the caller sets; NULL: an error. */
static float *put(converter *c, int64_t rows, int64_t cols, const char *name, ses_err *e)
{
    ses_tensor_entry x = { .dtype = SES_F32, .rank = rows ? 2 : 1, .file = c->file };
    x.dim[0] = rows ? rows : cols;
    if (rows) x.dim[1] = cols;
    x.count = (rows ? rows : 1) * cols;
    x.bytes = (size_t)x.count * sizeof(float);
    float *data = ses_arena_alloc(&c->to->arena, x.bytes, e);
    x.data = data;
    x.name = data ? ses_arena_strndup(&c->to->arena, name, strlen(name), e) : NULL;
    return x.name && ses_tensor_entries_reserve(c->to, 1, e) && ses_tensor_entry_add(c->to, &x, e) ? data
                                                                                                   : NULL;
}

/* The values as floats; free with ses_free. */
static float *values(const ses_tensor_entry *x, ses_err *e)
{
    float *v = ses_alloc_array((size_t)x->count + 1, sizeof *v, e);
    if (v && ses_tensor_entry_to_f32(x, v, e)) return v;
    ses_free(v);
    return NULL;
}

/* [in, out] to [out, in]; a vector stays one. */
static bool transpose(converter *c, const ses_tensor_entry *x, int64_t in, const char *name, ses_err *e)
{
    int64_t out = x ? x->count / (in ? in : 1) : 0;
    float *to = x ? put(c, in ? out : 0, in ? in : out, name, e) : NULL, *v = to ? values(x, e) : NULL;
    for (int64_t i = 0; v && i < (in ? in : 1); i++)
        for (int64_t o = 0; o < out; o++) to[o * (in ? in : 1) + i] = v[i * out + o];
    ses_free(v);
    return v != NULL;
}

/* W [in, out] and b [out] of a dense layer. */
static bool dense(converter *c, const char *scope, const char *what, int64_t in, const char *name, ses_err *e)
{
    char from[NAME], to[NAME];
    bool ok = true;
    for (int bias = 0; ok && bias < 2; bias++) {
        snprintf(from, sizeof from, "%s/%c_%s", scope, bias ? 'b' : 'W', what);
        snprintf(to, sizeof to, "%s.%s", name, bias ? "bias" : "weight");
        const ses_tensor_entry *x = take(c, bias ? 1 : 2, (const int64_t[]){ bias ? 0 : in, 0 }, from, e);
        ok = transpose(c, x, bias ? 0 : in, to, e);
    }
    return ok;
}

/* The characters of the three words of the vocabulary. */
static bool put_words(converter *c, int64_t per_word, ses_err *e)
{
    int16_t word[WORDS][SES_MAX_WORD_CHARS];
    float *to = put(c, WORDS, per_word, "word_chars", e);
    if (!to) return false;
    ses_word_one_char(word[0], per_word, SES_CHAR_BOS);
    ses_word_one_char(word[1], per_word, SES_CHAR_EOS);
    ses_word_chars(word[2], per_word, "<UNK>", 5);
    for (int64_t i = 0; i < WORDS * per_word; i++)
        to[i] = (float)ses_char_to_number(word[i / per_word][i % per_word]);
    return true;
}

static bool read_chars(converter *c, const ses_json *config, int64_t *filters, ses_err *e)
{
    char from[NAME], to[NAME];
    int64_t width, per_word, highways;
    const ses_json *list = ses_json_get(config, "filters");
    if (!read_int(config, "char_embedding_dim", &width, e) ||
        !read_int(config, "max_characters_per_token", &per_word, e) ||
        !read_int(config, "n_highway", &highways, e))
        return false;
    if (per_word < SES_MIN_WORD_CHARS || per_word > SES_MAX_WORD_CHARS)
        return ses_fail(e, SES_EFORMAT, "\"max_characters_per_token\" is %" PRId64, per_word);
    const ses_tensor_entry *x = take(c, 2, (const int64_t[]){ 0, width }, "char_embed", e);
    if (!x) return false;
    if (x->dim[0] != SES_CHARS && x->dim[0] != SES_CHARS + 1)
        return ses_fail(e, SES_EFORMAT, "\"char_embed\" has %" PRId64 " rows, expected %d", x->dim[0],
                        (int)SES_CHARS);
    float *all = values(x, e), *table = all ? put(c, SES_CHARS, width, "char_embedding.weight", e) : NULL;
    if (table) /* a first row of more is the padding's, which is never read */
        memcpy(table, all + (x->dim[0] - SES_CHARS) * width, (size_t)(SES_CHARS * width) * sizeof *table);
    ses_free(all);
    if (!table || !put_words(c, per_word, e)) return false;
    *filters = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        snprintf(from, sizeof from, "CNN/W_cnn_%zu", i);
        snprintf(to, sizeof to, "char_cnn.convolutions.%zu.weight", i);
        x = take(c, 4, (const int64_t[]){ 1, 0, width, 0 }, from, e);
        if (!x || !transpose(c, x, x->dim[1] * width, to, e)) return false;
        *filters += x->dim[3];
        snprintf(from, sizeof from, "CNN/b_cnn_%zu", i);
        snprintf(to, sizeof to, "char_cnn.convolutions.%zu.bias", i);
        if (!transpose(c, take(c, 1, &x->dim[3], from, e), 0, to, e)) return false;
    }
    for (int64_t i = 0; i < highways; i++) {
        snprintf(from, sizeof from, "CNN_high_%" PRId64, i);
        snprintf(to, sizeof to, "char_cnn.highways.%" PRId64 ".transform", i);
        if (!dense(c, from, "transform", *filters, to, e)) return false;
        snprintf(to, sizeof to, "char_cnn.highways.%" PRId64 ".carry", i);
        if (!dense(c, from, "carry", *filters, to, e)) return false;
    }
    return true;
}

/* Gate g of PyTorch's order i, f, g, o is number tf_gate[g] of TensorFlow's i, j, f, o. */
static const int tf_gate[] = { 0, 2, 1, 3 };

/* Rows [first, first + in) of W_0 [.., 4 n] as a weight [4 n, in]. */
static bool gates(converter *c, const ses_tensor_entry *x, const float *v, int64_t first, int64_t in,
                  const char *name, ses_err *e)
{
    int64_t all = x->dim[1], n = all / 4;
    float *to = put(c, all, in, name, e);
    for (int64_t r = 0; to && r < all; r++)
        for (int64_t i = 0; i < in; i++) to[r * in + i] = v[(first + i) * all + tf_gate[r / n] * n + r % n];
    return to != NULL;
}

static bool read_cell(converter *c, int lm, int layer, int64_t n, int64_t proj, ses_err *e)
{
    static const char *const direction[] = { "forward_lm", "backward_lm" };
    char from[NAME], to[NAME];
    int64_t hidden = proj < n ? proj : n, in = layer ? hidden : proj;
#define CELL "RNN_%d/RNN/MultiRNNCell/Cell%d/LSTMCell/"
    snprintf(from, sizeof from, CELL "W_0", lm, layer);
    const ses_tensor_entry *x = take(c, 2, (const int64_t[]){ in + hidden, 4 * n }, from, e);
    float *v = x ? values(x, e) : NULL;
    snprintf(to, sizeof to, "%s.weight_ih_l%d", direction[lm], layer);
    bool ok = v && gates(c, x, v, 0, in, to, e);
    snprintf(to, sizeof to, "%s.weight_hh_l%d", direction[lm], layer);
    ok = ok && gates(c, x, v, in, hidden, to, e);
    ses_free(v);
    snprintf(from, sizeof from, CELL "B", lm, layer);
    x = ok ? take(c, 1, (const int64_t[]){ 4 * n }, from, e) : NULL;
    v = x ? values(x, e) : NULL;
    for (int hh = 0; v && ok && hh < 2; hh++) { /* PyTorch has a second bias: zeros */
        snprintf(to, sizeof to, "%s.bias_%s_l%d", direction[lm], hh ? "hh" : "ih", layer);
        float *bias = put(c, 0, 4 * n, to, e);
        for (int64_t r = 0; bias && r < 4 * n; r++)
            bias[r] = hh ? 0 : v[tf_gate[r / n] * n + r % n] + (r / n == 1 ? 1.0f : 0.0f);
        ok = bias != NULL;
    }
    ok = ok && v;
    ses_free(v);
    if (!ok || proj >= n) return ok;
    snprintf(from, sizeof from, CELL "W_P_0", lm, layer);
    snprintf(to, sizeof to, "%s.weight_hr_l%d", direction[lm], layer);
    return transpose(c, take(c, 2, (const int64_t[]){ n, proj }, from, e), n, to, e);
#undef CELL
}

static bool read_all(converter *c, const ses_json *config, ses_err *e)
{
    int64_t layers, n, proj, filters = 0;
    if (!read_int(config, "num_hidden_layers", &layers, e) || !read_int(config, "lstm_dim", &n, e) ||
        !read_int(config, "projection_dim", &proj, e))
        return false;
    if (n < 1 || proj < 1 || n > INT32_MAX || proj > INT32_MAX || layers < 1 || layers > 64)
        return ses_fail(e, SES_EFORMAT, "\"dim\", \"projection_dim\" or \"n_layers\" is out of range");
    if (!read_chars(c, config, &filters, e)) return false;
    if (filters != proj && !dense(c, "CNN_proj", "proj", filters, "char_cnn.projection", e)) return false;
    for (int lm = 0; lm < 2; lm++)
        for (int i = 0; i < (int)layers; i++)
            if (!read_cell(c, lm, i, n, proj, e)) return false;
    for (size_t i = 0; i < ses_safetensors_count(c->from); i++) { /* what nothing reads is reported as such */
        ses_tensor_entry x = *ses_safetensors_at(c->from, i);
        if (c->used[i]) continue;
        x.name = ses_arena_strndup(&c->to->arena, x.name, strlen(x.name), e);
        x.file = c->file;
        if (!x.name || !ses_tensor_entries_reserve(c->to, 1, e) || !ses_tensor_entry_add(c->to, &x, e))
            return false;
    }
    return true;
}

bool ses_elmo_read(ses_safetensors *s, const ses_safetensors *from, const char *file, const ses_json *options,
                   ses_err *e)
{
    converter c = { .to = s, .from = from, .file = ses_arena_strndup(&s->arena, file, strlen(file), e) };
    ses_json_doc *config = c.file ? ses_elmo_config_new(options, e) : NULL;
    if (!config) return false;
    c.used = ses_alloc_array(ses_safetensors_count(from) + 1, sizeof *c.used, e);
    bool ok = c.used && read_all(&c, ses_json_root(config), e);
    ses_free(c.used);
    ses_json_free(config);
    return ok;
}
