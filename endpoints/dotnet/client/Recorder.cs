using System;
using System.Collections.Generic;
using System.IO;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>Keeps records while the window lasts; results are made of them afterwards.</summary>
    abstract class Recorder
    {
        public static Recorder For(ClientSpec spec) => spec.Histograms ? (Recorder)new Histograms() : new Samples(spec);

        /// <summary>Called by many users at the same time.</summary>
        public abstract void Keep(int user, in Record record);

        /// <summary>The number of succeeded requests, and of failed ones by kind.</summary>
        public abstract (long Succeeded, Dictionary<string, object> Failed) Count();

        /// <summary>Writes the results, with times from zero on.</summary>
        public abstract void Write(TextWriter results, long zero);

        public void Write(string path, long zero)
        {
            try
            {
                using var results = new StreamWriter(path);
                Write(results, zero);
            }
            catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
            {
                throw new Failure(Kind.Other, $"writing the results {path}: {error.Message}");
            }
        }
    }
}
