/* Opens a tokenizer from tokenizer.json and saves it as one. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "folder/file_kind.h"
#include "hub/hub_cache.h"
#include "text/legacy/legacy_files.h"
#include "tokenizer_files.h"
#include "tokenizer_impl.h"

#include <string.h>

static const char *const stage_key[SES_STAGE_KINDS] = { "normalizer", "pre_tokenizer", "model",
                                                        "post_processor", "decoder" };

static const ses_fast_path *const fast_paths[] = {
#define SES_FAST_PATH(name) &ses_fast_path_##name,
#include "text/fast/fast_paths.def"
#undef SES_FAST_PATH
    NULL,
};

/* ---- truncation and padding settings of the file ---- */

/* Read a setting that must be one of n words; *out: its index, 0 if the key is missing. */
static bool one_of(const ses_json *v, const char *key, const char *const *word, size_t n, size_t *out,
                   ses_err *e)
{
    size_t len = 0;
    const char *s = ses_json_string(ses_json_get(v, key), &len);
    *out = 0;
    if (ses_setting_absent(v, key)) return true;
    for (size_t i = 0; s && i < n; i++)
        if (ses_equal(s, len, word[i])) return *out = i, true;
    if (!s) return ses_fail(e, SES_EFORMAT, "key \"%s\" must be a string", key);
    return ses_fail(e, SES_EFORMAT, "key \"%s\" has unknown value \"%s\"", key, ses_quoted_of(s, len).s);
}

static const char *const sides[] = { "Right", "Left" };
static const char *const strategies[] = { "LongestFirst", "OnlyFirst", "OnlySecond" };

static bool read_truncation(ses_stored_limits *s, const ses_json *v, ses_err *e)
{
    size_t strategy, side;
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!ses_setting_int(v, "max_length", 512, 0, INT32_MAX, &s->max_length, e) ||
        !ses_setting_int(v, "stride", 0, 0, INT32_MAX, &s->stride, e) ||
        !one_of(v, "strategy", strategies, 3, &strategy, e) || !one_of(v, "direction", sides, 2, &side, e))
        return false;
    s->truncate = true;
    s->strategy = (ses_truncation)(SES_TRUNCATE_LONGEST_FIRST + (int)strategy);
    s->truncate_left = side == 1;
    return true;
}

enum { MAX_PAD = 1 << 24 }; /* tokens; bounds the memory a file can request for one text */

static bool read_padding(ses_stored_limits *s, const ses_json *v, ses_arena *mem, ses_err *e)
{
    size_t side;
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    const ses_json *strategy = ses_json_get(v, "strategy");
    s->pad_fixed = -1;
    if (ses_json_get(strategy, "Fixed") &&
        !ses_setting_int(strategy, "Fixed", 0, 0, MAX_PAD, &s->pad_fixed, e))
        return ses_wrap(e, "strategy");
    if (!ses_setting_int(v, "pad_to_multiple_of", 0, 0, MAX_PAD, &s->pad_multiple, e) ||
        !ses_setting_int(v, "pad_id", 0, 0, INT32_MAX, &s->pad_id, e) ||
        !ses_setting_int(v, "pad_type_id", 0, 0, UINT8_MAX, &s->pad_type, e) ||
        !ses_setting_string(v, "pad_token", "[PAD]", mem, &s->pad_token, e) ||
        !one_of(v, "direction", sides, 2, &side, e))
        return false;
    s->pad = true;
    s->pad_left = side == 1;
    return true;
}

