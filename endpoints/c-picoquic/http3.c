#include "http3.h"

#include <string.h>

#include "contract.h"

// Room in front of the field section for the frame's type and a length of four bytes, and behind it for those of DATA.
enum { BEFORE = 5, BEHIND = 9 };

static uint8_t *most(struct head *head) {
    return head->bytes + HTTP3_HEAD - BEHIND;
}

void head_begin(struct head *head) {
    head->next = head->bytes + BEFORE;
    // No dynamic table: insert count and base are 0.
    *head->next++ = 0;
    *head->next++ = 0;
}

void head_add(struct head *head, unsigned index, const char *value) {
    head->next = h3zero_qpack_literal_plus_ref_encode(head->next, most(head), index, (const uint8_t *)value, strlen(value));
}

void head_add_known(struct head *head, unsigned index) {
    head->next = h3zero_qpack_code_encode(head->next, most(head), 0xc0, 0x3f, index);
}

void head_add_named(struct head *head, const char *name, const char *value) {
    head->next = h3zero_qpack_literal_plus_name_encode(head->next, most(head), (const uint8_t *)name, strlen(name),
                                                       (const uint8_t *)value, strlen(value));
}

// Integers of QUIC in four and eight bytes (RFC 9000, section 16).
static void put_four(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (24 - 8 * i));
    }
    to[0] |= 0x80;
}

static void put_eight(uint8_t *to, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(value >> (56 - 8 * i));
    }
    to[0] |= 0xc0;
}

bool head_end(struct head *head, uint64_t body) {
    if (!head->next) {
        return false;
    }
    head->bytes[0] = h3zero_frame_header;
    put_four(head->bytes + 1, (uint32_t)(head->next - head->bytes - BEFORE));
    if (body) {
        *head->next++ = h3zero_frame_data;
        put_eight(head->next, body);
        head->next += 8;
    }
    head->length = (size_t)(head->next - head->bytes);
    return true;
}

h3zero_callback_ctx_t *http3_new(void) {
    h3zero_callback_ctx_t *made = h3zero_callback_create_context(NULL);
    if (!made) {
        fail(OTHER, "no memory for a connection");
    }
    made->no_print = 1;  // standard output is the contract's
    return made;
}

int http3_control(picoquic_cnx_t *connection, h3zero_callback_ctx_t *http3, uint64_t stream, uint8_t *bytes, size_t length,
                  picoquic_call_back_event_t event, void *of) {
    return h3zero_callback(connection, stream, bytes, length, event, http3, of);
}

bool http3_read(h3zero_data_stream_state_t *state, uint8_t *bytes, size_t length, void (*body)(void *, const uint8_t *, size_t),
                void *of) {
    for (uint8_t *end = bytes + length; bytes < end; ) {
        size_t available = 0;
        uint64_t error = 0;
        if (!state->frame_prefix_parsed) {
            // Not known yet; the parser leaves the last frame's where the type alone is there.
            state->current_frame_length = UINT64_MAX;
        }
        bytes = h3zero_parse_data_stream(bytes, end, state, &available, &error);
        if (!bytes || state->is_web_transport) {
            return false;
        }
        if (available) {
            body(of, bytes, available);
            bytes += available;
        }
    }
    return true;
}

void http3_reset(h3zero_data_stream_state_t *state) {
    h3zero_delete_data_stream_state(state);
    memset(state, 0, sizeof *state);
    state->stream_type = state->control_stream_id = UINT64_MAX;
}
