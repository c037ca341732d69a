/* KV caches: however a text is split into batches, its logits have the bits of a single pass; slots are
 * copied, trimmed and grown. */
#include "check.h"

#include "base/rng.h"
#include "model/model_desc.h"
#include "sesame/sesame.h"

#include <dirent.h>

enum { SEQS = 3, MOST = 1200 };

typedef struct text { /* input of SEQS sequences */
    int32_t cu[SEQS + 1], ids[SEQS * MOST];
    int32_t source_cu[SEQS + 1], source[SEQS * MOST];
    bool pair;
} text;

static text *draw(const ses_model *m, bool pair, int longest, uint32_t round)
{
    text *x = calloc(1, sizeof *x);
    ses_rng_key key = { .seed = 5, .step = round };
    /* M2M-100 does not count padding; in a cache, as in transformers, it is counted: no padding there. */
    bool no_pad = !strcmp(ses_model_type(m), "m2m_100");
    int64_t pad = -1;
    ses_json_int(ses_json_get(ses_model_config(m), "pad_token_id"), &pad);
    x->pair = pair;
    for (int s = 0; s < SEQS; s++) {
        x->cu[s + 1] = x->cu[s] + 1 + (int32_t)(ses_rand32(key, (uint64_t)s) % (uint32_t)longest);
        x->source_cu[s + 1] =
            x->source_cu[s] + 1 + (int32_t)(ses_rand32(key, 50 + (uint64_t)s) % (uint32_t)longest);
    }
    for (int i = 0; i < SEQS * MOST; i++) {
        x->ids[i] = (int32_t)(ses_rand32(key, 1000 + (uint64_t)i) % (uint32_t)ses_model_vocab_size(m));
        x->source[i] =
            (int32_t)(ses_rand32(key, 90000 + (uint64_t)i) % (uint32_t)ses_model_source_vocab_size(m));
        if (no_pad && x->ids[i] == pad) x->ids[i]++;
    }
    return x;
}

static ses_batch whole(const text *x)
{
    ses_batch b = { .seqs = SEQS, .tokens = x->cu[SEQS], .cu_seqlens = x->cu, .ids = x->ids };
    if (x->pair)
        b = (ses_batch){ .seqs = SEQS,
                         .tokens = x->source_cu[SEQS],
                         .cu_seqlens = x->source_cu,
                         .ids = x->source,
                         .target_cu_seqlens = x->cu,
                         .target_ids = x->ids };
    return b;
}

static const ses_real *logits(const ses_model *m, ses_tape *t, const ses_batch *b,
                              const ses_output_request *want, ses_err *e)
{
    ses_outputs o = { 0 };
    ses_tape_reset(t, NULL);
    if (!ses_model_forward(m, t, b, want, &o, e)) return NULL;
    const ses_output *found = ses_outputs_find(&o, "logits");
    return found ? found->tensor->f : NULL;
}

/* Feeds some of the remaining tokens of each sequence; true: nothing remained. */
static bool read_some(const ses_model *m, ses_tape *t, const text *x, ses_cache *k, const int32_t *slot,
                      uint32_t step, int most, const ses_real *want, int *bad, ses_err *e)
{
    int32_t cu[SEQS + 1] = { 0 }, src_cu[SEQS + 1] = { 0 }, slots[SEQS], at[SEQS];
    static int32_t ids[SEQS * MOST], source[SEQS * MOST];
    int64_t n = 0, V = ses_model_vocab_size(m);
    bool begin = false;
    for (int pass = 0; pass < 2 && !n; pass++) /* new sequences first: only they have a source */
        for (int s = 0; s < SEQS; s++) {
            int32_t had = (int32_t)ses_cache_len(k, slot[s]), left = x->cu[s + 1] - x->cu[s] - had;
            int32_t take = 1 + (int32_t)(ses_rand32((ses_rng_key){ .seed = 9, .step = step }, (uint64_t)s) %
                                         (uint32_t)most);
            if (take > left) take = left;
            if (take < 1 || (x->pair && (had == 0) != (pass == 0))) continue;
            begin = had == 0;
            at[n] = x->cu[s] + had;
            memcpy(ids + cu[n], x->ids + at[n], (size_t)take * sizeof *ids);
            memcpy(source + src_cu[n], x->source + x->source_cu[s],
                   (size_t)(x->source_cu[s + 1] - x->source_cu[s]) * sizeof *source);
            slots[n] = slot[s], cu[n + 1] = cu[n] + take;
            src_cu[n + 1] = src_cu[n] + x->source_cu[s + 1] - x->source_cu[s];
            n++;
        }
    if (!n) return true;
    ses_batch b = { .seqs = n, .tokens = cu[n], .cu_seqlens = cu, .ids = ids, .cache = k, .slots = slots };
    if (x->pair) {
        b.tokens = begin ? src_cu[n] : 0, b.cu_seqlens = begin ? src_cu : NULL, b.ids = begin ? source : NULL;
        b.target_cu_seqlens = cu, b.target_ids = ids;
    }
    const ses_real *got = logits(m, t, &b, &(ses_output_request){ .logits = true }, e);
    if (!CHECK_MSG(got, "%s", e->msg)) return true;
    for (int64_t i = 0; i < n; i++)
        *bad +=
            memcmp(got + cu[i] * V, want + at[i] * V, (size_t)((cu[i + 1] - cu[i]) * V) * sizeof *got) != 0;
    return false;
}

