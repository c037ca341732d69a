/* Reads the chat template and the special tokens of a folder. */
#include "chat_folder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "serve/body.h"

enum { MAX_CONFIG = 16 << 20 };

static char *read_file(const char *dir, const char *name, size_t *n)
{
    char *path = ses_path_join(dir, name, NULL);
    char *text = path && ses_path_exists(path) ? ses_file_read(path, MAX_CONFIG, n, NULL) : NULL;
    ses_free(path);
    return text;
}

static ses_json_doc *read_config(const char *dir)
{
    size_t n = 0;
    char *text = read_file(dir, "tokenizer_config.json", &n);
    ses_json_doc *doc = text ? ses_json_parse(text, n, NULL) : NULL;
    ses_free(text);
    return doc;
}

/* "chat_template": a text, or templates with names. p NULL: none. */
static ses_string template_of(const ses_json *config)
{
    const ses_json *v = ses_json_get(config, "chat_template");
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_text(v);
    for (size_t i = 0; i < ses_json_len(v); i++) {
        ses_string name = ses_body_text(ses_json_get(ses_json_at(v, i), "name"));
        if (name.p && ses_equal(name.p, name.n, "default"))
            return ses_body_text(ses_json_get(ses_json_at(v, i), "template"));
    }
    return (ses_string){ 0 };
}

void ses_chat_folder_read(ses_chat_folder *f, const char *dir)
{
    size_t n = 0;
    f->config = read_config(dir);
    f->file = read_file(dir, "chat_template.jinja", &n);
    f->source = f->file ? (ses_string){ f->file, n } : template_of(ses_json_root(f->config));
}

void ses_chat_folder_close(ses_chat_folder *f)
{
    ses_json_free(f->config);
    ses_free(f->file);
}
