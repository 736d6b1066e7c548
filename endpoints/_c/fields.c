#include "fields.h"

#include <string.h>

#include "contract.h"

struct fields fields_read(const char *path) {
    json_object *spec = json_object_from_file(path);
    if (!json_object_is_type(spec, json_type_object)) {
        fail(OTHER, "reading the spec %s: %s", path, spec ? "it is no JSON object" : json_util_get_last_err());
    }
    return (struct fields){"spec", spec};
}

bool has(const struct fields *fields, const char *name) {
    json_object *value;
    return json_object_object_get_ex(fields->left, name, &value) && value;
}

static json_object *take(struct fields *fields, const char *name, json_type type, const char *wanted) {
    json_object *value;
    if (!json_object_object_get_ex(fields->left, name, &value) || !value) {
        refuse("%s: the field `%s` is missing", fields->where, name);
    }
    if (!json_object_is_type(value, type)) {
        refuse("%s: `%s` = %.60s; supported: %s", fields->where, name, json_object_to_json_string(value), wanted);
    }
    json_object_get(value);
    json_object_object_del(fields->left, name);
    return value;
}

struct fields take_fields(struct fields *fields, const char *name) {
    return (struct fields){name, take(fields, name, json_type_object, "objects")};
}

json_object *take_list(struct fields *fields, const char *name) {
    return take(fields, name, json_type_array, "lists");
}

const char *take_text(struct fields *fields, const char *name) {
    json_object *value = take(fields, name, json_type_string, "text");
    const char *text = json_object_get_string(value);
    if (strlen(text) != (size_t)json_object_get_string_len(value)) {
        refuse("%s: `%s` has a zero byte; supported: text without", fields->where, name);
    }
    return text;
}

bool take_bool(struct fields *fields, const char *name) {
    return json_object_get_boolean(take(fields, name, json_type_boolean, "true and false"));
}

double take_number(struct fields *fields, const char *name) {
    bool whole = json_object_is_type(json_object_object_get(fields->left, name), json_type_int);
    return json_object_get_double(take(fields, name, whole ? json_type_int : json_type_double, "numbers"));
}

uint64_t take_count(struct fields *fields, const char *name, uint64_t least, uint64_t most) {
    json_object *value = take(fields, name, json_type_int, "whole numbers");
    uint64_t count = json_object_get_uint64(value);  // 0 if negative
    if (json_object_get_int64(value) < 0 || count < least || count > most) {
        refuse("%s: `%s` = %s; supported: whole numbers from %llu to %llu", fields->where, name,
               json_object_to_json_string(value), (unsigned long long)least, (unsigned long long)most);
    }
    return count;
}

int take_word(struct fields *fields, const char *name, const char *const *words) {
    const char *text = take_text(fields, name);
    char known[200] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            return i;
        }
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, words[i], sizeof known - strlen(known) - 1);
    }
    refuse("%s: `%s` = \"%.60s\"; supported: %s", fields->where, name, text, known);
}

void fields_end(const struct fields *fields) {
    json_object_object_foreach(fields->left, name, value) {
        if (value) {
            refuse("%s: cannot honour `%s`", fields->where, name);
        }
    }
}
