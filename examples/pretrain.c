/* Pretrain a tiny BERT on a text file, from a new tokenizer to a saved model: pretrain TEXT OUT. Documents
 * are separated by blank lines, a line is a sentence. Writes OUT.json (tokenizer), OUT.ids (corpus) and OUT
 * (model). */
#include "sesame/sesame.h"

#include <stdio.h>
#include <stdlib.h>

static bool train_tokenizer(const char *text_path, const char *path, ses_err *e)
{
    char line[8192];
    size_t n = 0;
    ses_tokenizer_train_options o = { .type = SES_TOKENIZER_WORDPIECE,
                                      .vocab_size = 2000,
                                      .lowercase = true };
    ses_tokenizer_trainer *t = ses_tokenizer_trainer_new(&o, e);
    FILE *in = fopen(text_path, "r");
    bool ok = t && (in || ses_fail(e, SES_EIO, "%s: cannot be opened", text_path));
    while (ok && fgets(line, sizeof line, in)) ok = ses_tokenizer_trainer_feed(t, line, strlen(line), e);
    char *json = ok ? ses_tokenizer_trainer_finish(t, &n, e) : NULL;
    FILE *out = json ? fopen(path, "w") : NULL;
    ok = json &&
         ((out && fwrite(json, 1, n, out) == n) || ses_fail(e, SES_EIO, "%s: cannot be written", path));
    if (out) fclose(out);
    if (in) fclose(in);
    free(json);
    ses_tokenizer_trainer_free(t);
    return ok;
}

static bool build_corpus(const char *text_path, const char *tokenizer, const char *path, ses_err *e)
{
    int64_t resumed;
    ses_tokenizer *t = ses_tokenizer_open(tokenizer, e);
    ses_corpus_options o = { .tokenizer = t,
                             .unk_id = -1,
                             .files = &text_path,
                             .n_files = 1,
                             .held_out_fraction = 0.1,
                             .overwrite = true };
    bool ok = t && ses_corpus_build(path, &o, &resumed, e);
    ses_tokenizer_free(t);
    return ok;
}

static bool report(void *ctx, const ses_training_event *ev)
{
    (void)ctx;
    if (ev->kind == SES_TRAINING_NOTICE) fprintf(stderr, "%s\n", ev->text);
    if (ev->kind == SES_TRAINING_STEP) fprintf(stderr, "\repoch %.2f  loss %.4f", ev->step->epoch, ev->loss);
    if (ev->kind == SES_TRAINING_EVALUATED) fprintf(stderr, "  eval loss %.4f\n", ev->loss);
    return true; /* false: save a checkpoint and stop */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s TEXT OUT\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    char tokenizer[1024], corpus[1024];
    const char *corpora[] = { corpus };
    snprintf(tokenizer, sizeof tokenizer, "%s.json", argv[2]);
    snprintf(corpus, sizeof corpus, "%s.ids", argv[2]);
    ses_pretrain_options o = ses_pretrain_defaults();
    o.corpora = corpora, o.n_corpora = 1, o.tokenizer = tokenizer;
    o.preset = "bert-tiny", o.objectives = "mlm", o.lengths = "64", o.run.epochs = 3;
    o.run.output = argv[2], o.run.overwrite = true, o.on_event = report;

    ses_device *dev = ses_device_open("cpu", NULL, &e);
    bool ok = dev && train_tokenizer(argv[1], tokenizer, &e) && build_corpus(argv[1], tokenizer, corpus, &e);
    ses_pretrain *p = ok ? ses_pretrain_new(&o, dev, &e) : NULL;
    ok = p && ses_pretrain_run(p, NULL, &e);
    if (ok) printf("%s: eval loss %.4f\n", argv[2], ses_pretrain_result_of(p)->eval_loss);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_pretrain_free(p);
    ses_device_free(dev);
    return ok ? 0 : 1;
}
