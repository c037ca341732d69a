/* Examples with every allocation failing in turn. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"
#include "sesame/examples.h"

#include <unistd.h>

static const struct {
    const char *benchmark, *text;
} cases[] = {
    { "sst2", "sentence\tlabel\nx\t1\ny\t0\n" },
    { "bbc", "category\ttitle\ttext\nb\tx\ty\na\tz\tw\n" },
    { "copa", "premise\task\talternative1\talternative2\tanswer\np\tcause\tx\ty\t2\n" },
    { "conll2000", "EU NNP B-NP\nsaid VBD B-VP\n\nx NN O\n" },
    { "wic", "{\"word\":\"bed\",\"sentence1\":\"A bed.\",\"sentence2\":\"B bed.\",\"label\":true}\n" },
    { "multirc", "{\"passage\":{\"text\":\"P\",\"questions\":[{\"idx\":1,\"question\":\"Q\",\"answers\":["
                 "{\"text\":\"x\",\"label\":1}]}]}}\n" },
    { "winogender", "sentid\tsentence\nnurse.patient.1.male.txt\tA.\nnurse.patient.1.female.txt\tB.\n" },
    { "axg", "{\"premise\":\"a\",\"hypothesis\":\"b\",\"label\":\"entailment\",\"pair_id\":551}\n" },
    { "record", "{\"passage\":{\"text\":\"in "
                "Paris\"},\"qas\":[{\"query\":\"q\",\"answers\":[{\"text\":\"Paris\"}]}]}\n" },
    { "squad", "{\"data\":[{\"paragraphs\":[{\"context\":\"a cat\",\"qas\":[{\"id\":\"1\",\"question\":\"Q\","
               "\"answers\":[{\"text\":\"cat\",\"answer_start\":2}]}]}]}]}" },
};

typedef struct job {
    const char *path;
    const ses_data_spec *spec;
} job;

static bool run(void *ctx, ses_err *e)
{
    const job *j = ctx;
    ses_examples *d = ses_examples_open(j->path, j->spec, NULL, e);
    ses_examples *like = d ? ses_examples_open(j->path, j->spec, d, e) : NULL;
    ses_examples_free(d);
    ses_examples_free(like);
    return like != NULL;
}

int main(void)
{
    char dir[] = "/tmp/sesame-examples-XXXXXX", path[64];
    if (!CHECK(mkdtemp(dir))) return check_report();
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        snprintf(path, sizeof path, "%s/x", dir);
        FILE *f = fopen(path, "wb");
        CHECK(f && fputs(cases[i].text, f) >= 0);
        if (f) fclose(f);
        job j = { path, &ses_benchmark_find(cases[i].benchmark)->spec };
        oom_sweep(cases[i].benchmark, run, &j);
        unlink(path);
    }
    rmdir(dir);
    return check_report();
}
