/* Load for run.sh.
 *   load PORT PID CONNECTIONS REQUESTS: sends small POSTs; prints the server's processor time for one, in us
 *   load PORT malformed: prints the malformed requests that are answered with 200 */
#define _POSIX_C_SOURCE 200809L
#include "http_client.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 256, BODY = 200 };

/* Processor time of all threads, in us. */
static double used_time(const char *pid)
{
    char command[64], line[128];
    double sum = 0;
    snprintf(command, sizeof command, "cat /proc/%s/task/*/schedstat", pid);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) sum += strtod(line, NULL) / 1000;
    if (f) pclose(f);
    return sum;
}

static void send_requests(ses_http_client **client, int connections, int requests)
{
    static const char body[BODY + 1];
    ses_err e = { 0 };
    ses_http_response a;
    ses_http_request r = { .target = "/v1/embeddings",
                           .headers = "Accept: */*\r\nUser-Agent: load\r\nContent-Type: application/json\r\n",
                           .body = body,
                           .n = BODY };
    for (int k = 0; k < requests / connections; k++) {
        bool ok = true;
        for (int i = 0; i < connections; i++) ok = ok && ses_http_client_send(client[i], &r, &e);
        for (int i = 0; i < connections; i++)
            ok = ok && ses_http_client_receive(client[i], &a, &e) && a.body.n == BODY;
        if (!ok) fprintf(stderr, "%s\n", e.msg), exit(1);
    }
}

static int measure(int port, const char *pid, int connections, int requests)
{
    ses_http_client *client[MAX_CONNECTIONS];
    ses_err e = { 0 };
    if (connections < 1 || connections > MAX_CONNECTIONS) return 1;
    for (int i = 0; i < connections; i++)
        if (!(client[i] = ses_http_client_open("127.0.0.1", port, 10, &e)))
            return fprintf(stderr, "%s\n", e.msg), 1;
    send_requests(client, connections, requests / 10);
    double start = used_time(pid);
    send_requests(client, connections, requests);
    printf("%.3f\n", (used_time(pid) - start) / (requests / connections * connections));
    for (int i = 0; i < connections; i++) ses_http_client_free(client[i]);
    return 0;
}

#define POST "POST / HTTP/1.1\r\nHost: localhost\r\n"
#define HELLO "Content-Length: 5\r\n\r\nhello"
static const char *const malformed[][2] = {
    { "two equal Content-Length", POST "Content-Length: 5\r\n" HELLO },
    { "two different Content-Length", POST "Content-Length: 0\r\n" HELLO },
    { "Content-Length with Transfer-Encoding",
      POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" },
    { "Content-Length: +5", POST "Content-Length: +5\r\n\r\nhello" },
    { "lines that end with LF", "POST / HTTP/1.1\nHost: localhost\nContent-Length: 5\n\nhello" },
    { "folded header", POST "X: a\r\n b\r\n" HELLO },
    { "space before the colon", POST "X : a\r\n" HELLO },
    { "no Host", "POST / HTTP/1.1\r\n" HELLO },
    { "two Hosts", POST "Host: b\r\n" HELLO },
    { "chunk size 0x5", POST "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n" },
    { "chunk lines that end with LF", POST "Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n" },
};

static int try_malformed(int port)
{
    for (size_t i = 0; i < SES_LEN(malformed); i++) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        struct timeval t = { 1, 0 };
        char out[64] = "";
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
        if (connect(fd, (struct sockaddr *)&a, sizeof a)) return 1;
        ssize_t sent = send(fd, malformed[i][1], strlen(malformed[i][1]), MSG_NOSIGNAL);
        if (sent > 0 && recv(fd, out, sizeof out - 1, 0) > 0 && !memcmp(out, "HTTP/1.1 200", 12))
            puts(malformed[i][0]);
        close(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (argc == 3) return try_malformed(port);
    if (argc == 5)
        return measure(port, argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
    return fprintf(stderr, "usage: load PORT PID CONNECTIONS REQUESTS | load PORT malformed\n"), 2;
}
