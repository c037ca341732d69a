/* BERT in one file of plain C, without libsesame: read it from top to bottom to see all that happens between
 * a text and its labels. Build it with any C compiler:
 *
 *     cc -O3 -o bert examples/minimal/bert.c -lm
 *     ./bert FOLDER 'The capital of France is [MASK].'
 *
 * FOLDER is a model of Hugging Face Transformers with model_type "bert": config.json, model.safetensors
 * (f32) and vocab.txt or tokenizer.json. It prints the five best tokens for each [MASK] (BertForMaskedLM),
 * the labels of the text (BertForSequenceClassification) or of each token (BertForTokenClassification), else
 * the vector of [CLS] (BertModel).
 *
 * The library has other models and heads, pairs of texts, all of Unicode, batches, training, GPUs and fast
 * kernels. Letters above U+00FF are not lower-cased here, and the zero-width characters above them are not
 * removed; apart from that, results equal the library's (tests/test_minimal.sh).
 *
 * Order of the file: 1 errors and memory, 2 JSON, 3 weights, 4 tokenizer, 5 mathematics, 6 encoder, 7 heads.
 * Letters in comments: T tokens of the text, C channels (hidden_size), D channels of a head, V tokens in the
 * vocabulary. */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- 1. Errors and memory ---- */

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "bert: %s: %s\n", what, detail);
    exit(1);
}

/* Memory belongs to a list; after each text, the blocks allocated for it are freed. */
typedef struct block {
    struct block *before;
    max_align_t data[];
} block;

static block *newest;

/* n values of a size, all 0. */
static void *allocate(size_t n, size_t size)
{
    block *b = n < SIZE_MAX / 2 / size ? calloc(1, sizeof *b + n * size) : NULL;
    if (!b) fail("allocation", "out of memory");
    b->before = newest;
    newest = b;
    return b->data;
}

static void free_until(block *mark)
{
    while (newest != mark) {
        block *b = newest;
        newest = b->before;
        free(b);
    }
}

/* The bytes of DIR/NAME, followed by a zero. NULL: not found. */
static char *read_file(const char *dir, const char *name, size_t *size)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path) fail(dir, "path too long");
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
    if (n < 0 || fseek(f, 0, SEEK_SET)) fail(path, "cannot be read");
    *size = (size_t)n;
    char *data = allocate(*size + 1, 1);
    if (fread(data, 1, *size, f) != *size) fail(path, "cannot be read");
    fclose(f);
    return data;
}

/* ---- 2. JSON: config.json, tokenizer.json and the header of model.safetensors ---- */

typedef enum { OTHER, NUMBER, STRING, ARRAY, OBJECT } json_kind;

/* A value. The values of an array or object form a list: `child`, then `next`; `key` is the name in an
 * object. */
typedef struct json {
    json_kind kind;
    const char *key, *string;
    double number;
    struct json *child, *next;
} json;

typedef struct reader {
    const char *at, *file;
    int depth;
} reader;

