/* TemplateProcessing: a list of special tokens and the sequences A and B, given in the file. */
#include "base/str.h"
#include "text/stage.h"

#include <string.h>

typedef struct special { /* a special token of the template: its name and one or more ids */
    ses_string name;
    int32_t *id;
    ses_string *token;
    size_t n;
} special;

typedef struct piece {
    ses_string name; /* special tokens only */
    int64_t type;
    bool is_special, second;
} piece;

typedef struct side {
    piece *piece;
    size_t n;
    ses_post_template post_template; /* with special tokens resolved to ids */
} side;

typedef struct template_settings {
    special *special;
    size_t n_special;
    side side[2]; /* for one text and for a pair */
} template_settings;

static const char *const side_key[2] = { "single", "pair" };

static bool read_special(special *s, const ses_json *v, const char *name, size_t len, ses_arena *mem,
                         ses_err *e)
{
    s->name = (ses_string){ ses_arena_strndup(mem, name, len, e), len };
    const ses_json *ids = ses_json_get(v, "ids"), *tokens = ses_json_get(v, "tokens");
    if (!s->name.p) return false;
    if (ses_json_type_of(ids) != SES_JSON_ARRAY || ses_json_type_of(tokens) != SES_JSON_ARRAY ||
        ses_json_len(ids) != ses_json_len(tokens))
        return ses_fail(e, SES_EFORMAT, "requires \"ids\" and \"tokens\", arrays of equal length");
    s->n = ses_json_len(ids);
    s->id = ses_arena_array(mem, s->n + 1, sizeof *s->id, e);
    s->token = ses_arena_array(mem, s->n + 1, sizeof *s->token, e);
    if (!s->id || !s->token) return false;
    for (size_t i = 0; i < s->n; i++) {
        int64_t id;
        size_t n = 0;
        const char *token = ses_json_string(ses_json_at(tokens, i), &n);
        if (!ses_json_int(ses_json_at(ids, i), &id) || id < 0 || id > INT32_MAX || !token)
            return ses_fail(e, SES_EFORMAT, "key \"ids\" must contain ids, \"tokens\" strings");
        s->id[i] = (int32_t)id;
        s->token[i] = (ses_string){ ses_arena_strndup(mem, token, n, e), n };
        if (!s->token[i].p) return false;
    }
    return true;
}

static bool read_specials(template_settings *t, const ses_json *v, ses_arena *mem, ses_err *e)
{
    if (v && ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "key \"special_tokens\" must be an object");
    t->special = ses_arena_array(mem, ses_json_len(v) + 1, sizeof *t->special, e);
    if (!t->special) return false;
    for (size_t i = 0; i < ses_json_len(v); i++) {
        size_t n;
        const char *name = ses_json_key(v, i, &n);
        if (!read_special(&t->special[i], ses_json_at(v, i), name, n, mem, e))
            return ses_wrap(e, "special_tokens: \"%s\"", ses_quoted_of(name, n).s);
        t->n_special++;
    }
    return true;
}

static bool read_piece(piece *p, const ses_json *v, ses_arena *mem, ses_err *e)
{
    const ses_json *s = ses_json_get(v, "SpecialToken"), *q = ses_json_get(v, "Sequence");
    if (!s == !q) return ses_fail(e, SES_EFORMAT, "must contain \"SpecialToken\" or \"Sequence\"");
    p->is_special = s != NULL;
    if (!ses_setting_string(s ? s : q, "id", NULL, mem, &p->name, e) ||
        !ses_setting_int(s ? s : q, "type_id", 0, 0, UINT8_MAX, &p->type, e))
        return false;
    p->second = !s && ses_equal(p->name.p, p->name.n, "B");
    if (s || p->second || ses_equal(p->name.p, p->name.n, "A")) return true;
    return ses_fail(e, SES_EFORMAT, "a sequence must be A or B, not \"%s\"",
                    ses_quoted_of(p->name.p, p->name.n).s);
}

static const special *find(const template_settings *t, ses_string name)
{
    for (size_t i = 0; i < t->n_special; i++)
        if (t->special[i].name.n == name.n && !memcmp(t->special[i].name.p, name.p, name.n))
            return &t->special[i];
    return NULL;
}

