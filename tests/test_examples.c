/* Examples from every file format, errors, and the benchmarks on real files if present. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "sesame/examples.h"
#include "sesame/metric.h"

#include <unistd.h>

static char dir[64], path[512];
static int made;
static const char *file(const char *end, const char *text)
{
    snprintf(path, sizeof path, "%s/%d%s", dir, made++, end);
    FILE *f = fopen(path, "wb");
    CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
    return path;
}

static ses_err err;
static ses_examples *open_text(const char *end, const char *text, const ses_data_spec *s,
                               const ses_examples *like)
{
    err = (ses_err){ 0 };
    ses_examples *d = ses_examples_open(file(end, text), s, like, &err);
    CHECK(d ? !err.code : err.code != 0);
    unlink(path);
    return d;
}

static void refused(const char *end, const char *text, const ses_data_spec *s, const ses_examples *like,
                    const char *want)
{
    ses_examples *d = open_text(end, text, s, like);
    CHECK_MSG(!d && strstr(err.msg, want), "\"%s\" lacks \"%s\"", err.msg, want);
    ses_examples_free(d);
}

#define SPEC(...) (&(const ses_data_spec){ __VA_ARGS__ })

static void classification(void)
{
    const ses_data_spec *s = SPEC(.kind = SES_DATA_CLASSIFY, .text_a = "text", .label = "label");
    ses_examples *d = open_text(".tsv", "text\tlabel\nx\tpos\ny\tneg\nz\tpos\n", s, NULL);
    if (!CHECK(d)) return;
    CHECK(ses_examples_count(d) == 3 && ses_examples_label_count(d) == 2 &&
          ses_examples_check_learnable(d, NULL));
    CHECK_STR(ses_examples_label_name(d, 0), "neg"); /* sorted, independent of the file's order */
    CHECK(ses_examples_at(d, 0)->label == 1 && ses_examples_at(d, 1)->label == 0 &&
          ses_examples_at(d, 2)->label == 1);
    CHECK(ses_examples_at(d, 1)->line == 3 && !ses_examples_at(d, 3));
    CHECK_STR(ses_examples_at(d, 2)->text_a.p, "z");
    ses_examples *dev = open_text(".tsv", "label\ttext\npos\tq\n", s, d);
    CHECK(dev && ses_examples_at(dev, 0)->label == 1 && ses_examples_label_count(dev) == 2);
    CHECK(dev && !ses_examples_check_learnable(dev, &err));
    CHECK_STR(err.msg, "all 1 examples have the label \"pos\": nothing to learn");
    ses_examples_free(dev);
    refused(".tsv", "text\tlabel\nx\tother\n", s, d,
            "line 2: unknown label \"other\"; expected one of: neg, pos");
    refused(".tsv", "text\tlabel\nx\t\n", s, d, "line 2: empty label");
    refused(".tsv", "text\tlabel\n", s, d, ": no examples");
    refused(".tsv", "text\tclass\nx\ty\n", s, d, "no column \"label\"; available: text, class");
    refused(".tsv", "text\tlabel\nx\n", s, d, "line 2: 1 field, the header has 2");
    ses_examples_free(d);

    d = open_text(".csv", "10,a\n9,b\n-1,c\n", SPEC(.text_a = "2", .label = "1", .no_header = true), NULL);
    CHECK(d && ses_examples_at(d, 0)->label == 2 && ses_examples_at(d, 2)->label == 0); /* -1, 9, 10 */
    ses_examples_free(d);
    d = open_text(".jsonl", "{\"t\":\"a\",\"in\":{\"l\":true}}\n",
                  SPEC(.text_a = "t", .label = "in.l", .label_values = "false|true", .label_names = "no|yes"),
                  NULL);
    CHECK(d && ses_examples_at(d, 0)->label == 1);
    CHECK_STR(d ? ses_examples_label_name(d, 1) : "", "yes");
    CHECK_STR(d ? ses_examples_label_value(d, 1) : "", "true");
    ses_examples_free(d);
    d = open_text(".tsv", "text\nx\n", SPEC(.text_a = "text", .label = "label", .no_labels = true), NULL);
    CHECK(d && ses_examples_at(d, 0)->label == SES_IGNORE_INDEX);
    ses_examples_free(d);
    refused(".tsv", "text\nx\n", SPEC(.label = "label"), NULL, "no text column specified");
    refused(".tsv", "text\nx\n", SPEC(.text_a = "text"), NULL, "no label column specified");
}

