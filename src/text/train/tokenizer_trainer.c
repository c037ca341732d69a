/* Tokenizer training: normalizes and pre-tokenizes texts, counts the words, runs a trainer on the counts,
 * and writes a tokenizer.json. */
#include "tokenizer_trainer.h"
#include "base/alloc.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "base/unicode/utf8_replace.h"
#include "text/tokenizer_impl.h"

#include <string.h>

/* ---- default stages of each type ---- */

#define BERT_NAMES "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
static const char *const bert[] = { BERT_NAMES, NULL }, *const gpt[] = { "<|endoftext|>", NULL };
static const char *const unigram[] = { "<pad>", "<unk>", NULL };

typedef struct type_info {
    const char *name;
    ses_tokenizer_train_fn *train;
    const char *const *special;
    const char *stages, *stages_lower; /* the second one if lowercase is set */
} type_info;

#define BERT_STAGES(lower)                                                                                  \
    "\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, " \
    "\"strip_accents\": null, \"lowercase\": " lower                                                        \
    "}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "                                              \
    "\"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}"
#define BYTE_STAGES(normalizer)                                                                          \
    "\"normalizer\": " normalizer                                                                        \
    ", \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "                       \
    "\"trim_offsets\": true, \"use_regex\": true}, \"post_processor\": {\"type\": \"ByteLevel\", "       \
    "\"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, \"decoder\": {\"type\": " \
    "\"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}"
#define META                                                                                              \
    "{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": " \
    "true}"
#define META_STAGES(normalizer) \
    "\"normalizer\": " normalizer ", \"pre_tokenizer\": " META ", \"decoder\": " META
#define SPLIT_STAGES(normalizer) \
    "\"normalizer\": " normalizer ", \"pre_tokenizer\": {\"type\": \"Whitespace\"}"
#define LOWER "{\"type\": \"Lowercase\"}"
#define NFKC_LOWER "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, " LOWER "]}"

static const type_info kinds[SES_TOKENIZER_TYPES] = {
    [SES_TOKENIZER_WORDPIECE] = { "WordPiece", ses_train_bpe, bert, BERT_STAGES("false"),
                                  BERT_STAGES("true") },
    [SES_TOKENIZER_BPE] = { "BPE", ses_train_bpe, gpt, SPLIT_STAGES("null"), SPLIT_STAGES(LOWER) },
    [SES_TOKENIZER_UNIGRAM] = { "Unigram", ses_train_unigram, unigram, META_STAGES("{\"type\": \"NFKC\"}"),
                                META_STAGES(NFKC_LOWER) },
    [SES_TOKENIZER_WORDLEVEL] = { "WordLevel", ses_train_wordlevel, bert, SPLIT_STAGES("null"),
                                  SPLIT_STAGES(LOWER) },
};

static const char *stages_of(const ses_tokenizer_train_options *o)
{
    const type_info *k = &kinds[o->type];
    if (o->stages) return o->stages;
    if (o->type == SES_TOKENIZER_BPE && o->byte_level)
        return o->lowercase ? BYTE_STAGES(LOWER) : BYTE_STAGES("null");
    return o->lowercase ? k->stages_lower : k->stages;
}

/* ---- trained vocabulary ---- */

bool ses_trained_vocab_put(ses_trained_vocab *t, const char *p, size_t n, ses_err *e)
{
    if (!ses_array_reserve(&t->token, &t->cap, t->n + 1, sizeof *t->token, e)) return false;
    char *copy = ses_arena_strndup(t->mem, p, n, e);
    if (!copy) return false;
    t->token[t->n++] = (ses_string){ copy, n };
    return true;
}

bool ses_trained_vocab_put_merge(ses_trained_vocab *t, int32_t left, int32_t right, ses_err *e)
{
    if (!ses_array_reserve(&t->merge, &t->cap_merges, t->n_merges + 1, sizeof *t->merge, e)) return false;
    t->merge[t->n_merges][0] = left;
    t->merge[t->n_merges++][1] = right;
    return true;
}

void ses_trained_vocab_free(ses_trained_vocab *t)
{
    ses_free(t->token);
    ses_free(t->score);
    ses_free(t->merge);
}

bool ses_tokenizer_train_report(const ses_tokenizer_train_options *o, const char *what, int64_t done,
                                int64_t of, ses_err *e)
{
    if (!o->progress || o->progress(o->ctx, what, done, of)) return true;
    return ses_fail(e, SES_EARG, "canceled by the progress callback");
}

/* ---- counting words ---- */

enum { BLOCK = 1 << 20 }; /* bytes of text per block given to the threads */
enum { MAX_WORKERS = 64, MAX_THREADS = 1024 };

/* Worker state: a tokenizer whose model only counts the words it receives. */
typedef struct worker {
    ses_tokenizer_trainer *owner;
    ses_encode_ctx *tokens;
    ses_word_counter *counter;
    ses_err err;
} worker;

