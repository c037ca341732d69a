/* Generation with recurrent layers, sequence to sequence and language models: texts do not depend on their
 * batch, steps with carried states have the bits of teacher forcing, and mistakes in configs and batches are
 * reported. */
#include "check.h"

#include "base/rng.h"
#include "model/model_desc.h"
#include "sesame/sesame.h"

enum { SEQS = 4, LONGEST = 9, MOST = SEQS * LONGEST };
static const char *const folders[] = { "rnn-seq2seq-general", "rnn-seq2seq-additive", "rnn-seq2seq-dot-gru",
                                       "rnn-seq2seq-plain" };

static ses_model *open_folder(const char *name, ses_device *dev)
{
    ses_err e = { 0 };
    char dir[128];
    snprintf(dir, sizeof dir, "tests/golden/%s", name);
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    CHECK_MSG(m, "%s", e.msg);
    return m;
}

typedef struct texts {
    int32_t cu[SEQS + 1], id[MOST], target_cu[SEQS + 1], target[MOST];
} texts;

static texts draw(const ses_model *m)
{
    static const int len[SEQS] = { 3, 9, 1, 5 }, target_len[SEQS] = { 6, 2, 9, 6 };
    texts x = { 0 };
    ses_rng_key key = { .seed = 3 };
    for (int s = 0; s < SEQS; s++)
        x.cu[s + 1] = x.cu[s] + len[s], x.target_cu[s + 1] = x.target_cu[s] + target_len[s];
    for (int i = 0; i < MOST; i++) {
        x.id[i] = (int32_t)(ses_rand32(key, (uint64_t)i) % (uint32_t)ses_model_source_vocab_size(m));
        x.target[i] = (int32_t)(ses_rand32(key, 500 + (uint64_t)i) % (uint32_t)ses_model_vocab_size(m));
    }
    return x;
}

static ses_batch whole(const texts *x)
{
    return (ses_batch){ .seqs = SEQS,
                        .tokens = x->cu[SEQS],
                        .cu_seqlens = x->cu,
                        .ids = x->id,
                        .target_cu_seqlens = x->target_cu,
                        .target_ids = x->target };
}

/* Runs a batch; copies the output `name`. Returns its length; -1: failed or absent. */
static int64_t run(const ses_model *m, ses_tape *t, const ses_batch *b, const char *name, ses_real *to,
                   ses_err *e)
{
    static const ses_output_request want = { .logits = true, .rnn_state = true, .attentions = true };
    ses_outputs out;
    ses_tape_reset(t, NULL);
    if (!ses_model_forward(m, t, b, &want, &out, e)) return -1;
    const ses_output *found = ses_outputs_find(&out, name);
    if (!found) return -1;
    memcpy(to, found->tensor->f, (size_t)ses_count(found->tensor) * sizeof *to);
    return ses_count(found->tensor);
}

enum { LARGE = 1 << 14 };

/* Each sequence alone has the bits it has in the batch. */
static void check_alone(const ses_model *m, ses_tape *t, const texts *x)
{
    static ses_real all[LARGE], one[LARGE], probs[LARGE];
    int64_t V = ses_model_vocab_size(m), at = 0;
    ses_err e = { 0 };
    ses_batch b = whole(x);
    bool attends = m->c.rnn.attention != SES_RNN_ATTENTION_NONE;
    CHECK_MSG(run(m, t, &b, "logits", all, &e) == x->target_cu[SEQS] * V, "%s", e.msg);
    CHECK((run(m, t, &b, "cross_attentions.0", probs, &e) > 0) == attends);
    for (int s = 0; s < SEQS; s++) {
        int32_t cu[2] = { 0, x->cu[s + 1] - x->cu[s] },
                target_cu[2] = { 0, x->target_cu[s + 1] - x->target_cu[s] };
        ses_batch alone = { .seqs = 1, .tokens = cu[1], .cu_seqlens = cu, .ids = x->id + x->cu[s] };
        alone.target_cu_seqlens = target_cu, alone.target_ids = x->target + x->target_cu[s];
        CHECK(run(m, t, &alone, "logits", one, &e) == target_cu[1] * V);
        CHECK(!memcmp(one, all + x->target_cu[s] * V, (size_t)(target_cu[1] * V) * sizeof *one));
        if (!attends) continue;
        int64_t pairs = (int64_t)cu[1] * target_cu[1];
        CHECK(run(m, t, &alone, "cross_attentions.0", one, &e) == pairs);
        CHECK(!memcmp(one, probs + at, (size_t)pairs * sizeof *one));
        for (int64_t i = 0; i < target_cu[1]; i++) { /* weights of a step */
            double sum = 0;
            for (int64_t j = 0; j < cu[1]; j++) sum += (double)probs[at + i * cu[1] + j];
            CHECK(sum > 1 - 1e-5 && sum < 1 + 1e-5);
        }
        at += pairs;
    }
}

