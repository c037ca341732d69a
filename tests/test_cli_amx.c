/* The words of doctor for each state of AMX, and the peaks of tiles. */
#include "check.h"

#include "cli/amx_report.h"
#include "kernel/peak_flops.h"

static bool contains(ses_amx_state state, int error, ses_isa isa, const char *part)
{
    char text[256];
    ses_amx_text(text, sizeof text, state, error, isa);
    return strstr(text, part) || (printf("    %s\n", text), false);
}

int main(void)
{
    CHECK(contains(SES_AMX_ABSENT, 0, SES_ISA_REF, "not in this processor"));
    CHECK(contains(SES_AMX_NOT_SAVED, 0, SES_ISA_REF, "XCR0 bits 17 and 18"));
    CHECK(contains(SES_AMX_DENIED, 1, SES_ISA_REF, "ARCH_REQ_XCOMP_PERM: Operation not permitted"));
    CHECK(contains(SES_AMX_READY, 0, SES_ISA_REF, "not used: the level is ref"));
#ifdef __x86_64__
    CHECK(contains(SES_AMX_READY, 0, SES_ISA_AMX, "used (tiles"));
    CHECK(contains(SES_AMX_READY, 0, SES_ISA_AVX512, "not used: the level is avx512"));
    CHECK(!ses_isa_has_tiles(SES_ISA_AVX512_BF16) && ses_isa_has_tiles(SES_ISA_AMX));
#endif
    int error = -1;
    ses_amx_state state = ses_amx_detect(&error);
    CHECK((error != 0) <= (state == SES_AMX_DENIED));
    CHECK(ses_isa_has_tiles(ses_isa_best()) <= (state == SES_AMX_READY));
    CHECK((ses_peak_tiles(ses_isa_best(), false, 0.01) > 0) == ses_isa_has_tiles(ses_isa_best()));
    CHECK((ses_peak_tiles(ses_isa_best(), true, 0.01) > 0) == ses_isa_has_tiles(ses_isa_best()));
    return check_report();
}
