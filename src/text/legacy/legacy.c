/* Reads the configuration files of a legacy tokenizer folder, and writes the parts of tokenizer.json that
 * all families share. */
#include "legacy.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "folder/model_folder.h"
#include "text/tokenizer_files.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SMALL = 64 << 20, MAX_FILE = 512 << 20 };

/* ---- files ---- */

/* The name under which the folder has a file; NULL: it has none. */
static const char *name_in_folder(const ses_legacy_converter *o, const char *name)
{
    const char *other;
    if (ses_folder_has(o->dir, name)) return name;
    for (size_t i = 0; (other = ses_tokenizer_other_name(name, i)); i++)
        if (ses_folder_has(o->dir, other)) return other;
    return NULL;
}

bool ses_legacy_has_file(const ses_legacy_converter *o, const char *name)
{
    return name_in_folder(o, name) != NULL;
}

/* Path of a file in the folder. NULL if it does not exist, with an error that names all missing files. */
static char *path_of(const ses_legacy_converter *o, const char *name, ses_err *e)
{
    const char *actual = o->file ? name : name_in_folder(o, name);
    if (actual) return ses_path_join(o->dir, actual, e);
    ses_fail(e, SES_EIO, "%s: neither tokenizer.json nor %s found", o->dir, name);
    return NULL;
}

char *ses_legacy_read_file(const ses_legacy_converter *o, const char *name, size_t *n, ses_err *e)
{
    char *path = path_of(o, name, e);
    char *text = path ? ses_file_read(path, MAX_FILE, n, e) : NULL;
    ses_free(path);
    return text;
}

bool ses_legacy_open(ses_legacy_converter *o, const char *dir, ses_err *e)
{
    static const char *const name[SES_LEGACY_DOCS] = { "config.json", "tokenizer_config.json",
                                                       "special_tokens_map.json", "added_tokens.json" };
    const ses_json *root[SES_LEGACY_DOCS] = { NULL };
    *o = (ses_legacy_converter){ .dir = dir };
    for (int i = 0; i < SES_LEGACY_DOCS; i++) {
        if (!ses_legacy_has_file(o, name[i])) continue;
        char *path = ses_path_join(dir, name[i], e);
        o->doc[i] = path ? ses_json_load(path, MAX_SMALL, e) : NULL;
        root[i] = o->doc[i] ? ses_json_root(o->doc[i]) : NULL;
        if (root[i] && ses_json_type_of(root[i]) != SES_JSON_OBJECT) {
            ses_fail(e, SES_EFORMAT, "%s: must be an object", path);
            root[i] = NULL;
        }
        ses_free(path);
        if (!root[i]) return false;
    }
    o->config = root[0], o->settings = root[1], o->special = root[2], o->added = root[3];
    return true;
}

void ses_legacy_free(ses_legacy_converter *o)
{
    for (int i = 0; i < SES_LEGACY_DOCS; i++) ses_json_free(o->doc[i]);
    ses_json_writer_free(o->w);
    ses_strmap_free(&o->by_name);
    ses_free(o->token);
    ses_arena_free(&o->mem);
    *o = (ses_legacy_converter){ 0 };
}

/* ---- settings ---- */

bool ses_legacy_get_bool(const ses_legacy_converter *o, const char *key, bool def)
{
    bool x;
    return ses_json_bool(ses_json_get(o->settings, key), &x) ? x : def;
}

int64_t ses_legacy_get_int(const ses_legacy_converter *o, const char *key, int64_t def)
{
    int64_t x;
    return ses_json_int(ses_json_get(o->settings, key), &x) ? x : def;
}

static const ses_json *role_value(const ses_legacy_converter *o, const char *role)
{
    const ses_json *v = ses_json_get(o->special, role);
    return v ? v : ses_json_get(o->settings, role);
}

/* A token is written as a string, or as an object with content and flags. */
static ses_string content_of(const ses_json *v)
{
    ses_string s = { NULL, 0 };
    if (ses_json_type_of(v) == SES_JSON_OBJECT) v = ses_json_get(v, "content");
    s.p = ses_json_string(v, &s.n);
    return s;
}

