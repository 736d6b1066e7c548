// libcurl's results as the contract's kinds.
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#include "parts.h"

// The kernel's error, if it decides.
static enum kind by_errno(long number) {
    switch (number) {
    case ECONNREFUSED:
        return REFUSED;
    case ENETUNREACH:
    case EHOSTUNREACH:
        return UNREACHABLE;
    case ECONNRESET:
    case EPIPE:
        return RESET;
    case ETIMEDOUT:
        return TIMEOUT;
    default:
        return NONE;
    }
}

static enum kind by_code(CURLcode code, const char *text, bool asked, bool quic) {
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return TIMEOUT;
    case CURLE_COULDNT_CONNECT:
        return REFUSED;
    case CURLE_PEER_FAILED_VERIFICATION:
        return CERTIFICATE;
    case CURLE_SSL_CONNECT_ERROR:
        return strstr(text, "unexpected eof") || strstr(text, "SSL_ERROR_SYSCALL") ? RESET : TLS;
    case CURLE_SSL_CIPHER:
        return TLS;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
        return TRUNCATED;
    case CURLE_UNSUPPORTED_PROTOCOL:  // an answer that is no HTTP/1
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_TOO_LARGE:
        return PROTOCOL;
    case CURLE_HTTP2:
        // libcurl describes a wrong frame; it gives no reason for a lost connection.
        return *text ? PROTOCOL : RESET;
    case CURLE_HTTP3:
    case CURLE_QUIC_CONNECT_ERROR:
    case CURLE_HTTP2_STREAM:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return asked ? RESET : quic ? TLS : RESET;
    default:
        return OTHER;
    }
}

enum kind failure_of(const struct exchange *exchange, CURLcode code, bool quic, const char **why) {
    const struct own *own = own_of(exchange);
    *why = *own->error ? own->error : curl_easy_strerror(code);
    if (own->again) {
        *why = "the connection was lost before the response";
        return RESET;
    }
    if (exchange->link->other_alpn) {
        *why = "another protocol was negotiated (ALPN)";
        return PROTOCOL;
    }
    long number = 0, verified = 0;
    curl_easy_getinfo(own->easy, CURLINFO_OS_ERRNO, &number);
    curl_easy_getinfo(own->easy, CURLINFO_SSL_VERIFYRESULT, &verified);
    // Before a certificate came, it is "unspecified".
    if (code == CURLE_SSL_CONNECT_ERROR && verified && verified != X509_V_ERR_UNSPECIFIED) {
        return CERTIFICATE;
    }
    enum kind kind = by_errno(number);
    return kind ? kind : by_code(code, own->error, own->asked, quic);
}
