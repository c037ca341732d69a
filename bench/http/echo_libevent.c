/* Echoes bodies with libevent; see run.sh. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>

static void on_request(struct evhttp_request *r, void *ctx)
{
    (void)ctx;
    struct evbuffer *b = evbuffer_new();
    evbuffer_add_buffer(b, evhttp_request_get_input_buffer(r));
    evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Type", "application/json");
    evhttp_send_reply(r, 200, "OK", b);
    evbuffer_free(b);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    evhttp_set_gencb(http, on_request, NULL);
    if (evhttp_bind_socket(http, "127.0.0.1", argc > 1 ? (ev_uint16_t)strtol(argv[1], NULL, 10) : 0))
        return 1;
    return event_base_dispatch(base);
}
