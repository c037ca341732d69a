/* Shards: the option, blocks, lines and rows of parts of files, records of results. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "cli/pipeline/line_reader.h"
#include "cli/shard/shard_output.h"
#include "io/records_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/sesame-shard-XXXXXX";

static const char *write_file(char path[64], const char *name, const ses_buf *b)
{
    snprintf(path, 64, "%s/%s", folder, name);
    ses_err e = { 0 };
    CHECK(ses_file_write(path, b->data ? b->data : "", b->len, true, &e));
    return path;
}

static void test_option(void)
{
    static const char *const bad[] = { "",     "1",         "/3",    "1/",
                                       "3/3",  "4/3",       "0/0",   "-1/3",
                                       "+1/3", "1/3/4",     " 1/3",  "1/3 ",
                                       "a/b",  "0/1000001", "1.0/2", "99999999999999999999/3" };
    ses_shard s;
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        CHECK(!ses_shard_parse(bad[i], &s, &e) && e.code == SES_EUSAGE && strstr(e.msg, "--shard"));
    }
    CHECK(ses_shard_parse("2/3", &s, NULL) && s.index == 2 && s.count == 3);
    CHECK(ses_shard_parse("007/1000000", &s, NULL) && s.index == 7 && s.count == 1000000);
    CHECK(ses_shard_parse(NULL, &s, NULL) && !s.count);
}

/* Appends the lines of a shard, each after its number from the start of the file and its block. */
static void read_lines(const char *const *file, size_t n_files, ses_shard shard, ses_buf *out)
{
    ses_err e = { 0 };
    ses_shard_plan p = { 0 };
    size_t n, len;
    const char *line;
    CHECK(ses_shard_plan_make(&p, shard, file, n_files, &e));
    ses_span *part = ses_shard_plan_spans(&p, p.first, p.last, &n, &e);
    ses_line_reader in = { .span = part, .n_spans = n };
    uint64_t before = 0, block = 0;
    while (ses_line_next(&in, &line, &len, &e) == SES_LINE_OK) {
        if (in.line == 1) CHECK(ses_input_count_lines(in.name, in.first, &before, &e));
        uint64_t b = ses_span_block(&in.open, in.start);
        CHECK(!shard.count || (b >= p.first && b < p.last && b >= block));
        block = b;
        ses_buf_appendf(out, "%s %d ", in.name, (int)((int64_t)before + in.line));
        ses_buf_append(out, line, len);
        ses_buf_put(out, '\n');
    }
    CHECK(!e.code);
    ses_line_reader_close(&in);
    ses_free(part);
    ses_shard_plan_free(&p);
}

static void check_lines(const char *const *file, size_t n)
{
    ses_buf all = { 0 }, parts = { 0 };
    read_lines(file, n, (ses_shard){ 0 }, &all);
    for (int64_t count = 1; count <= 40; count += count < 8 ? 1 : 16) {
        parts.len = 0;
        for (int64_t i = 0; i < count; i++) read_lines(file, n, (ses_shard){ i, count }, &parts);
        CHECK(all.len == parts.len && (!all.len || !memcmp(all.data, parts.data, all.len)));
    }
    ses_buf_free(&all);
    ses_buf_free(&parts);
}

/* Repeats a text up to this size; '#' becomes a number. */
static void repeat(ses_buf *b, const char *text, size_t bytes)
{
    while (b->len < bytes) {
        int number = (int)b->len;
        for (const char *p = text; *p; p++) *p == '#' ? ses_buf_appendf(b, "%d", number) : ses_buf_put(b, *p);
    }
}

static void test_lines(void)
{
    char a[64], b[64], c[64];
    ses_buf text = { 0 };
    const char *files[3] = { write_file(a, "empty", &text), b, c };
    check_lines(files, 1); /* nothing */
    ses_buf_puts(&text, "one");
    files[1] = write_file(b, "one", &text);
    check_lines(files, 2); /* fewer blocks than shards, no line end */
    text.len = 0;
    repeat(&text, "line #\r\n", 30000);
    ses_buf_puts(&text, "the end");
    files[2] = write_file(c, "crlf", &text);
    check_lines(files, 3);
    check_lines(files + 2, 1);
    text.len = 0; /* a line end as the first and as the last byte of a block */
    repeat(&text, "0123456789abcd\n", 8192);
    ses_buf_puts(&text, "\n\n\nx\n");
    check_lines((const char *[]){ write_file(b, "borders", &text) }, 1);
    text.len = 0; /* one huge line */
    repeat(&text, "# ", 700000);
    ses_buf_puts(&text, "\nshort\n");
    check_lines((const char *[]){ write_file(b, "huge", &text), c }, 2);
    text.len = 0;
    repeat(&text, "#", 70000);
    check_lines((const char *[]){ write_file(b, "huge", &text) }, 1);
    text.len = 0;
    repeat(&text, "\n", 20000); /* empty lines */
    check_lines((const char *[]){ write_file(b, "blank", &text) }, 1);
    ses_buf_free(&text);
}