static void skip_blanks(reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool skip(reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

/* Appends a code point in UTF-8. */
static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

static uint32_t read_hex(reader *r)
{
    uint32_t c = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        if (!isxdigit((unsigned char)*r->at)) fail(r->file, "bad \\u escape");
        c = c * 16 + (uint32_t)(isdigit((unsigned char)*r->at) ? *r->at - '0' : (*r->at | 32) - 'a' + 10);
    }
    return c;
}

static const char *read_string(reader *r)
{
    size_t most = 0; /* an upper bound: no escape is shorter than its text */
    for (const char *p = r->at; *p && *p != '"'; p++, most++)
        if (*p == '\\' && p[1]) p++, most++;
    char *text = allocate(most + 1, 1), *out = text;
    while (*r->at != '"') {
        if (!*r->at) fail(r->file, "a string has no end");
        if (*r->at != '\\') {
            *out++ = *r->at++;
            continue;
        }
        r->at++;
        static const char escape[] = "bfnrt", value[] = "\b\f\n\r\t";
        const char *known = *r->at ? strchr(escape, *r->at) : NULL;
        if (*r->at == 'u') {
            r->at++;
            uint32_t c = read_hex(r);
            if (c >= 0xD800 && c < 0xDC00 && r->at[0] == '\\' && r->at[1] == 'u') {
                r->at += 2;
                c = 0x10000 + ((c - 0xD800) << 10) + ((read_hex(r) - 0xDC00) & 0x3FF);
            }
            out = put_utf8(out, c);
        } else if (*r->at) {
            *out++ = known ? value[known - escape] : *r->at;
            r->at++;
        }
    }
    r->at++;
    return text;
}

static json *read_value(reader *r)
{
    json *v = allocate(1, sizeof *v);
    if (++r->depth > 64) fail(r->file, "values are nested too deeply");
    skip_blanks(r);
    bool object = *r->at == '{';
    if (object || *r->at == '[') {
        char end = object ? '}' : ']';
        json **last = &v->child;
        v->kind = object ? OBJECT : ARRAY;
        r->at++;
        if (!skip(r, end)) {
            do {
                const char *key = NULL;
                if (object && (!skip(r, '"') || !(key = read_string(r)) || !skip(r, ':')))
                    fail(r->file, "expected \"key\": value");
                *last = read_value(r);
                (*last)->key = key;
                last = &(*last)->next;
            } while (skip(r, ','));
            if (!skip(r, end)) fail(r->file, "expected , or the end of a list");
        }
    } else if (*r->at == '"') {
        r->at++;
        v->kind = STRING;
        v->string = read_string(r);
    } else if (*r->at == '-' || isdigit((unsigned char)*r->at)) {
        char *end;
        v->kind = NUMBER;
        v->number = strtod(r->at, &end);
        r->at = end;
    } else { /* true is the number 1, false and null are 0 of another kind */
        size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
        if (!n) fail(r->file, "expected a value");
        v->number = n == 4 && !strncmp(r->at, "true", 4);
        r->at += n;
    }
    r->depth--;
    return v;
}

static const json *parse(const char *text, const char *file)
{
    reader r = { .at = text, .file = file };
    const json *v = read_value(&r);
    skip_blanks(&r);
    if (*r.at) fail(file, "text behind the end");
    return v;
}

/* The member of an object. NULL: none, or not an object. */
static const json *get(const json *object, const char *key)
{
    for (const json *v = object ? object->child : NULL; v; v = v->next)
        if (v->key && !strcmp(v->key, key)) return v;
    return NULL;
}

static const char *get_string(const json *object, const char *key, const char *otherwise)
{
    const json *v = get(object, key);
    return v && v->kind == STRING ? v->string : otherwise;
}

static double get_number(const json *object, const char *key, double otherwise)
{
    const json *v = get(object, key);
    return v && v->kind == NUMBER ? v->number : otherwise;
}

/* ---- 3. Weights: model.safetensors is the size of a JSON header, the header, and the values ---- */

typedef struct weights {
    const json *header; /* name: { "dtype": "F32", "shape": [...], "data_offsets": [begin, end] } */
    const char *data;
    size_t size;
} weights;

static weights open_weights(const char *dir)
{
    size_t size;
    char *file = read_file(dir, "model.safetensors", &size);
    uint64_t n = 0;
    if (!file) fail(dir, "no model.safetensors");
    for (int i = 0; i < 8 && size >= 8; i++) n |= (uint64_t)(unsigned char)file[i] << 8 * i;
    if (size < 8 || n > size - 8) fail("model.safetensors", "truncated");
    char *header = allocate(n + 1, 1);
    memcpy(header, file + 8, n);
    return (weights){ parse(header, "model.safetensors"), file + 8 + n, size - 8 - n };
}

static const json *find(const weights *w, const char *name)
{
    const json *x = get(w->header, name);
    if (x) return x;
    char old[256]; /* the first checkpoints call LayerNorm's weight and bias gamma and beta */
    const char *norm = strstr(name, "LayerNorm.");
    if (!norm) return NULL;
    snprintf(old, sizeof old, "%.*sLayerNorm.%s", (int)(norm - name), name,
             !strcmp(norm + 10, "weight") ? "gamma" : "beta");
    return get(w->header, old);
}

/* The values of a tensor with rows x columns values. */
static const float *tensor(const weights *w, const char *name, size_t rows, size_t columns)
{
    const json *x = find(w, name), *offsets = get(x, "data_offsets");
    if (!x) fail(name, "not in model.safetensors");
    if (strcmp(get_string(x, "dtype", ""), "F32") != 0) fail(name, "the values must have the dtype F32");
    if (!offsets || !offsets->child || !offsets->child->next) fail(name, "no data_offsets");
    double begin = offsets->child->number, end = offsets->child->next->number;
    if (begin < 0 || end < begin || end > (double)w->size) fail(name, "ends behind the file");
    if (end - begin != (double)rows * (double)columns * sizeof(float))
        fail(name, "its size is not that of config.json");
    const char *at = w->data + (size_t)begin;
    if ((uintptr_t)at % sizeof(float) == 0) return (const float *)(const void *)at;
    float *values = allocate(rows * columns, sizeof *values);
    memcpy(values, at, rows * columns * sizeof *values);
    return values;
}

/* ---- 4. Tokenizer: clean, lower-case, split at blanks and punctuation marks, then WordPiece ---- */

typedef struct tokenizer {
    const char **token; /* by id */
    size_t n, *slot;    /* hash table: id + 1, 0: empty */
    size_t n_slots;
    bool lowercase;
    long unknown, cls, sep, mask;
} tokenizer;

static size_t hash(const char *text, size_t n)
{
    uint64_t h = 0xCBF29CE484222325; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001B3;
    return (size_t)(h ^ h >> 32);
}

/* The id of a token. -1: not in the vocabulary. */
static long id_of(const tokenizer *t, const char *text, size_t n)
{
    for (size_t i = hash(text, n) % t->n_slots; t->slot[i]; i = (i + 1) % t->n_slots) {
        const char *known = t->token[t->slot[i] - 1];
        if (strlen(known) == n && !memcmp(known, text, n)) return (long)t->slot[i] - 1;
    }
    return -1;
}

static void add_token(tokenizer *t, const char *token, double id)
{
    if (!(id >= 0 && id < (double)t->n)) fail(token, "id outside of the vocabulary");
    t->token[(size_t)id] = token;
}

static void index_tokens(tokenizer *t)
{
    t->n_slots = 2 * t->n + 1;
    t->slot = allocate(t->n_slots, sizeof *t->slot);
    for (size_t id = 0; id < t->n; id++) {
        if (!t->token[id]) t->token[id] = "";
        size_t i = hash(t->token[id], strlen(t->token[id])) % t->n_slots;
        while (t->slot[i]) i = (i + 1) % t->n_slots;
        t->slot[i] = id + 1;
    }
}

static long special(const tokenizer *t, const char *token)
{
    long id = id_of(t, token, strlen(token));
    if (id < 0) fail(token, "not in the vocabulary");
    return id;
}

static tokenizer open_tokenizer(const char *dir, size_t vocabulary)
{
    size_t size;
    tokenizer t = { .n = vocabulary, .lowercase = true };
    t.token = allocate(vocabulary, sizeof *t.token);
    char *text = read_file(dir, "tokenizer.json", &size);
    if (text) {
        const json *file = parse(text, "tokenizer.json"), *model = get(file, "model");
        const json *vocab = get(model, "vocab"), *lower = get(get(file, "normalizer"), "lowercase");
        if (strcmp(get_string(model, "type", ""), "WordPiece") != 0 || !vocab)
            fail("tokenizer.json", "the model must be WordPiece");
        for (const json *v = vocab->child; v; v = v->next) add_token(&t, v->key ? v->key : "", v->number);
        t.lowercase = lower && lower->number != 0;
    } else if ((text = read_file(dir, "vocab.txt", &size))) {
        size_t id = 0;
        for (char *line = text; *line; id++) {
            size_t n = strcspn(line, "\r\n");
            char *next = line + n + (line[n] == '\r' && line[n + 1] == '\n');
            if (*next) next++;
            line[n] = 0;
            add_token(&t, line, (double)id);
            line = next;
        }
        char *settings = read_file(dir, "tokenizer_config.json", &size);
        const json *lower = settings ? get(parse(settings, "tokenizer_config.json"), "do_lower_case") : NULL;
        if (lower) t.lowercase = lower->number != 0;
    } else {
        fail(dir, "no tokenizer.json and no vocab.txt");
    }
    index_tokens(&t);
    t.unknown = special(&t, "[UNK]");
    t.cls = special(&t, "[CLS]");
    t.sep = special(&t, "[SEP]");
    t.mask = id_of(&t, "[MASK]", 6);
    return t;
}

/* The code point at *p, which moves behind it. */
static uint32_t next_code_point(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    int n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    uint32_t c = n == 1 ? *s : *s & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) fail("text", "is not UTF-8");
        c = c << 6 | (s[i] & 63);
    }
    if (!n) fail("text", "is not UTF-8");
    *p += n;
    return c;
}

