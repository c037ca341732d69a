/* Models that read characters (ELMo): the bytes of words outside the vocabulary. */
#include "finetuner.h"

#include "base/elmo/word_chars.h"
#include "model/model_desc.h"

static bool is_unknown(const ses_config *c, const ses_encoding *k, size_t i)
{
    return !k->special_mask[i] && k->id[i] == c->chars.unk_id;
}

/* The string that token i came from. */
static ses_string surface(const ses_input *in, const ses_encoding *k, size_t i)
{
    bool pair = k->sequence_id[i] == 1;
    const ses_string *words = pair ? in->pair_words : in->words;
    ses_string s = words ? words[k->word_id[i]] : pair ? in->pair : in->text;
    return (ses_string){ s.p + k->byte_offset[i].begin, k->byte_offset[i].end - k->byte_offset[i].begin };
}

bool ses_finetuner_add_unknown_words(const ses_finetuner *t, ses_finetune_set *s, const ses_input *in,
                                     const ses_encoding *k, ses_sequence *q, ses_arena *mem, ses_err *e)
{
    const ses_config *c = t->model->stack[0].c;
    size_t bytes = 0, per_word = (size_t)c->chars.per_word;
    if (!per_word) return true;
    int32_t *cu = ses_arena_array(mem, k->n + 1, sizeof *cu, e);
    if (!cu) return false;
    for (size_t i = 0; i < k->n; i++) {
        size_t n = is_unknown(c, k, i) ? surface(in, k, i).n : 0;
        bytes += n < per_word ? n : per_word;
        if (!k->special_mask[i])
            s->n_shortened_words += surface(in, k, i).n > (uint64_t)ses_word_max_bytes(c->chars.per_word);
        cu[i + 1] = (int32_t)bytes;
    }
    int32_t *chars = ses_arena_array(mem, bytes + 1, sizeof *chars, e);
    for (size_t i = 0; chars && i < k->n; i++)
        for (int32_t j = cu[i]; j < cu[i + 1]; j++) chars[j] = (unsigned char)surface(in, k, i).p[j - cu[i]];
    q->chars = chars, q->char_cu = cu;
    return chars != NULL;
}
