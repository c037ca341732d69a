/* Texts with labels: lines of fastText or tables. */
#include "fasttext_texts.h"

#include "base/alloc.h"
#include "cli/line_limit.h"
#include "io/input_stream.h"
#include "io/table_text.h"
#include "io/text_decoder.h"

#include <string.h>

enum { CHUNK = 1 << 20 };

/* Whether the file cannot be used in place. */
static bool is_stream(const char *path)
{
    static const char *const packed[] = { ".gz", ".xz", ".zst" };
    size_t n = strlen(path);
    for (size_t i = 0; i < SES_LEN(packed); i++) {
        size_t k = strlen(packed[i]);
        if (n > k && !strcmp(path + n - k, packed[i])) return true;
    }
    return !strcmp(path, "-");
}

static bool read_stream(ses_buf *text, const char *path, ses_text_encoding encoding, ses_err *e)
{
    ses_input_stream *in = ses_input_stream_open_text(path, encoding, e);
    size_t got = 1, line = 0; /* where the last line begins */
    int64_t lines = 0;
    bool ok = in != NULL;
    while (ok && got) {
        ses_buf_reserve(text, CHUNK);
        ok = ses_buf_ok(text, e) && ses_input_stream_read(in, text->data + text->len, CHUNK, &got, e);
        for (size_t i = 0; ok && i < got; i++)
            if (text->data[text->len + i] == '\n') line = text->len + i + 1, lines++;
        if (ok) text->len += got;
        if (ok && text->len - line > SES_MAX_LINE) ok = ses_fail_long_line(lines + 1, e);
    }
    ses_input_stream_free(in);
    return ok || ses_wrap(e, "%s", strcmp(path, "-") ? path : "standard input");
}

static bool open_table(ses_label_lines *t, const char *path, const ses_label_columns *columns, ses_err *e)
{
    ses_data_spec spec = { .kind = SES_DATA_CLASSIFY,
                           .text_a = columns->text,
                           .label = columns->label,
                           .encoding = (ses_text_encoding)columns->encoding };
    t->table = ses_examples_open(path, &spec, NULL, e);
    if (!t->table) return false;
    size_t n = ses_examples_count(t->table), labels = ses_examples_label_count(t->table);
    t->text = ses_alloc_array(n, sizeof *t->text, e);
    t->label = ses_alloc_array(n, sizeof *t->label, e);
    t->name = ses_alloc_array(labels, sizeof *t->name, e);
    if (!t->text || !t->label || !t->name) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(t->table, i);
        t->text[i] = x->text_a;
        t->label[i] = x->label;
    }
    for (size_t i = 0; i < labels; i++) {
        const char *name = ses_examples_label_name(t->table, i);
        t->name[i] = (ses_string){ name, strlen(name) };
    }
    t->texts = (ses_fasttext_texts){
        .text = t->text, .n = n, .label = t->label, .label_name = t->name, .n_labels = labels
    };
    return true;
}

bool ses_label_lines_open(ses_label_lines *t, const char *path, const ses_label_columns *columns, ses_err *e)
{
    if (ses_is_table_name(path)) {
        if (!open_table(t, path, columns, e)) return false;
    } else {
        size_t n;
        ses_text_encoding encoding = (ses_text_encoding)columns->encoding;
        bool stream = encoding || is_stream(path);
        if (!(stream ? read_stream(&t->read, path, encoding, e) : ses_mmap_open(&t->file, path, e)))
            return false;
        const char *bytes = stream ? t->read.data : (const char *)t->file.data;
        size_t size = stream ? t->read.len : t->file.size;
        if (size && !ses_text_check_lines(bytes, size, 1, e))
            return ses_wrap(e, "%s", stream && !strcmp(path, "-") ? "standard input" : path);
        t->text = ses_fasttext_lines(bytes, size, &n, e);
        if (!t->text) return false;
        t->texts = (ses_fasttext_texts){ .text = t->text, .n = n };
    }
    t->texts.name = strcmp(path, "-") ? path : "standard input";
    t->texts.first_line = 1;
    return true;
}

void ses_label_lines_free(ses_label_lines *t)
{
    ses_examples_free(t->table);
    ses_free(t->text);
    ses_free(t->label);
    ses_free(t->name);
    ses_buf_free(&t->read);
    ses_mmap_free(&t->file);
    *t = (ses_label_lines){ 0 };
}
