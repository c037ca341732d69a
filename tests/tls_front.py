#!/usr/bin/env python3
"""A TLS front for the mock hub: tls_front.py CERTIFICATE KEY prints its port. Each line of its input is the port to
which the decrypted connections go, and is printed when it holds. Ends with its input."""
import socket
import ssl
import sys
import threading

upstream = 0


def serve(context, raw):
    """One request without a body, then the answer: no socket of TLS is read and written at the same time."""
    try:
        with context.wrap_socket(raw, server_side=True) as client, \
                socket.create_connection(("127.0.0.1", upstream)) as server:
            request = b""
            while b"\r\n\r\n" not in request and (data := client.recv(65536)):
                request += data
            server.sendall(request)
            server.shutdown(socket.SHUT_WR)
            while data := server.recv(65536):
                client.sendall(data)
            client.unwrap()
    except OSError:
        pass


def accept(context, listener):
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=serve, args=(context, raw), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
threading.Thread(target=accept, args=(context, listener), daemon=True).start()
print(listener.getsockname()[1], flush=True)
for line in sys.stdin:
    upstream = int(line)
    print(upstream, flush=True)
