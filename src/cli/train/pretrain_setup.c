/* What a pretraining run is made of: tokenizer, config, corpora, objectives, models, course, trainer. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "pretrain_command.h"
#include "train/model_presets.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void ses_pretrain_free(ses_pretrain *p)
{
    ses_run_log_close(&p->run_log);
    ses_trainer_free(p->trainer);
    ses_curriculum_free(p->course);
    ses_objective_mix_free(p->aim);
    ses_teacher_free(&p->teacher);
    ses_model_free(p->generator);
    ses_model_free(p->model);
    for (size_t i = 0; i < p->n_corpora; i++) ses_corpus_free(p->corpus[i]);
    ses_free(p->corpus);
    ses_free(p->part);
    ses_free(p->code);
    ses_json_free(p->config);
    ses_json_free(p->generator_config);
    ses_special_tokens_free(p->lexicon);
    ses_tokenizer_free(p->tokenizer);
    ses_scores_free(&p->scores);
    ses_free(p->settings);
    ses_free(p->log);
    ses_free(p->board);
    ses_device_free(p->dev);
}

/* ---- corpora ---- */

/* "C" or "C:WEIGHT". */
static char *split_weight(const char *text, double *weight, ses_err *e)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? strlen(colon + 1) : 0;
    *weight = 1;
    bool number = n && strspn(colon + 1, "0123456789.") == n && colon[1] != '.' && colon[n] != '.';
    if (!number || !ses_parse_double(colon + 1, n, weight)) return ses_strdup(text, e);
    return ses_strndup(text, (size_t)(colon - text), e);
}

static ses_corpus *open_corpus(const ses_pretrain *p, const char *path, ses_err *e)
{
    uint64_t print = 0;
    ses_corpus *c = ses_corpus_open(path, e);
    bool ok = c && (ses_corpus_verify(c, e) || ses_wrap(e, "%s", path)) &&
              ses_tokenizer_fingerprint(p->tokenizer, &print, e);
    if (ok && print != ses_corpus_info_of(c)->tokenizer_fingerprint)
        ok = ses_fail(e, SES_EARG,
                      "%s: was built with another tokenizer (fingerprint %016" PRIx64
                      ", that of %s is %016" PRIx64 "): build it again with this one",
                      path, ses_corpus_info_of(c)->tokenizer_fingerprint,
                      p->a->tokenizer ? p->a->tokenizer : p->a->model, print);
    if (ok) return c;
    ses_corpus_free(c);
    return NULL;
}

static bool add_corpus(ses_pretrain *p, const char *text, size_t i, ses_err *e)
{
    char *path = split_weight(text, &p->part[i].weight, e);
    p->corpus[i] = path ? open_corpus(p, path, e) : NULL;
    p->part[i].corpus = p->corpus[i];
    ses_free(path);
    if (!p->corpus[i]) return false;
    p->n_corpora++;
    return true;
}

/* The token that stands for a corpus: of its label as it is, or in usual brackets. */
static int32_t code_of(const ses_pretrain *p, const char *label)
{
    static const char *const form[] = { "%s", "<%s>", "[%s]", "<|%s|>" };
    int32_t id = -1;
    for (size_t i = 0; *label && i < SES_LEN(form) && id < 0; i++) {
        ses_buf b = { 0 };
        for (const char *s = form[i]; *s; s++)
            if (*s == '%')
                ses_buf_puts(&b, label), s++;
            else
                ses_buf_put(&b, *s);
        if (b.data) id = ses_tokenizer_token_to_id(p->tokenizer, b.data, b.len);
        ses_buf_free(&b);
    }
    return id;
}

static bool open_corpora(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    size_t n = a->corpus.n + (a->eval != NULL);
    p->corpus = ses_alloc_array(n + 1, sizeof *p->corpus, e);
    /* The last a->corpus.n: the corpora that hold documents out. */
    p->part = ses_alloc_array(n + a->corpus.n + 1, sizeof *p->part, e);
    p->code = ses_alloc_array(n + 1, sizeof *p->code, e);
    if (!p->corpus || !p->part || !p->code) return false;
    for (; p->n_parts < a->corpus.n; p->n_parts++) {
        if (!add_corpus(p, a->corpus.item[p->n_parts], p->n_parts, e)) return false;
        p->code[p->n_parts] = code_of(p, ses_corpus_info_of(p->corpus[p->n_parts])->label);
    }
    if (a->eval) return add_corpus(p, a->eval, p->n_parts, e) && (p->n_eval = 1);
    p->eval_held = true;
    for (size_t i = 0; i < p->n_parts; i++)
        if (ses_corpus_info_of(p->corpus[i])->held_out) p->part[p->n_parts + p->n_eval++] = p->part[i];
    return true;
}

