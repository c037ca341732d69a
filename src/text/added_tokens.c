/* Added tokens: found in the raw text before any other stage, or in the normalized text if `normalized` is
 * set. */
#include "base/alloc.h"
#include "base/strmap.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "tokenizer_impl.h"

#include <string.h>

enum { MAX_CONTENT = 4096 }; /* bytes; bounds the time of a failed match */

static bool is_space(uint32_t c) { return ses_cp_is(c, SES_CP_SPACE); }

static bool is_word(uint32_t c) { return ses_cp_is(c, SES_CP_WORD); }

/* ---- pattern matching ---- */

static void matcher_put(ses_matcher *m, const char *p, size_t n, int32_t token)
{
    uint32_t *link = &m->root[(uint8_t)p[0]], at = 0;
    for (size_t i = 0; i < n; i++) {
        at = *link;
        while (at && m->node[at].byte != (uint8_t)p[i]) link = &m->node[at].sibling, at = *link;
        if (!at) {
            at = *link = ++m->n;
            m->node[at] = (ses_trie_node){ .token = -1, .byte = (uint8_t)p[i] };
        }
        link = &m->node[at].child;
    }
    if (m->node[at].token < 0) m->node[at].token = token; /* the first of equal patterns wins */
}

size_t ses_matcher_longest(const ses_matcher *m, const char *text, size_t n, int32_t *token)
{
    size_t best = 0;
    uint32_t at = n ? m->root[(uint8_t)text[0]] : 0;
    for (size_t i = 0; at; at = m->node[at].child) {
        if (i) {
            while (at && m->node[at].byte != (uint8_t)text[i]) at = m->node[at].sibling;
            if (!at) break;
        }
        i++;
        if (m->node[at].token >= 0) best = i, *token = m->node[at].token;
        if (i == n) break;
    }
    return best;
}

static bool put_match(ses_matches *l, size_t begin, size_t end, int32_t token, ses_err *e)
{
    if (begin == end) return true;
    if (!ses_array_reserve(&l->match, &l->cap, l->n + 1, sizeof *l->match, e)) return false;
    l->match[l->n++] = (ses_match){ (uint32_t)begin, (uint32_t)end, token };
    return true;
}

/* The character that ends at text + i; i > 0. */
static uint32_t char_before(const char *text, size_t i)
{
    size_t k = i - 1;
    uint32_t c = 0;
    while (k && ses_utf8_continues(text[k])) k--;
    ses_utf8_decode(text + k, i - k, &c);
    return c;
}

static bool is_single_word(const char *text, size_t n, size_t begin, size_t end)
{
    uint32_t c;
    if (begin && is_word(char_before(text, begin))) return false;
    return end == n || !ses_utf8_decode(text + end, n - end, &c) || !is_word(c);
}

static size_t spaces_before(const char *text, size_t from, size_t i)
{
    while (i > from) {
        size_t k = i - 1;
        uint32_t c = 0;
        while (k > from && ses_utf8_continues(text[k])) k--;
        if (!ses_utf8_decode(text + k, i - k, &c) || !is_space(c)) break;
        i = k;
    }
    return i;
}

static size_t spaces_after(const char *text, size_t n, size_t i)
{
    uint32_t c;
    size_t k;
    while (i < n && (k = ses_utf8_decode(text + i, n - i, &c)) && is_space(c)) i += k;
    return i;
}

/* Same rules as HF Tokenizers. Matches do not overlap, but the white space stripped by one token (lstrip,
 * rstrip) may extend into the next one. A match that violates single_word is skipped as a whole. A token
 * entirely inside stripped white space is an error: it has no position. */