static bool is_punctuation(uint32_t c)
{
    if (c < 0x80) return ispunct((int)c) != 0;
    return c == 0xA1 || c == 0xA7 || c == 0xAB || c == 0xB6 || c == 0xB7 || c == 0xBB || c == 0xBF ||
           (c >= 0x2010 && c <= 0x2027) || (c >= 0x2030 && c <= 0x205E && c != 0x2044 && c != 0x2052) ||
           (c >= 0x3001 && c <= 0x3003) || (c >= 0x3008 && c <= 0x3011);
}

static bool is_chinese(uint32_t c) { return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF); }

/* Lower case without accents, as BERT's uncased models want it, for ASCII and the letters U+00C0 to U+00FF.
 * Letters further on would need the tables of Unicode, which the library has. */
static uint32_t fold(uint32_t c)
{
    /* U+00C0 to U+00FF; a blank: the letter has no accent that could be removed */
    static const char plain[] = "aaaaaa ceeeeiiii nooooo  uuuuy  aaaaaa ceeeeiiii nooooo  uuuuy y";
    if (c < 0x80) return (uint32_t)tolower((int)c);
    if (c < 0xC0 || c > 0xFF) {
        static bool said;
        bool is_letter = c > 0xFF && !is_punctuation(c) && !is_chinese(c);
        if (is_letter && !said)
            fprintf(stderr, "bert: note: letters above U+00FF are not lower-cased, and keep their accents\n");
        said = said || is_letter;
        return c;
    }
    if (plain[c - 0xC0] != ' ') return (unsigned char)plain[c - 0xC0];
    return c < 0xDF && c != 0xD7 ? c + 32 : c;
}

