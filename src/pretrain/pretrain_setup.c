/* Parts of a pretraining run: tokenizer, config, corpora, objectives, models, curriculum, trainer. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "comm/comm_impl.h"
#include "pretrain_impl.h"
#include "text/tokenizer_match.h"
#include "train/distill/student_config.h"
#include "train/model_presets.h"
#include "train/optim/optim_kind.h"
#include "train/ranks.h"
#include "train/train_options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- corpora ---- */

/* Splits "PATH" or "PATH:WEIGHT". */
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
    uint64_t fingerprint = 0;
    ses_corpus *c = ses_corpus_open(path, e);
    bool ok = c && (ses_corpus_verify(c, e) || ses_wrap(e, "%s", path)) &&
              ses_tokenizer_fingerprint(p->tokenizer, &fingerprint, e);
    if (ok && fingerprint != ses_corpus_info_of(c)->tokenizer_fingerprint)
        ok = ses_fail(e, SES_EARG,
                      "%s: was built with another tokenizer (fingerprint %016" PRIx64
                      ", that of %s is %016" PRIx64 "): rebuild it with this one",
                      path, ses_corpus_info_of(c)->tokenizer_fingerprint,
                      p->o.tokenizer ? p->o.tokenizer : p->model_dir, fingerprint);
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

/* The control token of a corpus: its label, or the label in common brackets; -1: none. */
static int32_t find_control_code(const ses_pretrain *p, const char *label)
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
    const ses_pretrain_options *opt = &p->o;
    size_t n = opt->n_corpora + (opt->eval_corpus != NULL);
    p->corpus = ses_alloc_array(n + 1, sizeof *p->corpus, e);
    /* the last n_corpora: training corpora with held-out documents */
    p->part = ses_alloc_array(n + opt->n_corpora + 1, sizeof *p->part, e);
    p->control_code = ses_alloc_array(n + 1, sizeof *p->control_code, e);
    if (!p->corpus || !p->part || !p->control_code) return false;
    for (; p->n_parts < opt->n_corpora; p->n_parts++) {
        if (!add_corpus(p, opt->corpora[p->n_parts], p->n_parts, e)) return false;
        p->control_code[p->n_parts] = find_control_code(p, ses_corpus_info_of(p->corpus[p->n_parts])->label);
    }
    if (opt->eval_corpus) return add_corpus(p, opt->eval_corpus, p->n_parts, e) && (p->n_eval = 1);
    p->eval_held_out = true;
    for (size_t i = 0; i < p->n_parts; i++)
        if (ses_corpus_info_of(p->corpus[i])->held_out) p->part[p->n_parts + p->n_eval++] = p->part[i];
    return true;
}

/* ---- model ---- */

static bool load_config(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    const char *name = opt->preset ? opt->preset : opt->config;
    bool student = ses_student_is_new(&opt->teacher.student);
    if (!!opt->model + !!opt->config + !!opt->preset + student != 1)
        return ses_fail(e, SES_EUSAGE,
                        "expected exactly one of preset, config and model, or sizes of a new student");
    if (student && !p->teacher_dir) return ses_fail(e, SES_EUSAGE, "the sizes of a student need a teacher");
    if (!opt->n_corpora) return ses_fail(e, SES_EUSAGE, "expected at least one corpus");
    if (student && !opt->tokenizer) p->o.tokenizer = p->teacher_dir;
    if (!opt->model && !opt->tokenizer) return ses_fail(e, SES_EUSAGE, "a new model needs a tokenizer");
    p->tokenizer = ses_tokenizer_open(opt->tokenizer ? opt->tokenizer : p->model_dir, e);
    if (!p->tokenizer) return false;
    if (opt->model && opt->tokenizer &&
        !ses_tokenizer_check_model(p->tokenizer, opt->tokenizer, p->model_dir, e))
        return false;
    if (opt->model) {
        if (ses_model_is_adapter(p->model_dir))
            return ses_fail(e, SES_EUSAGE, "%s: an adapter; merge it first with 'sesame convert'",
                            p->model_dir);
        p->config = ses_model_config_open(p->model_dir, NULL, e);
        if (p->config && opt->n_set)
            return ses_fail(e, SES_EUSAGE, "set changes new models only, not model %s", p->model_dir);
        return p->config != NULL;
    }
    if (student) {
        p->config = ses_teacher_student_config(&p->o.teacher, p->teacher_dir, e);
        return p->config && ses_preset_set(&p->config, opt->set, opt->n_set, e);
    }
    ses_json_doc *base = ses_preset_load(name, e);
    p->config = base ? ses_preset_fit(ses_json_root(base), p->tokenizer, opt->set, opt->n_set, e) : NULL;
    if (base && !p->config && e->code != SES_EUSAGE) ses_wrap(e, "%s", name);
    ses_json_free(base);
    return p->config != NULL;
}

