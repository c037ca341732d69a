/* The legacy families, one row per tokenizer, and detection of the family from a folder's files. */
#include "base/alloc.h"
#include "legacy_variants.h"

#include <string.h>

/* ---- variants ---- */

static const ses_legacy_roles bert = { .unk = "[UNK]",
                                       .sep = "[SEP]",
                                       .pad = "[PAD]",
                                       .cls = "[CLS]",
                                       .mask = "[MASK]",
                                       .post = SES_LEGACY_POST_TEMPLATE,
                                       .single = "C $A S",
                                       .pair = "C $A S $B:1 S:1" };
static const ses_legacy_roles funnel = { "<s>",
                                         "</s>",
                                         "<unk>",
                                         "<sep>",
                                         "<pad>",
                                         "<cls>",
                                         "<mask>",
                                         false,
                                         SES_LEGACY_POST_TEMPLATE,
                                         "C:2 $A S",
                                         "C:2 $A S $B:1 S:1" };
static const ses_legacy_roles mpnet = {
    "<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_ROBERTA, NULL, NULL
};
static const ses_legacy_roles gpt2 = {
    .bos = "<|endoftext|>", .eos = "<|endoftext|>", .unk = "<|endoftext|>", .post = SES_LEGACY_POST_BOS
};
static const ses_legacy_roles roberta = {
    "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_ROBERTA, NULL, NULL
};
static const ses_legacy_roles deberta = {
    "[CLS]",  "[SEP]",          "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", true, SES_LEGACY_POST_TEMPLATE,
    "C $A S", "C $A S $B:1 S:1"
};

#define BERT_NORMALIZER                                                                                      \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null," \
    "\"lowercase\":true}"
static const ses_legacy_word_variant openai_gpt = { .roles = { .unk = "<unk>" },
                                                    .lines = SES_LEGACY_MERGES_TWO_WORDS,
                                                    .normalizer = BERT_NORMALIZER,
                                                    .pre_tokenizer = "{\"type\":\"BertPreTokenizer\"}" };
/* Words are runs of non-white space (as defined by Python's regex module, not re), with an adjacent line
 * break. */
static const ses_legacy_word_variant ctrl = {
    .roles = { .unk = "<unk>" },
    .lines = SES_LEGACY_MERGES_TWO_WORDS,
    .normalizer = "null",
    .pre_tokenizer = "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\S+\\\\n?\"},"
                     "\"behavior\":\"Removed\","
                     "\"invert\":true}",
    .at_signs = true,
};

#define FAIRSEQ "<s> <pad> </s> <unk>"
#define LANGUAGES                                                                                            \
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM " \
    "ne_NP "                                                                                                 \
    "nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
#define LANGUAGES_50                                                                                    \
    LANGUAGES                                                                                           \
    " af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX " \
    "sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"

static const ses_legacy_spm_variant t5 = {
    .file = "spiece.model",
    .roles = { .eos = "</s>",
               .unk = "<unk>",
               .pad = "<pad>",
               .post = SES_LEGACY_POST_TEMPLATE,
               .single = "$A E",
               .pair = "$A E $B E" },
    .unk = -1,
    .norm = SES_LEGACY_NORM_CHARSMAP,
    .whitespace = true,
    .extra_ids = 100,
};
static const ses_legacy_spm_variant albert = {
    .file = "spiece.model",
    .roles = { "[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]", true, SES_LEGACY_POST_TEMPLATE,
               "C $A S", "C $A S $B:1 S:1" },
    .unk = -1,
    .norm = SES_LEGACY_NORM_QUOTES,
    .lower = true,
    .whitespace = true,
    .no_commas = true,
};
static const ses_legacy_spm_variant xlnet = {
    .file = "spiece.model",
    .roles = { "<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "$A S C:2", "$A S $B:1 S:1 C:2" },
    .unk = -1,
    .norm = SES_LEGACY_NORM_QUOTES,
    .whitespace = true,
    .no_commas = true,
    .also = "<eop> <eod>",
};
static const ses_legacy_spm_variant camembert = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "C $A S", "C $A S S $B S" },
    .front = "<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED",
    .skip = 1,
    .back = "<mask>",
    .unk = 3,
    .norm = SES_LEGACY_NORM_CHARSMAP,
    .whitespace = true,
};
static const ses_legacy_spm_variant xlm_roberta = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "C $A S", "C $A S S $B S" },
    .front = FAIRSEQ,
    .skip = 3,
    .back = "<mask>",
    .unk = 3,
    .norm = SES_LEGACY_NORM_CHARSMAP,
    .whitespace = true,
};
static const ses_legacy_spm_variant mbart = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "$A E L", "$A $B E L" },
    .front = FAIRSEQ,
    .skip = 3,
    .back = LANGUAGES " <mask>",
    .unk = 3,
    .norm = SES_LEGACY_NORM_CHARSMAP,
    .whitespace = true,
    .lang = "en_XX",
};
static const ses_legacy_spm_variant mbart50 = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "L $A E", "L $A $B E" },
    .front = FAIRSEQ,
    .skip = 3,
    .back = LANGUAGES_50 " <mask>",
    .unk = 3,
    .norm = SES_LEGACY_NORM_CHARSMAP_SPACES,
    .lang = "en_XX",
};
static const ses_legacy_spm_variant pegasus = {
    .file = "spiece.model",
    .roles = { .eos = "</s>",
               .unk = "<unk>",
               .pad = "<pad>",
               .mask = "<mask_2>",
               .post = SES_LEGACY_POST_TEMPLATE,
               .single = "$A E",
               .pair = "$A $B E" },
    .front = "<pad> </s> <mask_1> <mask_2> <unk_#>*2*102",
    .skip = 2,
    .unk = 105,
    .norm = SES_LEGACY_NORM_CHARSMAP_SPACES,
};
static const ses_legacy_spm_variant xglm = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", NULL, false, SES_LEGACY_POST_TEMPLATE, "E $A",
               "E $A E E $B" },
    .front = FAIRSEQ,
    .skip = 3,
    .back = "<madeupword#>*0*6",
    .unk = 3,
    .norm = SES_LEGACY_NORM_CHARSMAP_SPACES,
};
static const ses_legacy_spm_variant barthez = {
    .file = "sentencepiece.bpe.model",
    .roles = { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true, SES_LEGACY_POST_TEMPLATE,
               "C $A S", "C $A S S $B S" },
    .unk = -1,
    .norm = SES_LEGACY_NORM_CHARSMAP,
    .whitespace = true,
};
static const ses_legacy_spm_variant deberta_v2 = {
    .file = "spm.model",
    .roles = { "[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", false,
               SES_LEGACY_POST_TEMPLATE, "C $A S", "C $A S $B:1 S:1" },
    .unk = -1,
    .norm = SES_LEGACY_NORM_LOWER_STRIP,
};