typedef struct ids {
    long *id;
    size_t n, most;
} ids;

static void append(ids *out, long id)
{
    if (out->n >= out->most) fail("text", "longer than the model's positions");
    out->id[out->n++] = id;
}

/* WordPiece: the longest token that begins the word, then the longest "##token" that continues it, and so
 * on. */
static void put_word(const tokenizer *t, const char *word, size_t n, ids *out)
{
    char piece[512] = "##";
    size_t begin = 0, first = out->n, letters = 0;
    for (size_t i = 0; i < n; i++) letters += ((unsigned char)word[i] & 0xC0) != 0x80;
    while (n && begin < n && letters <= 100) {
        size_t end = n, skip_marks = begin ? 0 : 2; /* the first piece has no ## */
        long id = -1;
        for (; end > begin; end--) {
            memcpy(piece + 2, word + begin, end - begin);
            id = id_of(t, piece + skip_marks, end - begin + 2 - skip_marks);
            if (id >= 0) break;
        }
        if (id < 0) break;
        append(out, id);
        begin = end;
    }
    if (begin == n) return;
    out->n = first;
    append(out, t->unknown);
}

/* The id of the special token at p and its length. -1: none. */
static long special_at(const tokenizer *t, const char *p, size_t *length)
{
    static const char *const names[] = { "[MASK]", "[CLS]", "[SEP]", "[UNK]", "[PAD]" };
    for (size_t i = 0; *p == '[' && i < sizeof names / sizeof *names; i++) {
        *length = strlen(names[i]);
        if (!strncmp(p, names[i], *length)) return id_of(t, names[i], *length);
    }
    return -1;
}

static ids encode(const tokenizer *t, const char *text, size_t most)
{
    ids out = { .id = allocate(most, sizeof(long)), .most = most };
    char word[4 * 101 + 8];
    size_t n = 0;
    append(&out, t->cls);
    for (const char *p = text; *p;) {
        size_t length;
        long known = special_at(t, p, &length);
        if (known >= 0) {
            put_word(t, word, n, &out);
            n = 0;
            append(&out, known);
            p += length;
            continue;
        }
        uint32_t c = next_code_point(&p);
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 ||
                     (c >= 0x2000 && c <= 0x200A) || c == 0x3000;
        bool alone = is_punctuation(c) || is_chinese(c);
        if (!blank && (c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xFFFD)) continue; /* control characters */
        if (blank || alone) {
            put_word(t, word, n, &out);
            n = 0;
        }
        if (blank) continue;
        char *end = put_utf8(word + n, t->lowercase ? fold(c) : c);
        n = (size_t)(end - word);
        if (n > 4 * 101) n = 4 * 101; /* longer than any word that is not unknown */
        if (!alone) continue;
        put_word(t, word, n, &out);
        n = 0;
    }
    put_word(t, word, n, &out);
    append(&out, t->sep);
    return out;
}

