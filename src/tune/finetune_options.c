/* Option tables of labeled files, tasks, transfer learning and confidence intervals. */
#include "finetune_options.h"

#include "io/text_decoder.h"

/* ---- labeled files ---- */

static const ses_opt data_opt[] = {
    SES_OPT_TEXT(ses_data_options, text, "text", "COLUMN",
                 "column of the text: a name or a number from 1; default: by common names", .common = true),
    SES_OPT_TEXT(ses_data_options, pair, "pair", "COLUMN",
                 "column of a second text; choose: common beginning of the choices; rewrite: target text"),
    SES_OPT_TEXT(ses_data_options, label, "label", "COLUMN",
                 "column of the label or number; default: by common names", .common = true),
    SES_OPT_TEXT(ses_data_options, choices, "choices", "COLUMN|COLUMN...",
                 "columns of the choices; embed: of negative texts"),
    SES_OPT_TEXT(ses_data_options, labels, "labels", "A|B...",
                 "label set in order, or with names, 0=negative,1=positive; default: the labels that occur, "
                 "sorted; choose: numbers from 0"),
    SES_OPT_CHOICE(ses_data_options, format, "format", "auto", "auto|tsv|csv|jsonl|conll|conllu|squad|text",
                   "file format; auto: by the task and the file name"),
    SES_OPT_FLAG(ses_data_options, no_header, "no-header",
                 "the first line is an example; columns are numbers"),
    SES_OPT_CHOICE(ses_data_options, quotes, "quotes", "auto", "auto|off|on",
                   "whether \"...\" quotes a field; auto: in CSV"),
    SES_OPT_TEXT(ses_data_options, delimiter, "delimiter", "CHARACTER",
                 "field delimiter; default: tab, CSV: comma"),
    SES_OPT_INT(ses_data_options, token_column, "token-column", "0", -256, 256,
                "CoNLL: column of the tokens, from 1, or from the end (-1); 0: the first"),
    SES_OPT_INT(ses_data_options, tag_column, "tag-column", "0", -256, 256,
                "CoNLL: column of the tags; 0: the last"),
    SES_OPT_FLAG(
        ses_data_options, skip_bad, "skip-bad",
        "drop rows with an empty text, an empty label or another error, and count them; SQuAD: answers "
        "that are not in their context"),
    SES_OPT_TEXT(
        ses_data_options, label_separator, "label-separator", "CHARACTER",
        "multi_label: character between labels, or json for arrays; default: detected: JSON arrays, |, ; "
        "or ,"),
    SES_OPT_ENCODING(ses_data_options, encoding),
};
const ses_opt_table ses_data_option_table = { data_opt, SES_LEN(data_opt), "data" };

/* ---- tasks ---- */

