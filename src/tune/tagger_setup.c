/* A new tagger of words (--embed): its config and its vocabulary. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/lowercase.h"
#include "task/words/word_stack.h"
#include "train/model_presets.h"

#include <stdio.h>
#include <string.h>

/* The first values of the config, by encoder. bilstm: as in flair, 256 units in each direction, bytes of 25
 * columns and 25 units, but with batch norm of frozen vectors; window and sentence: as in Collobert et al.
 * 2011. */
enum { RNN_SIZE = 256, CHAR_SIZE = 25, CAPS_SIZE = 5 };
static const struct {
    const char *name;
    int64_t word_size, window, hidden;
    bool vector_norm, reproject;
    double word_dropout, locked_dropout;
} encoders[] = {
    { "bilstm", 100, 0, 0, true, true, 0.05, 0.5 },
    { "window", 50, 5, 300, false, false, 0, 0 },
    { "sentence", 50, 3, 500, false, false, 0, 0 },
};

void ses_tagger_defaults(ses_finetune_options *o)
{
    if (!o->embed) return;
    o->task.crf |= !o->unlabeled;
    if (o->task.scheme == SES_SCHEME_AUTO) o->task.scheme = SES_SCHEME_BIOES;
}

static bool find_encoder(const char *name, size_t *i, ses_err *e)
{
    for (*i = 0; name && *i < SES_LEN(encoders); ++*i)
        if (!strcmp(name, encoders[*i].name)) return true;
    return !name || ses_fail(e, SES_EUSAGE, "encoder: unknown \"%s\"; choose one of bilstm, window, sentence",
                             ses_quoted_of(name, strlen(name)).s);
}

/* Writes where the vectors enter: at the input, or, for language models, after a layer. */
static bool put_vectors(ses_finetune *f, ses_json_writer *w, ses_err *e)
{
    int64_t layer = f->o.lm_layer, late = layer ? ses_word_stack_split(f->words) : 0;
    if (layer && !late)
        return ses_fail(e, SES_EUSAGE,
                        "lm-layer %lld: no embedding is a language model; add one to embed, as "
                        "lm:DIR, elmo:DIR or flair:DIR",
                        (long long)layer);
    ses_json_member_int(w, "vector_size", ses_word_stack_width(f->words));
    if (!layer) return true;
    ses_json_member_int(w, "lm_layer", layer);
    ses_json_member_int(w, "lm_size", late);
    return true;
}

bool ses_tagger_open(ses_finetune *f, ses_err *e)
{
    size_t k;
    if (!find_encoder(f->o.encoder, &k, e)) return false;
    f->words = ses_word_stack_parse(f->o.embed, f->dev, e);
    ses_json_writer *w = f->words ? ses_json_writer_new(0, e) : NULL;
    if (!w) return false;
    bool chars = ses_word_stack_has(f->words, &ses_word_embedder_char);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", "tagger");
    ses_json_member_int(w, "vocab_size", 1); /* the tuner's vocabulary replaces it */
    bool ok = put_vectors(f, w, e);
    ses_json_member_int(w, "word_size",
                        ses_word_stack_has(f->words, &ses_word_embedder_word) ? encoders[k].word_size : 0);
    ses_json_member_int(w, "caps_size",
                        ses_word_stack_has(f->words, &ses_word_embedder_caps) ? CAPS_SIZE : 0);
    ses_json_member_int(w, "char_size", chars ? CHAR_SIZE : 0);
    ses_json_member_int(w, "char_rnn_size", chars ? CHAR_SIZE : 0);
    ses_json_member_string(w, "encoder", encoders[k].name);
    if (encoders[k].vector_norm) ses_json_member_bool(w, "vector_norm", true);
    ses_json_member_bool(w, "reproject", encoders[k].reproject);
    if (encoders[k].window) {
        ses_json_member_int(w, "window_size", encoders[k].window);
        ses_json_member_int(w, "hidden_size", encoders[k].hidden);
    } else {
        ses_json_member_int(w, "rnn_size", RNN_SIZE);
        ses_json_member_int(w, "num_hidden_layers", f->o.lm_layer + 1 + (!f->o.lm_layer && f->o.unlabeled));
    }
    ses_json_member_real(w, "word_dropout", encoders[k].word_dropout);
    ses_json_member_real(w, "locked_dropout", encoders[k].locked_dropout);
    ses_word_stack_put(f->words, w);
    ses_json_end_object(w);
    if (!ok) return ses_json_writer_free(w), false;
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

/* Counts the words in the order of the data. lower: in lower case, on mem. */
static bool count_words(const ses_examples *d, bool lower, ses_strmap *count, ses_arena *mem, ses_err *e)
{
    bool fresh, ok = true;
    ses_buf low = { 0 };
    for (size_t r = 0; ok && r < ses_examples_count(d); r++) {
        const ses_labeled_example *x = ses_examples_at(d, r);
        for (size_t i = 0; ok && i < x->n_parts; i++) {
            const char *word = x->parts[i].p;
            size_t len = x->parts[i].n;
            low.len = 0;
            if (lower && ses_lower_append(&low, word, len))
                word = ses_arena_strndup(mem, low.data ? low.data : "", len = low.len, e);
            int64_t *n =
                ses_buf_ok(&low, e) && word ? ses_strmap_insert(count, word, len, 0, &fresh, e) : NULL;
            ok = n != NULL;
            if (ok) ++*n;
        }
    }
    ses_buf_free(&low);
    return ok;
}

/* tokenizer.json: words at spaces, if they occur at least twice; id 0 is an unknown word. */
static ses_tokenizer *make_tokenizer(const ses_strmap *count, bool lower, ses_err *e)
{
    int64_t id = 0;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "version", "1.0");
    ses_json_member_array(w, "added_tokens");
    ses_json_end_array(w);
    if (lower) {
        ses_json_member_object(w, "normalizer");
        ses_json_member_string(w, "type", "Lowercase");
        ses_json_end_object(w);
    }
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
    ses_arena mem = { 0 };
    bool trained = ses_word_stack_has(f->words, &ses_word_embedder_word);
    bool lower = ses_word_stack_has(f->words, &ses_word_embedder_caps);
    bool ok = !trained || count_words(f->train_rows, lower, &count, &mem, e);
    ses_tokenizer *tokenizer = ok ? make_tokenizer(&count, lower, e) : NULL;
    ses_strmap_free(&count);
    ses_arena_free(&mem);
    if (!tokenizer) return NULL;
    ses_word_stack *words = f->words;
    f->words = NULL;
    return ses_finetuner_new_tagger(o, tokenizer, words, f->dev, e);
}
