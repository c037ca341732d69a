/* Features of words in blocks of rows: see tag_words.h. */
#include "tag_words.h"

#include "base/alloc.h"
#include "task/words/word_stack.h"

enum { BLOCK_WORDS = 8192 }; /* a block ends with the row that reaches it */

struct ses_tag_words {
    ses_arena mem;
    ses_word_features f;
    size_t row, rows; /* the first row, and their number */
    ses_string *word;
    size_t *first; /* [rows + 1]: the first word of each row */
    size_t words_cap, first_cap;
};

void ses_tag_words_free(ses_tag_words *b)
{
    if (!b) return;
    ses_arena_free(&b->mem);
    ses_free(b->word);
    ses_free(b->first);
    ses_free(b);
}

bool ses_tag_encode(ses_finetuner *t, const ses_labeled_example *r, ses_input *in, ses_arena *mem, ses_err *e)
{
    ses_string *words = ses_arena_array(mem, r->n_parts + 1, sizeof *words, e);
    for (size_t i = 0; words && i < r->n_parts; i++) words[i] = (ses_string){ r->parts[i].p, r->parts[i].n };
    *in = (ses_input){ .words = words, .n_words = r->n_parts };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = t->max_tokens };
    return words && ses_encode(t->tokens, in, &o, e);
}

/* Adds the words of the tokens of a row; they belong to the examples. */
static bool add_row(ses_tag_words *b, ses_finetuner *t, const ses_labeled_example *r, ses_err *e)
{
    ses_input in;
    ses_arena mem = { 0 };
    bool ok = ses_tag_encode(t, r, &in, &mem, e);
    ses_arena_free(&mem);
    if (!ok) return false;
    const ses_encoding *k = ses_encode_ctx_result(t->tokens);
    size_t at = b->rows ? b->first[b->rows] : 0;
    if (!ses_array_reserve(&b->word, &b->words_cap, at + k->n, sizeof *b->word, e) ||
        !ses_array_reserve(&b->first, &b->first_cap, b->rows + 2, sizeof *b->first, e))
        return false;
    for (size_t i = 0; i < k->n; i++)
        b->word[at + i] = k->word_id[i] < 0
                              ? (ses_string){ "", 0 }
                              : (ses_string){ r->parts[k->word_id[i]].p, r->parts[k->word_id[i]].n };
    b->first[0] = 0;
    b->first[++b->rows] = at + k->n;
    return true;
}

static bool fill(ses_tag_words *b, ses_finetuner *t, ses_finetune_set *s, size_t row, ses_err *e)
{
    b->row = row, b->rows = 0;
    ses_arena_free(&b->mem);
    do
        if (!add_row(b, t, ses_examples_at(s->rows, row), e)) return b->rows = 0, false;
    while (++row < s->n_rows && b->first[b->rows] < BLOCK_WORDS);
    ses_sentences text = { b->word, b->first, b->rows };
    if (!ses_word_stack_embed(t->words, &text, &b->mem, &b->f, e)) return b->rows = 0, false;
    s->n_shortened_words += b->f.n_shortened;
    return true;
}

bool ses_tag_words_get(ses_finetuner *t, ses_finetune_set *s, size_t row, ses_sequence *q, ses_arena *mem,
                       ses_err *e)
{
    if (!s->words && !(s->words = ses_alloc(sizeof *s->words, e))) return false;
    ses_tag_words *b = s->words;
    if ((row < b->row || row >= b->row + b->rows) && !fill(b, t, s, row, e)) return false;
    size_t first = b->first[row - b->row], n = b->first[row - b->row + 1] - first;
    q->vector_width = ses_word_stack_width(t->words);
    if (b->f.vectors) q->vectors = b->f.vectors + first * (size_t)q->vector_width;
    if (!b->f.chars) return true;
    int32_t *cu = ses_arena_array(mem, n + 1, sizeof *cu, e), before = b->f.char_cu[first];
    for (size_t i = 0; cu && i <= n; i++) cu[i] = b->f.char_cu[first + i] - before;
    q->chars = b->f.chars + before, q->char_cu = cu;
    return cu != NULL;
}