static void test_chunks(const char *name, const ses_model *m, ses_device *dev, int longest, int most)
{
    ses_err e = { 0 };
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    bool pair = false;
    ses_json_bool(ses_json_get(ses_model_config(m), "is_encoder_decoder"), &pair);
    for (uint32_t round = 0; round < 3; round++) {
        text *x = draw(m, pair, longest, round);
        int32_t slot[SEQS] = { 3, 0, 2 };
        int bad = 0;
        ses_cache *k = ses_cache_new(m, 4, longest, &e);
        ses_batch all = whole(x);
        const ses_real *once = k ? logits(m, t, &all, &(ses_output_request){ .logits = true }, &e) : NULL;
        size_t bytes = (size_t)(x->cu[SEQS] * ses_model_vocab_size(m)) * sizeof *once;
        ses_real *want = malloc(bytes);
        if (CHECK_MSG(once && want, "%s: %s", name, e.msg)) {
            memcpy(want, once, bytes);
            for (uint32_t step = 0;
                 !read_some(m, t, x, k, slot, step, round ? most : 1 + most / 10, want, &bad, &e); step++) {}
        }
        CHECK_MSG(bad == 0, "%s at %d: %d pieces differ from one pass", name, (int)ses_device_isa(dev), bad);
        free(want);
        free(x);
        ses_cache_free(k);
    }
    ses_tape_free(t);
}

static ses_model *random_model(const char *config, ses_json_doc **doc, ses_device *dev, ses_err *e)
{
    *doc = ses_json_parse(config, strlen(config), e);
    return *doc ? ses_model_new(ses_json_root(*doc), dev, &(ses_model_options){ .seed = 3 }, e) : NULL;
}

#define NEO                                                                                          \
    "{\"model_type\": \"gpt_neo\", \"architectures\": [\"GPTNeoForCausalLM\"], \"vocab_size\": 60, " \
    "\"hidden_size\": 24, \"num_layers\": 2, \"num_heads\": 3, \"max_position_embeddings\": 1300, "  \
    "\"attention_types\": [[[\"global\", \"local\"], 1]], \"window_size\": 200, \"initializer_range\": 1}"

/* Longer than a block of keys and a chunk of queries, with a window. */
static void test_long(ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_model *m = random_model(NEO, &doc, dev, &e);
    if (CHECK_MSG(m, "%s", e.msg)) test_chunks("gpt_neo of 1200", m, dev, MOST, 300);
    ses_model_free(m);
    ses_json_free(doc);
}