static void save_limits(const ses_stored_limits *s, ses_json_writer *w)
{
    ses_json_put_key(w, "truncation");
    if (s->truncate) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "direction", sides[s->truncate_left]);
        ses_json_member_int(w, "max_length", s->max_length);
        ses_json_member_string(w, "strategy", strategies[s->strategy - SES_TRUNCATE_LONGEST_FIRST]);
        ses_json_member_int(w, "stride", s->stride);
        ses_json_end_object(w);
    } else {
        ses_json_put_null(w);
    }
    ses_json_put_key(w, "padding");
    if (!s->pad) {
        ses_json_put_null(w);
        return;
    }
    ses_json_begin_object(w);
    ses_json_put_key(w, "strategy");
    if (s->pad_fixed >= 0) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "Fixed", s->pad_fixed);
        ses_json_end_object(w);
    } else {
        ses_json_put_string(w, "BatchLongest");
    }
    ses_json_member_string(w, "direction", sides[s->pad_left]);
    ses_json_put_key(w, "pad_to_multiple_of");
    if (s->pad_multiple)
        ses_json_put_int(w, s->pad_multiple);
    else
        ses_json_put_null(w);
    ses_json_member_int(w, "pad_id", s->pad_id);
    ses_json_member_int(w, "pad_type_id", s->pad_type);
    ses_json_member_stringn(w, "pad_token", s->pad_token.p, s->pad_token.n);
    ses_json_end_object(w);
}

/* ---- opening ---- */

static bool open_stages(ses_tokenizer *t, const ses_json *root, ses_err *e)
{
    for (int kind = 0; kind < SES_STAGE_KINDS; kind++) {
        ses_stage_instance *step = &t->stage[kind];
        if (!ses_stage_instance_open(step, (ses_stage_kind)kind, ses_json_get(root, stage_key[kind]), &t->mem,
                                     e))
            return ses_wrap(e, "%s", stage_key[kind]);
        t->steps[kind] = (ses_stage_list){ step, step->stage != NULL };
        if (step->stage && step->stage->steps)
            t->steps[kind].step = step->stage->steps(step->self, &t->steps[kind].n);
    }
    t->model = t->stage[SES_MODEL_STAGE];
    if (!t->model.stage) return ses_fail(e, SES_EFORMAT, "key \"model\" is missing");
    return true;
}

/* Prepend a Lowercase normalizer, unless the file has one. Saving still writes the file's own normalizers. */
static bool prepend_lowercase(ses_tokenizer *t, ses_err *e)
{
    ses_stage_list *norm = &t->steps[SES_NORMALIZER];
    for (size_t i = 0; i < norm->n; i++)
        if (norm->step[i].stage == &ses_stage_norm_lowercase) return true;
    ses_stage_instance *step = ses_arena_array(&t->mem, norm->n + 1, sizeof *step, e);
    if (!step) return false;
    step[0].stage = &ses_stage_norm_lowercase;
    step[0].self = step[0].stage->open(NULL, &t->mem, e);
    if (norm->n) memcpy(step + 1, norm->step, norm->n * sizeof *step);
    *norm = (ses_stage_list){ step, norm->n + 1 };
    return step[0].self != NULL;
}

static const ses_template_item default_template[] = { { .kind = SES_TEMPLATE_A, .id = -1 },
                                                      { .kind = SES_TEMPLATE_B, .id = -1, .type_id = 1 } };

/* A sequence may contain several post-processors, but only one may add special tokens. */
static bool choose_post_template(ses_tokenizer *t, ses_err *e)
{
    const ses_stage_list *post = &t->steps[SES_POST_PROCESSOR];
    const ses_stage_instance *with = NULL;
    for (size_t i = 0; i < post->n; i++) {
        const ses_stage *stage = post->step[i].stage;
        if (stage->post_template && with)
            return ses_fail(e, SES_EUNSUPPORTED, "post_processor: %s and %s cannot both add special tokens",
                            with->stage->type, stage->type);
        if (stage->post_template) with = &post->step[i];
    }
    for (int pair = 0; pair < 2; pair++) {
        t->post_template[pair] = with ? with->stage->post_template(with->self, pair)
                                      : (ses_post_template){ default_template, pair ? 2 : 1, false };
        for (size_t i = 0; i < t->post_template[pair].n; i++) {
            const ses_template_item *slot = &t->post_template[pair].item[i];
            size_t n;
            if (slot->kind == SES_TEMPLATE_SPECIAL && !ses_tokenizer_id_to_token(t, slot->id, &n))
                return ses_fail(e, SES_EFORMAT, "post_processor: id %d is not in the vocabulary of %lld",
                                slot->id, (long long)t->vocab_size);
        }
    }
    return true;
}

