/* SentencePiece as a normalizer: the normalization rules of a .model file. */
#include "text/spm/spm_norm.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_spm_norm *s = ses_arena_array(mem, 1, sizeof *s, e);
    return s && ses_spm_norm_open(s, settings, mem, e) ? s : NULL;
}

static void save(const void *self, ses_json_writer *w) { ses_spm_norm_save(self, w); }

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    return ses_spm_norm_run(self, in, begin, end, out, NULL, e);
}

const ses_stage ses_stage_norm_sentencepiece = {
    .type = "SentencePiece", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
