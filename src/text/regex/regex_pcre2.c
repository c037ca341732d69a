/* Patterns that need PCRE2. If the build has no PCRE2, opening returns an error. */
#include "regex_pcre2.h"

#include "regex.h"

#ifdef SES_PCRE2

#include "base/alloc.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Limits on steps, nesting depth and KiB of heap: a match that exceeds them is an error instead of a hang. */
enum { MATCH_LIMIT = 10000000, DEPTH_LIMIT = 100000, HEAP_LIMIT = 1 << 18 };

struct ses_pcre2 {
    pcre2_code *code;
};

struct ses_pcre2_work {
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

bool ses_regex_has_pcre2(void) { return true; }

ses_pcre2 *ses_pcre2_open(const char *pattern, size_t n, const char *why, ses_err *e)
{
    (void)why;
    ses_pcre2 *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    int code;
    PCRE2_SIZE at;
    /* \w, \d, \s follow Unicode; ^ and $ match at every line, as in Oniguruma. */
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK;
    p->code = pcre2_compile((PCRE2_SPTR)pattern, n, options, &code, &at, NULL);
    if (p->code) return p;
    PCRE2_UCHAR message[160];
    if (pcre2_get_error_message(code, message, sizeof message) < 0) message[0] = 0;
    ses_fail(e, SES_EFORMAT, "regular expression: %s, at byte %zu", (const char *)message, (size_t)at);
    ses_free(p);
    return NULL;
}

void ses_pcre2_close(ses_pcre2 *p)
{
    if (!p) return;
    pcre2_code_free(p->code);
    ses_free(p);
}

ses_pcre2_work *ses_pcre2_work_new(const ses_pcre2 *p, ses_err *e)
{
    ses_pcre2_work *w = ses_alloc(sizeof *w, e);
    if (!w) return NULL;
    w->data = pcre2_match_data_create_from_pattern(p->code, NULL);
    w->limits = pcre2_match_context_create(NULL);
    if (w->data && w->limits) {
        pcre2_set_match_limit(w->limits, MATCH_LIMIT);
        pcre2_set_depth_limit(w->limits, DEPTH_LIMIT);
        pcre2_set_heap_limit(w->limits, HEAP_LIMIT);
        return w;
    }
    ses_fail(e, SES_ENOMEM, "out of memory for a regular expression");
    ses_pcre2_work_free(w);
    return NULL;
}

void ses_pcre2_work_free(ses_pcre2_work *w)
{
    if (!w) return;
    pcre2_match_data_free(w->data);
    pcre2_match_context_free(w->limits);
    ses_free(w);
}

bool ses_pcre2_search(const ses_pcre2 *p, ses_pcre2_work *w, const char *text, size_t n, size_t from,
                      bool *found, size_t *begin, size_t *end, ses_err *e)
{
    int rc = pcre2_match(p->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, w->data, w->limits);
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH) return true;
    if (rc < 0) {
        PCRE2_UCHAR message[160];
        if (pcre2_get_error_message(rc, message, sizeof message) < 0) message[0] = 0;
        return ses_fail(e, SES_EARG, "regular expression: %s", (const char *)message);
    }
    const PCRE2_SIZE *where = pcre2_get_ovector_pointer(w->data);
    *begin = where[0];
    *end = where[1];
    if (*begin > *end || *begin < from)
        return ses_fail(e, SES_EARG, "regular expression: match moves backward");
    return true;
}

#else

bool ses_regex_has_pcre2(void) { return false; }

ses_pcre2 *ses_pcre2_open(const char *pattern, size_t n, const char *why, ses_err *e)
{
    (void)pattern, (void)n;
    ses_fail(e, SES_EUNSUPPORTED, "regular expression: %s requires PCRE2, which this build does not include",
             why);
    return NULL;
}

void ses_pcre2_close(ses_pcre2 *p) { (void)p; }

ses_pcre2_work *ses_pcre2_work_new(const ses_pcre2 *p, ses_err *e)
{
    (void)p, (void)e;
    return NULL;
}

void ses_pcre2_work_free(ses_pcre2_work *w) { (void)w; }

bool ses_pcre2_search(const ses_pcre2 *p, ses_pcre2_work *w, const char *text, size_t n, size_t from,
                      bool *found, size_t *begin, size_t *end, ses_err *e)
{
    (void)p, (void)w, (void)text, (void)n, (void)from, (void)begin, (void)end, (void)e;
    return *found = false;
}

#endif