static bool choose_offset_trimming(ses_tokenizer *t, ses_err *e)
{
    const ses_stage_list *post = &t->steps[SES_POST_PROCESSOR];
    t->trim_prefix = ses_arena_array(&t->mem, post->n, sizeof *t->trim_prefix, e);
    for (size_t i = 0; t->trim_prefix && i < post->n; i++) {
        const ses_stage_instance *s = &post->step[i];
        t->n_trims +=
            s->stage->trims_offsets && s->stage->trims_offsets(s->self, &t->trim_prefix[t->n_trims]);
    }
    if (!t->trim_prefix || !t->n_trims) return t->trim_prefix != NULL;
    t->margins = ses_arena_array(&t->mem, (size_t)t->vocab_size, sizeof *t->margins, e);
    for (int64_t id = 0; t->margins && id < t->vocab_size; id++) {
        size_t n = 0;
        const char *token = t->model.stage->token(t->model.self, (int32_t)id, &n);
        if (token) t->margins[id] = ses_space_margins_of(token, n);
    }
    return t->margins != NULL;
}

static ses_isa best_isa(void)
{
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return SES_ISA_AVX512;
    if (__builtin_cpu_supports("avx2")) return SES_ISA_AVX2;
#endif
    return SES_ISA_REF;
}

static bool choose_fast_path(ses_tokenizer *t, ses_err *e)
{
    t->isa = best_isa();
    for (size_t i = 0; fast_paths[i] && !t->fast_path; i++) {
        if (!fast_paths[i]->open(t, t->isa, &t->mem, &t->fast_path_self, e)) return false;
        if (t->fast_path_self) t->fast_path = fast_paths[i];
    }
    return true;
}

static ses_tokenizer *from_json_value(const ses_json *root, bool lower, ses_err *e)
{
    ses_tokenizer *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    size_t n = 0;
    const char *version = ses_json_string(ses_json_get(root, "version"), &n);
    if (ses_json_type_of(root) != SES_JSON_OBJECT) {
        ses_fail(e, SES_EFORMAT, "a tokenizer must be a JSON object");
        goto fail;
    }
    if (version && !ses_equal(version, n, "1.0")) {
        ses_fail(e, SES_EUNSUPPORTED, "unsupported version \"%s\", expected \"1.0\"",
                 ses_quoted_of(version, n).s);
        goto fail;
    }
    if (!open_stages(t, root, e) || (lower && !prepend_lowercase(t, e))) goto fail;
    if (!read_truncation(&t->stored, ses_json_get(root, "truncation"), e)) {
        ses_wrap(e, "truncation");
        goto fail;
    }
    if (!read_padding(&t->stored, ses_json_get(root, "padding"), &t->mem, e)) {
        ses_wrap(e, "padding");
        goto fail;
    }
    if (!ses_added_open(&t->added, ses_json_get(root, "added_tokens"), t, &t->mem, e)) {
        ses_wrap(e, "added_tokens");
        goto fail;
    }
    t->vocab_size = t->model.stage->size(t->model.self);
    if (t->added.n_ids > t->vocab_size) t->vocab_size = t->added.n_ids;
    if (!choose_post_template(t, e) || !choose_offset_trimming(t, e) || !choose_fast_path(t, e)) goto fail;
    return t;
fail:
    ses_tokenizer_free(t);
    return NULL;
}

static ses_tokenizer *from_text(const char *text, size_t n, bool lower, ses_err *e)
{
    ses_json_doc *doc = ses_json_parse(text, n, e);
    ses_tokenizer *t = doc ? from_json_value(ses_json_root(doc), lower, e) : NULL;
    ses_json_free(doc);
    return t;
}

ses_tokenizer *ses_tokenizer_from_json(const char *text, size_t n, ses_err *e)
{
    return from_text(text, n, false, e);
}

static ses_tokenizer *open_path(const char *path, bool exact, bool lower, ses_err *e)
{
    size_t n;
    char *text = ses_tokenizer_read_json(path, exact, &n, e);
    ses_tokenizer *t = text ? from_text(text, n, lower, e) : NULL;
    if (text && !t) {
        char *in = ses_path_is_dir(path) ? ses_path_join(path, "tokenizer.json", NULL) : NULL;
        ses_wrap(e, "%s", in && ses_path_exists(in) ? in : path);
        ses_free(in);
    }
    ses_free(text);
    return t;
}

