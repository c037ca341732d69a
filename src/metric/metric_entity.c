/* Entity scores of IOB and IOBES tags as seqeval computes them: an entity is correct if its type and both
 * ends are. "entity" is seqeval's default mode (conlleval's rules: any change of type begins an entity,
 * with or without B). The others are its strict mode, which ignores entities that violate the scheme.
 * Averages as in metric_f1.c. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "metric_impl.h"

#include <string.h>

/* Tag prefixes, as bits. */
enum { OTHER = 0, I = 1, O = 2, B = 4, E = 8, S = 16, U = 32, L = 64, ANY = 127 };
typedef enum { SAME = 1, DIFF = 2, EITHER = 3 } type_rule;

typedef struct pattern {
    int before, now;
    type_rule type;
} pattern;

typedef struct scheme {
    const char *name;
    int allowed;
    pattern start[6], inside[4], end[6]; /* each list ends with before 0 */
} scheme;

typedef struct tag {
    int prefix;
    char letter; /* first byte of the label */
    size_t type;
} tag;

typedef struct span {
    size_t type, begin, end;
} span;

static int prefix_of(char c)
{
    static const char letters[] = "IOBESUL";
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? 1 << (at - letters) : OTHER;
}

/* The type in a label: after the first '-' (default mode), or stripped of '-' at both ends (strict mode). */
static void type_name(const char *label, bool strict, const char **name, size_t *n)
{
    uint32_t cp;
    size_t skip = ses_utf8_decode(label, strlen(label), &cp);
    const char *s = label + (skip ? skip : *label != 0);
    size_t len = strlen(s);
    const char *dash = strict ? NULL : strchr(s, '-');
    if (dash) len -= (size_t)(dash + 1 - s), s = dash + 1;
    while (strict && len && *s == '-') s++, len--;
    while (strict && len && s[len - 1] == '-') len--;
    *name = len ? s : "_";
    *n = len ? len : 1;
}

/* Sets the prefix and the type number of every label; types are numbered in the order of the labels. */
static bool read_labels(ses_example_stats *r, bool strict, tag *tags, ses_err *e)
{
    const ses_evaluation *v = r->v;
    r->name = ses_alloc_array(v->n_labels + 1, sizeof *r->name, e);
    r->name_len = r->name ? ses_alloc_array(v->n_labels + 1, sizeof *r->name_len, e) : NULL;
    if (!r->name_len) return false;
    for (size_t k = 0; k <= v->n_labels; k++) { /* the last one is the O after a sequence */
        const char *label = k < v->n_labels ? v->labels[k] : "O", *name;
        size_t n, t = 0;
        if (!label || !*label) return ses_fail(e, SES_EARG, "label %zu: the name is empty", k);
        type_name(label, strict, &name, &n);
        while (t < r->names && (r->name_len[t] != n || memcmp(r->name[t], name, n) != 0)) t++;
        if (t == r->names) r->name[t] = name, r->name_len[t] = n, r->names++;
        tags[k] = (tag){ prefix_of(*label), *label, t };
    }
    return true;
}

/* ---- seqeval: default mode ---- */

static bool default_end(tag p, tag t)
{
    if (p.prefix == E || p.prefix == S) return true;
    if ((p.prefix == B || p.prefix == I) && (t.prefix == B || t.prefix == S || t.prefix == O)) return true;
    return p.prefix != O && p.letter != '.' && p.type != t.type;
}

static bool default_start(tag p, tag t)
{
    if (t.prefix == B || t.prefix == S) return true;
    if ((p.prefix == E || p.prefix == S || p.prefix == O) && (t.prefix == E || t.prefix == I)) return true;
    return t.prefix != O && t.letter != '.' && p.type != t.type;
}

/* Writes the entity spans of seq [n] to out and returns their number. */
static size_t default_spans(const tag *seq, size_t n, tag outside, span *out)
{
    size_t count = 0, begin = 0;
    tag p = outside;
    for (size_t i = 0; i <= n; i++) {
        tag t = i < n ? seq[i] : outside;
        if (default_end(p, t)) out[count++] = (span){ p.type, begin, i };
        if (default_start(p, t)) begin = i;
        p = t;
    }
    return count;
}

/* ---- seqeval: strict mode ---- */