static const ses_opt task_opt[] = {
    SES_OPT_INT(ses_finetune_task_options, max_length, "max-length", "0", 0, 1 << 20,
                "maximum sequence length in tokens; 0: the model's", .common = true),
    SES_OPT_INT(ses_finetune_task_options, stride, "stride", "128", 0, 1 << 20,
                "answer: tokens shared by neighboring windows of a passage"),
    SES_OPT_INT(ses_finetune_task_options, max_answer, "max-answer", "30", 1, 1 << 16,
                "answer: maximum length in tokens"),
    SES_OPT_INT(ses_finetune_task_options, n_best, "n-best", "20", 1, 64,
                "answer: candidate start and end positions"),
    SES_OPT_FLAG(ses_finetune_task_options, allow_no_answer, "no-answers",
                 "answer: a passage may have no answer (SQuAD 2.0)"),
    SES_OPT_REAL(ses_finetune_task_options, null_threshold, "null-threshold", "0", 0, 0,
                 "answer: minimum score margin for returning no answer"),
    SES_OPT_FLAG(ses_finetune_task_options, line_by_line, "lines",
                 "continue: each line or row is a sequence; default: texts are joined and split into blocks"),
    SES_OPT_TEXT(ses_finetune_task_options, prefix, "prefix", "TEXT",
                 "rewrite: put before each text, as \"summarize: \" for T5"),
    SES_OPT_INT(ses_finetune_task_options, max_target, "max-target", "128", 1, 1 << 20,
                "rewrite: maximum tokens of the target text"),
    SES_OPT_INT(ses_finetune_task_options, num_beams, "num-beams", "0", 0, 1024,
                "rewrite: beams of evaluation and prediction; 0: as in generation_config.json"),
    SES_OPT_TEXT(ses_finetune_task_options, src_lang, "src-lang", "CODE",
                 "rewrite: source language token, as en_XX"),
    SES_OPT_TEXT(ses_finetune_task_options, tgt_lang, "tgt-lang", "CODE", "rewrite: target language token"),
    SES_OPT_TEXT(
        ses_finetune_task_options, loss, "loss", "NAME",
        "embed: negatives (in-batch), softmax, softmax-product, cosine, contrastive or triplet; default: "
        "negatives; continue: causal or, for recurrent models, autoencoder (each text is reproduced)"),
    SES_OPT_TEXT(ses_finetune_task_options, pooling, "pooling", "MODE",
                 "embed: cls, max, mean, ...; default: as in the folder, else mean"),
    SES_OPT_REAL(ses_finetune_task_options, margin, "margin", "-1", -1, 1e6,
                 "embed: margin of the loss; negative: 5 for triplet, 0.5 for contrastive"),
    SES_OPT_REAL(ses_finetune_task_options, cosine_temperature, "cosine-temperature", "0.05", 1e-6, 1e6,
                 "embed: temperature of the negatives loss"),
    SES_OPT_CHOICE(
        ses_finetune_task_options, eval_with, "measure", "auto", "auto|scores|triplets",
        "embed: evaluation data, pairs with scores or triplets; auto: triplets for the triplet loss"),
    SES_OPT_TEXT(
        ses_finetune_task_options, metrics, "metrics", "A|B...",
        "instead of the task's defaults: accuracy, f1, matthews, entity_iobes, rouge, bleu, exact, ...",
        .group = "scores"),
    SES_OPT_FLAG(ses_finetune_task_options, all_pieces, "all-pieces",
                 "tag: label every piece of a word, not only the first"),
    SES_OPT_FLAG(ses_finetune_task_options, crf, "crf",
                 "tag: train a CRF, which scores the labels of a sequence together"),
    SES_OPT_CHOICE(
        ses_finetune_task_options, scheme, "scheme", "auto", "auto|bio|bioes",
        "tag: convert IOB1, BIO and BIOES labels: of the data in training, of the model in predictions; "
        "auto: leave them"),
    SES_OPT_CHOICE(
        ses_finetune_task_options, inputs, "inputs", "plain", "plain|gpt1",
        "classify, regress, choose with a causal model: gpt1 puts new start, delimiter and extract tokens "
        "around the texts; with --lr 6.25e-5 unless given"),
    SES_OPT_FLAG(ses_finetune_task_options, both_orders, "both-orders",
                 "with --inputs gpt1: read pairs in both orders and add their scores (similarity)"),
    SES_OPT_REAL(ses_finetune_task_options, lm_loss, "lm-loss", "0.5", 0, 1e3,
                 "with --inputs gpt1: weight of the language modeling loss in training"),
};
const ses_opt_table ses_task_option_table = { task_opt, SES_LEN(task_opt), "task" };

/* ---- transfer learning ---- */

