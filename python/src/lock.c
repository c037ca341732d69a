/* Locks of objects that one thread uses at a time, and the process that made them. */
#define _POSIX_C_SOURCE 200809L
#include "binding.h"

#include <unistd.h>

int ses_py_pid(void) { return (int)getpid(); }

bool ses_py_lock_init(ses_py_lock *l)
{
    *l = (ses_py_lock){ .lock = PyThread_allocate_lock(), .pid = ses_py_pid() };
    if (!l->lock) PyErr_NoMemory();
    return l->lock != NULL;
}

void ses_py_lock_free(ses_py_lock *l)
{
    if (l->lock) PyThread_free_lock(l->lock);
    l->lock = NULL;
}

bool ses_py_lock_is_foreign(const ses_py_lock *l) { return l->pid && l->pid != ses_py_pid(); }

bool ses_py_lock_take(ses_py_lock *l, const ses_py_state *st, const char *what)
{
    unsigned long me = PyThread_get_thread_ident();
    if (ses_py_lock_is_foreign(l)) {
        PyErr_Format(
            st->fork_error,
            "this %s was opened before fork(), and its threads do not exist in the new process: open it "
            "here, or start processes with multiprocessing's \"spawn\"",
            what);
        return false;
    }
    if (l->owner == me) { /* only this thread can have written it */
        PyErr_Format(PyExc_RuntimeError, "this %s is in use by the call that has called back", what);
        return false;
    }
    if (PyThread_acquire_lock(l->lock, NOWAIT_LOCK) != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS;
        PyThread_acquire_lock(l->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS;
    }
    l->owner = me;
    return true;
}

void ses_py_lock_release(ses_py_lock *l)
{
    l->owner = 0;
    PyThread_release_lock(l->lock);
}
