using System.Collections.Generic;
using System.Linq;

namespace Wirelab.Contract
{
    /// <summary>The spec of a server.</summary>
    sealed class ServerSpec : Spec
    {
        public readonly string Certificate, Key;
        public readonly bool Resumption;
        public readonly string DocumentRoot;
        public readonly HashSet<string> Features = new HashSet<string>();
        /// <summary>Whether the word `count` may come, at any time.</summary>
        public readonly bool Counts;

        public ServerSpec(Fields fields, string[] protocols, string[] features) : base(fields, protocols)
        {
            foreach (var feature in fields.List("features"))
            {
                var word = feature.ToString();
                if (!features.Contains(word))
                {
                    throw new Unsupported($"features: `{word}`; supported: {string.Join(", ", features)}");
                }
                Features.Add(word);
            }
            DocumentRoot = fields.OptionalText("document_root");
            if (IsSecure)
            {
                var tls = fields.Inner("tls");
                (Certificate, Key) = (tls.Text("certificate"), tls.Text("key"));
                Resumption = tls.Flag("resumption");
                if (tls.Flag("early_data"))
                {
                    throw new Unsupported("tls: `early_data`: .NET has no 0-RTT");
                }
                tls.End();
            }
            Counts = fields.OptionalFlag("counts") ?? false;
            fields.End();
            if (DocumentRoot == null && (Features.Contains("files") || Features.Contains("pages")))
            {
                throw new Failure(Kind.Other, "spec: the feature `files` or `pages` is asked for without a `document_root`");
            }
        }
    }
}
