/* Models whose weights are pruned in blocks of four inputs: the share and choice of the blocks, and the bits
 * of int8 models with sparse and with dense weights at every level, from files in f32 and int8. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "model/model_desc.h"
#include "model/reduce/sparse_blocks.h"
#include "op/op.h"
#include "sesame/model.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <unistd.h>

enum { HIDDEN = 96, TOKENS = 3 + 90 + 1 + 40, SEQS = 4 };

/* Separate and fused projections, gated units, weights stored by inputs; 106 inputs: not a multiple of 4. */
static const char *const configs[] = {
    "{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"], \"vocab_size\": 50, \"hidden_size\": 96, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 106, "
    "\"initializer_range\": 0.2, \"max_position_embeddings\": 128}",
    "{\"model_type\": \"modernbert\", \"architectures\": [\"ModernBertModel\"], \"vocab_size\": 50, "
    "\"hidden_size\": 96, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 106, "
    "\"initializer_range\": 0.2, \"max_position_embeddings\": 128, \"global_attn_every_n_layers\": 2, "
    "\"local_attention\": 8}",
    "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 50, \"n_embd\": "
    "96, "
    "\"n_layer\": 2, \"n_head\": 4, \"n_inner\": 106, \"n_positions\": 128, \"initializer_range\": 0.2}",
};
static char dir[64], f32_dir[80], i8_dir[80];

static double block_sum(const ses_param *p, int64_t output, int64_t block)
{
    const ses_tensor *t = p->tensor;
    int64_t in = ses_weight_dim(t, p->layout == SES_OUT_IN), out = ses_weight_dim(t, p->layout == SES_IN_OUT);
    double sum = 0;
    for (int64_t i = 4 * block; i < 4 * block + 4 && i < in; i++)
        sum += pow((double)t->f[p->layout == SES_OUT_IN ? output * in + i : i * out + output], 2);
    return sum;
}

/* The smallest blocks of each weight became zero, the others kept their values. */
static void check_pruned(const ses_model *before, const ses_model *after, double share)
{
    for (size_t i = 0; i < ses_store_count(before->store); i++) {
        const ses_param *p = ses_store_at(before->store, i), *q = ses_store_at(after->store, i);
        bool pruned = p->dense && !p->keep_16bit && !p->embedding;
        if (!pruned) {
            CHECK_MSG(!memcmp(p->tensor->f, q->tensor->f, (size_t)ses_count(p->tensor) * sizeof(ses_real)),
                      "%s", p->name);
            continue;
        }
        int64_t out = ses_weight_dim(p->tensor, p->layout == SES_IN_OUT),
                blocks = ses_quad_count(ses_weight_dim(p->tensor, p->layout == SES_OUT_IN)), zero = 0,
                changed = 0;
        double largest = 0, smallest = INFINITY;
        for (int64_t j = 0; j < out * blocks; j++) {
            double was = block_sum(p, j / blocks, j % blocks), is = block_sum(q, j / blocks, j % blocks);
            if (is == 0)
                zero++, largest = fmax(largest, was);
            else
                changed += is != was, smallest = fmin(smallest, was);
        }
        CHECK_MSG(!changed && largest <= smallest &&
                      llabs(zero - llrint(share * (double)(out * blocks))) <= 1,
                  "%s: %d of %d", p->name, (int)zero, (int)(out * blocks));
    }
}

static ses_model *open_at(const char *from, ses_device *dev, bool no_packing)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(from, dev, &(ses_model_options){ .no_packing = no_packing }, &e);
    CHECK_MSG(m, "%s", e.msg);
    return m;
}

/* Writes the pruned model in f32 and int8. */
static bool write_model(const char *config, double share)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_json_doc *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *made = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 5 }, &e);
    ses_save_options f32 = { .dtype = SES_F32, .overwrite = true },
                     i8 = { .dtype = SES_I8, .overwrite = true };
    bool ok = made && ses_model_save(made, f32_dir, &f32, &e);
    ses_model *m = ok ? open_at(f32_dir, dev, true) : NULL;
    ok = m && ses_prune_blocks(ses_model_store(m), share, &e);
    if (ok) check_pruned(made, m, share);
    ses_sparse_blocks zero = ses_count_blocks(ses_model_store(m));
    CHECK_MSG(fabs((double)zero.zero / (double)zero.blocks - share) < 0.01, "%d", (int)zero.zero);
    ok = ok && ses_model_save(m, i8_dir, &i8, &e) && ses_model_save(m, f32_dir, &f32, &e);
    CHECK_MSG(ok, "%s", e.msg);
    ses_model *back = ok ? open_at(i8_dir, dev, true) : NULL;
    if (back) CHECK(ses_count_blocks(ses_model_store(back)).zero >= zero.zero); /* zeros stay zeros */
    ses_model_free(back), ses_model_free(m), ses_model_free(made), ses_json_free(doc), ses_device_free(dev);
    return ok;
}

