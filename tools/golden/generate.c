/* Compares generated texts (greedy, four beams) with transformers', token by token. */
#include "sesame/generate.h"
#include "base/alloc.h"
#include "compare.h"

#include <stdio.h>
#include <string.h>

enum { NEW_TOKENS = 12 };

static const struct mode {
    const char *name;
    int64_t beams;
} modes[] = { { "generate.greedy", 1 }, { "generate.beam4", 4 } };

/* Number of tokens of a decoder's text whose positions the case contains: all, unless the position table was
 * lost and read off the decoder's states. */
static int64_t known_tokens(const golden_case *c)
{
    int64_t max_len = 0;
    if (!c->lost_positions || !c->batch.target_cu_seqlens) return INT64_MAX;
    for (int64_t s = 0; s < c->rows; s++) {
        int64_t n = c->batch.target_cu_seqlens[s + 1] - c->batch.target_cu_seqlens[s];
        if (n > max_len) max_len = n;
    }
    return max_len + 1;
}

/* Number of different tokens among the first max_tokens of a row; transformers fills up shorter texts with
 * padding or EOS. */
static int64_t count_differences(const ses_generated_sequence *ours, const double *theirs, int64_t width,
                                 int64_t max_tokens, const ses_generate_options *o)
{
    int64_t bad = ours->ids.n > width && max_tokens > width ? ours->ids.n - width : 0;
    for (int64_t t = 0; t < width && t < max_tokens; t++) {
        int32_t id = (int32_t)theirs[t];
        bool same =
            t < ours->ids.n ? ours->ids.id[t] == id : id == o->pad || (o->eos.n && id == o->eos.id[0]);
        bad += !same;
    }
    return bad;
}

static bool compare(golden_case *c, const ses_model *m, const struct mode *mode,
                    const ses_generate_options *given, golden_result *r, ses_err *e)
{
    int64_t count, inputs, bad = 0;
    const ses_tensor_entry *shape = ses_safetensors_find(c->golden, "generate.input_ids");
    const double *theirs = golden_values(c, mode->name, &count, e),
                 *in = golden_values(c, "generate.input_ids", &inputs, e);
    int64_t max_tokens = known_tokens(c);
    if (!theirs || !in || !shape || shape->rank < 2) return true; /* not in this case */
    if (mode->beams > 1 && max_tokens <= NEW_TOKENS) return true; /* a beam depends on all of its tokens */
    int64_t rows = shape->dim[0], width = inputs / rows;
    int32_t *id = ses_arena_array(&c->mem, (size_t)inputs, sizeof *id, e);
    ses_prompt *prompt = ses_arena_array(&c->mem, (size_t)rows, sizeof *prompt, e);
    if (!id || !prompt) return false;
    for (int64_t i = 0; i < inputs; i++) id[i] = (int32_t)in[i];
    for (int64_t i = 0; i < rows; i++) prompt[i].ids = (ses_ids){ id + i * width, width };
    ses_generate_options o = *given;
    o.max_new_tokens = NEW_TOKENS, o.do_sample = false, o.num_beams = mode->beams, o.num_return_sequences = 1;
    if (mode->beams > 1) o.early_stopping = SES_EARLY_TRUE, o.length_penalty = 1;
    ses_generated *ours = ses_generate(m, prompt, rows, &o, e);
    if (!ours) return false;
    for (int64_t i = 0; i < rows; i++)
        bad +=
            count_differences(&ours->sequence[i], theirs + i * (count / rows), count / rows, max_tokens, &o);
    ses_generated_free(ours);
    if (r->verbose) printf("  %-60s %lld tokens differ\n", mode->name, (long long)bad);
    if (!r->texts.any || bad) {
        r->texts.any = true, r->texts.fraction = bad ? 1 + (double)bad : 0;
        snprintf(r->texts.name, sizeof r->texts.name, "%s", mode->name);
    }
    return true;
}

bool golden_compare_texts(golden_case *c, const ses_model *m, golden_result *r, ses_err *e)
{
    ses_generation_config *g = ses_generation_config_open(m, e);
    bool ok = g != NULL;
    for (size_t i = 0; ok && i < SES_LEN(modes); i++)
        ok = compare(c, m, &modes[i], ses_generation_config_options(g), r, e) ||
             ses_wrap(e, "%s", modes[i].name);
    ses_generation_config_free(g);
    return ok;
}
