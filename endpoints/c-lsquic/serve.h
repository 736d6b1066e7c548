// The role of the server.
#ifndef SERVE_H
#define SERVE_H

// Plays the server by the spec in that file.
void serve(const char *path);

#endif