static const ses_opt transfer_opt[] = {
    SES_OPT_CHOICE(
        ses_transfer_options, adapter, "adapter", "auto", SES_ADAPTER_KINDS,
        "train a small set of parameters and the head, freeze the model. lora: low-rank matrices, ia3: "
        "factors of keys, values and activations, bitfit: the biases, prompt: vectors of virtual tokens, "
        "ptuning: the same, computed by an MLP, prefix: keys and values of virtual tokens in each layer "
        "(P-tuning v2), bottleneck: small layers after the layers of the model. If MODEL is an adapter, it "
        "is "
        "trained further. none: train all weights, of an adapter with its base model. auto: the kind of "
        "the adapter MODEL, else none",
        .common = true),
    SES_OPT_INT(ses_transfer_options, lora_rank, "lora-rank", "8", 1, 1 << 16, "LoRA rank"),
    SES_OPT_REAL(ses_transfer_options, lora_alpha, "lora-alpha", "16", 0, 1e6, "LoRA scaling: alpha/rank"),
    SES_OPT_REAL(ses_transfer_options, lora_dropout, "lora-dropout", "0", 0, 0.99, "dropout on LoRA inputs"),
    SES_OPT_TEXT(ses_transfer_options, lora_targets, "lora-targets", "LAYERS",
                 "layers of lora or ia3, comma-separated: module names of transformers (query, c_attn) or "
                 "ffn.up, ...; all; default: attention queries and values; of ia3: keys, values and the last "
                 "feed-forward layer"),
    SES_OPT_INT(ses_transfer_options, virtual_tokens, "virtual-tokens", "20", 1, 1 << 16,
                "virtual tokens of prompt, ptuning and prefix"),
    SES_OPT_INT(ses_transfer_options, projection, "projection", "0", 0, 1 << 16,
                "prefix, ptuning: hidden units of the MLP that computes the virtual tokens in training; 0: "
                "none, of ptuning 128"),
    SES_OPT_REAL(ses_transfer_options, reduction, "reduction", "16", 0.01, 1e6,
                 "bottleneck: hidden size of the model divided by that of the adapter"),
    SES_OPT_CHOICE(ses_transfer_options, placement, "placement", "seq", "seq|double|parallel",
                   "bottleneck: seq: after the feed-forward block (Pfeiffer), double: also after attention "
                   "(Houlsby), parallel: beside the feed-forward block"),
    SES_OPT_REAL(ses_transfer_options, layer_decay, "layer-decay", "1", 0.01, 1,
                 "learning-rate ratio between adjacent layers; ULMFiT: 0.385", .group = "layers"),
    SES_OPT_TEXT(ses_transfer_options, freeze, "freeze", "N|all",
                 "freeze embeddings and the N-1 lowest layers; all: train only the head", .group = "layers"),
    SES_OPT_FLAG(ses_transfer_options, unfreeze, "unfreeze",
                 "train only the head first, unfreeze one more layer each epoch, from the top",
                 .group = "layers"),
    SES_OPT_CHOICE(
        ses_transfer_options, head, "head", "default", "default|linear|mlp1|mlp2|bilstm|bigru",
        "classify, tag, answer: the model's own head; a linear layer; one or two hidden layers before it; "
        "bidirectional recurrent layers on a frozen encoder",
        .group = "layers"),
    SES_OPT_TEXT(ses_transfer_options, head_sizes, "head-sizes", "N,...",
                 "widths of the head's hidden layers, recurrent: per direction; default: 256",
                 .group = "layers"),
    SES_OPT_FLAG(ses_transfer_options, mix_layers, "mix-layers",
                 "feed the head a learned weighted sum of all layers (ELMo)", .group = "layers"),
    SES_OPT_TEXT(
        ses_transfer_options, layers, "layers", "N,...",
        "feed the head these layers, as 9-12 or -4,-1: 0 is the embeddings, -1 the last; default: the "
        "last",
        .group = "layers"),
    SES_OPT_CHOICE(ses_transfer_options, combine, "combine", "mean", "mean|sum|concat|mix",
                   "combination of several --layers; concat needs --head; mix: a learned weighted sum",
                   .group = "layers"),
    SES_OPT_REAL(ses_transfer_options, dropout, "dropout", "-1", -1, 0.99,
                 "hidden dropout; negative: from config.json", .group = "layers"),
    SES_OPT_REAL(ses_transfer_options, attention_dropout, "attention-dropout", "-1", -1, 0.99,
                 "attention dropout; negative: from config.json", .group = "layers"),
    SES_OPT_REAL(ses_transfer_options, classifier_dropout, "classifier-dropout", "-1", -1, 0.99,
                 "dropout before the head; negative: from config.json", .group = "layers"),
};
const ses_opt_table ses_transfer_option_table = { transfer_opt, SES_LEN(transfer_opt), "adapter" };

/* ---- confidence intervals ---- */

static const ses_opt bootstrap_opt[] = {
    SES_OPT_INT(ses_bootstrap_args, resamples, "bootstrap", "0", 0, 1000000,
                "resamples for confidence intervals of scores; 0: no intervals"),
    SES_OPT_REAL(ses_bootstrap_args, confidence, "confidence", "95", 1, 99.99,
                 "confidence level of the intervals", .value = "PERCENT"),
};
const ses_opt_table ses_bootstrap_option_table = { bootstrap_opt, SES_LEN(bootstrap_opt), "scores" };