/* ---- 5. Mathematics ---- */

/* y [T, out] = x [T, in] w^T + b, w [out, in]: the order in which PyTorch stores a Linear. */
static void linear(float *y, const float *x, const float *w, const float *b, size_t T, size_t in, size_t out)
{
    for (size_t t = 0; t < T; t++)
        for (size_t o = 0; o < out; o++) {
            double sum = b ? b[o] : 0;
            for (size_t i = 0; i < in; i++) sum += (double)x[t * in + i] * w[o * in + i];
            y[t * out + o] = (float)sum;
        }
}

/* Each row gets mean 0 and variance 1, then a gain and a bias for each channel. */
static void layer_norm(float *x, const float *gain, const float *bias, size_t T, size_t C, double eps)
{
    for (size_t t = 0; t < T; t++, x += C) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < C; i++) mean += x[i] / (double)C;
        for (size_t i = 0; i < C; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)C;
        for (size_t i = 0; i < C; i++)
            x[i] = (float)((x[i] - mean) / sqrt(variance + eps) * gain[i] + bias[i]);
    }
}

static void gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(0.5 * x[i] * (1 + erf(x[i] / sqrt(2))));
}

static void softmax(float *x, size_t n)
{
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, x[i]);
    for (size_t i = 0; i < n; i++) sum += exp(x[i] - largest);
    for (size_t i = 0; i < n; i++) x[i] = (float)(exp(x[i] - largest) / sum);
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

/* ---- 6. The encoder ---- */

typedef struct model {
    weights w;
    const char *prefix; /* tensor names begin with "bert.", in a folder of BertModel with "" */
    size_t C, heads, layers, inner, V, positions;
    double eps;
} model;

static size_t get_size(const json *config, const char *key)
{
    double x = get_number(config, key, 0);
    if (x < 1 || x > 1e7 || x != floor(x)) fail(key, "config.json must give a number of at least 1");
    return (size_t)x;
}

static model open_model(const char *dir, const json *config)
{
    model m = { .w = open_weights(dir), .eps = get_number(config, "layer_norm_eps", 1e-12) };
    if (strcmp(get_string(config, "model_type", ""), "bert") != 0) fail("model_type", "must be bert");
    if (strcmp(get_string(config, "hidden_act", "gelu"), "gelu") != 0) fail("hidden_act", "must be gelu");
    if (strcmp(get_string(config, "position_embedding_type", "absolute"), "absolute") != 0)
        fail("position_embedding_type", "must be absolute");
    if (get(config, "is_decoder") && get(config, "is_decoder")->number != 0)
        fail("is_decoder", "must be false");
    m.C = get_size(config, "hidden_size");
    m.heads = get_size(config, "num_attention_heads");
    m.layers = get_size(config, "num_hidden_layers");
    m.inner = get_size(config, "intermediate_size");
    m.V = get_size(config, "vocab_size");
    m.positions = get_size(config, "max_position_embeddings");
    if (m.C % m.heads) fail("hidden_size", "must be a multiple of num_attention_heads");
    m.prefix = find(&m.w, "bert.embeddings.word_embeddings.weight") ? "bert." : "";
    return m;
}

/* A tensor of the encoder, PREFIX + name; of a layer if layer >= 0. */
static const float *part(const model *m, int layer, const char *name, size_t rows, size_t columns)
{
    char full[256];
    if (layer < 0)
        snprintf(full, sizeof full, "%s%s", m->prefix, name);
    else
        snprintf(full, sizeof full, "%sencoder.layer.%d.%s", m->prefix, layer, name);
    return tensor(&m->w, full, rows, columns);
}

