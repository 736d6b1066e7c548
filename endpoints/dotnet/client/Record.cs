using System.Globalization;
using System.Text;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>One request, as the client saw it. It has no references. A moment that did not happen is 0.</summary>
    struct Record
    {
        public long Intended, Start, Connected, Ready, FirstByte, End;
        public long BytesIn, BytesOut;
        public int Connection, Status;
        public bool Opened;
        public Handshake Handshake;
        public Kind Error;

        public void AppendJson(StringBuilder line, long zero)
        {
            line.Append('{');
            Moment(line, "intended_ns", Intended, zero);
            Moment(line, "start_ns", Start, zero);
            Moment(line, "connected_ns", Connected, zero);
            Moment(line, "handshake_ns", Ready, zero);
            Moment(line, "first_byte_ns", FirstByte, zero);
            Moment(line, "last_byte_ns", End, zero);
            Number(line, "bytes_out", BytesOut);
            Number(line, "bytes_in", BytesIn);
            if (Status != 0)
            {
                Number(line, "status", Status);
            }
            Number(line, "connection", Connection);
            if (Handshake != Handshake.None)
            {
                line.Append(",\"handshake\":\"").Append(Handshake.Token()).Append('"');
            }
            if (Error != Kind.None)
            {
                line.Append(",\"error\":\"").Append(Error.Token()).Append('"');
            }
            line.Append("}\n");
        }

        static void Moment(StringBuilder line, string name, long at, long zero)
        {
            if (at != 0)
            {
                Number(line, name, at - zero);
            }
        }

        static void Number(StringBuilder line, string name, long value)
        {
            if (line[line.Length - 1] != '{')
            {
                line.Append(',');
            }
            line.Append('"').Append(name).Append("\":").Append(value.ToString(CultureInfo.InvariantCulture));
        }
    }
}
