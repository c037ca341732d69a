/* Tests of the option parser, suggestions and terminal output. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "analysis/analysis.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/option_parser.h"
#include "cli/ui/text_table.h"

#include <math.h>

typedef struct args {
    bool flag, other;
    const char *text;
    int64_t n, size, big;
    double x;
    int choice, must, checked;
    ses_opt_list list;
} args;

static bool not_blue(const char *from, int choice, ses_err *e)
{
    return choice != 2 || ses_fail(e, SES_EUSAGE, "%s: no %s today", from, "blue");
}

static const ses_opt opt[] = {
    { .name = "flag", .letter = 'f', .type = SES_OPT_IS_FLAG, .offset = offsetof(args, flag) },
    { .name = "other", .letter = 'o', .type = SES_OPT_IS_FLAG, .offset = offsetof(args, other) },
    { .name = "text",
      .alias = "string",
      .letter = 't',
      .type = SES_OPT_IS_TEXT,
      .offset = offsetof(args, text),
      .def = "none" },
    { .name = "number",
      .letter = 'n',
      .type = SES_OPT_IS_INT,
      .offset = offsetof(args, n),
      .def = "3",
      .min = -5,
      .max = 9,
      .env = "SESAME_TEST_N" },
    { .name = "big", .type = SES_OPT_IS_INT, .offset = offsetof(args, big) },
    { .name = "size", .type = SES_OPT_IS_SIZE, .offset = offsetof(args, size), .def = "4K" },
    { .name = "real",
      .letter = 'x',
      .type = SES_OPT_IS_REAL,
      .offset = offsetof(args, x),
      .min = 0,
      .max = HUGE_VAL },
    { .name = "choice",
      .type = SES_OPT_IS_CHOICE,
      .offset = offsetof(args, choice),
      .alias = "grass=green",
      .choices = "red|green|blue" },
    { .name = "must",
      .type = SES_OPT_IS_CHOICE,
      .offset = offsetof(args, must),
      .choices = "yes|no",
      .required = true },
    { .name = "checked",
      .type = SES_OPT_IS_CHOICE,
      .offset = offsetof(args, checked),
      .choices = "red|green|blue",
      .check = not_blue },
    { .name = "item", .letter = 'i', .type = SES_OPT_IS_LIST, .offset = offsetof(args, list) },
};

enum { MAX_WORDS = 16 };

typedef struct parsed {
    args a;
    char *word[MAX_WORDS];
    int n;
    ses_err e;
    bool ok;
} parsed;

/* Parses a line split at spaces. The result is static: one at a time. */
static parsed *parse(const char *line, bool first_only)
{
    static parsed p;
    static char copy[512];
    ses_opt_group group = { opt, SES_LEN(opt), &p.a };
    ses_options_free(&group, 1);
    memset(&p, 0, sizeof p);
    snprintf(copy, sizeof copy, "%s", line);
    int n = 0;
    char *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w && n < MAX_WORDS - 1; w = strtok_r(NULL, " ", &save))
        p.word[n++] = w;
    p.ok = ses_options_parse(&group, 1, p.word, first_only, &p.n, &p.e);
    return &p;
}

static void check_error(const char *line, const char *want)
{
    parsed *p = parse(line, false);
    CHECK_MSG(!p->ok, "%s", line);
    CHECK(p->e.code == SES_EUSAGE);
    CHECK_STR(p->e.msg, want);
}

static void test_forms(void)
{
    parsed *p = parse("", false);
    CHECK(p->ok && p->n == 0 && p->a.n == 3 && p->a.choice == -1 && p->a.size == 4096 && !p->a.flag);
    CHECK_STR(p->a.text, "none");
    p = parse("a --number 4 b --text=x=y --flag - -x 2.5 -- --flag -n", false);
    CHECK(p->ok && p->n == 5 && p->a.n == 4 && p->a.flag && p->a.x == 2.5);
    CHECK_STR(p->a.text, "x=y");
    CHECK_STR(p->word[2], "-");
    CHECK_STR(p->word[3], "--flag");
    CHECK(!p->word[5]);
    p = parse("-fon4 -t-", false);
    CHECK(p->ok && p->a.flag && p->a.other && p->a.n == 4);
    CHECK_STR(p->a.text, "-");
    p = parse("--number -2 --text= --number=-3", false);
    CHECK(p->ok && p->a.n == -3);
    CHECK_STR(p->a.text, "");
    p = parse("-i a --item=b --item c", false);
    CHECK(p->ok && p->a.list.n == 3);
    CHECK_STR(p->a.list.item[2], "c");
    p = parse("--flag command --nonsense", true);
    CHECK(p->ok && p->n == 2 && p->a.flag);
    CHECK_STR(p->word[1], "--nonsense");
}

