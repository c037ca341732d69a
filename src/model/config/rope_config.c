/* Reads the settings of rotary positions: "rope_parameters" of transformers 5, or "rope_theta" and
 * "rope_scaling" of older folders. Unknown types and members are refused by name. */
#include "base/json/json_helpers.h"
#include "model/model_desc.h"

#include <math.h>
#include <string.h>

typedef struct rope_key {
    const char *key;
    size_t offset; /* in ses_rope, of a double */
    double min, max;
} rope_key;

static const rope_key rope_keys[] = {
    { "rope_theta", offsetof(ses_rope, theta), 1, 1e12 },
    { "factor", offsetof(ses_rope, factor), 1, 1e6 },
    { "original_max_position_embeddings", offsetof(ses_rope, original), 1, SES_MAX_POSITIONS },
    { "beta_fast", offsetof(ses_rope, beta_fast), 1e-6, 1e6 },
    { "beta_slow", offsetof(ses_rope, beta_slow), 1e-6, 1e6 },
    { "attention_factor", offsetof(ses_rope, attention_factor), 1e-6, 1e6 },
    { "mscale", offsetof(ses_rope, mscale), 0, 1e6 },
    { "mscale_all_dim", offsetof(ses_rope, mscale_all_dim), 0, 1e6 },
    { "low_freq_factor", offsetof(ses_rope, low_freq), 1e-6, 1e6 },
    { "high_freq_factor", offsetof(ses_rope, high_freq), 1e-6, 1e6 },
    { "mixed_b", offsetof(ses_rope, mixed_b), 1e-6, 1e6 },
};

static bool read_number(const rope_key *k, const ses_json *v, ses_rope *rope, ses_err *e)
{
    double x;
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!ses_json_real(v, &x)) return ses_json_wrong_type(k->key, v, "a number", e);
    if (!(x >= k->min && x <= k->max))
        return ses_fail(e, SES_EARG, "\"%s\" is %.17g, expected %.17g to %.17g", k->key, x, k->min, k->max);
    memcpy((char *)rope + k->offset, &x, sizeof x);
    return true;
}

/* Any member that is not read could change the results. */
static bool read_members(const ses_json *object, ses_config *c, ses_rope *rope, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(object); i++) {
        const char *key = ses_json_key(object, i, NULL);
        const ses_json *v = ses_json_at(object, i);
        bool truncate = true, known = !strcmp(key, "rope_type") || !strcmp(key, "type");
        for (size_t k = 0; k < SES_LEN(rope_keys); k++)
            if (!strcmp(key, rope_keys[k].key)) {
                if (!read_number(&rope_keys[k], v, rope, e)) return false;
                known = true;
            }
        if (!strcmp(key, "truncate")) {
            if (!ses_config_bool(object, "truncate", &truncate, e)) return false;
            rope->exact_ramp = !truncate, known = true;
        }
        if (!strcmp(key, "partial_rotary_factor")) {
            if (!ses_rope_read_fraction(c, object, key, e)) return false;
            known = true;
        }
        if (!known)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "\"%s\" of rotary positions is not known: it may change the results", key);
    }
    return true;
}

bool ses_rope_read_fraction(ses_config *c, const ses_json *config, const char *key, ses_err *e)
{
    double x = 1;
    const ses_json *v = ses_json_get(config, key);
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!ses_json_real(v, &x)) return ses_json_wrong_type(key, v, "a number", e);
    if (!(x > 0 && x <= 1))
        return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is %g, expected over 0 to 1", key, x);
    c->position.rotary_fraction = x;
    return true;
}

static bool need(const char *key, double value, ses_err *e)
{
    return value > 0 || ses_fail(e, SES_EFORMAT, "\"%s\" is missing", key);
}

