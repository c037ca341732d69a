/* RobertaProcessing: <s> A </s> and <s> A </s> </s> B </s>, all with type id 0; excludes spaces from token
 * offsets. */
#include "text/stage/shared/named_id.h"

typedef struct roberta {
    ses_named_id sep, cls;
    ses_template_item single[3], pair[6];
    bool trim, prefix_space;
} roberta;

bool ses_named_id_read(ses_named_id *n, const ses_json *settings, const char *key, ses_arena *mem, ses_err *e)
{
    const ses_json *v = ses_json_get(settings, key);
    size_t len = 0;
    int64_t id;
    const char *token = ses_json_string(ses_json_at(v, 0), &len);
    if (ses_json_type_of(v) != SES_JSON_ARRAY || ses_json_len(v) != 2 || !token ||
        !ses_json_int(ses_json_at(v, 1), &id) || id < 0 || id > INT32_MAX)
        return ses_fail(e, SES_EFORMAT, "key \"%s\" must be a pair of token and id", key);
    n->id = (int32_t)id;
    n->token = (ses_string){ ses_arena_strndup(mem, token, len, e), len };
    return n->token.p != NULL;
}

void ses_named_id_save(const ses_named_id *n, const char *key, ses_json_writer *w)
{
    ses_json_member_array(w, key);
    ses_json_put_stringn(w, n->token.p, n->token.n);
    ses_json_put_int(w, n->id);
    ses_json_end_array(w);
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    roberta *r = ses_arena_array(mem, 1, sizeof *r, e);
    if (!r || !ses_named_id_read(&r->sep, settings, "sep", mem, e) ||
        !ses_named_id_read(&r->cls, settings, "cls", mem, e) ||
        !ses_setting_bool(settings, "trim_offsets", true, &r->trim, e) ||
        !ses_setting_bool(settings, "add_prefix_space", true, &r->prefix_space, e))
        return NULL;
    ses_template_item cls = { SES_TEMPLATE_SPECIAL, r->cls.id, 0, r->cls.token };
    ses_template_item sep = { SES_TEMPLATE_SPECIAL, r->sep.id, 0, r->sep.token };
    r->single[0] = r->pair[0] = cls;
    r->single[1] = r->pair[1] = (ses_template_item){ .kind = SES_TEMPLATE_A, .id = -1 };
    r->single[2] = r->pair[2] = r->pair[3] = r->pair[5] = sep;
    r->pair[4] = (ses_template_item){ .kind = SES_TEMPLATE_B, .id = -1 };
    return r;
}

static void save(const void *self, ses_json_writer *w)
{
    const roberta *r = self;
    ses_named_id_save(&r->sep, "sep", w);
    ses_named_id_save(&r->cls, "cls", w);
    ses_json_member_bool(w, "trim_offsets", r->trim);
    ses_json_member_bool(w, "add_prefix_space", r->prefix_space);
}

static ses_post_template post_template(const void *self, bool pair)
{
    const roberta *r = self;
    return (ses_post_template){ .item = pair ? r->pair : r->single,
                                .n = pair ? 6 : 3,
                                .types_in_overflow = true };
}

static bool trims_offsets(const void *self, bool *prefix_space)
{
    const roberta *r = self;
    *prefix_space = r->prefix_space;
    return r->trim;
}

const ses_stage ses_stage_post_roberta = {
    .type = "RobertaProcessing",
    .kind = SES_POST_PROCESSOR,
    .open = open,
    .save = save,
    .post_template = post_template,
    .trims_offsets = trims_offsets,
};
