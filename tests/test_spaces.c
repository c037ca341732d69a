/* Metaspace and ByteLevel as pre-tokenizers and post-processors, and the decoders; expected values by
 * Hugging Face Tokenizers. */
#include "check.h"
#include "sesame/tokenizer.h"
#include "text/stage.h"

/* Check "id:begin-end/word ..." of a text for a tokenizer with these stages. */
static void check_text(const char *pre, const char *post, const char *vocab, const char *text,
                       const char *want)
{
    char json[2048], got[512] = "";
    size_t n = 0;
    ses_err e = { 0 };
    snprintf(json, sizeof json,
             "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":9,\"content\":\"[X]\",\"single_word\":false,"
             "\"lstrip\":"
             "false,\"rstrip\":false,\"normalized\":false,\"special\":true}],\"pre_tokenizer\":%s,\"post_"
             "processor\":"
             "%s,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":%s}}",
             pre, post, vocab);
    ses_tokenizer *t = ses_tokenizer_from_json(json, strlen(json), &e);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    if (CHECK_MSG(k && ses_encode(k, &(ses_input){ .text = { text, strlen(text) } }, NULL, &e), "%s",
                  e.msg)) {
        const ses_encoding *r = ses_encode_ctx_result(k);
        for (size_t i = 0; i < r->n; i++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%d:%u-%u/%d", i ? " " : "", r->id[i],
                                  r->char_offset[i].begin, r->char_offset[i].end, r->word_id[i]);
        CHECK_STR(got, want);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

static void check_metaspace(void)
{
    static const char vocab[] = "{\"<unk>\":0,\"▁Hey\":1,\"▁a\":2,\"▁\":3}";
    static const char *const cases[][3] = {
        { "\"always\"", "Hey  a b", "1:0-3/0 3:3-4/1 2:4-6/2 0:6-8/3" },
        { "\"always\"", " Hey▁a ", "1:0-4/0 2:4-6/1 3:6-7/2" },
        { "\"always\"", "[X]Hey [X] a", "4:0-3/0 1:3-6/1 3:6-7/2 4:7-10/3 2:10-12/4" },
        { "\"always\"", "", "" },
        { "\"always\",\"split\":false", "[X]Hey [X] a", "4:0-3/0 0:3-7/1 4:7-10/2 2:10-12/3" },
        { "\"first\"", "Hey  a b", "1:0-3/0 3:3-4/1 2:4-6/2 0:6-8/3" },
        { "\"first\"", "[X]Hey [X] a", "4:0-3/0 0:3-6/1 3:6-7/2 4:7-10/3 2:10-12/4" },
        { "\"never\"", "Hey  a b", "0:0-3/0 3:3-4/1 2:4-6/2 0:6-8/3" },
        { "\"never\",\"split\":false", " Hey▁a ", "0:0-7/0" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char pre[256];
        snprintf(pre, sizeof pre, "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":%s}",
                 cases[i][0]);
        check_text(pre, "null", vocab, cases[i][1], cases[i][2]);
    }
    static const char old[] =
        "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"str_rep\":\"_\",\"add_prefix_space\":true}";
    check_text(old, "null", vocab, "a_ b", "0:0-1/0 0:1-2/1 0:2-4/2");
    check_text(old, "null", vocab, " Hey▁a ", "0:0-6/0 0:6-7/1");
}

static void check_byte_level(void)
{
    static const char vocab[] = "{\"<unk>\":0,\"ĠHey\":1,\"'s\":2,\"Ġ\":3}";
    static const struct {
        bool prefix, regex;
        const char *text, *want;
    } cases[] = {
        { true, true, "Hey's  12,é日 \n\n x",
          "1:0-3/0 2:3-5/1 3:6-6/2 0:6-9/3 0:9-10/4 0:10-12/5 0:12-15/6 0:15-17/7" },
        { true, true, "  ", "0:0-2/0" },
        { true, true, "we'll we'Ll 'd'",
          "0:0-2/0 0:2-5/1 0:5-8/2 0:8-9/3 0:9-11/4 0:11-13/5 0:13-14/6 0:14-15/7" },
        { true, true, "\u00a0a\u3000b  c\n",
          "3:0-0/0 0:0-1/1 0:1-2/2 0:2-3/3 0:3-4/4 3:5-5/5 0:5-7/6 0:7-8/7" },
        { true, false, "Hey's  12,é日 \n\n x", "0:0-17/0" },
        { false, true, "Hey's  12,é日 \n\n x",
          "0:0-3/0 2:3-5/1 3:6-6/2 0:6-9/3 0:9-10/4 0:10-12/5 0:12-15/6 0:15-17/7" },
        { false, true, "\u00a0a\u3000b  c\n", "0:0-1/0 0:1-2/1 0:2-3/2 0:3-4/3 3:5-5/4 0:5-7/5 0:7-8/6" },
        { false, false, "we'll we'Ll 'd'", "0:0-15/0" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char pre[256], post[256];
        const char *prefix = cases[i].prefix ? "true" : "false", *regex = cases[i].regex ? "true" : "false";
        snprintf(pre, sizeof pre,
                 "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,\"use_regex\":%s}",
                 prefix, regex);
        snprintf(post, sizeof post, "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":%s}",
                 prefix, regex);
        check_text(pre, post, vocab, cases[i].text, cases[i].want);
    }
}

/* Offsets exclude spaces at the ends of a token; a single leading space may not be in the text. */
static void check_trimmed(void)
{
    static const char vocab[] = "{\"<unk>\":0,\"ĠĠ\":1,\"ĠĠĠ\":2,\"Ġa\":3}";
    for (int prefix = 0; prefix < 2; prefix++) {
        char stage[256];
        snprintf(stage, sizeof stage,
                 "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true}",
                 prefix ? "true" : "false");
        check_text(stage, stage, vocab, "  ", "1:2-2/0");
        check_text(stage, stage, vocab, "    a  ", "2:3-3/0 3:4-5/1 1:7-7/2");
        check_text(stage, stage, vocab, " a", prefix ? "3:0-2/0" : "3:1-2/0");
    }
}

static void check_decoder(const ses_stage *stage, const char *settings, const char *const *token,
                          const char *want)
{
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_json_doc *d = ses_json_parse(settings, strlen(settings), &e);
    void *self = d ? stage->open(ses_json_root(d), &mem, &e) : NULL;
    ses_strings s = { 0 };
    char got[256] = "";
    size_t n = 0;
    for (; *token; token++) ses_strings_put(&s, *token, strlen(*token), &e);
    if (self && stage->decode(self, &s, &e))
        for (size_t i = 0; i < s.n; i++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s", i ? "|" : "", (int)s.string[i].n,
                                  s.string[i].p);
    else
        snprintf(got, sizeof got, "%.200s", e.msg);
    CHECK_STR(got, want);
    if (self && stage->close) stage->close(self);
    free(s.string);
    ses_arena_free(&s.mem);
    ses_arena_free(&mem);
    ses_json_free(d);
}

#define TOKENS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check_decoders(void)
{
    check_decoder(&ses_stage_dec_metaspace, "{\"replacement\":\"▁\"}", TOKENS("▁▁a", "▁b▁", "c"), "a| b |c");
    check_decoder(&ses_stage_dec_metaspace, "{\"replacement\":\"▁\",\"prepend_scheme\":\"never\"}",
                  TOKENS("▁a", "▁b"), " a| b");
    check_decoder(&ses_stage_dec_bpe, "{\"suffix\":\"</w>\"}", TOKENS("a</w>", "b", "c</w></w>", "d</w>"),
                  "a |b|c  |d");
    check_decoder(&ses_stage_dec_bpe, "{\"suffix\":\"\"}", TOKENS("aé", "b"), " a é |b");
    check_decoder(&ses_stage_dec_byte_fallback, "{}",
                  TOKENS("<0xE6>", "<0x97>", "<0xA5>", "x", "<0xFF>", "<0x41>", "<0xg0>", "<0x+f>"),
                  "日|x|\ufffd|\ufffd|<0xg0>|\x0f");
    check_decoder(&ses_stage_dec_replace, "{\"pattern\":{\"String\":\"▁\"},\"content\":\" \"}",
                  TOKENS("▁a▁", "b", ""), " a |b|");
    check_decoder(&ses_stage_dec_replace, "{\"pattern\":{\"Regex\":\"[ab]+\"},\"content\":\"\"}",
                  TOKENS("xaby", "ba"), "xy|");
    check_decoder(&ses_stage_dec_replace, "{\"content\":\" \"}", TOKENS("a"),
                  "key \"pattern\" must be {\"String\": ...} or {\"Regex\": ...}");
    check_decoder(&ses_stage_dec_fuse, "{}", TOKENS("a", "", "b"), "ab");
    check_decoder(&ses_stage_dec_strip, "{\"content\":\"_\",\"start\":1,\"stop\":2}",
                  TOKENS("__a___", "a_", "b"), "_a_|a|b");
    check_decoder(&ses_stage_dec_strip, "{\"content\":\"_\",\"start\":1,\"stop\":2}", TOKENS("_"),
                  "Strip: token 0 has fewer characters than must be removed");
    check_decoder(&ses_stage_dec_byte_level, "{}", TOKENS("Ġa", "Ã", "©", "日", "Ä"), " aé日\ufffd");
    /* rejected settings */
    check_decoder(&ses_stage_dec_metaspace, "{\"replacement\":\"ab\"}", TOKENS("a"),
                  "key \"replacement\" must be a string of one character");
    check_decoder(&ses_stage_dec_metaspace, "{\"replacement\":\"▁\",\"prepend_scheme\":\"last\"}",
                  TOKENS("a"), "key \"prepend_scheme\" must be \"first\", \"never\" or \"always\"");
    check_decoder(&ses_stage_dec_metaspace, "{\"replacement\":\"▁\",\"add_prefix_space\":false}", TOKENS("a"),
                  "\"add_prefix_space\": false requires \"prepend_scheme\": \"never\"");
    check_decoder(&ses_stage_dec_bpe, "{}", TOKENS("a"), "key \"suffix\" is missing");
    check_decoder(&ses_stage_dec_strip, "{\"content\":\"_\",\"start\":-1}", TOKENS("a"),
                  "key \"start\" is -1, must be from 0 to 9223372036854775807");
}

int main(void)
{
    check_metaspace();
    check_byte_level();
    check_trimmed();
    check_decoders();
    return check_report();
}
