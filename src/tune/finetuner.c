/* Parts that all fine-tuning tasks share: labels, the model's config, sequences, the pass over a set. */
#include "tag_words.h"

#include "base/alloc.h"
#include "base/str.h"
#include "generate/logit_scores.h"
#include "model/model_desc.h"
#include "task/words/word_stack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tasks ---- */

static const ses_finetune_task *const tasks[] = {
#define SES_FINETUNE_TASK(name) &ses_finetune_task_##name,
#include "finetune_tasks.def"
#undef SES_FINETUNE_TASK
};

const char *ses_finetune_task_name(size_t i, const char **summary)
{
    if (i >= SES_LEN(tasks)) return NULL;
    if (summary) *summary = tasks[i]->summary;
    return tasks[i]->name;
}

const ses_finetune_task *ses_finetune_task_find(const char *name)
{
    const char *alias;
    size_t n;
    for (size_t i = 0; i < SES_LEN(tasks); i++) {
        if (!strcmp(tasks[i]->name, name)) return tasks[i];
        for (size_t k = 0; tasks[i]->aliases && ses_list_at(tasks[i]->aliases, k, &alias, &n); k++)
            if (ses_equal(alias, n, name)) return tasks[i];
    }
    return NULL;
}

const ses_finetune_task *ses_finetune_task_for_data(ses_data_kind kind)
{
    for (size_t i = 0; i < SES_LEN(tasks); i++)
        if (tasks[i]->data == kind) return tasks[i];
    return NULL;
}

const ses_finetune_task *ses_finetune_task_with_loss(const ses_finetune_task *k, const char *loss, ses_err *e)
{
    char list[128];
    if (!loss) return k;
    if (!k->other_losses) {
        ses_fail(e, SES_EUSAGE, "loss: the task %s has only one", k->name);
        return NULL;
    }
    snprintf(list, sizeof list, "%s", k->loss_name);
    if (!strcmp(k->loss_name, loss)) return k;
    for (const ses_finetune_task *const *o = k->other_losses; *o; o++) {
        size_t used = strlen(list);
        if (!strcmp((*o)->loss_name, loss)) return *o;
        snprintf(list + used, sizeof list - used, ", %s", (*o)->loss_name);
    }
    ses_fail(e, SES_EUSAGE, "loss: unknown \"%s\"; choose one of %s", ses_quoted_of(loss, strlen(loss)).s,
             list);
    return NULL;
}

ses_data_spec ses_finetune_task_spec(const ses_finetune_task *k)
{
    return (ses_data_spec){
        .kind = k->data, .format = k->format, .metrics = k->metrics, .best_metric = k->best_metric
    };
}

/* ---- sets ---- */

void ses_finetune_set_free(ses_finetune_set *s)
{
    ses_tag_words_free(s->words);
    ses_dataset_free(s->data);
    ses_free(s->row);
    ses_free(s->word);
    ses_free(s->byte_span);
    ses_free(s->pending);
    *s = (ses_finetune_set){ 0 };
}

void ses_finetune_outputs_free(ses_finetune_outputs *o)
{
    ses_arena_free(&o->mem);
    *o = (ses_finetune_outputs){ 0 };
}

/* ---- the finetuner ---- */

static bool open_tokenizer(ses_finetuner *t, bool lower, ses_err *e)
{
    ses_encode_ctx_free(t->tokens);
    ses_tokenizer_free(t->tokenizer);
    t->tokens = NULL;
    t->tokenizer = ses_tokenizer_open_lower(t->tokenizer_path, lower, e);
    if (t->tokenizer) t->tokens = ses_encode_ctx_new(t->tokenizer, e);
    return t->tokens != NULL;
}

static ses_finetuner *make(const ses_finetuner_options *o, ses_device *dev, ses_err *e)
{
    ses_finetuner *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->task = o->task;
    t->settings = o->settings;
    t->base = o->base;
    t->adapter_options = o->adapter_options;
    t->adapters = o->adapters, t->n_adapters = o->n_adapters;
    t->model = o->model;
    t->borrows_model = o->model != NULL;
    t->dev = dev;
    return t;
}

ses_finetuner *ses_finetuner_new_tagger(const ses_finetuner_options *o, ses_tokenizer *tokenizer,
                                        ses_word_stack *words, ses_device *dev, ses_err *e)
{
    ses_finetuner *t = make(o, dev, e);
    if (!t) {
        ses_tokenizer_free(tokenizer);
        ses_word_stack_free(words);
        return NULL;
    }
    t->words = words;
    t->tokenizer = tokenizer;
    t->tokens = ses_encode_ctx_new(tokenizer, e);
    ses_tokenizer_config_from_json(&t->tokenizer_config, NULL, NULL, "tagger", NULL, tokenizer);
    if (t->tokens) return t;
    ses_finetuner_free(t);
    return NULL;
}