/* Feeds a text to a slot, from scratch or appended; returns the last logits. */
static bool feed(const ses_model *m, ses_tape *t, ses_cache *k, int32_t slot, const int32_t *ids, int32_t n,
                 ses_real *out)
{
    ses_err e = { 0 };
    ses_batch b = { .seqs = 1,
                    .tokens = n,
                    .cu_seqlens = (const int32_t[]){ 0, n },
                    .ids = ids,
                    .cache = k,
                    .slots = &slot };
    const ses_real *y =
        logits(m, t, &b,
               &(ses_output_request){ .logits = true, .rows = (const int32_t[]){ n - 1 }, .n_rows = 1 }, &e);
    if (y) memcpy(out, y, (size_t)ses_model_vocab_size(m) * sizeof *out);
    return CHECK_MSG(y, "%s", e.msg);
}

/* Slots swapped, copied, trimmed, grown: each continues as if it had processed its whole text. */
static void test_slots(ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_model *m = random_model(NEO, &doc, dev, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_cache *k = ses_cache_new(m, 3, 5, &e), *fresh = ses_cache_new(m, 1, 40, &e);
    const int32_t start[3][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 1, 2, 9, 9 } };
    int32_t read[6][24], len[6] = { 0 };
    ses_real a[60], b[60];
    memset(read, 0, sizeof read);
    for (int32_t s = 0; s < 3; s++) {
        memcpy(read[s], start[s], sizeof start[s]), len[s] = 4;
        feed(m, t, k, s, start[s], 4, a);
    }
    size_t bytes = ses_cache_bytes(k);
    CHECK_MSG(ses_cache_grow(k, 6, 20, &e) && ses_cache_slots(k) == 6 && ses_cache_capacity(k) == 20, "%s",
              e.msg);
    CHECK(bytes && ses_cache_bytes(k) == 8 * bytes); /* rows are slots times capacity */
    for (uint32_t round = 0; round < 40; round++) {
        ses_rng_key key = { .seed = 21, .step = round };
        int32_t to[6], from[6], was_len[6], was[6][24], n = 1 + (int32_t)(ses_rand32(key, 0) % 6);
        memcpy(was, read, sizeof read), memcpy(was_len, len, sizeof len);
        for (int32_t i = 0; i < n; i++) {
            to[i] = (int32_t)((i + round) % 6), from[i] = (int32_t)(ses_rand32(key, 1 + (uint64_t)i) % 6);
            memcpy(read[to[i]], was[from[i]], sizeof *read), len[to[i]] = was_len[from[i]];
        }
        CHECK_MSG(ses_cache_reorder(k, n, to, from, &e), "%s", e.msg);
        int32_t slot = (int32_t)(ses_rand32(key, 30) % 6);
        if (round % 3 == 0 && len[slot] > 2) ses_cache_trim(k, slot, len[slot] -= 2);
        for (int32_t s = 0; s < 6; s++) {
            if (len[s] > 18) ses_cache_trim(k, s, len[s] = 3);
            read[s][len[s]++] = (int32_t)(ses_rand32(key, 40 + (uint64_t)s) % 60);
            feed(m, t, k, s, read[s] + len[s] - 1, 1, a);
            ses_cache_trim(fresh, 0, 0);
            feed(m, t, fresh, 0, read[s], len[s], b);
            CHECK_MSG(!memcmp(a, b, sizeof a) && ses_cache_len(k, s) == len[s], "round %u, slot %d", round,
                      (int)s);
        }
    }
    ses_cache_free(k), ses_cache_free(fresh);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
}

static bool refused(const ses_model *m, ses_tape *t, ses_batch b, const char *why)
{
    ses_err e = { 0 };
    bool got = logits(m, t, &b, &(ses_output_request){ .logits = true }, &e) != NULL;
    return CHECK_MSG(!got && strstr(e.msg, why), "%s, expected %s", e.msg, why);
}

