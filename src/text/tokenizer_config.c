/* Reads tokenizer_config.json and special_tokens_map.json. */
#include "tokenizer_config.h"

#include "base/alloc.h"
#include "base/file.h"

#include <string.h>

enum { FILE_MAX = 16 << 20 };

/* Loads a file of the folder if it exists; *doc stays NULL otherwise. */
static bool load(const char *dir, const char *name, ses_json_doc **doc, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) ok = (*doc = ses_json_load(path, FILE_MAX, e)) != NULL;
    ses_free(path);
    return ok;
}

/* The token under a key: a string, or an added token as an object. NULL: none. */
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
        const char *key, *default_token[2];
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
        for (size_t j = 0; !s && j < SES_LEN(role[i].default_token) && f->role[i] < 0; j++)
            if (role[i].default_token[j])
                f->role[i] =
                    ses_tokenizer_token_to_id(t, role[i].default_token[j], strlen(role[i].default_token[j]));
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

/* Values of model_max_length from 1e9 on mean "no limit": transformers writes 1e30. */
static void read_config(ses_tokenizer_config *f, const ses_json *c)
{
    double max_length = 0;
    if (ses_json_real(ses_json_get(c, "model_max_length"), &max_length) && max_length >= 1 &&
        max_length < 1e9)
        f->model_max_length = (int64_t)max_length;
    bool clean_up = false;
    ses_json_bool(ses_json_get(c, "clean_up_tokenization_spaces"), &clean_up);
    f->clean_up_spaces = clean_up && f->may_clean_up_spaces;
    const ses_json *names = ses_json_get(c, "model_input_names");
    if (ses_json_type_of(names) == SES_JSON_ARRAY) f->sets_segments = has_string(names, "token_type_ids");
    const char *side = ses_json_string(ses_json_get(c, "truncation_side"), NULL);
    if (side) f->truncate_left = !strcmp(side, "left");
    side = ses_json_string(ses_json_get(c, "padding_side"), NULL);
    f->pad_left = side && !strcmp(side, "left");
}

void ses_tokenizer_config_from_json(ses_tokenizer_config *f, const ses_json *config, const ses_json *map,
                                    const char *model_type, ses_sets_segments_fn *sets_segments,
                                    const ses_tokenizer *t)
{
    ses_tokenizer_traits traits = ses_tokenizer_traits_of(t);
    const char *class = ses_json_string(ses_json_get(config, "tokenizer_class"), NULL);
    *f = (ses_tokenizer_config){ .truncate_left = traits.truncate_left,
                                 .truncation_max_length = traits.max_length,
                                 .has_subword_prefix = traits.has_subword_prefix,
                                 .may_clean_up_spaces = strcmp(traits.model, "BPE") != 0,
                                 .sets_segments = sets_segments && sets_segments(class, model_type) };
    find_roles(f, config, map, t);
    read_config(f, config);
}

bool ses_tokenizer_config_read(ses_tokenizer_config *f, const char *dir, const char *model_type,
                               ses_sets_segments_fn *sets_segments, const ses_tokenizer *t, ses_err *e)
{
    ses_json_doc *config = NULL, *map = NULL;
    bool ok = load(dir, "tokenizer_config.json", &config, e) && load(dir, "special_tokens_map.json", &map, e);
    if (ok)
        ses_tokenizer_config_from_json(f, ses_json_root(config), ses_json_root(map), model_type,
                                       sets_segments, t);
    ses_json_free(map);
    ses_json_free(config);
    return ok;
}
