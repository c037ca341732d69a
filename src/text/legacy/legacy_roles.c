/* Special tokens and post-processors of the legacy families. */
#include "base/str.h"
#include "legacy_variants.h"

#include <string.h>

static const char *const role_name[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token" };

static const char *default_of(const ses_legacy_roles *r, int i)
{
    const char *const def[] = { r->bos, r->eos, r->unk, r->sep, r->pad, r->cls, r->mask };
    return def[i];
}

bool ses_legacy_write_roles(ses_legacy_converter *o, const ses_legacy_roles *r, const char *also, ses_err *e)
{
    for (int i = 0; i < 7; i++)
        if (!ses_legacy_add_role(o, role_name[i], default_of(r, i), i == 6 && r->mask_lstrip, e))
            return false;
    return ses_legacy_add_special(o, also, e) && ses_legacy_add_listed(o, e) && ses_legacy_write_tokens(o, e);
}

/* Replace role letters, and L for the language, in a template by tokens. */
static bool fill_template(ses_legacy_converter *o, const ses_legacy_roles *r, const char *form, ses_buf *out,
                          ses_err *e)
{
    static const char letter[] = "BEUSPCM";
    for (const char *p = form; *p; p++) {
        const char *at = strchr(letter, *p);
        bool alone = (p == form || p[-1] == ' ') && (!p[1] || p[1] == ' ' || p[1] == ':');
        if (alone && *p == 'L' && o->lang.p) {
            ses_buf_append(out, o->lang.p, o->lang.n);
            continue;
        }
        if (!at || !alone) {
            ses_buf_put(out, *p);
            continue;
        }
        int i = (int)(at - letter);
        ses_string s = ses_legacy_role_token(o, role_name[i], default_of(r, i));
        if (!s.p || memchr(s.p, ' ', s.n))
            return ses_fail(e, SES_EFORMAT, "%s: must be a token without spaces", role_name[i]);
        ses_buf_append(out, s.p, s.n);
    }
    return ses_buf_ok(out, e);
}

static void put_named(ses_legacy_converter *o, const char *key, ses_string s)
{
    ses_json_member_array(o->w, key);
    ses_json_put_stringn(o->w, s.p, s.n);
    ses_json_put_int(o->w, ses_legacy_token_id(o, s));
    ses_json_end_array(o->w);
}

static bool put_roberta(ses_legacy_converter *o, const ses_legacy_roles *r, ses_err *e)
{
    ses_string sep = ses_legacy_role_token(o, "sep_token", r->sep),
               cls = ses_legacy_role_token(o, "cls_token", r->cls);
    if (!sep.p || !cls.p || ses_legacy_token_id(o, sep) < 0 || ses_legacy_token_id(o, cls) < 0)
        return ses_fail(e, SES_EFORMAT, "sep_token and cls_token are required");
    ses_json_member_object(o->w, "post_processor");
    ses_json_member_string(o->w, "type", "RobertaProcessing");
    put_named(o, "sep", sep);
    put_named(o, "cls", cls);
    ses_json_member_bool(o->w, "trim_offsets", ses_legacy_get_bool(o, "trim_offsets", true));
    ses_json_member_bool(o->w, "add_prefix_space", ses_legacy_get_bool(o, "add_prefix_space", false));
    ses_json_end_object(o->w);
    return true;
}

bool ses_legacy_write_post(ses_legacy_converter *o, const ses_legacy_roles *r, ses_err *e)
{
    const char *single = r->single, *pair = r->pair;
    if (r->post == SES_LEGACY_POST_ROBERTA) return put_roberta(o, r, e);
    if (r->post == SES_LEGACY_POST_BOS && ses_legacy_get_bool(o, "add_bos_token", false)) {
        single = "B $A", pair = "B $A $B:1";
    } else if (r->post == SES_LEGACY_POST_NONE || r->post == SES_LEGACY_POST_BOS) {
        single = "$A", pair = "$A $B:1";
    }
    ses_buf one = { 0 }, two = { 0 };
    bool ok = fill_template(o, r, single, &one, e) && fill_template(o, r, pair, &two, e) &&
              ses_legacy_put_template(o, one.data, two.data, e);
    ses_buf_free(&one);
    ses_buf_free(&two);
    return ok;
}
