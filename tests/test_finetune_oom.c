/* sesame/finetune.h with every allocation failing in turn: examples in memory, a new run, prediction,
 * evaluation. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/dir.h"
#include "sesame/sesame.h"

#include <unistd.h>

static char root[] = "/tmp/sesame-finetune-oom-XXXXXX";
static char vocab[64], config[64];

static void write_file(char *path, const char *name, const char *text)
{
    snprintf(path, 64, "%s/%s", root, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
}

typedef struct scenario {
    ses_device *dev;
    ses_data_kind kind;
    const ses_example_input *x;
    size_t n;
} scenario;

static bool use(ses_finetune *f, ses_examples *d, ses_err *e)
{
    ses_eval_report r = { 0 };
    ses_predictor *p = ses_finetune_predictor(f);
    ses_predictions *y = ses_predictor_predict_examples(p, d, e);
    bool ok = y && ses_predictor_evaluate_examples(p, d, &r, e);
    ses_eval_report_free(&r);
    ses_predictions_free(y);
    return ok;
}

static bool run(void *ctx, ses_err *e)
{
    const scenario *s = ctx;
    ses_finetune_options o = ses_finetune_defaults();
    ses_examples *d = ses_examples_new(s->kind, s->x, s->n, NULL, NULL, e);
    o.config = config, o.tokenizer = vocab, o.train_examples = d;
    ses_finetune *f = d ? ses_finetune_new(&o, s->dev, e) : NULL;
    bool ok = f && use(f, d, e);
    ses_finetune_free(f);
    ses_examples_free(d);
    return ok;
}

int main(void)
{
    static const char *const words[] = { "good", "bad" }, *const tags[] = { "A", "B" };
    static const ses_example_input classify[] = { { .text = "good", .label = "a" },
                                                  { .text = "bad", .label = "b" } };
    static const ses_example_input tag[] = {
        { .parts = words, .n_parts = 2, .labels = tags, .n_labels = 2 },
        { .parts = words, .n_parts = 2, .labels = tags, .n_labels = 2 }
    };
    static const ses_example_input span[] = {
        { .text = "bad", .pair = "good bad", .answer = "bad", .answer_start = 5 },
        { .text = "good", .pair = "good bad", .answer = "good" }
    };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, NULL);
    if (!CHECK(dev && mkdtemp(root))) return check_report();
    write_file(vocab, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\n");
    write_file(config, "config.json",
               "{\"model_type\": \"bert\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
               "\"num_attention_heads\": 1, \"intermediate_size\": 8, \"max_position_embeddings\": 16, "
               "\"type_vocab_size\": 2, \"vocab_size\": 7, \"hidden_act\": \"gelu\"}");
    oom_sweep("classify", run, &(scenario){ dev, SES_DATA_CLASSIFY, classify, 2 });
    oom_sweep("tag", run, &(scenario){ dev, SES_DATA_TAG, tag, 2 });
    oom_sweep("answer", run, &(scenario){ dev, SES_DATA_SPAN, span, 2 });
    ses_device_free(dev);
    ses_dir_remove(root, NULL);
    return check_report();
}
