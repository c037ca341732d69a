/* Readers of labeled text: rows, sentences, questions; results and errors. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "sesame/unstable/table.h"

#include <sys/stat.h>
#include <unistd.h>

/* Every row as "a|b\n", and the error, if any, as "! message". */
static char out[1 << 16];
static void add(const char *s)
{
    size_t n = strlen(out);
    snprintf(out + n, sizeof out - n, "%s", s);
}

static const char *drain(ses_records *r, ses_err *e)
{
    const ses_string *row = NULL;
    out[0] = 0;
    bool ok = r != NULL;
    while (ok && (ok = ses_records_next(r, &row, e)) && row)
        for (size_t k = 0; k < ses_records_field_count(r); k++) {
            CHECK(strlen(row[k].p) == row[k].n);
            add(row[k].p);
            add(k + 1 < ses_records_field_count(r) ? "|" : "\n");
        }
    CHECK(ok || e->code);
    if (!ok) add("! "), add(e->msg);
    ses_records_free(r);
    return out;
}

static const char *rows(const char *text, const ses_records_options *o)
{
    ses_err e = { 0 };
    ses_records *r = ses_records_from_text(text, strlen(text), o, &e);
    return drain(r, &e);
}

#define COLUMNS(...)                            \
    .columns = (const char *[]){ __VA_ARGS__ }, \
    .n_columns = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)
#define O(...) (&(const ses_records_options){ __VA_ARGS__ })

static void tsv(void)
{
    CHECK_STR(rows("a\tb\n1\t2\n3\t4\n", NULL), "1|2\n3|4\n");
    CHECK_STR(rows("\xef\xbb\xbf"
                   "a\tb\r\n1\t2\r\n",
                   O(COLUMNS("b", "a"))),
              "2|1\n");                                      /* byte order mark, CRLF, column order */
    CHECK_STR(rows("a\tb\n\n1\t2", O(COLUMNS("2"))), "2\n"); /* empty line, no last line end, by number */
    CHECK_STR(rows("2\t1\nx\ty\n", O(COLUMNS("1"))), "y\n"); /* a name takes precedence over a number */
    CHECK_STR(rows("1\t2\n3\t4\n", O(.no_header = true, COLUMNS("2"))), "2\n4\n");
    CHECK_STR(rows("a\n\"\n\"x\" y\n", NULL), "\"\n\"x\" y\n"); /* quotes are ordinary characters */
    CHECK_STR(rows("a\tb\n\t\n", NULL), "|\n");
    CHECK_STR(rows("a\tb\n\"x\ty\"\tz\n", O(.quotes = SES_QUOTES_ON)), "x\ty|z\n");
    CHECK_STR(rows("a b\nc d\n", O(.delimiter = ' ')), "c|d\n");
    CHECK_STR(rows("a\tb\n1\t2\t3\n1\t2\n", O(.ragged = true, COLUMNS("b"))), "2\n2\n");
    CHECK_STR(rows("a\tb\n", NULL), "");

    CHECK_STR(rows("", NULL), "! the file is empty");
    CHECK_STR(rows("a\tb\n1\t2\n3\n", NULL),
              "1|2\n! line 3: 1 field, the header has 2 (does the file contain quoted line ends?)");
    CHECK_STR(rows("a\tb\n1\t2\t3\n", NULL), "! line 2: 3 fields, the header has 2");
    CHECK_STR(rows("1\t2\n1\n", O(.no_header = true)),
              "1|2\n! line 2: 1 field, the first row has 2 (does the file contain quoted line ends?)");
    CHECK_STR(rows("a\tb\n1\n", O(.ragged = true, COLUMNS("b"))), "! line 2: 1 field, field 2 requested");
    CHECK_STR(rows("text\tlabel\n", O(COLUMNS("sentence"))),
              "! no column \"sentence\"; available: text, label (or numbers from 1 to 2)");
    CHECK_STR(rows("text\tlabel\n", O(COLUMNS("3"))),
              "! no column \"3\"; available: text, label (or numbers from 1 to 2)");
    CHECK_STR(rows("x\ty\n", O(.no_header = true, COLUMNS("text"))),
              "! no column \"text\": a file without a header has columns 1 to 2");
    CHECK_STR(rows("x\tx\n", O(COLUMNS("x"))),
              "! two columns are named \"x\": select one by its number, 1 or 2");
    CHECK_STR(
        rows("a\nb\n\xff\n", NULL),
        "b\n! line 3: byte 1: invalid UTF-8 (to convert: --encoding latin1, or iconv -f LATIN1 -t UTF-8)");
    CHECK_STR(rows("\xff\xfe"
                   "a",
                   NULL),
              "! this file is UTF-16: convert it (--encoding utf-16)");
    CHECK_STR(rows("a\nlong long\n", O(.max_row = 5)), "! line 2: longer than 5 bytes");
    ses_err e = { 0 };
    CHECK_STR(drain(ses_records_from_text("a\nx\0y\n", 6, NULL, &e), &e),
              "! line 2: byte 2: NUL: not a text file, or UTF-16 (--encoding utf-16)");
}