static void test_values(void)
{
    parsed *p = parse("--choice green --size 3M", false);
    CHECK(p->ok && p->a.choice == 1 && p->a.size == 3 << 20);
    p = parse("--size 2GiB", false);
    CHECK(p->ok && p->a.size == (int64_t)2 << 30);
    p = parse("--big -9223372036854775808", false);
    CHECK(p->ok && p->a.big == INT64_MIN);
    p = parse("--real 1e-3", false);
    CHECK(p->ok && p->a.x == 1e-3);
    check_error("--number 10", "--number: 10 is out of range: -5 to 9");
    check_error("--number 4x", "--number: \"4x\" is not a whole number");
    check_error("--number=", "--number: \"\" is not a whole number");
    check_error("--number 0x4", "--number: \"0x4\" is not a whole number");
    check_error("--number 1.5", "--number: \"1.5\" is not a whole number");
    check_error("--big 9223372036854775808", "--big: 9223372036854775808 is out of range");
    check_error("--real -1", "--real: -1 is too small: the minimum is 0");
    check_error("--real nan", "--real: \"nan\" is not a number");
    check_error("--real inf", "--real: \"inf\" is not a number");
    check_error("--real 1e999", "--real: 1e999 is out of range");
    check_error("--size 4Q", "--size: \"4Q\" is not a size, like 4096, 512K, 64M or 2G");
    check_error("--size 99999999T", "--size: 99999999T is out of range");
    check_error("--size -1", "--size: -1 is out of range");
    check_error("--choice greem", "--choice: \"greem\" is not one of red|green|blue; did you mean 'green'?");
    check_error("--checked blue", "--checked: no blue today");
    check_error("--choice zzzzz", "--choice: \"zzzzz\" is not one of red|green|blue");
}

static void test_wrong(void)
{
    check_error("--nmber 3", "unknown option '--nmber'; did you mean '--number'?");
    check_error("--num=3", "unknown option '--num'; did you mean '--number'?");
    check_error("--qqqqqq", "unknown option '--qqqqqq'");
    check_error("-z", "unknown option '-z'");
    check_error("-fz", "unknown option '-z'");
    check_error("--flag=yes", "--flag takes no value");
    check_error("--text", "--text needs a value (TEXT)");
    check_error("--text --flag", "--text needs a value (TEXT)");
    check_error("-n", "-n needs a value (N)");
    char line[200] = "--";
    memset(line + 2, 'a', 150);
    CHECK(!parse(line, false)->ok);
}

/* Other spellings are accepted, and messages name the option itself. */
static void test_aliases(void)
{
    parsed *p = parse("--string a --grass", false);
    CHECK(p->ok && p->a.choice == 1);
    CHECK_STR(p->a.text, "a");
    p = parse("--string=b --grass --choice red", false);
    CHECK(p->ok && p->a.choice == 0);
    check_error("--grass=red", "--grass takes no value");
    check_error("--string", "--text needs a value (TEXT)");
    check_error("--stri x", "unknown option '--stri'");
    ses_buf help = { 0 };
    ses_options_put_command_line(opt, SES_LEN(opt), &p->a, &help);
    CHECK(!help.data || (!strstr(help.data, "string") && !strstr(help.data, "grass")));
    ses_buf_free(&help);
}

/* Requests to a server cannot set options that name files; an alias is not the name of another option. */
static void test_analyses(void)
{
    static const char *const paths[] = { "FILE", "DIR", "CORPUS", "MODEL" };
    for (const ses_analysis_entry *x = ses_analysis_entries(); x->name; x++) {
        const ses_opt *a, *b;
        for (ses_opt_iter at = ses_opt_begin(x->analysis->opt, x->analysis->n_opt);
             (a = ses_opt_next(&at));) {
            bool path = false;
            for (size_t i = 0; i < SES_LEN(paths); i++) path |= a->value && !strcmp(a->value, paths[i]);
            CHECK_MSG(path == (a->is_path || a->is_model), "%s --%s: is_path", x->name, a->name);
            const char *value;
            ses_opt_iter other = ses_opt_begin(x->analysis->opt, x->analysis->n_opt);
            while ((b = ses_opt_next(&other)))
                CHECK_MSG(!strcmp(a->name, b->name) ||
                              ses_opt_match(b, a->name, strlen(a->name), &value) == SES_OPT_NO_MATCH,
                          "%s: --%s is also an alias of --%s", x->name, a->name, b->name);
        }
    }
}