static bool resolve_template(const template_settings *t, side *s, ses_arena *mem, ses_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const special *x = s->piece[i].is_special ? find(t, s->piece[i].name) : NULL;
        if (s->piece[i].is_special && !x)
            return ses_fail(e, SES_EFORMAT, "special token \"%s\" is not in \"special_tokens\"",
                            ses_quoted_of(s->piece[i].name.p, s->piece[i].name.n).s);
        n += x ? x->n : 1;
    }
    ses_template_item *item = ses_arena_array(mem, n + 1, sizeof *item, e);
    if (!item) return false;
    s->post_template = (ses_post_template){ .item = item, .n = n };
    for (size_t i = 0; i < s->n; i++) {
        const piece *p = &s->piece[i];
        const special *x = p->is_special ? find(t, p->name) : NULL;
        if (!x)
            *item++ = (ses_template_item){ .kind = p->second ? SES_TEMPLATE_B : SES_TEMPLATE_A,
                                           .id = -1,
                                           .type_id = (uint8_t)p->type };
        for (size_t j = 0; x && j < x->n; j++)
            *item++ = (ses_template_item){ SES_TEMPLATE_SPECIAL, x->id[j], (uint8_t)p->type, x->token[j] };
    }
    return true;
}

/* The template for one text must contain A once and not B; the template for a pair must contain both once. */
static bool check_sequences(const side *s, bool pair, ses_err *e)
{
    int count[2] = { 0 };
    for (size_t i = 0; i < s->n; i++)
        if (!s->piece[i].is_special) count[s->piece[i].second]++;
    if (count[0] == 1 && count[1] == (pair ? 1 : 0)) return true;
    return ses_fail(e, SES_EUNSUPPORTED,
                    pair ? "must contain sequences A and B, once each"
                         : "must contain sequence A once and not B");
}

static bool read_side(template_settings *t, bool pair, const ses_json *settings, ses_arena *mem, ses_err *e)
{
    side *s = &t->side[pair];
    const ses_json *list = ses_json_get(settings, side_key[pair]);
    if (ses_json_type_of(list) != SES_JSON_ARRAY) return ses_fail(e, SES_EFORMAT, "must be an array");
    s->piece = ses_arena_array(mem, ses_json_len(list) + 1, sizeof *s->piece, e);
    if (!s->piece) return false;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!read_piece(&s->piece[i], ses_json_at(list, i), mem, e)) return ses_wrap(e, "[%zu]", i);
        s->n++;
    }
    return check_sequences(s, pair, e) && resolve_template(t, s, mem, e);
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    template_settings *t = ses_arena_array(mem, 1, sizeof *t, e);
    if (!t || !read_specials(t, ses_json_get(settings, "special_tokens"), mem, e)) return NULL;
    for (int pair = 0; pair < 2; pair++)
        if (!read_side(t, pair, settings, mem, e)) {
            ses_wrap(e, "%s", side_key[pair]);
            return NULL;
        }
    return t;
}

static void save_side(const side *s, ses_json_writer *w)
{
    ses_json_begin_array(w);
    for (size_t i = 0; i < s->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_object(w, s->piece[i].is_special ? "SpecialToken" : "Sequence");
        ses_json_member_stringn(w, "id", s->piece[i].name.p, s->piece[i].name.n);
        ses_json_member_int(w, "type_id", s->piece[i].type);
        ses_json_end_object(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void save(const void *self, ses_json_writer *w)
{
    const template_settings *t = self;
    for (int pair = 0; pair < 2; pair++) {
        ses_json_put_key(w, side_key[pair]);
        save_side(&t->side[pair], w);
    }
    ses_json_member_object(w, "special_tokens");
    for (size_t i = 0; i < t->n_special; i++) {
        const special *s = &t->special[i];
        ses_json_put_keyn(w, s->name.p, s->name.n);
        ses_json_begin_object(w);
        ses_json_member_stringn(w, "id", s->name.p, s->name.n);
        ses_json_member_array(w, "ids");
        for (size_t j = 0; j < s->n; j++) ses_json_put_int(w, s->id[j]);
        ses_json_end_array(w);
        ses_json_member_array(w, "tokens");
        for (size_t j = 0; j < s->n; j++) ses_json_put_stringn(w, s->token[j].p, s->token[j].n);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

static ses_post_template post_template(const void *self, bool pair)
{
    return ((const template_settings *)self)->side[pair].post_template;
}

const ses_stage ses_stage_post_template = {
    .type = "TemplateProcessing",
    .kind = SES_POST_PROCESSOR,
    .open = open,
    .save = save,
    .post_template = post_template,
};
