/* Reads and saves a pattern of a stage's settings. */
#include "pattern.h"

bool ses_pattern_open(ses_pattern *p, const ses_json *settings, const char *key, ses_arena *mem, ses_err *e)
{
    const ses_json *v = ses_json_get(settings, key);
    p->is_regex = !ses_setting_absent(v, "Regex");
    if (ses_json_type_of(v) != SES_JSON_OBJECT || ses_json_len(v) != 1 ||
        (!p->is_regex && ses_setting_absent(v, "String")))
        return ses_fail(e, SES_EFORMAT, "key \"%s\" must be {\"String\": ...} or {\"Regex\": ...}", key);
    if (!ses_setting_string(v, p->is_regex ? "Regex" : "String", NULL, mem, &p->text, e))
        return ses_wrap(e, "key \"%s\"", key);
    p->regex = p->is_regex ? ses_regex_open(p->text.p, p->text.n, mem, e)
                           : ses_regex_open_literal(p->text.p, p->text.n, mem, e);
    return p->regex || ses_wrap(e, "key \"%s\"", key);
}

void ses_pattern_close(ses_pattern *p) { ses_regex_close(p->regex); }

void ses_pattern_save(const ses_pattern *p, const char *key, ses_json_writer *w)
{
    ses_json_member_object(w, key);
    ses_json_member_stringn(w, p->is_regex ? "Regex" : "String", p->text.p, p->text.n);
    ses_json_end_object(w);
}
