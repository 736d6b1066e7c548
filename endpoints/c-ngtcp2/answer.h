// Requests of a server's connections, from the first header field to the last byte of the answer.
#ifndef ANSWER_H
#define ANSWER_H

#include <stdatomic.h>

#include "quic.h"

// nghttp3's callbacks for it.
extern const nghttp3_callbacks ANSWER;

// The state that the requests of a thread share.
struct desk {
    _Atomic uint64_t answered;
};

// Frees the requests of a connection that ends.
void answer_drop(struct quic *quic);

#endif
