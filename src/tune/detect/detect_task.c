/* Detection of the task a labeled file is made for. */
#include "tune/finetune_data.h"

#include "base/file.h"
#include "io/records_range.h"
#include "io/table_text.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_ROWS = 1000 };

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

static int64_t column(const ses_records *r, const char *name)
{
    for (size_t i = 0; name && i < ses_records_field_count(r); i++) {
        const char *x = ses_records_column_name(r, i);
        if (x && !strcmp(x, name)) return (int64_t)i;
    }
    return -1;
}

/* A number with a fraction or an exponent; label indices are whole. */
static bool is_real(const ses_string *f)
{
    char *end;
    if (!f->n || !strpbrk(f->p, ".eE")) return false;
    strtod(f->p, &end);
    return end != f->p && !*end;
}

static bool is_whole(const ses_string *f)
{
    char *end;
    if (!f->n) return false;
    strtoll(f->p, &end, 10);
    return end != f->p && !*end;
}

/* Are the values of a column numbers, at least one of them not whole? Reads a sample. */
static bool has_reals(ses_records *r, const ses_string *row, int64_t label)
{
    bool any = false;
    for (int i = 0; row && i < SAMPLE_ROWS; i++) {
        if (is_real(&row[label]))
            any = true;
        else if (!is_whole(&row[label]))
            return false;
        if (!ses_records_next(r, &row, NULL)) return false;
    }
    return any;
}

static const char *table_task(ses_records *r, const ses_data_options *o, ses_err *e)
{
    const ses_string *row = NULL;
    while (!ses_records_next(r, &row, e)) /* JSON lines: columns are known after a row that can be read */
        if (!ses_records_row_failed(r)) return NULL;
    if (e) *e = (ses_err){ 0 }; /* the reader reports or drops bad rows */
    int64_t label = column(r, o->label ? o->label : "label");
    if (label < 0) label = column(r, "score");
    if (o->choices) return column(r, "anchor") >= 0 ? "embed" : "choose";
    if (column(r, "anchor") >= 0 && column(r, "positive") >= 0) return "embed";
    if (label < 0 && (column(r, "target") >= 0 || column(r, "summary") >= 0)) return "rewrite";
    if (label < 0 && column(r, "labels") >= 0) return "multi_label";
    return label >= 0 && has_reals(r, row, label) ? "regress" : "classify";
}

const char *ses_finetune_detect_task(const char *path, const ses_data_options *o, ses_err *e)
{
    static const ses_table_format table[] = { [SES_FORMAT_TSV] = SES_TABLE_TSV,
                                              [SES_FORMAT_CSV] = SES_TABLE_CSV,
                                              [SES_FORMAT_JSONL] = SES_TABLE_JSONL };
    int f = o->format;
    if (!ses_path_exists(path)) {
        ses_fail(e, SES_EIO, "%s: not found", path);
        return NULL;
    }
    bool json = f == SES_FORMAT_AUTO && ends_with(path, ".json") && ses_json_start(path) != '[';
    if (f == SES_FORMAT_SQUAD || json) return "answer";
    if (f == SES_FORMAT_CONLL || f == SES_FORMAT_CONLLU) return "tag";
    if (f == SES_FORMAT_AUTO && (ends_with(path, ".conll") || ends_with(path, ".conllu"))) return "tag";
    if (f == SES_FORMAT_TEXT || (f == SES_FORMAT_AUTO && ends_with(path, ".txt"))) return "continue";
    if (o->no_header) return "classify";
    ses_records *r =
        ses_records_open(path,
                         &(ses_records_options){ .format = f <= SES_FORMAT_JSONL ? table[f] : SES_TABLE_AUTO,
                                                 .quotes = (ses_quotes)o->quotes,
                                                 .encoding = (ses_text_encoding)o->encoding },
                         e);
    const char *task = r ? table_task(r, o, e) : NULL;
    ses_records_free(r);
    return task;
}
