/* Config of a student: sizes of the teacher's config replaced, layers chosen. */
#include "student_config.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "model/model_desc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ses_student_is_new(const ses_student_options *o) { return o->layers || o->hidden || o->heads || o->ffn; }

/* ---- layers ---- */

/* "1,4,8,12" */
static bool parse_layers(const char *copy, int64_t n, int64_t t, int64_t *layer, ses_err *e)
{
    const char *at = copy;
    int64_t count = 0;
    for (char *end; *at; at = *end ? end + 1 : end) {
        long long k = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || (*end == ',' && !end[1]))
            return ses_fail(
                e, SES_EUSAGE,
                "copy-layers %s: expected even, bottom, top, none, or numbers of layers as 1,4,8,12", copy);
        if (k < 1 || k > t)
            return ses_fail(e, SES_EUSAGE, "copy-layers %s: the teacher has layers 1 to %lld, not %lld", copy,
                            (long long)t, k);
        if (count < n) layer[count] = k - 1;
        count++;
    }
    return count == n || ses_fail(e, SES_EUSAGE, "copy-layers %s: %lld layers, the student has %lld", copy,
                                  (long long)count, (long long)n);
}

bool ses_student_layers(const char *copy, int64_t n, int64_t t, int64_t *layer, ses_err *e)
{
    bool even = !copy || !strcmp(copy, "even") || !strcmp(copy, "none"), top = copy && !strcmp(copy, "top"),
         bottom = copy && !strcmp(copy, "bottom");
    if (n > t)
        return ses_fail(e, SES_EARG, "the student has %lld layers, the teacher only %lld to start from",
                        (long long)n, (long long)t);
    if (!even && !top && !bottom) return parse_layers(copy, n, t, layer, e);
    for (int64_t i = 0; i < n; i++) layer[i] = even ? i * t / n : top ? t - n + i : i;
    return true;
}

/* ---- config ---- */

/* A size of the config: its name in messages, its field, and what replaces it. */
typedef struct size_change {
    const char *name;
    size_t field;
    int64_t value; /* 0: unchanged */
    const ses_config_key *key;
} size_change;

enum { LAYERS, HIDDEN, HEADS, FFN, DECODER_LAYERS, DECODER_HEADS, DECODER_FFN, SIZES };

/* Layers of the encoder (or the only ones) and of the decoder. */
enum { ENCODER, DECODER, PARTS };

typedef struct layer_choice {
    int64_t teacher, student;      /* number of layers */
    int64_t layer[SES_MAX_LAYERS]; /* the teacher's layer of each of the student's */
} layer_choice;

typedef struct edit {
    const ses_model_desc *desc;
    const ses_json *config;
    size_change size[SIZES];
    layer_choice layers[PARTS];
} edit;

static const char ffn_widths[] = "sesame_ffn_widths";

static int64_t size_of(const edit *x, int i)
{
    int64_t n = 0;
    return x->size[i].key && ses_json_int(ses_json_get(x->config, x->size[i].key->key), &n) ? n : 0;
}

static bool find_keys(edit *x, const ses_model_desc *d, ses_err *e)
{
    for (int i = 0; i < SIZES; i++) {
        size_change *c = &x->size[i];
        c->key = ses_config_key_of(d, x->config, c->field, SES_KEY_TYPE_INT);
        if (c->key && !ses_json_get(x->config, c->key->key))
            c->key = NULL; /* the decoder's follows the encoder's */
        if (!c->value || i >= DECODER_LAYERS) continue;
        if (!c->key)
            return ses_fail(e, SES_EUNSUPPORTED, "%s models have no setting for the student's %s", d->name,
                            c->name);
        if (c->value < c->key->min || c->value > c->key->max)
            return ses_fail(e, SES_EARG, "student's %s %lld: expected %g to %g (\"%s\")", c->name,
                            (long long)c->value, c->key->min, c->key->max, c->key->key);
    }
    return true;
}

/* Sizes that follow from another width: heads of the same size, feed-forward blocks in proportion. */
static bool follow_width(edit *x, ses_err *e)
{
    int64_t was = size_of(x, HIDDEN), hidden = x->size[HIDDEN].value, heads = size_of(x, HEADS);
    if (!hidden || !was || !heads) return true;
    if (!x->size[HEADS].value) x->size[HEADS].value = hidden * heads / was;
    if (!x->size[FFN].value) x->size[FFN].value = size_of(x, FFN) * hidden / was;
    heads = x->size[HEADS].value;
    if (heads > 0 && hidden % heads == 0) return true;
    return ses_fail(e, SES_EARG, "%lld heads do not divide the student's width %lld: choose student-heads",
                    (long long)heads, (long long)hidden);
}

static bool follow_heads(const edit *x, ses_err *e)
{
    int64_t heads = x->size[HEADS].value, hidden = size_of(x, HIDDEN);
    if (x->size[HIDDEN].value || !heads || !hidden || hidden % heads == 0) return true;
    return ses_fail(e, SES_EARG, "%lld heads do not divide the student's width %lld", (long long)heads,
                    (long long)hidden);
}

/* Pruned heads of the chosen layers of a part, under their new numbers. */
static void put_pruned_heads(const layer_choice *c, bool same_heads, const ses_json *all, ses_json_writer *w)
{
    char name[32];
    ses_json_begin_object(w);
    for (int64_t i = 0; same_heads && i < c->student; i++) {
        snprintf(name, sizeof name, "%lld", (long long)c->layer[i]);
        const ses_json *heads = ses_json_get(all, name);
        if (ses_json_type_of(heads) != SES_JSON_ARRAY) continue;
        snprintf(name, sizeof name, "%lld", (long long)i);
        ses_json_put_key(w, name);
        ses_json_put_value(w, heads);
    }
    ses_json_end_object(w);
}

