/* Recognizes formats of model files by their first bytes. */
#define _POSIX_C_SOURCE 200809L
#include "file_kind.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ORIGINAL                                                                                       \
    "use the folder that it was converted from, with config.json and model.safetensors; 'sesame pull " \
    "ORG/NAME' downloads it"
#define IN_FOLDER \
    "name the folder that contains it and config.json; 'sesame info --tensors FILE' lists its tensors"

typedef struct signature {
    const char *magic;
    size_t n, at; /* bytes of the magic number, its offset */
    ses_file_kind kind;
} signature;

#define MAGIC(text, at) text, sizeof(text) - 1, at

static const signature signatures[] = {
    { MAGIC("GGUF", 0), { "a GGUF file (llama.cpp)", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("tjgg", 0), { "a GGML file (llama.cpp)", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("fmgg", 0), { "a GGML file (llama.cpp)", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("lmgg", 0), { "a GGML file (llama.cpp)", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("TFL3", 4), { "a TensorFlow Lite model", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("\x89HDF\r\n\x1a\n", 0),
      { "an HDF5 file (weights of Keras or ELMo)", "of Keras: take a revision of the model with safetensors; "
                                                   "of ELMo: name the folder with options.json" } },
    { MAGIC("\xba\x16\x4f\x2f", 0),
      { "a fastText model", "'sesame vectors info FILE' and 'sesame vectors predict' read it" } },
    { MAGIC("version https://git-lfs.github.com/spec/", 0),
      { "a Git LFS pointer", "run 'git lfs pull' in its folder", SES_FILE_WEIGHTS } },
    { MAGIC("<!DOCTYPE", 0), { "an HTML page, not a model", "download the file again" } },
    { MAGIC("<!doctype", 0), { "an HTML page, not a model", "download the file again" } },
    { MAGIC("<html", 0), { "an HTML page, not a model", "download the file again" } },
    { MAGIC("<?xml", 0), { "an XML file (OpenVINO)", ORIGINAL, SES_FILE_MODEL } },
    { MAGIC("\x1f\x8b", 0), { "a gzip archive", "unpack it and name the folder" } },
    { MAGIC("\3757zXZ", 0), { "an xz archive", "unpack it and name the folder" } },
    { MAGIC("ustar", 257), { "a tar archive", "unpack it and name the folder" } },
    { MAGIC("PAR1", 0), { "a Parquet file", "it has data, not a model" } },
    { MAGIC("\x93NUMPY", 0), { "a NumPy array", "name the folder of a model" } },
};

static const ses_file_kind onnx = { "an ONNX model", ORIGINAL, SES_FILE_MODEL },
                           torch = { "PyTorch weights (a zip with a pickle)", IN_FOLDER, SES_FILE_WEIGHTS,
                                     "pytorch_model.bin" },
                           zip = { "a zip archive", "unpack it and name the folder" },
                           pickle = { "a pickle (PyTorch weights or a Python object)", IN_FOLDER,
                                      SES_FILE_WEIGHTS, "pytorch_model.bin" },
                           safetensors = { "weights in safetensors", IN_FOLDER, SES_FILE_WEIGHTS,
                                           "model.safetensors" },
                           json = { "a JSON file", "name the folder that contains it", SES_FILE_TEXT };

/* ModelProto begins with ir_version (field 1), then a producer, a graph or another field with a length. */
static bool is_onnx(const unsigned char *p, size_t n)
{
    return n > 3 && p[0] == 0x08 && p[1] >= 3 && p[1] < 32 && (p[2] & 7) == 2 && p[2] >> 3 >= 2 &&
           p[2] >> 3 <= 20;
}

/* PyTorch's archives begin with NAME/data.pkl; its legacy files with a pickled number. */
static const ses_file_kind *zip_or_torch(const unsigned char *p, size_t n)
{
    size_t name = n >= 30 ? ses_le16(p + 26) : 0;
    static const char end[] = "data.pkl";
    if (name > n - 30 || name < sizeof end - 1) return &zip;
    return !memcmp(p + 30 + name - (sizeof end - 1), end, sizeof end - 1) ? &torch : &zip;
}

const ses_file_kind *ses_file_kind_of(const void *bytes, size_t n, uint64_t size)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < SES_LEN(signatures); i++) {
        const signature *s = &signatures[i];
        if (n >= s->at + s->n && !memcmp(p + s->at, s->magic, s->n)) return &s->kind;
    }
    if (n >= 4 && !memcmp(p, "PK\3\4", 4)) return n >= 30 ? zip_or_torch(p, n) : &zip;
    if (n >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5) return &pickle;
    if (n >= 9 && p[8] == '{' && ses_le64(p) >= 2 && ses_le64(p) <= size - 8) return &safetensors;
    if (is_onnx(p, n)) return &onnx;
    return n && p[0] == '{' ? &json : NULL;
}

const ses_file_kind *ses_file_kind_at(const char *path)
{
    unsigned char head[SES_FILE_KIND_BYTES];
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return NULL;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return ses_file_kind_of(head, n, (uint64_t)st.st_size);
}

bool ses_file_kind_check(const void *bytes, size_t size, const char *expected, ses_err *e)
{
    const ses_file_kind *kind =
        ses_file_kind_of(bytes, size < SES_FILE_KIND_BYTES ? size : SES_FILE_KIND_BYTES, size);
    if (!kind || kind->role == SES_FILE_TEXT) return true;
    if (kind->file)
        return ses_fail(e, SES_EFORMAT, "%s, not %s: such a file is named %s", kind->name, expected,
                        kind->file);
    return ses_fail(e, SES_EFORMAT, "%s, not %s: %s", kind->name, expected, kind->remedy);
}

typedef struct search {
    const char *dir;
    char *name; /* [256] */
    const ses_file_kind *kind;
} search;

static bool look_at(void *ctx, const char *name)
{
    search *s = ctx;
    char *path = ses_path_join(s->dir, name, NULL);
    const ses_file_kind *kind = path ? ses_file_kind_at(path) : NULL;
    bool fits = kind && (kind->role == SES_FILE_MODEL || kind->role == SES_FILE_WEIGHTS);
    if (fits && (!s->kind || strcmp(name, s->name) < 0)) {
        snprintf(s->name, 256, "%s", name);
        s->kind = kind;
    }
    ses_free(path);
    return true;
}

const ses_file_kind *ses_file_kind_in(const char *dir, char name[static 256])
{
    search s = { .dir = dir, .name = name };
    ses_dir_each(dir, look_at, &s, NULL);
    return s.kind;
}

/* A folder without config.json. */
static bool fail_no_config(const char *dir, ses_err *e)
{
    char name[256];
    const ses_file_kind *kind = ses_file_kind_in(dir, name);
    if (!kind) return ses_fail(e, SES_EIO, "%s: no config.json: not the folder of a model", dir);
    if (kind->role == SES_FILE_WEIGHTS)
        return ses_fail(e, SES_EIO,
                        "%s: no config.json beside the weights in %s: take it from the model's page", dir,
                        name);
    return ses_fail(e, SES_EIO, "%s: no config.json; %s is %s: %s", dir, name, kind->name, kind->remedy);
}

bool ses_fail_not_model_folder(const char *path, ses_err *e)
{
    if (ses_path_is_dir(path)) return fail_no_config(path, e);
    const ses_file_kind *kind = ses_file_kind_at(path);
    char *parent = kind && kind->role >= SES_FILE_WEIGHTS ? ses_path_parent(path, NULL) : NULL,
         *config = parent ? ses_path_join(parent, "config.json", NULL) : NULL;
    if (config && ses_path_exists(config))
        ses_fail(e, SES_EARG, "%s: %s, expected the folder of a model: name %s", path, kind->name, parent);
    else if (kind)
        ses_fail(e, SES_EARG, "%s: %s, expected the folder of a model: %s", path, kind->name, kind->remedy);
    else
        ses_fail(e, SES_EARG,
                 "%s: a file, expected the folder of a model, with config.json and model.safetensors", path);
    ses_free(config);
    ses_free(parent);
    return false;
}
