/* A label for every word. A word's label stands at its first piece, or at all of them; the first piece's says
 * what the word is. */
#include "finetuner.h"

#include <string.h>

/* Labels and words of the tokens just made. */
static int32_t *labels_of(ses_finetuner *t, const ses_labeled_example *r, const ses_encoding *k, ses_err *e)
{
    int32_t *tags = ses_finetuner_scratch(t, 2 * k->n, e), before = -1;
    for (size_t i = 0; tags && i < k->n; i++) {
        int32_t at = k->special_mask[i] ? -1 : k->word_id[i];
        bool first = at >= 0 && at != before;
        tags[k->n + i] = first ? at : -1;
        tags[i] = r->labels && at >= 0 && (first || t->o.all_pieces) ? r->labels[at] : SES_IGNORE_INDEX;
        if (at >= 0) before = at;
    }
    return tags;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_arena mem = { 0 };
    ses_string *words = ses_arena_array(&mem, r->n_parts + 1, sizeof *words, e);
    for (size_t i = 0; words && i < r->n_parts; i++) words[i] = (ses_string){ r->parts[i].p, r->parts[i].n };
    ses_input in = { .words = words, .n_words = r->n_parts };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = t->max_tokens };
    bool ok = words && ses_encode(t->tokens, &in, &o, e);
    const ses_encoding *k = ok ? ses_tokens_result(t->tokens) : NULL;
    int32_t *tags = ok ? labels_of(t, r, k, e) : NULL;
    if (ok) s->n_truncated += ses_tokens_overflow_count(t->tokens) > 0;
    if (tags) s->n_lost_words += (int64_t)r->n_parts;
    for (size_t i = 0; tags && i < k->n; i++) s->n_lost_words -= tags[k->n + i] >= 0;
    ok = tags &&
         ses_finetuner_add_sequence(t, s, row, k, &(ses_sequence){ .tags = tags }, tags + k->n, NULL, e);
    ses_arena_free(&mem);
    return ok;
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e)
{
    size_t words = 0;
    (void)t;
    p->tag_cu = ses_arena_array(&p->mem, s->n_rows + 1, sizeof *p->tag_cu, e);
    if (!p->tag_cu) return false;
    for (size_t r = 0; r < s->n_rows; r++) p->tag_cu[r + 1] = words += ses_examples_at(s->rows, r)->n_parts;
    p->tags = ses_arena_array(&p->mem, words, sizeof *p->tags, e);
    for (size_t i = 0; p->tags && i < words; i++) p->tags[i] = -1;
    return p->tags != NULL;
}

static bool take(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, int64_t sequence,
                 const float *x, int64_t n, int64_t cols, ses_err *e)
{
    (void)t, (void)e;
    /* one sequence a row: tokens lie in the set as in the dataset */
    const int32_t *word = s->word + (ses_dataset_at(s->data, sequence).ids - ses_dataset_at(s->data, 0).ids);
    for (int64_t i = 0; i < n; i++)
        if (word[i] >= 0)
            p->tags[p->tag_cu[s->row[sequence]] + (size_t)word[i]] = (int32_t)ses_argmax(x + i * cols, cols);
    return true;
}

/* Words cut off count for nothing, as in the reference's script. */
static bool evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                       ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    size_t words = p->tag_cu[v->n];
    int32_t *gold = ses_arena_array(mem, words, sizeof *gold, e),
            *pred = ses_arena_array(mem, words, sizeof *pred, e);
    for (size_t r = 0; gold && pred && r < v->n; r++) {
        const ses_labeled_example *x = ses_examples_at(s->rows, r);
        for (size_t i = 0; i < x->n_parts; i++) {
            size_t at = p->tag_cu[r] + i;
            gold[at] = p->tags[at] < 0 || !x->labels ? SES_IGNORE_INDEX : x->labels[i];
            pred[at] = p->tags[at] < 0 ? 0 : p->tags[at];
        }
    }
    v->gold = gold;
    v->pred = pred;
    v->cu = p->tag_cu;
    return gold && pred;
}

static void put(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                ses_json_writer *w)
{
    const ses_labeled_example *r = ses_examples_at(s->rows, row);
    ses_json_put_key(w, "words");
    ses_json_begin_array(w);
    for (size_t i = 0; i < r->n_parts; i++) ses_json_put_stringn(w, r->parts[i].p, r->parts[i].n);
    ses_json_end_array(w);
    int64_t lost = 0;
    ses_json_put_key(w, "tags");
    ses_json_begin_array(w);
    for (size_t i = 0; i < r->n_parts; i++) {
        int32_t tag = p->tags[p->tag_cu[row] + i];
        ses_json_put_string(w, tag < 0 ? NULL : t->label[tag]);
        lost += tag < 0;
    }
    ses_json_end_array(w);
    if (lost) ses_json_put_key(w, "cut"), ses_json_put_int(w, lost); /* words without a tag */
}

const ses_finetune_task ses_finetune_task_tag = {
    .name = "tag",
    .summary = "a label for every word of a sentence",
    .head = &ses_head_token_classification,
    .data = SES_DATA_TAG,
    .format = SES_DATA_CONLL,
    .target = SES_TARGET_TAGS,
    .has_label_names = true,
    .metrics = "entity",
    .best_metric = "f1",
    .encode = encode,
    .begin = begin,
    .collect = take,
    .fill_evaluation = evaluation,
    .put_prediction = put,
};
