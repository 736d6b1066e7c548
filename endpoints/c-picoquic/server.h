// A server's side of the contract: its spec and its conversation.
#ifndef SERVER_H
#define SERVER_H

#include "driver.h"

struct server_spec {
    enum protocol protocol;
    struct address address;
    const char *server_name, *certificate, *key, *key_log, *qlog_dir, *root;
    bool resumption, early_data;
    // Transport settings; NULL and the negative ones are left to the library.
    const char *congestion;
    int gso, gro;
    int64_t udp_send_buffer, udp_receive_buffer;
};

// Takes every field of a server's spec, or refuses it.
struct server_spec server_read(const char *path, const struct library *library);
// Says `ready`, and plays the server until it is told to stop. `answered`: how many requests there were since.
void server_run(uint16_t port, json_object *configured, uint64_t (*answered)(void));
// Says `done`. `transport` may be NULL.
void server_done(uint64_t answered, json_object *configured, json_object *transport);

#endif
