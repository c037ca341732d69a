/* Numbers as texts for people. The caller owns the buffers. Any thread. */
#ifndef SES_BASE_NUMBER_TEXT_H
#define SES_BASE_NUMBER_TEXT_H

#include "sesame/base.h"

enum { SES_NUMBER_TEXT = 24 };

/* "12,403". Returns buf. */
const char *ses_grouped_text(char buf[SES_NUMBER_TEXT], int64_t n);
/* "6.43e19", "123": a large count, in three digits. */
const char *ses_flops_text(char buf[SES_NUMBER_TEXT], double flops);

#endif