struct ses_tokenizer_trainer {
    ses_tokenizer_train_options o;
    ses_arena mem;
    ses_tokenizer *t; /* the stages, with the special tokens */
    ses_stage counting;
    ses_thread_pool *pool;
    worker worker[MAX_WORKERS];
    int n_workers;
    ses_buf block; /* texts, concatenated */
    size_t *end;   /* end of each text */
    size_t n, cap;
    int64_t bytes;
};

/* tokenize() of the counting model: produces no tokens. The counter belongs to the thread and is found
 * through scratch. */
static bool count_word(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                       ses_err *e)
{
    (void)out;
    ses_tokenizer_trainer *t = *(ses_tokenizer_trainer *const *)self;
    for (int i = 0; i < t->n_workers; i++)
        if (&t->worker[i].tokens->scratch == scratch)
            return ses_word_counter_add(t->worker[i].counter, word, n, 1, e);
    return ses_fail(e, SES_EARG, "counting outside of a worker");
}

/* Special tokens come first. */
static bool put_special(const ses_tokenizer_train_options *o, ses_trained_vocab *r, ses_err *e)
{
    for (size_t i = 0; o->special && i < o->n_special; i++)
        if (!ses_trained_vocab_put(r, o->special[i].p, o->special[i].n, e)) return false;
    for (const char *const *s = kinds[o->type].special; !o->special && *s; s++)
        if (!ses_trained_vocab_put(r, *s, strlen(*s), e)) return false;
    for (size_t i = 0; i < r->n; i++)
        for (size_t j = 0; j < i; j++)
            if (r->token[i].n == r->token[j].n && !memcmp(r->token[i].p, r->token[j].p, r->token[i].n))
                return ses_fail(e, SES_EARG, "duplicate special token \"%s\"", r->token[i].p);
    if ((int64_t)r->n > o->vocab_size)
        return ses_fail(e, SES_EARG, "%zu special tokens exceed vocab_size %lld", r->n,
                        (long long)o->vocab_size);
    return true;
}

