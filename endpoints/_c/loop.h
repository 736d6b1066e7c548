// The event loop of a thread: file descriptors by epoll, alarms to the nanosecond, words from standard input.
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

// Calls `act` at one of these events (EPOLLIN, EPOLLOUT); 0 forgets the descriptor.
void loop_watch(int descriptor, uint32_t events, void (*act)(void *of, int descriptor, uint32_t events), void *of);
// Runs until `over` returns true; calls `after` after every event.
void loop_until(bool (*over)(void), void (*after)(void));
// Runs until this word comes, and returns the moment; `stop` and the end of the input end the program.
moment loop_await(const char *word);
// Makes the loop of this thread.
void loop_open(void);
// The same, and starts to read standard input.
void loop_listen(void);

#endif
