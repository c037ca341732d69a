/* Learning from few labels against PyTorch, transformers and scikit-learn (fixtures/few_shot.json and
 * .safetensors, made by few_shot.py): questions of patterns, losses and gradients of PET and ADAPET, the mean
 * of PET's scores, its loss of soft labels, SetFit's regression. Also: truncation, pairs of texts, drawing by
 * probability. */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"
#include "check.h"
#include "data/examples_impl.h"
#include "model/model_desc.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"
#include "sesame/unstable/logreg.h"
#include "train/model_presets.h"
#include "tune/few_shot/cloze_batches.h"
#include "tune/few_shot/pair_batches.h"
#include "tune/few_shot/pet_ensemble.h"
#include "tune/few_shot/verbalizer_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const BASE = "tests/golden/bert-masked-lm";

static double number(const ses_json *v)
{
    double d = NAN;
    ses_json_real(v, &d);
    return d;
}

static int32_t integer(const ses_json *v)
{
    int64_t n = -1;
    ses_json_int(v, &n);
    return (int32_t)n;
}

/* ---- a classifier on the golden model: words w5 .. w70 ---- */

static char dir[] = "/tmp/sesame-few-shot-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void write_files(void)
{
    char vocab[1000] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    size_t n = strlen(vocab);
    for (int i = 5; i < 71; i++) n += (size_t)snprintf(vocab + n, sizeof vocab - n, "w%d\n", i);
    write_file("vocab.txt", vocab);
    write_file("patterns.json", "{\"patterns\": [\"{text} w20 {mask} w21\"], \"verbalizers\": "
                                "{\"neg\": \"w10\", \"pos\": [\"w12\", \"w15\"]}}");
}

static ses_finetuner *open_tuner(const ses_few_shot *how, const ses_examples *rows, ses_device *dev)
{
    static char vocab[80], patterns[80];
    ses_err e = { 0 };
    snprintf(vocab, sizeof vocab, "%s/vocab.txt", dir);
    snprintf(patterns, sizeof patterns, "%s/patterns.json", dir);
    ses_finetuner_options o = { .task = &ses_finetune_task_by_cloze };
    o.settings.patterns = patterns;
    o.settings.few_shot = how;
    ses_json_doc *config = ses_model_config_open(BASE, NULL, &e);
    ses_finetuner *t = config ? ses_finetuner_new(&o, vocab, "bert", dev, &e) : NULL;
    bool ok = t && ses_finetuner_set_labels(t, rows, &e) &&
              ses_finetuner_build_config(t, ses_json_root(config), &e) &&
              ses_finetuner_open_model(t, BASE, true, 1, &e);
    CHECK_MSG(ok, "%s", e.msg);
    ses_json_free(config);
    if (ok) return t;
    ses_finetuner_free(t);
    return NULL;
}

static ses_examples *examples(void)
{
    static const ses_example_input x[] = { { .text = "w30 w31 w32", .label = "neg" },
                                           { .text = "w40", .label = "pos" },
                                           { .text = "w50 w51", .label = "pos" } };
    ses_err e = { 0 };
    ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, x, SES_LEN(x), NULL, NULL, &e);
    CHECK_MSG(d, "%s", e.msg);
    return d;
}

/* ---- losses ---- */

enum { MAX = 128 };

typedef struct parts {
    int64_t seqs, tokens;
    int32_t cu[MAX], ids[MAX], labels[MAX], kind[MAX];
} parts;

static void add_questions(parts *p, const ses_finetune_set *s, const ses_json *want)
{
    for (size_t i = 0; i < s->n; i++) {
        ses_sequence q = ses_dataset_at(s->data, (int64_t)i);
        const ses_json *ids = ses_json_at(want, i);
        CHECK((int64_t)ses_json_len(ids) == q.n);
        for (int64_t k = 0; k < q.n; k++, p->tokens++) {
            CHECK(q.ids[k] == integer(ses_json_at(ids, (size_t)k)));
            CHECK((q.tags[k] != SES_IGNORE_INDEX) == (q.ids[k] == 4));
            p->ids[p->tokens] = q.ids[k];
            p->labels[p->tokens] = q.tags[k];
        }
        p->cu[++p->seqs] = (int32_t)p->tokens;
    }
}

