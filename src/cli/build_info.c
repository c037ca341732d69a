/* Describes this build: compiler, instruction sets, optional libraries. */
#include "build_info.h"

#include "sesame/base.h"

#include "command.h"
#include "io/input_stream.h"
#include "kernel/kernel.h"
#include "tensor/cuda_module.h"

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

/* Found by dlopen on demand, not linked: the start-up time does not depend on them. */
typedef struct library {
    const char *name, *use, *file[2];
} library;

static const library libraries[] = {
    { "libcurl", "downloads of 'sesame pull'", { "libcurl.so.4", "libcurl-gnutls.so.4" } },
    { "OpenBLAS", "peer in 'sesame bench gemm'", { "libopenblas.so.0", NULL } },
    { "oneDNN", "peer in 'sesame bench gemm'", { "libdnnl.so.3", "libdnnl.so.2" } },
};

static ses_build_feature find_library(const library *l)
{
    ses_build_feature f = { l->name, l->use, false, "not found" };
    for (size_t i = 0; i < SES_LEN(l->file) && l->file[i] && !f.available; i++) {
        void *h = dlopen(l->file[i], RTLD_LAZY | RTLD_LOCAL);
        if (!h) continue;
        f.available = true;
        f.status = l->file[i];
        dlclose(h);
    }
    return f;
}

size_t ses_build_features(ses_build_feature out[SES_MAX_BUILD_FEATURES])
{
    size_t n = 0;
    ses_gpu gpu;
    const ses_cuda_module *cuda = ses_cuda_module_open(NULL, NULL);
    bool has_gpu = cuda && cuda->describe(0, &gpu);
    out[n++] = (ses_build_feature){ "CUDA", "GPU device", has_gpu,
                                    has_gpu ? "GPU found"
                                    : cuda  ? "module found, no GPU found"
                                            : "module not found" };
#ifdef SES_PCRE2
    out[n++] = (ses_build_feature){ "PCRE2", "regular expressions beyond the built-in engine", true,
                                    "in this build" };
#else
    out[n++] = (ses_build_feature){ "PCRE2", "regular expressions beyond the built-in engine", false,
                                    "not in this build" };
#endif
    static const struct {
        const char *name, *format, *use;
    } compression[] = { { "zlib", "gzip", "texts compressed with gzip" },
                        { "liblzma", "xz", "texts compressed with xz" },
                        { "libzstd", "zstd", "texts compressed with Zstandard" } };
    for (size_t i = 0; i < SES_LEN(compression); i++) {
        bool available = ses_input_stream_supports(compression[i].format);
        out[n++] = (ses_build_feature){ compression[i].name, compression[i].use, available,
                                        available ? "in this build" : "not in this build" };
    }
    for (size_t i = 0; i < SES_LEN(libraries); i++) out[n++] = find_library(&libraries[i]);
    return n;
}

void ses_version_print(FILE *out, bool verbose)
{
    fprintf(out, "sesame %s\n", SES_VERSION);
    if (!verbose) return;
    fprintf(out, "compiler: %s, %s\n", ses_compiler(), SES_BUILD);
    fputs("instruction sets built:", out);
    for (int i = SES_ISA_REF; i < SES_ISA_COUNT; i++)
        if (ses_isa_built((ses_isa)i)) fprintf(out, " %s", ses_isa_name((ses_isa)i));
    fprintf(out, "; best on this CPU: %s\n", ses_isa_name(ses_isa_best()));
    ses_build_feature feature[SES_MAX_BUILD_FEATURES];
    size_t n = ses_build_features(feature);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s (%s): %s\n", feature[i].name, feature[i].use, feature[i].status);
}