/* ---- model ---- */

static bool load_config(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    const char *name = a->preset ? a->preset : a->config;
    if (!!a->model + !!a->config + !!a->preset != 1)
        return ses_fail(e, SES_EUSAGE, "one of --preset, --config and --model is needed");
    if (!a->model && !a->tokenizer) return ses_fail(e, SES_EUSAGE, "--tokenizer is needed");
    p->tokenizer = ses_tokenizer_open(a->tokenizer ? a->tokenizer : a->model, e);
    if (!p->tokenizer) return false;
    if (a->model) {
        char *path = ses_path_join(a->model, "config.json", e);
        p->config = path ? ses_json_load_object(path, 1 << 24, e) : NULL;
        ses_free(path);
        if (p->config && a->set.n) return ses_fail(e, SES_EUSAGE, "--set is for new models, not for --model");
        return p->config != NULL;
    }
    ses_json_doc *base = ses_preset_load(name, e);
    p->config = base ? ses_preset_fit(ses_json_root(base), p->tokenizer, &a->set, e) : NULL;
    if (base && !p->config && e->code != SES_EUSAGE) ses_wrap(e, "%s", name);
    ses_json_free(base);
    return p->config != NULL;
}

static bool open_generator(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    const ses_json *config = ses_json_root(p->config);
    if (!(ses_objective_mix_needs(p->aim) & SES_NEEDS_GENERATOR)) return true;
    ses_json_doc *base = !p->generator_config && a->generator ? ses_preset_load(a->generator, e) : NULL;
    if (base) p->generator_config = ses_preset_fit(ses_json_root(base), p->tokenizer, NULL, e);
    if (!a->generator && !p->generator_config) p->generator_config = ses_generator_config(config, 0.25, e);
    ses_json_free(base);
    if (!p->generator_config) return false;
    config = ses_json_root(p->generator_config);
    const char *class_name = ses_model_class_for_head(config, "masked-lm", e);
    if (!class_name) return ses_wrap(e, "the generator");
    p->generator = ses_model_new(
        config, p->dev,
        &(ses_model_options){
            .class_name = class_name, .train = true, .random_init = true, .seed = (uint64_t)a->seed + 1 },
        e);
    return p->generator != NULL;
}

/* With the heads the student has. */
static bool open_teacher(ses_pretrain *p, ses_err *e)
{
    const ses_teacher_options *a = &p->a->teacher;
    char *path = a->model ? ses_path_join(a->model, "config.json", e) : NULL;
    ses_json_doc *config = path ? ses_json_load_object(path, 1 << 24, e) : NULL;
    const char *class_name = config ? ses_objective_mix_class(p->aim, ses_json_root(config), e) : NULL;
    ses_teacher_free(&p->teacher);
    bool ok = (!a->model || class_name) &&
              ses_teacher_open(&p->teacher, a, class_name, p->model, p->tokenizer, p->dev, e) &&
              (!a->model || ses_objective_mix_set_teacher(p->aim, p->teacher.distill, e));
    ses_json_free(config);
    ses_free(path);
    return ok;
}

bool ses_pretrain_models(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    const ses_json *config = ses_json_root(p->config);
    ses_model_free(p->generator);
    ses_model_free(p->model);
    p->generator = p->model = NULL;
    ses_model_options o = { .class_name = ses_objective_mix_class(p->aim, config, e),
                            .train = true,
                            .random_init = !a->model,
                            .new_heads = true,
                            .seed = (uint64_t)a->seed };
    if (!o.class_name) return false;
    p->model = a->model ? ses_model_open(a->model, p->dev, &o, e) : ses_model_new(config, p->dev, &o, e);
    if (!p->model && a->config) return ses_wrap(e, "%s", a->config);
    return p->model && open_generator(p, e) &&
           ses_objective_mix_set_models(p->aim, p->model, p->generator, e) && open_teacher(p, e);
}

/* ---- objectives ---- */

/* "128" or "128:0.9,512:0.1": stages. A last one without a share has what is left. */
bool ses_pretrain_stages(const ses_pretrain *p, ses_curriculum_options *o, ses_err *e)
{
    const char *text = p->a->length;
    double left = 1;
    for (const char *s = text;;) {
        size_t digits = strspn(s, "0123456789"), share = 0;
        double length = 0;
        if (o->n_stages == SES_MAX_STAGES || !digits || digits > 7 || !ses_parse_double(s, digits, &length))
            break;
        ses_curriculum_stage *g = &o->stage[o->n_stages++];
        g->length = (int64_t)length;
        g->fraction = left;
        s += digits;
        if (*s == ':') {
            share = strspn(s + 1, "0123456789.");
            if (!share || s[1] == '.' || s[share] == '.' || !ses_parse_double(s + 1, share, &g->fraction))
                break;
            s += 1 + share;
        }
        left -= g->fraction;
        if (!*s) {
            if (fabs(left) < 1e-9) return true;
            return ses_fail(e, SES_EUSAGE, "--length %s: shares add up to %g, not to 1", text, 1 - left);
        }
        if (*s++ != ',') break;
    }
    return ses_fail(e, SES_EUSAGE,
                    "--length %s: lengths are expected, as 128, or with shares of the run, as "
                    "128:0.9,512:0.1",
                    text);
}