static void add_masked(parts *p, const ses_json *list, int32_t kind)
{
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const ses_json *ids = ses_json_get(ses_json_at(list, i), "ids"),
                       *masks = ses_json_get(ses_json_at(list, i), "masks");
        int64_t begin = p->tokens;
        for (size_t k = 0; k < ses_json_len(ids); k++) {
            p->ids[p->tokens] = integer(ses_json_at(ids, k));
            p->labels[p->tokens++] = SES_IGNORE_INDEX;
        }
        for (size_t k = 0; k < ses_json_len(masks); k++)
            p->labels[begin + integer(ses_json_at(ses_json_at(masks, k), 0))] =
                integer(ses_json_at(ses_json_at(masks, k), 1));
        p->kind[p->seqs] = kind;
        p->cu[++p->seqs] = (int32_t)p->tokens;
    }
}

/* The largest difference of a gradient from the fixture's. */
static double gradient_error(const ses_model *m, const ses_safetensors *want, const char *prefix)
{
    double worst = 0;
    size_t found = 0;
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        char name[160];
        ses_err e = { 0 };
        const ses_param *x = ses_store_at(m->store, i);
        size_t n = (size_t)snprintf(name, sizeof name, "%s.", prefix);
        CHECK(ses_name_to_hf(m, x->name, name + n, sizeof name - n));
        const ses_tensor_entry *t = ses_safetensors_find(want, name);
        CHECK_MSG(t && t->count == ses_count(x->tensor), "%s", name);
        if (!t) continue;
        float *y = malloc((size_t)t->count * sizeof *y);
        CHECK(y && ses_tensor_entry_to_f32(t, y, &e));
        for (int64_t k = 0; y && k < t->count; k++)
            worst = fmax(worst, fabs((double)x->tensor->grad[k] - (double)y[k]));
        found++;
        free(y);
    }
    CHECK(found > 30);
    return worst;
}

static void check_loss(const ses_json *f, const ses_safetensors *grads, const ses_examples *rows,
                       const char *name, const ses_few_shot *how, ses_device *dev)
{
    ses_err e = { 0 };
    parts p = { 0 };
    ses_finetune_set set = { 0 };
    char key[32];
    ses_finetuner *t = open_tuner(how, rows, dev);
    ses_tape *tape = t ? ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e) : NULL;
    if (!tape || !ses_finetuner_encode(t, rows, &set, &e)) {
        CHECK_MSG(false, "%s", e.msg);
        return;
    }
    add_questions(&p, &set, ses_json_get(f, "question_ids"));
    add_masked(&p, ses_json_get(f, "predict"), SES_CLOZE_PREDICT);
    if (how->decoupled) add_masked(&p, ses_json_get(f, "reject"), SES_CLOZE_REJECT);
    ses_batch b = { .seqs = p.seqs,
                    .tokens = p.tokens,
                    .cu_seqlens = p.cu,
                    .ids = p.ids,
                    .labels = p.labels,
                    .pair_labels = p.kind };
    ses_tensor *loss = ses_finetune_task_by_cloze.loss(t, tape, &b, &e);
    snprintf(key, sizeof key, "%s_loss", name);
    double want = number(ses_json_get(f, key));
    CHECK_MSG(loss && fabs((double)loss->f[0] - want) < 1e-5, "%s: %g, expected %g; %s", name,
              loss ? (double)loss->f[0] : NAN, want, e.msg);
    ses_store_zero_grad(t->model->store);
    if (loss) ses_backward(tape, loss);
    CHECK_MSG(ses_tape_ok(tape, &e), "%s", e.msg);
    double error = gradient_error(t->model, grads, name);
    CHECK_MSG(error < 1e-5, "%s: gradients differ by %g", name, error);
    ses_finetune_set_free(&set);
    ses_tape_free(tape);
    ses_finetuner_free(t);
}

/* Scores of labels, and the same scores for a text alone and in a batch. */
static void check_scores(const ses_json *f, const ses_examples *rows, ses_device *dev)
{
    ses_err e = { 0 };
    ses_finetune_set set = { 0 };
    ses_finetune_outputs o = { 0 };
    ses_finetuner *t = open_tuner(NULL, rows, dev);
    bool ok =
        t && ses_finetuner_encode(t, rows, &set, &e) && ses_finetuner_predict(t, &set, &o, NULL, NULL, &e);
    CHECK_MSG(ok, "%s", e.msg);
    const ses_json *want = ses_json_get(f, "label_scores");
    for (size_t i = 0; ok && i < 3; i++)
        for (size_t l = 0; l < 2; l++)
            CHECK(fabs((double)o.score[2 * i + l] - number(ses_json_at(ses_json_at(want, i), l))) < 1e-5);
    ses_finetune_outputs_free(&o);
    ses_finetune_set_free(&set);
    ses_finetuner_free(t);
}

