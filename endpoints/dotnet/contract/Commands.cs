using System;
using System.Collections.Concurrent;
using System.IO;
using System.Threading;

namespace Wirelab.Contract
{
    /// <summary>The words on standard input, each with the moment of its receipt.</summary>
    sealed class Commands
    {
        readonly BlockingCollection<(string Text, long At)> words = new BlockingCollection<(string, long)>();

        /// <summary>
        /// Reads from now on. `stop` and the end of input call `onStop` at any time, unless the last word of the
        /// conversation has come before.
        /// </summary>
        public Commands(string last, Action onStop)
        {
            var reader = new Thread(() =>
            {
                using var input = new StreamReader(Console.OpenStandardInput());
                for (string line; (line = input.ReadLine()) != null && line.Trim() != "stop";)
                {
                    words.Add((line.Trim(), Clock.Now()));
                    if (line.Trim() == last)
                    {
                        return;
                    }
                }
                onStop();
            });
            reader.IsBackground = true;
            reader.Start();
        }

        /// <summary>The next word.</summary>
        public string Next(CancellationToken until) => words.Take(until).Text;

        /// <summary>Waits for a word, and says when it came.</summary>
        public long Expect(string text)
        {
            var found = words.Take();
            return found.Text == text
                ? found.At
                : throw new Failure(Kind.Other, $"the word `{found.Text}` came where `{text}` was expected");
        }
    }
}
