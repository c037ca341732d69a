/* XLM's word splitting: the Moses rules for English (normalize punctuation, find words, keep the period of
 * abbreviations) as applied by the slow tokenizer of transformers, expressed as stages of a
 * tokenizer.json. Decisions that depend on capital letters are marked before lower-casing. */
#include "legacy_variants.h"

/* Marks a period that belongs to its word. */
#define MARK "\uF8FF"

/* Words that keep their period; all words of one length form a group, as lookbehind requires. */
#define NAMES(before)                                                                                      \
    before                                                                                                 \
        "[A-Zv]|" before "(?:DR|Dr|Hr|Lt|MM|MR|MS|Mr|Ms|Op|Ph|Rt|Sr|St|vs|Rs|Nr)|" before                  \
        "(?:Adj|Adm|Adv|Col|Con|Cpl|Drs|Ens|Gen|Gov|Hon|MRS|Maj|Mme|Mrs|Ord|Pfc|Pvt|Rep|Res|Rev|Sen|Sfc|"  \
        "Sgt|rev|Nos|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|" before                                 \
        "(?:Asst|Bart|Bldg|Brig|Bros|Capt|Cmdr|Corp|Hosp|Insp|Mlle|Msgr|Prof|Reps|Sens|Supt|Surg)|" before \
        "(?:Comdr)|" before "(?:Messrs)"
#define NUMBERED(before) before "(?:No|pp)|" before "Art"
#define AFTER(words) "(?<=" words("\\A") "|" words("[^\\p{L}\\p{N}.'-]") "|" words("[^\\p{L}\\p{N}]'") ")"

#define WORD "[\\p{L}\\p{Nd}\\p{Nl}-]"
#define INNER_POINT "\\.(?!\\.)"
#define LAST_POINT "(?:\\.(?=" MARK "))?"

const ses_legacy_replace ses_legacy_moses_replace[] = {
    { true, "[，、]", "," },
    { true, "[。．]\\s*", ". " },
    { true, "[”“《》「」„]", "\"" },
    { true, "[∶：]", ":" },
    { true, "[’`´‘‚]", "'" },
    { false, "''", "\"" },
    { false, "？", "?" },
    { false, "！", "!" },
    { false, "（", "(" },
    { false, "）", ")" },
    { false, "；", ";" },
    { false, "～", "~" },
    { false, "…", "..." },
    { true, "[━–]", "-" },
    { false, "—", " - " },
    { false, "〈", "<" },
    { false, "〉", ">" },
    { false, "【", "[" },
    { false, "】", "]" },
    { false, "％", "%" },
    { true, "\u00A0?[«»]\u00A0?", "\"" },
    { false, "０", "0" },
    { false, "１", "1" },
    { false, "２", "2" },
    { false, "３", "3" },
    { false, "４", "4" },
    { false, "５", "5" },
    { false, "６", "6" },
    { false, "７", "7" },
    { false, "８", "8" },
    { false, "９", "9" },
    /* periods and commas before a closing quote */
    { false, "\"...", "...\"" },
    { false, "\".", ".\"" },
    { false, "\",", ",\"" },
    { false, "\".", ".\"" },
    { true, "(?<=\\d)\u00A0(?=\\d)", "." },
    { true, "\\p{C}", "" },
    { true, "(?<=[\\p{L}\\p{N}])\\.(?=\\s+\\p{Ll})", "." MARK },
    { true, AFTER(NAMES) "\\.(?![\\p{L}\\p{N}." MARK "-])", "." MARK },
    { true, AFTER(NUMBERED) "\\.(?=\\s+[0-9])", "." MARK },
    { false, NULL, NULL },
};

/* Words with inner periods that end in one; runs of periods; text after an apostrophe; words, including
 * inner periods, commas between digits and apostrophes after digits; any other character. */
const char ses_legacy_moses_words[] =
    "(?<![\\p{L}\\p{N}.-])(?=[\\p{N}.-]*\\p{L})" WORD "+(?:\\." WORD "+)+\\.(?![\\p{L}\\p{N}.-])|\\.{2,}|"
    "(?:(?<=\\p{L})'\\p{L}(?:'(?=\\p{L}))?|(?:\\A|(?<=\\p{N})(?='s))'\\p{L})" WORD "*(?:" INNER_POINT WORD
    "+)*" LAST_POINT "|(?:(?<![\\p{L}\\p{N}.'-])" INNER_POINT ")?" WORD "+(?:(?:" INNER_POINT
    "|(?<=\\p{N}),(?=\\p{N})|(?<=\\p{N})'(?!s)(?=\\p{L}))" WORD "+)*" LAST_POINT "|[^\\s" MARK "]";
