#include "bpe.h"
#include "model_wordpiece.h"
#include "run.h"

#include <string.h>

ses_tokenizer_traits ses_tokenizer_traits_of(const ses_tokenizer *t)
{
    ses_tokenizer_traits out = { .model = t->model.stage->type };
    if (!strcmp(out.model, "WordPiece"))
        out.marks_subwords = ((const ses_wordpiece *)t->model.self)->prefix.n > 0;
    if (!strcmp(out.model, "BPE")) out.marks_subwords = ((const ses_bpe *)t->model.self)->prefix.n > 0;
    if (t->stored.truncate) {
        out.stored_length = t->stored.max_length;
        out.truncate_left = t->stored.truncate_left;
    }
    return out;
}
