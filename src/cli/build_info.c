#include "build_info.h"

#include "sesame/version.h"

#include "command.h"
#include "io/input_stream.h"
#include "kernel/kernel.h"
#include "tensor/device_impl.h"

#include <dlfcn.h>

const char *ses_compiler(void)
{
#if defined __clang__
    return "clang " __clang_version__;
#elif defined __GNUC__
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}

bool ses_isa_built(ses_isa isa)
{
#if defined __x86_64__ && !defined SES_REF_ONLY
    return isa < SES_ISA_COUNT;
#else
    return isa == SES_ISA_REF;
#endif
}

/* Libraries are looked for when asked, not linked: the command starts the same with and without them. */
typedef struct library {
    const char *name, *use, *file[2];
} library;

static const library libraries[] = {
    { "OpenBLAS", "opponent in 'sesame bench gemm'", { "libopenblas.so.0", NULL } },
    { "oneDNN", "opponent in 'sesame bench gemm'", { "libdnnl.so.3", "libdnnl.so.2" } },
};

static ses_build_feature find(const library *l)
{
    ses_build_feature p = { l->name, l->use, false, "not found" };
    for (size_t i = 0; i < SES_LEN(l->file) && l->file[i] && !p.here; i++) {
        void *h = dlopen(l->file[i], RTLD_LAZY | RTLD_LOCAL);
        if (!h) continue;
        p.here = true;
        p.how = l->file[i];
        dlclose(h);
    }
    return p;
}

size_t ses_build_features(ses_build_feature out[SES_MAX_PARTS])
{
    size_t n = 0;
#ifdef SES_CUDA
    ses_gpu gpu;
    bool gpu_here = ses_gpu_describe(0, &gpu);
    out[n++] = (ses_build_feature){ "CUDA", "GPU device", gpu_here,
                                    gpu_here ? "GPU found" : "in this build, no GPU found" };
#else
    out[n++] = (ses_build_feature){ "CUDA", "GPU device", false, "not in this build" };
#endif
#ifdef SES_PCRE2
    out[n++] = (ses_build_feature){ "PCRE2", "unusual patterns of tokenizers", true, "in this build" };
#else
    out[n++] = (ses_build_feature){ "PCRE2", "unusual patterns of tokenizers", false, "not in this build" };
#endif
    static const struct {
        const char *name, *unpacks, *use;
    } packed[] = { { "zlib", "gzip", "texts packed with gzip" },
                   { "liblzma", "xz", "texts packed with xz" },
                   { "libzstd", "zstd", "texts packed with Zstandard" } };
    for (size_t i = 0; i < SES_LEN(packed); i++) {
        bool here = ses_input_stream_supports(packed[i].unpacks);
        out[n++] = (ses_build_feature){ packed[i].name, packed[i].use, here,
                                        here ? "in this build" : "not in this build" };
    }
    for (size_t i = 0; i < SES_LEN(libraries); i++) out[n++] = find(&libraries[i]);
    return n;
}

void ses_version_print(FILE *out, bool verbose)
{
    fprintf(out, "sesame %s\n", SES_VERSION);
    if (!verbose) return;
    fprintf(out, "compiler: %s, %s\n", ses_compiler(), SES_BUILD);
    fputs("instruction sets built:", out);
    for (int i = 0; i < SES_ISA_COUNT; i++)
        if (ses_isa_built((ses_isa)i)) fprintf(out, " %s", ses_isa_name((ses_isa)i));
    fprintf(out, "; best here: %s\n", ses_isa_name(ses_isa_best()));
    ses_build_feature part[SES_MAX_PARTS];
    size_t n = ses_build_features(part);
    for (size_t i = 0; i < n; i++) fprintf(out, "%s (%s): %s\n", part[i].name, part[i].use, part[i].how);
}