/* The format of a file of weights or of another program replaces the position in it. */
static void explain_file(const char *path, ses_err *e)
{
    const ses_file_kind *kind = e && e->code == SES_ENOMEM ? NULL : ses_file_kind_at(path);
    if (!kind || kind->role == SES_FILE_TEXT) return;
    ses_err_clear(e);
    ses_fail_not_model_folder(path, e);
}

ses_tokenizer *ses_tokenizer_open(const char *path, ses_err *e)
{
    return ses_tokenizer_open_lower(path, false, e);
}

ses_tokenizer *ses_tokenizer_open_lower(const char *path, bool lower, ses_err *e)
{
    char *home = ses_tokenizer_home(path, NULL, e);
    ses_tokenizer *t = home ? open_path(home, true, lower, e) : NULL;
    if (!t) ses_hub_explain(home, e);
    if (!t && home) explain_file(home, e);
    ses_free(home);
    return t;
}

bool ses_tokenizer_open_target(const char *path, ses_tokenizer **out, ses_err *e)
{
    size_t n;
    char *home = ses_tokenizer_home(path, NULL, e),
         *file = home ? ses_path_join(home, "target.spm", e) : NULL;
    bool two = file && ses_path_is_dir(home) && ses_path_exists(file);
    char *text = two ? ses_tokenizer_read_target_json(home, &n, e) : NULL;
    *out = text ? from_text(text, n, false, e) : NULL;
    if (text && !*out) ses_wrap(e, "%s", file);
    bool ok = *out || (file && !two);
    ses_free(text);
    ses_free(file);
    ses_free(home);
    return ok;
}

bool ses_tokenizer_convert(const char *path, const char *out, bool overwrite, ses_err *e)
{
    char *home = ses_tokenizer_home(path, NULL, e);
    ses_tokenizer *t = home ? open_path(home, false, false, e) : NULL;
    ses_free(home);
    bool ok = t && ses_tokenizer_save(t, out, overwrite, e);
    ses_tokenizer_free(t);
    return ok;
}

void ses_tokenizer_free(ses_tokenizer *t)
{
    if (!t) return;
    if (t->fast_path && t->fast_path->close) t->fast_path->close(t->fast_path_self);
    ses_added_close(&t->added);
    for (int kind = 0; kind < SES_STAGE_KINDS; kind++) ses_stage_instance_close(&t->stage[kind]);
    ses_arena_free(&t->mem);
    ses_free(t);
}

/* ---- lookup ---- */

int64_t ses_tokenizer_vocab_size(const ses_tokenizer *t) { return t->vocab_size; }

const char *ses_tokenizer_id_to_token(const ses_tokenizer *t, int32_t id, size_t *n)
{
    const ses_added_token *a = ses_added_by_id(&t->added, id);
    if (!a) return t->model.stage->token(t->model.self, id, n);
    *n = a->normalized_content.n;
    return a->normalized_content.p;
}

int32_t ses_tokenizer_token_to_id(const ses_tokenizer *t, const char *token, size_t n)
{
    const ses_added_token *a = ses_added_by_name(&t->added, token, n);
    return a ? a->id : t->model.stage->id(t->model.self, token, n);
}

/* ---- saving ---- */

void ses_tokenizer_put(const ses_tokenizer *t, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "version", "1.0");
    save_limits(&t->stored, w);
    ses_json_put_key(w, "added_tokens");
    ses_added_save(&t->added, w);
    static const ses_stage_kind order[] = { SES_NORMALIZER, SES_PRE_TOKENIZER, SES_POST_PROCESSOR,
                                            SES_DECODER, SES_MODEL_STAGE };
    for (size_t i = 0; i < SES_LEN(order); i++) {
        ses_json_put_key(w, stage_key[order[i]]);
        ses_stage_instance_save(&t->stage[order[i]], w);
    }
    ses_json_end_object(w);
}

bool ses_tokenizer_save(const ses_tokenizer *t, const char *path, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_tokenizer_put(t, w);
    return ses_json_writer_save(w, NULL, path, overwrite, e);
}