/* The teacher is opened with the student's heads. */
static bool open_teacher(ses_pretrain *p, ses_err *e)
{
    const ses_teacher_options *opt = &p->o.teacher;
    ses_json_doc *config = opt->model ? ses_model_config_open(opt->model, NULL, e) : NULL;
    const char *class_name = config ? ses_objective_mix_class(p->objectives, ses_json_root(config), e) : NULL;
    ses_teacher_free(&p->teacher);
    bool ok = (!opt->model || class_name) &&
              ses_teacher_open(&p->teacher, opt, class_name, p->model, p->tokenizer, p->dev, e) &&
              (!opt->model || ses_objective_mix_set_teacher(p->objectives, p->teacher.distill, e));
    ses_json_free(config);
    return ok;
}

bool ses_pretrain_open_models(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    const ses_json *config = ses_json_root(p->config);
    ses_model_free(p->generator);
    ses_model_free(p->model);
    p->generator = p->model = NULL;
    ses_model_options o = { .class_name = ses_objective_mix_class(p->objectives, config, e),
                            .train = true,
                            .random_init = !opt->model,
                            .new_heads = true,
                            .seed = (uint64_t)opt->run.seed };
    if (opt->model && ses_objective_mix_is_causal(p->objectives)) o.config = config; /* see set_causal */
    if (!o.class_name) return false;
    p->model =
        opt->model ? ses_model_open(p->model_dir, p->dev, &o, e) : ses_model_new(config, p->dev, &o, e);
    if (!p->model && opt->config) return ses_wrap(e, "%s", opt->config);
    if (p->model && !opt->model && !ses_model_set_words(p->model, p->tokenizer, &p->n_shortened_words, e))
        return false;
    return p->model && ses_pretrain_open_generator(p, e) &&
           ses_objective_mix_set_models(p->objectives, p->model, p->generator, e) && open_teacher(p, e);
}

/* ---- objectives ---- */

/* "128" or "128:0.9,512:0.1". A stage without a fraction gets the rest of the run. */
bool ses_pretrain_parse_lengths(const ses_pretrain *p, ses_curriculum_options *o, ses_err *e)
{
    const char *text = p->o.lengths;
    double left = 1;
    for (const char *s = text;;) {
        size_t digits = strspn(s, "0123456789"), width = 0;
        double length = 0;
        if (o->n_stages == SES_MAX_STAGES || !digits || digits > 7 || !ses_parse_double(s, digits, &length))
            break;
        ses_curriculum_stage *g = &o->stage[o->n_stages++];
        g->length = (int64_t)length;
        g->fraction = left;
        s += digits;
        if (*s == ':') {
            width = strspn(s + 1, "0123456789.");
            if (!width || s[1] == '.' || s[width] == '.' || !ses_parse_double(s + 1, width, &g->fraction))
                break;
            s += 1 + width;
        }
        left -= g->fraction;
        if (!*s) {
            if (fabs(left) < 1e-9) return true;
            return ses_fail(e, SES_EUSAGE, "length %s: the fractions add up to %g; expected 1", text,
                            1 - left);
        }
        if (*s++ != ',') break;
    }
    return ses_fail(e, SES_EUSAGE,
                    "length %s: expected lengths such as 128, or with fractions of the run, 128:0.9,512:0.1",
                    text);
}

static bool open_objectives(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    ses_curriculum_options stages = { 0 };
    int64_t vocab = 0, codes = 0;
    const ses_json *config = ses_json_root(p->config);
    if (!ses_json_int(ses_json_get(config, "vocab_size"), &vocab))
        vocab = ses_tokenizer_vocab_size(p->tokenizer);
    p->special_tokens = ses_special_tokens_new(p->tokenizer, vocab, e);
    if (!p->special_tokens || !ses_pretrain_parse_lengths(p, &stages, e)) return false;
    for (size_t i = 0; i < p->n_parts; i++)
        if (p->control_code[i] >= 0) codes = (int64_t)p->n_parts;
    p->objectives = ses_objective_mix_new(&(ses_objective_mix_options){ .objectives = opt->objectives,
                                                                        .o = opt->objective,
                                                                        .special_tokens = p->special_tokens,
                                                                        .control_code = p->control_code,
                                                                        .n_control_codes = codes,
                                                                        .length = stages.stage[0].length,
                                                                        .seed = (uint64_t)opt->run.seed },
                                          config, e);
    return p->objectives || ses_wrap(e, "objectives %s", opt->objectives);
}

