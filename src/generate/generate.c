/* The loop of generation: prompts come to work as others finish, each pass takes one token of every text. */
#include "generate_impl.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "model/model_desc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CACHE_TOKENS = 16384, /* kept at a time, where the caller does not say */
    MOST_LANES = 64,      /* of a pass: more make it no cheaper a token */
    READ_TOKENS = 4096    /* of prompts read in one pass, at least one prompt */
};

/* ---- what may be wrong with the options ---- */

static bool check_ids(ses_ids ids, int64_t vocab, const char *what, ses_err *e)
{
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < 0 || ids.id[i] >= vocab)
            return ses_fail(e, SES_EARG, "%s: token id %d, expected 0 to %lld", what, (int)ids.id[i],
                            (long long)vocab - 1);
    return true;
}

static bool in_range(double x, double low, double high, const char *what, ses_err *e)
{
    if (x >= low && x <= high) return true;
    return ses_fail(e, SES_EARG, "%s is %g, expected %g to %g", what, x, low, high);
}

static bool check_numbers(const ses_generate_options *o, ses_err *e)
{
    if (!(o->temperature > 0))
        return ses_fail(e, SES_EARG, "temperature is %g, expected a number above 0%s", o->temperature,
                        o->temperature == 0 ? " (without do_sample the likeliest token is taken)" : "");
    if (!(o->repetition_penalty > 0) || !(o->encoder_repetition_penalty > 0))
        return ses_fail(e, SES_EARG, "repetition_penalty must be above 0");
    return in_range((double)o->top_k, 0, 1e9, "top_k", e) && in_range(o->top_p, 0, 1, "top_p", e) &&
           in_range(o->min_p, 0, 1, "min_p", e) && in_range(o->typical_p, 0, 1, "typical_p", e) &&
           in_range(o->top_h, 0, 1, "top_h", e) && in_range(o->epsilon_cutoff, 0, 1, "epsilon_cutoff", e) &&
           in_range(o->eta_cutoff, 0, 1, "eta_cutoff", e) &&
           in_range((double)o->no_repeat_ngram_size, 0, 1e6, "no_repeat_ngram_size", e) &&
           in_range((double)o->encoder_no_repeat_ngram_size, 0, 1e6, "encoder_no_repeat_ngram_size", e) &&
           in_range((double)o->max_new_tokens, 0, 1e9, "max_new_tokens", e) &&
           in_range((double)o->max_length, 0, 1e9, "max_length", e) &&
           in_range((double)o->decay_start, -1e9, 1e9, "exponential_decay_length_penalty's start", e);
}

static bool check_beams(const ses_generate_options *o, ses_err *e)
{
    int64_t groups = o->num_beam_groups;
    if (o->num_beams < 1 || o->num_beams > 4096)
        return ses_fail(e, SES_EARG, "num_beams is %lld, expected 1 to 4096", (long long)o->num_beams);
    if (groups < 1 || o->num_beams % groups)
        return ses_fail(e, SES_EARG, "%lld beams cannot be cut into %lld groups", (long long)o->num_beams,
                        (long long)groups);
    if (groups > 1 && o->do_sample)
        return ses_fail(e, SES_EARG, "groups of beams do not sample: num_beam_groups or do_sample");
    if (o->num_return_sequences < 1 || o->num_return_sequences > 4096)
        return ses_fail(e, SES_EARG, "num_return_sequences is %lld, expected 1 to 4096",
                        (long long)o->num_return_sequences);
    if (o->num_return_sequences > 1 && o->num_beams == 1 && !o->do_sample)
        return ses_fail(e, SES_EARG,
                        "num_return_sequences is %lld, but without beams or do_sample there is only one text",
                        (long long)o->num_return_sequences);
    if (o->num_beams > 1 && o->num_return_sequences > o->num_beams)
        return ses_fail(e, SES_EARG, "num_return_sequences is %lld, more than num_beams, %lld",
                        (long long)o->num_return_sequences, (long long)o->num_beams);
    if (o->num_beams > 1 && o->on_token)
        return ses_fail(e, SES_EARG, "beams are not written token by token: no on_token");
    return true;
}

