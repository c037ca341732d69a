/* Finds and opens the CUDA module. */
#define _GNU_SOURCE /* dladdr, secure_getenv */
#include "cuda_module.h"

#include "configured.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const ses_cuda_module *check(void *handle, const char *path, ses_err *e)
{
    const ses_cuda_module *m = dlsym(handle, SES_CUDA_MODULE_SYMBOL);
    if (!m || !m->abi) {
        ses_fail(e, SES_EFORMAT, "%s: not a CUDA module of sesame: it lacks %s", path,
                 SES_CUDA_MODULE_SYMBOL);
        return NULL;
    }
    if (!strcmp(m->abi, ses_configured_cuda_abi)) return m;
    ses_fail(
        e, SES_EUNSUPPORTED,
        "%s: built for another sesame (%s, this is %s): install the module of this version, or build both "
        "with `make cuda`",
        path, m->abi, ses_configured_cuda_abi);
    return NULL;
}

static const ses_cuda_module *open_file(const char *path, ses_err *e)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        ses_fail(e, SES_EIO, "cannot open the CUDA module: %s", dlerror());
        return NULL;
    }
    return check(handle, path, e);
}

/* Copies the folder of a file; false: it has none, or is too long. */
static bool folder_of(const char *file, char folder[SES_CUDA_PATH_SIZE])
{
    const char *slash = strrchr(file, '/');
    size_t n = slash ? (size_t)(slash - file) : 0;
    if (!slash || n >= SES_CUDA_PATH_SIZE) return false;
    memcpy(folder, file, n);
    folder[n] = 0;
    return true;
}

/* The folders of the library (of the program, if linked statically) and of the program. */
static bool base_folder(int i, char folder[SES_CUDA_PATH_SIZE])
{
    char program[SES_CUDA_PATH_SIZE];
    Dl_info info;
    if (!i)
        return dladdr(ses_configured_cuda_abi, &info) && info.dli_fname && folder_of(info.dli_fname, folder);
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return false;
    program[n] = 0;
    return folder_of(program, folder);
}

/* Candidate i; false: the file does not exist. *end: i was the last. */
static bool candidate(int i, char path[SES_CUDA_PATH_SIZE], bool *end)
{
    static const char *const below[][2] = { { "", "" },
                                            { "sesame/", "" },
                                            { ses_configured_lib_from_bin, "/sesame/" } };
    char folder[SES_CUDA_PATH_SIZE];
    int n, bases = 2 * (int)SES_LEN(below);
    *end = i >= bases;
    if (i < bases) {
        if (!base_folder(i / (int)SES_LEN(below), folder)) return false;
        n = snprintf(path, SES_CUDA_PATH_SIZE, "%s/%s%s%s", folder, below[i % (int)SES_LEN(below)][0],
                     below[i % (int)SES_LEN(below)][1], SES_CUDA_MODULE_FILE);
    } else {
        n = snprintf(path, SES_CUDA_PATH_SIZE, "%s/sesame/%s", ses_configured_lib, SES_CUDA_MODULE_FILE);
    }
    return n < SES_CUDA_PATH_SIZE && !access(path, F_OK);
}

const ses_cuda_module *ses_cuda_module_open(char path[SES_CUDA_PATH_SIZE], ses_err *e)
{
    char file[SES_CUDA_PATH_SIZE];
    const char *named = secure_getenv("SESAME_CUDA_MODULE");
    bool end = false, found = named && *named;
    if (found) snprintf(file, sizeof file, "%s", named);
    for (int i = 0; !found && !end; i++) found = candidate(i, file, &end);
    if (path) snprintf(path, SES_CUDA_PATH_SIZE, "%s", found ? file : "");
    if (found) return open_file(file, e);
    ses_fail(e, SES_EUNSUPPORTED,
             "the CUDA module (%s) is not installed: install the package sesame-cuda or build it with `make "
             "cuda`, or use cpu",
             SES_CUDA_MODULE_FILE);
    return NULL;
}