static void others(void)
{
    ses_examples *d = open_text(".tsv", "t\tl\nx\ta, b\ny\t\nz\tb\n",
                                SPEC(.kind = SES_DATA_MULTI, .text_a = "t", .label = "l"), NULL);
    CHECK(d && ses_examples_label_count(d) == 2 && ses_examples_at(d, 0)->n_labels == 2 &&
          ses_examples_at(d, 1)->n_labels == 0);
    CHECK(d && ses_examples_at(d, 2)->labels[0] == 1 && ses_examples_check_learnable(d, NULL));
    ses_examples_free(d);
    const ses_data_spec *r = SPEC(.kind = SES_DATA_REGRESS, .text_a = "t", .text_b = "u", .label = "l");
    d = open_text(".tsv", "t\tu\tl\nx\ty\t2.50\nx\tz\t -1e1 \n", r, NULL);
    CHECK(d && ses_examples_at(d, 0)->target == 2.5 && ses_examples_at(d, 1)->target == -10);
    CHECK_STR(d ? ses_examples_at(d, 1)->text_b.p : "", "z");
    ses_examples_free(d);
    static const char *const bad[] = { "nan", "inf", "1e999", "", "1.", ".5", "1e", "0x1", "1,5", "--1" };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        char text[64];
        snprintf(text, sizeof text, "t\tu\tl\nx\ty\t%s\n", bad[i]);
        refused(".tsv", text, r, NULL, "is not a finite number");
    }
    d = open_text(".tsv", "t\tu\tl\nx\ty\t1\nx\tz\t1.0\n", r, NULL);
    CHECK(d && !ses_examples_check_learnable(d, &err) && strstr(err.msg, "have the number 1"));
    refused(".tsv", "t\tl\nx\ta\n", SPEC(.text_a = "t", .label = "l"), d,
            "classification, expected regression");
    ses_examples_free(d);

    const ses_data_spec *c =
        SPEC(.kind = SES_DATA_CHOICE, .text_a = "q", .choices = "a|b", .label = "l", .label_values = "A|B|C");
    d = open_text(".tsv", "q\ta\tb\tl\nwhy\tx\ty\tB\n", c, NULL);
    CHECK(d && ses_examples_at(d, 0)->label == 1 && ses_examples_at(d, 0)->n_parts == 2);
    CHECK_STR(d ? ses_examples_at(d, 0)->parts[1].p : "", "y");
    ses_examples_free(d);
    refused(".tsv", "q\ta\tb\tl\nwhy\tx\ty\tC\n", c, NULL, "line 2: the label is not the index of a choice");
    refused(".tsv", "q\ta\n", SPEC(.kind = SES_DATA_CHOICE, .text_a = "q", .choices = "a", .label = "l"),
            NULL, "two choice columns");

    const ses_data_spec *t = SPEC(.kind = SES_DATA_TAG, .format = SES_DATA_CONLL);
    d = open_text(".txt", "EU B-ORG\nsaid O\n\nPeter B-PER\n", t, NULL);
    CHECK(d && ses_examples_count(d) == 2 && ses_examples_label_count(d) == 3 &&
          ses_examples_at(d, 0)->n_parts == 2);
    CHECK(d && ses_examples_at(d, 0)->labels[1] == 2 && ses_examples_at(d, 1)->labels[0] == 1);
    refused(".txt", "x O\ny B-LOC\n", t, d,
            "the sentence at line 1: token 2: unknown label \"B-LOC\"; expected one of: B-ORG");
    refused(".txt", "x O\ny\n", t, d, "line 2: 1 column, the first token has 2");
    ses_examples_free(d);

    const ses_data_spec *q = SPEC(.kind = SES_DATA_SPAN, .format = SES_DATA_SQUAD);
    d = open_text(
        ".json",
        "{\"data\":[{\"paragraphs\":[{\"context\":\"a cat\",\"qas\":[{\"id\":\"1\",\"question\":\"Q\","
        "\"answers\":[{\"text\":\"cat\",\"answer_start\":2}]},{\"id\":\"2\",\"question\":\"R\","
        "\"answers\":[],\"is_impossible\":true}]}]}]}",
        q, NULL);
    CHECK(d && ses_examples_count(d) == 2 && ses_examples_at(d, 0)->answers[0].char_start == 2 &&
          ses_examples_at(d, 1)->is_impossible);
    CHECK(d && ses_examples_at(d, 0)->text_b.p == ses_examples_at(d, 1)->text_b.p); /* stored once */
    ses_examples_free(d);
    refused(".json", "{\"data\":[]}", q, NULL, "no examples");
    refused(".json", "{\"data\":[]}", SPEC(.format = SES_DATA_SQUAD), NULL,
            "cannot be read from SQuAD's JSON");
    refused(".tsv", "x\n", SPEC(.kind = SES_DATA_TAG), NULL, "cannot be read from a table");
}

