/* Stacked embeddings of words: see word_stack.h. */
#include "word_stack.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const ses_word_embedder_kind *const kinds[] = {
#define SES_WORD_EMBEDDER(name) &ses_word_embedder_##name,
#include "word_embedders.def"
#undef SES_WORD_EMBEDDER
};

struct ses_word_stack {
    struct {
        const ses_word_embedder_kind *kind;
        void *self;            /* NULL: trained by the tagger */
        int64_t width, column; /* column: its first one */
    } item[SES_MAX_WORD_EMBEDDERS];
    size_t n;
    int64_t width;
};

void ses_word_stack_free(ses_word_stack *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].self) s->item[i].kind->close(s->item[i].self);
    ses_free(s);
}

static bool fail_unknown(const char *name, size_t n, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        ses_buf_appendf(&list, "%s%s%s%s", i ? ", " : "", kinds[i]->name, kinds[i]->value ? ":" : "",
                        kinds[i]->value ? kinds[i]->value : "");
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUSAGE, "unknown embedding \"%s\"; choose one of %s", ses_quoted_of(name, n).s,
                 list.data);
    ses_buf_free(&list);
    return false;
}

/* Adds an embedding; path NULL: none is given. */
static bool add(ses_word_stack *s, const char *name, size_t n, const char *path, ses_device *dev, ses_err *e)
{
    const ses_word_embedder_kind *k = NULL;
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (ses_equal(name, n, kinds[i]->name)) k = kinds[i];
    if (!k) return fail_unknown(name, n, e);
    if (s->n == SES_MAX_WORD_EMBEDDERS)
        return ses_fail(e, SES_EUSAGE, "more than %d embeddings", SES_MAX_WORD_EMBEDDERS);
    if (k->value && !path)
        return ses_fail(e, SES_EUSAGE, "embedding %s: expected %s:%s", k->name, k->name, k->value);
    if (!k->value && (path || ses_word_stack_has(s, k)))
        return ses_fail(e, SES_EUSAGE, "embedding %s %s", k->name, path ? "has no file" : "is given twice");
    int64_t width = 0;
    void *self = path ? k->open(path, dev, &width, e) : NULL;
    if (path && !self) return ses_wrap(e, "embedding %s", k->name);
    s->item[s->n].kind = k, s->item[s->n].self = self;
    s->item[s->n].width = width, s->item[s->n++].column = s->width;
    s->width += width;
    return true;
}

ses_word_stack *ses_word_stack_parse(const char *list, ses_device *dev, ses_err *e)
{
    ses_word_stack *s = ses_alloc(sizeof *s, e);
    bool ok = s != NULL;
    while (ok && *list) {
        const char *end = strchr(list, ','), *colon = strchr(list, ':');
        size_t n = end ? (size_t)(end - list) : strlen(list);
        bool has_path = colon && (size_t)(colon - list) < n;
        size_t name = has_path ? (size_t)(colon - list) : n;
        char *path = has_path ? ses_strndup(colon + 1, n - name - 1, e) : NULL;
        ok = (!has_path || path) && add(s, list, name, path, dev, e);
        ses_free(path);
        list += end ? n + 1 : n;
    }
    if (ok && s->n) return s;
    if (ok) ses_fail(e, SES_EUSAGE, "no embeddings: give at least one, as --embed static:FILE,char");
    ses_word_stack_free(s);
    return NULL;
}

