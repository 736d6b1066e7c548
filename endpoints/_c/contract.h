// The conversation with wirelab: events out, words in, exit statuses.
#ifndef CONTRACT_H
#define CONTRACT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

enum { CONTRACT_VERSION = 1 };

// Why a request or an endpoint failed, in the words of the contract.
enum kind { NONE, REFUSED, UNREACHABLE, CERTIFICATE, TLS, PROTOCOL, RESET, TRUNCATED, TIMEOUT, STATUS, DIGEST, OTHER, KINDS };
extern const char *const KIND_WORDS[KINDS];

// How a connection with TLS began, as its library proves it.
enum handshake { UNKNOWN, FULL, RESUMED, EARLY_ACCEPTED, EARLY_REJECTED, HANDSHAKES };
extern const char *const HANDSHAKE_WORDS[HANDSHAKES];

// Prints an event as one line, in one write, and releases it.
void emit(json_object *event);
// A new event of that name.
json_object *event(const char *name);

// Ends the program: exit status 127, something in the spec cannot be honoured.
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends the program: exit status 1.
_Noreturn void fail(enum kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Allocates zeroed memory; ends the program if it cannot.
void *allocate(uint64_t count, uint64_t size);

#endif