ses_finetuner *ses_finetuner_new(const ses_finetuner_options *o, const char *tokenizer,
                                 const char *model_type, ses_device *dev, ses_err *e)
{
    ses_finetuner *t = make(o, dev, e);
    if (!t) return NULL;
    t->tokenizer_path = ses_arena_strndup(&t->mem, tokenizer, strlen(tokenizer), e);
    if (t->tokenizer_path && open_tokenizer(t, false, e) &&
        ses_tokenizer_config_read(&t->tokenizer_config, tokenizer, model_type, ses_model_sets_segments,
                                  t->tokenizer, e) &&
        (!t->task->open_tokenizer || t->task->open_tokenizer(t, e)))
        return t;
    ses_finetuner_free(t);
    return NULL;
}

void ses_finetuner_free(ses_finetuner *t)
{
    if (!t) return;
    if (t->task->close) t->task->close(t);
    ses_tape_free(t->tape);
    ses_generation_config_free(t->generation);
    ses_store_free(t->extra_params);
    if (t->sentence)
        ses_sentence_free(t->sentence);
    else if (!t->borrows_model)
        ses_model_free(t->model);
    ses_classifier_free(t->classifier);
    ses_word_stack_free(t->words);
    ses_json_free(t->config);
    ses_encode_ctx_free(t->target_tokens);
    ses_tokenizer_free(t->target_tokenizer);
    ses_encode_ctx_free(t->tokens);
    ses_tokenizer_free(t->tokenizer);
    ses_free(t->scratch);
    ses_arena_free(&t->mem);
    ses_free(t);
}

int32_t *ses_finetuner_scratch(ses_finetuner *t, size_t n, ses_err *e)
{
    return ses_array_reserve(&t->scratch, &t->scratch_cap, n, sizeof *t->scratch, e) ? t->scratch : NULL;
}

/* ---- labels ---- */

bool ses_finetuner_set_labels(ses_finetuner *t, const ses_examples *train, ses_err *e)
{
    bool named = t->task->has_label_names;
    t->n_classes = ses_examples_label_count(train);
    for (size_t i = 0; i < ses_examples_count(train); i++)
        t->max_abs_target = fmax(t->max_abs_target, fabs(ses_examples_at(train, i)->target));
    if (!t->task->head) return true;
    if (t->settings.crf) t->tag_scheme = ses_tag_labels_scheme(train);
    if (!named && t->task->target != SES_TARGET_VALUES) return true;
    /* A number: one output, named as in transformers. */
    t->n_labels = named ? ses_examples_label_count(train) : 1;
    t->label = ses_arena_array(&t->mem, t->n_labels + 1, sizeof *t->label, e);
    for (size_t i = 0; t->label && i < t->n_labels; i++) {
        const char *name = named ? ses_examples_label_name(train, i) : "LABEL_0";
        t->label[i] = ses_arena_strndup(&t->mem, name, strlen(name), e);
        if (!t->label[i]) return false;
    }
    return t->label != NULL;
}

/* ---- the model ---- */

static void put_labels(ses_json_writer *w, const ses_finetuner *t)
{
    ses_json_member_object(w, "id2label");
    for (size_t i = 0; i < t->n_labels; i++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", i);
        ses_json_member_string(w, id, t->label[i]);
    }
    ses_json_end_object(w);
    ses_json_member_object(w, "label2id");
    for (size_t i = 0; i < t->n_labels; i++) { ses_json_member_int(w, t->label[i], (int64_t)i); }
    ses_json_end_object(w);
}

/* Is this key of the base model's config.json dropped, because the new config has its own value or none? */
static bool is_replaced(const char *key, const ses_finetuner *t)
{
    static const struct {
        const char *key;
        bool labels_only; /* replaced only if the task has labels */
    } own[] = { { "architectures", false }, { "id2label", true },      { "label2id", true },
                { "num_labels", true },     { "problem_type", false }, { SES_GPT_INPUTS_KEY, false } };
    for (size_t i = 0; i < SES_LEN(own); i++)
        if (!strcmp(key, own[i].key)) return t->n_labels > 0 || !own[i].labels_only;
    if (t->settings.crf && !strcmp(key, "sesame_crf")) return true;
    if (t->task->put_config && !strcmp(key, "vocab_size")) return true;
    return t->embedding_size && !strcmp(key, "embedding_size");
}

