/* Reader of dependency trees: words, ranges, empty nodes; every violation with its line. */
#include "check.h"
#include "io/conllu.h"

static char out[8192];

static void add(const char *s)
{
    size_t n = strlen(out);
    snprintf(out + n, sizeof out - n, "%s", s);
}

static const char *read_with(const char *text, const ses_conllu_options *o)
{
    ses_err e = { 0 };
    ses_conllu *c = ses_conllu_from_text(text, strlen(text), o, &e);
    ses_conllu_sentence s;
    out[0] = 0;
    bool ok = c != NULL;
    while (ok && (ok = ses_conllu_next(c, &s, &e)) && s.n) {
        char cell[256];
        snprintf(cell, sizeof cell, "%d:", (int)s.line);
        add(cell);
        for (size_t i = 0; i < s.n; i++) {
            const ses_conllu_word *w = &s.word[i];
            snprintf(cell, sizeof cell, " %s/%s/%s/%s/%d/%s", w->form.p, w->upos.p, w->xpos.p, w->feats.p,
                     w->head, w->deprel.p);
            add(cell);
        }
        add("\n");
    }
    if (!ok) add("! "), add(e.msg);
    if (c && ses_conllu_skipped(c)) {
        char cell[64];
        snprintf(cell, sizeof cell, "skipped %d: ", (int)ses_conllu_skipped(c));
        add(cell), add(ses_conllu_first_skipped(c));
    }
    ses_conllu_free(c);
    return out;
}

static const char *read_all(const char *text) { return read_with(text, NULL); }

#define WORD(id, form, head, deprel) id "\t" form "\tl\tU\tx\tA=b\t" head "\t" deprel "\t_\t_\n"

static void sentences(void)
{
    CHECK_STR(read_all("# text = x\n" WORD("1", "ice cream", "2", "nsubj") WORD("2-3", "can't", "_", "_")
                           WORD("2", "can", "0", "root") WORD("3", "not", "2", "advmod:neg")
                               WORD("3.1", "go", "_", "_") "\n \t\n\n" WORD("1", "Yes", "0", "root")),
              "2: ice cream/U/x/A=b/2/nsubj can/U/x/A=b/0/root not/U/x/A=b/2/advmod:neg\n"
              "10: Yes/U/x/A=b/0/root\n");
    CHECK_STR(read_all(WORD("0.1", "e", "_", "_") WORD("1", "a", "0", "root")), "2: a/U/x/A=b/0/root\n");
    CHECK_STR(read_all("\n# only a comment\n\n"), "! no sentences, expected CoNLL-U");
    CHECK_STR(read_all(""), "! no sentences, expected CoNLL-U");
    CHECK_STR(read_all("1\ta\tl\tU\tx\t_\t0\troot\t_\t_\r\n\r\n"), "1: a/U/x/_/0/root\n");
}

static void columns(void)
{
    CHECK_STR(read_all("EU NNP B-ORG\n"), "! line 1: 1 column, expected 10, separated by tabs");
    CHECK_STR(read_all("\n1\ta\n"), "! line 2: 2 columns, expected 10, separated by tabs");
    CHECK_STR(read_all("1\ta\tl\tU\tx\t_\t0\troot\t_\t_\tz\ty\n"),
              "! line 1: more than 10 columns, expected 10, separated by tabs");
    CHECK_STR(read_all("1\ta\tl\tU\tx\t\t0\troot\t_\t_\n"),
              "! line 1: empty FEATS, expected \"_\" or a value");
}

static void numbers(void)
{
    CHECK_STR(read_all(WORD("2", "a", "0", "root")), "! line 1: ID \"2\", expected word 1");
    CHECK_STR(read_all(WORD("one", "a", "0", "root")), "! line 1: ID \"one\", expected word 1");
    CHECK_STR(read_all(WORD("1x", "a", "0", "root")), "! line 1: ID \"1x\", expected word 1");
    CHECK_STR(read_all(WORD("99999999999999999999", "a", "0", "root")),
              "! line 1: ID \"99999999999999999999\", expected word 1");
    CHECK_STR(read_all(WORD("2-3", "a", "_", "_")), "! line 1: ID \"2-3\", expected a range from word 1");
    CHECK_STR(read_all(WORD("1-1", "a", "_", "_")), "! line 1: range 1-1 ends before it begins");
    CHECK_STR(read_all(WORD("1-", "a", "_", "_")), "! line 1: ID \"1-\", expected word 1");
    CHECK_STR(read_all(WORD("1-2", "ab", "_", "_") WORD("1", "a", "0", "root")),
              "! line 1: the range ends at word 2, the sentence at 1");
    CHECK_STR(read_all(WORD("1-2", "ab", "_", "_")), "! line 1: the range ends at word 2, the sentence at 0");
    CHECK_STR(read_all(WORD("1-3", "ab", "_", "_") WORD("1", "a", "0", "root") WORD("2-3", "bc", "_", "_")),
              "! line 3: range 2-3 overlaps the one of line 1");
    CHECK_STR(read_all(WORD("1", "a", "0", "root") WORD("2.1", "e", "_", "_")),
              "! line 2: ID \"2.1\", expected an empty node after word 1");
}

