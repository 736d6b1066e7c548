#include "head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *create(void *of, lsquic_stream_t *stream, int pushed) {
    (void)of, (void)stream, (void)pushed;
    return calloc(1, sizeof(struct head));
}

// One field at a time: wanted parts are copied, and its memory serves the next one.
static struct lsxpack_header *prepare(void *of, struct lsxpack_header *field, size_t wanted) {
    enum { FIRST = 512 };
    struct head *head = of;
    wanted = wanted ? wanted : FIRST;
    if (wanted > LSXPACK_MAX_STRLEN) {
        return NULL;
    }
    if (wanted > head->size) {
        char *room = realloc(head->room, wanted);
        if (!room) {
            return NULL;
        }
        head->room = room;
        head->size = wanted;
    }
    if (field) {
        field->buf = head->room;
        field->val_len = (lsxpack_strlen_t)head->size;
        return field;
    }
    lsxpack_header_prepare_decode(&head->field, head->room, 0, head->size);
    return &head->field;
}

static bool is(const struct lsxpack_header *field, const char *name) {
    return field->name_len == strlen(name) && memcmp(lsxpack_header_get_name(field), name, field->name_len) == 0;
}

static void copy(char *to, size_t room, const struct lsxpack_header *field) {
    snprintf(to, room, "%.*s", (int)field->val_len, lsxpack_header_get_value(field));
}

static int process(void *of, struct lsxpack_header *field) {
    struct head *head = of;
    char number[24];
    if (!field) {
        return 0;  // there are no more
    }
    if (is(field, ":status")) {
        copy(number, sizeof number, field);
        head->status = atoi(number);
    } else if (is(field, ":method")) {
        copy(head->method, sizeof head->method, field);
    } else if (is(field, ":path")) {
        copy(head->path, sizeof head->path, field);
    } else if (is(field, "content-length")) {
        copy(number, sizeof number, field);
        head->announces = true;
        head->announced = strtoull(number, NULL, 10);
    }
    return 0;
}

void head_free(struct head *head) {
    free(head->room);
    free(head);
}

static void discard(void *of) {
    head_free(of);
}

const struct lsquic_hset_if HEADS = {
    .hsi_create_header_set = create, .hsi_prepare_decode = prepare, .hsi_process_header = process,
    .hsi_discard_header_set = discard,
};

bool fields_out_add(struct fields_out *list, const char *name, const char *value) {
    size_t before = strlen(name), behind = strlen(value), at = list->length;
    if (list->count == MOST_FIELDS || before + behind > MOST_BYTES - at) {
        return false;
    }
    memcpy(list->bytes + at, name, before);
    memcpy(list->bytes + at + before, value, behind);
    lsxpack_header_set_offset2(&list->fields[list->count++], list->bytes, at, before, at + before, behind);
    list->length += before + behind;
    return true;
}

bool fields_out_send(struct fields_out *list, lsquic_stream_t *stream) {
    return lsquic_stream_send_headers(stream, &(lsquic_http_headers_t){list->count, list->fields}, 0) == 0;
}
