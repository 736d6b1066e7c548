#include "server_spec.h"

#include <string.h>

#include "contract.h"

// More would be no help: a thread keeps a processor busy.
enum { MOST_THREADS = 256 };

static void read_tls(struct server_spec *s, struct fields f) {
    s->certificate = take_text(&f, "certificate");
    s->key = take_text(&f, "key");
    s->key_log = has(&f, "key_log") ? take_text(&f, "key_log") : NULL;
    s->resumes = take_bool(&f, "resumption");
    s->early = take_bool(&f, "early_data");
    fields_end(&f);
}

static void read_features(struct server_spec *s, struct fields *f, const char *const *offered) {
    json_object *list = take_list(f, "features");
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        // Taken as a field, so that the refusal names it.
        json_object *one = json_object_new_object();
        json_object_object_add(one, "features", json_object_get(json_object_array_get_idx(list, i)));
        const char *feature = offered[take_word(&(struct fields){"spec", one}, "features", offered)];
        s->echo |= strcmp(feature, "echo") == 0;
        s->bytes |= strcmp(feature, "bytes") == 0;
        s->delay |= strcmp(feature, "delay") == 0;
        s->redirect |= strcmp(feature, "redirect") == 0;
        s->heron |= strcmp(feature, "heron") == 0;
        if (strcmp(feature, "files") == 0 && !s->document_root) {
            fail(OTHER, "the feature `files` is asked for without a `document_root`");
        }
    }
}

struct server_spec server_spec_read(const char *path, const struct library *library) {
    struct fields f = fields_read(path);
    struct server_spec s = {.threads = 1, .quic = {NULL, -1, -1, -1, -1, -1, -1, -1}};
    take_count(&f, "contract", CONTRACT_VERSION, CONTRACT_VERSION);
    take_word(&f, "protocol", library->served);
    const char *address = take_text(&f, "address");
    s.address = address_read(address, (uint16_t)take_count(&f, "port", 0, UINT16_MAX));
    take_text(&f, "server_name");  // a client may send any name
    read_tls(&s, take_fields(&f, "tls"));
    s.document_root = has(&f, "document_root") ? take_text(&f, "document_root") : NULL;
    read_features(&s, &f, library->offered);
    s.qlog_dir = has(&f, "qlog_dir") ? take_text(&f, "qlog_dir") : NULL;
    if (has(&f, "threads")) {
        s.threads = take_count(&f, "threads", 1, MOST_THREADS);
    }
    if (has(&f, "counts")) {
        take_bool(&f, "counts");  // it always counts
    }
    if (has(&f, "transport")) {
        struct fields transport = take_fields(&f, "transport");
        s.quic = quic_settings_take(&transport);
        fields_end(&transport);
    }
    fields_end(&f);
    return s;
}