/* The path of an embedding in a tagger's folder; layers may be NULL. */
static char *item_path(const char *dir, const char *name, const char *layers, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s/%s%s%s", dir, name, layers ? "@" : "", layers ? layers : "");
    if (ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

ses_word_stack *ses_word_stack_open(const char *dir, const ses_json *config, ses_device *dev, bool *is_tagger,
                                    ses_err *e)
{
    const ses_json *list = ses_json_get(config, "embeddings");
    *is_tagger = ses_json_type_of(list) == SES_JSON_ARRAY;
    ses_word_stack *s = *is_tagger ? ses_alloc(sizeof *s, e) : NULL;
    bool ok = s != NULL;
    for (size_t i = 0; ok && i < ses_json_len(list); i++) {
        const ses_json *x = ses_json_at(list, i);
        const char *kind = ses_json_string(ses_json_get(x, "kind"), NULL),
                   *name = ses_json_string(ses_json_get(x, "path"), NULL);
        if (!kind || (name && (strchr(name, '/') || name[0] == '.'))) {
            ok = ses_fail(e, SES_EFORMAT,
                          "\"embeddings\"[%zu]: expected \"kind\" and \"path\", a name in the "
                          "folder",
                          i);
            break;
        }
        char *path = name ? item_path(dir, name, ses_json_string(ses_json_get(x, "layers"), NULL), e) : NULL;
        ok = (!name || path) && add(s, kind, strlen(kind), path, dev, e);
        ses_free(path);
    }
    int64_t width = 0, layer = 0;
    if (ok && ses_json_int(ses_json_get(config, "lm_layer"), &layer) && layer > 0) ses_word_stack_split(s);
    if (ok && ses_json_int(ses_json_get(config, "vector_size"), &width) && width != s->width)
        ok = ses_fail(e, SES_EARG, "the embeddings have %lld columns, \"vector_size\" is %lld",
                      (long long)s->width, (long long)width);
    if (ok) return s;
    if (*is_tagger) ses_wrap(e, "%s", dir);
    ses_word_stack_free(s);
    return NULL;
}

int64_t ses_word_stack_width(const ses_word_stack *s) { return s->width; }

int64_t ses_word_stack_max_bytes(const ses_word_stack *s)
{
    int64_t min = INT64_MAX;
    for (size_t i = 0; i < s->n; i++) {
        const ses_word_embedder_kind *k = s->item[i].kind;
        int64_t max = k->max_bytes ? k->max_bytes(s->item[i].self) : INT64_MAX;
        if (max < min) min = max;
    }
    return min;
}

int64_t ses_word_stack_split(ses_word_stack *s)
{
    int64_t column = 0, before = 0;
    for (int lm = 0; lm < 2; lm++) {
        before = column;
        for (size_t i = 0; i < s->n; i++) {
            if (!s->item[i].self || s->item[i].kind->context_free == lm) continue;
            s->item[i].column = column;
            column += s->item[i].width;
        }
    }
    return column - before;
}

bool ses_word_stack_has(const ses_word_stack *s, const ses_word_embedder_kind *kind)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].kind == kind) return true;
    return false;
}

static void item_name(const ses_word_stack *s, size_t i, char *name, size_t size)
{
    snprintf(name, size, "embedding-%zu-%s", i, s->item[i].kind->name);
}

static int64_t mixed_layers(const ses_word_stack *s, size_t i)
{
    return s->item[i].kind->mixed ? s->item[i].kind->mixed(s->item[i].self) : 0;
}

static void put_mixes(const ses_word_stack *s, ses_json_writer *w)
{
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        int64_t layers = mixed_layers(s, i);
        if (!layers) continue;
        if (!any) ses_json_member_array(w, "vector_mix");
        any = true;
        ses_json_begin_object(w);
        ses_json_member_int(w, "column", s->item[i].column);
        ses_json_member_int(w, "layers", layers);
        ses_json_member_int(w, "size", s->item[i].width / layers);
        ses_json_end_object(w);
    }
    if (any) ses_json_end_array(w);
}