/* A long text is truncated, the pattern is whole; batches of ADAPET are a function of their index. */
static void check_batches(const ses_examples *rows, ses_device *dev)
{
    ses_err e = { 0 };
    ses_few_shot how = { .decoupled = true };
    ses_finetune_set set = { 0 };
    ses_batch a, b;
    ses_finetuner *t = open_tuner(&how, rows, dev);
    bool ok = t && ses_finetuner_encode(t, rows, &set, &e);
    ses_batches *q =
        ok ? ses_batches_new(set.data, &(ses_batching){ .max_examples = 2, .seed = 7 }, &e) : NULL;
    ses_batch_source s = q ? ses_batches_source(q) : (ses_batch_source){ 0 };
    ok = q && t->task->wrap_source(t, &set, q, 7, &s, &e) && s.batch(s.ctx, 1, 0, &a, &e);
    CHECK_MSG(ok, "%s", e.msg);
    if (!ok) return;
    CHECK(a.seqs == 4 && a.pair_labels[0] == SES_CLOZE_QUESTION && a.pair_labels[2] != SES_CLOZE_QUESTION);
    int32_t ids[MAX];
    int64_t n = a.tokens;
    memcpy(ids, a.ids, (size_t)n * sizeof *ids);
    CHECK(s.batch(s.ctx, 0, 1, &b, &e) && s.batch(s.ctx, 1, 0, &b, &e));
    CHECK(b.tokens == n && !memcmp(b.ids, ids, (size_t)n * sizeof *ids));
    for (int64_t i = b.cu_seqlens[2]; i < n; i++)
        CHECK(b.labels[i] == SES_IGNORE_INDEX ? b.ids[i] != 4 : b.ids[i] == 4 && b.labels[i] >= 30);
    ses_batches_free(q);
    ses_finetune_set_free(&set);
    char text[400] = "";
    for (size_t i = 0; i < 60; i++) memcpy(text + 4 * i, "w33 ", 5);
    ses_example_input x = { .text = text };
    ses_examples *one = ses_examples_new(SES_DATA_CLASSIFY, &x, 1, NULL, rows, &e);
    CHECK(one && ses_finetuner_encode(t, one, &set, &e) && set.n_truncated == 1);
    ses_sequence k = ses_dataset_at(set.data, 0);
    CHECK(k.n == 24 && k.ids[20] == 20 && k.ids[21] == 4 && k.ids[22] == 21 && k.ids[23] == 3);
    ses_finetune_set_free(&set);
    ses_examples_free(one);
    ses_finetuner_free(t);
}

/* ---- PET's scores ---- */

static void check_votes(const ses_json *f, ses_device *dev)
{
    ses_err e = { 0 };
    float score[4][15], mean[15], student[15], all[60];
    ses_tune_vote vote[4];
    const ses_json *votes = ses_json_get(f, "votes"), *weights = ses_json_get(f, "weights");
    for (size_t v = 0; v < 4; v++) {
        vote[v] = (ses_tune_vote){ score[v], number(ses_json_at(weights, v)) };
        for (size_t i = 0; i < 15; i++)
            score[v][i] = (float)number(ses_json_at(ses_json_at(ses_json_at(votes, v), i / 3), i % 3));
    }
    ses_vote_mean(vote, NULL, 4, false, 15, mean);
    for (size_t i = 0; i < 15; i++) {
        CHECK(fabs((double)mean[i] -
                   number(ses_json_at(ses_json_at(ses_json_get(f, "mean"), i / 3), i % 3))) < 1e-5);
        student[i] = (float)number(ses_json_at(ses_json_at(ses_json_get(f, "student"), i / 3), i % 3));
    }
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_tensor *loss = ses_teacher_loss(t, ses_tape_input(t, student, SES_DIM(5, 3)),
                                        ses_tape_input(t, mean, SES_DIM(5, 3)), SES_TEACHER_KL, 2);
    CHECK(loss && fabs((double)loss->f[0] - number(ses_json_get(f, "soft_loss"))) < 1e-5);
    ses_tape_free(t);
    ses_vote_mean(vote, (const size_t[]){ 2 }, 1, false, 15, all);
    CHECK(!memcmp(all, score[2], sizeof score[2]));
}