static void test_environment(void)
{
    setenv("SESAME_TEST_N", "7", 1);
    CHECK(parse("", false)->a.n == 7);
    CHECK(parse("--number 1", false)->a.n == 1);
    setenv("SESAME_TEST_N", "seven", 1);
    check_error("", "SESAME_TEST_N: \"seven\" is not a whole number");
    setenv("SESAME_TEST_N", "", 1);
    CHECK(parse("", false)->a.n == 3);
    unsetenv("SESAME_TEST_N");
}

static void test_required(void)
{
    parsed *p = parse("", false);
    ses_opt_group group = { opt, SES_LEN(opt), &p->a };
    CHECK(!ses_options_check_required(&group, 1, &p->e));
    CHECK_STR(p->e.msg, "--must yes|no is required");
    p = parse("--must no", false);
    CHECK(ses_options_check_required(&group, 1, &p->e));
}

static void check_suggest(const char *word, const char *candidates, const char *want)
{
    ses_suggestion s = { .word = word };
    const char *c;
    size_t len;
    for (size_t i = 0; ses_list_at(candidates, i, &c, &len); i++) ses_suggest_offer(&s, c, len);
    char best[64] = "";
    if (s.best) snprintf(best, sizeof best, "%.*s", (int)s.best_len, s.best);
    CHECK_STR(best, want);
}

static void test_suggest(void)
{
    check_suggest("docotr", "info|doctor|bench", "doctor"); /* a swap is one edit */
    check_suggest("inof", "info|doctor|bench", "info");
    check_suggest("selftset", "self|selftest", "selftest");
    check_suggest("ben", "info|bench", "bench"); /* a prefix */
    check_suggest("xyz", "info|doctor|bench", "");
    check_suggest("", "info|doctor|bench", "");
    check_suggest("i", "info", "");
}

/* Captures the output of a function in a temporary file. */
static const char *slurp(FILE *f)
{
    static char buf[4096];
    rewind(f);
    buf[fread(buf, 1, sizeof buf - 1, f)] = 0;
    fclose(f);
    return buf;
}

static void test_text(void)
{
    ses_term plain = { .width = 80 }, utf8 = { .unicode = true, .width = 80 }, color = { .color = true };
    char bar[SES_BAR_SIZE], human[SES_NUMBER_TEXT];
    CHECK_STR(ses_bar_text(&plain, bar, 0.5, 10), "#####");
    CHECK_STR(ses_bar_text(&plain, bar, 0, 10), "");
    CHECK_STR(ses_bar_text(&plain, bar, 1e-9, 10), "#");
    CHECK_STR(ses_bar_text(&plain, bar, 7, 4), "####");
    CHECK_STR(ses_bar_text(&plain, bar, NAN, 4), "");
    CHECK_STR(ses_bar_text(&utf8, bar, 0.3125, 4), "█▎");
    CHECK(ses_text_width(ses_bar_text(&utf8, bar, 1, 1000)) == SES_BAR_MAX);
    CHECK_STR(ses_bytes_text(human, 1023), "1023 B");
    CHECK_STR(ses_bytes_text(human, 1024), "1.0 KiB");
    CHECK_STR(ses_bytes_text(human, ((uint64_t)1 << 30) - 1), "1.0 GiB");
    CHECK_STR(ses_bytes_text(human, UINT64_MAX), "16384.0 PiB");
    CHECK_STR(ses_count_text(human, 109482240), "109.5 M");
    CHECK_STR(ses_count_text(human, 999), "999");
    CHECK_STR(ses_style_on(&plain, SES_RED), "");
    CHECK_STR(ses_style_on(&color, SES_RED), "\033[31m");
    FILE *f = tmpfile();
    ses_put_escaped(f, "a\033[31mb\n\x7F\xC2\x9B é");
    CHECK_STR(slurp(f), "a\\x1B[31mb\\x0A\\x7F\\x9B é");
    f = tmpfile();
    ses_put_wrapped(f, "one two three\n\nfour averyverylongword five", 2, 2, 10);
    CHECK_STR(slurp(f), "one two\n  three\n\n  four\n  averyverylongword\n  five\n");
}