/* y = x w^T + b with the weights NAME.weight [out, in] and NAME.bias [out] of a layer. */
static float *project(const model *m, int layer, const char *name, const float *x, size_t T, size_t in,
                      size_t out)
{
    char weight[128], bias[128];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    float *y = allocate(T * out, sizeof *y);
    linear(y, x, part(m, layer, weight, out, in), part(m, layer, bias, 1, out), T, in, out);
    return y;
}

static void normalize(const model *m, int layer, const char *name, float *x, size_t T)
{
    char weight[128], bias[128];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    layer_norm(x, part(m, layer, weight, 1, m->C), part(m, layer, bias, 1, m->C), T, m->C, m->eps);
}

/* The sum of three rows for each token: its word, its position, and its segment, which is 0 for a single
 * text. */
static float *embed(const model *m, const ids *text)
{
    const float *word = part(m, -1, "embeddings.word_embeddings.weight", m->V, m->C);
    const float *position = part(m, -1, "embeddings.position_embeddings.weight", m->positions, m->C);
    const json *types = find(&m->w, *m->prefix ? "bert.embeddings.token_type_embeddings.weight"
                                               : "embeddings.token_type_embeddings.weight");
    const json *shape = get(types, "shape");
    size_t segments =
        shape && shape->child && shape->child->number >= 1 ? (size_t)fmin(shape->child->number, 1e7) : 0;
    if (!segments) fail("token_type_embeddings", "no rows");
    const float *segment = part(m, -1, "embeddings.token_type_embeddings.weight", segments, m->C);
    float *x = allocate(text->n * m->C, sizeof *x);
    for (size_t t = 0; t < text->n; t++)
        for (size_t i = 0; i < m->C; i++)
            x[t * m->C + i] = word[(size_t)text->id[t] * m->C + i] + position[t * m->C + i] + segment[i];
    normalize(m, -1, "embeddings.LayerNorm", x, text->n);
    return x;
}

/* Each head compares each token's query with all keys, and takes the mean of the values, weighted by the
 * softmax of query . key / sqrt(D). Query, key and value of a head are D neighboring channels of q, k and v
 * [T, C]. */
static float *attend(const model *m, const float *q, const float *k, const float *v, size_t T)
{
    size_t C = m->C, D = C / m->heads;
    float *y = allocate(T * C, sizeof *y), *weight = allocate(T, sizeof *weight);
    for (size_t head = 0; head < m->heads; head++)
        for (size_t t = 0; t < T; t++) {
            for (size_t s = 0; s < T; s++) {
                double dot = 0;
                for (size_t i = head * D; i < (head + 1) * D; i++) dot += (double)q[t * C + i] * k[s * C + i];
                weight[s] = (float)(dot / sqrt((double)D));
            }
            softmax(weight, T);
            for (size_t i = head * D; i < (head + 1) * D; i++) {
                double sum = 0;
                for (size_t s = 0; s < T; s++) sum += (double)weight[s] * v[s * C + i];
                y[t * C + i] = (float)sum;
            }
        }
    return y;
}

/* Hidden states [T, C] of the last layer. Attention and feed-forward network each add to x, which is then
 * normalized. */
static float *run_encoder(const model *m, const ids *text)
{
    size_t T = text->n, C = m->C;
    float *x = embed(m, text);
    for (int layer = 0; layer < (int)m->layers; layer++) {
        const float *q = project(m, layer, "attention.self.query", x, T, C, C);
        const float *k = project(m, layer, "attention.self.key", x, T, C, C);
        const float *v = project(m, layer, "attention.self.value", x, T, C, C);
        add(x, project(m, layer, "attention.output.dense", attend(m, q, k, v, T), T, C, C), T * C);
        normalize(m, layer, "attention.output.LayerNorm", x, T);

        float *inner = project(m, layer, "intermediate.dense", x, T, C, m->inner);
        gelu(inner, T * m->inner);
        add(x, project(m, layer, "output.dense", inner, T, m->inner, C), T * C);
        normalize(m, layer, "output.LayerNorm", x, T);
    }
    return x;
}

/* ---- 7. Heads ---- */

/* The name of class i: id2label of config.json. */
static const char *label_name(const json *config, size_t i)
{
    char key[32];
    snprintf(key, sizeof key, "%zu", i);
    return get_string(get(config, "id2label"), key, "(no name)");
}