static const ses_data_spec *spec_of(const char *name) { return &ses_benchmark_find(name)->spec; }

static void winogender(void)
{
    static const char head[] = "sentid\tsentence\n";
    const ses_data_spec *w = spec_of("winogender");
    char text[256];
    snprintf(text, sizeof text,
             "%snurse.patient.1.male.txt\tA.\nnurse.someone.0.male.txt\tB.\n"
             "nurse.patient.1.female.txt\tC.\n",
             head);
    ses_examples *d = open_text(".tsv", text, w, NULL);
    if (CHECK(d && ses_examples_count(d) == 3)) {
        const ses_labeled_example *x = ses_examples_at(d, 0), *y = ses_examples_at(d, 1),
                                  *z = ses_examples_at(d, 2);
        CHECK_STR(x->text_a.p, "A.");
        CHECK_STR(x->id.p, "nurse.patient.1.male.txt");
        CHECK_STR(x->parts[0].p, "the nurse");
        CHECK_STR(x->parts[1].p, "the patient");
        CHECK_STR(y->parts[1].p, "someone");
        CHECK(x->n_parts == 2 && x->label == 1 && y->label == 0);
        CHECK(x->group == 1 && y->group == 2 && z->group == 1);
    }
    ses_examples_free(d);
    refused(".tsv", "sentid\tsentence\nnurse.patient.1\tA.\n", w, NULL,
            "line 2: sentid \"nurse.patient.1\", expected OCCUPATION.PARTICIPANT.ANSWER.GENDER.txt");
    refused(".tsv", "sentid\tsentence\na.b.1.male.pdf\tA.\n", w, NULL, "does not end in .txt");
    refused(".tsv", "sentid\tsentence\na.b.2.male.txt\tA.\n", w, NULL, "line 2: unknown label \"2\"");
    refused(".tsv", "id\tsentence\na\tA.\n", w, NULL, "sentid");
    d = open_text(".jsonl",
                  "{\"premise\":\"a\",\"hypothesis\":\"b\",\"label\":\"entailment\",\"pair_id\":551}\n"
                  "{\"premise\":\"c\",\"hypothesis\":\"b\",\"label\":\"entailment\",\"pair_id\":7}\n"
                  "{\"premise\":\"d\",\"hypothesis\":\"b\",\"label\":\"entailment\",\"pair_id\":551}\n",
                  spec_of("axg"), NULL);
    CHECK(d && ses_examples_at(d, 0)->group == 1 && ses_examples_at(d, 1)->group == 2 &&
          ses_examples_at(d, 2)->group == 1);
    ses_examples_free(d);
}