static bool open_aim(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    ses_curriculum_options stages = { 0 };
    int64_t vocab = 0, codes = 0;
    const ses_json *config = ses_json_root(p->config);
    if (!ses_json_int(ses_json_get(config, "vocab_size"), &vocab))
        vocab = ses_tokenizer_vocab_size(p->tokenizer);
    p->lexicon = ses_special_tokens_new(p->tokenizer, vocab, e);
    if (!p->lexicon || !ses_pretrain_stages(p, &stages, e)) return false;
    for (size_t i = 0; i < p->n_parts; i++)
        if (p->code[i] >= 0) codes = (int64_t)p->n_parts;
    p->aim = ses_objective_mix_new(&(ses_objective_mix_options){ .objectives = a->objective,
                                                                 .o = a->o,
                                                                 .lexicon = p->lexicon,
                                                                 .control_code = p->code,
                                                                 .n_control_codes = codes,
                                                                 .length = stages.stage[0].length,
                                                                 .seed = (uint64_t)a->seed },
                                   config, e);
    return p->aim || ses_wrap(e, "--objective %s", a->objective);
}

bool ses_pretrain_texts(ses_pretrain *p, ses_err *e)
{
    return load_config(p, e) && open_corpora(p, e) && open_aim(p, e);
}

/* ---- course ---- */

static bool causal(const ses_objective_mix *a)
{
    for (size_t i = 0; i < a->n_primary; i++)
        if (!strcmp(a->item[i].objective->head, "causal-lm")) return true;
    return false;
}

/* What the command line calls auto: pairs where they are asked for, blocks for causal models. */
static ses_packing packing_of(const ses_pretrain *p)
{
    static const ses_packing named[] = { SES_PACK_BLOCKS,        SES_PACK_FULL_SENTENCES,
                                         SES_PACK_DOC_SENTENCES, SES_PACK_SEGMENT_PAIR,
                                         SES_PACK_SENTENCE_PAIR, SES_PACK_BLOCKS };
    if (p->a->packing) return named[p->a->packing];
    if (ses_objective_mix_needs(p->aim) & SES_NEEDS_PAIRS) return SES_PACK_SEGMENT_PAIR;
    return causal(p->aim) ? SES_PACK_BLOCKS : SES_PACK_FULL_SENTENCES;
}

static bool check_pairs(const ses_pretrain *p, ses_packing packing, ses_err *e)
{
    bool pairs = packing == SES_PACK_SEGMENT_PAIR || packing == SES_PACK_SENTENCE_PAIR;
    if (!(ses_objective_mix_needs(p->aim) & SES_NEEDS_PAIRS) || pairs) return true;
    return ses_fail(e, SES_EUSAGE, "--objective %s needs pairs: --packing segment-pair or sentence-pair",
                    p->a->objective);
}

ses_curriculum *ses_pretrain_course(const ses_pretrain *p, int64_t length, int64_t updates, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    ses_curriculum_options o = { .objectives = p->aim,
                                 .sequences = a->tokens ? 0 : a->batch,
                                 .tokens = a->tokens,
                                 .batch_ramp = length ? 0 : a->ramp,
                                 .ramp_from = a->ramp_from,
                                 .accumulate = a->accumulate,
                                 .updates = updates,
                                 .epochs = a->epochs };
    if (!ses_pretrain_stages(p, &o, e)) return NULL;
    if (length) o.n_stages = 1, o.stage[0] = (ses_curriculum_stage){ length, 1 };
    for (size_t i = 0; i < o.n_stages; i++)
        if (o.stage[i].length > ses_model_max_tokens(p->model)) {
            ses_fail(e, SES_EARG, "--length %" PRId64 ": %s has positions for %" PRId64 " tokens",
                     o.stage[i].length, ses_model_class_name(p->model), ses_model_max_tokens(p->model));
            return NULL;
        }
    o.passages = (ses_passages_options){ .parts = p->part,
                                         .n_parts = p->n_parts,
                                         .exponent = a->exponent,
                                         .packing = packing_of(p),
                                         .pairing = ses_objective_mix_pairing(p->aim),
                                         .negative_rate = 0.5,
                                         .short_seq_prob = 0.1,
                                         .separator_tokens = 1,
                                         .break_at_documents = a->apart,
                                         .seed = (uint64_t)a->seed };
    o.eval_part = p->part + p->n_parts;
    o.n_eval_parts = p->n_eval;
    o.eval_held_out = p->eval_held;
    return check_pairs(p, o.passages.packing, e) ? ses_curriculum_new(&o, e) : NULL;
}