static void csv(void)
{
    CHECK_STR(rows("a,b\n\"x, y\",\"he said \"\"no\"\"\"\n", O(.format = SES_TABLE_CSV)),
              "x, y|he said \"no\"\n");
    CHECK_STR(rows("a,b\n\"two\r\n\nlines\",1\n2,3\n", O(.format = SES_TABLE_CSV)), "two\n\nlines|1\n2|3\n");
    CHECK_STR(rows("a,b\n\"\",x\n", O(.format = SES_TABLE_CSV)), "|x\n");
    CHECK_STR(rows("a;b\n1;2\n", O(.format = SES_TABLE_CSV, .delimiter = ';')), "1|2\n");
    CHECK_STR(rows("a,b\nx\"y,2\n", O(.format = SES_TABLE_CSV)),
              "x\"y|2\n"); /* not at the start of a field */
    CHECK_STR(
        rows("a,b\n1,2\n\"x,2\n3,4\n", O(.format = SES_TABLE_CSV)),
        "1|2\n! line 3: field 1: the quote is never closed (are quotes ordinary characters in this file?)");
    CHECK_STR(
        rows("a,b\n\"x\"y,2\n", O(.format = SES_TABLE_CSV)),
        "! line 2: field 1: text after its closing quote (are quotes ordinary characters in this file?)");
    CHECK_STR(
        rows("a,b\n1,2\n\"x,1\n\"y,2\n", O(.format = SES_TABLE_CSV)),
        "1|2\n! line 3: field 1: text after its closing quote in line 4 (are quotes ordinary characters in "
        "this file?)");
    CHECK_STR(rows("a,b,c\n\"1\n\n\",\"open\n2\n", O(.format = SES_TABLE_CSV)), /* the quote, not the row */
              "! line 4: field 2: the quote is never closed (are quotes ordinary characters in this file?)");
    CHECK_STR(
        rows("a\n\"x\ny\nz\"\n", O(.format = SES_TABLE_CSV, .max_row = 3)),
        "! line 2: field 1: the quote is not closed within 3 bytes (are quotes ordinary characters in this "
        "file?)");
}

