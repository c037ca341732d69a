/* Reads generation_config.json or, in older folders, the generation keys of config.json. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "sesame/generate.h"

#include <stddef.h>
#include <string.h>

enum { CONFIG_MAX = 16 << 20, MAX_LENGTH = 1 << 30 };

struct ses_generation_config {
    ses_generate_options o;
    ses_arena mem; /* lists */
};

typedef enum { INT, REAL, BOOL, ID, IDS, LISTS, BIASES, EARLY, DECAY, STRINGS } kind;

static const struct key {
    const char *name;
    kind kind;
    size_t offset;
} keys[] = {
#define KEY(name, kind, field)                            \
    {                                                     \
        name, kind, offsetof(ses_generate_options, field) \
    }
    KEY("max_new_tokens", INT, max_new_tokens),
    KEY("max_length", INT, max_length),
    KEY("min_new_tokens", INT, min_new_tokens),
    KEY("min_length", INT, min_length),
    KEY("do_sample", BOOL, do_sample),
    KEY("temperature", REAL, temperature),
    KEY("top_k", INT, top_k),
    KEY("top_p", REAL, top_p),
    KEY("typical_p", REAL, typical_p),
    KEY("min_p", REAL, min_p),
    KEY("top_h", REAL, top_h),
    KEY("epsilon_cutoff", REAL, epsilon_cutoff),
    KEY("eta_cutoff", REAL, eta_cutoff),
    KEY("num_beams", INT, num_beams),
    KEY("num_beam_groups", INT, num_beam_groups),
    KEY("num_return_sequences", INT, num_return_sequences),
    KEY("length_penalty", REAL, length_penalty),
    KEY("diversity_penalty", REAL, diversity_penalty),
    KEY("early_stopping", EARLY, early_stopping),
    KEY("repetition_penalty", REAL, repetition_penalty),
    KEY("encoder_repetition_penalty", REAL, encoder_repetition_penalty),
    KEY("no_repeat_ngram_size", INT, no_repeat_ngram_size),
    KEY("encoder_no_repeat_ngram_size", INT, encoder_no_repeat_ngram_size),
    KEY("exponential_decay_length_penalty", DECAY, decay_start),
    KEY("remove_invalid_values", BOOL, remove_invalid_values),
    KEY("renormalize_logits", BOOL, renormalize_logits),
    KEY("pad_token_id", ID, pad),
    KEY("bos_token_id", ID, bos),
    KEY("decoder_start_token_id", ID, decoder_start),
    KEY("forced_bos_token_id", ID, forced_bos),
    KEY("eos_token_id", IDS, eos),
    KEY("forced_eos_token_id", IDS, forced_eos),
    KEY("suppress_tokens", IDS, suppress),
    KEY("begin_suppress_tokens", IDS, begin_suppress),
    KEY("bad_words_ids", LISTS, bad_words),
    KEY("sequence_bias", BIASES, sequence_bias),
    KEY("stop_strings", STRINGS, stop_strings),
#undef KEY
};

static bool wrong(const ses_json *v, const char *want, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "is %s, expected %s", ses_json_type_name(ses_json_type_of(v)), want);
}

/* A number or a list of numbers. */
static bool read_ids(ses_generation_config *g, const ses_json *v, ses_ids *out, ses_err *e)
{
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY;
    int64_t n = list ? (int64_t)ses_json_len(v) : 1;
    int32_t *id = ses_arena_array(&g->mem, (size_t)n + 1, sizeof *id, e);
    for (int64_t i = 0; id && i < n; i++) {
        int64_t x;
        if (!ses_json_int(list ? ses_json_at(v, (size_t)i) : v, &x) || x < 0 || x > INT32_MAX)
            return wrong(v, "a token id or a list of token ids", e);
        id[i] = (int32_t)x;
    }
    *out = (ses_ids){ id, n };
    return id != NULL;
}

static bool read_lists(ses_generation_config *g, const ses_json *v, ses_generate_options *o, ses_err *e)
{
    size_t n = ses_json_len(v);
    ses_ids *list = ses_arena_array(&g->mem, n + 1, sizeof *list, e);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return wrong(v, "a list of lists of token ids", e);
    for (size_t i = 0; list && i < n; i++)
        if (!read_ids(g, ses_json_at(v, i), &list[i], e)) return false;
    o->bad_words = list, o->n_bad_words = (int64_t)n;
    return list != NULL;
}

/* [[[ids], bias], ...] */
static bool read_biases(ses_generation_config *g, const ses_json *v, ses_generate_options *o, ses_err *e)
{
    size_t n = ses_json_len(v);
    ses_id_bias *list = ses_arena_array(&g->mem, n + 1, sizeof *list, e);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return wrong(v, "a list of [[ids], bias]", e);
    for (size_t i = 0; list && i < n; i++) {
        const ses_json *row = ses_json_at(v, i);
        if (!ses_json_real(ses_json_at(row, 1), &list[i].bias)) return wrong(row, "[[ids], bias]", e);
        if (!read_ids(g, ses_json_at(row, 0), &list[i].ids, e)) return false;
    }
    o->sequence_bias = list, o->n_sequence_bias = (int64_t)n;
    return list != NULL;
}

