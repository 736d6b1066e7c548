//! Converts a cell's settings to a job. `wirelab_model::settings` declares constant defaults; this file has the
//! defaults that depend on other settings.

use wirelab_model::heron;
use wirelab_model::network::Address;
use wirelab_model::plan::{
    Course, Job, Load, LoadedPage, OwnServers, Reach, Requests, Target, Topology, Work, command_name, has_socket,
};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::{Connections, Exchange, Settings, TransportDefaults};
use wirelab_model::spec::{ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, Timeouts, Transport};
use wirelab_model::units::{Size, Span};
use wirelab_pages::corpus;

use crate::clients::with_divisible_clients;
use crate::control_plane::control_plane;
use crate::error::StudyError;
use crate::hosts::{Hosts, hosts, offloads};
use crate::link::{OwnPlacements, base, link};
use crate::mesh::mesh;
use crate::own_client::own_client;
use crate::page::{page, spread};
use crate::ranges::out_of_range;
use crate::site::site;

/// Resolves every default. Ignores settings that do not apply to the protocol, even if set: the stream window of
/// HTTP/1.1, the congestion control of UDP, resumption in clear text. A study can thus vary such a setting for the
/// protocols that have it; the cells of other protocols are then identical.
///
/// # Errors
/// If the protocol is missing, or settings contradict each other; the message says what to change.
pub fn job(settings: &Settings) -> Result<Job, StudyError> {
    job_among(settings, &OwnPlacements::new())
}

/// The same in a study with placements of its own.
///
/// # Errors
/// As [`job`].
pub(crate) fn job_among(settings: &Settings, own: &OwnPlacements) -> Result<Job, StudyError> {
    if let Some((_, message)) = out_of_range(settings) {
        return Err(StudyError::new(message));
    }
    let protocol = settings
        .protocol
        .ok_or_else(|| StudyError::new("no protocol is set; set it in `[workload]` or `[factors]`"))?;
    let endpoint = settings.endpoint();
    let page = page(settings, protocol)?;
    if page.is_none() && settings.recording == Some(Recording::Loads) {
        return Err(StudyError::new("`recording` is `loads`, which only a `page` has"));
    }
    if settings.recording == Some(Recording::Totals) {
        return Err(StudyError::new("`recording` is `totals`, which a `client_command` has by itself; remove it"));
    }
    let work = match page {
        Some(page) => Work::Page(LoadedPage {
            delay: settings.delay(),
            early_hints: settings.early_hints,
            priorities: settings.priorities,
            ..LoadedPage::plain(page, Size(corpus::bytes(page)))
        }),
        None => Work::Requests(requests(settings, protocol)?),
    };
    let page_hosts = page.map_or(Ok(Vec::new()), |page| spread(settings, page))?;
    let schedule = schedule(settings)?;
    let extent = extent(settings);
    let placement = settings.placement();
    let site = site(settings, protocol)?;
    let (mesh, control_plane) = (mesh(settings, protocol)?, control_plane(settings, protocol)?);
    let Hosts { network, servers, address } = hosts(settings, &placement, base(&placement, own).is_some())?;
    let link = link(settings, &placement, own)?;
    let offloads = offloads(settings, network, link.as_ref())?;
    let servers = OwnServers {
        endpoint: match &settings.server_command {
            Some(words) => command_name(words),
            None => settings.server.clone().unwrap_or_else(|| endpoint.clone()),
        },
        command: settings.server_command.clone(),
        start_timeout: settings.start_timeout(),
        protocol: server_protocol(settings, protocol)?,
        places: servers,
        nodes: settings.server_nodes.clone(),
        reach: reach(settings, address, mesh, control_plane)?,
        threads: settings.server_threads,
        // Settings that do not apply to the protocol are ignored.
        max_connection_age: settings
            .max_connection_age
            .filter(|_| (protocol.is_http() || protocol.is_grpc()) && !protocol.uses_udp()),
        added_work: Span(0),
    };
    own_server(settings, protocol)?;
    let own_client = own_client(settings, protocol)?;
    let job = with_divisible_clients(Job {
        protocol,
        client: match &own_client {
            Some(own) => command_name(&own.words),
            None => settings.client.clone().unwrap_or(endpoint),
        },
        own_client,
        topology: Topology {
            placement,
            link,
            network,
            offloads,
            client_nodes: settings.client_nodes.clone(),
            cpus: settings.cpus(),
        },
        target: site.map_or(Target::Servers(servers), Target::Site),
        work,
        load: Load {
            clients: settings.clients(),
            connections: connections(settings, protocol),
            schedule,
            extent,
            warm_up: settings.warm_up().extent(),
            until_steady: settings.warm_up().is_until_steady(),
            // Without TLS there is no session to resume.
            resumption: if protocol.is_secure() { settings.resumption() } else { Resumption::None },
            timeouts: Timeouts {
                connect_ns: settings.connect_timeout().nanos(),
                request_ns: settings.request_timeout().nanos(),
            },
            stall_timeout: settings.stall_timeout(),
            recording: match page {
                Some(_) => Recording::Loads,
                None if settings.client_command.is_some() => Recording::Totals,
                None => settings.recording.unwrap_or_else(|| recording(schedule, extent)),
            },
            threads: settings.client_threads,
        },
        transport: transport(settings, protocol),
        course: Course::Steady,
        more_observers: settings.more_observers.clone().unwrap_or_default(),
    })?;
    Ok(job.of_hosts(page_hosts))
}

