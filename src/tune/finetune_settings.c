/* Options of a fine-tuning run by name. */
#include "finetune_settings.h"

#include "base/alloc.h"
#include "tune/data/class_weights.h"

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_finetune_settings, o.data, true),
    SES_OPT_TEXT(
        ses_finetune_settings, o.train, "train", "FILE",
        "training data: TSV, CSV, JSON lines; tag: CoNLL columns; answer: SQuAD JSON. Repeated: one "
        "encoder learns several tasks, and --task, --eval and the options of data and task apply to the "
        "--train before them",
        .required = true, .repeats_in = "also"),
    SES_OPT_INT(ses_finetune_settings, o.train_size, "train-size", "0", 0, 1e12,
                "train on N random examples, classes in proportion, drawn by --seed. The examples of a "
                "smaller N are among them",
                .zero_word = "all"),
    SES_OPT_INT(ses_finetune_settings, o.shots, "shots", "0", 0, 1e12,
                "instead: N random examples of each class; tag: N sentences with each entity type",
                .zero_word = "all", .group = "data"),
    SES_OPT_TEXT(ses_finetune_settings, o.eval, "eval", "FILE|PERCENT",
                 "evaluation data; they select the best checkpoint; 10%: a part of --train, drawn by --seed, "
                 "classes in proportion"),
    SES_OPT_TEXT(
        ses_finetune_settings, o.unlabeled, "unlabeled", "FILE",
        "tag: sentences in the format of --train, labels are ignored: Cross-View Training of a BiLSTM, "
        "labeled and unlabeled batches in turns; classify with --method: texts without labels",
        .group = "method"),
    SES_OPT_OUTPUT(ses_finetune_settings, train),
    SES_OPT_TEXT(ses_finetune_settings, o.model, "model", "DIR", "pretrained model: folder or name",
                 .letter = 'm', .is_model = true),
    SES_OPT_TEXT(ses_finetune_settings, o.config, "config", "FILE|SIZE",
                 "start from random weights: a config.json or a preset, as bert-mini (see sesame pretrain)",
                 .group = "model"),
    SES_OPT_LIST(ses_finetune_settings, set, "set", "KEY=VALUE",
                 "change a value of the model's config, e.g. a dropout rate", .group = "model"),
    SES_OPT_TEXT(ses_finetune_settings, o.tokenizer, "tokenizer", "PATH",
                 "with --config: folder or file of the tokenizer; default: the model's", .is_model = true,
                 .group = "model"),
    SES_OPT_TEXT(
        ses_finetune_settings, o.embed, "embed", "KIND,...",
        "tag: train a BiLSTM-CRF on these embeddings of words instead of a model: static:FILE (vectors), "
        "transformer:DIR (a frozen encoder; DIR@-2: a layer, DIR@-4..-1+concat, DIR@all+mix: several), "
        "elmo:DIR, flair:DIR and lm:DIR (frozen language models), word, char and caps (trained); with "
        "--scheme bioes and --lr 0.002 unless given",
        .group = "model"),
    SES_OPT_TEXT(
        ses_finetune_settings, o.encoder, "encoder", "NAME",
        "with --embed, layers of the tagger: bilstm, window (a window of words) or sentence (convolution "
        "and maximum over the sentence; Collobert et al. 2011); default: bilstm",
        .group = "model"),
    SES_OPT_INT(
        ses_finetune_settings, o.lm_layer, "lm-layer", "0", 0, 7,
        "with --embed: the vectors of language models (lm, elmo, flair, transformer) enter after this "
        "layer of the BiLSTM (TagLM: 1); 0: at the input",
        .group = "model"),
    SES_OPT_TEXT(
        ses_finetune_settings, method, "method", "NAME",
        "classify: train another kind of model, as logreg, or from few labels, as setfit. Instead of a "
        "model: "
        "majority, nb (Naive Bayes), nb-svm, logreg (on TF-IDF), cbow (mean of word vectors); the model from "
        "few labels: pet, ipet, adapet, lm-bff, setfit, self-training (docs/LITTLE_DATA.md)"),
    SES_OPT_INCLUDE(ses_finetune_settings, tune, ses_tune_option_table),
    SES_OPT_INCLUDE(ses_finetune_settings, classifier, ses_classifier_option_table),
    SES_OPT_INCLUDE(ses_finetune_settings, o.data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_finetune_settings, o.task, ses_task_option_table),
    SES_OPT_PATTERNS(ses_finetune_settings, o.task),
    /* before the options of training, of which one has the older name "keep" */
    SES_OPT_INCLUDE(ses_finetune_settings, o.pruning, ses_pruning_option_table),
    SES_OPT_EPOCHS(ses_finetune_settings, train, "3", "passes over the training data"),
    SES_OPT_LR(ses_finetune_settings, train, "5e-5"),
    SES_OPT_WARMUP(ses_finetune_settings, train, "0.1"),
    SES_OPT_INCLUDE(ses_finetune_settings, train, ses_train_options),
    SES_OPT_INT(ses_finetune_settings, o.bucket, "bucket", "0", 0, 1 << 20,
                "sort by length within N batches; 0: off", .group = "training"),
    SES_OPT_REAL(ses_finetune_settings, o.label_smoothing, "label-smoothing", "0", 0, 0.99,
                 "label smoothing factor", .group = "training"),
    SES_OPT_CLASS_WEIGHTS(ses_finetune_settings, o.class_weights),
    SES_OPT_INCLUDE(ses_finetune_settings, o.transfer, ses_transfer_option_table),
    SES_OPT_INCLUDE(ses_finetune_settings, o.exits, ses_exit_option_table),
    SES_OPT_LIST(ses_finetune_settings, teachers, "teacher", "DIR",
                 "distill from this model; repeated: from the mean probabilities of several",
                 .is_model = true, .common = true, .group = "distill"),
    SES_OPT_INCLUDE(ses_finetune_settings, o.teacher, ses_teacher_option_table),
    SES_OPT_FLAG(
        ses_finetune_settings, o.quantize_aware, "qat",
        "quantization-aware training: dense layers round as int8 products do, so that 'sesame quantize "
        "--dtype "
        "int8' keeps the scores",
        .group = "compress"),
    SES_OPT_TEXT(ses_finetune_settings, o.metric, "metric", "NAME",
                 "score that selects the best checkpoint, or loss; default: the task's",
                 .alias = "best-metric", .common = true, .group = "scores"),
    SES_OPT_FLAG(ses_finetune_settings, o.last_weights, "last-weights",
                 "evaluate once, after training, the weights of the last update: the evaluation data select "
                 "nothing",
                 .group = "scores"),
    SES_OPT_REAL(ses_finetune_settings, o.eval_epochs, "eval-epochs", "0", 0, 1e6,
                 "epochs between evaluations instead, may be a fraction", .group = "scores"),
    SES_OPT_INT(ses_finetune_settings, o.patience, "patience", "0", 0, 1e9,
                "stop after N evaluations without improvement; 0: never", .common = true, .group = "scores"),
    SES_OPT_INCLUDE(ses_finetune_settings, bootstrap, ses_bootstrap_option_table),
    SES_OPT_REAL(
        ses_finetune_settings, o.mix_alpha, "mix-alpha", "1", 0, 1,
        "several --train: batches are drawn in proportion to (training examples)^A; 0: equally often",
        .group = "data"),
    SES_OPT_LIST(ses_finetune_settings, also, "also", "WORD",
                 "the second --train and what follows it, as run.json stores it: names and values in turn",
                 .items = &ses_further_set_table, .group = "data"),
};
const ses_opt_table ses_finetune_setting_table = { opt, SES_LEN(opt) };