/* One of the tokens that are forced must be allowed. */
static bool check_forced(ses_ids forced, ses_ids suppress, const char *what, ses_err *e)
{
    int64_t banned = 0;
    for (int64_t i = 0; i < forced.n; i++) {
        bool found = false;
        for (int64_t k = 0; k < suppress.n; k++) found |= suppress.id[k] == forced.id[i];
        banned += found;
    }
    return !forced.n || banned < forced.n ||
           ses_fail(e, SES_EARG, "suppress_tokens has every token of %s: %d is forced and forbidden at once",
                    what, (int)forced.id[0]);
}

static bool check_words(const ses_generate_ctx *w, ses_err *e)
{
    const ses_generate_options *o = &w->o;
    if (o->n_stop_strings && !o->tokenizer) return ses_fail(e, SES_EARG, "stop_strings need a tokenizer");
    for (int64_t i = 0; i < o->n_bad_words; i++)
        if (o->bad_words[i].n < 1 || !check_ids(o->bad_words[i], w->vocab, "bad_words_ids", e))
            return ses_fail(e, SES_EARG, "bad_words_ids has an empty list");
    for (int64_t i = 0; i < o->n_sequence_bias; i++)
        if (o->sequence_bias[i].ids.n < 1 ||
            !check_ids(o->sequence_bias[i].ids, w->vocab, "sequence_bias", e))
            return ses_fail(e, SES_EARG, "sequence_bias has an empty list");
    ses_ids bos = { &o->forced_bos, o->forced_bos >= 0 };
    return check_ids(o->forced_eos, w->vocab, "forced_eos_token_id", e) &&
           check_ids(bos, w->vocab, "forced_bos_token_id", e) &&
           check_forced(bos, o->suppress, "forced_bos_token_id", e) &&
           check_forced(o->forced_eos, o->suppress, "forced_eos_token_id", e);
}

/* ---- prompts ---- */

static void work_free(ses_prompt_state *k)
{
    if (!k) return;
    ses_arena_free(&k->mem);
    ses_free(k);
}

/* The tokens a prompt's lanes begin with. */
static ses_ids beginning(const ses_generate_ctx *w, const ses_prompt *p, int32_t *room)
{
    if (!w->pair) return p->ids;
    int64_t n = 0;
    if (!p->decoder_ids.n || p->decoder_ids.id[0] != w->o.decoder_start) room[n++] = w->o.decoder_start;
    for (int64_t i = 0; i < p->decoder_ids.n; i++) room[n++] = p->decoder_ids.id[i];
    return (ses_ids){ room, n };
}

static bool lengths(const ses_generate_ctx *w, ses_prompt_state *k, ses_err *e)
{
    const ses_generate_options *o = &w->o;
    int64_t most = ses_model_max_tokens(w->model);
    if (k->given > most)
        return ses_fail(e, SES_EARG, "prompt %lld has %lld tokens, the model takes at most %lld",
                        (long long)k->index, (long long)k->given, (long long)most);
    k->max_length = o->max_new_tokens ? k->given + o->max_new_tokens
                    : o->max_length   ? o->max_length
                                      : k->given + 20;
    if (k->max_length > most + 1) k->max_length = most + 1; /* the last token is not read any more */
    if (k->given >= k->max_length)
        return ses_fail(e, SES_EARG,
                        "prompt %lld has %lld tokens, max_length is %lld: nothing is left to write",
                        (long long)k->index, (long long)k->given, (long long)k->max_length);
    k->min_length = o->min_new_tokens ? k->given + o->min_new_tokens : o->min_length;
    return true;
}

static bool lanes_new(ses_generate_ctx *w, ses_prompt_state *k, ses_ids from, int64_t place, ses_err *e)
{
    k->lanes = w->search->lanes(&w->o);
    k->lane = ses_arena_array(&k->mem, (size_t)k->lanes, sizeof *k->lane, e);
    for (int64_t i = 0; k->lane && i < k->lanes; i++) {
        ses_hypothesis *l = &k->lane[i];
        l->slot = (int32_t)(place * k->lanes + i), l->n = from.n;
        l->id = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof *l->id, e);
        l->logprob = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof *l->logprob, e);
        if (!l->id || !l->logprob) return false;
        memcpy(l->id, from.id, (size_t)from.n * sizeof *l->id);
    }
    return k->lane != NULL;
}