/// The requests of clients that load no page.
///
/// # Errors
/// If the protocol does not support the exchange.
fn requests(settings: &Settings, protocol: Protocol) -> Result<Requests, StudyError> {
    const NOTHING: Size = Size(0);
    // The size of a remote page is unknown before the response.
    let payload = if settings.site.is_some() { NOTHING } else { settings.payload() };
    let default = match protocol {
        _ if protocol.is_http() => Exchange::Files,
        _ if protocol.is_grpc() => Exchange::Heron,
        _ => Exchange::Echo,
    };
    let foreign = |exchange: &str, whose: &str| {
        Err(StudyError::new(format!(
            "`exchange` is `{exchange}`, which {protocol} does not have; it belongs to {whose}"
        )))
    };
    let (exchange, request_size, response_size) = match settings.exchange.unwrap_or(default) {
        Exchange::Heron if protocol.is_http() || protocol.is_grpc() => {
            let (request, answer) = (heron::request(protocol, heron::NUMBER), heron::answer(protocol, heron::NUMBER));
            (Exchange::Heron, Size(request.len() as u64), Size(answer.len() as u64))
        }
        Exchange::Heron => return foreign("heron", "HTTP and gRPC"),
        other if protocol.is_grpc() => {
            return Err(StudyError::new(format!(
                "`exchange` is `{}`, which {protocol} does not have; it has `heron` only",
                other.token()
            )));
        }
        Exchange::Redirect if !protocol.is_http() => return foreign("redirect", "HTTP"),
        Exchange::Redirect => (Exchange::Redirect, NOTHING, NOTHING),
        Exchange::Echo => (Exchange::Echo, payload, payload),
        // On raw transports an empty response is invisible, because the stream has no frames; they send one byte.
        Exchange::Delay if !protocol.is_http() => (Exchange::Delay, NOTHING, Size(1)),
        Exchange::Delay => (Exchange::Delay, NOTHING, NOTHING),
        // Raw transports have no documents or paths. Their echo takes the response size from the request header, so
        // an empty request with the payload as response size moves the same bytes.
        Exchange::Files | Exchange::Bytes if !protocol.is_http() => (Exchange::Echo, NOTHING, payload),
        document => (document, NOTHING, payload),
    };
    let delay = if exchange == Exchange::Delay { settings.delay() } else { Span(0) };
    Ok(Requests { exchange, request_size, response_size, delay })
}