ses_string ses_legacy_role_token(const ses_legacy_converter *o, const char *role, const char *def)
{
    const ses_json *v = role_value(o, role);
    if (v && ses_json_type_of(v) == SES_JSON_NULL) return (ses_string){ NULL, 0 };
    ses_string s = content_of(v);
    if (!s.p && def) s = (ses_string){ def, strlen(def) };
    return s;
}

/* ---- writing ---- */

bool ses_legacy_begin_json(ses_legacy_converter *o, ses_err *e)
{
    o->w = ses_json_writer_new(-1, e);
    if (!o->w) return false;
    ses_json_begin_object(o->w);
    ses_json_member_string(o->w, "version", "1.0");
    return ses_legacy_put_json(o, "truncation", "null", e) && ses_legacy_put_json(o, "padding", "null", e);
}

bool ses_legacy_put_json(ses_legacy_converter *o, const char *key, const char *json, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(json, strlen(json), e);
    if (!d) return false;
    if (key) ses_json_put_key(o->w, key);
    ses_json_put_value(o->w, ses_json_root(d));
    ses_json_free(d);
    return true;
}

void ses_legacy_end_json(ses_legacy_converter *o) { ses_json_end_object(o->w); }

void ses_legacy_begin_sequence(ses_legacy_converter *o, const char *key, const char *stages)
{
    ses_json_member_object(o->w, key);
    ses_json_member_string(o->w, "type", "Sequence");
    ses_json_member_array(o->w, stages);
}