/* Separators and names of columns as programs write them. */
static void found(void)
{
    const char *r = "x, y|1\nz|2\n";
    const ses_records_options *csv = O(.format = SES_TABLE_CSV);
    CHECK_STR(rows("a;b\nx, y;1\nz;2\n", csv), r);
    CHECK_STR(rows("a\tb\nx, y\t1\nz\t2\n", csv), r);
    CHECK_STR(rows("a|b\r\n\r\nx, y|1\r\nz|2", csv), r);
    CHECK_STR(rows("a,b\n\"x, y\",1\nz,2\n", NULL), r); /* without a name: tabs are usual */
    CHECK_STR(rows("a;b\n\"x\n;\"\"y\";1\n", csv), "x\n;\"y|1\n");
    CHECK_STR(rows("a;b\n\"x;y\";1\n", O(.format = SES_TABLE_CSV, .quotes = SES_QUOTES_OFF)), "\"x;y\";1\n");
    CHECK_STR(rows("x;1\ny;2\n", O(.format = SES_TABLE_CSV, .no_header = true)), "x|1\ny|2\n");
    /* in doubt: as usual */
    CHECK_STR(rows("a,b\n1;x,2\n3;y,4\n", csv), "1;x|2\n3;y|4\n");
    CHECK_STR(rows("a;b\nx;y;z\n", csv), "x;y;z\n");
    CHECK_STR(rows("a;b|c\nx;y|z\n", csv), "x;y|z\n");
    CHECK_STR(rows("a;b\n", csv), "");
    CHECK_STR(rows("a,b\nx,y\n", O(.format = SES_TABLE_TSV)), "x,y\n");
    CHECK_STR(rows("Hi, you\nHi, me\n", O(.no_header = true)), "Hi, you\nHi, me\n");

    CHECK_STR(rows("Label\t Text \n1\tx\n", O(COLUMNS("text", "label"))), "x|1\n");
    CHECK_STR(rows("Text\ttext\nx\ty\n", O(COLUMNS("text"))), "y\n");
    CHECK_STR(rows("Text\tTEXT\nx\ty\n", O(COLUMNS("text"))),
              "! two columns are named \"text\": select one by its number, 1 or 2");
    const char *keys = "{\"Text\":\"x\",\"A\":{\"B\":1}}\n";
    CHECK_STR(rows(keys, O(.format = SES_TABLE_JSONL, COLUMNS("text", "a.b"))), "x|1\n");
    CHECK(strstr(rows("{\"Text\":1,\"TEXT\":2}\n", O(.format = SES_TABLE_JSONL, COLUMNS("text"))),
                 "! line 1: no field \"text\""));
}

static void json_array(void)
{
    const ses_records_options *all = O(.format = SES_TABLE_JSONL);
    CHECK_STR(rows("[{\"a\":\"x\"},{\"a\":\"]},\\\"\"}]", all), "x\n]},\"\n");
    CHECK_STR(rows("\n [\n {\"a\":\n [1,\n 2]},\n\n{\"a\":{}} , {\"a\":2}\n]\n\n", all), "1,2\n{}\n2\n");
    CHECK_STR(rows("[]", all), "! the array has no objects");
    CHECK_STR(rows("[{\"a\":1}\n{\"a\":2}]", all),
              "1\n! line 2: expected ',' or ']' after an object of the array");
    CHECK_STR(rows("[{\"a\":1},\n]", all), "1\n! line 2: expected an object after ','");
    CHECK_STR(rows("[{\"a\":1},\n", all), "1\n! line 1: the array that the file begins with is never closed");
    CHECK_STR(rows("[{\"a\":1}\n,{\"a\":\n\n", all), "1\n! line 2: the object is never closed");
    CHECK_STR(rows("[{\"a\":1}]\n{\"a\":1}", all), "1\n! line 2: text after the array");
    CHECK(strstr(rows("[{\"a\":\"x\ny\"}]", all), "! line 1: "));
    CHECK_STR(rows("[{\"a\":1},\n{\"b\":1}]", all), "1\n! line 2: no field \"a\"; available: b");
    CHECK_STR(rows("{\"a\":1}\n[{\"a\":1}]", all), "1\n! line 2: an array, expected an object {...}");
}

