// Connections: sockets and TLS, their settings, and the active settings of the first connection.
#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <openssl/ssl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "loop.h"
#include "parts.h"

static const struct spec *spec;
static json_object *facts;
static bool told;     // the facts of a connection are there
static int own_slot;  // of a TLS context, for its link

static bool quic(void) {
    return spec->protocol == H3;
}

static int64_t option(int descriptor, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -1;
}

// Sets a buffer; the kernel doubles what it grants, for its bookkeeping.
static bool set_buffer(int descriptor, int name, int64_t wanted) {
    int size = (int)wanted;
    return wanted < 0 || (setsockopt(descriptor, SOL_SOCKET, name, &size, sizeof size) == 0 &&
                          option(descriptor, SOL_SOCKET, name) == 2 * wanted);
}

// Sets the options that libcurl lacks. Returns NULL, or the name of the setting that the kernel does not grant.
static const char *set_socket(int descriptor) {
    int on = 1;
    if (spec->congestion &&
        setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, spec->congestion, (socklen_t)strlen(spec->congestion)) != 0) {
        return "congestion";
    }
    if (spec->fast_open == 1 && setsockopt(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) != 0) {
        return "fast_open";
    }
    if (!set_buffer(descriptor, SO_SNDBUF, spec->udp_send_buffer)) {
        return "udp_send_buffer";
    }
    return set_buffer(descriptor, SO_RCVBUF, spec->udp_receive_buffer) ? NULL : "udp_receive_buffer";
}

static void read_socket(int descriptor) {
    if (quic()) {
        json_object_object_add(facts, "udp_send_buffer", json_object_new_int64(option(descriptor, SOL_SOCKET, SO_SNDBUF) / 2));
        json_object_object_add(facts, "udp_receive_buffer", json_object_new_int64(option(descriptor, SOL_SOCKET, SO_RCVBUF) / 2));
        json_object_object_add(facts, "gro", json_object_new_boolean(option(descriptor, IPPROTO_UDP, UDP_GRO) == 1));
        return;
    }
    char name[16] = "";
    socklen_t length = sizeof name - 1;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) {
        json_object_object_add(facts, "congestion", json_object_new_string(name));
    }
    json_object_object_add(facts, "no_delay", json_object_new_boolean(option(descriptor, IPPROTO_TCP, TCP_NODELAY) > 0));
    json_object_object_add(facts, "fast_open", json_object_new_boolean(option(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT) > 0));
}

static void read_tls(const SSL *ssl, const char *alpn) {
    json_object_object_add(facts, "alpn", json_object_new_string(alpn));
    const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);
    if (cipher) {
        json_object_object_add(facts, "cipher", json_object_new_string(SSL_CIPHER_standard_name(cipher)));
    }
    const char *group = SSL_get0_group_name((SSL *)ssl);
    if (group) {
        // Its IANA name, as in the other endpoints.
        json_object_object_add(facts, "group", json_object_new_string(strcasecmp(group, "x25519") == 0 ? "X25519" : group));
    }
    int64_t bytes = 0;
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        bytes += i2d_X509(sk_X509_value(chain, i), NULL);
    }
    if (bytes) {
        json_object_object_add(facts, "certificate_chain_bytes", json_object_new_int64(bytes));
    }
}

static void handshake(const SSL *ssl, int where, int value) {
    (void)value;
    struct link *link = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), own_slot);
    struct exchange *exchange = link->opener;
    if (!exchange) {
        return;
    }
    if (where & SSL_CB_HANDSHAKE_START && !quic() && spec->fast_open != 1 && !exchange->record.connected) {
        exchange->record.connected = now();  // the first thing that libcurl does on a TCP connection
    }
    if (where & SSL_CB_HANDSHAKE_DONE && !link->handshake) {
        link->handshake = SSL_session_reused(ssl) ? RESUMED : FULL;
        const unsigned char *name = NULL;
        unsigned length = 0;
        SSL_get0_alpn_selected(ssl, &name, &length);
        const char *wanted = ALPN[spec->protocol];
        link->other_alpn = length != strlen(wanted) || memcmp(name, wanted, length) != 0;
        if (!told && !link->other_alpn) {
            read_tls(ssl, wanted);
        }
    }
}

