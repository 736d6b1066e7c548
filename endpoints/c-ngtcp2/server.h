// The server, from `ready` to `done`.
#ifndef SERVER_H
#define SERVER_H

void server_run(const char *spec_path);

#endif