static void nested(void)
{
    ses_examples *d = open_text(
        ".jsonl",
        "{\"idx\":0,\"passage\":{\"text\":\"P\",\"questions\":[{\"idx\":7,\"question\":\"Q?\",\"answers\":["
        "{\"text\":\"x\",\"label\":0},{\"text\":\"y\",\"label\":1}]}]}}\n",
        spec_of("multirc"), NULL);
    CHECK(d && ses_examples_count(d) == 2 && ses_examples_at(d, 1)->label == 1);
    CHECK_STR(d ? ses_examples_at(d, 1)->text_b.p : "", "Q? y");
    CHECK_STR(d ? ses_examples_at(d, 1)->id.p : "", "7");
    CHECK(d && ses_examples_at(d, 0)->group == 1 && ses_examples_at(d, 1)->group == 1);
    ses_examples_free(d);
    d = open_text(
        ".jsonl",
        "{\"passage\":{\"text\":\"P\",\"questions\":[{\"question\":\"Q?\",\"answers\":[{\"text\":\"x\","
        "\"label\":0}]},{\"question\":\"R?\",\"answers\":[{\"text\":\"x\",\"label\":0}]}]}}\n",
        spec_of("multirc"), NULL);
    CHECK(d && ses_examples_at(d, 1)->group == 2);
    ses_examples_free(d);
    refused(".jsonl",
            "{\"passage\":{\"text\":\"P\",\"questions\":[{\"question\":\"Q\",\"answers\":[{\"text\":\"x\","
            "\"label\":2}]}]}}\n",
            spec_of("multirc"), NULL, "line 1: question 0, answer 0: unknown label \"other\"");
    d = open_text(".jsonl",
                  "{\"passage\":{\"text\":\"\u00c9t\u00e9 in "
                  "Paris\"},\"qas\":[{\"query\":\"@placeholder\",\"answers\":["
                  "{\"text\":\"Paris\",\"start\":7,\"end\":11}]}]}\n",
                  spec_of("record"), NULL);
    CHECK(d && ses_examples_at(d, 0)->answers[0].char_start == 7 &&
          ses_examples_at(d, 0)->answers[0].byte_start == 9);
    ses_examples_free(d);
    refused(".jsonl",
            "{\"passage\":{\"text\":\"P\"},\"qas\":[{\"query\":\"q\",\"answers\":[{\"text\":\"z\"}]}]}\n",
            spec_of("record"), NULL, "line 1: question 0: answer \"z\" does not occur in its passage");
    d = open_text(".jsonl",
                  "{\"word\":\"bed\",\"sentence1\":\"A bed.\",\"sentence2\":\"B bed.\",\"label\":true}\n",
                  spec_of("wic"), NULL);
    CHECK_STR(d ? ses_examples_at(d, 0)->text_a.p : "", "bed: A bed.");
    ses_examples_free(d);
    d = open_text(
        ".jsonl",
        "{\"text\":\"He ran.\",\"target\":{\"span1_text\":\"Mark\",\"span2_text\":\"He\"},\"label\":false}\n",
        spec_of("wsc"), NULL);
    CHECK_STR(d ? ses_examples_at(d, 0)->text_a.p : "", "He: He ran.");
    CHECK_STR(d ? ses_examples_at(d, 0)->text_b.p : "", "Mark");
    ses_examples_free(d);
    d = open_text(".csv", ",sent1,sent2,ending0,ending1,ending2,ending3,label\n0,\"A, b.\",She,a,b,c,d,3\n",
                  spec_of("swag"), NULL);
    CHECK(d && ses_examples_at(d, 0)->label == 3 && ses_examples_at(d, 0)->n_parts == 4);
    ses_examples_free(d);
}

