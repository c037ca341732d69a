/* Messages of the control channel between ranks (heartbeat.h). */
#ifndef SES_COMM_CONTROL_MESSAGE_H
#define SES_COMM_CONTROL_MESSAGE_H

#include "sesame/base.h"

typedef enum {
    SES_CONTROL_BEAT = 1, /* a sign of life, with the state of the sender */
    SES_CONTROL_SUSPECT,  /* the sender lost `rank`: text is the reason */
    SES_CONTROL_ABORT,    /* the sender ends: text is the reason */
    SES_CONTROL_FAILURE,  /* the run has failed: text is its error, `rank` reports it */
    SES_CONTROL_LEAVE,    /* the sender has finished */
    SES_CONTROL_ALL_LEFT, /* all ranks have finished */
} ses_control_kind;

enum { SES_CONTROL_HEAD = 48, SES_CONTROL_TEXT = sizeof(((ses_err *)0)->msg) };

typedef struct ses_control_message {
    ses_control_kind kind;
    int rank;         /* see the kinds; else the sender */
    ses_code code;    /* the error's */
    bool is_waiting;  /* the sender is in a transfer */
    bool is_complete; /* ABORT: the text names rank and host already */
    int64_t update;   /* the sender's, -1: none */
    int64_t entered;  /* transfers it has begun */
    int64_t progress; /* grows with everything it does */
    char text[SES_CONTROL_TEXT];
} ses_control_message;

/* Writes it; returns its size. */
size_t ses_control_write(const ses_control_message *m,
                         unsigned char out[SES_CONTROL_HEAD + SES_CONTROL_TEXT]);
/* Reads the message at the start of n bytes. Returns its size, 0 if it is not complete yet, -1 if the bytes
 * are not a message; every field is in its range otherwise. */
int ses_control_read(ses_control_message *m, const unsigned char *p, size_t n);

#endif