/* A causal objective makes attention causal in the config: the saved model reopens as it was trained. */
static bool set_causal(ses_pretrain *p, ses_err *e)
{
    if (!ses_objective_mix_is_causal(p->objectives)) return true;
    ses_config_patch c = SES_CONFIG_PATCH_NONE;
    c.causal = true;
    ses_json_doc *d = ses_model_config_patch(ses_json_root(p->config), &c, e);
    if (!d) return false;
    ses_json_free(p->config);
    p->config = d;
    return true;
}

bool ses_pretrain_open_texts(ses_pretrain *p, ses_err *e)
{
    return load_config(p, e) && open_corpora(p, e) && open_objectives(p, e) && set_causal(p, e);
}

/* ---- curriculum ---- */

static bool is_causal(const ses_objective_mix *mix)
{
    for (size_t i = 0; i < mix->n_primary; i++)
        if (!strcmp(mix->item[i].objective->head, "causal-lm")) return true;
    return false;
}

/* Default: pairs if an objective needs them, blocks for causal objectives, else full sentences. */
static ses_packing packing_of(const ses_pretrain *p)
{
    if (p->o.packing >= 0) return (ses_packing)p->o.packing;
    if (ses_objective_mix_needs(p->objectives) & SES_NEEDS_PAIRS) return SES_PACK_SEGMENT_PAIR;
    return is_causal(p->objectives) ? SES_PACK_BLOCKS : SES_PACK_FULL_SENTENCES;
}

static bool check_pairs(const ses_pretrain *p, ses_packing packing, ses_err *e)
{
    bool pairs = packing == SES_PACK_SEGMENT_PAIR || packing == SES_PACK_SENTENCE_PAIR;
    if (!(ses_objective_mix_needs(p->objectives) & SES_NEEDS_PAIRS) || pairs) return true;
    return ses_fail(e, SES_EUSAGE, "objectives %s need pairs: packing segment-pair or sentence-pair",
                    p->o.objectives);
}

ses_curriculum *ses_pretrain_open_curriculum(const ses_pretrain *p, int64_t length, int64_t updates,
                                             ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    ses_curriculum_options o = { .objectives = p->objectives,
                                 .sequences = opt->run.tokens_per_batch ? 0 : opt->run.batch_size,
                                 .tokens = opt->run.tokens_per_batch,
                                 .batch_ramp = length ? 0 : opt->batch_ramp,
                                 .ramp_from = opt->ramp_from,
                                 .update_batches =
                                     opt->run.accumulate * (opt->run.lanes > 1 ? opt->run.lanes : 1),
                                 .updates = updates,
                                 .epochs = opt->run.epochs };
    if (!ses_pretrain_parse_lengths(p, &o, e)) return NULL;
    if (length) o.n_stages = 1, o.stage[0] = (ses_curriculum_stage){ length, 1 };
    for (size_t i = 0; i < o.n_stages; i++)
        if (o.stage[i].length > ses_model_max_tokens(p->model)) {
            ses_fail(e, SES_EARG, "length %" PRId64 ": %s has positions for %" PRId64 " tokens",
                     o.stage[i].length, ses_model_class_name(p->model), ses_model_max_tokens(p->model));
            return NULL;
        }
    o.passages = (ses_passages_options){ .parts = p->part,
                                         .n_parts = p->n_parts,
                                         .exponent = opt->exponent,
                                         .packing = packing_of(p),
                                         .pairing = ses_objective_mix_pairing(p->objectives),
                                         .negative_rate = 0.5,
                                         .short_seq_prob = 0.1,
                                         .separator_tokens = 1,
                                         .break_at_documents = opt->break_at_documents,
                                         .seed = (uint64_t)opt->run.seed };
    o.eval_part = p->part + p->n_parts;
    o.n_eval_parts = p->n_eval;
    o.eval_held_out = p->eval_held_out;
    o.comm = opt->run.comm;
    return check_pairs(p, o.passages.packing, e) ? ses_curriculum_new(&o, e) : NULL;
}

/* ---- trainer ---- */

/* Neither learning rates nor batches depend on the length of the run. */
static bool is_extensible(const ses_pretrain_options *o)
{
    return !ses_schedule_uses_total(&(ses_schedule){ .name = o->run.schedule }) &&
           (o->run.warmup <= 0 || o->run.warmup >= 1) && !strpbrk(o->lengths, ":,") && o->batch_ramp <= 0 &&
           o->objective.mask_rate_end < 0;
}

