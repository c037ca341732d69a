/* Loads Open MPI. */
#include "mpi_library.h"

#include "base/str.h"

#include <dlfcn.h>
#include <string.h>

/* ISO C has no conversion from void * to a function pointer; POSIX guarantees the representation. */
static bool load(void *library, const char *name, void *function, ses_err *e)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol || ses_fail(e, SES_EUNSUPPORTED,
                              "the MPI library lacks %s: expected Open MPI, version 3 or later", name);
}

static bool load_all(ses_mpi *m, void *library, ses_err *e)
{
    const struct {
        const char *name;
        void *to;
    } table[] = {
        { "ompi_mpi_comm_world", &m->world },
        { "ompi_mpi_byte", &m->byte },
        { "ompi_mpi_errors_return", &m->errors_return },
        { "MPI_Init_thread", &m->init_thread },
        { "MPI_Initialized", &m->initialized },
        { "MPI_Finalized", &m->finalized },
        { "MPI_Finalize", &m->finalize },
        { "MPI_Comm_rank", &m->comm_rank },
        { "MPI_Comm_size", &m->comm_size },
        { "MPI_Comm_set_errhandler", &m->comm_set_errhandler },
        { "MPI_Isend", &m->isend },
        { "MPI_Irecv", &m->irecv },
        { "MPI_Testsome", &m->testsome },
        { "MPI_Get_count", &m->get_count },
        { "MPI_Error_string", &m->error_string },
        { "MPI_Get_library_version", &m->library_version },
    };
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (!load(library, table[i].name, table[i].to, e)) return false;
    return true;
}

bool ses_mpi_load(ses_mpi *m, ses_err *e)
{
    static const char *const files[] = { "libmpi.so.40", "libmpi.so" };
    void *library = NULL;
    /* global: the plugins of Open MPI need its symbols */
    for (size_t i = 0; i < SES_LEN(files) && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!library)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "Open MPI (%s) is not installed; on Debian: apt install openmpi-bin. Or use the transport tcp",
            files[0]);
    return load_all(m, library, e);
}

bool ses_mpi_ok(const ses_mpi *m, int code, const char *call, ses_err *e)
{
    char text[4 * SES_MPI_TEXT] = "";
    int n = 0;
    if (code == SES_MPI_SUCCESS) return true;
    if (!m->is_running || m->error_string(code, text, &n) != SES_MPI_SUCCESS || n < 0 || n >= SES_MPI_TEXT)
        n = 0;
    return ses_fail(e, SES_EIO, "%s: error %d%s%s", call, code, n ? ": " : "",
                    ses_quoted_of(text, (size_t)n).s);
}
