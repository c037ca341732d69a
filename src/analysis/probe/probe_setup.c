/* Options that apply to a probe, and its layers. */
#include "probe_setup.h"

#include "analysis/word_states.h"
#include "base/str.h"
#include "data/row_overlap.h"
#include "model/model_desc.h"

enum {
    TAGS = SES_PROBE_WORDS_CONLLU | SES_PROBE_WORDS_COLUMNS,
    TEXTS = SES_PROBE_TEXT_TABLE | SES_PROBE_TEXT_CONLLU,
    CLASSIFIERS = TAGS | TEXTS | SES_PROBE_ARCS,
    CONLLU = SES_PROBE_WORDS_CONLLU | SES_PROBE_TEXT_CONLLU | SES_PROBE_ARCS | SES_PROBE_TREES,
};

/* Kinds of classifiers. */
enum { LINEAR = 1, MLP = 2, NET = 4, ANY = LINEAR | MLP | NET };

#define AT(field) offsetof(ses_probe_args, field)
static const struct rule {
    const char *option;
    size_t given; /* offset of the bool */
    int inputs, probes;
} rules[] = {
    { "word-pieces", AT(pieces_given), TAGS | SES_PROBE_ARCS | SES_PROBE_TREES, ANY },
    { "tags", AT(classify.given.columns), TAGS, ANY },
    { "column", AT(classify.given.text), SES_PROBE_TEXT_TABLE, ANY },
    { "pair-column", AT(classify.given.pair), SES_PROBE_TEXT_TABLE, ANY },
    { "label-column", AT(classify.given.label), SES_PROBE_TEXT_TABLE, ANY },
    { "task", AT(classify.given.task), SES_PROBE_TEXT_CONLLU, ANY },
    { "pool", AT(classify.given.pool), TEXTS, ANY },
    { "mlp", AT(classify.given.mlp), CLASSIFIERS, LINEAR | MLP },
    { "regularization", AT(classify.given.c), CLASSIFIERS, LINEAR },
    { "tolerance", AT(classify.given.tolerance), CLASSIFIERS, LINEAR },
    { "edge", AT(classify.edge), CLASSIFIERS, ANY },
    { "mix", AT(classify.mix), CLASSIFIERS, ANY },
    { "mdl", AT(classify.mdl), CLASSIFIERS, ANY },
    { "no-control", AT(classify.no_control), CLASSIFIERS, ANY },
    { "max-train", AT(classify.given.max_train), CLASSIFIERS, ANY },
    { "vectors", AT(classify.given.vectors), CLASSIFIERS, LINEAR | MLP },
    { "rank", AT(tree.given.rank), SES_PROBE_TREES, ANY },
    { "tree-epochs", AT(tree.given.epochs), SES_PROBE_TREES, ANY },
    { "draw", AT(tree.given.draw), SES_PROBE_TREES, ANY },
    { "skip-invalid", AT(tree.skip_invalid), CONLLU, ANY },
};

static bool refuse(const struct rule *r, const ses_probe_args *a, int input, ses_err *e)
{
    static const char *const name[] = {
        "tag with CoNLL-U", "tag with column files", "text with tables", "text with CoNLL-U", "arc", "tree"
    };
    if (!(r->inputs & input)) {
        ses_buf list = { 0 };
        for (size_t i = 0; i < SES_LEN(name); i++)
            if (r->inputs >> i & 1) ses_buf_appendf(&list, "%s%s", list.len ? ", " : "", name[i]);
        ses_fail(e, SES_EUSAGE, "--%s has no effect on this probe; it applies to: %s", r->option,
                 list.data ? list.data : "");
        ses_buf_free(&list);
        return false;
    }
    const char *other = a->classify.edge ? "edge" : a->classify.mix ? "mix" : "mlp";
    return ses_fail(e, SES_EUSAGE, "--%s has no effect with --%s: leave one out", r->option, other);
}

bool ses_probe_check_options(const ses_probe_args *a, ses_probe_input input, ses_err *e)
{
    int probe = a->classify.edge || a->classify.mix ? NET : a->classify.mlp ? MLP : LINEAR;
    for (size_t i = 0; i < SES_LEN(rules); i++)
        if (*((const bool *)a + rules[i].given) &&
            !((rules[i].inputs & (int)input) && (rules[i].probes & probe)))
            return refuse(&rules[i], a, (int)input, e);
    if (a->no_random && a->classify.random_all)
        return ses_fail(e, SES_EUSAGE, "--random-all has no effect with --no-random: leave one out");
    return true;
}

bool ses_probe_check_pool(const ses_analysis_call *c, const ses_probe_args *a, ses_err *e)
{
    bool first = SES_STATES_TEXT_MEAN + a->classify.pool == SES_STATES_TEXT_FIRST;
    return !first || a->decoder /* it sees the source */ ||
           ses_model_check_first_token(c->model, "--pool first", e);
}

bool ses_probe_choose_layers(const ses_analysis_call *c, bool decoder, int64_t *layers, size_t *n,
                             bool *added, ses_err *e)
{
    int64_t depth = ses_word_states_depth(c->model, decoder);
    bool any = false;
    *n = 0;
    if (depth < 0)
        return ses_fail(e, SES_EARG, "--decoder: %s has no decoder with hidden states of its own",
                        ses_model_class_name(c->model));
    for (int64_t l = 0; l <= depth && l < SES_LAYER_SET_MAX; l++) {
        bool chosen = ses_layer_set_has(&c->layers, l);
        if (chosen || !l) layers[(*n)++] = l;
        any |= chosen;
    }
    *added = !ses_layer_set_has(&c->layers, 0);
    return any || ses_fail(e, SES_EUSAGE, "--layers: the model has layers 0 to %lld", (long long)depth);
}

void ses_probe_note_skipped(const ses_analysis_call *c, const ses_conllu *f, const char *path)
{
    if (ses_conllu_skipped(f))
        ses_report_note(c->report, "%llu invalid sentences of %s were skipped; the first: %s.",
                        (unsigned long long)ses_conllu_skipped(f), path, ses_conllu_first_skipped(f));
}

static bool add_texts(ses_row_set *s, const ses_input *x, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++) {
        const ses_string text[] = { x[i].text, x[i].pair };
        bool words = x[i].n_words > 0;
        if (!ses_row_set_add(s, words ? x[i].words : text, words ? x[i].n_words : 2, e)) return false;
    }
    return true;
}

bool ses_probe_note_overlap(ses_report *report, const ses_input *train, size_t n_train, const ses_input *test,
                            size_t n_test, size_t *shared, ses_err *e)
{
    char text[400];
    ses_row_set a = { 0 }, b = { 0 };
    bool ok = add_texts(&a, train, n_train, e) && add_texts(&b, test, n_test, e);
    if (ok) {
        ses_row_overlap o = ses_row_set_overlap(&a, &b);
        *shared = o.shared;
        if (*ses_row_overlap_text(&o, "test", text, sizeof text)) ses_report_note(report, "%s.", text);
    }
    ses_row_set_free(&a);
    ses_row_set_free(&b);
    return ok;
}

void ses_probe_note_windows(const ses_analysis_call *c, size_t windowed)
{
    if (windowed)
        ses_report_note(c->report,
                        "%zu text%s longer than the model's %lld tokens: read in overlapping windows.",
                        windowed, windowed == 1 ? " is" : "s are", (long long)ses_model_max_tokens(c->model));
}
