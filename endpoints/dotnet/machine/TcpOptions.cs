using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.IO;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;
using Wirelab.Contract;

namespace Wirelab
{
    /// <summary>
    /// Options of TCP sockets that .NET cannot set, and the active options, read back from the kernel. A socket that a
    /// library keeps to itself is found among the descriptors of this process.
    /// </summary>
    static class TcpOptions
    {
        const int SocketLevel = 1, AcceptsConnections = 30;
        const int Tcp = 6, NoDelay = 1, Congestion = 13;

        /// <summary>Refuses what the kernel does not have, tried on a socket that is thrown away.</summary>
        public static void Try(Transport transport)
        {
            using var probe = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            Set((int)probe.Handle, transport);
        }

        public static void Set(int socket, Transport transport)
        {
            if (transport.Congestion == null)
            {
                return;
            }
            var name = Encoding.ASCII.GetBytes(transport.Congestion);
            if (setsockopt(socket, Tcp, Congestion, name, (uint)name.Length) != 0)
            {
                var why = new Win32Exception(Marshal.GetLastWin32Error()).Message;
                throw new Unsupported($"transport: `congestion` = `{transport.Congestion}`: {why}");
            }
        }

        /// <summary>The default congestion control of sockets.</summary>
        public static string DefaultCongestion()
        {
            using var probe = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            return ActiveSettings((int)probe.Handle).TryGetValue("congestion", out var name) ? (string)name : null;
        }

        /// <summary>The options of a socket.</summary>
        public static Dictionary<string, object> ActiveSettings(int socket)
        {
            var configured = new Dictionary<string, object> { ["fast_open"] = false };
            if (Read(socket, Tcp, NoDelay, sizeof(int)) is byte[] flag)
            {
                configured["no_delay"] = BitConverter.ToInt32(flag, 0) != 0;
            }
            if (Read(socket, Tcp, Congestion, 16) is byte[] name)
            {
                configured["congestion"] = Encoding.ASCII.GetString(name).TrimEnd('\0');
            }
            return configured;
        }

        /// <summary>The socket that listens at a port; -1: none.</summary>
        public static int Listening(int port) => Find(socket =>
            Read(socket, SocketLevel, AcceptsConnections, sizeof(int)) is byte[] accepts && BitConverter.ToInt32(accepts, 0) == 1
            && Port(getsockname, socket) == port);

        /// <summary>A socket that is connected to a port; -1: none.</summary>
        public static int ConnectedTo(int port) => Find(socket => Port(getpeername, socket) == port);

        static int Find(Func<int, bool> isIt)
        {
            foreach (var path in Directory.GetFileSystemEntries("/proc/self/fd"))
            {
                if (int.TryParse(Path.GetFileName(path), out var descriptor) && isIt(descriptor))
                {
                    return descriptor;
                }
            }
            return -1;
        }

        delegate int NameOf(int socket, byte[] address, ref uint size);

        static int Port(NameOf nameOf, int socket)
        {
            const int inet = 2, inet6 = 10;
            var address = new byte[28];
            var size = (uint)address.Length;
            var isInternet = nameOf(socket, address, ref size) == 0 && (address[0] == inet || address[0] == inet6);
            return isInternet ? address[2] << 8 | address[3] : -1;
        }

        static byte[] Read(int socket, int level, int option, uint size)
        {
            var value = new byte[size];
            return getsockopt(socket, level, option, value, ref size) == 0 ? value : null;
        }

        [DllImport("libc", SetLastError = true)]
        static extern int getsockopt(int socket, int level, int option, [In, Out] byte[] value, ref uint size);

        [DllImport("libc", SetLastError = true)]
        static extern int setsockopt(int socket, int level, int option, byte[] value, uint size);

        [DllImport("libc")]
        static extern int getsockname(int socket, [In, Out] byte[] address, ref uint size);

        [DllImport("libc")]
        static extern int getpeername(int socket, [In, Out] byte[] address, ref uint size);
    }
}
