/* Reads the facts about a model folder: parts, files, tokenizer, memory. */
#define _POSIX_C_SOURCE 200809L
#include "model_info.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "folder/elmo_folder.h"
#include "folder/file_kind.h"
#include "kernel/kernel.h"
#include "model/model_desc.h"
#include "model/sentence/sentence_impl.h"
#include "sesame/tokenizer.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static bool has_prefix(const char *s, const char *prefix) { return !strncmp(s, prefix, strlen(prefix)); }

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && !strcmp(s + n - k, suffix);
}

/* The part of a parameter, by its Sesame name, which is the same in every model. The first matching row
 * counts. */
static const char *part_name(const ses_model *m, const char *name)
{
    static const struct {
        const char *prefix, *inside, *part;
    } row[] = {
        { "decoder.layer.", ".attn.", "decoder attention" },
        { "decoder.layer.", ".cross.", "cross attention" },
        { "decoder.layer.", "", "decoder feed-forward" },
        { "decoder.embed.", "", "embeddings" },
        { "decoder.buckets", "", "decoder attention" },
        { "decoder.", "", "final norm" },
        { "embed.", "", "embeddings" },
        { "layer.", ".attn.", "encoder attention" },
        { "layer.", "", "encoder feed-forward" },
        { "buckets", "", "encoder attention" },
        { "final_norm.", "", "final norm" },
        { "pooler.", "", "pooler" },
        { "chars.", "", "word vectors" },
        { "forward.", "", "forward LSTM" },
        { "backward.", "", "backward LSTM" },
        { "", "", "head" },
    };
    static const char lone[] = "encoder "; /* a causal stack is shown as a decoder */
    size_t r = 0;
    while (!has_prefix(name, row[r].prefix) || !strstr(name, row[r].inside)) r++;
    if (!m->stack[0].causal || !has_prefix(row[r].part, lone)) return row[r].part;
    return strstr(row[r].part, "attention") ? "decoder attention" : "decoder feed-forward";
}

static void count_part(ses_model_info *i, const char *name, int64_t elements)
{
    size_t k = 0;
    while (k < i->n_parts && strcmp(i->part[k].name, name) != 0) k++;
    if (k == i->n_parts) i->part[i->n_parts++] = (ses_model_info_part){ name, 0 };
    i->part[k].elements += elements;
    i->parameters += elements;
}

static void count_parts(ses_model_info *i)
{
    const ses_store *s = ses_model_store(i->model);
    for (size_t p = 0; p < ses_store_count(s); p++) {
        const ses_param *x = ses_store_at(s, p);
        count_part(i, part_name(i->model, x->name), ses_count(x->tensor));
    }
    int64_t modules = i->sentence ? ses_store_element_count(ses_sentence_store(i->sentence)) : 0;
    if (modules) count_part(i, "modules", modules);
}

static bool is_quantized(const ses_tensor_entry *x)
{
    return x && (x->dtype == SES_F16 || x->dtype == SES_BF16 || x->dtype == SES_I8);
}

/* Size of the packed weights: matrices of linear layers (their names end in ".weight") and an embedding
 * table that serves as output projection. 16-bit and 8-bit weights are packed as they are. */
static uint64_t packed_bytes(const ses_model *m, ses_isa isa)
{
    ses_kernels k = ses_kernels_cpu(isa);
    uint64_t bytes = 0;
    for (size_t p = 0; p < ses_store_count(m->store); p++) {
        const ses_param *param = ses_store_at(m->store, p);
        const ses_tensor *t = param->tensor;
        const ses_tensor_entry *x = m->file && param->dense ? ses_model_find(m, param->name) : NULL;
        ses_dtype dtype = is_quantized(x) ? x->dtype : SES_REAL;
        bool used = ses_rank(t) == 2 && has_suffix(param->name, ".weight");
        for (size_t h = 0; h < SES_LEN(m->head); h++) used |= m->head[h].out.w == t;
        if (!used) continue;
        bytes += dtype == SES_I8 ? (uint64_t)k.gemm_i8_pack_size(t->dim[0], t->dim[1])
                                 : (uint64_t)k.gemm_pack_size(t->dim[0], t->dim[1]) * ses_dtype_size(dtype);
    }
    return bytes;
}

