/* NFC, NFD, NFKC and NFKD of Unicode 9. */
#include "text/stage/shared/transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_nfc; /* no settings */
}

static bool run(ses_nf form, const ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    ses_transform t = { in, begin, end, begin, out };
    ses_changes c = { 0 };
    bool ok = true;
    while (ok && t.at < end) {
        const char *p = in->byte + t.at;
        size_t n = ses_nf_normalized_prefix(form, p, end - t.at);
        ok = ses_transform_copy(&t, n, e);
        if (!ok || t.at == end) break;
        c.n = 0;
        n = ses_nf_segment(form, p + n, end - t.at);
        ok = ses_nf_normalize(form, in->byte + t.at, n, &c, e) && ses_transform_changes(&t, &c, e);
    }
    ses_changes_free(&c);
    return ok;
}

static bool nfc(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    (void)self;
    return run(SES_NFC9, in, begin, end, out, e);
}

static bool nfd(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    (void)self;
    return run(SES_NFD9, in, begin, end, out, e);
}

static bool nfkc(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    (void)self;
    return run(SES_NFKC9, in, begin, end, out, e);
}

static bool nfkd(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    (void)self;
    return run(SES_NFKD9, in, begin, end, out, e);
}

/* The first part that is not normalized may still normalize to itself: then this counts as a change. */
static bool changes_nfc(const void *self, const char *p, size_t n)
{
    (void)self;
    return ses_nf_normalized_prefix(SES_NFC9, p, n) < n;
}

static bool changes_nfd(const void *self, const char *p, size_t n)
{
    (void)self;
    return ses_nf_normalized_prefix(SES_NFD9, p, n) < n;
}

static bool changes_nfkc(const void *self, const char *p, size_t n)
{
    (void)self;
    return ses_nf_normalized_prefix(SES_NFKC9, p, n) < n;
}

static bool changes_nfkd(const void *self, const char *p, size_t n)
{
    (void)self;
    return ses_nf_normalized_prefix(SES_NFKD9, p, n) < n;
}

const ses_stage ses_stage_norm_nfc = {
    .type = "NFC", .kind = SES_NORMALIZER, .open = open, .normalize = nfc, .changes = changes_nfc
};
const ses_stage ses_stage_norm_nfd = {
    .type = "NFD", .kind = SES_NORMALIZER, .open = open, .normalize = nfd, .changes = changes_nfd
};
const ses_stage ses_stage_norm_nfkc = {
    .type = "NFKC", .kind = SES_NORMALIZER, .open = open, .normalize = nfkc, .changes = changes_nfkc
};
const ses_stage ses_stage_norm_nfkd = {
    .type = "NFKD", .kind = SES_NORMALIZER, .open = open, .normalize = nfkd, .changes = changes_nfkd
};
