/* The table of all stages, opening a stage from its JSON settings, and readers for single settings. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "stage.h"

#include <string.h>

static const ses_stage *const table[] = {
#define SES_STAGE(name) &ses_stage_##name,
#include "stages.def"
#undef SES_STAGE
};

static const char *const kind_name[SES_STAGE_KINDS] = { "normalizer", "pre_tokenizer", "model",
                                                        "post_processor", "decoder" };

static const ses_stage *find(ses_stage_kind kind, const char *type, size_t n)
{
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (table[i]->kind == kind && strlen(table[i]->type) == n && !memcmp(table[i]->type, type, n))
            return table[i];
    return NULL;
}

/* Files written before 2020 have no "type" key in the model object; infer the type from its other keys. */
static const char *guess_model(const ses_json *settings)
{
    if (ses_json_get(settings, "continuing_subword_prefix") && !ses_json_get(settings, "merges"))
        return "WordPiece";
    if (ses_json_get(settings, "merges")) return "BPE";
    if (ses_json_get(settings, "unk_id")) return "Unigram";
    return "WordLevel";
}

bool ses_stage_instance_open(ses_stage_instance *step, ses_stage_kind kind, const ses_json *settings,
                             ses_arena *mem, ses_err *e)
{
    *step = (ses_stage_instance){ 0 };
    ses_json_type json = ses_json_type_of(settings);
    if (!settings || json == SES_JSON_NULL) return true;
    if (json != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "must be an object, not %s", ses_json_type_name(json));
    size_t n = 0;
    const char *type = ses_json_string(ses_json_get(settings, "type"), &n);
    if (!type && kind == SES_MODEL_STAGE) type = guess_model(settings), n = strlen(type);
    if (!type) return ses_fail(e, SES_EFORMAT, "key \"type\" is missing");
    const ses_stage *stage = find(kind, type, n);
    if (!stage)
        return ses_fail(e, SES_EUNSUPPORTED, "unknown %s type \"%s\"", kind_name[kind],
                        ses_quoted_of(type, n).s);
    step->self = stage->open(settings, mem, e);
    if (!step->self) return ses_wrap(e, "%s", stage->type);
    step->stage = stage;
    return true;
}

void ses_stage_instance_close(ses_stage_instance *step)
{
    if (step->stage && step->stage->close) step->stage->close(step->self);
    *step = (ses_stage_instance){ 0 };
}

void ses_stage_instance_save(const ses_stage_instance *step, ses_json_writer *w)
{
    if (!step->stage) {
        ses_json_put_null(w);
        return;
    }
    ses_json_begin_object(w);
    ses_json_member_string(w, "type", step->stage->type);
    if (step->stage->save) step->stage->save(step->self, w);
    ses_json_end_object(w);
}

bool ses_setting_absent(const ses_json *settings, const char *key)
{
    const ses_json *v = ses_json_get(settings, key);
    return !v || ses_json_type_of(v) == SES_JSON_NULL;
}

bool ses_setting_bool(const ses_json *settings, const char *key, bool def, bool *out, ses_err *e)
{
    *out = def;
    if (ses_setting_absent(settings, key) || ses_json_bool(ses_json_get(settings, key), out)) return true;
    return ses_json_wrong_type(key, ses_json_get(settings, key), "true or false", e);
}

bool ses_setting_int(const ses_json *settings, const char *key, int64_t def, int64_t min, int64_t max,
                     int64_t *out, ses_err *e)
{
    *out = def;
    if (ses_setting_absent(settings, key)) return true;
    if (!ses_json_int(ses_json_get(settings, key), out))
        return ses_json_wrong_type(key, ses_json_get(settings, key), "an integer", e);
    if (*out >= min && *out <= max) return true;
    return ses_fail(e, SES_EFORMAT, "key \"%s\" is %lld, must be from %lld to %lld", key, (long long)*out,
                    (long long)min, (long long)max);
}

bool ses_setting_string(const ses_json *settings, const char *key, const char *def, ses_arena *mem,
                        ses_string *out, ses_err *e)
{
    size_t n = def ? strlen(def) : 0;
    const char *s = def;
    if (!ses_setting_absent(settings, key)) {
        s = ses_json_string(ses_json_get(settings, key), &n);
        if (!s) return ses_json_wrong_type(key, ses_json_get(settings, key), "a string", e);
    }
    if (!s) return ses_fail(e, SES_EFORMAT, "key \"%s\" is missing", key);
    out->p = ses_arena_strndup(mem, s, n, e);
    out->n = n;
    return out->p != NULL;
}