/* Every benchmark is complete: its metrics and its best metric exist. */
static void table(void)
{
    CHECK(!ses_benchmark_require("sst3", &err) &&
          strstr(err.msg, "unknown benchmark \"sst3\"; choose one of cola, sst2"));
    size_t n = 0;
    for (const ses_benchmark *b; (b = ses_benchmark_at(n)); n++) {
        CHECK(ses_benchmark_find(b->name) == b && b->title && (b->train || b->dev || b->test));
        CHECK_MSG(b->spec.metrics && b->spec.best_metric, "%s", b->name);
        for (const char *m = b->spec.metrics; m; m = strchr(m, '|') ? strchr(m, '|') + 1 : NULL) {
            bool found = false;
            const char *name;
            for (size_t i = 0; (name = ses_metric_at(i, NULL, NULL)); i++)
                found = found || (strlen(name) == strcspn(m, "|") && !strncmp(name, m, strlen(name)));
            CHECK_MSG(found, "%s: %s", b->name, m);
        }
    }
    CHECK(n > 35);
}

/* ---- real files ---- */

static const struct real {
    const char *benchmark, *file;
    size_t n,
        first; /* examples; examples of label 0 (spans: impossible questions; tags: tokens of label 0) */
} real[] = {
    { "cola", "glue/CoLA/train.tsv", 8551, 2528 },
    { "cola", "glue/CoLA/dev.tsv", 1043, 322 },
    { "sst2", "glue/SST-2/train.tsv", 67349, 29780 },
    { "sst2", "glue/SST-2/dev.tsv", 872, 428 },
    { "mrpc", "glue/MRPC/train.tsv", 3668, 1194 },
    { "mrpc", "glue/MRPC/dev.tsv", 408, 129 },
    { "stsb", "glue/STS-B/train.tsv", 5749, 0 },
    { "stsb", "glue/STS-B/dev.tsv", 1500, 0 },
    { "stsb-test", "glue/STS-B/test-labelled.csv", 1379, 0 },
    { "rte", "glue/RTE/train.tsv", 2490, 1249 },
    { "rte", "glue/RTE/dev.tsv", 277, 146 },
    { "wnli", "glue/WNLI/train.tsv", 635, 323 },
    { "wnli", "glue/WNLI/dev.tsv", 71, 40 },
    { "qnli", "glue/QNLI/dev.tsv", 5463, 2702 },
    { "conll2003", "conll2003/train.txt", 14041, 169578 },
    { "conll2003", "conll2003/valid.txt", 3250, 42759 },
    { "conll2003", "conll2003/test.txt", 3453, 38323 },
    { "conll2000", "conll2000/test.txt", 2012, 0 },
    { "ud-pos", "ud-english-ewt/en_ewt-ud-dev.conllu", 2001, 0 },
    { "squad", "squad/train-v1.1-subset.json", 4000, 0 },
    { "squad2", "squad/dev-v2.0-cs224n-half.json", 6078, 3168 },
    { "xquad", "squad/xquad.en.json", 1190, 0 },
    { "copa", "copa/dev.tsv", 500, 250 },
    { "copa", "copa/test.tsv", 500, 250 },

    { "sst2-sentences", "sst2-clairett/train.tsv", 6920, 3310 },
    { "sst2-sentences", "sst2-clairett/dev.tsv", 872, 428 },
    { "trec", "text-classification/trec/train.tsv", 5452, 86 },
    { "trec", "text-classification/trec/test.tsv", 500, 9 },
    { "mr", "text-classification/mr/train.tsv", 9596, 4774 },
    { "subj", "text-classification/subj/train.tsv", 9000, 0 },
    { "sick", "sentence-pairs/sick/train.txt", 4439, 0 },
    { "scitail", "sentence-pairs/scitail/test.txt", 2126, 842 },
};