static size_t packed_bytes(const ses_model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < ses_store_count(m->store); i++)
        n += ses_pack_bytes(ses_store_at(m->store, i)->tensor->pack);
    return n;
}

/* Hidden states of all sequences. */
static bool states(const char *from, ses_isa isa, int threads, bool dense, ses_real *out, size_t *bytes)
{
    static const int32_t cu[SEQS + 1] = { 0, 3, 93, 94, TOKENS };
    ses_err e = { 0 };
    ses_device_options o = { .threads = threads, .isa = isa, .dtype = SES_I8 };
    ses_device *dev = ses_device_open("cpu", &o, &e);
    dev->exec.dense_i8 = dense;
    ses_model *m = open_at(from, dev, false);
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL;
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 7 % 50;
    ses_batch b = { .seqs = SEQS, .tokens = TOKENS, .cu_seqlens = cu, .ids = ids };
    ses_outputs got = { 0 };
    bool ok = t && ses_model_forward(m, t, &b, &(ses_output_request){ .hidden_states = true }, &got, &e);
    const ses_tensor *last = ok ? got.item[0].tensor : NULL;
    for (size_t i = 0; ok && i < got.n; i++)
        if (ses_count(got.item[i].tensor) == TOKENS * HIDDEN) last = got.item[i].tensor;
    ok = ok && ses_count(last) == TOKENS * HIDDEN && ses_tape_read(t, last, out);
    *bytes = m ? packed_bytes(m) : 0;
    CHECK_MSG(ok, "%s", e.msg);
    ses_tape_free(t), ses_model_free(m), ses_device_free(dev);
    return ok;
}

static void same_bits(const char *from, double share)
{
    static ses_real want[TOKENS * HIDDEN], got[TOKENS * HIDDEN];
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++)
        for (int threads = 1; threads <= 3; threads++) {
            size_t dense, sparse;
            if (!states(from, (ses_isa)isa, threads, true, want, &dense) ||
                !states(from, (ses_isa)isa, threads, false, got, &sparse))
                return;
            CHECK_MSG(!memcmp(want, got, sizeof want), "%s, %d threads, %s", ses_isa_name((ses_isa)isa),
                      threads, from);
            double least = isa == SES_ISA_AMX ? 0.9 : 0.5; /* zeros that make a weight sparse */
            CHECK_MSG(isa == SES_ISA_REF || share < least ? sparse == dense : sparse < dense,
                      "%s: %zu and %zu bytes", ses_isa_name((ses_isa)isa), sparse, dense);
        }
}

/* Values whose blocks are equal: exactly the share becomes zero. A share of 0 changes nothing. */
static void test_equal_blocks(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_store *s = ses_store_new(dev, &e);
    ses_tensor *w = ses_store_add(s, "w", SES_DIM(4, 10), SES_INIT_ONE);
    CHECK(!ses_prune_blocks(s, 0.5, &e) && e.code == SES_EARG);
    ses_store_set_dense(s, w, SES_OUT_IN);
    CHECK(ses_store_alloc_one(s, 0, &e));
    for (int i = 0; i < 40; i++) w->f[i] = 1;
    CHECK(ses_prune_blocks(s, 0, &e) && ses_count_blocks(s).zero == 0);
    CHECK(ses_prune_blocks(s, 0.25, &e) && ses_count_blocks(s).zero == 3 && ses_count_blocks(s).blocks == 12);
    CHECK(w->f[8] == 0 && w->f[9] == 0 && w->f[0] == 1); /* the last blocks have two numbers: smaller sums */
    CHECK(ses_prune_blocks(s, 0.5, &e) && ses_count_blocks(s).zero == 6);
    CHECK(w->f[38] == 0 && w->f[39] == 0);
    CHECK(ses_prune_blocks(s, 1, &e) && ses_count_blocks(s).zero == 12);
    ses_store_free(s), ses_device_free(dev);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sparse_modelXXXXXX");
    if (!mkdtemp(dir)) return 1;
    snprintf(f32_dir, sizeof f32_dir, "%s/f32", dir), snprintf(i8_dir, sizeof i8_dir, "%s/int8", dir);
    test_equal_blocks();
    for (size_t i = 0; i < SES_LEN(configs); i++) {
        for (int share = 2; share <= 9; share += 7) {
            if (!write_model(configs[i], 0.1 * share)) break;
            same_bits(f32_dir, 0.1 * share);
            same_bits(i8_dir, 0.1 * share);
        }
    }
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
    return check_report();
}