/* Texts are drawn by the probability of their best label, as many of each label as its share. */
static void check_draw(void)
{
    enum { TEXTS = 400 };
    ses_err e = { 0 };
    float score[2 * TEXTS];
    size_t pick[TEXTS], n, count[2] = { 0 }, sure = 0;
    int32_t label[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) { /* every fourth text is of label 1, every second one is sure */
        score[2 * i + (i % 4 == 0)] = i % 8 < 4 ? 8 : 0.01F;
        score[2 * i + (i % 4 != 0)] = 0;
    }
    n = ses_vote_draw(score, TEXTS, 2, (const double[]){ 0.75, 0.25 }, 80, 1, 2, pick, label, &e);
    CHECK(n == 80);
    for (size_t i = 0; i < n; i++) {
        count[label[i]]++;
        sure += pick[i] % 8 < 4;
        CHECK(label[i] == (pick[i] % 4 == 0));
        for (size_t k = 0; k < i; k++) CHECK(pick[k] != pick[i]);
    }
    CHECK(count[0] == 60 && count[1] == 20);
    CHECK_MSG(sure > 44 && sure < 70, "%zu of 80 are sure; expected about 55", sure);
    CHECK(ses_vote_draw(score, 8, 2, (const double[]){ 0.5, 0.5 }, 80, 1, 2, pick, label, &e) == 8);
}

/* Token 3 is likely everywhere, 5 in texts of label 0, 6 in texts of label 1; 7 is not allowed. */
static void check_words(void)
{
    enum { TEXTS = 6, VOCAB = 9 };
    ses_err e = { 0 };
    float score[TEXTS * VOCAB];
    int32_t label[TEXTS], word[2];
    uint8_t allowed[VOCAB] = { 0, 1, 1, 1, 1, 1, 1, 0, 1 };
    for (int i = 0; i < TEXTS; i++) {
        label[i] = i % 2;
        for (int t = 0; t < VOCAB; t++)
            score[i * VOCAB + t] = t == 7              ? -0.01F
                                   : t == 3            ? -0.1F
                                   : t == 5 + label[i] ? -0.2F
                                                       : -5 - (float)t;
    }
    CHECK(ses_word_choose(score, label, TEXTS, 2, VOCAB, allowed, 3, word, &e));
    CHECK_MSG(word[0] == 5 && (word[1] == 6 || word[1] == 3), "%d %d", (int)word[0], (int)word[1]);
    CHECK(ses_word_choose(score, label, TEXTS, 2, VOCAB, allowed, 1, word, &e) && word[0] != word[1]);
}

/* ---- SetFit ---- */

static void check_pairs(void)
{
    ses_err e = { 0 };
    static const int32_t label[] = { 0, 1, 0, 2, 1, 1 };
    ses_dataset *d = ses_dataset_new(SES_TARGET_VALUES, 1, 1, &e);
    for (int32_t i = 0; i < 6; i++) {
        ses_real value = 0;
        int32_t ids[3] = { i, i, i };
        CHECK(ses_dataset_add(d, &(ses_sequence){ .n = 1 + i % 3, .ids = ids, .values = &value }, &e));
    }
    ses_pair_batches *p = ses_pair_batches_new(
        &(ses_pair_options){
            .texts = d, .label = label, .labels = 3, .pairs = 5, .batch_pairs = 8, .seed = 3 },
        &e);
    ses_batch_source s = ses_pair_batches_source(p);
    int count[6][2] = { 0 };
    CHECK(s.count(s.ctx, 0) == 8); /* 60 pairs */
    for (int64_t i = 0; i < 8; i++) {
        ses_batch b;
        CHECK(s.batch(s.ctx, 0, i, &b, &e) && b.seqs == (i < 7 ? 16 : 8) && b.choices == 2);
        for (int64_t k = 0; k < b.seqs / 2; k++) {
            int32_t first = b.ids[b.cu_seqlens[2 * k]], second = b.ids[b.cu_seqlens[2 * k + 1]];
            int same = label[first] == label[second];
            CHECK(b.targets[k] == (ses_real)same);
            CHECK(first != second || label[first] == 2); /* the only text of its label */
            count[first][same]++;
        }
    }
    for (int i = 0; i < 6; i++) CHECK(count[i][0] == 5 && count[i][1] == 5);
    ses_pair_batches_free(p);
    ses_dataset_free(d);
}