static void jsonl(void)
{
    const ses_records_options *all = O(.format = SES_TABLE_JSONL);
    CHECK_STR(rows("{\"a\":\"x\",\"b\":1}\n\n{\"b\":2.5,\"a\":null}\n", all), "x|1\n|2.5\n");
    CHECK_STR(
        rows("{\"a\":true,\"b\":[\"x\",2],\"c\":{}}\n", O(.format = SES_TABLE_JSONL, COLUMNS("b", "a"))),
        "x,2|true\n");
    CHECK_STR(rows("{\"a\":18446744073709551615}", all), "18446744073709551615\n");
    CHECK_STR(rows("{\"a\":1}\n{\"b\":1}\n", all), "1\n! line 2: no field \"a\"; available: b");
    CHECK_STR(rows("{\"a\":{}}\n", all), "{}\n");
    CHECK_STR(rows("{\"a\":[[1]]}\n", all), "[[1]]\n");
    CHECK_STR(rows("{\"a\":{}}\n", O(.format = SES_TABLE_JSONL, COLUMNS("a"))),
              "! line 1: field \"a\": an object, expected a string or a number");
    CHECK_STR(rows("{\"a\":[[1]]}\n", O(.format = SES_TABLE_JSONL, COLUMNS("a"))),
              "! line 1: field \"a\": nested array, expected strings or numbers");
    CHECK_STR(rows("[1]\n", all), "! line 1: an integer, expected an object {...}");
    CHECK_STR(rows("{\"a\":\"x\\u0000\"}\n", all), "! line 1: field \"a\": NUL in a string");
    CHECK_STR(rows(" \n", all), "! the file is empty");
    CHECK(strstr(rows("{\"a\":1}\n{\"a\"}\n", all), "1\n! line 2: "));
    ses_err e = { 0 };
    const char *text = "{\"a\":{\"b\":7}, \"k\":1}";
    ses_records *r =
        ses_records_from_text(text, strlen(text), O(.format = SES_TABLE_JSONL, COLUMNS("k")), &e);
    const ses_string *row;
    int64_t seven = 0;
    CHECK(r && ses_records_next(r, &row, &e) && row && ses_records_line(r) == 1);
    CHECK(ses_json_int(ses_json_get(ses_json_get(ses_records_json(r), "a"), "b"), &seven) && seven == 7);
    CHECK_STR(ses_records_column_name(r, 0), "k");
    ses_records_free(r);
}

/* ---- files ---- */

static char dir[64], path[128];
static const char *file(const char *name, const char *text, size_t n)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text, 1, n, f) == n);
    if (f) fclose(f);
    return path;
}

/* "number TAB that many x"; below 0: the header. */
static size_t big_row(char *to, int number, int length)
{
    size_t n = number < 0 ? (size_t)snprintf(to, 100, "n\tx") : (size_t)snprintf(to, 100, "%d\t", number);
    memset(to + n, 'x', (size_t)length);
    to[n + (size_t)length] = '\n';
    return n + (size_t)length + 1;
}

static void files(void)
{
    ses_err e = { 0 };
    CHECK_STR(drain(ses_records_open(file("x.csv", "a,b\n\"1,\",2\n", 11), NULL, &e), &e), "1,|2\n");
    CHECK_STR(drain(ses_records_open(file("x.jsonl", "{\"a\":1}", 7), NULL, &e), &e), "1\n");
    CHECK(!ses_records_open("/nonexistent/x.tsv", NULL, &e));
    CHECK_STR(e.msg, "/nonexistent/x.tsv: No such file or directory");
    e = (ses_err){ 0 };
    CHECK(!ses_records_open(dir, NULL, &e) && strstr(e.msg, "directory"));
    e = (ses_err){ 0 };
    CHECK(!ses_records_open(file("x.tsv.xz",
                                 "\xfd"
                                 "7zXZ\0",
                                 6),
                            NULL, &e) &&
          (strstr(e.msg, "xz: truncated") || strstr(e.msg, "xz -dc"))); /* if this build lacks it */

    /* Lines longer than the read buffer, line ends at its boundaries. */
    enum { ROWS = 3000 };
    size_t n = 0;
    char *big = malloc(ROWS * 400);
    if (!CHECK(big)) return;
    n += big_row(big, -1, 0);
    for (int i = 0; i < ROWS; i++) n += big_row(big + n, i, i * 7919 % 300);
    e = (ses_err){ 0 };
    ses_records *r = ses_records_open(file("big.tsv", big, n), NULL, &e);
    const ses_string *row;
    int count = 0;
    bool same = r != NULL;
    for (; same && ses_records_next(r, &row, &e) && row; count++)
        same = strtol(row[0].p, NULL, 10) == count && row[1].n == (size_t)(count * 7919 % 300);
    CHECK(same && count == ROWS && !e.code);
    ses_records_free(r);
    free(big);
}