/* An unknown SentencePiece model: its own ids, no special tokens around a text. */
static const ses_legacy_spm_variant plain = {
    .file = "tokenizer.model", .unk = -1, .norm = SES_LEGACY_NORM_CHARSMAP_SPACES, .plain = true
};

static const ses_legacy_word_variant xlm = {
    .roles = { "<s>", NULL, "<unk>", "</s>", "<pad>", "</s>", "<special1>", false, SES_LEGACY_POST_TEMPLATE,
               "B $A S", "B $A S $B:1 S:1" },
    .lines = SES_LEGACY_MERGES_FIRST_WORDS,
    .replace = ses_legacy_moses_replace,
    .normalizer = "{\"type\":\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":false,"
                  "\"strip_accents\":true,\"lowercase\":true}",
    .words = ses_legacy_moses_words,
    .also =
        "<special0> <special1> <special2> <special3> <special4> <special5> <special6> <special7> <special8> "
        "<special9>",
};

const ses_legacy_family ses_legacy_bert = { "BertTokenizer", "bert", ses_legacy_write_wordpiece, &bert };
const ses_legacy_family ses_legacy_plain = { "", "", ses_legacy_write_spm, &plain };

/* If several families match and no file names one, the first wins. */
static const ses_legacy_family family[] = {
    { "BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer ConvBertTokenizer "
      "SqueezeBertTokenizer "
      "LayoutLMTokenizer RetriBertTokenizer DPRQuestionEncoderTokenizer DPRContextEncoderTokenizer "
      "DPRReaderTokenizer",
      "bert distilbert electra mobilebert convbert squeezebert layoutlm retribert dpr megatron-bert nezha "
      "ernie",
      ses_legacy_write_wordpiece, &bert },
    { "FunnelTokenizer", "funnel", ses_legacy_write_wordpiece, &funnel },
    { "MPNetTokenizer", "mpnet", ses_legacy_write_wordpiece, &mpnet },
    { "GPT2Tokenizer CodeGenTokenizer", "gpt2 gpt_neo gptj opt codegen", ses_legacy_write_byte_bpe, &gpt2 },
    { "RobertaTokenizer BartTokenizer LongformerTokenizer LEDTokenizer MvpTokenizer",
      "roberta bart longformer led roberta-prelayernorm data2vec-text mvp ibert", ses_legacy_write_byte_bpe,
      &roberta },
    { "DebertaTokenizer", "deberta", ses_legacy_write_byte_bpe, &deberta },
    { "OpenAIGPTTokenizer", "openai-gpt", ses_legacy_write_word_bpe, &openai_gpt },
    { "CTRLTokenizer", "ctrl", ses_legacy_write_word_bpe, &ctrl },
    { "XLMTokenizer", "xlm flaubert", ses_legacy_write_word_bpe, &xlm },
    { "T5Tokenizer", "t5 mt5 umt5 longt5 switch_transformers", ses_legacy_write_spm, &t5 },
    { "AlbertTokenizer", "albert", ses_legacy_write_spm, &albert },
    { "XLNetTokenizer", "xlnet", ses_legacy_write_spm, &xlnet },
    { "CamembertTokenizer", "camembert", ses_legacy_write_spm, &camembert },
    { "XLMRobertaTokenizer", "xlm-roberta xlm-roberta-xl xmod", ses_legacy_write_spm, &xlm_roberta },
    { "MBartTokenizer", "mbart", ses_legacy_write_spm, &mbart },
    { "MBart50Tokenizer", "", ses_legacy_write_spm, &mbart50 },
    { "PegasusTokenizer", "pegasus pegasus_x bigbird_pegasus", ses_legacy_write_spm, &pegasus },
    { "XGLMTokenizer", "xglm", ses_legacy_write_spm, &xglm },
    { "BarthezTokenizer", "", ses_legacy_write_spm, &barthez },
    { "DebertaV2Tokenizer", "deberta-v2", ses_legacy_write_spm, &deberta_v2 },
    { "MarianTokenizer", "marian", ses_legacy_write_marian, NULL },
};