static ses_prompt_state *work_new(ses_generate_ctx *w, int64_t index, int64_t place, ses_err *e)
{
    const ses_prompt *p = &w->prompt[index];
    ses_prompt_state *k = ses_alloc(sizeof *k, e);
    int32_t *room = k ? ses_arena_array(&k->mem, (size_t)p->decoder_ids.n + 1, sizeof *room, e) : NULL;
    if (!room) goto fail;
    ses_ids from = beginning(w, p, room);
    k->index = index, k->source = p->ids, k->given = from.n;
    k->mark = (uint32_t)ses_hash((ses_hash_key){ 0, 0 }, p->ids.id, (size_t)p->ids.n * sizeof *p->ids.id);
    if (!lengths(w, k, e) || !lanes_new(w, k, from, place, e) || !w->search->begin(w, k, e)) goto fail;
    return k;
fail:
    work_free(k);
    return NULL;
}

/* ---- passes ---- */

double ses_generate_next_scores(ses_generate_ctx *w, const ses_prompt_state *k, const ses_hypothesis *l,
                                const ses_real *raw, bool logs)
{
    for (int64_t i = 0; i < w->vocab; i++) w->score[i] = (float)raw[i];
    double lse = ses_log_sum_exp(w->score, w->vocab);
    for (int64_t i = 0; logs && i < w->vocab; i++) w->score[i] = (float)((double)w->score[i] - lse);
    ses_logits_ctx s = {
        .o = &w->o, .score = w->score, .vocab = w->vocab, .id = l->id, .n = l->n, .prompt_len = k->given
    };
    s.max_length = k->max_length, s.min_length = k->min_length, s.source = k->source, s.rank = w->rank;
    s.keep = w->o.num_beams > 1 ? (w->o.eos.n ? w->o.eos.n : 1) + 1 : 1;
    if (s.keep > w->vocab) s.keep = w->vocab;
    ses_logits_process(&s);
    return lse;
}

void ses_generate_reorder_cache(ses_generate_ctx *w, int32_t to, int32_t from)
{
    if (to == from) return;
    w->to[w->n_take] = to, w->from[w->n_take++] = from;
}

static bool take_slots(ses_generate_ctx *w, ses_err *e)
{
    bool ok = !w->n_take || (w->memory ? ses_mems_reorder(w->memory, w->n_take, w->to, w->from, e)
                                       : ses_cache_reorder(w->cache, w->n_take, w->to, w->from, e));
    w->n_take = 0;
    return ok;
}

static bool row_room(ses_generate_ctx *w, int64_t rows, ses_err *e)
{
    size_t n;
    if (rows <= w->row_room) return true;
    if (!ses_mul_size((size_t)rows, (size_t)w->vocab, &n))
        return ses_fail(e, SES_ENOMEM, "too many rows of scores");
    ses_real *raw = ses_realloc_array(w->raw, n, sizeof *raw, e);
    if (raw) w->raw = raw, w->row_room = rows;
    return raw != NULL;
}

/* The model reads the batch, whose sequences' last tokens are asked; their scores go to w->raw. */
static bool pass(ses_generate_ctx *w, const ses_batch *b, ses_err *e)
{
    ses_outputs out;
    if (w->memory && !(b = ses_mems_begin_pass(w->memory, b, e))) return false;
    const int32_t *cu = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    int32_t *last = ses_alloc_array((size_t)b->seqs, sizeof *last, e);
    for (int64_t s = 0; last && s < b->seqs; s++) last[s] = cu[s + 1] - 1;
    ses_output_request want = { .logits = true, .rows = last, .n_rows = b->seqs, .mems = w->memory };
    ses_tape_reset(w->tape, NULL);
    bool ok = last && row_room(w, b->seqs, e) && ses_model_forward(w->model, w->tape, b, &want, &out, e);
    const ses_output *logits = ok ? ses_outputs_find(&out, w->output) : NULL;
    const ses_tensor *x = logits && logits->axis == SES_PER_ROW ? logits->tensor : NULL;
    ok = x && ses_count(x) == b->seqs * w->vocab && ses_tape_read(w->tape, x, w->raw);
    ses_free(last);
    w->out->tokens_read += cu[b->seqs] + (b->target_cu_seqlens && b->ids ? b->tokens : 0);
    if (!ok) return ses_fail(e, SES_EARG, "the model gave no scores of its vocabulary");
    return !w->memory || ses_mems_end_pass(w->memory, w->tape, &out, e);
}