/* The class for the task: the config's own if it has the task's other head. */
static const char *class_for(const ses_finetune_task *k, const ses_json *base, ses_err *e)
{
    ses_err ignored = { 0 };
    const ses_model_desc *d = k->other_head ? ses_config_find_model(base, &ignored) : NULL;
    const ses_class *c = d ? ses_config_class(d, base, NULL, &ignored) : NULL;
    if (c && c->head[0].head == k->other_head) return c->name;
    const char *both[] = { k->lm_head ? k->lm_head->name : k->head->name, k->head->name };
    return ses_model_class_for_heads(base, both, k->lm_head ? 2 : 1, e);
}

bool ses_finetuner_build_config(ses_finetuner *t, const ses_json *base, ses_err *e)
{
    const ses_finetune_task *k = t->task;
    const char *class = k->head ? class_for(k, base, e) : NULL;
    ses_json_writer *w = class || !k->head ? ses_json_writer_new(2, e) : NULL;
    if (!w) return false;
    ses_json_begin_object(w);
    if (class) {
        ses_json_member_array(w, "architectures");
        ses_json_put_string(w, class);
        ses_json_end_array(w);
    }
    for (size_t i = 0; i < ses_json_len(base); i++) {
        if (is_replaced(ses_json_key(base, i, NULL), t)) continue;
        ses_json_put_key(w, ses_json_key(base, i, NULL));
        ses_json_put_value(w, ses_json_at(base, i));
    }
    if (t->embedding_size && ses_json_get(base, "embedding_size"))
        ses_json_member_int(w, "embedding_size", t->embedding_size);
    if (k->problem_type) ses_json_put_key(w, "problem_type"), ses_json_put_string(w, k->problem_type);
    if (t->settings.crf) ses_json_member_string(w, "sesame_crf", ses_tag_scheme_names[t->tag_scheme]);
    if (t->n_labels) put_labels(w, t);
    if (k->put_config) k->put_config(t, base, w);
    ses_json_end_object(w);
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    ses_json_free(t->config);
    t->config = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return t->config != NULL;
}

/* Labels without names get the names transformers gives them. */
static bool number_labels(ses_finetuner *t, ses_err *e)
{
    size_t n = (size_t)ses_model_label_count(t->model);
    t->label = ses_arena_array(&t->mem, n + 1, sizeof *t->label, e);
    for (size_t i = 0; t->label && i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "LABEL_%zu", i);
        t->label[i] = ses_arena_strndup(&t->mem, name, strlen(name), e);
        if (!t->label[i]) return false;
    }
    t->n_labels = n;
    return t->label != NULL;
}

static bool open_model(ses_finetuner *t, const char *dir, bool train, uint64_t seed, ses_err *e)
{
    const ses_json *config = ses_json_root(t->config);
    ses_model_options o = { .train = train, .seed = seed, .config = config, .new_heads = train };
    o.new_tokens = t->has_new_tokens;
    ses_sentence_options s = {
        .pooling = t->settings.pooling, .train = train, .seed = seed, .config = config
    };
    s.max_tokens = t->settings.max_length;
    o.base = s.base = t->base, o.adapter_options = s.adapter_options = t->adapter_options;
    o.adapters = t->adapters, o.n_adapters = t->n_adapters;
    if (!t->task->head && t->n_adapters)
        return ses_fail(e, SES_EUNSUPPORTED, "a sentence encoder has one adapter, not %zu",
                        t->n_adapters + 1);
    if (!t->task->head) {
        t->sentence = ses_sentence_open(dir, t->dev, &s, e);
        t->model = t->sentence ? ses_sentence_model(t->sentence) : NULL;
        if (t->model && ses_sentence_lower_case(t->sentence) && !open_tokenizer(t, true, e)) return false;
    } else
        t->model = dir ? ses_model_open(dir, t->dev, &o, e) : ses_model_new(config, t->dev, &o, e);
    return t->model != NULL;
}

/* Does an open model fit the task and its labels? */
static bool check_model(const ses_finetuner *t, ses_err *e)
{
    const char *head = ses_model_head_name(t->model);
    size_t n = (size_t)ses_model_label_count(t->model);
    const ses_head *other = t->task->lm_head ? t->task->lm_head : t->task->other_head;
    if (!t->task->head || !head ||
        (strcmp(head, t->task->head->name) && (!other || strcmp(head, other->name))))
        return ses_fail(e, SES_EARG, "%s has no head for the task %s", ses_model_class_name(t->model),
                        t->task->name);
    if (t->task->has_label_names && t->n_labels != n)
        return ses_fail(e, SES_EARG, "the data have %zu labels, the model %zu", t->n_labels, n);
    return true;
}