static void test_refusals(ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_model *m = random_model(NEO, &doc, dev, &e),
              *bert = ses_model_open("tests/golden/bert-masked-lm", dev, NULL, &e);
    ses_model *t5 = ses_model_open("tests/golden/t5-v1.0", dev, NULL, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_cache *k = ses_cache_new(m, 2, 4, &e), *pairs = ses_cache_new(t5, 2, 4, &e);
    const int32_t ids[5] = { 1, 2, 3, 4, 5 }, cu[3] = { 0, 2, 4 }, one[2] = { 0, 5 };
    const int32_t same[2] = { 1, 1 }, far[2] = { 0, 2 }, fine[2] = { 0, 1 };
    CHECK(k && pairs && !ses_cache_new(bert, 1, 4, &e) && strstr(e.msg, "BertForMaskedLM"));
    e = (ses_err){ 0 };
    CHECK(!ses_cache_new(m, 0, 4, &e) && !ses_cache_new(m, 1, INT64_MAX / 2, &e));
    ses_batch b = { .seqs = 2, .tokens = 4, .cu_seqlens = cu, .ids = ids, .cache = k, .slots = same };
    refused(m, t, b, "twice");
    b.slots = far;
    refused(m, t, b, "slot 2");
    b.slots = NULL;
    refused(m, t, b, "needs slots");
    refused(t5, t, b, "the decoder has no input");
    b.seqs = 1, b.tokens = 5, b.cu_seqlens = one, b.slots = fine;
    refused(m, t, b, "capacity for 4");
    b = (ses_batch){ .seqs = 2, .target_cu_seqlens = cu, .target_ids = ids, .cache = pairs, .slots = fine };
    refused(t5, t, b, "no source");
    e = (ses_err){ 0 };
    CHECK(!ses_cache_reorder(k, 1, far + 1, fine, &e) && !ses_cache_reorder(k, 2, same, fine, &e));
    ses_cache_free(k), ses_cache_free(pairs);
    ses_tape_free(t);
    ses_model_free(m), ses_model_free(bert), ses_model_free(t5);
    ses_json_free(doc);
}

static void refused_cache(const char *dir, ses_device *dev, const char *why)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_cache *k = m ? ses_cache_new(m, 1, 4, &e) : NULL;
    CHECK_MSG(!k && e.code == SES_EUNSUPPORTED && strstr(e.msg, why), "%s, expected %s", e.msg, why);
    ses_cache_free(k);
    ses_model_free(m);
}

/* Models that cannot have a cache: the message gives the reason. */
static void test_no_cache(ses_device *dev)
{
    refused_cache("tests/golden/bert-relative-causal-lm", dev,
                  "BertLMHeadModel (bert) does not support a KV cache: its scores by distance");
    refused_cache("tests/golden/roberta-masked-lm", dev, "it is an encoder, not a causal decoder");
    refused_cache("tests/golden/deberta-masked-lm", dev, "it is an encoder, not a causal decoder");
    refused_cache("tests/golden/xlnet-permutation-lm", dev, "states of earlier tokens");
    refused_cache("tests/golden/bart-classify", dev, "its decoder reads the source text");
}

/* Does the class have LM logits? */
static bool has_lm_logits(const ses_model *m)
{
    static const char *const ends[] = { "LM", "LMHeadModel", "DoubleHeadsModel", "ConditionalGeneration",
                                        "MTModel" };
    const char *name = ses_model_class_name(m);
    for (size_t i = 0; i < SES_LEN(ends); i++) {
        size_t n = strlen(name), k = strlen(ends[i]);
        if (n >= k && !strcmp(name + n - k, ends[i])) return true;
    }
    return false;
}

int main(void)
{
    for (ses_isa isa = SES_ISA_REF; isa < SES_ISA_COUNT; isa++) {
        ses_err e = { 0 };
        int found = 0;
        ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2, .isa = isa }, &e);
        if (ses_device_isa(dev) != isa) {
            ses_device_free(dev);
            break;
        }
        DIR *d = opendir("tests/golden");
        for (struct dirent *f; d && (f = readdir(d));) {
            char path[300];
            if (f->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
            ses_model *m = ses_model_open(path, dev, NULL, &e);
            ses_cache *k = m ? ses_cache_new(m, 1, 1, &(ses_err){ 0 }) : NULL;
            ses_cache_free(k);
            int most = m && ses_model_max_tokens(m) < 20 ? (int)ses_model_max_tokens(m) : 20;
            if (k && has_lm_logits(m)) test_chunks(f->d_name, m, dev, most, 7), found++;
            ses_model_free(m);
        }
        if (d) closedir(d);
        CHECK_MSG(found >= 13, "only %d decoders", found);
        if (isa) test_long(dev), test_slots(dev), test_refusals(dev), test_no_cache(dev);
        ses_device_free(dev);
    }
    return check_report();
}
