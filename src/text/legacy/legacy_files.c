/* Finds the tokenizer that a path refers to and returns it as the text of a tokenizer.json. */
#include "legacy_files.h"

#include "base/alloc.h"
#include "base/file.h"
#include "folder/elmo_folder.h"
#include "folder/tf_folder.h"
#include "legacy.h"
#include "text/spm/spm_to_json.h"
#include "text/tokenizer_files.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 512 << 20 };

/* The writer's text as a separate string. */
static char *finish(ses_json_writer *w, size_t *n, ses_err *e)
{
    const char *text = ses_json_writer_text(w, n, e);
    char *copy = text ? ses_strndup(text, *n, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

static char *from_spm(const char *path, size_t *n, ses_err *e)
{
    ses_spm m = { 0 };
    char *bytes = ses_file_read(path, MAX_FILE, n, e), *text = NULL;
    if (!bytes) return NULL;
    ses_json_writer *w = ses_json_writer_new(-1, e);
    if (w && ses_spm_parse(&m, bytes, *n, e) && ses_spm_write(&m, w, e)) {
        text = finish(w, n, e);
        w = NULL;
    }
    if (!text) ses_wrap(e, "%s", path);
    ses_json_writer_free(w);
    ses_spm_free(&m);
    ses_free(bytes);
    return text;
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && !strcmp(path + n - k, end);
}

/* The first byte of a file that is not white space; 0: none. */
static int first_sign(const char *path)
{
    FILE *f = fopen(path, "rb");
    int c = f ? getc(f) : EOF;
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t') c = getc(f);
    if (f) fclose(f);
    return c == EOF ? 0 : c;
}

/* Known by its content. A file named .model or .spm is read as such for the error, unless it is JSON. */
static bool is_spm(const char *path)
{
    bool named = ends_in(path, ".model") || ends_in(path, ".spm");
    return (named && first_sign(path) != '{') || ses_spm_is_file(path);
}

/* The text of a tokenizer_config.json: what tokenizer.json does not tell transformers. */
static char *settings_of(const ses_legacy_converter *o, const ses_legacy_family *f, size_t *n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    if (f->write == ses_legacy_write_wordpiece)
        ses_json_member_bool(w, "do_lower_case", ses_legacy_lowercases(o));
    ses_json_member_stringn(w, "tokenizer_class", f->classes, strcspn(f->classes, " "));
    ses_json_end_object(w);
    return finish(w, n, e);
}

/* A folder without tokenizer.json, or a single file of family f. settings: NULL, or the text of its
 * tokenizer_config.json, free with ses_free. */
static char *from_folder(const char *dir, const char *file, const ses_legacy_family *f, bool exact,
                         bool target, size_t *n, char **settings, ses_err *e)
{
    size_t len;
    ses_legacy_converter o = { 0 };
    char *text = NULL;
    if (ses_legacy_open(&o, dir, e)) {
        o.file = file;
        o.target = target;
        o.portable = !exact;
        if (!f) f = ses_legacy_find(&o, e);
        if (f && f->write(&o, f, e)) {
            if (settings) *settings = settings_of(&o, f, &len, e);
            text = finish(o.w, n, e);
            o.w = NULL;
        }
    }
    if (!text && e && strncmp(e->msg, dir, strlen(dir)))
        ses_wrap(e, "%s", dir); /* unless the message already names a file */
    ses_legacy_free(&o);
    return text;
}

/* A single file without its folder. */
static char *from_file(const char *path, const ses_legacy_family *f, size_t *n, ses_err *e)
{
    const char *base = ses_path_basename(path);
    char *dir = base == path ? ses_strdup(".", e) : ses_strndup(path, (size_t)(base - path), e);
    char *text = dir ? from_folder(dir, base, f, false, false, n, NULL, e) : NULL;
    ses_free(dir);
    return text;
}

/* ELMo's original files have no tokenizer: words are separated by white space, and their characters are read.
 * The vocabulary is that of its words without characters of their own. */
static const char elmo_tokenizer[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":0,\"content\":\"<S>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
    "false,"
    "\"special\":true},"
    "{\"id\":1,\"content\":\"</"
    "S>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
    "\"special\":true}],"
    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"post_processor\":{\"type\":"
    "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<S>\",\"type_id\":0}},{\"Sequence\":{"
    "\"id\":\"A\","
    "\"type_id\":0}},{\"SpecialToken\":{\"id\":\"</"
    "S>\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":\"<S>\","
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"</"
    "S>\",\"type_id\":0}},"
    "{\"SpecialToken\":{\"id\":\"<S>\",\"type_id\":1}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},"
    "{\"SpecialToken\":{\"id\":\"</"
    "S>\",\"type_id\":1}}],\"special_tokens\":{\"<S>\":{\"id\":\"<S>\",\"ids\":[0],"
    "\"tokens\":[\"<S>\"]},\"</S>\":{\"id\":\"</S>\",\"ids\":[1],\"tokens\":[\"</S>\"]}}},\"decoder\":null,"
    "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"<S>\":0,\"</"
    "S>\":1,\"<UNK>\":2},\"unk_token\":\"<UNK>\"}}";

static const char elmo_settings[] = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n";

static char *elmo_json(size_t *n, ses_err *e)
{
    *n = sizeof elmo_tokenizer - 1;
    return ses_strndup(elmo_tokenizer, *n, e);
}

char *ses_tokenizer_read_json(const char *path, bool exact, size_t *n, ses_err *e)
{
    if (ses_path_is_dir(path)) {
        char *in = ses_path_join(path, "tokenizer.json", e), *text = NULL;
        if (in)
            text = ses_path_exists(in)        ? ses_file_read(in, MAX_FILE, n, e)
                   : ses_elmo_folder_is(path) ? elmo_json(n, e)
                                              : from_folder(path, NULL, NULL, exact, false, n, NULL, e);
        ses_free(in);
        return text;
    }
    if (is_spm(path)) return exact ? from_spm(path, n, e) : from_file(path, &ses_legacy_plain, n, e);
    return ends_in(path, ".txt") ? from_file(path, &ses_legacy_bert, n, e)
                                 : ses_file_read(path, MAX_FILE, n, e);
}

static bool put_file(const char *dir, const char *name, const char *text, size_t n, bool overwrite,
                     ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    bool ok = path && ses_file_write(path, text, n, overwrite, e);
    ses_free(path);
    return ok;
}

bool ses_tokenizer_convert_original(const char *from, const char *to, bool overwrite, bool *done, ses_err *e)
{
    const ses_legacy_converter o = { .dir = from };
    size_t n;
    *done = ses_elmo_folder_is(from) && !ses_legacy_has_file(&o, "tokenizer.json");
    if (*done)
        return put_file(to, "tokenizer.json", elmo_tokenizer, sizeof elmo_tokenizer - 1, overwrite, e) &&
               put_file(to, "tokenizer_config.json", elmo_settings, sizeof elmo_settings - 1, overwrite, e);
    *done = ses_path_is_dir(from) && ses_tf_folder_is(from) && ses_dir_has_tokenizer(from) &&
            !ses_legacy_has_file(&o, "tokenizer.json") && !ses_legacy_has_file(&o, "config.json");
    if (!*done) return true;
    char *settings = NULL, *text = from_folder(from, NULL, NULL, false, false, &n, &settings, e);
    bool ok = text && settings && put_file(to, "tokenizer.json", text, n, overwrite, e) &&
              put_file(to, "tokenizer_config.json", settings, strlen(settings), overwrite, e);
    ses_free(settings);
    ses_free(text);
    return ok;
}

char *ses_tokenizer_read_target_json(const char *path, size_t *n, ses_err *e)
{
    return from_folder(path, NULL, NULL, true, true, n, NULL, e);
}