static size_t count_labels(const json *config)
{
    size_t n = 0;
    const json *labels = get(config, "id2label");
    for (const json *v = labels ? labels->child : NULL; v; v = v->next) n++;
    return n ? n : 2;
}

/* Masked language modeling: a layer like that of the feed-forward network, then a score for each token of
 * the vocabulary. The matrix of scores is the table of word embeddings. */
static void fill_masks(const model *m, const tokenizer *t, const ids *text, const float *x)
{
    model head = *m;
    head.prefix = "cls.predictions.";
    size_t C = m->C, V = m->V;
    const float *word = part(m, -1, "embeddings.word_embeddings.weight", V, C);
    if (find(&m->w, "cls.predictions.decoder.weight")) word = part(&head, -1, "decoder.weight", V, C);
    const float *bias = part(&head, -1, "bias", 1, V);
    size_t masks = 0;
    for (size_t at = 0; at < text->n; at++) {
        if (text->id[at] != t->mask) continue;
        masks++;
        float *y = project(&head, -1, "transform.dense", x + at * C, 1, C, C);
        gelu(y, C);
        normalize(&head, -1, "transform.LayerNorm", y, 1);
        float *score = allocate(V, sizeof *score);
        linear(score, y, word, bias, 1, C, V);
        softmax(score, V);
        for (int i = 0; i < 5 && i < (int)V; i++) {
            size_t best = 0;
            for (size_t id = 0; id < V; id++)
                if (score[id] > score[best]) best = id;
            printf("%s\t%.6f\n", t->token[best], score[best]);
            score[best] = -1;
        }
    }
    if (!masks) fail("text", "it has no [MASK] to fill");
}

/* One of the classes for the whole text. The pooler's layer reads the hidden state of [CLS]. */
static void classify(const model *m, const json *config, const float *x)
{
    size_t n = count_labels(config), C = m->C;
    const char *problem = get_string(config, "problem_type", "single_label_classification");
    if (n < 2 || strcmp(problem, "single_label_classification") != 0)
        fail("config.json", "regression and several labels for a text are not in the example");
    model head = *m;
    head.prefix = "";
    float *pooled = project(m, -1, "pooler.dense", x, 1, C, C);
    for (size_t i = 0; i < C; i++) pooled[i] = tanhf(pooled[i]);
    float *score = project(&head, -1, "classifier", pooled, 1, C, n);
    softmax(score, n);
    for (size_t i = 0; i < n; i++) printf("%s\t%.6f\n", label_name(config, i), score[i]);
}

/* A class for each token. */
static void tag(const model *m, const json *config, const tokenizer *t, const ids *text, const float *x)
{
    size_t n = count_labels(config);
    model head = *m;
    head.prefix = "";
    float *score = project(&head, -1, "classifier", x, text->n, m->C, n);
    for (size_t at = 1; at + 1 < text->n; at++) { /* without [CLS] and [SEP] */
        float *row = score + at * n;
        size_t best = 0;
        softmax(row, n);
        for (size_t i = 1; i < n; i++)
            if (row[i] > row[best]) best = i;
        printf("%s\t%s\t%.6f\n", t->token[text->id[at]], label_name(config, best), row[best]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) fail("usage", "bert FOLDER TEXT...");
    size_t size;
    const char *text = read_file(argv[1], "config.json", &size);
    if (!text) fail(argv[1], "no config.json");
    const json *config = parse(text, "config.json");
    const json *classes = get(config, "architectures");
    const char *class =
        classes && classes->child && classes->child->string ? classes->child->string : "BertModel";
    model m = open_model(argv[1], config);
    tokenizer t = open_tokenizer(argv[1], m.V);
    for (int i = 2; i < argc; i++) {
        block *mark = newest;
        ids input = encode(&t, argv[i], m.positions);
        const float *x = run_encoder(&m, &input);
        if (!strcmp(class, "BertForMaskedLM"))
            fill_masks(&m, &t, &input, x);
        else if (!strcmp(class, "BertForSequenceClassification"))
            classify(&m, config, x);
        else if (!strcmp(class, "BertForTokenClassification"))
            tag(&m, config, &t, &input, x);
        else if (!strcmp(class, "BertModel"))
            for (size_t c = 0; c < m.C; c++) printf("%.6f\n", x[c]);
        else
            fail(class, "this head is not in the example");
        free_until(mark);
    }
    free_until(NULL);
    return 0;
}
