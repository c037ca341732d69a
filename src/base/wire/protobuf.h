/* Reader of protocol buffers: the fields of a message, one after the other. Bytes are borrowed. Every length
 * is checked; groups are refused. */
#ifndef SES_BASE_PROTOBUF_H
#define SES_BASE_PROTOBUF_H

#include "sesame/base.h"

typedef struct ses_proto {
    const unsigned char *p, *end;
    const unsigned char *begin; /* start of the file, for messages */
    const char *what;           /* begins the error messages: "not a SentencePiece model" */
} ses_proto;

enum { SES_PROTO_VARINT = 0, SES_PROTO_FIXED64 = 1, SES_PROTO_BYTES = 2, SES_PROTO_FIXED32 = 5 };

typedef struct ses_proto_field {
    uint32_t number;
    int wire;
    uint64_t value;   /* if it is a number */
    ses_string bytes; /* if SES_PROTO_BYTES */
} ses_proto_field;

ses_proto ses_proto_of(const void *p, size_t n, const char *what);
/* The message in a field of another one. */
ses_proto ses_proto_inside(const ses_proto *c, ses_string s);
/* Reads the next field; the message must not be at its end. */
bool ses_proto_next(ses_proto *c, ses_proto_field *f, ses_err *e);

/* A varint of at most 10 bytes; NULL: truncated or longer. Returns the byte after it. */
const unsigned char *ses_varint(const unsigned char *p, const unsigned char *end, uint64_t *out);

#endif