static bool read_strings(ses_generation_config *g, const ses_json *v, ses_generate_options *o, ses_err *e)
{
    bool one = ses_json_type_of(v) == SES_JSON_STRING;
    size_t n = one ? 1 : ses_json_len(v), len;
    const char **list = ses_arena_array(&g->mem, n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < n; i++) {
        const char *s = ses_json_string(one ? v : ses_json_at(v, i), &len);
        if (!s) return wrong(v, "a string or a list of strings", e);
        if (!(list[i] = ses_arena_strndup(&g->mem, s, len, e))) return false;
    }
    o->stop_strings = list, o->n_stop_strings = (int64_t)n;
    return list != NULL;
}

static bool read_early(const ses_json *v, ses_early_stopping *out, ses_err *e)
{
    bool on;
    const char *s = ses_json_string(v, NULL);
    if (ses_json_bool(v, &on)) return *out = on ? SES_EARLY_TRUE : SES_EARLY_FALSE, true;
    if (!s || strcmp(s, "never")) return wrong(v, "true, false or \"never\"", e);
    *out = SES_EARLY_NEVER;
    return true;
}

static bool read_decay(const ses_json *v, ses_generate_options *o, ses_err *e)
{
    return (ses_json_int(ses_json_at(v, 0), &o->decay_start) &&
            ses_json_real(ses_json_at(v, 1), &o->decay_factor)) ||
           wrong(v, "[start, factor]", e);
}

static bool read_id(const ses_json *v, int32_t *out, ses_err *e)
{
    int64_t x;
    if (!ses_json_int(v, &x) || x < -1 || x > INT32_MAX) return wrong(v, "a token id", e);
    *out = (int32_t)x;
    return true;
}

static bool read_int(const ses_json *v, int64_t *out, ses_err *e)
{
    int64_t x;
    if (!ses_json_int(v, &x) || x < 0 || x > MAX_LENGTH) return wrong(v, "an integer of at least 0", e);
    *out = x;
    return true;
}

static bool read_key(ses_generation_config *g, const struct key *k, const ses_json *v,
                     ses_generate_options *o, ses_err *e)
{
    void *to = (char *)o + k->offset;
    switch (k->kind) {
    case INT: return read_int(v, to, e);
    case REAL: return ses_json_real(v, to) || wrong(v, "a number", e);
    case BOOL: return ses_json_bool(v, to) || wrong(v, "true or false", e);
    case ID: return read_id(v, to, e);
    case IDS: return read_ids(g, v, to, e);
    case LISTS: return read_lists(g, v, o, e);
    case BIASES: return read_biases(g, v, o, e);
    case EARLY: return read_early(v, to, e);
    case DECAY: return read_decay(v, o, e);
    case STRINGS: return read_strings(g, v, o, e);
    }
    return true;
}

bool ses_generation_config_read(ses_generation_config *g, const ses_json *from, ses_generate_options *o,
                                ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(keys); i++) {
        const ses_json *v = ses_json_get(from, keys[i].name);
        if (!v || ses_json_type_of(v) == SES_JSON_NULL) continue;
        if (!read_key(g, &keys[i], v, o, e)) return ses_wrap(e, "\"%s\"", keys[i].name);
    }
    return true;
}

/* Reads the keys of config.json, for folders without generation_config.json; the architecture implies
 * others. */
static bool read_config(ses_generation_config *g, const ses_model *m, ses_err *e)
{
    int32_t *id = ses_arena_array(&g->mem, 1, sizeof *id, e);
    if (!id || !ses_generation_config_read(g, m->config, &g->o, e)) return false;
    if (!m->desc->encoder_decoder) return true;
    *id = (int32_t)m->c.eos_id;
    if (!g->o.eos.n && m->c.eos_id > 0) g->o.eos = (ses_ids){ id, 1 };
    if (g->o.decoder_start < 0) g->o.decoder_start = (int32_t)m->c.decoder.start_id;
    return true;
}

ses_generation_config *ses_generation_config_open(const ses_model *m, ses_err *e)
{
    ses_json_doc *doc = NULL;
    ses_generation_config *g = ses_alloc(sizeof *g, e);
    char *path = g && m->dir ? ses_path_join(m->dir, "generation_config.json", e) : NULL;
    bool ok = g && (path || !m->dir);
    if (!ok) goto done;
    g->o =
        (ses_generate_options){ .temperature = 1, .top_k = 50, .top_p = 1, .typical_p = 1, .num_beams = 1 };
    g->o.num_beam_groups = g->o.num_return_sequences = 1, g->o.length_penalty = 1;
    g->o.repetition_penalty = g->o.encoder_repetition_penalty = 1;
    g->o.pad = g->o.bos = g->o.decoder_start = g->o.forced_bos = -1;
    if (!path || !ses_path_exists(path)) {
        ok = read_config(g, m, e);
    } else {
        doc = ses_json_load(path, CONFIG_MAX, e);
        ok = doc && (ses_generation_config_read(g, ses_json_root(doc), &g->o, e) || ses_wrap(e, "%s", path));
    }
done:
    ses_json_free(doc);
    ses_free(path);
    if (ok) return g;
    ses_generation_config_free(g);
    return NULL;
}

void ses_generation_config_free(ses_generation_config *g)
{
    if (!g) return;
    ses_arena_free(&g->mem);
    ses_free(g);
}

const ses_generate_options *ses_generation_config_options(const ses_generation_config *g) { return &g->o; }
