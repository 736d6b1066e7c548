//! Arguments of `wirelab load`, and the options by which `load` and `probe` reach a server.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use wirelab_model::datagram::DatagramPayload;
use wirelab_model::protocol::Protocol;
use wirelab_model::ramp::Ramp;
use wirelab_model::requirement::Statement;
use wirelab_model::spec::Arrivals;
use wirelab_model::units::{Frequency, Size, Span};
use wirelab_model::warm_up::WarmUp;

use super::{MixArgs, RequestArgs, ShowArgs};

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("extent").args(["requests", "duration"])))]
#[command(group(ArgGroup::new("open_loop").args(["rate", "find_rate", "steps", "ramp"]).multiple(true)))]
#[command(after_help = "Examples:
  wirelab load https://localhost:8443/          HTTP/2, one request at a time, 10 s
  wirelab load --protocol h2 -c 10 -m 10 -d 10s https://localhost:8443/
                                                10 connections with 10 streams each
  wirelab load --protocol h3 --rate 500/s -d 30s https://localhost:8443/
                                                open loop with 500 requests per second
  wirelab load --find-rate 'p99 at most 50 ms' -c 50 -d 5s https://localhost:8443/
                                                the highest rate with a P99 of at most 50 ms
  wirelab load --steps 100/s,200/s,400/s -c 50 -d 5s https://localhost:8443/
                                                latency at three rates
  wirelab load --ramp '0..500/s in 30 s, 500/s for 1 min' -c 50 https://localhost:8443/
                                                a load that rises, with the values of each second
  wirelab load --fail-on 'p99 > 50 ms' --fail-on 'errors > 0.1 %' https://localhost:8443/
                                                exit status 3 if this load shows one of them
  wirelab load --every 1s -d 1m https://localhost:8443/
                                                the percentiles and failures of each second
  wirelab load --protocol h1 --new-connections -n 1000 https://localhost:8443/
  wirelab load --body @order.json -H 'authorization: Bearer {{env.TOKEN}}' https://localhost/api
                                                POST of a file, with a token from the environment
  wirelab load --weights 9,1 https://localhost:8443/items https://localhost:8443/cart
  wirelab load -p grpc --body '{\"sku\": 7}' https://localhost:8443/shop.Cart/Put
                                                a gRPC call, with the types by reflection
  wirelab load -p grpcc --protoset shop.pb --body '[{\"sku\": 7}]' http://localhost:8080/shop.Cart/Add
                                                a call with a stream of one message
  wirelab load --unix-socket /run/api.sock http://localhost/health
  wirelab load --proxy 'http://me:{{env.PROXY_PASSWORD}}@gate.example:3128' https://api.example/

