/* A new tagger of words (--embed): its config and its vocabulary. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/strmap.h"
#include "task/words/word_stack.h"
#include "train/model_presets.h"

#include <stdio.h>
#include <string.h>

/* As in flair: 256 units in each direction, bytes of 25 columns and 25 units. */
enum { RNN_SIZE = 256, WORD_SIZE = 100, CHAR_SIZE = 25 };

void ses_tagger_defaults(ses_finetune_options *o)
{
    if (!o->embed) return;
    o->task.crf = true;
    if (o->task.scheme == SES_SCHEME_AUTO) o->task.scheme = SES_SCHEME_BIOES;
}

bool ses_tagger_open(ses_finetune *f, ses_err *e)
{
    f->words = ses_word_stack_parse(f->o.embed, f->dev, e);
    ses_json_writer *w = f->words ? ses_json_writer_new(0, e) : NULL;
    if (!w) return false;
    bool chars = ses_word_stack_has(f->words, &ses_word_embedder_char);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", "tagger");
    ses_json_member_int(w, "vocab_size", 1); /* the tuner's vocabulary replaces it */
    ses_json_member_int(w, "vector_size", ses_word_stack_width(f->words));
    ses_json_member_int(w, "word_size",
                        ses_word_stack_has(f->words, &ses_word_embedder_word) ? WORD_SIZE : 0);
    ses_json_member_int(w, "char_size", chars ? CHAR_SIZE : 0);
    ses_json_member_int(w, "char_rnn_size", chars ? CHAR_SIZE : 0);
    ses_json_member_bool(w, "reproject", true);
    ses_json_member_int(w, "rnn_size", RNN_SIZE);
    ses_json_member_int(w, "num_hidden_layers", 1);
    ses_json_member_real(w, "word_dropout", 0.05);
    ses_json_member_real(w, "locked_dropout", 0.5);
    ses_word_stack_put(f->words, w);
    ses_json_end_object(w);
    f->config = ses_json_writer_parse(w, e);
    return f->config != NULL;
}

bool ses_tagger_fit(ses_finetune *f, ses_err *e)
{
    char vocab[48];
    const char *const set[] = { vocab };
    snprintf(vocab, sizeof vocab, "vocab_size=%lld",
             (long long)ses_tokenizer_vocab_size(f->tuner->tokenizer));
    return ses_preset_set(&f->config, set, SES_LEN(set), e) &&
           ses_preset_set(&f->config, f->o.set, f->o.n_set, e);
}

/* Numbers the words that occur at least twice, in the order of the data. */
static bool count_words(const ses_examples *d, ses_strmap *count, ses_err *e)
{
    bool fresh;
    for (size_t r = 0; r < ses_examples_count(d); r++) {
        const ses_labeled_example *x = ses_examples_at(d, r);
        for (size_t i = 0; i < x->n_parts; i++) {
            int64_t *n = ses_strmap_insert(count, x->parts[i].p, x->parts[i].n, 0, &fresh, e);
            if (!n) return false;
            ++*n;
        }
    }
    return true;
}

/* tokenizer.json: words at spaces; id 0 is an unknown word. */
static ses_tokenizer *make_tokenizer(const ses_strmap *count, ses_err *e)
{
    int64_t id = 0;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_member_string(w, "version", "1.0");
    ses_json_member_array(w, "added_tokens");
    ses_json_end_array(w);
    ses_json_member_object(w, "pre_tokenizer");
    ses_json_member_string(w, "type", "WhitespaceSplit");
    ses_json_end_object(w);
    ses_json_member_object(w, "model");
    ses_json_member_string(w, "type", "WordLevel");
    ses_json_member_object(w, "vocab");
    ses_json_member_int(w, "[UNK]", id++);
    for (size_t i = 0; i < count->count; i++) {
        const ses_strmap_entry *x = &count->entry[i];
        if (x->value < 2 || (x->len == 5 && !memcmp(x->key, "[UNK]", 5))) continue;
        char *word = ses_strndup(x->key, x->len, e);
        if (word) ses_json_member_int(w, word, id++);
        ses_free(word);
    }
    ses_json_end_object(w);
    ses_json_member_string(w, "unk_token", "[UNK]");
    ses_json_end_object(w);
    ses_json_end_object(w);
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    ses_tokenizer *t = text ? ses_tokenizer_from_json(text, n, e) : NULL;
    ses_json_writer_free(w);
    return t;
}

ses_finetuner *ses_tagger_tuner(ses_finetune *f, const ses_finetuner_options *o, ses_err *e)
{
    ses_strmap count = { 0 };
    bool trained = ses_word_stack_has(f->words, &ses_word_embedder_word);
    bool ok = !trained || count_words(f->train_rows, &count, e);
    ses_tokenizer *tokenizer = ok ? make_tokenizer(&count, e) : NULL;
    ses_strmap_free(&count);
    if (!tokenizer) return NULL;
    ses_word_stack *words = f->words;
    f->words = NULL;
    return ses_finetuner_new_tagger(o, tokenizer, words, f->dev, e);
}