ses_finetune_settings *ses_finetune_settings_new(const ses_setting *settings, ses_err *e)
{
    ses_finetune_settings *s = ses_alloc(sizeof *s, e);
    if (s && ses_opt_defaults(opt, SES_LEN(opt), s, e) &&
        ses_opt_set_all(opt, SES_LEN(opt), s, "finetune", settings, e) &&
        ses_further_sets_read(&s->sets, &s->also, e) &&
        ses_further_sets_check_alpha(&s->sets, s->o.mix_alpha, e))
        return s;
    ses_finetune_settings_free(s);
    return NULL;
}

void ses_finetune_settings_free(ses_finetune_settings *s)
{
    if (s) ses_further_sets_free(&s->sets);
    if (s) ses_opt_free(opt, SES_LEN(opt), s);
    ses_free(s);
}

ses_finetune_options ses_finetune_settings_options(const ses_finetune_settings *s)
{
    ses_finetune_options o = s->o;
    if (!s->method) o.vectors = s->classifier.vectors;
    o.run = ses_train_args_options(&s->train);
    if (o.embed && !s->train.has_lr) o.run.lr = SES_TAGGER_LR;
    if (o.task.inputs == SES_INPUTS_GPT1 && !s->train.has_lr) o.run.lr = SES_GPT1_LR;
    if (!o.pruning.criterion && o.pruning.keep >= 1) { /* the older name of keep-checkpoints */
        o.run.keep_checkpoints = (int64_t)o.pruning.keep;
        o.pruning.keep = 0;
    }
    o.set = s->set.item;
    o.n_set = s->set.n;
    o.also = s->sets.item;
    o.n_also = s->sets.n;
    if (s->teachers.n) {
        o.teacher.model = s->teachers.item[0];
        o.teacher.more = s->teachers.item + 1;
        o.teacher.n_more = s->teachers.n - 1;
    }
    o.bootstrap = s->bootstrap.resamples;
    o.confidence = s->bootstrap.confidence;
    return o;
}