/* Inference keeps one layer at a time. Per token: input, q, k, v, attention output and its projection,
 * norm, feed-forward output and norm are 9 rows of C (hidden size); the feed-forward layer adds a row of
 * F (intermediate size), 2 more if gated; cross-attention adds 4 rows of C. A vocabulary head adds 2 rows
 * of C and one of V: the buffers of the layers are free by then, but too small. Attention tiles are in
 * the scratch memory of each thread. */
uint64_t ses_model_info_activations(const ses_model *m, int64_t tokens)
{
    const ses_config *c = &m->c;
    int64_t row = 0;
    for (size_t i = 0; i < SES_LEN(m->stack) && m->stack[i].layer; i++) {
        const ses_stack *k = &m->stack[i];
        int64_t layer = (k->cross ? 13 : 9) * c->hidden +
                        (c->ffn.gated || c->ffn.fused_gate ? 3 : 1) * ses_stack_widest_ffn(k);
        if (layer > row) row = layer;
    }
    for (size_t h = 0; h < SES_LEN(m->class->head) && m->class->head[h].head; h++) {
        const ses_head *head = m->class->head[h].head;
        bool per_token = head->axis == SES_LABEL_PER_TOKEN || head->axis == SES_LABEL_PER_TARGET;
        if (per_token && head->class_count(c) == c->vocab) row += 2 * c->hidden + c->vocab;
    }
    return (uint64_t)tokens * (uint64_t)row * sizeof(ses_real);
}

/* Weights of linear layers and embedding tables in 16 or 8 bits are read in place; other parameters are
 * converted unless they are aligned f32. */
static void count_memory(ses_model_info *i)
{
    ses_model_info_memory *m = &i->memory;
    const ses_store *s = ses_model_store(i->model);
    for (size_t f = 0; f < i->n_files; f++) m->mapped += i->file[f].bytes;
    for (size_t p = 0; p < ses_store_count(s); p++) {
        const ses_param *param = ses_store_at(s, p);
        const ses_tensor_entry *x = i->model->file ? ses_model_find(i->model, param->name) : NULL;
        if (!x) continue;
        if (i->base) m->mapped += x->bytes;
        bool read_in_place = is_quantized(x) ? param->dense || param->embedding
                                             : x->dtype == SES_F32 && (uintptr_t)x->data % sizeof(float) == 0;
        if (!read_in_place || !ses_safetensors_is_mapped(i->model->file, x))
            m->copied += (uint64_t)x->count * sizeof(float);
    }
    m->packed = packed_bytes(i->model, ses_device_isa(i->dev));
    m->activations = ses_model_info_activations(i->model, i->tokens);
    m->training = (uint64_t)i->parameters * 4 * sizeof(float);
}