/* Sequences of a pass. */
typedef struct packed {
    int32_t *cu, *id, *source_cu, *source, *slot;
    int64_t n, tokens, sources;
} packed;

static bool packed_new(packed *p, int64_t seqs, int64_t tokens, int64_t sources, ses_err *e)
{
    size_t total = 3 * (size_t)seqs + 2 + (size_t)tokens + (size_t)sources;
    *p = (packed){ .cu = ses_alloc_array(total, sizeof *p->cu, e) };
    if (!p->cu) return false;
    p->source_cu = p->cu + seqs + 1, p->slot = p->source_cu + seqs + 1, p->id = p->slot + seqs,
    p->source = p->id + tokens;
    return true;
}

static void packed_add(packed *p, int32_t slot, const int32_t *id, int64_t n, ses_ids source)
{
    memcpy(p->id + p->tokens, id, (size_t)n * sizeof *id);
    if (source.n) memcpy(p->source + p->sources, source.id, (size_t)source.n * sizeof *source.id);
    p->slot[p->n++] = slot;
    p->cu[p->n] = (int32_t)(p->tokens += n);
    p->source_cu[p->n] = (int32_t)(p->sources += source.n);
}

static ses_batch packed_batch(const ses_generate_ctx *w, const packed *p)
{
    ses_batch b = { .seqs = p->n, .tokens = p->tokens, .cu_seqlens = p->cu, .ids = p->id };
    if (w->pair) b = (ses_batch){ .seqs = p->n, .target_cu_seqlens = p->cu, .target_ids = p->id };
    b.slots = p->slot, b.cache = w->cache;
    if (!w->pair) return b;
    if (p->sources) b.tokens = p->sources, b.cu_seqlens = p->source_cu, b.ids = p->source;
    return b;
}

/* Every lane of a prompt steps from its row of raw; a NULL stride gives all the first. */
static bool step(ses_generate_ctx *w, ses_prompt_state *k, const ses_real *raw, bool shared, ses_err *e)
{
    const ses_real **row = ses_alloc_array((size_t)k->lanes, sizeof *row, e);
    int64_t at = 0;
    for (int64_t i = 0; row && i < k->lanes; i++) {
        row[i] = raw + at * w->vocab;
        if (!shared && !k->lane[i].done) at++;
    }
    bool ok = row && w->search->step(w, k, row, e);
    ses_free(row);
    return ok;
}

