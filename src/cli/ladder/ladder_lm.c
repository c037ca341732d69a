/* Language models of a ladder: trained on the training texts, then the start of a classifier. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "sesame/tokenizer.h"
#include "train/energy/energy_meter.h"

#include <stdlib.h>

/* The training texts without labels; both texts of a pair. */
static ses_examples *texts_of(const ses_ladder *l, ses_err *e)
{
    size_t n = ses_examples_count(l->train), count = 0;
    ses_example_input *in = ses_alloc_array(2 * n + 1, sizeof *in, e);
    for (size_t i = 0; in && i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(l->train, i);
        in[count++].text = x->text_a.p; /* followed by a NUL */
        if (x->text_b.n) in[count++].text = x->text_b.p;
    }
    ses_examples *texts = in ? ses_examples_new(SES_DATA_TEXT, in, count, NULL, NULL, e) : NULL;
    ses_free(in);
    return texts;
}

/* Writes the tokenizer of the most frequent words of the training texts, in lower case. */
static bool write_tokenizer(const ses_ladder *l, const char *path, ses_err *e)
{
    enum { WORDS = 8000 };
    static const ses_string special[] = { { "[PAD]", 5 }, { "[UNK]", 5 }, { "[SEP]", 5 } };
    ses_tokenizer_train_options o = { .type = SES_TOKENIZER_WORDLEVEL,
                                      .vocab_size = WORDS,
                                      .min_frequency = 2,
                                      .lowercase = true,
                                      .special = special,
                                      .n_special = SES_LEN(special),
                                      .threads = ses_compute_threads(&l->a->compute) };
    ses_tokenizer_trainer *t = ses_tokenizer_trainer_new(&o, e);
    bool ok = t != NULL;
    size_t n;
    for (size_t i = 0; ok && i < ses_examples_count(l->train); i++) {
        const ses_labeled_example *x = ses_examples_at(l->train, i);
        ok = ses_tokenizer_trainer_feed(t, x->text_a.p, x->text_a.n, e) &&
             (!x->text_b.n || ses_tokenizer_trainer_feed(t, x->text_b.p, x->text_b.n, e));
    }
    char *text = ok ? ses_tokenizer_trainer_finish(t, &n, e) : NULL;
    ok = text && ses_file_write(path, text, n, true, e);
    free(text);
    ses_tokenizer_trainer_free(t);
    return ok;
}

static bool train_lm(ses_ladder *l, ses_finetune_options o, const char *dir, ses_err *e)
{
    ses_examples *texts = texts_of(l, e);
    if (!texts) return false;
    o.data.task = "continue";
    o.train_examples = texts;
    o.eval_examples = NULL;
    o.task.line_by_line = true; /* more updates than by blocks if texts are short */
    o.bootstrap = 0;
    bool ok = ses_ladder_finetune(l, o, dir, e);
    ses_examples_free(texts);
    return ok || ses_wrap(e, "language model of the training texts");
}

bool ses_ladder_with_lm(ses_ladder *l, const ses_finetune_options *lm, const char *dir,
                        const ses_finetune_options *classifier, ses_err *e)
{
    ses_energy_meter meter;
    double begin = ses_seconds();
    char name[80];
    snprintf(name, sizeof name, "%.60s-lm", ses_path_basename(dir));
    char *folder = ses_path_join(l->root, name, e);
    if (!folder) return false;
    ses_finetune_options first = *lm, second = *classifier;
    first.run.output = folder;
    second.model = folder;
    ses_energy_meter_start(&meter, &(ses_energy_sources){ .gpu = ses_device_pci_bus_id(l->dev) });
    bool ok = train_lm(l, first, folder, e);
    double joules = ses_energy_meter_stop(&meter, l->a->energy.core_watts).joules;
    ok = ok && ses_ladder_write_extra(dir, ses_seconds() - begin, joules, 0, e) &&
         ses_ladder_finetune(l, second, dir, e);
    if (ok) ses_dir_remove_all(folder, NULL);
    ses_free(folder);
    return ok;
}

bool ses_ladder_run_lstm(ses_ladder *l, const char *dir, int64_t seed, const char *loss, ses_err *e)
{
    static const char *const set[] = { "embedding_size=128", "hidden_size=256", "dropout=0.2" };
    char *tokenizer = ses_path_join(l->root, "lstm-words.json", e);
    bool ok = tokenizer && write_tokenizer(l, tokenizer, e);
    ses_finetune_options lm = ses_ladder_options(l, dir, seed), classifier = lm;
    lm.config = "lstm";
    lm.tokenizer = tokenizer;
    lm.set = set;
    lm.n_set = SES_LEN(set);
    lm.task.loss = loss;
    lm.run.epochs = 4;
    lm.run.lr = 3e-3;
    classifier.run.epochs = 6;
    classifier.run.lr = 1e-3;
    ok = ok && ses_ladder_with_lm(l, &lm, dir, &classifier, e);
    if (tokenizer) ses_file_remove(tokenizer, NULL);
    ses_free(tokenizer);
    return ok;
}
