/* Settings of ByteLevel: reading and saving. */
#include "byte_level.h"

void *ses_byte_level_open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_byte_level *b = ses_arena_array(mem, 1, sizeof *b, e);
    bool ok = b && ses_setting_bool(settings, "add_prefix_space", true, &b->add_prefix_space, e) &&
              ses_setting_bool(settings, "trim_offsets", true, &b->trim_offsets, e) &&
              ses_setting_bool(settings, "use_regex", true, &b->use_regex, e);
    return ok ? b : NULL;
}

void ses_byte_level_save(const void *self, ses_json_writer *w)
{
    const ses_byte_level *b = self;
    ses_json_member_bool(w, "add_prefix_space", b->add_prefix_space);
    ses_json_member_bool(w, "trim_offsets", b->trim_offsets);
    ses_json_member_bool(w, "use_regex", b->use_regex);
}