/* Settings that a resumed run must share. */
static char *settings(const ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "objective", opt->objectives);
    ses_json_member_string(w, "class", ses_model_class_name(p->model));
    ses_json_member_string(w, "length", opt->lengths);
    ses_json_member_int(w, "packing", packing_of(p));
    if (!is_extensible(opt)) /* else a resumed run may be longer */
        ses_json_member_int(w, "updates", ses_curriculum_updates(p->curriculum));
    ses_json_member_int(w, "batch_size", opt->run.tokens_per_batch ? 0 : opt->run.batch_size);
    ses_json_member_int(w, "tokens_per_batch", opt->run.tokens_per_batch);
    ses_json_member_int(w, "accumulate", opt->run.accumulate);
    ses_training_put_lanes(&opt->run, w);
    ses_json_member_real(w, "batch_ramp", opt->batch_ramp);
    ses_json_member_real(w, "mask_rate", opt->objective.mask_rate);
    ses_json_member_real(w, "mask_rate_end", opt->objective.mask_rate_end);
    ses_json_member_int(w, "mask_unit", p->objectives->build.o.mask_unit);
    ses_json_member_int(w, "mask_copies", opt->objective.mask_copies);
    ses_json_member_real(w, "mask_keep", opt->objective.keep_rate);
    ses_json_member_real(w, "mask_random", opt->objective.random_rate);
    ses_json_member_real(w, "span_length", opt->objective.span_length);
    ses_json_member_int(w, "span_longest", opt->objective.max_span);
    ses_json_member_string(w, "noise", opt->objective.noise ? opt->objective.noise : "");
    ses_json_member_int(w, "pieces", opt->objective.pieces);
    if (opt->objective.vary_window) ses_json_member_bool(w, "vary_window", true);
    ses_json_member_real(w, "replaced_weight", opt->objective.replaced_weight);
    ses_json_member_real(w, "sampling_heat", opt->objective.sampling_temperature);
    if (opt->objective.generator_tying >= 0)
        ses_json_member_int(w, "generator_tying", opt->objective.generator_tying);
    if (opt->objective.generator_size > 0)
        ses_json_member_real(w, "generator_size", opt->objective.generator_size);
    if (opt->objective.freeze_generator) ses_json_member_bool(w, "generator_frozen", true);
    if (p->objectives->build.o.mask_units)
        ses_json_member_string(w, "mask_units", p->objectives->build.o.mask_units);
    ses_teacher_put_settings(&opt->teacher, w);
    ses_json_member_real(w, "lr", opt->run.lr);
    ses_training_put_optimizer(&opt->run, w);
    ses_json_member_real(w, "weight_decay", opt->run.weight_decay);
    ses_json_member_real(w, "clip", opt->run.max_grad_norm);
    ses_json_member_real(w, "ema", opt->ema_decay);
    ses_json_member_int(w, "seed", opt->run.seed);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

bool ses_pretrain_set_optimizer(const ses_pretrain *p, ses_trainer_options *o, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    if (!ses_training_optimizer(&opt->run, &o->optim, e)) return false;
    o->optim.ema_decay = opt->ema_decay;
    if (opt->beta2 > 0) o->optim.beta2 = opt->beta2;
    if (ses_optim_find(o->optim.name)->average_weight && opt->ema_decay > 0)
        return ses_fail(e, SES_EUSAGE, "%s averages the weights itself: leave out ema", o->optim.name);
    o->optim.group[0] = (ses_param_group){ 1, opt->run.weight_decay };
    o->optim.group[1] = (ses_param_group){ 1, 0 };
    o->optim.group_of = ses_group_by_decay;
    return ses_training_schedule(&opt->run, o, e);
}

bool ses_pretrain_open_trainer(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    p->curriculum = ses_pretrain_open_curriculum(p, 0, p->updates ? p->updates : opt->run.steps, e);
    p->settings = p->curriculum ? settings(p, e) : NULL;
    if (!ses_comm_all_ok(opt->run.comm, p->settings != NULL, e) ||
        !ses_ranks_agree_settings(opt->run.comm, p->settings, e))
        return false;
    ses_trainer_options o = { .model = p->model,
                              .generator = ses_pretrain_trained_generator(p),
                              .source = ses_curriculum_source(p->curriculum),
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = p->objectives,
                              .predictions = ses_objective_mix_predictions,
                              .extra_params = { ses_distill_store(p->teacher.distill) },
                              .max_grad_norm = opt->run.max_grad_norm,
                              .accumulate = opt->run.accumulate,
                              .comm = opt->run.comm,
                              .lanes = opt->run.lanes,
                              .weight_by_tokens = opt->run.weight_by_tokens,
                              .comm_bf16 = opt->run.comm_bf16,
                              .recompute = opt->run.recompute,
                              .updates = ses_curriculum_updates(p->curriculum),
                              .seed = (uint64_t)opt->run.seed,
                              .eval_every = opt->run.eval_every,
                              .lower_is_better = true,
                              .keep_last = true,
                              .dir = opt->run.output,
                              .save_every = opt->run.save_every,
                              .keep_checkpoints = opt->run.keep_checkpoints,
                              .settings = p->settings };
    p->trainer = ses_pretrain_set_optimizer(p, &o, e) ? ses_trainer_new(&o, e) : NULL;
    return p->trainer != NULL;
}
