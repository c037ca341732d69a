/* A build that leaves out vector levels (SESAME_LEVELS=native) never names one that it lacks. isa.c is
 * compiled here without AVX2 and tiles, as on a machine with AVX-512; its functions replace the library's. */
#define SES_WITHOUT_AVX2
#define SES_WITHOUT_AMX
#define SES_WITHOUT_NEONBF16
#include "kernel/isa.c"

#include "check.h"

int main(void)
{
    CHECK(ses_isa_built(SES_ISA_REF) && !ses_isa_left_out(SES_ISA_REF) && !ses_isa_left_out(SES_ISA_BEST));
    CHECK(!ses_isa_built(SES_ISA_BEST) && !ses_isa_built(SES_ISA_COUNT));
#if defined __x86_64__ && !defined SES_REF_ONLY
    CHECK(!ses_isa_built(SES_ISA_AVX2) && !ses_isa_built(SES_ISA_AMX));
    CHECK(ses_isa_built(SES_ISA_AVX512) && ses_isa_built(SES_ISA_AVX512_BF16));
    CHECK(ses_isa_limit(SES_ISA_AVX2) == SES_ISA_REF);
    CHECK(ses_isa_left_out(SES_ISA_AVX2) == (machine_isa() >= SES_ISA_AVX2));
    CHECK(ses_isa_left_out(SES_ISA_AMX) == (machine_isa() >= SES_ISA_AMX));
    CHECK(!ses_isa_left_out(SES_ISA_AVX512) && !ses_isa_left_out(SES_ISA_AVX512_BF16));
#endif
    CHECK(ses_isa_limit(SES_ISA_BEST) == ses_isa_best() && ses_isa_limit(SES_ISA_REF) == SES_ISA_REF);
    for (int isa = SES_ISA_REF; isa < SES_ISA_COUNT; isa++) {
        ses_isa best = ses_isa_limit((ses_isa)isa);
        CHECK_MSG(ses_isa_built(best) && (int)best <= isa && best <= ses_isa_best(), "%s: %s",
                  ses_isa_name((ses_isa)isa), ses_isa_name(best));
    }
    return check_report();
}