/* ---- sentences ---- */

static const char *sentences(const char *text, const ses_conll_options *o)
{
    ses_err e = { 0 };
    ses_conll *c = ses_conll_from_text(text, strlen(text), o, &e);
    ses_conll_sentence s;
    out[0] = 0;
    bool ok = c != NULL;
    while (ok && (ok = ses_conll_next(c, &s, &e)) && s.n) {
        char head[32];
        snprintf(head, sizeof head, "%d%s:", (int)s.line, s.starts_document ? "*" : "");
        add(head);
        for (size_t i = 0; i < s.n * s.n_columns; i++) {
            add(i % s.n_columns ? "/" : " ");
            add(s.field[i].p);
        }
        add("\n");
    }
    if (!ok) add("! "), add(e.msg);
    ses_conll_free(c);
    return out;
}

#define C(...) (&(const ses_conll_options){ __VA_ARGS__ })

static void conll(void)
{
    const char *text = "-DOCSTART- -X- O\n\nEU NNP B-ORG\r\nrejects VBZ O\r\n \t\n\nPeter\tNNP "
                       "B-PER\n\n-DOCSTART- O\n\nx y O";
    CHECK_STR(sentences(text, NULL), "3*: EU/B-ORG rejects/O\n7: Peter/B-PER\n11*: x/O\n");
    CHECK_STR(sentences(text, C(.columns = (int[]){ 2 }, .n_columns = 1, .keep_documents = true)),
              "1*: -X-\n3: NNP VBZ\n7: NNP\n9*: O\n11: y\n");
    CHECK_STR(sentences("a b\nc\n", NULL), "! line 2: 1 column, the first token has 2");
    CHECK_STR(sentences("a b\n", C(.columns = (int[]){ 1, 4 }, .n_columns = 2)),
              "! line 1: 2 columns, column 4 requested");
    CHECK_STR(sentences("a b\n", C(.columns = (int[]){ -3 }, .n_columns = 1)),
              "! line 1: 2 columns, column -3 requested");
    CHECK_STR(sentences("a\n", C(.columns = (int[]){ 0 }, .n_columns = 1)),
              "! column 0: columns count from 1, or from -1 at the end");
    CHECK_STR(sentences("\n \n", NULL), "! no sentences");
    CHECK_STR(sentences("# text = a b\n1-2\tab\t_\n1\ta\tX\n2\tb c\tY\n2.1\tz\tZ\n\n",
                        C(.conllu = true, .columns = (int[]){ 2, 3 }, .n_columns = 2)),
              "3: a/X b c/Y\n");
    CHECK_STR(sentences("# a\nb c\n", NULL), "1: #/a b/c\n"); /* an ordinary token */
    CHECK_STR(sentences("aaaa\nbbbb\n", C(.columns = (int[]){ 1 }, .n_columns = 1, .max_sentence = 8)),
              "! line 2: sentence longer than 8 bytes");
}

/* ---- questions ---- */