/* One token at a time with the carried state has the bits of teacher forcing. */
static void check_steps(const ses_model *m, ses_tape *t, const texts *x)
{
    static ses_real all[LARGE], encoded[LARGE], state[LARGE], one[LARGE];
    static const int32_t each[SEQS + 1] = { 0, 1, 2, 3, 4 };
    int64_t V = ses_model_vocab_size(m), n = ses_model_state_size(m);
    int32_t id[SEQS];
    ses_err e = { 0 };
    ses_batch b = whole(x);
    CHECK(run(m, t, &b, "logits", all, &e) == x->target_cu[SEQS] * V);
    CHECK(run(m, t, &b, "encoder_last_hidden_state", encoded, &e) == x->cu[SEQS] * m->c.hidden);
    for (int step = 0; step < 2; step++) { /* all targets have two tokens */
        for (int s = 0; s < SEQS; s++) id[s] = x->target[x->target_cu[s] + step];
        b.target_cu_seqlens = each, b.target_ids = id;
        if (step) b.ids = NULL, b.encoder_states = encoded, b.rnn_state = state;
        CHECK_MSG(run(m, t, &b, "logits", one, &e) == SEQS * V, "%s", e.msg);
        for (int s = 0; s < SEQS; s++)
            CHECK(!memcmp(one + s * V, all + (x->target_cu[s] + step) * V, (size_t)V * sizeof *one));
        CHECK(run(m, t, &b, "rnn_state", one, &e) == SEQS * n);
        memcpy(state, one, (size_t)(SEQS * n) * sizeof *state);
    }
    b.rnn_state = NULL;
    CHECK(run(m, t, &b, "logits", one, &e) < 0 && strstr(e.msg, "rnn_state"));
    e = (ses_err){ 0 };
    b.rnn_state = state, b.ids = x->id;
    CHECK(run(m, t, &b, "logits", one, &e) < 0 && strstr(e.msg, "encoder_states"));
}

/* Texts do not depend on the prompts generated with them. */
static void check_generation(const ses_model *m, const texts *x)
{
    ses_err e = { 0 };
    ses_prompt prompt[SEQS] = { { { 0 }, { 0 } } };
    ses_generation_config *config = ses_generation_config_open(m, &e);
    for (int s = 0; s < SEQS; s++) prompt[s].ids = (ses_ids){ x->id + x->cu[s], x->cu[s + 1] - x->cu[s] };
    for (int mode = 0; mode < 3; mode++) {
        ses_generate_options o = *ses_generation_config_options(config);
        o.max_new_tokens = 25; /* longer than any target here */
        if (mode == 1) o.num_beams = 3;
        if (mode == 2) o.do_sample = true, o.seed = 7;
        ses_generated *all = ses_generate(m, prompt, SEQS, &o, &e);
        CHECK_MSG(all && all->n == SEQS, "%s", e.msg);
        for (int s = 0; all && s < SEQS; s++) {
            ses_generated *one = ses_generate(m, &prompt[s], 1, &o, &e);
            const ses_ids *a = &all->sequence[s].ids, *b = one ? &one->sequence[0].ids : NULL;
            CHECK(b && a->n == b->n && !memcmp(a->id, b->id, (size_t)a->n * sizeof *a->id));
            CHECK(one && all->sequence[s].score == one->sequence[0].score);
            ses_generated_free(one);
        }
        ses_generated_free(all);
    }
    ses_generate_options o = *ses_generation_config_options(config);
    CHECK(!ses_generate(m, &(ses_prompt){ .ids = { x->id, 0 } }, 1, &o, &e) && strstr(e.msg, "empty"));
    ses_generation_config_free(config);
}