/* Appends the rows of a shard, each after its line number. */
static void read_rows(const char *path, const ses_records_options *o, ses_shard shard, ses_buf *out)
{
    ses_err e = { 0 };
    ses_shard_plan p = { 0 };
    size_t n;
    CHECK(ses_shard_plan_make(&p, shard, &path, 1, &e));
    ses_span *part = ses_shard_plan_spans(&p, p.first, p.last, &n, &e);
    for (size_t i = 0; i < n; i++) {
        const ses_string *row;
        ses_records *r = ses_records_open(path, o, &e);
        CHECK(r && (!shard.count || ses_records_set_range(r, path, part[i].begin, part[i].end, &e)));
        while (r && ses_records_next(r, &row, &e) && row)
            ses_buf_appendf(out, "%d|%s|%s\n", (int)ses_records_line(r), row[0].p, row[1].p);
        ses_records_free(r);
    }
    CHECK(!e.code);
    ses_free(part);
    ses_shard_plan_free(&p);
}

static void check_rows(const char *name, const ses_buf *text, const ses_records_options *o)
{
    char path[64];
    ses_buf all = { 0 }, parts = { 0 };
    write_file(path, name, text);
    read_rows(path, o, (ses_shard){ 0 }, &all);
    CHECK(all.len > 0);
    for (int64_t count = 1; count <= 30; count += count < 8 ? 1 : 11) {
        parts.len = 0;
        for (int64_t i = 0; i < count; i++) read_rows(path, o, (ses_shard){ i, count }, &parts);
        CHECK(all.len == parts.len && !memcmp(all.data, parts.data, all.len));
    }
    ses_buf_free(&all);
    ses_buf_free(&parts);
}

static void test_rows(void)
{
    static const char *const names[] = { "text", "note" }, *const numbers[] = { "1", "2" };
    ses_records_options o = { .columns = names, .n_columns = 2 };
    ses_buf text = { 0 };
    ses_buf_puts(&text, "\xef\xbb\xbf\"text\",note\r\n"); /* a byte order mark before a quote */
    repeat(&text, "\"a, \"\"#\"\"\nand\n\n\"\"more\",plain \"quotes\" inside\r\n\r\nx,\"\"\n", 30000);
    check_rows("quotes.csv", &text, &o);
    ses_buf_puts(&text, "\"");
    repeat(&text, "#\n", 60000); /* a field over several blocks */
    ses_buf_puts(&text, "\",end\nlast,row");
    check_rows("long.csv", &text, &o);
    text.len = 0;
    ses_buf_puts(&text, "note\ttext\n");
    repeat(&text, "n\"#\t\"t\n\n", 30000);
    check_rows("table.tsv", &text, &o);
    text.len = 0;
    repeat(&text, "{\"text\": \"#\", \"note\": \"\\n\"}\r\n  \n", 30000);
    check_rows("lines.jsonl", &text, &o);
    o.columns = numbers;
    o.no_header = true;
    text.len = 0;
    repeat(&text, "\n\n\n", 9000); /* the first row is in the third block */
    repeat(&text, "a#\tb\n", 30000);
    check_rows("plain.tsv", &text, &o);
    text.len = 0;
    ses_buf_puts(&text, "a,b");
    check_rows("short.csv", &text, &o);
    ses_buf_free(&text);
}