static void trees(void)
{
    CHECK_STR(read_all(WORD("1", "a", "_", "root")),
              "! line 1: HEAD \"_\", expected the number of a word, or 0 for the root");
    CHECK_STR(read_all(WORD("1", "a", "-1", "root")),
              "! line 1: HEAD \"-1\", expected the number of a word, or 0 for the root");
    CHECK_STR(read_all("\n" WORD("1", "a", "0", "root") WORD("2", "b", "3", "x")),
              "! line 3: HEAD 3, expected 0 to 2, the words of the sentence");
    CHECK_STR(read_all(WORD("1", "a", "2", "x") WORD("2", "b", "1", "x")),
              "! line 1: sentence without a root; expected one HEAD 0");
    CHECK_STR(read_all(WORD("1", "a", "0", "root") WORD("2", "b", "0", "root")),
              "! line 2: second root, after word 1; expected one HEAD 0");
    CHECK_STR(read_all(WORD("1", "a", "1", "x") WORD("2", "b", "0", "root")),
              "! line 1: word 1 is its own ancestor: its heads form a cycle, expected a tree");
    CHECK_STR(read_all(WORD("1", "a", "0", "root") WORD("2", "b", "3", "x") WORD("3", "c", "4", "x")
                           WORD("4", "d", "3", "x")),
              "! line 3: word 3 is its own ancestor: its heads form a cycle, expected a tree");
}

static void skipping(void)
{
    static const ses_conllu_options skip = { .skip_invalid = true };
    CHECK_STR(read_with(WORD("1", "a", "5", "x")
                            WORD("9", "b", "0", "root") "\nbad\nworse\n\n" WORD("1", "c", "0", "root"),
                        &skip),
              "7: c/U/x/A=b/0/root\nskipped 2: line 2: ID \"9\", expected word 2");
    CHECK_STR(read_with("bad\n", &skip),
              "! no valid sentences, expected CoNLL-U: line 1: 1 column, expected 10, separated by tabs"
              "skipped 1: line 1: 1 column, expected 10, separated by tabs");
    CHECK_STR(read_with("a\xff\n", &skip),
              "! line 1: byte 2: invalid UTF-8 (to convert: --encoding latin1, or iconv -f LATIN1 -t UTF-8)");
    CHECK_STR(read_with(WORD("1", "a", "0", "root") WORD("2", "b", "1", "x"),
                        &(ses_conllu_options){ .max_sentence = 30 }),
              "! line 2: sentence longer than 30 bytes");
}

static bool is(ses_string s, const char *want)
{
    return want ? s.p && s.n == strlen(want) && !memcmp(s.p, want, s.n) : !s.p;
}

#define STR(s) ((ses_string){ s, strlen(s) })

static void fields(void)
{
    ses_string feats = STR("Case=Nom|Number=Sing|Person[psor]=1");
    CHECK(is(ses_conllu_feature(feats, "Case"), "Nom"));
    CHECK(is(ses_conllu_feature(feats, "Number"), "Sing"));
    CHECK(is(ses_conllu_feature(feats, "Person[psor]"), "1"));
    CHECK(is(ses_conllu_feature(feats, "Person"), NULL));
    CHECK(is(ses_conllu_feature(STR("_"), "Number"), NULL));
    CHECK(is(ses_conllu_feature(STR("Number"), "Number"), NULL));
    CHECK(is(ses_conllu_relation(STR("nsubj:pass")), "nsubj"));
    CHECK(is(ses_conllu_relation(STR("root")), "root"));
    CHECK(is(ses_conllu_relation(STR(":x")), ":x"));
}

/* A file: the path is part of the message. The treebank, if it is here: the number of its sentences. */
static void files(void)
{
    ses_err e = { 0 };
    CHECK(!ses_conllu_open("/none/x.conllu", NULL, &e) && strstr(e.msg, "/none/x.conllu: "));
    ses_err_clear(&e);
    ses_conllu *c = ses_conllu_open("tests/test_conllu.c", NULL, &e);
    ses_conllu_sentence s;
    CHECK(c && !ses_conllu_next(c, &s, &e));
    CHECK_STR(e.msg, "tests/test_conllu.c: line 1: 1 column, expected 10, separated by tabs");
    ses_conllu_free(c);
    char path[512];
    snprintf(path, sizeof path, "%s/data/ud-english-ewt/en_ewt-ud-dev.conllu", check_shared());
    ses_err_clear(&e);
    if (!(c = ses_conllu_open(path, NULL, &e))) {
        SKIP("no treebank");
        return;
    }
    size_t sentences = 0, words = 0;
    for (; ses_conllu_next(c, &s, &e) && s.n; sentences++) words += s.n;
    CHECK_MSG(!e.code && sentences == 2001 && words == 25147, "%s: %zu sentences, %zu words", e.msg,
              sentences, words);
    ses_conllu_free(c);
}

int main(void)
{
    sentences();
    columns();
    numbers();
    trees();
    skipping();
    fields();
    files();
    return check_report();
}