/* The head of a SetFit classifier reads the vector of the sentence encoder. */
static void check_head_input(const char *pooling, bool normalize, ses_device *dev)
{
    ses_err e = { 0 };
    char set[2][160];
    const char *const sets[] = { set[0], set[1] };
    static const int32_t ids[] = { 2, 30, 31, 3, 2, 40, 3 }, cu[] = { 0, 4, 7 };
    ses_batch b = { .seqs = 2, .tokens = 7, .cu_seqlens = cu, .ids = ids };
    snprintf(set[0], sizeof set[0], "architectures=[\"BertForSequenceClassification\"]");
    snprintf(set[1], sizeof set[1],
             "sesame_head={\"kind\": \"linear\", \"pooling\": \"%s\", \"normalize\": %s}", pooling,
             normalize ? "true" : "false");
    ses_json_doc *config = ses_model_config_open(BASE, NULL, &e);
    bool ok = config && ses_preset_set(&config, sets, 2, &e);
    ses_model *m =
        ok ? ses_model_open(
                 BASE, dev,
                 &(ses_model_options){ .config = ses_json_root(config), .train = true, .new_heads = true },
                 &e)
           : NULL;
    ses_sentence_options o = { .pooling = pooling,
                               .normalize = normalize ? SES_NORMALIZE_ON : SES_NORMALIZE_OFF };
    ses_sentence *s = m ? ses_sentence_open(BASE, dev, &o, &e) : NULL;
    ses_tape *t = s ? ses_tape_new(dev, NULL, &e) : NULL;
    ses_outputs out;
    ok = t &&
         ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true, .head_inputs = true }, &out, &e);
    const ses_output *x = ok ? ses_outputs_find(&out, "head_inputs") : NULL;
    ses_tensor *y = x ? ses_sentence_embed(s, t, &b, NULL, &e) : NULL;
    CHECK_MSG(y && ses_same_shape(x->tensor, y), "%s: %s", pooling, e.msg);
    for (int64_t i = 0; y && i < ses_count(y); i++) CHECK(fabs((double)(x->tensor->f[i] - y->f[i])) < 1e-6);
    ses_tape_free(t);
    ses_sentence_free(s);
    ses_model_free(m);
    ses_json_free(config);
}

static void check_regression(const ses_json *f, size_t classes)
{
    ses_err e = { 0 };
    float x[24 * 6];
    int32_t y[24];
    double got[3];
    ses_logreg m = { 0 };
    for (size_t i = 0; i < 24; i++) {
        y[i] = integer(ses_json_at(ses_json_get(f, "y"), i));
        for (size_t k = 0; k < 6; k++)
            x[6 * i + k] = (float)number(ses_json_at(ses_json_at(ses_json_get(f, "x"), i), k));
    }
    CHECK_MSG(ses_logreg_fit(&m, x, y, NULL, 24, 6, classes, &(ses_logreg_options){ .c = 1 }, &e), "%s",
              e.msg);
    for (size_t i = 0; i < 24; i++) {
        ses_logreg_predict(&m, x + 6 * i, got);
        for (size_t c = 0; c < classes; c++) {
            double want = number(ses_json_at(ses_json_at(ses_json_get(f, "probability"), i), c));
            CHECK_MSG(fabs(got[c] - want) < 1e-5, "row %zu: %g, expected %g", i, got[c], want);
        }
    }
    ses_logreg_free(&m);
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_load("tests/fixtures/few_shot.json", 1 << 20, &e);
    ses_safetensors *grads = ses_safetensors_open("tests/fixtures/few_shot.safetensors", &e);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!d || !grads || !dev || !mkdtemp(dir)) return fprintf(stderr, "%s\n", e.msg), 1;
    const ses_json *f = ses_json_root(d);
    write_files();
    ses_examples *rows = examples();
    check_loss(f, grads, rows, "pet", &(ses_few_shot){ .mlm_weight = 0.25 }, dev);
    check_loss(f, grads, rows, "adapet", &(ses_few_shot){ .decoupled = true }, dev);
    check_scores(f, rows, dev);
    check_batches(rows, dev);
    check_votes(f, dev);
    check_draw();
    check_words();
    check_pairs();
    check_head_input("mean", false, dev);
    check_head_input("mean", true, dev);
    check_head_input("cls", false, dev);
    check_head_input("max", true, dev);
    check_regression(ses_json_get(f, "two"), 2);
    check_regression(ses_json_get(f, "three"), 3);
    ses_examples_free(rows);
    ses_device_free(dev);
    ses_safetensors_free(grads);
    ses_json_free(d);
    char path[80];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, i ? "vocab.txt" : "patterns.json");
        unlink(path);
    }
    rmdir(dir);
    return check_report();
}