/* An encoder-decoder has such lists in each part. */
static void put_pruned_parts(const edit *x, const ses_json *all, ses_json_writer *w)
{
    bool same_heads = !x->size[HEADS].value && !x->size[HIDDEN].value;
    if (!x->desc->encoder_decoder) {
        put_pruned_heads(&x->layers[ENCODER], same_heads, all, w);
        return;
    }
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const char *part = ses_json_key(all, i, NULL);
        ses_json_put_key(w, part);
        put_pruned_heads(&x->layers[strcmp(part, "encoder") ? DECODER : ENCODER], same_heads,
                         ses_json_at(all, i), w);
    }
    ses_json_end_object(w);
}

/* Entries of the chosen layers. */
static void put_layer_list(const layer_choice *c, const ses_json *all, ses_json_writer *w)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < c->student; i++) ses_json_put_value(w, ses_json_at(all, (size_t)c->layer[i]));
    ses_json_end_array(w);
}

/* Does the student do without this key? Its weights are dense; exits are trained with the layers below them;
 * widths of layers belong to the teacher's width. */
static bool drops(const edit *x, const char *key)
{
    static const char *const always[] = { "quantization_config", "sesame_low_rank", SES_EXITS_KEY };
    for (size_t i = 0; i < SES_LEN(always); i++)
        if (!strcmp(key, always[i])) return true;
    return (x->size[HIDDEN].value || x->size[FFN].value) && !strcmp(key, ffn_widths);
}

static void put_member(const edit *x, const char *key, const ses_json *value, ses_json_writer *w)
{
    const char *kinds = x->desc->layer_kinds.key;
    const layer_choice *c = &x->layers[ENCODER];
    ses_json_put_key(w, key);
    for (int i = 0; i < SIZES; i++)
        if (x->size[i].value && x->size[i].key && !strcmp(key, x->size[i].key->key)) {
            ses_json_put_int(w, x->size[i].value);
            return;
        }
    bool by_layer = !strcmp(key, ffn_widths) || (kinds && !strcmp(key, kinds));
    if (!strcmp(key, "pruned_heads") && ses_json_type_of(value) == SES_JSON_OBJECT)
        put_pruned_parts(x, value, w);
    else if (by_layer && (int64_t)ses_json_len(value) == c->teacher)
        put_layer_list(c, value, w);
    else
        ses_json_put_value(w, value);
}

/* The chosen layers of a part, whose number of layers is the size `layers`. */
static bool choose_layers(edit *x, int part, int layers, const ses_student_options *o, ses_err *e)
{
    layer_choice *c = &x->layers[part];
    c->teacher = size_of(x, layers);
    c->student = x->size[layers].value ? x->size[layers].value : c->teacher;
    return ses_student_layers(o->copy, c->student, c->teacher, c->layer, e);
}

/* The decoder has as many layers as the encoder if the config has no number for it. */
static bool choose_all_layers(edit *x, const ses_student_options *o, ses_err *e)
{
    if (!choose_layers(x, ENCODER, LAYERS, o, e)) return false;
    return !x->desc->encoder_decoder ||
           choose_layers(x, DECODER, x->size[DECODER_LAYERS].key ? DECODER_LAYERS : LAYERS, o, e);
}

ses_json_doc *ses_student_config(const ses_json *teacher, const ses_student_options *o, ses_err *e)
{
    const ses_model_desc *d = ses_config_find_model(teacher, e);
    if (!d) return NULL;
    edit *x = ses_alloc(sizeof *x, e);
    if (!x) return NULL;
    *x =
        (edit){ .desc = d,
                .config = teacher,
                .size = { { "layers", offsetof(ses_config, layers), o->layers, NULL },
                          { "width", offsetof(ses_config, hidden), o->hidden, NULL },
                          { "heads", offsetof(ses_config, attention.heads), o->heads, NULL },
                          { "feed-forward width", offsetof(ses_config, ffn.width), o->ffn, NULL },
                          { "layers", offsetof(ses_config, decoder.layers), o->layers, NULL },
                          { "heads", offsetof(ses_config, decoder.heads), o->heads, NULL },
                          { "feed-forward width", offsetof(ses_config, decoder.ffn_width), o->ffn, NULL } } };
    bool ok = find_keys(x, d, e) && follow_width(x, e) && follow_heads(x, e);
    x->size[DECODER_HEADS].value = x->size[HEADS].value, x->size[DECODER_FFN].value = x->size[FFN].value;
    ok = ok && choose_all_layers(x, o, e);
    ses_json_writer *w = ok ? ses_json_writer_new(0, e) : NULL;
    if (w) ses_json_begin_object(w);
    for (size_t i = 0; w && i < ses_json_len(teacher); i++) {
        const char *key = ses_json_key(teacher, i, NULL);
        if (!drops(x, key)) put_member(x, key, ses_json_at(teacher, i), w);
    }
    if (w) ses_json_end_object(w);
    ses_free(x);
    return w ? ses_json_writer_parse(w, e) : NULL;
}

bool ses_student_has_width(const ses_json *teacher, const ses_student_options *o)
{
    ses_err ignored = { 0 };
    int64_t width = 0;
    const ses_model_desc *d = ses_config_find_model(teacher, &ignored);
    const ses_config_key *k =
        d ? ses_config_key_of(d, teacher, offsetof(ses_config, hidden), SES_KEY_TYPE_INT) : NULL;
    return !o->hidden || (k && ses_json_int(ses_json_get(teacher, k->key), &width) && width == o->hidden);
}