void ses_legacy_end_sequence(ses_legacy_converter *o)
{
    ses_json_end_array(o->w);
    ses_json_end_object(o->w);
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

/* The next item of a template: its name and type id. */
static const char *next_word(const char *p, ses_string *name, int *type)
{
    p += strspn(p, " ");
    size_t n = strcspn(p, " ");
    *type = 0;
    *name = (ses_string){ p, n };
    if (n > 2 && p[n - 2] == ':') *type = p[n - 1] - '0', name->n -= 2;
    return n ? p + n : NULL;
}

static void put_items(ses_legacy_converter *o, const char *template)
{
    ses_string name;
    int type;
    ses_json_begin_array(o->w);
    while ((template = next_word(template, &name, &type))) {
        bool sequence = *name.p == '$';
        ses_json_begin_object(o->w);
        ses_json_member_object(o->w, sequence ? "Sequence" : "SpecialToken");
        ses_json_member_stringn(o->w, "id", name.p + sequence, name.n - sequence);
        ses_json_member_int(o->w, "type_id", type);
        ses_json_end_object(o->w);
        ses_json_end_object(o->w);
    }
    ses_json_end_array(o->w);
}

static bool put_specials(ses_legacy_converter *o, const char *pair, ses_err *e)
{
    ses_string seen[16], name;
    size_t n = 0;
    int type;
    ses_json_member_object(o->w, "special_tokens");
    while ((pair = next_word(pair, &name, &type))) {
        size_t i = 0;
        while (i < n && !same(seen[i], name)) i++;
        if (*name.p == '$' || i < n) continue;
        int64_t id = ses_legacy_token_id(o, name);
        if (id < 0 || n == SES_LEN(seen))
            return ses_fail(e, SES_EFORMAT, "\"%s\" is not in the vocabulary",
                            ses_quoted_of(name.p, name.n).s);
        seen[n++] = name;
        ses_json_put_keyn(o->w, name.p, name.n);
        ses_json_begin_object(o->w);
        ses_json_member_stringn(o->w, "id", name.p, name.n);
        ses_json_member_array(o->w, "ids");
        ses_json_put_int(o->w, id);
        ses_json_end_array(o->w);
        ses_json_member_array(o->w, "tokens");
        ses_json_put_stringn(o->w, name.p, name.n);
        ses_json_end_array(o->w);
        ses_json_end_object(o->w);
    }
    ses_json_end_object(o->w);
    return true;
}

bool ses_legacy_put_template(ses_legacy_converter *o, const char *single, const char *pair, ses_err *e)
{
    ses_json_member_object(o->w, "post_processor");
    ses_json_member_string(o->w, "type", "TemplateProcessing");
    ses_json_put_key(o->w, "single");
    put_items(o, single);
    ses_json_put_key(o->w, "pair");
    put_items(o, pair);
    bool ok = put_specials(o, pair, e);
    ses_json_end_object(o->w);
    return ok;
}

/* ---- vocab.json, merges.txt ---- */

bool ses_legacy_read_vocab(ses_legacy_converter *o, const char *name, ses_err *e)
{
    char *path = path_of(o, name, e);
    ses_json_doc *d = path ? ses_json_load(path, MAX_FILE, e) : NULL;
    bool ok = d && (ses_vocab_open(&o->vocab, ses_json_root(d), &o->mem, e) || ses_wrap(e, "%s", path));
    ses_json_free(d);
    ses_free(path);
    return ok;
}

/* White space as in Python: Unicode white space and four ASCII separators. */
static bool is_white_space(const char *p, const char *end, size_t *step)
{
    uint32_t c;
    *step = ses_utf8_decode(p, (size_t)(end - p), &c);
    if (!*step) return *step = 1, false;
    return ses_cp_is(c, SES_CP_SPACE) || (c >= 0x1c && c <= 0x1f);
}

/* Split a line into words; returns their number, with the first two in pair. */
static size_t split_words(const char *p, const char *end, ses_string pair[2])
{
    size_t n = 0, step;
    while (p < end) {
        const char *start = p;
        while (p < end && !is_white_space(p, end, &step)) p += step;
        if (p > start && n < 2) pair[n] = (ses_string){ start, (size_t)(p - start) };
        n += p > start;
        if (p < end) p += step;
    }
    return n;
}

static bool split_strictly(const char *p, const char *end, ses_string pair[2])
{
    const char *space = memchr(p, ' ', (size_t)(end - p));
    if (!space || memchr(space + 1, ' ', (size_t)(end - space - 1))) return false;
    pair[0] = (ses_string){ p, (size_t)(space - p) };
    pair[1] = (ses_string){ space + 1, (size_t)(end - space - 1) };
    return true;
}

static bool add_line(ses_legacy_merges *m, ses_legacy_merge_format lines, const char *p, const char *end,
                     ses_err *e)
{
    if (end > p && end[-1] == '\r') end--;
    if (p == end || (end - p >= 8 && !memcmp(p, "#version", 8))) return true;
    if (lines == SES_LEGACY_MERGES_STRICT) {
        if (!split_strictly(p, end, m->pair[m->n]))
            return ses_fail(e, SES_EFORMAT, "must be two tokens separated by a space");
        m->n++;
        return true;
    }
    size_t words = split_words(p, end, m->pair[m->n]);
    m->n += words == 2 || (words > 2 && lines == SES_LEGACY_MERGES_FIRST_WORDS);
    return true;
}

bool ses_legacy_read_merges(ses_legacy_converter *o, ses_legacy_merge_format lines, ses_legacy_merges *m,
                            ses_err *e)
{
    size_t n, count = 1, line = 0;
    *m = (ses_legacy_merges){ .text = ses_legacy_read_file(o, "merges.txt", &n, e) };
    if (!m->text) return false;
    size_t good = ses_utf8_valid(m->text, n);
    for (size_t i = 0; i < n; i++) count += m->text[i] == '\n';
    m->pair = ses_alloc_array(count, sizeof *m->pair, e);
    bool ok = m->pair && (good == n ||
                          ses_fail(e, SES_EFORMAT, "%s/merges.txt: invalid UTF-8 at byte %zu", o->dir, good));
    for (const char *p = m->text, *stop = m->text + n; ok && p < stop; line++) {
        const char *end = memchr(p, '\n', (size_t)(stop - p));
        if (!end) end = stop;
        ok = add_line(m, lines, p, end, e) || ses_wrap(e, "%s/merges.txt: line %zu", o->dir, line + 1);
        p = end + 1;
    }
    if (!ok) ses_legacy_merges_free(m);
    return ok;
}

void ses_legacy_merges_free(ses_legacy_merges *m)
{
    ses_free(m->text);
    ses_free(m->pair);
    *m = (ses_legacy_merges){ 0 };
}
