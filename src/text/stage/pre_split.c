/* Split: matches of a pattern are delimiters; with `invert`, the text between matches is. */
#include "text/stage/shared/pattern.h"
#include "text/stage/shared/splitter.h"

typedef struct split_settings {
    ses_pattern pattern;
    ses_split_behavior how;
    bool invert;
} split_settings;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    split_settings *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !ses_setting_split_behavior(settings, "behavior", SES_SPLIT_ISOLATED, &s->how, e) ||
        !ses_setting_bool(settings, "invert", false, &s->invert, e) ||
        !ses_pattern_open(&s->pattern, settings, "pattern", mem, e))
        return NULL;
    return s;
}

static void close(void *self) { ses_pattern_close(&((split_settings *)self)->pattern); }

static void save(const void *self, ses_json_writer *w)
{
    const split_settings *s = self;
    ses_pattern_save(&s->pattern, "pattern", w);
    ses_json_member_string(w, "behavior", ses_split_behavior_name(s->how));
    ses_json_member_bool(w, "invert", s->invert);
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    const split_settings *s = self;
    ses_splitter c = { .out = out, .how = s->how };
    ses_regex_scan m;
    size_t done = begin;
    bool ok = ses_regex_start(&m, s->pattern.regex, text->byte + begin, end - begin, e);
    while (ok && (ok = ses_regex_next(&m, e)) && m.found) {
        if (done < begin + m.begin) ok = ses_splitter_add(&c, done, begin + m.begin, s->invert, e);
        ok = ok && ses_splitter_add(&c, begin + m.begin, begin + m.end, !s->invert, e);
        done = begin + m.end;
    }
    ses_regex_stop(&m);
    if (ok && done < end) ok = ses_splitter_add(&c, done, end, s->invert, e);
    return ok && ses_splitter_finish(&c, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_split = {
    .type = "Split", .kind = SES_PRE_TOKENIZER, .open = open, .close = close, .save = save, .split = split
};