static void test_plan(void)
{
    char path[64];
    ses_buf text = { 0 };
    uint64_t hash[2], next = 0;
    repeat(&text, "line #\n", 100000);
    const char *file = write_file(path, "plan", &text);
    for (int64_t i = 0; i < 7; i++) { /* blocks do not depend on the shard; shards are consecutive */
        ses_shard_plan p = { 0 };
        CHECK(ses_shard_plan_make(&p, (ses_shard){ i, 7 }, &file, 1, NULL));
        CHECK(p.blocks == (text.len + SES_SHARD_BLOCK - 1) / SES_SHARD_BLOCK && p.first == next);
        CHECK(p.last - p.first >= p.blocks / 7 && p.last - p.first <= p.blocks / 7 + 1);
        next = p.last;
        if (i == 6) CHECK(p.last == p.blocks);
        ses_shard_plan_free(&p);
    }
    for (int k = 0; k < 2; k++) { /* the hash sees the part of the shard */
        ses_shard_plan p = { 0 };
        CHECK(ses_shard_plan_make(&p, (ses_shard){ 6, 7 }, &file, 1, NULL));
        CHECK(ses_shard_plan_hash(&p, &hash[k], NULL));
        ses_shard_plan_free(&p);
        text.data[text.len - 2] = 'x';
        write_file(path, "plan", &text);
    }
    CHECK(hash[0] != hash[1]);
    ses_err e = { 0 };
    ses_shard_plan p = { 0 };
    CHECK(!ses_shard_plan_make(&p, (ses_shard){ 0, 2 }, (const char *[]){ "/no/such/file" }, 1, &e));
    CHECK(strstr(e.msg, "/no/such/file"));
    ses_shard_plan_free(&p);
    ses_buf_free(&text);
}

static void test_marker(void)
{
    char path[64];
    ses_err e = { 0 };
    ses_shard_plan p = { .shard = { 1, 2 }, .blocks = 4, .first = 2, .last = 4 };
    ses_shard_counts n = { .block = 3, .records = 5, .bytes = 70 }, got;
    memcpy(n.sha256, "abc", 4);
    snprintf(path, sizeof path, "%s/x.progress", folder);
    CHECK(!ses_shard_marker_read(path, &got, &e) && !e.code);
    CHECK(ses_shard_marker_write(path, &p, "{\"a\": 1, \"b\": [2]}", &n, "{\"more\": 7}", &e));
    ses_json_doc *d = ses_shard_marker_read(path, &got, &e);
    CHECK(d && got.block == 3 && got.records == 5 && got.bytes == 70 && !strcmp(got.sha256, "abc"));
    CHECK(ses_shard_marker_check(d, "x", "{\"b\": [2], \"a\": 1}", "partial result", &e));
    CHECK(!ses_shard_marker_check(d, "x", "{\"a\": 1, \"b\": [3]}", "partial result", &e));
    CHECK(strstr(e.msg, "b [2], now [3]") && strstr(e.msg, "--overwrite"));
    e = (ses_err){ 0 };
    CHECK(!ses_shard_marker_check(d, "x", "{\"a\": 1}", "partial result", &e) && strstr(e.msg, "now none"));
    ses_json_free(d);
    CHECK(ses_file_write(path, "{}", 2, true, NULL));
    e = (ses_err){ 0 };
    CHECK(!ses_shard_marker_read(path, &got, &e) && e.code == SES_EFORMAT);
}

/* Every block is recorded, however many records are read before their results are written. */
static void check_progress(const char *name, int ahead)
{
    char path[64];
    ses_err e = { 0 };
    bool complete, ok = true;
    ses_call call = { .quiet = true };
    ses_shard_plan p = { .shard = { 0, 1 }, .blocks = 20, .last = 20 };
    ses_shard_output o = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(ses_shard_output_begin(&o, &call, &p, path, ses_strdup("{}", &e), false, &complete, &e));
    for (uint64_t i = 1; ok && i < 19; i += (uint64_t)ahead) { /* the first block has no record */
        for (int k = 0; k < ahead; k++) ok = ok && ses_shard_output_fed(&o, i + (uint64_t)k, &e);
        for (int k = 0; k < ahead; k++)
            ok = ok && puts("result") >= 0 && !fflush(stdout) && ses_shard_output_done(&o, false, &e);
    }
    ok = ok && ses_shard_output_fed(&o, 19, &e);
    ses_shard_output_end(&o, &e); /* stopped before the last result */
    CHECK_MSG(ok, "%s", e.msg);
    CHECK(ses_shard_output_begin(&o, &call, &p, path, ses_strdup("{}", &e), false, &complete, &e));
    uint64_t block = o.at.block, records = o.at.records, bytes = o.at.bytes;
    ses_shard_output_end(&o, &e);
    CHECK_MSG(block == 19 && records == 18 && bytes == 18 * 7, "%d ahead: block %d, %d records", ahead,
              (int)block, (int)records);
}

static void test_progress(void)
{
    check_progress("ahead1", 1);
    check_progress("ahead2", 2);
    check_progress("ahead6", 6);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    test_option();
    test_lines();
    test_rows();
    test_plan();
    test_marker();
    test_progress();
    char remove[80];
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    CHECK(system(remove) == 0);
    return check_report();
}
