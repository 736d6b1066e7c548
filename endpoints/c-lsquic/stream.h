// A stream of the server: a request and its answer.
#ifndef STREAM_H
#define STREAM_H

#include <lsquic.h>
#include <stdint.h>

// lsquic's callbacks of streams.
lsquic_stream_ctx_t *stream_opened(void *of, lsquic_stream_t *stream);
void stream_read(lsquic_stream_t *stream, lsquic_stream_ctx_t *of);
void stream_write(lsquic_stream_t *stream, lsquic_stream_ctx_t *of);
void stream_closed(lsquic_stream_t *stream, lsquic_stream_ctx_t *of);
// The number of answered requests.
uint64_t stream_answered(void);

#endif