static CURLcode set_context(CURL *easy, void *context, void *of) {
    (void)easy;
    struct exchange *exchange = of;
    SSL_CTX_set_ex_data(context, own_slot, exchange->link);
    SSL_CTX_set_info_callback(context, handshake);
    return CURLE_OK;
}

static curl_socket_t open_socket(void *of, curlsocktype purpose, struct curl_sockaddr *to) {
    (void)purpose;
    struct exchange *exchange = of;
    struct link *link = exchange->link;
    if (own_of(exchange)->asked) {
        // libcurl would send the request once more. Here a lost request has failed.
        own_of(exchange)->again = true;
        return CURL_SOCKET_BAD;
    }
    const struct address *address = engine_address();
    to->family = address->socket.ss_family;
    to->addrlen = address->length;
    void *room = &to->addr;  // libcurl has room for an address of any family here
    memcpy(room, &address->socket, address->length);
    int descriptor = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (descriptor < 0) {
        return CURL_SOCKET_BAD;
    }
    set_socket(descriptor);  // it was granted once, before `ready`
    link->descriptor = descriptor;
    link->number = exchange->record.connection = engine_number();
    link->opener = exchange;
    link->handshake = UNKNOWN;
    link->other_alpn = false;
    return descriptor;
}

static int close_socket(void *of, curl_socket_t descriptor) {
    struct link *link = of;
    if (link->descriptor == descriptor) {
        link->descriptor = -1;
    }
    loop_watch(descriptor, 0, NULL, NULL);
    return close(descriptor);
}

// A connection is there for the request, which goes out now.
static int ready(void *of, char *to, char *from, int to_port, int from_port) {
    (void)to, (void)from, (void)to_port, (void)from_port;
    struct exchange *exchange = of;
    struct link *link = exchange->link;
    own_of(exchange)->asked = true;
    engine_ready(exchange);
    if (link->opener != exchange) {
        exchange->record.connection = link->number;
        return CURL_PREREQFUNC_OK;
    }
    exchange->record.opened = true;
    if (ALPN[spec->protocol]) {
        exchange->record.ready = now();
    } else if (spec->fast_open != 1) {
        exchange->record.connected = now();
    }
    exchange->record.handshake = (uint8_t)link->handshake;
    if (!told && !link->other_alpn && link->descriptor >= 0) {
        read_socket(link->descriptor);
        told = true;
    }
    return link->other_alpn ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

void connection_prepare(const struct spec *of) {
    spec = of;
    facts = json_object_new_object();
    own_slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    int trial = socket(spec->addresses[0].socket.ss_family, quic() ? SOCK_DGRAM : SOCK_STREAM, 0);
    const char *name = trial < 0 ? NULL : set_socket(trial);
    if (trial < 0 || name) {
        refuse("transport: cannot honour `%s`: the kernel says: %s", name ? name : "address", strerror(errno));
    }
    read_socket(trial);
    if (!quic()) {
        json_object_object_add(facts, "no_delay", json_object_new_boolean(spec->no_delay != 0));
    }
    close(trial);
}

void connection_set(CURL *easy, struct exchange *exchange) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, exchange->link);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, ready);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, spec->no_delay != 0 ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, 86400L);  // the engine has the spec's deadlines
    if (exchange->link->kept) {
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, 86400L);  // libcurl would not reuse a connection that was idle for two minutes
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    }
    if (!ALPN[spec->protocol]) {
        return;
    }
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, set_context);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, exchange);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
    // As wirelab's own endpoints. OpenSSL would prefer a hybrid group, whose key share needs a second packet.
    curl_easy_setopt(easy, CURLOPT_SSL_EC_CURVES, "X25519");
    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, spec->resumes ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, spec->verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, spec->verify ? 2L : 0L);
    if (spec->trust_anchor) {
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_CAINFO, spec->trust_anchor);
    }
}

json_object *connection_facts(void) {
    json_object *copy = NULL;
    json_object_deep_copy(facts, &copy, NULL);
    return copy;
}
