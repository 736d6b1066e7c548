// First in, first out: the requests that wait for a lane, and the lanes that wait for a request.
#ifndef QUEUE_H
#define QUEUE_H

#include <stdlib.h>

#include "contract.h"

#define QUEUE(type, name)                                                                    \
    struct name {                                                                            \
        type *items;                                                                         \
        uint64_t first, length, room;                                                        \
    };                                                                                       \
    static void name##_put(struct name *queue, type item) {                                  \
        if (queue->length == queue->room) {                                                  \
            uint64_t room = queue->room ? 2 * queue->room : 1024;                            \
            type *items = allocate(room, sizeof *items);                                     \
            for (uint64_t i = 0; i < queue->length; i++) {                                   \
                items[i] = queue->items[(queue->first + i) % queue->room];                   \
            }                                                                                \
            free(queue->items);                                                              \
            *queue = (struct name){items, 0, queue->length, room};                           \
        }                                                                                    \
        queue->items[(queue->first + queue->length++) % queue->room] = item;                 \
    }                                                                                        \
    static type name##_take(struct name *queue) {                                            \
        type item = queue->items[queue->first];                                              \
        queue->first = (queue->first + 1) % queue->room;                                     \
        queue->length--;                                                                     \
        return item;                                                                         \
    }

#endif