Latency counts from the intended start of each request, so stalls of the server are included (no coordinated \
omission). Send load only to servers that you own. A host outside this machine and private networks needs \
--i-may-load-these-hosts. docs/load-and-probe.md describes the measurement and the output of --json.")]
pub struct LoadArgs {
    /// The URL, http:// or https://; several URLs of one server share the load
    #[arg(value_name = "URL", required_unless_present_any = ["curl", "targets", "har"], conflicts_with_all = ["curl", "targets", "har"])]
    pub urls: Vec<String>,
    /// The protocol: h1, h1c, h2, h2c, h3, grpc or grpcc; default: h2 for https, h1c for http. With grpc (grpcc: clear
    /// text) the path of the URL is a method, such as `/package.Service/Method`, --body is the message as JSON (or
    /// @FILE, an encoded message), and every request is one call
    #[arg(long, short)]
    pub protocol: Option<Protocol>,
    /// Number of persistent connections
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,
    /// Concurrent requests on each connection (HTTP/2 and HTTP/3)
    #[arg(long, short = 'm', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub streams: u32,
    /// Open a new connection for every request; -c is then the number of concurrent requests
    #[arg(long)]
    pub new_connections: bool,
    /// TLS session resumption of new connections
    #[arg(long, value_enum, default_value_t = ResumptionArg::None, requires = "new_connections")]
    pub resumption: ResumptionArg,
    /// With gRPC, write the descriptors that the server reports (reflection) to this file, for `protoset` of a study
    #[arg(long, value_name = "FILE", conflicts_with = "protoset")]
    pub save_protoset: Option<PathBuf>,
    /// Number of requests to send
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Duration of the load, for example 10s; default: 10 s
    #[arg(long, short)]
    pub duration: Option<Span>,
    /// The warm-up, which is not measured: a number of requests, a time such as 300ms, or "until steady". The last one
    /// ends when response times are steady, after 5 s at the latest ("until steady within 10 s" sets this limit)
    #[arg(long, value_name = "REQUESTS|TIME|WORDS", default_value_t = WarmUp::Requests(0))]
    pub warm_up: WarmUp,
    /// Send requests at this rate without waiting for responses (open loop), for example 500/s
    #[arg(long, short)]
    pub rate: Option<Frequency>,
    /// Distribution of the intervals between the requests of an open loop
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Poisson, requires = "open_loop")]
    pub arrivals: ArrivalsArg,
    /// Find the highest rate that meets this: 'p99 at most 50 ms', 'errors at most 0.1 %'; repeatable. Each step takes
    /// --duration; the first one has the rate of --rate (default: 100/s)
    #[arg(long, value_name = "REQUIREMENT", conflicts_with_all = ["requests", "samples", "hdr", "fail_on"])]
    pub find_rate: Vec<Statement>,
    /// One load after another, each with one of these rates and of --duration, in an open loop: '100/s,200/s,400/s'
    #[arg(long, value_name = "RATES", value_delimiter = ',',
          conflicts_with_all = ["requests", "rate", "find_rate", "every", "samples", "hdr"])]
    pub steps: Vec<Frequency>,
    /// One load whose rate changes, in an open loop: stages with a linear or constant rate, one after the other,
    /// '0..500/s in 30 s, 500/s for 1 min'. The result has the values of each interval, which are those of --every
    /// (default: 1 s); --fail-on judges each interval
    #[arg(long, value_name = "STAGES",
          conflicts_with_all = ["requests", "duration", "warm_up", "rate", "find_rate", "steps"])]
    pub ramp: Option<Ramp>,
    /// The client; default: `engine`
    #[arg(long, value_enum)]
    pub client: Option<ClientArg>,
    /// Number of client threads
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub mix: MixArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Follow at most this many redirects of the URL before the load, and measure the last URL. A redirect during the
    /// load is a failure
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=20),
          conflicts_with_all = ["connect_to", "unix_socket", "curl", "targets", "har", "request_file", "weights"])]
    pub follow: Option<u32>,
    /// The largest UDP payload, with h3: QUIC searches for sizes up to it, as far as path and server carry them. The
    /// loopback interface carries 65507 B. Default: 1452 B, as on Ethernet
    #[arg(long, value_name = "SIZE", value_parser = payload)]
    pub max_udp_payload: Option<DatagramPayload>,
    /// Deadline of a connection's handshake
    #[arg(long, default_value = "5 s")]
    pub connect_timeout: Span,
    /// Print the requests of every such interval while the load runs: a line, or with --json an object on a line of its
    /// own, before the result. At least 100 ms
    #[arg(long, value_name = "TIME", conflicts_with = "find_rate")]
    pub every: Option<Span>,
    /// Write one record for each request to this file, as JSON lines (contract/schema/sample.schema.json)
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Write the distribution of response times to this file, for HdrHistogram's plotter (.hgrm, milliseconds)
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Exit status 3 if this load has such a value, or does not measure it: 'p99 > 50 ms', 'errors > 0.1 %', 'rate <
    /// 900/s'; repeatable. Default: 'errors > 50 %', because the median response time is then infinite
    #[arg(long, value_name = "CONDITION", value_parser = Statement::from_failure)]
    pub fail_on: Vec<Statement>,
    /// Send load to a host outside this machine and private networks: you own it, or may send load to it
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    /// The seed of random arrivals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// The address of a server and the trust in its certificate.
#[derive(Debug, Args)]
pub struct ReachArgs {
    /// Trust this certificate authority (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// The client's own certificate chain (PEM), for a server that asks for one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The version of TLS
    #[arg(long, value_enum, default_value_t = TlsArg::Tls13, value_name = "VERSION")]
    pub tls: TlsArg,
    /// Connect to this address instead of looking up the host of the URL
    #[arg(long, value_name = "ADDRESS")]
    pub connect_to: Option<IpAddr>,
    /// Connect to this address if the URL has this host and port, as curl does; repeatable
    #[arg(long, value_name = "HOST:PORT:ADDRESS", conflicts_with = "connect_to")]
    pub resolve: Vec<Resolve>,
    /// Connect to this Unix socket, at which the server listens; the URL still gives scheme, host and path
    #[arg(long, value_name = "PATH", conflicts_with_all = ["proxy", "connect_to", "resolve"])]
    pub unix_socket: Option<PathBuf>,
    /// Connect through this proxy, by a tunnel for each connection: `http://HOST:PORT`, `socks5://HOST:PORT`, or
    /// `socks5h://HOST:PORT`, where the proxy looks up the host of the URL, as with http. `USER:PASSWORD@` before the
    /// host signs in; `{{env.NAME}}` and `{{file.PATH}}` stand for secrets there. The time until the connection stands
    /// includes the proxy's answers. Variables such as `HTTPS_PROXY` have no effect
    #[arg(long, value_name = "URL")]
    pub proxy: Option<String>,
    /// Deadline of a request, including its connection
    #[arg(long, default_value = "10 s")]
    pub timeout: Span,
}

