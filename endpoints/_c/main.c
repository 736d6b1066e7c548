// The command line of every endpoint on this engine: describe, client, and server if the library has one.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "engine.h"

static json_object *list(const char *const *words) {
    json_object *made = json_object_new_array();
    for (; *words; words++) {
        json_object_array_add(made, json_object_new_string(*words));
    }
    return made;
}

static json_object *role(const char *const *protocols, const char *const *features) {
    json_object *made = json_object_new_object();
    json_object_object_add(made, "protocols", list(protocols));
    json_object_object_add(made, "features", list(features));
    return made;
}

static void describe(const struct library *library) {
    json_object *description = json_object_new_object();
    json_object_object_add(description, "contract", json_object_new_int(CONTRACT_VERSION));
    json_object_object_add(description, "name", json_object_new_string(library->endpoint));
    json_object_object_add(description, "library", json_object_new_string(library->name));
    json_object_object_add(description, "version", json_object_new_string(library->version));
    json_object_object_add(description, "language", json_object_new_string("C"));
    if (library->serve) {
        json_object_object_add(description, "server", role(library->served, library->offered));
    }
    json_object_object_add(description, "client", role(library->protocols, library->features));
    emit(description);
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    // The machine's file may be for another version of OpenSSL than the suite's.
    setenv("OPENSSL_CONF", "/dev/null", 0);
    const struct library *library = driver_library();
    if (count == 2 && strcmp(arguments[1], "describe") == 0) {
        describe(library);
    } else if (count == 4 && strcmp(arguments[1], "client") == 0 && strcmp(arguments[2], "--spec") == 0) {
        struct spec spec = spec_read(arguments[3], library->protocols, library->sets_quic);
        engine_run(&spec);
    } else if (count == 4 && library->serve && strcmp(arguments[1], "server") == 0 && strcmp(arguments[2], "--spec") == 0) {
        library->serve(arguments[3]);
    } else if (count >= 2 && !library->serve && strcmp(arguments[1], "server") == 0) {
        refuse("%s is a client only", library->endpoint);
    } else {
        fprintf(stderr, "usage: %s describe | client --spec FILE%s\n", arguments[0], library->serve ? " | server --spec FILE" : "");
        return 2;
    }
    return 0;
}