bool ses_rope_read(ses_config *c, const ses_json *object, ses_rope *rope, ses_err *e)
{
    static const char *const types[] = { "default", "linear", "ntk", "dynamic", "yarn", "llama3" };
    size_t type;
    const char *key = ses_json_get(object, "rope_type") ? "rope_type" : "type";
    if (ses_json_type_of(object) != SES_JSON_OBJECT && ses_json_type_of(object) != SES_JSON_NULL)
        return ses_json_wrong_type("rope_parameters", object, "an object", e);
    if (!ses_config_name(object, key, types, SES_LEN(types), &type, e) || !read_members(object, c, rope, e))
        return false;
    rope->type = (ses_rope_type)type;
    if (rope->type == SES_ROPE_DEFAULT) return true;
    if (rope->type == SES_ROPE_DYNAMIC || rope->original <= 0) {
        if (rope->type == SES_ROPE_YARN && rope->factor <= 0) rope->original = 0;
        if (rope->type != SES_ROPE_YARN || rope->factor > 0) rope->original = (double)c->position.max;
    }
    if (rope->type == SES_ROPE_YARN && rope->factor <= 0 && rope->original > 0)
        rope->factor = (double)c->position.max / rope->original;
    if (!need("factor", rope->factor, e)) return false;
    if (rope->type == SES_ROPE_LLAMA3 &&
        (!need("low_freq_factor", rope->low_freq, e) || !need("high_freq_factor", rope->high_freq, e)))
        return false;
    if (rope->type == SES_ROPE_LLAMA3 && rope->high_freq <= rope->low_freq)
        return ses_fail(e, SES_EARG, "\"high_freq_factor\" is not above \"low_freq_factor\"");
    if (rope->type == SES_ROPE_DYNAMIC && c->attention.causal)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"rope_type\" is \"dynamic\": in a model that reads from left to right the "
                        "frequencies of earlier tokens would change with each token");
    return true;
}

/* "full_attention" and "sliding_attention" are objects of their own. */
static bool read_by_layer(ses_config *c, const ses_json *ropes, ses_err *e)
{
    static const char *const kinds[] = { "full_attention", "sliding_attention" };
    double before = c->position.rotary_fraction;
    ses_rope *const ropes_of[] = { &c->position.rope, &c->position.local_rope };
    for (size_t i = 0; i < ses_json_len(ropes); i++) {
        const char *key = ses_json_key(ropes, i, NULL);
        bool known = false;
        for (size_t k = 0; k < SES_LEN(kinds); k++) known |= !strcmp(key, kinds[k]);
        if (!known)
            return ses_fail(e, SES_EUNSUPPORTED, "\"rope_parameters\" has \"%s\", expected %s or %s", key,
                            kinds[0], kinds[1]);
    }
    for (size_t k = 0; k < SES_LEN(kinds); k++)
        if (!ses_rope_read(c, ses_json_get(ropes, kinds[k]), ropes_of[k], e))
            return ses_wrap(e, "\"rope_parameters\": \"%s\"", kinds[k]);
    double part = c->position.rotary_fraction;
    return part == before || part == 1 ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "\"rope_parameters\": \"partial_rotary_factor\" of one kind of layers is %g", part);
}

static bool is_by_layer(const ses_json *ropes)
{
    return ses_json_get(ropes, "full_attention") || ses_json_get(ropes, "sliding_attention");
}

bool ses_rope_config(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *ropes = ses_json_get(config, "rope_parameters"),
                   *scaling = ses_json_get(config, "rope_scaling");
    int64_t dim = c->attention.head_size ? c->attention.head_size : c->hidden / c->attention.heads;
    ses_json_type type = ses_json_type_of(scaling);
    double both = c->position.rope.theta;
    bool ok = read_number(&rope_keys[0], ses_json_get(config, "rope_theta"), &c->position.rope, e);
    if (type != SES_JSON_NULL && type != SES_JSON_OBJECT)
        return ses_json_wrong_type("rope_scaling", scaling, "an object", e);
    if (ok && is_by_layer(ropes)) {
        c->position.rope.theta = both;
        ok = read_by_layer(c, ropes, e);
    } else if (ok) {
        bool newer = ses_json_type_of(ropes) != SES_JSON_NULL;
        ok = (ses_rope_read(c, newer ? ropes : scaling, &c->position.rope, e) ||
              ses_wrap(e, "\"%s\"", newer ? "rope_parameters" : "rope_scaling"));
        /* transformers 5 gives both kinds of layers the older key's scaling */
        double theta = c->position.local_rope.theta;
        if (!newer || theta <= 0) c->position.local_rope = c->position.rope;
        if (theta > 0) c->position.local_rope.theta = theta;
    }
    if (!ok) return false;
    double part = c->position.rotary_fraction;
    int64_t rotated = part > 0 ? (int64_t)(part * (double)dim) : dim;
    if (rotated % 2 || rotated < 2 || rotated > 2 * SES_ROPE_MAX_PAIRS)
        return ses_fail(
            e, SES_EARG,
            "rotary positions need heads with an even number of rotated columns, 2 to %d, not %lld",
            2 * SES_ROPE_MAX_PAIRS, (long long)rotated);
    if (c->position.rope.type == SES_ROPE_DYNAMIC && c->position.rope.factor > 1)
        c->position.max = (int64_t)fmin((double)c->position.max * c->position.rope.factor, SES_MAX_POSITIONS);
    return true;
}