static const scheme iob1 = {
    .name = "IOB1",
    .allowed = I | O | B,
    .start = { { O, I, EITHER }, { I, I, DIFF }, { B, I, EITHER }, { I, B, SAME }, { B, B, SAME } },
    .inside = { { B, I, SAME }, { I, I, SAME } },
    .end = { { I, I, DIFF },
             { I, O, EITHER },
             { I, B, EITHER },
             { B, O, EITHER },
             { B, I, DIFF },
             { B, B, SAME } },
};
static const scheme iob2 = {
    .name = "IOB2",
    .allowed = I | O | B,
    .start = { { ANY, B, EITHER } },
    .inside = { { B, I, SAME }, { I, I, SAME } },
    .end = { { I, O, EITHER },
             { I, I, DIFF },
             { I, B, EITHER },
             { B, O, EITHER },
             { B, I, DIFF },
             { B, B, EITHER } },
};
static const scheme ioe1 = {
    .name = "IOE1",
    .allowed = I | O | E,
    .start = { { O, I, EITHER }, { I, I, DIFF }, { E, I, EITHER }, { E, E, SAME } },
    .inside = { { I, I, SAME }, { I, E, SAME } },
    .end = { { I, I, DIFF }, { I, O, EITHER }, { I, E, DIFF }, { E, I, SAME }, { E, E, SAME } },
};
static const scheme ioe2 = {
    .name = "IOE2",
    .allowed = I | O | E,
    .start = { { O, I | E, EITHER }, { E, I | E, EITHER }, { I, I | E, DIFF } },
    .inside = { { I, E, SAME }, { I, I, SAME } },
    .end = { { E, ANY, EITHER } },
};
static const scheme iobes = {
    .name = "IOBES",
    .allowed = I | O | B | E | S,
    .start = { { ANY, B | S, EITHER } },
    .inside = { { B | I, I | E, SAME } },
    .end = { { S | E, ANY, EITHER } },
};
static const scheme bilou = {
    .name = "BILOU",
    .allowed = B | I | L | O | U,
    .start = { { ANY, B | U, EITHER } },
    .inside = { { B | I, I | L, SAME } },
    .end = { { U | L, ANY, EITHER } },
};

static bool matches(const pattern *k, size_t n, tag p, tag t)
{
    for (size_t i = 0; i < n && k[i].before; i++)
        if ((k[i].before & p.prefix) && (k[i].now & t.prefix) &&
            (k[i].type & (p.type == t.type ? SAME : DIFF)))
            return true;
    return false;
}

static size_t strict_spans(const scheme *s, const tag *seq, size_t n, tag outside, span *out)
{
    size_t count = 0;
    tag p = outside;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        if (matches(s->start, SES_LEN(s->start), p, seq[i])) {
            while (end < n && matches(s->inside, SES_LEN(s->inside), seq[end - 1], seq[end])) end++;
            if (matches(s->end, SES_LEN(s->end), seq[end - 1], end < n ? seq[end] : outside))
                out[count++] = (span){ seq[i].type, i, end };
        }
        p = seq[end - 1];
        i = end;
    }
    return count;
}

/* ---- counting ---- */

typedef struct scratch {
    tag *tags, *seq;          /* [n_labels + 1]; [longest sequence] */
    span *actual, *predicted; /* [longest sequence + 1] */
} scratch;

static size_t spans(const scheme *s, const scratch *w, const int32_t *label, const int32_t *true_labels,
                    size_t n, size_t n_labels, span *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (true_labels[i] != SES_IGNORE_INDEX) w->seq[kept++] = w->tags[label[i]];
    tag outside = w->tags[n_labels];
    return s ? strict_spans(s, w->seq, kept, outside, out) : default_spans(w->seq, kept, outside, out);
}

/* Adds counts per type to x [types, 3]: correct, predicted, actual. Both lists are sorted by end, and no two
 * spans of a list have the same end. */
static void count(double *x, const span *actual, size_t n_actual, const span *predicted, size_t n_predicted)
{
    for (size_t i = 0, j = 0; i < n_actual || j < n_predicted;) {
        bool use_actual = i < n_actual && (j == n_predicted || actual[i].end <= predicted[j].end);
        bool use_predicted = j < n_predicted && (i == n_actual || predicted[j].end <= actual[i].end);
        if (use_actual && use_predicted && actual[i].type == predicted[j].type &&
            actual[i].begin == predicted[j].begin)
            x[3 * actual[i].type]++;
        if (use_predicted) x[3 * predicted[j++].type + 1]++;
        if (use_actual) x[3 * actual[i++].type + 2]++;
    }
}

