/* What the reference library wrote, greedily and with four beams, against what we write: token for token. */
#include "sesame/generate.h"
#include "base/alloc.h"
#include "compare.h"

#include <stdio.h>
#include <string.h>

enum { NEW_TOKENS = 12 };

static const struct way {
    const char *name;
    int64_t beams;
} ways[] = { { "generate.greedy", 1 }, { "generate.beam4", 4 } };

/* How many tokens of a decoder's text follow from places the case shows: all, but where its position table
 * was lost and read off the decoder's states. */
static int64_t sure(const gold_case *c)
{
    int64_t longest = 0;
    if (!c->lost_positions || !c->batch.target_cu_seqlens) return INT64_MAX;
    for (int64_t s = 0; s < c->rows; s++) {
        int64_t n = c->batch.target_cu_seqlens[s + 1] - c->batch.target_cu_seqlens[s];
        if (n > longest) longest = n;
    }
    return longest + 1;
}

/* Tokens that differ among the first `most` of a row; behind our text the reference fills up, with pads or
 * ends. */
static int64_t differ(const ses_generated_sequence *ours, const double *theirs, int64_t width, int64_t most,
                      const ses_generate_options *o)
{
    int64_t bad = ours->ids.n > width && most > width ? ours->ids.n - width : 0;
    for (int64_t t = 0; t < width && t < most; t++) {
        int32_t id = (int32_t)theirs[t];
        bool same =
            t < ours->ids.n ? ours->ids.id[t] == id : id == o->pad || (o->eos.n && id == o->eos.id[0]);
        bad += !same;
    }
    return bad;
}

static bool compare(gold_case *c, const ses_model *m, const struct way *way,
                    const ses_generate_options *given, gold_result *r, ses_err *e)
{
    int64_t count, inputs, bad = 0;
    const ses_tensor_entry *shape = ses_safetensors_find(c->gold, "generate.input_ids");
    const double *theirs = gold_numbers(c, way->name, &count, e),
                 *in = gold_numbers(c, "generate.input_ids", &inputs, e);
    int64_t most = sure(c);
    if (!theirs || !in || !shape || shape->rank < 2) return true; /* none is given */
    if (way->beams > 1 && most <= NEW_TOKENS) return true;        /* a beam is chosen by all of its tokens */
    int64_t rows = shape->dim[0], width = inputs / rows;
    int32_t *id = ses_arena_array(&c->mem, (size_t)inputs, sizeof *id, e);
    ses_prompt *prompt = ses_arena_array(&c->mem, (size_t)rows, sizeof *prompt, e);
    if (!id || !prompt) return false;
    for (int64_t i = 0; i < inputs; i++) id[i] = (int32_t)in[i];
    for (int64_t i = 0; i < rows; i++) prompt[i].ids = (ses_ids){ id + i * width, width };
    ses_generate_options o = *given;
    o.max_new_tokens = NEW_TOKENS, o.do_sample = false, o.num_beams = way->beams, o.num_return_sequences = 1;
    if (way->beams > 1) o.early_stopping = SES_EARLY_TRUE, o.length_penalty = 1;
    ses_generated *ours = ses_generate(m, prompt, rows, &o, e);
    if (!ours) return false;
    for (int64_t i = 0; i < rows; i++)
        bad += differ(&ours->sequence[i], theirs + i * (count / rows), count / rows, most, &o);
    ses_generated_free(ours);
    if (r->verbose) printf("  %-60s %lld tokens differ\n", way->name, (long long)bad);
    if (!r->written.any || bad) {
        r->written.any = true, r->written.share = bad ? 1 + (double)bad : 0;
        snprintf(r->written.name, sizeof r->written.name, "%s", way->name);
    }
    return true;
}

bool gold_compare_written(gold_case *c, const ses_model *m, gold_result *r, ses_err *e)
{
    ses_generation_config *g = ses_generation_config_open(m, e);
    bool ok = g != NULL;
    for (size_t i = 0; ok && i < SES_LEN(ways); i++)
        ok = compare(c, m, &ways[i], ses_generation_config_options(g), r, e) ||
             ses_wrap(e, "%s", ways[i].name);
    ses_generation_config_free(g);
    return ok;
}