bool ses_finetuner_open_model(ses_finetuner *t, const char *dir, bool train, uint64_t seed, ses_err *e)
{
    bool is_tagger = t->words != NULL;
    t->seed = seed;
    if (!is_tagger && dir)
        t->words = ses_word_stack_open(dir, ses_json_root(t->config), t->dev, &is_tagger, e);
    if (is_tagger && !t->words) return false;
    if (t->model ? !check_model(t, e) : !open_model(t, dir, train, seed, e)) return false;
    int64_t max_tokens = t->sentence ? ses_sentence_max_tokens(t->sentence) : ses_model_max_tokens(t->model);
    t->max_tokens = t->settings.max_length > 0 && t->settings.max_length < max_tokens ? t->settings.max_length
                                                                                      : max_tokens;
    if (ses_tokenizer_vocab_size(t->tokenizer) > ses_model_source_vocab_size(t->model))
        return ses_fail(e, SES_EARG,
                        "the tokenizer has %" PRId64 " tokens, the model only %" PRId64
                        " token embeddings: they do not match",
                        ses_tokenizer_vocab_size(t->tokenizer), ses_model_source_vocab_size(t->model));
    if (t->task->has_label_names && !t->n_labels && !number_labels(t, e)) return false;
    if (t->settings.stride > t->max_tokens / 3)
        t->settings.stride = t->max_tokens / 3; /* windows must advance */
    t->tape = ses_tape_new(t->dev, NULL, e);
    return t->tape && (!t->task->open || t->task->open(t, e));
}

bool ses_finetuner_save(const ses_finetuner *t, const char *dir, const ses_save_options *o, ses_err *e)
{
    if (t->words && !ses_word_stack_save(t->words, dir, e)) return false;
    if (t->task->save && !t->task->save(t, dir, e)) return false;
    return t->sentence ? ses_sentence_save(t->sentence, dir, o, e) : ses_model_save(t->model, dir, o, e);
}

/* ---- sequences ---- */

bool ses_finetuner_add_sequence(ses_finetuner *t, ses_finetune_set *s, int32_t row, const ses_encoding *k,
                                ses_sequence *q, const int32_t *word, const ses_offset *bytes, ses_err *e)
{
    size_t was = s->tokens_cap, n = s->tokens + k->n;
    int32_t *segments = ses_alloc_array(k->n + 1, sizeof *segments, e);
    if (!segments) return false;
    for (size_t i = 0; i < k->n; i++)
        segments[i] = t->tokenizer_config.sets_segments && k->type_id ? k->type_id[i] : 0;
    q->n = (int64_t)k->n;
    q->ids = k->id;
    q->segments = segments;
    q->origin = (int64_t)ses_examples_at(s->rows, (size_t)row)->line;
    bool ok =
        ses_array_reserve(&s->row, &s->cap, s->n + 1, sizeof *s->row, e) && ses_dataset_add(s->data, q, e);
    ses_free(segments);
    if (!ok) return false;
    s->row[s->n++] = row;
    if (word && (!ses_array_reserve(&s->word, &was, n, sizeof *s->word, e))) return false;
    if (word) memcpy(s->word + s->tokens, word, k->n * sizeof *word), s->tokens_cap = was;
    was = s->tokens_cap;
    if (bytes && !ses_array_reserve(&s->byte_span, &was, n, sizeof *s->byte_span, e)) return false;
    if (bytes) memcpy(s->byte_span + s->tokens, bytes, k->n * sizeof *bytes), s->tokens_cap = was;
    s->tokens = n;
    return true;
}

bool ses_finetuner_encode(ses_finetuner *t, const ses_examples *rows, ses_finetune_set *s, ses_err *e)
{
    const ses_finetune_task *k = t->task;
    int64_t width = k->target != SES_TARGET_VALUES ? 0
                    : k->width                     ? k->width
                                                   : ses_model_label_count(t->model);
    *s = (ses_finetune_set){ .rows = rows, .n_rows = ses_examples_count(rows) };
    if (!s->n_rows) return ses_fail(e, SES_EFORMAT, "no examples");
    if (k->predict_rows) return true;
    s->data = ses_dataset_new(k->target, width, k->group ? k->group(t, rows) : 1, e);
    for (size_t r = 0; s->data && r < s->n_rows; r++)
        if (!k->encode(t, ses_examples_at(rows, r), (int32_t)r, s, e))
            return ses_wrap(e, "line %" PRIu64, ses_examples_at(rows, r)->line);
    if (!s->data || (k->finish_encoding && !k->finish_encoding(t, s, e))) return false;
    return s->n || ses_fail(e, SES_EFORMAT, "no example has tokens");
}