/* New prompts, from place `first` on, are read and step for the first time. */
static bool read_new(ses_generate_ctx *w, const int64_t *place, int64_t n, ses_err *e)
{
    int64_t tokens = 0, sources = 0;
    packed p;
    for (int64_t i = 0; i < n; i++) {
        tokens += w->work[place[i]]->given;
        sources += w->pair ? w->work[place[i]]->source.n : 0;
    }
    if (!packed_new(&p, n, tokens, sources, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        const ses_prompt_state *k = w->work[place[i]];
        packed_add(&p, k->lane[0].slot, k->lane[0].id, k->given, w->pair ? k->source : (ses_ids){ NULL, 0 });
        for (int64_t l = 1; l < k->lanes; l++)
            ses_generate_reorder_cache(w, k->lane[l].slot, k->lane[0].slot);
    }
    ses_batch b = packed_batch(w, &p);
    bool ok = pass(w, &b, e) && take_slots(w, e);
    ses_free(p.cu);
    for (int64_t i = 0; ok && i < n && !w->out->cancelled; i++)
        ok = step(w, w->work[place[i]], w->raw + i * w->vocab, true, e);
    return ok && take_slots(w, e);
}

/* Prompts come to free places, some at a time. */
static bool admit(ses_generate_ctx *w, ses_err *e)
{
    int64_t *place = ses_alloc_array((size_t)w->places, sizeof *place, e), n = 0, tokens = 0;
    bool ok = place != NULL;
    for (int64_t i = 0; ok && i < w->places && w->next < w->n_prompts; i++) {
        if (w->work[i]) continue;
        ok = (w->work[i] = work_new(w, w->next, i, e)) != NULL;
        if (!ok) break;
        w->next++;
        place[n++] = i;
        tokens += w->work[i]->given + (w->pair ? w->work[i]->source.n : 0);
        if (tokens < READ_TOKENS) continue;
        ok = read_new(w, place, n, e);
        n = tokens = 0;
        if (w->out->cancelled) break;
    }
    if (ok && n && !w->out->cancelled) ok = read_new(w, place, n, e);
    ses_free(place);
    return ok;
}

/* A text that ends while another goes on keeps its slot until the prompt is done. */
static bool go_on(ses_generate_ctx *w, ses_err *e)
{
    int64_t lanes = 0, at = 0;
    packed p;
    for (int64_t i = 0; i < w->places; i++)
        for (int64_t l = 0; w->work[i] && l < w->work[i]->lanes; l++) lanes += !w->work[i]->lane[l].done;
    if (!lanes) return true;
    if (!packed_new(&p, lanes, lanes, 0, e)) return false;
    for (int64_t i = 0; i < w->places; i++)
        for (int64_t l = 0; w->work[i] && l < w->work[i]->lanes; l++) {
            const ses_hypothesis *x = &w->work[i]->lane[l];
            if (!x->done) packed_add(&p, x->slot, x->id + x->n - 1, 1, (ses_ids){ NULL, 0 });
        }
    ses_batch b = packed_batch(w, &p);
    bool ok = pass(w, &b, e);
    for (int64_t i = 0; ok && i < w->places && !w->out->cancelled; i++) {
        ses_prompt_state *k = w->work[i];
        int64_t mine = 0;
        for (int64_t l = 0; k && l < k->lanes; l++) mine += !k->lane[l].done;
        if (k) ok = step(w, k, w->raw + at * w->vocab, false, e);
        at += mine;
    }
    ses_free(p.cu);
    return ok && take_slots(w, e);
}

static void forget(ses_generate_ctx *w, int32_t slot)
{
    if (w->memory)
        ses_mems_clear_slot(w->memory, slot);
    else
        ses_cache_trim(w->cache, slot, 0);
}

/* Finished prompts give their texts and their places away. */
static bool collect(ses_generate_ctx *w, ses_err *e)
{
    for (int64_t i = 0; i < w->places; i++) {
        ses_prompt_state *k = w->work[i];
        if (!k || !(k->done || w->out->cancelled)) continue;
        ses_generated_sequence *text = w->out->sequence + k->index * w->o.num_return_sequences;
        if (!w->search->finish(w, k, text, e)) return false;
        for (int64_t r = 0; r < w->o.num_return_sequences; r++)
            w->out->tokens_generated += text[r].ids.n - text[r].prompt_len;
        for (int64_t l = 0; l < k->lanes; l++) forget(w, k->lane[l].slot);
        work_free(k);
        w->work[i] = NULL;
    }
    return true;
}

/* ---- the whole ---- */

/* The longest text decides the room of a slot; how many are kept follows. */
static bool prepare(ses_generate_ctx *w, ses_err *e)
{
    int64_t room = 1, lanes = w->search->lanes(&w->o),
            kept = w->o.cache_tokens ? w->o.cache_tokens : CACHE_TOKENS;
    for (int64_t i = 0; i < w->n_prompts; i++) {
        ses_prompt_state k = { .index = i, .given = w->prompt[i].ids.n };
        if (w->pair) k.given = w->prompt[i].decoder_ids.n + 1;
        if (w->prompt[i].ids.n < 1) return ses_fail(e, SES_EARG, "prompt %lld is empty", (long long)i);
        if (!check_ids(w->prompt[i].ids, w->vocab, "prompt", e) || !lengths(w, &k, e)) return false;
        if (k.max_length > room) room = k.max_length;
    }
    w->places = kept / room < MOST_LANES ? kept / room / lanes : MOST_LANES / lanes;
    if (w->places < 1) w->places = 1;
    if (w->places > w->n_prompts) w->places = w->n_prompts;
    if (w->model->desc->vtable)
        w->memory = ses_mems_new(w->model, w->places * lanes, e);
    else
        w->cache = ses_cache_new(w->model, w->places * lanes, room, e);
    w->tape = w->cache || w->memory ? ses_tape_new(w->model->dev, NULL, e) : NULL;
    if (w->o.n_stop_strings) w->tokens = ses_tokens_new(w->o.tokenizer, e);
    w->work = ses_alloc_array((size_t)w->places, sizeof *w->work, e);
    w->to = ses_alloc_array((size_t)(w->places * lanes), sizeof *w->to, e);
    w->from = ses_alloc_array((size_t)(w->places * lanes), sizeof *w->from, e);
    w->score = ses_alloc_array((size_t)w->vocab, sizeof *w->score, e);
    w->rank = ses_alloc_array((size_t)w->vocab, sizeof *w->rank, e);
    size_t texts = 0;
    if (!ses_mul_size((size_t)w->n_prompts, (size_t)w->o.num_return_sequences, &texts))
        return ses_fail(e, SES_ENOMEM, "too many texts");
    w->out->n = (int64_t)texts;
    w->out->sequence = ses_alloc_array(texts, sizeof *w->out->sequence, e);
    return w->tape && (w->tokens || !w->o.n_stop_strings) && w->work && w->to && w->from && w->score &&
           w->rank && w->out->sequence;
}

static bool run(ses_generate_ctx *w, ses_err *e)
{
    bool busy = true;
    while (busy && !w->out->cancelled) {
        if (!admit(w, e) || !collect(w, e) || (!w->out->cancelled && !go_on(w, e)) || !collect(w, e))
            return false;
        busy = w->next < w->n_prompts;
        for (int64_t i = 0; i < w->places; i++) busy |= w->work[i] != NULL;
    }
    for (int64_t i = 0; i < w->out->n; i++) /* prompts that were not reached */
        if (!w->out->sequence[i].ids.id)
            w->out->sequence[i] = (ses_generated_sequence){ .prompt = i / w->o.num_return_sequences,
                                                            .finish = SES_FINISH_CANCELLED };
    return true;
}

/* Can this class write? */
static bool check_model(ses_generate_ctx *w, ses_err *e)
{
    const ses_head_use *use = ses_class_lm_head(w->model->desc, w->model->class);
    if (!use)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s does not write texts: a class for causal language modeling or conditional "
                        "generation is needed",
                        ses_model_class_name(w->model));
    w->output = use->output;
    w->pair = use->head == &ses_head_seq2seq_lm;
    if (w->pair && w->o.decoder_start < 0) w->o.decoder_start = w->o.bos;
    if (w->pair && w->o.decoder_start >= w->vocab)
        return ses_fail(e, SES_EARG, "decoder_start_token_id is %d, expected 0 to %lld",
                        (int)w->o.decoder_start, (long long)w->vocab - 1);
    if (w->pair && w->o.decoder_start < 0)
        return ses_fail(e, SES_EARG, "decoder_start_token_id is not said, nor bos_token_id");
    return true;
}