void ses_word_stack_put(const ses_word_stack *s, ses_json_writer *w)
{
    ses_json_member_array(w, "embeddings");
    for (size_t i = 0; i < s->n; i++) {
        char name[64];
        item_name(s, i, name, sizeof name);
        ses_json_begin_object(w);
        ses_json_member_string(w, "kind", s->item[i].kind->name);
        if (s->item[i].self) ses_json_member_string(w, "path", name);
        if (s->item[i].self) ses_json_member_int(w, "size", s->item[i].width);
        const char *layers = s->item[i].kind->layers ? s->item[i].kind->layers(s->item[i].self) : NULL;
        if (layers) ses_json_member_string(w, "layers", layers);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    put_mixes(s, w);
}

bool ses_word_stack_save(const ses_word_stack *s, const char *dir, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++) {
        char name[64];
        item_name(s, i, name, sizeof name);
        if (!s->item[i].self) continue;
        char *path = ses_path_join(dir, name, e);
        ok = path && s->item[i].kind->save(s->item[i].self, path, e);
        ses_free(path);
    }
    return ok;
}

static bool add_chars(const ses_string *word, size_t n, ses_arena *mem, ses_word_features *out, ses_err *e)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++) all += word[i].n < SES_MAX_WORD_BYTES ? word[i].n : SES_MAX_WORD_BYTES;
    int32_t *c = out->chars = ses_arena_array(mem, all + 1, sizeof *c, e);
    out->char_cu = ses_arena_array(mem, n + 1, sizeof *out->char_cu, e);
    for (size_t i = 0; c && out->char_cu && i < n; i++) {
        size_t len = word[i].n < SES_MAX_WORD_BYTES ? word[i].n : SES_MAX_WORD_BYTES;
        for (size_t k = 0; k < len; k++) *c++ = (unsigned char)word[i].p[k];
        out->char_cu[i + 1] = out->char_cu[i] + (int32_t)len;
    }
    return out->chars && out->char_cu;
}

bool ses_word_stack_embed(ses_word_stack *s, const ses_sentences *text, ses_arena *mem,
                          ses_word_features *out, ses_err *e)
{
    size_t cells, n = text->first[text->n];
    int64_t max_bytes = ses_word_stack_max_bytes(s);
    *out = (ses_word_features){ 0 };
    for (size_t i = 0; i < n; i++) out->n_shortened += text->word[i].n > (uint64_t)max_bytes;
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].kind->reads_chars && !out->chars && !add_chars(text->word, n, mem, out, e))
            return false;
    if (!s->width) return true;
    if (!ses_mul_size(n + 1, (size_t)s->width, &cells)) return ses_fail(e, SES_ENOMEM, "too many words");
    float *x = out->vectors = ses_arena_array(mem, cells, sizeof *x, e);
    if (!x) return false;
    memset(x, 0, cells * sizeof *x);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->item[i].self) continue;
        if (!s->item[i].kind->embed(s->item[i].self, text, x + s->item[i].column, s->width, e))
            return ses_wrap(e, "embedding %s", s->item[i].kind->name);
    }
    return true;
}

/* ---- words of a text ---- */

static bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_word_byte(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static size_t word_end(ses_string t, size_t at)
{
    size_t i = at;
    if (!is_word_byte((unsigned char)t.p[i])) return i + 1;
    while (i < t.n &&
           (is_word_byte((unsigned char)t.p[i]) ||
            (strchr("-.,'&/", t.p[i]) && t.p[i] && i + 1 < t.n && is_word_byte((unsigned char)t.p[i + 1]))))
        i++;
    return i;
}

bool ses_split_words(ses_string text, ses_arena *mem, ses_string **word, uint32_t **byte, size_t *n,
                     ses_err *e)
{
    *n = 0;
    *word = ses_arena_array(mem, text.n + 1, sizeof **word, e);
    *byte = ses_arena_array(mem, text.n + 1, sizeof **byte, e);
    if (!*word || !*byte) return false;
    for (size_t i = 0; i < text.n;) {
        if (is_space((unsigned char)text.p[i])) {
            i++;
            continue;
        }
        size_t end = word_end(text, i);
        (*byte)[*n] = (uint32_t)i;
        (*word)[(*n)++] = (ses_string){ text.p + i, end - i };
        i = end;
    }
    return true;
}
