/* Matrix products of OpenBLAS and oneDNN, loaded at run time. */
#define _POSIX_C_SOURCE 200809L
#include "gemm_peers.h"

#include "sesame/base.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* dlsym returns an object pointer; ISO C has no cast to a function pointer. */
#define SES_FUNCTION(to, from) memcpy(&(to), &(from), sizeof(to))

typedef void cblas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_sgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef void set_threads_fn(int n);

static void multiply_openblas(const ses_gemm_peer *o, const ses_gemm_problem *p)
{
    enum { ROWS = 101, PLAIN = 111, TRANSPOSED = 112 };
    cblas_sgemm_fn *f;
    SES_FUNCTION(f, o->call);
    f(ROWS, p->ta ? TRANSPOSED : PLAIN, p->tb ? TRANSPOSED : PLAIN, (int)p->m, (int)p->n, (int)p->k, 1, p->a,
      (int)(p->ta ? p->m : p->k), p->b, (int)(p->tb ? p->k : p->n), 0, p->c, (int)p->n);
}

static void multiply_onednn(const ses_gemm_peer *o, const ses_gemm_problem *p)
{
    dnnl_sgemm_fn *f;
    SES_FUNCTION(f, o->call);
    f(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, 1, p->a, p->ta ? p->m : p->k, p->b,
      p->tb ? p->k : p->n, 0, p->c, p->n);
}

static void set_threads(void *lib, const char *name, int threads)
{
    void *at = lib ? dlsym(lib, name) : NULL;
    set_threads_fn *f;
    if (!at) return;
    SES_FUNCTION(f, at);
    f(threads);
}

void ses_gemm_peers_open(ses_gemm_peer out[SES_GEMM_PEERS], int threads, ses_isa isa)
{
    if (!strcmp(ses_isa_name(isa),
                "avx2")) { /* equal terms; both libraries read these once, on load or on the first call */
        setenv("OPENBLAS_CORETYPE", "Haswell", 1);
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    }
    out[0] = (ses_gemm_peer){ .name = "OpenBLAS", .key = "openblas", .multiply = multiply_openblas };
    out[1] = (ses_gemm_peer){ .name = "oneDNN", .key = "onednn", .multiply = multiply_onednn };
    if (isa == SES_ISA_REF) return; /* no comparison with reference loops */
    out[0].lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (out[0].lib) out[0].call = dlsym(out[0].lib, "cblas_sgemm");
    set_threads(out[0].lib, "openblas_set_num_threads", threads);
    out[1].lib = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!out[1].lib) out[1].lib = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (out[1].lib) out[1].call = dlsym(out[1].lib, "dnnl_sgemm");
    set_threads(out[1].lib, "omp_set_num_threads", threads); /* from its OpenMP library */
}
