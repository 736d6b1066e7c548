using System;
using System.Collections.Generic;
using System.IO;
using System.Text.Json;

namespace Wirelab.Contract
{
    /// <summary>The events of an endpoint: one JSON object per line on standard output.</summary>
    static class Events
    {
        static readonly Stream Output = Console.OpenStandardOutput();

        /// <summary>Prints one event in one write.</summary>
        public static void Emit(string name, params (string Name, object Value)[] fields)
        {
            var all = new Dictionary<string, object> { ["event"] = name };
            foreach (var field in fields)
            {
                all[field.Name] = field.Value;
            }
            Print(all);
        }

        public static void Print(Dictionary<string, object> line)
        {
            var text = JsonSerializer.SerializeToUtf8Bytes(line);
            Array.Resize(ref text, text.Length + 1);
            text[text.Length - 1] = (byte)'\n';
            lock (Output)
            {
                Output.Write(text, 0, text.Length);
                Output.Flush();
            }
        }

        /// <summary>Prints why a role failed, and ends with the exit status of that event.</summary>
        public static void Fail(Exception why)
        {
            if (why is Unsupported)
            {
                Emit("unsupported", ("message", why.Message));
                Environment.Exit(127);
            }
            var kind = why is Failure failure ? failure.Kind : Kind.Other;
            var message = why is Failure ? why.Message : $"{why.GetType().Name}: {why.Message}";
            Emit("error", ("kind", kind.Token()), ("message", message));
            Environment.Exit(1);
        }
    }
}
