using System.Text.Json;

namespace Wirelab.Contract
{
    /// <summary>When requests are sent: by a closed loop of workers, or an open one of arrivals.</summary>
    sealed class Schedule
    {
        public readonly bool IsOpen;
        public readonly int Workers;
        /// <summary>Whether there is a pause between a response and the next request, and its bounds.</summary>
        public readonly bool Pauses;
        public readonly long MinPause, MaxPause;
        /// <summary>Arrivals per second, at equal intervals or random ones.</summary>
        public readonly double Rate;
        public readonly bool IsPoisson;

        public Schedule(Fields fields)
        {
            IsOpen = fields.Choose("loop", "closed", "open") == "open";
            if (IsOpen)
            {
                var rate = fields.Take("rate_per_s");
                Rate = rate.ValueKind == JsonValueKind.Number && rate.GetDouble() > 0 && rate.GetDouble() <= 1e9
                    ? rate.GetDouble()
                    : throw fields.Wrong("rate_per_s", rate, "more than 0, up to 1e9");
                IsPoisson = fields.Choose("arrivals", "uniform", "poisson") == "poisson";
            }
            else
            {
                Workers = (int)fields.Count("workers", 1, int.MaxValue);
                if (fields.Has("pause"))
                {
                    (Pauses, MinPause, MaxPause) = ReadPause(fields.Inner("pause"));
                }
            }
            fields.End();
        }

        static (bool, long, long) ReadPause(Fields fields)
        {
            long Length(string name) => fields.Count(name, 0, long.MaxValue / 4);
            (bool, long, long) pause;
            switch (fields.Choose("kind", "none", "fixed", "uniform"))
            {
                case "fixed":
                    var length = Length("ns");
                    pause = (true, length, length);
                    break;
                case "uniform":
                    pause = (true, Length("min_ns"), Length("max_ns"));
                    break;
                default:
                    pause = (false, 0, 0);
                    break;
            }
            fields.End();
            return pause.Item2 <= pause.Item3 ? pause : throw new Unsupported("pause: `min_ns` is above `max_ns`");
        }
    }

    /// <summary>A number of requests, or a duration where that is 0.</summary>
    sealed class Extent
    {
        public readonly long Requests, DurationNs;

        public Extent(Fields fields)
        {
            if (fields.Has("requests"))
            {
                Requests = fields.Count("requests", 1, long.MaxValue);
            }
            else
            {
                DurationNs = fields.Count("duration_ns", 1, long.MaxValue / 4);
            }
            fields.End();
        }
    }
}