static void test_table(void)
{
    ses_term plain = { .width = 80 };
    ses_err e = { 0 };
    ses_text_table *t = ses_text_table_new("Name|>count|", &e);
    for (int i = 0; i < 3; i++) {
        ses_text_table_cell(t, "%s", i == 1 ? "naïve\n" : "x");
        ses_text_table_cell(t, "%d", i == 2 ? 12345678 : i);
        ses_text_table_cell(t, "%s", i == 1 ? "" : "end");
    }
    FILE *f = tmpfile();
    CHECK(ses_text_table_print(t, f, &plain, 1, &e));
    CHECK_STR(slurp(f), " Name          count\n"
                        " x                 0  end\n"
                        " naïve\\x0A         1\n"
                        " x          12345678  end\n");
    ses_text_table_free(t);
    ses_text_table_free(NULL);
    t = ses_text_table_new("|", &e);
    ses_text_table_cell(t, "a");
    ses_text_table_cell(t, "b");
    f = tmpfile();
    CHECK(ses_text_table_print(t, f, &plain, 0, &e));
    CHECK_STR(slurp(f), "a  b\n");
    ses_text_table_free(t);
}

/* Options written as a command line and as JSON. */
static void test_written(void)
{
    ses_buf line = { 0 };
    parsed *p = parse("-f -t it's -n -2 --size 5K --real 0.1 --choice blue -i a,b -i $x", false);
    CHECK_MSG(p->ok, "%s", p->e.msg);
    ses_options_put_command_line(opt, SES_LEN(opt), &p->a, &line);
    CHECK_STR(line.data,
              " --flag --text 'it'\\''s' --number -2 --size 5120 --real 0.1 --choice blue --item a,b"
              " --item '$x'");
    ses_buf_free(&line);
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    ses_options_put_json(opt, SES_LEN(opt), &p->a, w);
    CHECK_STR(ses_json_writer_text(w, NULL, NULL),
              "{\"flag\": true, \"other\": false, \"text\": \"it's\", \"number\": -2, \"big\": 0, "
              "\"size\": 5120, \"real\": 0.1, \"choice\": \"blue\", \"must\": null, \"checked\": null, "
              "\"item\": [\"a,b\", \"$x\"]}");
    ses_json_writer_free(w);
    p = parse("--size 4K --number 3", false); /* defaults are omitted */
    ses_options_put_command_line(opt, SES_LEN(opt), &p->a, &line);
    CHECK(line.len == 0);
    ses_buf_free(&line);
    ses_opt call = opt[0]; /* an option of one call: neither written nor restored */
    call.of_call = true;
    p = parse("--flag", false);
    ses_options_put_command_line(&call, 1, &p->a, &line);
    CHECK(line.len == 0);
    ses_buf_free(&line);
    w = ses_json_writer_new(0, NULL);
    ses_options_put_json(&call, 1, &p->a, w);
    CHECK_STR(ses_json_writer_text(w, NULL, NULL), "{}");
    ses_json_writer_free(w);
    args again = { 0 };
    char *none[] = { NULL };
    int n_operands = 0;
    ses_json_doc *stored = ses_json_parse("{\"flag\": true}", 14, NULL);
    ses_opt_group group = { &call, 1, &again };
    CHECK(ses_options_parse_stored(&group, 1, ses_json_root(stored), none, &n_operands, &p->e) &&
          !again.flag);
    group.opt = opt;
    CHECK(ses_options_parse_stored(&group, 1, ses_json_root(stored), none, &n_operands, &p->e) && again.flag);
    ses_json_free(stored);
}

/* Names and letters of options are unique in a command, so that run.json has each key once. */
static void test_commands(void)
{
    for (const ses_command *const *c = ses_commands(); *c; c++) {
        const ses_opt *a, *b;
        size_t i = 0, k;
        for (ses_opt_iter at = ses_command_options(*c); (a = ses_opt_next(&at)); i++) {
            ses_opt_iter before = ses_command_options(*c);
            for (k = 0; k < i && (b = ses_opt_next(&before)); k++) {
                CHECK_MSG(strcmp(a->name, b->name) != 0, "%s: --%s twice", (*c)->name, a->name);
                CHECK_MSG(!a->letter || a->letter != b->letter, "%s: -%c twice", (*c)->name, a->letter);
            }
        }
    }
}

int main(void)
{
    test_commands();
    test_written();
    test_forms();
    test_values();
    test_wrong();
    test_aliases();
    test_analyses();
    test_environment();
    test_required();
    test_suggest();
    test_text();
    test_table();
    ses_opt_group group = { opt, SES_LEN(opt), &parse("", false)->a };
    ses_options_free(&group, 1);
    return check_report();
}
