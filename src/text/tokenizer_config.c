/* What the files beside a tokenizer say about it: tokenizer_config.json, special_tokens_map.json. */
#include "base/file.h"
#include "task/task.h"

#include "base/alloc.h"

enum { FILE_MAX = 16 << 20 };

/* A folder's file, where it is there: *doc stays NULL where not. */
static bool load(const char *dir, const char *name, ses_json_doc **doc, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) ok = (*doc = ses_json_load(path, FILE_MAX, e)) != NULL;
    ses_free(path);
    return ok;
}

/* Under this key stands a string, or an added token as an object. */
static const char *token_of(const ses_json *from, const char *key, size_t *n)
{
    const ses_json *v = ses_json_get(from, key);
    const char *s = ses_json_string(v, n);
    return s ? s : ses_json_string(ses_json_get(v, "content"), n);
}

static void find_roles(ses_tokenizer_config *f, const ses_json *config, const ses_json *map,
                       const ses_tokenizer *t)
{
    static const struct {
        const char *key, *usual[2];
    } role[SES_ROLE_COUNT] = {
        [SES_ROLE_BOS] = { "bos_token", { "<s>", NULL } },
        [SES_ROLE_EOS] = { "eos_token", { "</s>", NULL } },
        [SES_ROLE_UNK] = { "unk_token", { "[UNK]", "<unk>" } },
        [SES_ROLE_SEP] = { "sep_token", { "[SEP]", "</s>" } },
        [SES_ROLE_PAD] = { "pad_token", { "[PAD]", "<pad>" } },
        [SES_ROLE_CLS] = { "cls_token", { "[CLS]", "<s>" } },
        [SES_ROLE_MASK] = { "mask_token", { "[MASK]", "<mask>" } },
    };
    for (int i = 0; i < SES_ROLE_COUNT; i++) {
        size_t n = 0;
        const char *s = token_of(config, role[i].key, &n);
        if (!s) s = token_of(map, role[i].key, &n);
        f->role[i] = s ? ses_tokenizer_token_to_id(t, s, n) : -1;
        for (size_t j = 0; !s && j < SES_LEN(role[i].usual) && f->role[i] < 0; j++)
            if (role[i].usual[j])
                f->role[i] = ses_tokenizer_token_to_id(t, role[i].usual[j], strlen(role[i].usual[j]));
    }
}

static bool has_string(const ses_json *list, const char *s)
{
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const char *x = ses_json_string(ses_json_at(list, i), NULL);
        if (x && !strcmp(x, s)) return true;
    }
    return false;
}

/* Is a class of tokenizers, "DebertaV2TokenizerFast", named for this type of model, "deberta-v2"? */
static bool named_for(const char *class, const char *type)
{
    for (; *type; type++)
        if (*type != '-' && *type != '_' && (*class ++ | 0x20) != *type) return false;
    return !strncmp(class, "Tokenizer", 9);
}

/* Segments are told by the reference's classes for some models, and by no general one. A folder that names no
 * class has that of its model_type. */
static bool gives_types(const char *class, const char *model_type)
{
    for (const ses_model_desc *const *d = ses_models(); *d; d++)
        if (class ? named_for(class, (*d)->name) : !strcmp((*d)->name, model_type))
            return (*d)->tokenizer_sets_segments;
    return false;
}

static void read_config(ses_tokenizer_config *f, const ses_json *c)
{
    double most = 0;
    if (ses_json_real(ses_json_get(c, "model_max_length"), &most) && most >= 1 && most < 1e9)
        f->max_length = (int64_t)most;
    bool clean_up = false;
    ses_json_bool(ses_json_get(c, "clean_up_tokenization_spaces"), &clean_up);
    f->clean_up = clean_up && f->may_clean;
    const ses_json *names = ses_json_get(c, "model_input_names");
    if (ses_json_type_of(names) == SES_JSON_ARRAY) f->types = has_string(names, "token_type_ids");
    const char *side = ses_json_string(ses_json_get(c, "truncation_side"), NULL);
    if (side) f->truncate_left = !strcmp(side, "left");
}

void ses_tokenizer_config_from_json(ses_tokenizer_config *f, const ses_json *config, const ses_json *map,
                                    const char *model_type, const ses_tokenizer *t)
{
    ses_tokenizer_traits traits = ses_tokenizer_traits_of(t);
    *f = (ses_tokenizer_config){ .truncate_left = traits.truncate_left,
                                 .stored_max = traits.max_length,
                                 .subwords = traits.has_subword_prefix,
                                 .may_clean = strcmp(traits.model, "BPE") != 0 };
    f->types = gives_types(ses_json_string(ses_json_get(config, "tokenizer_class"), NULL), model_type);
    find_roles(f, config, map, t);
    read_config(f, config);
}

bool ses_tokenizer_config_read(ses_tokenizer_config *f, const char *dir, const char *model_type,
                               const ses_tokenizer *t, ses_err *e)
{
    ses_json_doc *config = NULL, *map = NULL;
    bool ok = load(dir, "tokenizer_config.json", &config, e) && load(dir, "special_tokens_map.json", &map, e);
    if (ok) ses_tokenizer_config_from_json(f, ses_json_root(config), ses_json_root(map), model_type, t);
    ses_json_free(map);
    ses_json_free(config);
    return ok;
}
