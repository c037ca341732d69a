/* MMBT (Kiela et al. 2019): BERT that reads vectors of an image before a text. A linear layer makes them as
 * wide as tokens; positions of both start at 0. The encoder of images is not part of the model: its vectors
 * are input (ses_batch.modal_vectors). */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("modal_hidden_size", embed.modal_width, 1, SES_MAX_WIDTH),
};

static const ses_tensor_name tensors[] = {
    { "embed.modal.*", "/mmbt.modal_encoder.proj_embeddings.*" },
    { "classify.out.*", "/classifier.*" },
};

static const ses_class classes[] = {
    { .name = "MMBTModel", .pooler = true },
    { .name = "MMBTForClassification",
      .pooler = true,
      .head = { SES_USE_HEAD(sequence_classification, "logits") } },
};

const ses_model_desc ses_model_mmbt = {
    .name = "mmbt",
    .prefix = "mmbt.transformer.",
    .defaults = { .embed.segments = 2,
                  .embed.modal_width = 2048,
                  .pad_id = -1,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .embed.norm = true,
                  .embed.tied = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = ses_bert_post_read_positions,
    .reads = ses_bert_reads,
    .unread = "mmbt.modal_encoder.",
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
