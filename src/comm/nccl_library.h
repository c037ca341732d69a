/* The part of NCCL that Sesame uses, loaded at run time. Types and constants follow NCCL's ABI (libnccl.so.2,
 * version 2.18 and later). */
#ifndef SES_COMM_NCCL_LIBRARY_H
#define SES_COMM_NCCL_LIBRARY_H

#include "sesame/base.h"

enum { SES_NCCL_SUCCESS = 0, SES_NCCL_IN_PROGRESS = 7, SES_NCCL_INT8 = 0, SES_NCCL_MIN_VERSION = 21800 };

typedef struct ses_nccl_id {
    char byte[128];
} ses_nccl_id;

/* The configuration as of 2.18; NCCL reads as much as `size` tells. Numbers that are not set are INT_MIN. */
typedef struct ses_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster_size, min_blocks, max_blocks;
    const char *net_name;
    int split_share;
} ses_nccl_config;

typedef struct ses_nccl {
    int version; /* 22809: 2.28.9 */
    int (*get_version)(int *version);
    int (*get_id)(ses_nccl_id *id);
    int (*init)(void **comm, int size, ses_nccl_id id, int rank, ses_nccl_config *config);
    int (*async_error)(void *comm, int *result);
    int (*finalize)(void *comm);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *data, size_t n, int type, int rank, void *comm, void *stream);
    int (*recv)(void *data, size_t n, int type, int rank, void *comm, void *stream);
    const char *(*error_string)(int result);
} ses_nccl;

/* The library stays loaded. */
bool ses_nccl_load(ses_nccl *n, ses_err *e);
ses_nccl_config ses_nccl_nonblocking(void);

#endif