/// Checks the program of the user, if it is the server.
///
/// # Errors
/// If its command line has no word, or another setting contradicts it.
fn own_server(settings: &Settings, protocol: Protocol) -> Result<(), StudyError> {
    let Some(words) = &settings.server_command else { return Ok(()) };
    if words.first().is_none_or(String::is_empty) {
        return Err(StudyError::new("`server_command` has no word; write `[\"./my-server\", \"--port\", \"{port}\"]`"));
    }
    if !protocol.is_http() && !protocol.is_grpc() {
        return Err(StudyError::new(format!(
            "`server_command` is for HTTP and gRPC, and {protocol} is neither; set `protocol` to h1, h1c, h2, h2c, h3, grpc \
             or grpcc"
        )));
    }
    if has_socket(words) {
        if protocol.uses_udp() {
            return Err(StudyError::new(format!(
                "`server_command` has `{{socket}}`, but `{protocol}` uses UDP, which a Unix socket does not carry; set \
                 `protocol` to h1 or h2, or use `{{port}}`"
            )));
        }
        let of_tcp = [
            ("congestion", settings.congestion.is_some()),
            ("no_delay", settings.no_delay.is_some()),
            ("fast_open", settings.fast_open.is_some()),
            ("servers", settings.servers.is_some_and(|servers| servers.count() > 1)),
            ("address", settings.address.is_some_and(|address| address != Address::Server)),
        ];
        if let Some((key, _)) = of_tcp.into_iter().find(|(_, is_set)| *is_set) {
            return Err(StudyError::new(format!(
                "`{key}` is set, but `server_command` has `{{socket}}`, and a Unix socket has no TCP and no addresses; \
                 remove one of them"
            )));
        }
    }
    let other = [
        ("server", settings.server.is_some()),
        ("server_threads", settings.server_threads.is_some()),
        ("server_lacks", settings.server_lacks.is_some()),
        ("max_connection_age", settings.max_connection_age.is_some()),
        ("exchange", settings.exchange.is_some()),
        ("payload", settings.payload.is_some()),
        ("delay", settings.delay.is_some()),
    ];
    match other.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((key, _)) => Err(StudyError::new(format!(
            "`{key}` is set, but your program (`server_command`) does not know it; remove one of them"
        ))),
    }
}

/// The only protocol of the server, if it lacks the client's: the HTTP version that such servers do have.
///
/// # Errors
/// If servers that lack this protocol have no other one on the same port.
fn server_protocol(settings: &Settings, protocol: Protocol) -> Result<Option<Protocol>, StudyError> {
    let Some(lacks) = settings.server_lacks else { return Ok(None) };
    let other = match lacks {
        Protocol::H1 | Protocol::H3 => Protocol::H2,
        Protocol::H2 => Protocol::H1,
        other => return Err(StudyError::new(format!("`server_lacks` is `{other}`, but must be `h1`, `h2` or `h3`"))),
    };
    Ok((lacks == protocol).then_some(other))
}

/// How clients reach the servers.
///
/// # Errors
/// If clients are to resolve a name again, but connect to an address.
fn reach(
    settings: &Settings,
    address: Address,
    mesh: Option<String>,
    control_plane: Option<String>,
) -> Result<Reach, StudyError> {
    let resolves_again = settings.resolve_again();
    if resolves_again && address != Address::Headless {
        return Err(StudyError::new(
            "`resolve_again` is true, but clients connect to an address; set `address = \"headless\"` as well",
        ));
    }
    let indirect = mesh.map(Reach::Mesh).or(control_plane.map(Reach::ControlPlane));
    Ok(indirect.unwrap_or(match address {
        Address::Server => Reach::Server,
        Address::Service => Reach::Service,
        Address::Headless => Reach::Headless { resolves_again },
        Address::NodePort => Reach::NodePort,
    }))
}