/* ---- trainer ---- */

/* What a resumed run must have in common with the one it goes on with. */
static char *settings(const ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_member_string(w, "objective", a->objective);
    ses_json_member_string(w, "class", ses_model_class_name(p->model));
    ses_json_member_string(w, "length", a->length);
    ses_json_member_int(w, "packing", packing_of(p));
    ses_json_member_int(w, "updates", ses_curriculum_updates(p->course));
    ses_json_member_int(w, "batch_size", a->tokens ? 0 : a->batch);
    ses_json_member_int(w, "tokens_per_batch", a->tokens);
    ses_json_member_int(w, "accumulate", a->accumulate);
    ses_json_member_real(w, "batch_ramp", a->ramp);
    ses_json_member_real(w, "mask_rate", a->o.mask_rate);
    ses_json_member_real(w, "mask_rate_end", a->o.mask_rate_end);
    ses_json_member_int(w, "mask_unit", a->o.mask_unit);
    ses_json_member_int(w, "mask_copies", a->o.mask_copies);
    ses_json_member_real(w, "mask_keep", a->o.keep_rate);
    ses_json_member_real(w, "mask_random", a->o.random_rate);
    ses_json_member_real(w, "span_length", a->o.span_length);
    ses_json_member_int(w, "span_longest", a->o.max_span);
    ses_json_member_string(w, "noise", a->o.noise ? a->o.noise : "");
    ses_json_member_int(w, "pieces", a->o.pieces);
    ses_json_member_real(w, "replaced_weight", a->o.replaced_weight);
    ses_json_member_real(w, "sampling_heat", a->o.sampling_temperature);
    ses_teacher_put_settings(&a->teacher, w);
    ses_json_member_real(w, "lr", a->lr);
    ses_json_member_string(w, "optimizer", ses_optim_name((size_t)a->optimizer, NULL));
    ses_json_member_string(w, "schedule", ses_schedule_name((size_t)a->schedule, NULL));
    ses_json_member_real(w, "warmup", a->warmup);
    ses_json_member_real(w, "weight_decay", a->decay);
    ses_json_member_real(w, "clip", a->clip);
    ses_json_member_real(w, "ema", a->ema);
    ses_json_member_int(w, "seed", a->seed);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

bool ses_pretrain_optimizer(const ses_pretrain *p, ses_trainer_options *o, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    if (!ses_optim_defaults(ses_optim_name((size_t)a->optimizer, NULL), &o->optim, e)) return false;
    o->optim.lr = a->lr;
    o->optim.ema_decay = a->ema;
    if (a->beta2 > 0) o->optim.beta2 = a->beta2;
    if (!strcmp(o->optim.name, "adafactor"))
        o->optim.relative_step = o->optim.scale_parameter = false; /* the rate is ours */
    o->optim.group[0] = (ses_param_group){ 1, a->decay };
    o->optim.group[1] = (ses_param_group){ 1, 0 };
    o->optim.group_of = ses_group_by_decay;
    if (!ses_schedule_defaults(ses_schedule_name((size_t)a->schedule, NULL), &o->schedule, e)) return false;
    if (a->warmup >= 1)
        o->schedule.warmup = (int64_t)a->warmup;
    else if (strcmp(o->schedule.name, "slanted"))
        o->warmup_ratio = a->warmup; /* which has its own rise */
    return true;
}

bool ses_pretrain_trainer(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    p->course = ses_pretrain_course(p, 0, p->updates ? p->updates : a->steps, e);
    p->settings = p->course ? settings(p, e) : NULL;
    if (!p->settings) return false;
    ses_trainer_options o = { .model = p->model,
                              .generator = p->generator,
                              .source = ses_curriculum_source(p->course),
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = p->aim,
                              .extra_params = { ses_distill_store(p->teacher.distill) },
                              .max_grad_norm = a->clip,
                              .accumulate = a->accumulate,
                              .recompute = a->recompute,
                              .updates = ses_curriculum_updates(p->course),
                              .seed = (uint64_t)a->seed,
                              .eval_every = a->eval_every,
                              .lower_is_better = true,
                              .dir = a->output,
                              .save_every = a->save_every,
                              .keep_checkpoints = a->keep,
                              .settings = p->settings };
    p->trainer = ses_pretrain_optimizer(p, &o, e) ? ses_trainer_new(&o, e) : NULL;
    return p->trainer != NULL;
}
