/* Agreement of attention heads with dependency relations: table and JSON. */
#include "analysis/heads/head_syntax.h"

static const char *const direction_name[] = { "from_dependent", "from_head" };

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

static void put_best(ses_figure *t, const ses_syntax_best *b, int64_t cases)
{
    ses_figure_cell(t, "%lld-%lld", (long long)b->layer + 1, (long long)b->head + 1);
    ses_figure_cell(t, "%.1f", 100 * share(b->hits, cases));
}

static void put_relation(const ses_head_syntax *s, size_t k, ses_figure *t)
{
    const ses_syntax_relation *x = &s->relation[k];
    ses_syntax_best down = ses_head_syntax_best(s, SES_FROM_DEPENDENT, k);
    ses_syntax_best up = ses_head_syntax_best(s, SES_FROM_HEAD, k);
    int64_t hits = down.hits > up.hits ? down.hits : up.hits;
    ses_figure_cell(t, "%.*s", (int)x->name.n, x->name.p);
    ses_figure_cell(t, "%lld", (long long)x->cases);
    put_best(t, &down, x->cases);
    put_best(t, &up, x->cases);
    ses_figure_cell(t, "%+lld", (long long)x->offset);
    ses_figure_cell(t, "%.1f", 100 * share(x->offset_hits, x->cases));
    ses_figure_cell(t, "%+.1f", 100 * share(hits - x->offset_hits, x->cases));
}

/* The relation with the most cases below `most`, or with as many and after relation `last`; s->n: none. */
static size_t next_relation(const ses_head_syntax *s, int64_t most, size_t last)
{
    size_t best = s->n;
    for (size_t k = 0; k < s->n; k++) {
        int64_t cases = s->relation[k].cases;
        if (cases > most || (cases == most && k <= last)) continue;
        if (best == s->n || cases > s->relation[best].cases) best = k;
    }
    return best;
}

void ses_head_syntax_figures(const ses_head_syntax *s, int64_t min_cases, ses_report *r)
{
    ses_figure *t = ses_report_table(r, "Best head for each dependency relation: layer-head, % of the cases",
                                     "Relation|>Cases|Dependent|>%|Head|>%|>Offset|>%|>Gain");
    int64_t rare = 0;
    put_relation(s, 0, t);
    for (size_t k = 0; (k = next_relation(s, s->relation[k].cases, k)) < s->n;) {
        if (s->relation[k].cases < min_cases)
            rare += s->relation[k].cases > 0;
        else
            put_relation(s, k, t);
    }
    ses_report_note(
        r, "Dependent: the other word to which a word attends most is its head in the tree. Head: the other "
           "word that attends most to it is its head. Offset: its head is always this many words after it. "
           "Gain: the better of the two heads, minus the offset.");
    if (rare)
        ses_report_note(r, "%lld relations have fewer than %lld cases (--min-cases).", (long long)rare,
                        (long long)min_cases);
    if (s->truncated)
        ses_report_note(r, "%lld sentences longer than the model were left out.", (long long)s->truncated);
}

static void json_best(ses_json_writer *w, const ses_head_syntax *s, ses_syntax_direction d, size_t k)
{
    ses_syntax_best b = ses_head_syntax_best(s, d, k);
    ses_json_member_object(w, direction_name[d]);
    ses_json_member_int(w, "layer", b.layer + 1);
    ses_json_member_int(w, "head", b.head + 1);
    ses_json_member_int(w, "hits", b.hits);
    ses_json_member_real(w, "accuracy", share(b.hits, s->relation[k].cases));
    ses_json_end_object(w);
}

static void json_relation(ses_json_writer *w, const ses_head_syntax *s, size_t k, int64_t min_cases)
{
    const ses_syntax_relation *x = &s->relation[k];
    ses_json_begin_object(w);
    ses_json_member_stringn(w, "relation", x->name.p, x->name.n);
    ses_json_member_int(w, "cases", x->cases);
    ses_json_member_int(w, "offset", x->offset);
    ses_json_member_int(w, "offset_hits", x->offset_hits);
    ses_json_member_real(w, "offset_accuracy", share(x->offset_hits, x->cases));
    if (x->cases >= min_cases) {
        json_best(w, s, SES_FROM_DEPENDENT, k);
        json_best(w, s, SES_FROM_HEAD, k);
    }
    ses_json_end_object(w);
}

static void json_hits(ses_json_writer *w, const ses_head_syntax *s, int64_t layer, int64_t head)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", layer + 1);
    ses_json_member_int(w, "head", head + 1);
    for (int d = 0; d < SES_SYNTAX_DIRECTIONS; d++) {
        ses_json_member_array(w, direction_name[d]);
        for (size_t k = 0; k < s->n; k++)
            ses_json_put_int(w, ses_head_syntax_hits(s, (ses_syntax_direction)d, layer, head, k));
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

void ses_head_syntax_json(const ses_head_syntax *s, int64_t min_cases, ses_json_writer *w)
{
    ses_json_member_object(w, "syntax");
    ses_json_member_int(w, "sentences", s->sentences);
    ses_json_member_int(w, "truncated", s->truncated);
    ses_json_member_array(w, "relations");
    for (size_t k = 0; k < s->n; k++) json_relation(w, s, k, min_cases);
    ses_json_end_array(w);
    ses_json_member_array(w, "hits"); /* in the order of the relations */
    for (int64_t l = 0; l < s->layers; l++) {
        if (s->chosen && !ses_layer_set_has(s->chosen, l + 1)) continue;
        for (int64_t h = 0; h < s->heads; h++) json_hits(w, s, l, h);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}