/* ---- detection ---- */

static bool listed(const char *list, const char *name, size_t n)
{
    for (const char *p = list; n && (p = strstr(p, name)); p++)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
    return false;
}

static const ses_legacy_family *by_variant(const void *variant)
{
    for (size_t i = 0; i < SES_LEN(family); i++)
        if (family[i].variant == variant) return &family[i];
    return NULL;
}

static const ses_legacy_family *by_name(const ses_json *from, const char *key, bool classes)
{
    size_t n;
    char name[64];
    const char *s = ses_json_string(ses_json_get(from, key), &n);
    if (!s || n >= sizeof name || memchr(s, 0, n)) return NULL; /* "\u0000" is in no list */
    if (classes && n > 4 && !memcmp(s + n - 4, "Fast", 4)) n -= 4;
    memcpy(name, s, n);
    name[n] = 0;
    for (size_t i = 0; i < SES_LEN(family); i++)
        if (listed(classes ? family[i].classes : family[i].types, name, n)) return &family[i];
    return NULL;
}

/* From vocab.json and merges.txt: words with an end-of-word suffix, or byte-level. */
static const ses_legacy_family *by_vocab(const ses_legacy_converter *o, ses_err *e)
{
    size_t n;
    char *vocab = ses_legacy_read_file(o, "vocab.json", &n, e),
         *merges = vocab ? ses_legacy_read_file(o, "merges.txt", &n, e) : NULL;
    const ses_legacy_family *f = NULL;
    if (merges && strstr(merges, "</w>"))
        f = by_variant(strstr(vocab, "@@\"") ? (const void *)&ctrl : &openai_gpt);
    else if (merges)
        f = by_variant(strstr(vocab, "\"<mask>\"") && strstr(vocab, "\"<s>\"") ? &roberta : &gpt2);
    ses_free(vocab);
    ses_free(merges);
    return f;
}

static bool has_piece(const ses_spm *m, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < m->n; i++)
        if (m->piece[i].piece.n == n && !memcmp(m->piece[i].piece.p, name, n)) return true;
    return false;
}

/* From a SentencePiece model. */
static const ses_legacy_family *by_pieces(const ses_legacy_converter *o, const char *file, ses_err *e)
{
    size_t n;
    ses_spm m;
    char *bytes = ses_legacy_read_file(o, file, &n, e);
    const ses_legacy_family *f = NULL;
    if (bytes && (ses_spm_parse(&m, bytes, n, e) || ses_wrap(e, "%s/%s", o->dir, file))) {
        if (!strcmp(file, "spiece.model"))
            f = by_variant(has_piece(&m, "<cls>") ? &xlnet : has_piece(&m, "[CLS]") ? &albert : &t5);
        else
            f = by_variant(m.kind == SES_SPM_BPE ? &barthez : m.n < 100000 ? &camembert : &xlm_roberta);
        ses_spm_free(&m);
    }
    ses_free(bytes);
    return f;
}

/* From file names alone: the best-known model with such files. */
static const ses_legacy_family *by_files(const ses_legacy_converter *o, ses_err *e)
{
    if (ses_legacy_has_file(o, "source.spm")) return by_variant(NULL);
    if (ses_legacy_has_file(o, "vocab.txt")) return by_variant(&bert);
    if (ses_legacy_has_file(o, "vocab.json") && ses_legacy_has_file(o, "merges.txt")) return by_vocab(o, e);
    if (ses_legacy_has_file(o, "spiece.model")) return by_pieces(o, "spiece.model", e);
    if (ses_legacy_has_file(o, "sentencepiece.bpe.model")) return by_pieces(o, "sentencepiece.bpe.model", e);
    if (ses_legacy_has_file(o, "spm.model")) return by_variant(&deberta_v2);
    char name[256];
    if (ses_spm_find_file(o->dir, name)) return &ses_legacy_plain;
    ses_fail(
        e, SES_EIO,
        "neither tokenizer.json nor vocab.txt, vocab.json and merges.txt, spiece.model, "
        "sentencepiece.bpe.model, spm.model, source.spm nor one SentencePiece model of another name found");
    return NULL;
}

const ses_legacy_family *ses_legacy_find(const ses_legacy_converter *o, ses_err *e)
{
    const ses_legacy_family *f = by_name(o->settings, "tokenizer_class", true);
    if (!f) f = by_name(o->config, "tokenizer_class", true);
    if (!f) f = by_name(o->config, "model_type", false);
    return f ? f : by_files(o, e);
}