/// A value of `--resolve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// The host of a URL.
    pub host: String,
    pub port: u16,
    /// The address of both.
    pub address: IpAddr,
}

/// A text that is no value of `--resolve`.
#[derive(Debug)]
pub struct NotResolve(String);

impl fmt::Display for NotResolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not HOST:PORT:ADDRESS, such as `example.org:443:127.0.0.1`", self.0)
    }
}

impl std::error::Error for NotResolve {}

impl FromStr for Resolve {
    type Err = NotResolve;

    fn from_str(text: &str) -> Result<Self, NotResolve> {
        let wrong = || NotResolve(text.to_owned());
        let (host, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (port, address) = rest.split_once(':').ok_or_else(wrong)?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        match (port.parse(), address.parse()) {
            (Ok(port), Ok(address)) if !host.is_empty() => Ok(Self { host: host.to_lowercase(), port, address }),
            _ => Err(wrong()),
        }
    }
}

/// [`wirelab_model::spec::TlsVersion`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TlsArg {
    /// TLS 1.2, for HTTP/1.1 and HTTP/2
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3
    #[value(name = "1.3")]
    Tls13,
}

/// Reads --max-udp-payload. RFC 9000, section 14: a QUIC path carries 1200 bytes.
fn payload(text: &str) -> Result<DatagramPayload, String> {
    let size: Size = text.parse().map_err(|error| format!("{error}"))?;
    match u16::try_from(size.bytes()) {
        Ok(bytes @ 1200..=65_527) => Ok(DatagramPayload(bytes)),
        _ => Err("expected a size from 1200 B to 65527 B".to_owned()),
    }
}

/// The clients that can send load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientArg {
    /// The load engine: the least processor time per request
    Engine,
    /// The built-in endpoint: common libraries, which it measures with the protocol
    Builtin,
}

/// [`wirelab_model::spec::Resumption`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResumptionArg {
    /// Every handshake is a full one
    None,
    /// TLS session tickets
    Resume,
    /// Session tickets and 0-RTT data
    ZeroRtt,
}

/// [`wirelab_model::spec::Arrivals`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// Equal intervals
    Uniform,
    /// A Poisson process
    Poisson,
}

impl From<ArrivalsArg> for Arrivals {
    fn from(arg: ArrivalsArg) -> Self {
        match arg {
            ArrivalsArg::Uniform => Self::Uniform,
            ArrivalsArg::Poisson => Self::Poisson,
        }
    }
}