bool ses_finetuner_fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                   ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    *v = (ses_evaluation){ .n = s->n_rows, .n_labels = t->n_labels, .labels = t->label };
    return t->task->fill_evaluation(t, s, o, v, mem, e);
}

/* Removes scores from `first` on that an earlier metric has given, as accuracy. */
static void drop_repeated(ses_scores *s, size_t first)
{
    size_t n = first;
    double x;
    for (size_t i = first; i < s->n; i++) {
        ses_score copy = s->item[i];
        size_t all = s->n;
        s->n = first;
        bool repeated = ses_scores_find(s, copy.name, &x);
        s->n = all;
        if (!repeated) s->item[n++] = copy;
    }
    s->n = n;
}

bool ses_metric_list_run(const char *metrics, const ses_evaluation *v, const ses_bootstrap *b,
                         ses_scores *out, ses_err *e)
{
    const char *item;
    size_t n;
    for (size_t i = 0; ses_list_at(metrics, i, &item, &n); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, item);
        size_t first = out->n;
        if (n && !ses_metric_run(name, v, b, out, e)) return false;
        drop_repeated(out, first);
    }
    return true;
}

bool ses_finetuner_score(const ses_finetuner *t, const ses_evaluation *v, const ses_bootstrap *b,
                         ses_scores *out, ses_err *e)
{
    return ses_metric_list_run(t->settings.metrics, v, b, out, e);
}

/* ---- helpers of tasks ---- */

bool ses_finetuner_fill_reals(const ses_finetune_set *s, const ses_finetune_outputs *o, ses_evaluation *v,
                              ses_arena *mem, ses_err *e)
{
    double *true_reals = ses_arena_array(mem, v->n, sizeof *true_reals, e),
           *pred = ses_arena_array(mem, v->n, sizeof *pred, e);
    for (size_t i = 0; true_reals && pred && i < v->n; i++) {
        true_reals[i] = ses_examples_at(s->rows, i)->target;
        pred[i] = (double)o->score[i];
    }
    v->true_reals = true_reals;
    v->pred_reals = pred;
    return true_reals && pred;
}

bool ses_finetuner_begin_scores(const ses_finetune_set *s, size_t cols, ses_finetune_outputs *o, ses_err *e)
{
    o->score = ses_arena_array(&o->mem, s->n_rows * cols, sizeof *o->score, e);
    o->cols = cols;
    return o->score != NULL;
}

bool ses_finetuner_collect_scores(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                                  int64_t sequence, const float *x, int64_t n, int64_t cols, ses_err *e)
{
    (void)t, (void)n, (void)e;
    memcpy(o->score + s->row[sequence] * cols, x, (size_t)cols * sizeof *x);
    return true;
}

bool ses_finetuner_fill_labels(const ses_finetune_set *s, const ses_finetune_outputs *o, size_t cols,
                               ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    int32_t *true_labels = ses_arena_array(mem, v->n, sizeof *true_labels, e),
            *pred = ses_arena_array(mem, v->n, sizeof *pred, e);
    int64_t *group = ses_arena_array(mem, v->n, sizeof *group, e);
    bool grouped = false;
    for (size_t i = 0; true_labels && pred && group && i < v->n; i++) {
        true_labels[i] = ses_examples_at(s->rows, i)->label;
        group[i] = ses_examples_at(s->rows, i)->group;
        grouped |= group[i] != 0;
        pred[i] = (int32_t)ses_argmax(o->score + i * cols, (int64_t)cols);
    }
    v->true_labels = true_labels;
    v->pred_labels = pred;
    v->groups = grouped ? group : NULL;
    return true_labels && pred && group;
}

int64_t ses_finetuner_softmax(const float *x, size_t cols, double *probability)
{
    int64_t best = ses_argmax(x, (int64_t)cols);
    double sum = 0;
    for (size_t i = 0; i < cols; i++) sum += exp((double)x[i] - (double)x[best]);
    *probability = 1 / sum;
    return best;
}
