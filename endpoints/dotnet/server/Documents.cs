using System;
using System.Collections.Generic;
using System.IO;
using Wirelab.Contract;

namespace Wirelab.Server
{
    /// <summary>
    /// Every file below a root, by its path with a leading slash. A request never touches the file system, so this measures
    /// the protocol and not a page cache; and since only paths that were seen below the root are known, none leads out of it.
    /// </summary>
    static class Documents
    {
        const long LargestTotal = 1 << 30;

        public static Dictionary<string, byte[]> Load(string root)
        {
            var documents = new Dictionary<string, byte[]>();
            if (root == null)
            {
                return documents;
            }
            try
            {
                var total = 0L;
                Load(new DirectoryInfo(root), "/", documents, ref total);
            }
            catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
            {
                throw new Failure(Kind.Other, $"reading the documents below {root}: {error.Message}");
            }
            return documents;
        }

        static void Load(DirectoryInfo folder, string path, Dictionary<string, byte[]> documents, ref long total)
        {
            foreach (var entry in folder.EnumerateFileSystemInfos())
            {
                // A link may lead out of the root.
                if (entry.Attributes.HasFlag(FileAttributes.ReparsePoint))
                {
                    continue;
                }
                if (entry is DirectoryInfo inner)
                {
                    Load(inner, $"{path}{inner.Name}/", documents, ref total);
                    continue;
                }
                total += ((FileInfo)entry).Length;
                if (total > LargestTotal)
                {
                    throw new Unsupported($"`document_root` holds more than {LargestTotal} bytes, which are kept in memory");
                }
                documents[path + entry.Name] = File.ReadAllBytes(entry.FullName);
            }
        }
    }
}