bool ses_added_split(const ses_added *a, const ses_matcher *m, const char *text, size_t n, ses_matches *out,
                     ses_err *e)
{
    size_t done = 0;
    out->n = 0;
    for (size_t i = 0; m->n && i < n;) {
        int32_t token = -1;
        size_t len = m->root[(uint8_t)text[i]] ? ses_matcher_longest(m, text + i, n - i, &token) : 0;
        if (!len) {
            i++;
            continue;
        }
        size_t begin = i, end = i + len;
        i = end;
        const ses_added_token *t = &a->token[token];
        if (t->single_word && !is_single_word(text, n, begin, end)) continue;
        if (t->lstrip && begin > done)
            begin = spaces_before(text, done, begin);
        else if (t->lstrip)
            begin = done;
        if (t->rstrip) end = spaces_after(text, n, end);
        if (begin > end) /* HF Tokenizers panics */
            return ses_fail(
                e, SES_EARG,
                "added token \"%s\" at byte %zu overlaps white space stripped by another added token",
                ses_quoted_of(t->content.p, t->content.n).s, i - len);
        if (done < begin && !put_match(out, done, begin, -1, e)) return false;
        if (!put_match(out, begin, end, token, e)) return false;
        done = end;
    }
    return done >= n || put_match(out, done, n, -1, e);
}

/* ---- list of added tokens ---- */

const ses_added_token *ses_added_by_id(const ses_added *a, int32_t id)
{
    return id >= 0 && id < a->n_ids && a->by_id[id] >= 0 ? &a->token[a->by_id[id]] : NULL;
}

const ses_added_token *ses_added_by_name(const ses_added *a, const char *token, size_t n)
{
    int64_t i;
    return ses_strmap_find(&a->by_name, token, n, &i) ? &a->token[i] : NULL;
}

static bool read_token(ses_added_token *t, const ses_json *v, ses_arena *mem, ses_err *e)
{
    if (ses_json_type_of(v) != SES_JSON_OBJECT) return ses_fail(e, SES_EFORMAT, "must be an object");
    if (!ses_setting_string(v, "content", NULL, mem, &t->content, e)) return false;
    if (t->content.n > MAX_CONTENT)
        return ses_fail(e, SES_EFORMAT, "\"%s\" has %zu bytes (at most %d)",
                        ses_quoted_of(t->content.p, t->content.n).s, t->content.n, MAX_CONTENT);
    return ses_setting_bool(v, "special", false, &t->special, e) &&
           ses_setting_bool(v, "single_word", false, &t->single_word, e) &&
           ses_setting_bool(v, "lstrip", false, &t->lstrip, e) &&
           ses_setting_bool(v, "rstrip", false, &t->rstrip, e) &&
           ses_setting_bool(v, "normalized", !t->special, &t->normalized, e);
}

/* The id in the file is ignored, as in HF Tokenizers: a token gets its id in the model, or the next free
 * id. */
static int32_t assign_id(const ses_tokenizer *t, const ses_added_token *token, int64_t *last)
{
    const ses_stage *model = t->model.stage;
    int32_t id = model->id(t->model.self, token->content.p, token->content.n);
    int64_t count = model->count ? model->count(t->model.self) : model->size(t->model.self);
    if (id < 0) id = (int32_t)(*last >= count ? *last + 1 : count);
    if (id > *last) *last = id;
    return id;
}

static bool read_list(ses_added *a, const ses_json *list, const ses_tokenizer *t, ses_arena *mem, ses_err *e)
{
    int64_t last = -1;
    bool ok = true;
    for (size_t i = 0; ok && i < ses_json_len(list); i++) {
        ses_added_token *token = &a->token[a->n];
        bool fresh = true;
        *token = (ses_added_token){ 0 };
        ok = read_token(token, ses_json_at(list, i), mem, e);
        if (ok && !token->content.n) continue; /* HF Tokenizers ignores it */
        ok = ok &&
             ses_strmap_insert(&a->by_name, token->content.p, token->content.n, (int64_t)a->n, &fresh, e);
        if (ok && !fresh)
            ok = ses_fail(e, SES_EFORMAT, "duplicate token \"%s\"",
                          ses_quoted_of(token->content.p, token->content.n).s);
        token->normalized_content = token->content;
        if (ok)
            token->id = assign_id(t, token, &last);
        else
            ses_wrap(e, "entry %zu", i);
        a->n++;
    }
    a->n_ids = last + 1;
    return ok;
}