static const char *questions(const char *text, const ses_squad_options *o)
{
    ses_err e = { 0 };
    ses_squad *q = ses_squad_from_text(text, strlen(text), o, &e);
    ses_question x;
    bool end = false, ok = q != NULL;
    out[0] = 0;
    while (ok && (ok = ses_squad_next(q, &x, &end, &e)) && !end) {
        add(x.id.p), add(": "), add(x.question.p);
        for (size_t k = 0; k < x.n_answers; k++) {
            char at[64];
            const ses_answer *a = &x.answers[k];
            snprintf(at, sizeof at, " [%.20s %d %d]", a->text.p, (int)a->char_start, (int)a->byte_start);
            add(at);
            CHECK(!memcmp(x.context.p + a->byte_start, a->text.p, a->text.n));
        }
        add(x.is_impossible ? " none\n" : "\n");
    }
    if (!ok) add("! "), add(e.msg);
    ses_squad_free(q);
    return out;
}

#define DATA(qas)                                                                                         \
    "{\"version\":\"v2.0\",\"data\":[{\"title\":\"T\",\"paragraphs\":[{\"context\":\"\u00c9 is a cat, a " \
    "cat.\",\"qas\":[" qas "]}]}]}"
#define QA(id, answers) "{\"id\":\"" id "\",\"question\":\"Q?\",\"answers\":[" answers "]}"

static void squad(void)
{
    const char *two = DATA(QA("1", "{\"text\":\"cat\",\"answer_start\":7},{\"text\":\"\u00c9\",\"answer_"
                                   "start\":0}") ","
                                                 "{\"id\":\"2\",\"question\":\"R?\",\"answers\":[],\"is_"
                                                 "impossible\":true}");
    CHECK_STR(questions(two, NULL), "1: Q? [cat 7 8] [\u00c9 0 0]\n2: R? none\n");
    const char *moved = DATA(QA("x", "{\"text\":\"cat\",\"answer_start\":3}"));
    CHECK_STR(questions(moved, NULL),
              "! data[0].paragraphs[0].qas[0]: question x: answer \"cat\" is not at 3; its first "
              "occurrence is at 7");
    CHECK_STR(questions(moved, &(ses_squad_options){ .search_context = true }), "x: Q? [cat 7 8]\n");
    CHECK_STR(questions(moved, &(ses_squad_options){ .skip_bad_answers = true }), "x: Q?\n");
    CHECK_STR(questions(DATA(QA("y", "{\"text\":\"dog\",\"answer_start\":3}")),
                        &(ses_squad_options){ .search_context = true }),
              "! data[0].paragraphs[0].qas[0]: question y: answer \"dog\" does not occur in its context");
    CHECK_STR(questions(DATA(QA("y", "{\"text\":\"cat\",\"answer_start\":-99}")), NULL),
              "! data[0].paragraphs[0].qas[0]: question y: answer \"cat\" is not at -99; its first "
              "occurrence is at 7");
    CHECK_STR(questions(DATA(QA("y", "{\"text\":\"cat\"}")), NULL),
              "! data[0].paragraphs[0].qas[0]: question y: answer 0: \"answer_start\" is not an integer");
    CHECK_STR(questions(DATA("{\"id\":\"z\"}"), NULL), "! data[0].paragraphs[0].qas[0]: no \"question\"");
    CHECK_STR(questions("{}", NULL), "! not SQuAD's JSON: no \"data\"");
    CHECK_STR(questions("{\"data\":[{}]}", NULL), "! data[0]: no \"paragraphs\"");
    CHECK_STR(questions("{\"data\":[{\"paragraphs\":[{\"qas\":3}]}]}", NULL),
              "! data[0].paragraphs[0]: \"qas\" is not an array");
    CHECK_STR(questions("{\"data\":[]}", NULL), "");
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-tables-XXXXXX");
    if (!CHECK(mkdtemp(dir))) return check_report();
    tsv();
    csv();
    found();
    jsonl();
    json_array();
    files();
    conll();
    squad();
    static const char *const made[] = { "x.csv", "x.jsonl", "x.tsv.xz", "big.tsv" };
    for (size_t i = 0; i < SES_LEN(made); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        unlink(path);
    }
    rmdir(dir);
    return check_report();
}
