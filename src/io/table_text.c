/* Texts of tables: see table_text.h. */
#define _POSIX_C_SOURCE 200809L
#include "table_text.h"

#include "text_reader.h"

#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 1 << 20, START_BYTES = 4096 };

static const char *const tables[] = { ".tsv", ".csv" }, *const objects[] = { ".jsonl", ".ndjson", ".json" };

static bool has_ending(const char *path, const char *const *ending, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ses_input_stream_has_suffix(path, ending[i])) return true;
    return false;
}

bool ses_is_json_lines_name(const char *path) { return has_ending(path, objects, SES_LEN(objects)); }

bool ses_is_table_name(const char *path)
{
    return has_ending(path, tables, SES_LEN(tables)) || ses_is_json_lines_name(path);
}

static size_t count(const char *s, size_t n, char c)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += s[i] == c;
    return found;
}

/* The separator of two lines; 0: none. A tab separates fields wherever it is. */
static char separator(const char *first, size_t n_first, const char *second, size_t n_second)
{
    static const char known[] = "\t,;|";
    for (const char *c = known; *c; c++) {
        size_t n = count(first, n_first, *c);
        if (n && (*c == '\t' || n == count(second, n_second, *c))) return *c;
    }
    return 0;
}

/* Counts the separators of the row at *at and passes it; *open: the text ends within it. */
static size_t count_row(const ses_row_sample *s, char separator, bool quotes, size_t *at, bool *open)
{
    bool quoted = false, begins = true;
    size_t n = 0, i = *at;
    for (; i < s->n && (quoted || s->text[i] != '\n'); i++) {
        char c = s->text[i];
        if (quotes && c == '"' && (quoted || begins)) quoted = !quoted; /* "" closes and opens */
        begins = c == separator || (quoted && !begins);
        n += !quoted && c == separator;
    }
    *open = i == s->n;
    *at = i + (i < s->n);
    return n;
}

bool ses_row_sample_fits(const ses_row_sample *s, char separator, bool quotes, bool first_only)
{
    enum { ROWS = 32 };
    size_t at = 0, first = 0, rows = 0;
    while (at < s->n && rows < ROWS) {
        bool open, empty = s->text[at] == '\n' || s->text[at] == '\r';
        size_t n = count_row(s, separator, quotes, &at, &open);
        if (empty || (open && !s->whole)) continue;
        if (rows++ == 0) first = n;
        if (!n || n != first) return false;
        if (first_only) return true;
    }
    return rows > 1;
}

bool ses_is_column_name(const char *column, const char *name)
{
    column += strspn(column, " ");
    size_t n = strlen(column), i = 0;
    while (n && column[n - 1] == ' ') n--;
    for (; i < n && name[i]; i++) {
        char a = column[i], b = name[i];
        if ((a >= 'A' && a <= 'Z' ? a + 32 : a) != (b >= 'A' && b <= 'Z' ? b + 32 : b)) return false;
    }
    return n && i == n && !name[i];
}

/* Whether the first two lines are rows of a table. */
static bool is_table(const char *path)
{
    ses_text_reader r = { 0 };
    ses_err ignored = { 0 };
    ses_buf first = { 0 };
    const char *s = NULL;
    size_t n;
    bool found = false;
    if (ses_text_reader_open(&r, path, LINE_BYTES, &ignored) && ses_text_reader_next(&r, &s, &n, &ignored) &&
        s) {
        ses_buf_append(&first, s, n);
        bool more = ses_buf_ok(&first, NULL) && ses_text_reader_next(&r, &s, &n, &ignored) && s;
        if (first.data) found = separator(first.data, first.len, more ? s : "", more ? n : 0) != 0;
    }
    ses_buf_free(&first);
    ses_text_reader_free(&r);
    return found;
}

/* Skips white space and returns the byte after it; 0: the end. */
static char next_sign(const char **s)
{
    *s += strspn(*s, " \t\r\n");
    return **s ? *(*s)++ : 0;
}

char ses_json_start(const char *path)
{
    char start[START_BYTES + 1] = { 0 };
    ses_input_stream *in = ses_input_stream_open(path, NULL);
    size_t n = 0, got = 1;
    while (in && got && n < START_BYTES && ses_input_stream_read(in, start + n, START_BYTES - n, &got, NULL))
        n += got;
    ses_input_stream_free(in);
    const char *s = start + (strncmp(start, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
    char c = next_sign(&s);
    return c == '{' || (c == '[' && next_sign(&s) == '{') ? c : 0;
}

bool ses_is_table_file(const char *path)
{
    struct stat s;
    if (!ses_is_table_name(path) || stat(path, &s) || !S_ISREG(s.st_mode)) return false;
    return ses_is_json_lines_name(path) ? ses_json_start(path) : is_table(path);
}

bool ses_refuse_table(const char *path, const char *remedy, ses_err *e)
{
    if (!ses_is_table_file(path)) return true;
    bool json = ses_is_json_lines_name(path), array = json && ses_json_start(path) == '[';
    return ses_fail(e, SES_EFORMAT, "%s, not plain text: %s would be words of the text; %s",
                    array  ? "an array in JSON (JSON lines have an object on each line)"
                    : json ? "JSON lines"
                           : "a table",
                    json ? "its keys" : "its header and labels", remedy);
}
