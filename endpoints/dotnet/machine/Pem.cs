using System;
using System.Collections.Generic;
using System.IO;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Wirelab.Contract;

namespace Wirelab
{
    /// <summary>Certificates and keys in PEM, for which .NET had no reader before version 5.</summary>
    static class Pem
    {
        /// <summary>All certificates of a file, in its order.</summary>
        public static X509Certificate2Collection Certificates(string path)
        {
            var all = new X509Certificate2Collection();
            foreach (var der in Read(path, "CERTIFICATE"))
            {
                all.Add(new X509Certificate2(der));
            }
            return all;
        }

        /// <summary>A certificate with its key, which is in PKCS #8.</summary>
        public static X509Certificate2 WithKey(X509Certificate2 certificate, string path)
        {
            var key = Read(path, "PRIVATE KEY")[0];
            using var ofEcdsa = certificate.GetECDsaPublicKey();
            if (ofEcdsa != null)
            {
                using var ecdsa = ECDsa.Create();
                ecdsa.ImportPkcs8PrivateKey(key, out _);
                return certificate.CopyWithPrivateKey(ecdsa);
            }
            using var rsa = RSA.Create();
            rsa.ImportPkcs8PrivateKey(key, out _);
            return certificate.CopyWithPrivateKey(rsa);
        }

        static List<byte[]> Read(string path, string label)
        {
            string begin = $"-----BEGIN {label}-----", end = $"-----END {label}-----";
            try
            {
                var text = File.ReadAllText(path);
                var all = new List<byte[]>();
                for (int from = 0, to; (from = text.IndexOf(begin, from, StringComparison.Ordinal)) >= 0; from = to)
                {
                    from += begin.Length;
                    to = text.IndexOf(end, from, StringComparison.Ordinal);
                    all.Add(Convert.FromBase64String(text.Substring(from, (to < 0 ? text.Length : to) - from)));
                    to = to < 0 ? text.Length : to;
                }
                return all.Count > 0 ? all : throw new Failure(Kind.Other, $"{path}: it has no {label} in PEM");
            }
            catch (Exception error) when (error is IOException || error is FormatException || error is UnauthorizedAccessException)
            {
                throw new Failure(Kind.Other, $"reading {path}: {error.Message}");
            }
        }
    }
}