fn connections(settings: &Settings, protocol: Protocol) -> ConnectionPolicy {
    let workers = settings.workers();
    match settings.connections.unwrap_or(Connections::Persistent(settings.clients())) {
        Connections::PerRequest => ConnectionPolicy::PerRequest,
        Connections::Persistent(connections) if protocol.multiplexes() => {
            let streams = settings.streams.unwrap_or_else(|| workers.div_ceil(connections));
            ConnectionPolicy::Persistent { connections, streams }
        }
        Connections::Persistent(connections) => {
            ConnectionPolicy::Persistent { connections: connections.max(workers), streams: 1 }
        }
    }
}

fn schedule(settings: &Settings) -> Result<Schedule, StudyError> {
    if let Some(rate) = settings.rate {
        return Ok(Schedule::Open { rate_per_s: rate.0, arrivals: settings.arrivals() });
    }
    let pause = match (settings.pause, settings.pause_max) {
        (None, None) => Pause::None,
        (Some(Span(0)), None) => Pause::None,
        (Some(pause), None) => Pause::Fixed { ns: pause.nanos() },
        (Some(min), Some(max)) => Pause::Uniform { min_ns: min.nanos(), max_ns: max.nanos() },
        (None, Some(_)) => {
            return Err(StudyError::new(
                "`pause_max` is set without `pause`; set the shortest pause, for example `pause = \"0 ms\"`",
            ));
        }
    };
    Ok(Schedule::Closed { workers: settings.workers(), pause })
}

fn extent(settings: &Settings) -> Extent {
    match (settings.requests, settings.duration) {
        (_, Some(duration)) => Extent::DurationNs(duration.nanos()),
        // The default depends on the work: a load of a page is many requests.
        (requests, None) => Extent::Requests(requests.unwrap_or(if settings.page.is_some() { 1 } else { 100 })),
    }
}

/// Default recording: single requests, or histograms above the limits.
fn recording(schedule: Schedule, extent: Extent) -> Recording {
    const MOST_REQUESTS: f64 = 1e6;
    const MOST_PER_SECOND: f64 = 20_000.0;
    let expected = match (extent, schedule) {
        (Extent::Requests(requests), _) => requests as f64,
        (Extent::DurationNs(ns), Schedule::Open { rate_per_s, .. }) => ns as f64 / 1e9 * rate_per_s,
        // The rate of a closed loop depends on the server, so no expectation exists.
        (Extent::DurationNs(_), Schedule::Closed { .. }) => 0.0,
    };
    let fast = matches!(schedule, Schedule::Open { rate_per_s, .. } if rate_per_s > MOST_PER_SECOND);
    if fast || expected > MOST_REQUESTS { Recording::Histograms } else { Recording::Samples }
}