/* A real file with a tab in a text. */
static void on_ragged_file(void)
{
    snprintf(path, sizeof path, "%s/data/commonsenseqa/dev.tsv", check_shared());
    if (access(path, R_OK) != 0) {
        SKIP(path);
        return;
    }
    err = (ses_err){ 0 };
    ses_examples *d = ses_examples_open(path, spec_of("commonsenseqa"), NULL, &err);
    CHECK_MSG(!d && strstr(err.msg, "dev.tsv: line 1123: 9 fields, the header has 8"), "%s", err.msg);
    ses_examples_free(d);
}

static void on_real_files(void)
{
    for (size_t i = 0; i < SES_LEN(real); i++) {
        const struct real *r = &real[i];
        snprintf(path, sizeof path, "%s/data/%s", check_shared(), r->file);
        if (access(path, R_OK) != 0) {
            SKIP(path);
            continue;
        }
        err = (ses_err){ 0 };
        ses_examples *d = ses_examples_open(path, spec_of(r->benchmark), NULL, &err);
        if (!CHECK_MSG(d, "%s", err.msg)) continue;
        size_t first = 0;
        for (size_t k = 0; k < ses_examples_count(d); k++) {
            const ses_labeled_example *x = ses_examples_at(d, k);
            first += ses_examples_kind(d) == SES_DATA_SPAN ? x->is_impossible : x->label == 0;
            for (size_t t = 0; t < x->n_labels; t++) first += x->labels[t] == 0;
        }
        CHECK_MSG(ses_examples_count(d) == r->n, "%s: %zu examples", r->file, ses_examples_count(d));
        CHECK_MSG(!r->first || first == r->first, "%s: %zu of the first label", r->file, first);
        CHECK_MSG(ses_examples_check_learnable(d, &err), "%s: %s", r->file, err.msg);
        ses_examples_free(d);
    }
}

/* Labels aligned with a model's, by name, by value, case-insensitively. */
static void ordered(void)
{
    const char *const names[] = { "LOC", "O", "PER" }, *const digits[] = { "1", "0" };
    err = (ses_err){ 0 };
    ses_examples *like = ses_examples_from_labels(SES_DATA_TAG, names, 3, &err);
    ses_examples *d =
        open_text(".txt", "a o\nb per\nc loc\n",
                  SPEC(.kind = SES_DATA_TAG, .format = SES_DATA_CONLL, .label_values = "o|per|loc"), NULL);
    CHECK_MSG(like && d && ses_examples_align_labels(d, like, &err), "%s", err.msg);
    const int32_t *at = d ? ses_examples_at(d, 0)->labels : NULL;
    CHECK(at && at[0] == 1 && at[1] == 2 && at[2] == 0);
    CHECK_STR(d ? ses_examples_label_name(d, 2) : "", "PER");
    CHECK_STR(d ? ses_examples_label_value(d, 2) : "", "per");
    ses_examples_free(d);
    const ses_data_spec *s =
        SPEC(.text_a = "t", .label = "l", .label_values = "0|1", .label_names = "no|yes");
    d = open_text(".tsv", "t\tl\nx\t0\ny\t1\n", s, NULL);
    CHECK(d && !ses_examples_align_labels(d, like, &err));
    CHECK_STR(err.msg, "the labels differ: the data have no, yes; the model has LOC, O, PER");
    CHECK(d && ses_examples_at(d, 0)->label == 0);
    ses_examples_free(like);
    err = (ses_err){ 0 };
    like = ses_examples_from_labels(SES_DATA_CLASSIFY, digits, 2, &err);
    CHECK(d && like && ses_examples_align_labels(d, like, &err) && ses_examples_at(d, 0)->label == 1);
    ses_examples *more = open_text(".tsv", "t\tl\nx\t0\n", s, d);
    CHECK(more && ses_examples_at(more, 0)->label == 1);
    ses_examples_free(more);
    ses_examples_free(d);
    ses_examples_free(like);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-examples-XXXXXX");
    if (!CHECK(mkdtemp(dir))) return check_report();
    classification();
    others();
    nested();
    winogender();
    ordered();
    table();
    on_real_files();
    on_ragged_file();
    rmdir(dir);
    return check_report();
}
