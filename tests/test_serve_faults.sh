#!/bin/sh
# The server as a process: overload, bad clients, signals, limits, reloads; the short form of tools/serve-faults.
exec "$1/serve_faults" --short "$1/sesame"