fn transport(settings: &Settings, protocol: Protocol) -> Transport {
    let bytes = |size: Option<Size>| size.map(Size::bytes);
    let (multiplexes, udp) = (protocol.multiplexes(), protocol.uses_udp());
    let over_unix = settings.site_unix_socket.is_some() || settings.server_command.as_deref().is_some_and(has_socket);
    let over_tcp = !udp && !over_unix;
    // Absent values leave the choice to the library.
    let is_same = settings.transport_defaults() == TransportDefaults::Same;
    let window = |set, or_default| bytes(if is_same { Some(or_default) } else { set }).filter(|_| multiplexes);
    Transport {
        congestion: (if is_same { Some(settings.congestion()) } else { settings.congestion })
            .filter(|_| protocol != Protocol::Udp && !over_unix),
        stream_window: window(settings.stream_window, settings.stream_window()),
        connection_window: window(settings.connection_window, settings.connection_window()),
        udp_send_buffer: bytes(settings.udp_send_buffer).filter(|_| udp),
        udp_receive_buffer: bytes(settings.udp_receive_buffer).filter(|_| udp),
        max_udp_payload: settings.max_udp_payload.map(|payload| payload.0).filter(|_| udp),
        gso: settings.gso.filter(|_| udp),
        gro: settings.gro.filter(|_| udp),
        // Off is the default of every stack, so the job has it only if the study sets it.
        fast_open: settings.fast_open.filter(|_| over_tcp),
        no_delay: (if is_same { Some(settings.no_delay()) } else { settings.no_delay }).filter(|_| over_tcp),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::spec::{Arrivals, Congestion};

    use super::*;

    fn of(toml: &str) -> Job {
        job(&toml::from_str(toml).unwrap()).unwrap()
    }

    #[test]
    fn a_protocol_alone_gets_every_documented_default() {
        let job = of("protocol = 'h2'");
        assert_eq!((job.client.as_str(), job.topology.placement.as_str()), ("builtin", "local"));
        assert_eq!(job.target, Target::Servers(OwnServers::one("builtin")));
        assert_eq!(job.work, Work::Requests(Requests::document(Size(1024))));
        assert_eq!(job.load.connections, ConnectionPolicy::Persistent { connections: 1, streams: 1 });
        assert_eq!(job.load.schedule, Schedule::Closed { workers: 1, pause: Pause::None });
        assert_eq!(
            (job.load.extent, job.load.warm_up, job.load.recording),
            (Extent::Requests(100), None, Recording::Samples)
        );
        assert_eq!(job.load.timeouts, Timeouts { connect_ns: 5_000_000_000, request_ns: 10_000_000_000 });
        assert_eq!(job.load.threads, None);
        let expected = Transport {
            congestion: Some(Congestion::Cubic),
            stream_window: Some(1 << 20),
            connection_window: Some(16 << 20),
            no_delay: Some(true),
            ..Transport::default()
        };
        assert_eq!(job.transport, expected);
    }

    #[test]
    fn raw_transports_echo_or_move_the_bytes_of_a_document() {
        for (toml, exchange, [request_size, response_size], delay) in [
            ("protocol = 'tcp'\npayload = '8 KiB'", Exchange::Echo, [8192, 8192], 0),
            ("protocol = 'tcp'\npayload = '8 KiB'\nexchange = 'files'\ndelay = '1 ms'", Exchange::Echo, [0, 8192], 0),
            ("protocol = 'quic'\nexchange = 'delay'\ndelay = '1 ms'", Exchange::Delay, [0, 1], 1_000_000),
        ] {
            let (request_size, response_size, delay) = (Size(request_size), Size(response_size), Span(delay));
            let expected = Requests { exchange, request_size, response_size, delay };
            assert_eq!(of(toml).work, Work::Requests(expected), "{toml}");
        }
    }

    #[test]
    fn heron_is_a_small_call_over_http_and_the_only_exchange_of_grpc() {
        let sizes = |toml: &str| {
            let Requests { exchange, request_size, response_size, .. } = *of(toml).requests().unwrap();
            (exchange, request_size.bytes(), response_size.bytes())
        };
        assert_eq!(sizes("protocol = 'h1'\nexchange = 'heron'\npayload = '8 KiB'"), (Exchange::Heron, 0, 14));
        assert_eq!(sizes("protocol = 'grpc'\npayload = '8 KiB'"), (Exchange::Heron, 9, 9));
        assert_eq!(of("protocol = 'grpcc'").transport.stream_window, Some(1 << 20));
        for (toml, words) in [
            ("protocol = 'tcp'\nexchange = 'heron'", "`heron`, which tcp does not have; it belongs to HTTP and gRPC"),
            ("protocol = 'grpc'\nexchange = 'files'", "`files`, which grpc does not have; it has `heron` only"),
        ] {
            let message = job(&toml::from_str(toml).unwrap()).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn workers_become_streams_where_the_protocol_multiplexes_and_connections_where_not() {
        let policy = |protocol: &str, rest: &str| of(&format!("protocol = '{protocol}'\n{rest}")).load.connections;
        let persistent = |connections, streams| ConnectionPolicy::Persistent { connections, streams };
        assert_eq!(policy("h2", "workers = 100"), persistent(1, 100));
        assert_eq!(policy("h2", "workers = 100\nconnections = 3"), persistent(3, 34));
        assert_eq!(policy("h2", "workers = 100\nstreams = 10"), persistent(1, 10));
        assert_eq!(policy("h1", "workers = 100\nstreams = 10"), persistent(100, 1));
        assert_eq!(policy("udp", "workers = 2\nconnections = 5"), persistent(5, 1));
        assert_eq!(policy("h3", "connections = 'per-request'"), ConnectionPolicy::PerRequest);
    }

    #[test]
    fn inapplicable_settings_of_a_protocol_are_ignored() {
        let everything = "stream_window = '1 KiB'\ngso = true\nudp_receive_buffer = '1 MiB'\nfast_open = true\nresumption = 'resume'";
        let of = |protocol: &str| of(&format!("protocol = '{protocol}'\n{everything}"));
        let udp = of("udp");
        let expected = Transport { gso: Some(true), udp_receive_buffer: Some(1 << 20), ..Transport::default() };
        assert_eq!((udp.transport, udp.load.resumption), (expected, Resumption::None));
        let h1c = of("h1c");
        let expected = Transport {
            congestion: Some(Congestion::Cubic),
            fast_open: Some(true),
            no_delay: Some(true),
            ..Transport::default()
        };
        assert_eq!((h1c.transport, h1c.load.resumption), (expected, Resumption::None));
        assert_eq!(of("h3").load.resumption, Resumption::Resume);
        assert_eq!((of("h3").transport.fast_open, of("h3").transport.stream_window), (None, Some(1024)));
    }

    #[test]
    fn library_defaults_apply_except_for_settings_of_the_study() {
        let of = |protocol: &str| {
            of(&format!("protocol = '{protocol}'\ntransport_defaults = 'library'\nstream_window = '1 KiB'"))
        };
        assert_eq!(of("h3").transport, Transport { stream_window: Some(1024), ..Transport::default() });
        assert_eq!(of("h1").transport, Transport::default());
    }

    #[test]
    fn loops_and_pauses_are_read_as_documented() {
        let schedule = |rest: &str| of(&format!("protocol = 'h1'\n{rest}")).load.schedule;
        let open = Schedule::Open { rate_per_s: 500.0, arrivals: Arrivals::Poisson };
        assert_eq!(schedule("rate = '500/s'\nworkers = 9"), open);
        let pause = Pause::Uniform { min_ns: 0, max_ns: 2_000_000 };
        assert_eq!(schedule("pause = '0 ms'\npause_max = '2 ms'"), Schedule::Closed { workers: 1, pause });
        assert!(
            job(&toml::from_str("protocol = 'h1'\npause_max = '2 ms'").unwrap())
                .unwrap_err()
                .to_string()
                .contains("`pause`")
        );
    }

    #[test]
    fn many_requests_are_recorded_as_histograms_unless_the_study_says_otherwise() {
        let recording = |rest: &str| of(&format!("protocol = 'h1'\n{rest}")).load.recording;
        assert_eq!(recording("requests = 1_000_000"), Recording::Samples);
        assert_eq!(recording("requests = 1_000_001"), Recording::Histograms);
        assert_eq!(recording("rate = '20001/s'\nduration = '1 s'"), Recording::Histograms);
        assert_eq!(recording("rate = '10000/s'\nduration = '2 min'"), Recording::Histograms);
        assert_eq!(recording("rate = '10000/s'\nduration = '1 min'"), Recording::Samples);
        assert_eq!(recording("requests = 1_000_001\nrecording = 'samples'"), Recording::Samples);
    }
}