/* The greedy text of a language model is what teacher forcing predicts, and alone what it is in a batch. */
static void check_language_model(ses_device *dev)
{
    static const char text[] = "{\"model_type\": \"awd-lstm\", \"architectures\": [\"AwdLstmForCausalLM\"], "
                               "\"vocab_size\": 23, \"embedding_size\": 6, \"hidden_size\": 7, "
                               "\"num_hidden_layers\": 2, \"initializer_range\": 0.8}";
    enum { NEW = 8 };
    static const int32_t id[] = { 3, 9, 4, 11, 2, 7 };
    static const ses_output_request want = { .logits = true };
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse(text, strlen(text), &e);
    ses_model *m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 4 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_generation_config *config = m ? ses_generation_config_open(m, &e) : NULL;
    CHECK_MSG(config, "%s", e.msg);
    ses_prompt prompt[3] = { { .ids = { id, 1 } }, { .ids = { id + 1, 4 } }, { .ids = { id, 6 } } };
    for (int beams = 1; config && beams < 4; beams += 2) {
        ses_generate_options o = *ses_generation_config_options(config);
        o.max_new_tokens = NEW, o.num_beams = beams, o.do_sample = false;
        ses_generated *all = ses_generate(m, prompt, 3, &o, &e);
        CHECK_MSG(all && all->n == 3, "%s", e.msg);
        for (int s = 0; all && s < 3; s++) {
            const ses_ids *a = &all->sequence[s].ids;
            ses_generated *one = ses_generate(m, &prompt[s], 1, &o, &e);
            CHECK(one && one->sequence[0].ids.n == a->n &&
                  !memcmp(one->sequence[0].ids.id, a->id, (size_t)a->n * sizeof *a->id));
            ses_generated_free(one);
            int32_t cu[2] = { 0, (int32_t)a->n };
            ses_batch b = { .seqs = 1, .tokens = a->n, .cu_seqlens = cu, .ids = a->id };
            ses_outputs out;
            ses_tape_reset(t, NULL);
            CHECK(beams > 1 || ses_model_forward(m, t, &b, &want, &out, &e));
            const ses_real *row = beams > 1 ? NULL : ses_outputs_find(&out, "logits")->tensor->f;
            for (int64_t i = prompt[s].ids.n; row && i < a->n; i++) {
                int32_t best = 0;
                for (int32_t v = 1; v < 23; v++)
                    if (row[(i - 1) * 23 + v] > row[(i - 1) * 23 + best]) best = v;
                CHECK(best == a->id[i]);
            }
        }
        ses_generated_free(all);
    }
    ses_generation_config_free(config);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
}

static void refuses(ses_device *dev, const char *keys, const char *why)
{
    char text[512];
    ses_err e = { 0 };
    snprintf(text, sizeof text, "{\"model_type\": \"rnn-seq2seq\", \"vocab_size\": 9, \"hidden_size\": %s}",
             keys);
    ses_json_doc *doc = ses_json_parse(text, strlen(text), &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
    CHECK_MSG(!m && strstr(e.msg, why), "%s: %s", keys, e.msg);
    ses_model_free(m);
    ses_json_free(doc);
}

static void check_configs(ses_device *dev)
{
    refuses(dev, "6, \"attention\": \"bahdanau\"", "expected general, dot, additive or none");
    refuses(dev, "6, \"rnn_type\": \"rnn\"", "expected lstm or gru");
    refuses(dev, "6, \"decoder_layers\": 3", "differ");
    refuses(dev, "6, \"bidirectional\": 1", "true or false");
    refuses(dev, "7", "odd");
    refuses(dev, "6, \"embedding_size\": 4, \"tie_word_embeddings\": true", "tie_word_embeddings");
    refuses(dev, "6, \"eos_token_id\": 9", "outside the decoder's vocabulary");
    refuses(dev, "6, \"decoder_vocab_size\": 5", "shared table");
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    CHECK_MSG(dev, "%s", e.msg);
    for (size_t i = 0; dev && i < SES_LEN(folders); i++) {
        ses_model *m = open_folder(folders[i], dev);
        ses_tape *t = ses_tape_new(dev, NULL, &e);
        if (m && t) {
            texts x = draw(m);
            check_alone(m, t, &x);
            check_steps(m, t, &x);
            check_generation(m, &x);
        }
        ses_tape_free(t);
        ses_model_free(m);
    }
    check_language_model(dev);
    check_configs(dev);
    ses_device_free(dev);
    return check_report();
}
