/* Tasks made from trees: every label of small sentences, changed sentences, words of the lists. */
#define _POSIX_C_SOURCE 200809L
#include "analysis/treebank/surface_tasks.h"
#include "check.h"

#include <unistd.h>

static const char trees_text[] =
    "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
    "2\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t3\tnsubj:outer\t_\t_\n"
    "3\tchased\tchase\tVERB\tVBD\tMood=Ind|Tense=Past|VerbForm=Fin\t0\troot\t_\t_\n"
    "4\ta\ta\tDET\tDT\t_\t5\tdet\t_\t_\n"
    "5\tcat\tcat\tNOUN\tNN\tNumber=Sing\t3\tobj\t_\t_\n"
    "6\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_\n\n"
    "1\tShe\tshe\tPRON\tPRP\tNumber=Sing\t3\tnsubj\t_\t_\n"
    "2\tis\tbe\tAUX\tVBZ\tTense=Pres|VerbForm=Fin\t3\taux\t_\t_\n"
    "3\tsinging\tsing\tVERB\tVBG\tTense=Pres|VerbForm=Part\t0\troot\t_\t_\n\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n";

typedef struct fixture {
    ses_treebank trees;
    ses_surface_lists lists;
} fixture;

static bool open_fixture(fixture *f, ses_err *e)
{
    char path[] = "/tmp/sesame-surface-XXXXXX";
    int fd = mkstemp(path);
    *f = (fixture){ 0 };
    bool ok = fd >= 0 && write(fd, trees_text, sizeof trees_text - 1) == (ssize_t)sizeof trees_text - 1;
    if (fd >= 0) close(fd);
    ok = ok && ses_treebank_read(&f->trees, path, false, e) && ses_surface_lists_new(&f->lists, &f->trees, e);
    unlink(path);
    return ok;
}

static char out[1024];

/* The labels of a task, by sentence: "0=5-8 1=1-4 2=1-4". */
static const char *labels(const fixture *f, const char *task)
{
    ses_err e = { 0 };
    ses_surface_set s = { 0 };
    size_t at = 0;
    out[0] = 0;
    CHECK_MSG(ses_surface_make(&s, ses_surface_task_find(task), &f->trees, &f->lists, 1, &e), "%s", e.msg);
    for (size_t i = 0; i < s.n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%zu=%s", i ? " " : "", s.sentence[i],
                               s.label[i].p);
    ses_surface_set_free(&s);
    return out;
}

static void grammar(const fixture *f)
{
    CHECK_STR(labels(f, "length"), "0=5-8 1=1-4 2=1-4");
    CHECK_STR(labels(f, "depth"), "0=2 1=1 2=0");
    CHECK_STR(labels(f, "subject-number"), "0=Plur 1=Sing");
    CHECK_STR(labels(f, "object-number"), "0=Sing");
    CHECK_STR(labels(f, "tense"), "0=Past 1=Pres");
    CHECK_STR(labels(f, "word-content"), "1=singing"); /* the first sentence has several of the words */
    CHECK(ses_surface_task_find("bigrams") == SES_SURFACE_TASKS);
}

static size_t differences(const ses_input *a, const ses_input *b)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_words; i++) n += strcmp(a->words[i].p, b->words[i].p) != 0;
    return n;
}

/* The label tells changed sentences from original ones, for every seed; both occur. */
static void changes(const fixture *f, const char *task, const char *changed, size_t words)
{
    ses_err e = { 0 };
    int seen[2] = { 0 };
    for (uint64_t seed = 0; seed < 40; seed++) {
        ses_surface_set s = { 0 }, again = { 0 };
        CHECK(ses_surface_make(&s, ses_surface_task_find(task), &f->trees, &f->lists, seed, &e));
        CHECK(ses_surface_make(&again, ses_surface_task_find(task), &f->trees, &f->lists, seed, &e));
        for (size_t i = 0; i < s.n; i++) {
            bool is_changed = !strcmp(s.label[i].p, changed);
            size_t n = differences(&s.input[i], &f->trees.input[s.sentence[i]]);
            seen[is_changed]++;
            CHECK_MSG(n == (is_changed ? words : 0), "%s, seed %d: %zu words differ", task, (int)seed, n);
            CHECK(!differences(&s.input[i], &again.input[i]));
            CHECK(s.input[i].n_words < 6 || !strcmp(s.input[i].words[5].p, "."));
        }
        ses_surface_set_free(&s);
        ses_surface_set_free(&again);
    }
    CHECK(seen[0] > 10 && seen[1] > 10);
}

/* A single noun has no other word of its XPOS to replace it. */
static void replacements(const fixture *f)
{
    CHECK_STR(labels(f, "odd-word"), "");
    fixture two = *f;
    ses_surface_word word[] = { { { "cats", 4 }, { "NNS", 3 }, { "NOUN", 4 }, 2 },
                                { { "dogs", 4 }, { "NNS", 3 }, { "NOUN", 4 }, 1 },
                                { { "ran", 3 }, { "VBD", 3 }, { "VERB", 4 }, 1 },
                                { { "crow", 4 }, { "VBG", 3 }, { "VERB", 4 }, 1 } };
    two.lists.word = word;
    two.lists.n = 4;
    ses_err e = { 0 };
    size_t replaced = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        ses_surface_set s = { 0 };
        CHECK(ses_surface_make(&s, SES_SURFACE_odd_word, &two.trees, &two.lists, seed, &e));
        for (size_t i = 0; i < s.n; i++) {
            if (s.sentence[i] || strcmp(s.label[i].p, "replaced") != 0) continue;
            replaced++;
            CHECK(!strcmp(s.input[i].words[1].p, "cats") || !strcmp(s.input[i].words[2].p, "ran"));
        }
        ses_surface_set_free(&s);
    }
    CHECK(replaced > 5);
}

int main(void)
{
    ses_err e = { 0 };
    fixture f;
    if (CHECK_MSG(open_fixture(&f, &e), "%s", e.msg)) {
        grammar(&f);
        changes(&f, "bigram-shift", "swapped", 2);
        replacements(&f);
    }
    ses_surface_lists_free(&f.lists);
    ses_treebank_free(&f.trees);
    return check_report();
}
