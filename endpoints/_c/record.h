// One request as the client saw it, and the store of all requests during the window.
#ifndef RECORD_H
#define RECORD_H

#include <json-c/json.h>

#include "clock.h"
#include "contract.h"
#include "spec.h"

struct record {
    moment intended, start, connected, ready, first_byte, end;
    uint64_t bytes_out, bytes_in;
    uint32_t connection;
    uint16_t status;
    bool opened;  // it opened its connection
    uint8_t handshake, failure;
};

// Allocates and touches the memory for the records.
void records_prepare(const struct spec *spec);
void records_keep(const struct record *record);
uint64_t records_succeeded(void);
// Failures by kind, in the contract's form.
json_object *records_errors(void);
// Writes the results file, with times from `zero` on.
void records_write(const struct spec *spec, moment zero);

#endif
