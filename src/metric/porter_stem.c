/* The Porter stemmer (Program 14.3, 1980) with NLTK's default extensions, as rouge_score uses it. */
#include "word_ids.h"

#include <string.h>

typedef enum { ALWAYS, MEASURE_1, MEASURE_2, ION, LOGI } condition;

typedef struct rule {
    const char *suffix, *by;
    condition when;
} rule;

static bool is_vowel(char c) { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'; }

/* y is a consonant at the beginning and after a vowel; in a run of y, every other one is. */
static bool is_consonant(const char *w, size_t i)
{
    bool odd = false;
    if (w[i] != 'y') return !is_vowel(w[i]);
    for (; i > 0 && w[i] == 'y'; i--) odd = !odd;
    return !is_vowel(w[i]) != odd;
}

/* Porter's measure: m of [C](VC)^m[V]. */
static size_t measure(const char *w, size_t n)
{
    size_t m = 0;
    bool consonant = true;
    for (size_t i = 0; i < n; i++) {
        bool next = w[i] == 'y' ? i == 0 || !consonant : !is_vowel(w[i]);
        m += i && next && !consonant;
        consonant = next;
    }
    return m;
}

static bool has_vowel(const char *w, size_t n)
{
    bool consonant = true;
    for (size_t i = 0; i < n; i++) {
        consonant = w[i] == 'y' ? i == 0 || !consonant : !is_vowel(w[i]);
        if (!consonant) return true;
    }
    return false;
}

static bool ends(const char *w, size_t n, const char *suffix)
{
    size_t k = strlen(suffix);
    return n >= k && !memcmp(w + n - k, suffix, k);
}

static bool ends_cvc(const char *w, size_t n)
{
    if (n == 2) return !is_consonant(w, 0) && is_consonant(w, 1);
    return n >= 3 && is_consonant(w, n - 3) && !is_consonant(w, n - 2) && is_consonant(w, n - 1) &&
           w[n - 1] != 'w' && w[n - 1] != 'x' && w[n - 1] != 'y';
}

static bool holds(const rule *r, const char *w, size_t stem)
{
    switch (r->when) {
    case ALWAYS: return true;
    case MEASURE_1: return measure(w, stem) > 0;
    case MEASURE_2: return measure(w, stem) > 1;
    case ION: return measure(w, stem) > 1 && (w[stem - 1] == 's' || w[stem - 1] == 't');
    case LOGI: return measure(w, stem + 1) > 0; /* the stem includes the l */
    }
    return false;
}

/* Applies the first rule whose suffix matches. */
static size_t apply(char *w, size_t n, const rule *r, size_t rules)
{
    for (size_t i = 0; i < rules; i++) {
        if (!ends(w, n, r[i].suffix)) continue;
        size_t stem = n - strlen(r[i].suffix), k = strlen(r[i].by);
        if (!holds(&r[i], w, stem)) return n;
        memcpy(w + stem, r[i].by, k);
        return stem + k;
    }
    return n;
}

static size_t step1a(char *w, size_t n)
{
    static const rule r[] = {
        { "sses", "ss", ALWAYS }, { "ies", "i", ALWAYS }, { "ss", "ss", ALWAYS }, { "s", "", ALWAYS }
    };
    return n == 4 && ends(w, n, "ies") ? n - 1 : apply(w, n, r, SES_LEN(r));
}

static size_t step1b(char *w, size_t n)
{
    static const rule r[] = { { "at", "ate", ALWAYS }, { "bl", "ble", ALWAYS }, { "iz", "ize", ALWAYS } };
    if (ends(w, n, "ied")) return n == 4 ? n - 1 : n - 2;
    if (ends(w, n, "eed")) return measure(w, n - 3) > 0 ? n - 1 : n;
    size_t stem = ends(w, n, "ed") ? n - 2 : ends(w, n, "ing") ? n - 3 : n;
    if (stem == n || !has_vowel(w, stem)) return n;
    size_t done = apply(w, stem, r, SES_LEN(r));
    if (done != stem) return done;
    char last = w[stem - 1];
    if (stem >= 2 && last == w[stem - 2] && is_consonant(w, stem - 1))
        return last == 'l' || last == 's' || last == 'z' ? stem : stem - 1;
    if (measure(w, stem) == 1 && ends_cvc(w, stem)) w[stem++] = 'e';
    return stem;
}

static size_t step1c(char *w, size_t n)
{
    if (n > 2 && w[n - 1] == 'y' && is_consonant(w, n - 2)) w[n - 1] = 'i';
    return n;
}

static size_t step2(char *w, size_t n)
{
    static const rule r[] = {
        { "ational", "ate", MEASURE_1 }, { "tional", "tion", MEASURE_1 }, { "enci", "ence", MEASURE_1 },
        { "anci", "ance", MEASURE_1 },   { "izer", "ize", MEASURE_1 },    { "bli", "ble", MEASURE_1 },
        { "alli", "al", MEASURE_1 },     { "entli", "ent", MEASURE_1 },   { "eli", "e", MEASURE_1 },
        { "ousli", "ous", MEASURE_1 },   { "ization", "ize", MEASURE_1 }, { "ation", "ate", MEASURE_1 },
        { "ator", "ate", MEASURE_1 },    { "alism", "al", MEASURE_1 },    { "iveness", "ive", MEASURE_1 },
        { "fulness", "ful", MEASURE_1 }, { "ousness", "ous", MEASURE_1 }, { "aliti", "al", MEASURE_1 },
        { "iviti", "ive", MEASURE_1 },   { "biliti", "ble", MEASURE_1 },  { "fulli", "ful", MEASURE_1 },
        { "logi", "log", LOGI },
    };
    while (ends(w, n, "alli") && measure(w, n - 4) > 0) n -= 2;
    return apply(w, n, r, SES_LEN(r));
}

static size_t step3(char *w, size_t n)
{
    static const rule r[] = { { "icate", "ic", MEASURE_1 }, { "ative", "", MEASURE_1 },
                              { "alize", "al", MEASURE_1 }, { "iciti", "ic", MEASURE_1 },
                              { "ical", "ic", MEASURE_1 },  { "ful", "", MEASURE_1 },
                              { "ness", "", MEASURE_1 } };
    return apply(w, n, r, SES_LEN(r));
}

static size_t step4(char *w, size_t n)
{
    static const rule r[] = {
        { "al", "", MEASURE_2 },   { "ance", "", MEASURE_2 }, { "ence", "", MEASURE_2 },
        { "er", "", MEASURE_2 },   { "ic", "", MEASURE_2 },   { "able", "", MEASURE_2 },
        { "ible", "", MEASURE_2 }, { "ant", "", MEASURE_2 },  { "ement", "", MEASURE_2 },
        { "ment", "", MEASURE_2 }, { "ent", "", MEASURE_2 },  { "ion", "", ION },
        { "ou", "", MEASURE_2 },   { "ism", "", MEASURE_2 },  { "ate", "", MEASURE_2 },
        { "iti", "", MEASURE_2 },  { "ous", "", MEASURE_2 },  { "ive", "", MEASURE_2 },
        { "ize", "", MEASURE_2 },
    };
    return apply(w, n, r, SES_LEN(r));
}

static size_t step5(char *w, size_t n)
{
    if (n && w[n - 1] == 'e') {
        size_t m = measure(w, n - 1);
        if (m > 1 || (m == 1 && !ends_cvc(w, n - 1))) n--;
    }
    return ends(w, n, "ll") && measure(w, n - 1) > 1 ? n - 1 : n;
}

size_t ses_porter_stem(char *word, size_t n)
{
    static const char *const irregular[][2] = {
        { "sky", "sky" },         { "skies", "sky" },        { "dying", "die" },
        { "lying", "lie" },       { "tying", "tie" },        { "news", "news" },
        { "innings", "inning" },  { "inning", "inning" },    { "outings", "outing" },
        { "outing", "outing" },   { "cannings", "canning" }, { "canning", "canning" },
        { "howe", "howe" },       { "proceed", "proceed" },  { "exceed", "exceed" },
        { "succeed", "succeed" },
    };
    for (size_t i = 0; i < SES_LEN(irregular); i++) {
        if (strlen(irregular[i][0]) != n || memcmp(irregular[i][0], word, n) != 0) continue;
        size_t k = strlen(irregular[i][1]);
        memcpy(word, irregular[i][1], k);
        return k;
    }
    if (n <= 2) return n;
    n = step1a(word, n);
    n = step1b(word, n);
    n = step1c(word, n);
    n = step2(word, n);
    n = step3(word, n);
    n = step4(word, n);
    return step5(word, n);
}