static uint64_t file_size(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool add_file(ses_model_info *i, const char *name, ses_err *e)
{
    for (size_t f = 0; f < i->n_files; f++)
        if (!strcmp(i->file[f].name, name)) return true;
    ses_model_info_file *more = ses_realloc_array(i->file, i->n_files + 1, sizeof *more, e);
    if (!more) return false;
    i->file = more;
    char *path = ses_path_is_dir(i->dir) ? ses_path_join(i->dir, name, e) : ses_strdup(i->dir, e);
    if (!path) return false;
    i->file[i->n_files++] = (ses_model_info_file){ name, file_size(path) };
    ses_free(path);
    return true;
}

static bool read_files(ses_model_info *i, ses_err *e)
{
    for (size_t t = 0; t < ses_safetensors_count(i->weights); t++) {
        const ses_tensor_entry *x = ses_safetensors_at(i->weights, t);
        i->elements[x->dtype] += x->count;
        if (!add_file(i, x->file, e)) return false;
    }
    return true;
}

static bool find_tokenizer(ses_model_info *i, ses_err *e)
{
    const char *dir = i->base && !ses_dir_has_tokenizer(i->dir) ? i->base : i->dir;
    for (size_t k = 0; k < SES_TOKENIZER_FILES; k++) {
        char *path = ses_path_join(dir, ses_tokenizer_file_names[k], e);
        if (!path) return false;
        if (ses_path_exists(path)) i->tokenizer[i->n_tokenizer++] = ses_tokenizer_file_names[k];
        ses_free(path);
    }
    if (!i->n_tokenizer && !ses_elmo_folder_is(dir)) return true;
    ses_tokenizer *t = ses_tokenizer_open(dir, &i->tokenizer_problem);
    if (t) i->tokenizer_size = ses_tokenizer_vocab_size(t);
    ses_tokenizer_free(t);
    return true;
}

static bool read_model(ses_model_info *i, int64_t tokens, ses_err *e)
{
    int64_t max_tokens = ses_model_max_tokens(i->model);
    if (tokens > max_tokens)
        return ses_fail(e, SES_EUSAGE,
                        "--tokens: %" PRId64 " exceeds the maximum sequence length of the model, %" PRId64,
                        tokens, max_tokens);
    i->tokens = tokens ? tokens : max_tokens < 512 ? max_tokens : 512;
    count_parts(i);
    count_memory(i);
    return true;
}

/* Opens the model, or the model of a sentence encoder (modules.json). */
static bool open_model(ses_model_info *i, bool strict)
{
    bool modules = ses_sentence_is_encoder_dir(i->path);
    i->dir = i->path;
    if (modules)
        i->sentence =
            ses_sentence_open(i->path, i->dev, &(ses_sentence_options){ .check_only = true }, &i->problem);
    if (i->sentence) i->dir = ses_sentence_dir(i->sentence);
    ses_model_options o = { .check_only = true, .strict = strict };
    if (i->sentence)
        i->model = ses_sentence_open_whole(i->sentence, i->dev, &o, &i->problem);
    else if (!modules)
        i->model = ses_model_open(i->dir, i->dev, &o, &i->problem);
    return i->model != NULL;
}

/* Opens the weights in the folder; of an adapter only its own. */
static bool open_weights(ses_model_info *i, ses_err *e)
{
    bool adapter = ses_model_is_adapter(i->dir);
    if (adapter && !(i->base = ses_model_base_dir(i->dir, NULL, e))) return false;
    i->weights = adapter ? ses_adapter_tensors_open(i->dir, e) : ses_checkpoint_open(i->dir, e);
    return i->weights != NULL;
}

bool ses_model_info_read(ses_model_info *i, const char *path, int64_t tokens, bool lenient, bool strict,
                         ses_err *e)
{
    i->path = path;
    i->dev = ses_device_open("cpu", NULL, e);
    if (!i->dev) return false;
    if (!lenient && ses_path_exists(path) && !ses_path_is_dir(path))
        return ses_fail_not_model_folder(path, e);
    if (!open_model(i, strict) && !lenient) return ses_fail(e, i->problem.code, "%s", i->problem.msg);
    if (!open_weights(i, e) || !read_files(i, e) || !find_tokenizer(i, e)) return false;
    if (i->model && !read_model(i, tokens, e)) return false;
    i->stats = ses_tensor_stats_read(i->weights, ses_cpu_count(), e);
    return i->stats != NULL;
}

void ses_model_info_free(ses_model_info *i)
{
    ses_free(i->stats);
    ses_free(i->file);
    ses_free(i->base);
    ses_model_free(i->model);
    ses_sentence_free(i->sentence);
    ses_safetensors_free(i->weights);
    ses_device_free(i->dev);
    *i = (ses_model_info){ 0 };
}