/* Run a token's content through the normalizers. */
static bool normalize(const ses_tokenizer *t, ses_added_token *token, ses_arena *mem, ses_err *e)
{
    const ses_stage_list *steps = &t->steps[SES_NORMALIZER];
    ses_text step[2] = { 0 };
    bool ok = ses_text_put(&step[0], token->content.p, token->content.n, (ses_offset){ 0, 0 }, e);
    for (size_t i = 0; ok && i < steps->n; i++) {
        step[1].n = 0;
        ok = steps->step[i].stage->normalize(steps->step[i].self, &step[0], 0, step[0].n, &step[1], e);
        ses_text swap = step[0];
        step[0] = step[1];
        step[1] = swap;
    }
    if (ok && !step[0].n) /* HF Tokenizers matches it everywhere, or panics */
        ok = ses_fail(e, SES_EUNSUPPORTED, "the normalizer reduces token \"%s\" to nothing",
                      ses_quoted_of(token->content.p, token->content.n).s);
    if (ok) {
        token->normalized_content =
            (ses_string){ ses_arena_strndup(mem, step[0].byte, step[0].n, e), step[0].n };
        ok = token->normalized_content.p != NULL;
    }
    ses_text_free(&step[0]);
    ses_text_free(&step[1]);
    return ok;
}

/* The first of several tokens with equal normalized content wins; special tokens come first. */
static bool build_matcher(ses_added *a, ses_matcher *m, bool normalized, ses_arena *mem, ses_err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->token[i].normalized == normalized &&
            !ses_add_size(bytes, a->token[i].normalized_content.n, &bytes))
            return ses_fail(e, SES_ENOMEM, "too many tokens");
    m->node = ses_arena_array(mem, bytes + 1, sizeof *m->node, e);
    for (int special = 1; m->node && special >= 0; special--)
        for (size_t i = 0; i < a->n; i++)
            if (a->token[i].normalized == normalized && a->token[i].special == !!special)
                matcher_put(m, a->token[i].normalized_content.p, a->token[i].normalized_content.n,
                            (int32_t)i);
    return m->node != NULL;
}

bool ses_added_open(ses_added *a, const ses_json *list, const ses_tokenizer *t, ses_arena *mem, ses_err *e)
{
    *a = (ses_added){ 0 };
    ses_json_type type = ses_json_type_of(list);
    if (!list || type == SES_JSON_NULL) return true;
    if (type != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "must be an array, not %s", ses_json_type_name(type));
    a->token = ses_arena_array(mem, ses_json_len(list) + 1, sizeof *a->token, e);
    if (!a->token || !read_list(a, list, t, mem, e)) return false;
    a->by_id = ses_arena_array(mem, (size_t)a->n_ids + 1, sizeof *a->by_id, e);
    if (!a->by_id) return false;
    for (int64_t i = 0; i < a->n_ids; i++) a->by_id[i] = -1;
    for (size_t i = 0; i < a->n; i++) a->by_id[a->token[i].id] = (int32_t)i;
    for (size_t i = 0; i < a->n; i++)
        if (a->token[i].normalized && !normalize(t, &a->token[i], mem, e)) return false;
    return build_matcher(a, &a->raw, false, mem, e) && build_matcher(a, &a->normal, true, mem, e);
}

void ses_added_close(ses_added *a) { ses_strmap_free(&a->by_name); }

void ses_added_save(const ses_added *a, ses_json_writer *w)
{
    ses_json_begin_array(w);
    for (int64_t id = 0; id < a->n_ids; id++) { /* sorted by id, as HF Tokenizers writes them */
        const ses_added_token *t = ses_added_by_id(a, (int32_t)id);
        if (!t) continue;
        ses_json_begin_object(w);
        ses_json_member_int(w, "id", t->id);
        ses_json_member_stringn(w, "content", t->content.p, t->content.n);
        const char *const key[] = { "single_word", "lstrip", "rstrip", "normalized", "special" };
        const bool value[] = { t->single_word, t->lstrip, t->rstrip, t->normalized, t->special };
        for (size_t i = 0; i < SES_LEN(key); i++) { ses_json_member_bool(w, key[i], value[i]); }
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}
