using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading.Tasks;
using Wirelab.Client;
using Wirelab.Contract;
using Wirelab.Server;

namespace Wirelab
{
    /// <summary>An endpoint of wirelab: HTTP by Kestrel and by HttpClient. See README.md.</summary>
    static class Program
    {
        const string Name = "dotnet";

        static readonly string[] Features = { "files", "pages", "echo", "bytes", "delay", "redirect", "heron" };

        static IEnumerable<string> FeaturesOfServer => Features.Where(feature => feature != "echo" || Site.CanEcho);

        static async Task Main(string[] arguments)
        {
            if (arguments.SequenceEqual(new[] { "describe" }))
            {
                Describe();
            }
            else if (arguments.Length == 3 && (arguments[0] == "server" || arguments[0] == "client") && arguments[1] == "--spec")
            {
                await Play(arguments[0], arguments[2]);
            }
            else
            {
                Console.Error.WriteLine($"usage: {Name} describe | server --spec FILE | client --spec FILE");
                Environment.Exit(2);
            }
        }

        static async Task Play(string role, string path)
        {
            try
            {
                var fields = Spec.Read(path);
                if (role == "server")
                {
                    await ServerRole.Run(new ServerSpec(fields, Protocols(ServerRole.HasHttp3), FeaturesOfServer.ToArray()));
                }
                else
                {
                    await ClientRole.Run(new ClientSpec(fields, Protocols(ClientRole.HasHttp3)));
                }
            }
            catch (Exception error)
            {
                Events.Fail(error);
            }
            // Not a return: a task that waits for a peer must not delay the exit.
            Environment.Exit(0);
        }

        static string[] Protocols(bool http3)
        {
            var all = new[] { "h1c", "h1", "h2c", "h2" };
            return http3 ? all.Append("h3").ToArray() : all;
        }

        static void Describe()
        {
            Dictionary<string, object> Abilities(bool http3, IEnumerable<string> features) =>
                new Dictionary<string, object> { ["protocols"] = Protocols(http3), ["features"] = features };
            Events.Print(new Dictionary<string, object>
            {
                ["contract"] = Spec.Version,
                ["name"] = Name,
                ["library"] = "Kestrel, HttpClient",
                ["version"] = RuntimeInformation.FrameworkDescription,
                ["language"] = "C#",
                ["server"] = Abilities(ServerRole.HasHttp3, FeaturesOfServer),
                ["client"] = Abilities(ClientRole.HasHttp3, Features),
            });
        }
    }
}
