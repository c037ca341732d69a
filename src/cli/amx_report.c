/* The state of AMX in words, for `doctor`. */
#include "amx_report.h"

#include "sesame/base.h"

#include <stdio.h>
#include <string.h>

void ses_amx_text(char *text, size_t size, ses_amx_state state, int error, ses_isa isa)
{
    switch (state) {
    case SES_AMX_ABSENT: snprintf(text, size, "not in this processor"); break;
    case SES_AMX_NOT_SAVED:
        snprintf(
            text, size,
            "in the processor, but the operating system does not save tiles (XCR0 bits 17 and 18 are 0): "
            "use Linux 5.16 or later, and enable AMX in the virtual machine");
        break;
    case SES_AMX_DENIED:
        snprintf(text, size,
                 "in the processor, but the operating system refuses it to this process (arch_prctl "
                 "ARCH_REQ_XCOMP_PERM: %s): a sandbox or a small signal stack may be the reason",
                 error ? strerror(error) : "not available");
        break;
    case SES_AMX_READY:
        if (ses_isa_has_tiles(isa))
            snprintf(text, size, "used (tiles of int8 and bf16)");
        else
            snprintf(text, size, "available, but not used: the level is %s", ses_isa_name(isa));
        break;
    }
}
