/* The state of the control channel, shared by heartbeat.c (thread, connections) and heartbeat_rules.c. */
#ifndef SES_COMM_HEARTBEAT_STATE_H
#define SES_COMM_HEARTBEAT_STATE_H

#include "control_message.h"
#include "heartbeat.h"

#include <pthread.h>

enum { CONTROL_BUFFER = 2 * (SES_CONTROL_HEAD + SES_CONTROL_TEXT) };

/* Another rank, and the connection to it. */
typedef struct ses_rank_link {
    int fd; /* -1: none */
    bool is_connecting;
    int ip;                    /* address in use, while connecting */
    double deadline;           /* limit for connecting */
    double heard;              /* last message */
    double moved;              /* last change of progress */
    ses_control_message state; /* its last message */
    bool left;
    bool was_told; /* the error was sent to it */
    size_t in_n, out_n;
    unsigned char in[CONTROL_BUFFER], out[CONTROL_BUFFER];
} ses_rank_link;

typedef enum {
    SES_HB_NORMAL,
    SES_HB_SUCCESSION, /* rank 0 is lost; the ranks below this one may decide */
    SES_HB_ENDED,      /* the error is known */
} ses_hb_phase;

/* A rank that another one lost, while rank 0 looks for the cause. */
typedef struct ses_suspicion {
    bool is_set;
    int rank;
    double decide_at;
    ses_err why;
} ses_suspicion;

struct ses_heartbeat {
    ses_heartbeat_options o;
    double interval;
    int signal_fd; /* wakes the thread */
    pthread_t thread;

    pthread_mutex_t lock; /* guards the fields up to the next comment */
    pthread_cond_t change;
    bool has_failed;
    int reporter;
    ses_err failure;
    bool has_abort, abort_is_complete;
    ses_err abort;
    bool has_suspect;
    int suspect;
    ses_err suspect_why;
    bool is_leaving, all_left, stop;

    /* The thread's alone. */
    ses_hb_phase phase;
    ses_rank_link *link; /* [size] */
    ses_guests guests;
    struct pollfd *p; /* [size + SES_MAX_GUESTS + 2] */
    double next_beat, last_turn;
    ses_suspicion suspicion;
    ses_err loss_of_0; /* SUCCESSION: the reason */
    double succession_end;
    bool sent_leave;
};

/* heartbeat.c: connections */
void ses_link_close(ses_heartbeat *h, int r);
void ses_link_send(ses_heartbeat *h, int r, const ses_control_message *m);
/* Begins to connect to rank r, at its first address. */
void ses_link_connect(ses_heartbeat *h, int r);
/* Goes on to the next address. */
void ses_link_retry(ses_heartbeat *h, int r);
ses_control_message ses_hb_message(const ses_heartbeat *h, ses_control_kind kind);

/* heartbeat_rules.c: decisions */
void ses_hb_handle(ses_heartbeat *h, int r, const ses_control_message *m);
void ses_hb_link_lost(ses_heartbeat *h, int r); /* its connection ended */
void ses_hb_requests(ses_heartbeat *h);         /* made by callers */
void ses_hb_check(ses_heartbeat *h, double now);

#endif
