#!/bin/sh
# Downloads over TLS: a certificate authority made here, the mock hub behind a TLS front. Certificates that are not valid are
# refused before anything is written.
set -u
. tests/counted.sh
unset HF_HOME HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME HF_HUB_OFFLINE TRANSFORMERS_OFFLINE HF_TOKEN_PATH SESAME_MODELS \
    http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE
case $build in /*) ;; *) build=$PWD/$build ;; esac
sesame=$build/sesame
if ! command -v openssl >"$tmp/out" || ! python3 -c 'import ssl' 2>"$tmp/err" ||
    "$sesame" doctor --quick 2>/dev/null | grep -q 'libcurl .*not found'; then
    skipped=1
    counted
    exit
fi
HOME=$tmp/home HF_HUB_CACHE=$tmp/hub HF_TOKEN=hf_secret
export HOME HF_HUB_CACHE HF_TOKEN
mkdir -p "$HOME" "$tmp/root/acme" "$tmp/folder"
cp -r tests/pipelines/bert-mask "$tmp/root/acme/tiny"
"$sesame" fill-mask -m tests/pipelines/bert-mask "The [MASK] rings." >"$tmp/expected"

# authority NAME: NAME.pem and NAME.key
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$tmp/$1.key" -out "$tmp/$1.pem" 2>"$tmp/err"
}
# server NAME AUTHORITY DAYS HOSTS: a certificate
server() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout "$tmp/$1.key" -out "$tmp/$1.csr" \
        2>"$tmp/err" &&
        echo "subjectAltName = $4" >"$tmp/names" &&
        openssl x509 -req -in "$tmp/$1.csr" -CA "$tmp/$2.pem" -CAkey "$tmp/$2.key" -set_serial 7 -days "$3" -extfile "$tmp/names" \
            -out "$tmp/$1.pem" 2>"$tmp/err"
}
that 'certificates' 'authority ca && authority other && server good ca 2 "DNS:localhost, IP:127.0.0.1" && server elsewhere ca 2 DNS:example.org'
cp "$tmp/ca.pem" "$tmp/folder/$(openssl x509 -in "$tmp/ca.pem" -noout -hash).0"

lines() { n=0; while [ "$(wc -l <"$1")" -lt "$2" ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done; }
# front CERTIFICATE: $port, of a TLS front with its input at descriptor 8
front() {
    rm -f "$tmp/to" && mkfifo "$tmp/to" && : >"$tmp/front"
    python3 tests/tls_front.py "$tmp/$1.pem" "$tmp/$1.key" <"$tmp/to" >"$tmp/front" 2>"$tmp/err" &
    exec 8>"$tmp/to"
    lines "$tmp/front" 1
    port=$(cat "$tmp/front")
    HF_ENDPOINT=https://127.0.0.1:$port
    export HF_ENDPOINT
}
# hub CDN: the mock hub behind the front, with its input at descriptor 9
hub() {
    rm -f "$tmp/in" && mkfifo "$tmp/in" && : >"$tmp/port"
    MOCK_TOKEN=hf_secret MOCK_CDN=$1 "$build/hub_mock" "$tmp/root" <"$tmp/in" >"$tmp/port" 2>"$tmp/log" 8>&- &
    exec 9>"$tmp/in"
    lines "$tmp/port" 1
    cat "$tmp/port" >&8
    lines "$tmp/front" 2
}
end() { exec 8>&- 9>&-; wait; }
refused() { # MESSAGE: exit status 3, one line, nothing written
    "$sesame" pull acme/tiny >"$tmp/out" 2>"$tmp/err"
    [ $? -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q "$1" "$tmp/err" && [ ! -e "$HF_HUB_CACHE" ]
}
pulls() { rm -rf "$HF_HUB_CACHE"; "$sesame" pull acme/tiny >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] && "$sesame" cache verify >"$tmp/out" 2>&1; }

front good
hub "https://localhost:$port"
that 'an unknown authority' 'refused "certificate of the server is not valid: .*SSL_CERT_FILE"'
that 'another authority' 'SSL_CERT_FILE=$tmp/other.pem refused "certificate of the server is not valid by .*other.pem"'
that 'a file that does not exist' 'SSL_CERT_FILE=$tmp/none.pem refused "SSL_CERT_FILE: .*none.pem. does not exist"'
that 'a file without certificates' 'SSL_CERT_FILE=$PWD/tests/tls_front.py refused "authorities can be read from .*tls_front.py"'
that 'SSL_CERT_FILE' 'SSL_CERT_FILE=$tmp/ca.pem pulls'
that 'the model computes' '"$sesame" fill-mask -m acme/tiny "The [MASK] rings." 2>"$tmp/err" | cmp -s - "$tmp/expected"'
that 'CURL_CA_BUNDLE' 'CURL_CA_BUNDLE=$tmp/ca.pem pulls'
that 'REQUESTS_CA_BUNDLE' 'REQUESTS_CA_BUNDLE=$tmp/ca.pem SSL_CERT_FILE=$tmp/other.pem pulls'
that 'SSL_CERT_DIR' 'SSL_CERT_DIR=$tmp/folder pulls'
rm -rf "$HF_HUB_CACHE"
that 'SSL_CERT_DIR without a folder' 'SSL_CERT_DIR=/none:$tmp/folder refused "not valid: "'
end
that 'the token went to the hub only' 'grep -q "tokens: [1-9][0-9]* here, 0 elsewhere" "$tmp/log"'

front good
hub 'http://localhost:9'
that 'a redirect to http' 'SSL_CERT_FILE=$tmp/ca.pem "$sesame" pull acme/tiny >"$tmp/out" 2>"$tmp/err"; [ $? -eq 3 ] && grep -q "redirected from https to http" "$tmp/err"'
that 'no ref is written' '[ ! -e "$HF_HUB_CACHE/models--acme--tiny/refs/main" ]'
end
rm -rf "$HF_HUB_CACHE"
front elsewhere
hub "https://localhost:$port"
that 'the certificate of another host' 'SSL_CERT_FILE=$tmp/ca.pem refused "not valid by .*127.0.0.1"'
end
if server old ca -1 "IP:127.0.0.1" && ! openssl x509 -in "$tmp/old.pem" -noout -checkend 0 >"$tmp/out"; then
    front old
    hub "https://localhost:$port"
    that 'an expired certificate' 'SSL_CERT_FILE=$tmp/ca.pem refused "not valid by .*expired"'
    end
else
    skipped=$((skipped + 1)) # this openssl does not write one
fi
counted
