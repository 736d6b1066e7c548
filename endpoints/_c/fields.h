// A JSON object. Every field must be taken: one that is left at the end is unsupported, never ignored.
#ifndef FIELDS_H
#define FIELDS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

struct fields {
    const char *where;
    json_object *left;
};

// Reads a file that holds one object.
struct fields fields_read(const char *path);
// A null field counts as absent.
bool has(const struct fields *fields, const char *name);
// Each takes a field, which must be present; texts live as long as the program.
struct fields take_fields(struct fields *fields, const char *name);
json_object *take_list(struct fields *fields, const char *name);
const char *take_text(struct fields *fields, const char *name);
bool take_bool(struct fields *fields, const char *name);
double take_number(struct fields *fields, const char *name);
uint64_t take_count(struct fields *fields, const char *name, uint64_t least, uint64_t most);
// Takes a text that is one of the words, which end with NULL. Returns the word's index.
int take_word(struct fields *fields, const char *name, const char *const *words);
// Refuses the spec if a field is left.
void fields_end(const struct fields *fields);

#endif