ses_generated *ses_generate(const ses_model *m, const ses_prompt *prompt, int64_t n,
                            const ses_generate_options *o, ses_err *e)
{
    ses_generate_ctx w = {
        .model = m, .o = *o, .prompt = prompt, .n_prompts = n, .vocab = ses_model_vocab_size(m)
    };
    w.search = o->num_beams > 1 ? &ses_decoding_beam : &ses_decoding_sample;
    w.out = ses_alloc(sizeof *w.out, e);
    bool ok = w.out && check_model(&w, e) && check_beams(o, e) && check_numbers(o, e) && check_words(&w, e);
    ok = ok && (n < 1 || (prepare(&w, e) && run(&w, e)));
    for (int64_t i = 0; w.work && i < w.places; i++) work_free(w.work[i]);
    ses_cache_free(w.cache);
    ses_mems_free(w.memory);
    ses_tape_free(w.tape);
    ses_tokens_free(w.tokens);
    ses_free(w.work), ses_free(w.to), ses_free(w.from), ses_free(w.raw), ses_free(w.score), ses_free(w.rank);
    if (ok) return w.out;
    ses_generated_free(w.out);
    return NULL;
}

void ses_generated_free(ses_generated *r)
{
    if (!r) return;
    for (int64_t i = 0; r->sequence && i < r->n; i++) {
        ses_free((void *)(uintptr_t)r->sequence[i].ids.id);
        ses_free((void *)(uintptr_t)r->sequence[i].logprob);
    }
    ses_free(r->sequence);
    ses_free(r);
}