/* A model with the special tokens at their final ids: a post-processor may name them. */
static void put_special_model(ses_json_writer *w, const ses_trained_vocab *r)
{
    const char *unk = r->n ? r->token[0].p : "x";
    ses_json_begin_object(w);
    ses_json_member_string(w, "type", "WordLevel");
    ses_json_member_string(w, "unk_token", unk);
    ses_json_member_object(w, "vocab");
    ses_json_member_int(w, unk, 0);
    for (size_t i = 1; i < r->n; i++) ses_json_member_int(w, r->token[i].p, (int64_t)i);
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static ses_tokenizer *open_stages(const ses_tokenizer_train_options *o, ses_arena *mem, ses_err *e)
{
    ses_buf json = { 0 };
    ses_tokenizer *t = NULL;
    ses_trained_vocab r = { .mem = mem };
    ses_json_writer *model = put_special(o, &r, e) ? ses_json_writer_new(0, e) : NULL;
    if (model) put_special_model(model, &r);
    const char *text = model ? ses_json_writer_text(model, NULL, e) : NULL;
    if (text)
        ses_buf_appendf(&json, "{\"version\": \"1.0\", \"added_tokens\": [], %s, \"model\": %s}",
                        stages_of(o), text);
    if (text && ses_buf_ok(&json, e)) t = ses_tokenizer_from_json(json.data, json.len, e);
    ses_buf_free(&json);
    ses_json_writer_free(model);
    ses_trained_vocab_free(&r);
    return t;
}

static bool check_options(const ses_tokenizer_train_options *o, ses_err *e)
{
    if (o->type >= SES_TOKENIZER_TYPES) return ses_fail(e, SES_EARG, "unknown tokenizer type");
    if (o->vocab_size < 1 || o->vocab_size > 1 << 23)
        return ses_fail(e, SES_EARG, "vocab_size %lld, expected 1 to %d", (long long)o->vocab_size, 1 << 23);
    if (o->min_frequency < 0 || o->limit_alphabet < 0)
        return ses_fail(e, SES_EARG, "min_frequency and limit_alphabet must not be negative");
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return ses_fail(e, SES_EARG, "%d threads, expected 0 to %d", o->threads, MAX_THREADS);
    return true;
}

ses_tokenizer_trainer *ses_tokenizer_trainer_new(const ses_tokenizer_train_options *o, ses_err *e)
{
    if (!check_options(o, e)) return NULL;
    ses_tokenizer_trainer *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->o = *o;
    t->t = open_stages(o, &t->mem, e);
    if (!t->t) goto fail;
    t->counting = *t->t->model.stage;
    t->counting.tokenize = count_word;
    ses_tokenizer_trainer **self = ses_arena_array(&t->mem, 1, sizeof *self, e);
    if (!self) goto fail;
    *self = t;
    t->t->model = (ses_stage_instance){ &t->counting, self };
    int threads = o->threads ? o->threads : ses_cpu_count();
    t->n_workers = threads < MAX_WORKERS ? threads : MAX_WORKERS;
    t->pool = ses_thread_pool_new(t->n_workers, e);
    for (int i = 0; t->pool && i < t->n_workers; i++) {
        t->worker[i].owner = t;
        t->worker[i].tokens = ses_encode_ctx_new(t->t, e);
        t->worker[i].counter = t->worker[i].tokens ? ses_word_counter_new(o->max_words, e) : NULL;
        if (!t->worker[i].counter) goto fail;
    }
    if (t->pool) return t;
fail:
    ses_tokenizer_trainer_free(t);
    return NULL;
}

void ses_tokenizer_trainer_free(ses_tokenizer_trainer *t)
{
    if (!t) return;
    for (int i = 0; i < MAX_WORKERS; i++) {
        ses_encode_ctx_free(t->worker[i].tokens);
        ses_word_counter_free(t->worker[i].counter);
    }
    ses_thread_pool_free(t->pool);
    ses_tokenizer_free(t->t);
    ses_buf_free(&t->block);
    ses_free(t->end);
    ses_arena_free(&t->mem);
    ses_free(t);
}

/* Worker i processes every n_workers-th text of the block. The assignment does not matter: counts are added
 * up. */
static void count_texts(void *ctx, int64_t i, void *scratch)
{
    ses_tokenizer_trainer *t = ctx;
    worker *l = &t->worker[i];
    (void)scratch;
    for (size_t j = (size_t)i; j < t->n && !l->err.code; j += (size_t)t->n_workers) {
        size_t begin = j ? t->end[j - 1] : 0;
        l->tokens->tokens.n = l->tokens->tokens.n_words = 0;
        l->tokens->n_overrides = 0;
        ses_encode_by_stages(l->tokens, t->block.data + begin, 0, t->end[j] - begin, NULL, &l->err);
    }
}

static bool flush(ses_tokenizer_trainer *t, ses_err *e)
{
    if (t->n) ses_parallel_for(t->pool, t->n_workers, count_texts, t);
    t->n = t->block.len = 0;
    for (int i = 0; i < t->n_workers; i++)
        if (t->worker[i].err.code) return ses_fail(e, t->worker[i].err.code, "%s", t->worker[i].err.msg);
    return ses_tokenizer_train_report(&t->o, "counting", t->bytes, 0, e);
}

bool ses_tokenizer_trainer_feed(ses_tokenizer_trainer *t, const char *text, size_t n, ses_err *e)
{
    if (n > INT32_MAX) return ses_fail(e, SES_EARG, "text of more than 2 GiB");
    if (!ses_array_reserve(&t->end, &t->cap, t->n + 1, sizeof *t->end, e)) return false;
    if (!ses_utf8_replace_invalid(&t->block, text, n)) return ses_buf_ok(&t->block, e);
    t->end[t->n++] = t->block.len;
    t->bytes += (int64_t)n;
    return t->block.len < BLOCK || flush(t, e);
}

/* ---- writing tokenizer.json ---- */

static void put_added(ses_json_writer *w, const ses_trained_vocab *r, size_t n)
{
    static const char *const flags[] = { "single_word", "lstrip", "rstrip", "normalized" };
    ses_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "id", (int64_t)i);
        ses_json_member_stringn(w, "content", r->token[i].p, r->token[i].n);
        for (size_t f = 0; f < SES_LEN(flags); f++) { ses_json_member_bool(w, flags[f], false); }
        ses_json_member_bool(w, "special", true);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_vocab(ses_json_writer *w, const ses_trained_vocab *r)
{
    if (r->score)
        ses_json_begin_array(w);
    else
        ses_json_begin_object(w);
    for (size_t i = 0; i < r->n; i++) {
        if (r->score) {
            ses_json_begin_array(w);
            ses_json_put_stringn(w, r->token[i].p, r->token[i].n);
            ses_json_put_real(w, r->score[i]);
            ses_json_end_array(w);
        } else {
            ses_json_put_keyn(w, r->token[i].p, r->token[i].n);
            ses_json_put_int(w, (int64_t)i);
        }
    }
    if (r->score)
        ses_json_end_array(w);
    else
        ses_json_end_object(w);
}

static void put_merges(ses_json_writer *w, const ses_trained_vocab *r)
{
    ses_json_member_array(w, "merges");
    for (size_t i = 0; i < r->n_merges; i++) {
        ses_json_begin_array(w);
        for (int side = 0; side < 2; side++) {
            ses_string s = r->token[r->merge[i][side]];
            ses_json_put_stringn(w, s.p, s.n);
        }
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

/* The special token for unknown words: the first whose name contains "unk" or "UNK"; -1: none. */
static int64_t find_unknown(const ses_trained_vocab *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j + 3 <= r->token[i].n; j++)
            if (!memcmp(r->token[i].p + j, "unk", 3) || !memcmp(r->token[i].p + j, "UNK", 3))
                return (int64_t)i;
    return -1;
}

static void put_model(ses_json_writer *w, const ses_tokenizer_train_options *o, const ses_trained_vocab *r,
                      size_t n_special)
{
    int64_t unk = find_unknown(r, n_special);
    ses_json_begin_object(w);
    ses_json_member_string(w, "type", kinds[o->type].name);
    if (o->type == SES_TOKENIZER_UNIGRAM) {
        ses_json_put_key(w, "unk_id");
        unk < 0 ? ses_json_put_null(w) : ses_json_put_int(w, unk);
    } else {
        ses_json_put_key(w, "unk_token");
        unk < 0 ? ses_json_put_null(w) : ses_json_put_stringn(w, r->token[unk].p, r->token[unk].n);
    }
    if (o->type == SES_TOKENIZER_WORDPIECE) {
        ses_json_member_string(w, "continuing_subword_prefix", "##");
        ses_json_member_int(w, "max_input_chars_per_word", 100);
    }
    ses_json_put_key(w, "vocab");
    put_vocab(w, r);
    if (o->type == SES_TOKENIZER_BPE) put_merges(w, r);
    if (o->type == SES_TOKENIZER_UNIGRAM) ses_json_member_bool(w, "byte_fallback", false);
    ses_json_end_object(w);
}

static int64_t id_of(const ses_trained_vocab *r, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (r->token[i].n == strlen(name) && !memcmp(r->token[i].p, name, r->token[i].n)) return (int64_t)i;
    return -1;
}

/* BERT's template [CLS] text [SEP] pair [SEP], if both tokens exist. */
static bool put_post_processor(ses_buf *out, const ses_tokenizer_train_options *o, const ses_trained_vocab *r,
                               size_t n, ses_err *e)
{
    int64_t cls = id_of(r, n, "[CLS]"), sep = id_of(r, n, "[SEP]");
    if (o->stages || o->type != SES_TOKENIZER_WORDPIECE || cls < 0 || sep < 0) return true;
    ses_buf_appendf(out,
                    "\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", %lld], \"cls\": "
                    "[\"[CLS]\", %lld]}, ",
                    (long long)sep, (long long)cls);
    return ses_buf_ok(out, e);
}

static char *assemble(const ses_tokenizer_train_options *o, const ses_trained_vocab *r, size_t n_special,
                      size_t *n, ses_err *e)
{
    ses_json_writer *added = ses_json_writer_new(0, e), *model = added ? ses_json_writer_new(0, e) : NULL;
    const char *added_text = NULL, *model_text = NULL;
    ses_buf json = { 0 };
    ses_tokenizer *check = NULL;
    if (model) {
        put_added(added, r, n_special);
        put_model(model, o, r, n_special);
        added_text = ses_json_writer_text(added, NULL, e);
        model_text = added_text ? ses_json_writer_text(model, NULL, e) : NULL;
    }
    if (model_text) {
        ses_buf_appendf(
            &json, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": %s, ",
            added_text);
        put_post_processor(&json, o, r, n_special, e);
        ses_buf_appendf(&json, "%s, \"model\": %s}", stages_of(o), model_text);
        if (ses_buf_ok(&json, e))
            check = ses_tokenizer_from_json(json.data, json.len, e); /* check that the result can be opened */
    }
    ses_json_writer_free(added);
    ses_json_writer_free(model);
    if (!check) ses_buf_free(&json);
    ses_tokenizer_free(check);
    *n = json.len;
    return json.data;
}

char *ses_tokenizer_trainer_finish(ses_tokenizer_trainer *t, size_t *n, ses_err *e)
{
    ses_trained_vocab r = { .mem = &t->mem };
    ses_counted_words words = { 0 };
    char *text = NULL;
    bool ok = flush(t, e);
    for (int i = 1; ok && i < t->n_workers; i++)
        ok = ses_word_counter_merge(t->worker[0].counter, t->worker[i].counter, e);
    ok = ok && ses_word_counter_sorted(t->worker[0].counter, &t->mem, &words, e) && put_special(&t->o, &r, e);
    t->o.n_special = r.n;
    if (ok && !words.n) ok = ses_fail(e, SES_EARG, "no words to train on");
    if (ok && kinds[t->o.type].train(&t->o, &words, &r, e)) text = assemble(&t->o, &r, t->o.n_special, n, e);
    ses_trained_vocab_free(&r);
    return text;
}