static bool check_allowed(const ses_evaluation *v, const scheme *s, const tag *tags, ses_err *e)
{
    for (size_t i = 0; s && i < v->cu[v->n]; i++) {
        if (v->true_labels[i] == SES_IGNORE_INDEX) continue;
        const int32_t both[2] = { v->true_labels[i], v->pred_labels[i] };
        for (int k = 0; k < 2; k++)
            if (!(tags[both[k]].prefix & s->allowed))
                return ses_fail(e, SES_EARG, "tag \"%s\" is not allowed in the %s scheme",
                                ses_label_name_of(v, (size_t)both[k]).s, s->name);
    }
    return true;
}

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    const ses_evaluation *v = r->v;
    const scheme *s = m->settings;
    size_t longest = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->cu[i + 1] - v->cu[i] > longest) longest = v->cu[i + 1] - v->cu[i];
    scratch w = { 0 };
    w.tags = ses_alloc_array(v->n_labels + 1, sizeof *w.tags, e);
    w.seq = w.tags ? ses_alloc_array(longest + 1, sizeof *w.seq, e) : NULL;
    w.actual = w.seq ? ses_alloc_array(longest + 1, sizeof *w.actual, e) : NULL;
    w.predicted = w.actual ? ses_alloc_array(longest + 1, sizeof *w.predicted, e) : NULL;
    bool ok = w.predicted && read_labels(r, s != NULL, w.tags, e) && check_allowed(v, s, w.tags, e) &&
              ses_example_stats_new(r, 3 * r->names + 2, 3 * r->names + 2, e);
    for (size_t i = 0; ok && i < v->n; i++) {
        const int32_t *true_labels = v->true_labels + v->cu[i], *pred = v->pred_labels + v->cu[i];
        size_t n = v->cu[i + 1] - v->cu[i];
        double *x = r->x + i * r->width, *tokens = x + 3 * r->names;
        size_t n_actual = spans(s, &w, true_labels, true_labels, n, v->n_labels, w.actual);
        size_t n_predicted = spans(s, &w, pred, true_labels, n, v->n_labels, w.predicted);
        count(x, w.actual, n_actual, w.predicted, n_predicted);
        for (size_t k = 0; k < n; k++) {
            if (true_labels[k] == SES_IGNORE_INDEX) continue;
            tokens[0] += true_labels[k] == pred[k];
            tokens[1] += 1;
        }
    }
    ses_free(w.tags);
    ses_free(w.seq);
    ses_free(w.actual);
    ses_free(w.predicted);
    return ok;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double correct = 0, predicted = 0, actual = 0;
    const double *tokens = r->work + 3 * r->names;
    ses_example_stats_sum(r, p, r->work);
    for (size_t t = 0; t < r->names; t++) {
        const double *x = r->work + 3 * t;
        correct += x[0], predicted += x[1], actual += x[2];
    }
    ses_prf all = ses_prf_compute(correct, predicted, actual);
    ses_scores_put(out, all.p, "precision");
    ses_scores_put(out, all.r, "recall");
    ses_scores_put(out, all.f, "f1");
    ses_scores_put(out, tokens[1] > 0 ? tokens[0] / tokens[1] : 0, "accuracy");
    ses_scores_put_averages(out, r->work, r->names);
    for (size_t t = 0; t < r->names; t++) {
        const double *x = r->work + 3 * t;
        if (!x[1] && !x[2]) continue;
        ses_prf one = ses_prf_compute(x[0], x[1], x[2]);
        char name[40];
        ses_quote(name, sizeof name, r->name[t], r->name_len[t]);
        ses_scores_put(out, one.p, "%s_precision", name);
        ses_scores_put(out, one.r, "%s_recall", name);
        ses_scores_put(out, one.f, "%s_f1", name);
        ses_scores_put(out, x[2], "%s_number", name);
    }
}

#define ENTITY(name_, description_, scheme_)                                                     \
    {                                                                                            \
        .name = name_, .description = description_, .kind = SES_METRIC_TAGS, .measure = measure, \
        .finish = finish, .settings = scheme_                                                    \
    }

const ses_metric ses_metric_entity = ENTITY("entity", "entities of IOB or IOBES tags, conlleval rules", NULL);
const ses_metric ses_metric_entity_iob1 = ENTITY("entity_iob1", "entities of IOB1 tags, strict", &iob1);
const ses_metric ses_metric_entity_iob2 = ENTITY("entity_iob2", "entities of IOB2 tags, strict", &iob2);
const ses_metric ses_metric_entity_ioe1 = ENTITY("entity_ioe1", "entities of IOE1 tags, strict", &ioe1);
const ses_metric ses_metric_entity_ioe2 = ENTITY("entity_ioe2", "entities of IOE2 tags, strict", &ioe2);
const ses_metric ses_metric_entity_iobes = ENTITY("entity_iobes", "entities of IOBES tags, strict", &iobes);
const ses_metric ses_metric_entity_bilou = ENTITY("entity_bilou", "entities of BILOU tags, strict", &bilou);
