/* Texts with labels: lines of fastText or tables. */
#include "fasttext_texts.h"

#include "base/alloc.h"

#include <string.h>

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t len = strlen(end);
    return n >= len && !memcmp(s + n - len, end, len);
}

static bool is_table(const char *path)
{
    static const char *const packed[] = { ".gz", ".xz", ".zst" }, *const table[] = { ".tsv", ".csv", ".jsonl",
                                                                                     ".ndjson", ".json" };
    size_t n = strlen(path);
    for (size_t i = 0; i < SES_LEN(packed); i++)
        if (ends_with(path, n, packed[i])) {
            n -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (ends_with(path, n, table[i])) return true;
    return false;
}

static bool open_table(ses_label_lines *t, const char *path, const ses_label_columns *columns, ses_err *e)
{
    ses_data_spec spec = { .kind = SES_DATA_CLASSIFY, .text_a = columns->text, .label = columns->label };
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
    if (is_table(path)) {
        if (!open_table(t, path, columns, e)) return false;
    } else {
        size_t n;
        if (!ses_mmap_open(&t->file, path, e)) return false;
        t->text = ses_fasttext_lines((const char *)t->file.data, t->file.size, &n, e);
        if (!t->text) return false;
        t->texts = (ses_fasttext_texts){ .text = t->text, .n = n };
    }
    t->texts.name = path;
    t->texts.first_line = 1;
    return true;
}

void ses_label_lines_free(ses_label_lines *t)
{
    ses_examples_free(t->table);
    ses_free(t->text);
    ses_free(t->label);
    ses_free(t->name);
    ses_mmap_free(&t->file);
    *t = (ses_label_lines){ 0 };
}
