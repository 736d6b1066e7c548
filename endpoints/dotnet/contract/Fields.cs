using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.Json;

namespace Wirelab.Contract
{
    /// <summary>A JSON object. Every field must be taken: one that is left at the end is unsupported, never ignored.</summary>
    sealed class Fields
    {
        readonly string where;
        readonly Dictionary<string, JsonElement> left = new Dictionary<string, JsonElement>();

        public Fields(JsonElement value, string where)
        {
            this.where = where;
            if (value.ValueKind != JsonValueKind.Object)
            {
                throw new Unsupported($"{where} is not an object");
            }
            // A null field counts as absent.
            foreach (var field in value.EnumerateObject().Where(field => field.Value.ValueKind != JsonValueKind.Null))
            {
                left[field.Name] = field.Value;
            }
        }

        public bool Has(string name) => left.ContainsKey(name);

        public JsonElement Take(string name) =>
            left.Remove(name, out var value) ? value : throw new Unsupported($"{where}: the field `{name}` is missing");

        public string Text(string name)
        {
            var value = Take(name);
            return value.ValueKind == JsonValueKind.String ? value.GetString() : throw Wrong(name, value, "text");
        }

        public string OptionalText(string name) => Has(name) ? Text(name) : null;

        public bool Flag(string name)
        {
            var value = Take(name);
            var isFlag = value.ValueKind == JsonValueKind.True || value.ValueKind == JsonValueKind.False;
            return isFlag ? value.GetBoolean() : throw Wrong(name, value, "true and false");
        }

        public bool? OptionalFlag(string name) => Has(name) ? Flag(name) : (bool?)null;

        /// <summary>Takes a whole number of these bounds.</summary>
        public long Count(string name, long least, long most)
        {
            var value = Take(name);
            var isCount = value.ValueKind == JsonValueKind.Number && value.TryGetInt64(out var number) && number >= least
                && number <= most;
            return isCount ? value.GetInt64() : throw Wrong(name, value, $"whole numbers from {least} to {most}");
        }

        public long? OptionalCount(string name, long least, long most) =>
            Has(name) ? Count(name, least, most) : (long?)null;

        /// <summary>Takes a word that must be one of the known ones.</summary>
        public string Choose(string name, params string[] known)
        {
            var word = Text(name);
            return known.Contains(word)
                ? word
                : throw new Unsupported($"{where}: `{name}` = `{word}`; supported: {string.Join(", ", known)}");
        }

        public JsonElement[] List(string name)
        {
            var value = Take(name);
            var isList = value.ValueKind == JsonValueKind.Array;
            return isList ? value.EnumerateArray().ToArray() : throw Wrong(name, value, "lists");
        }

        public Fields Inner(string name) => new Fields(Take(name), $"{where}.{name}");

        public Exception Wrong(string name, JsonElement value, string supported) =>
            new Unsupported($"{where}: `{name}` = {value.GetRawText()}; supported: {supported}");

        /// <summary>Refuses the spec if a field is left.</summary>
        public void End()
        {
            if (left.Count > 0)
            {
                throw new Unsupported($"{where}: cannot honour `{string.Join("`, `", left.Keys)}`");
            }
        }
    }
}
