//! Builds the specs of endpoints from a cell's job, addresses, ports and files.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use wirelab_lab::Addresses;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::heron;
use wirelab_model::network::SERVER_NAME;
use wirelab_model::page::{ExpectedPage, PageHost, ServedPage};
use wirelab_model::plan::{Cell, Course, Job, LoadedPage, OwnServers, Reach, Requests, Target, Trial, Work};
use wirelab_model::request::WrittenRequest;
use wirelab_model::settings::Exchange;
use wirelab_model::site::USER_AGENT;
use wirelab_model::spec::{
    ClientSpec, ClientTls, Expect, Extent, Feature, Request, Resumption, ServerSpec, ServerTls, Transport,
};
use wirelab_model::timeline::Life;
use wirelab_model::units::Span;
use wirelab_model::via::{Proxy, Via};
use wirelab_pages::{corpus, hints};

use crate::documents::{self, Documents};
use crate::error::RunError;
use crate::pki::Pki;
use crate::requests;

/// Files shared by the specs of all trials of a session.
#[derive(Debug, Clone)]
pub struct Files {
    /// Certificates.
    pub pki: Pki,
    /// Documents and digests.
    pub documents: Documents,
    /// Results file of the client; with several clients, that of the first one.
    pub results: PathBuf,
    /// File for the clients' TLS secrets, if the study keeps captures or secrets.
    pub key_log: Option<PathBuf>,
    /// Folder of the specs: `work/`, absolute.
    pub folder: PathBuf,
}

/// First port, and number of ports, for servers that share a name or service. Below the range of ephemeral ports
/// (`net.ipv4.ip_local_port_range`).
const SHARED_PORTS: (u16, u32) = (20_000, 10_000);

/// Port of the hosts of a page: their URLs have no port.
const HTTPS: u16 = 443;

/// The spec of the server with this number. Normally the kernel chooses a free port. Servers that share a name or
/// service need the same port; it changes with each trial, because the port of the previous trial may still be in
/// use. Hosts of a page have their own addresses.
#[must_use]
pub fn server(
    trial: &Trial,
    (job, own): (&Job, &OwnServers),
    number: u32,
    address: IpAddr,
    files: &Files,
) -> ServerSpec {
    let (first, count) = SHARED_PORTS;
    let shared = || first + (trial.number % count) as u16;
    // A server without the client's protocol never gets requests, so its transport keeps the defaults.
    let (protocol, transport) = match own.protocol {
        // A program of the user takes no settings.
        None if own.command.is_some() => (job.protocol, Transport::default()),
        Some(other) => (other, Transport::default()),
        None => (job.protocol, job.transport.clone()),
    };
    let hosts = job.page().map_or(&[][..], |page| &page.hosts);
    let name = hosts.get(number as usize).map_or(SERVER_NAME, String::as_str);
    let (certificate, key) = files.pki.of(name);
    let answers = files.documents.answers_of(job, number);
    ServerSpec {
        contract: CONTRACT_VERSION,
        protocol,
        address,
        // Servers with sidecars listen on their own hosts only, and a control plane sends the port with each address.
        port: if !hosts.is_empty() {
            HTTPS
        } else {
            match &own.reach {
                Reach::Server | Reach::ControlPlane(_) => 0,
                reach if reach.sidecar().is_some() => 0,
                _ => shared(),
            }
        },
        server_name: name.to_owned(),
        tls: protocol.is_secure().then(|| ServerTls {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            key_log: None,
            resumption: job.load.resumption != Resumption::None,
            early_data: job.load.resumption == Resumption::ZeroRtt,
        }),
        document_root: document_root(job, files).filter(|_| answers.is_none()),
        answers,
        features: match &job.work {
            Work::Requests(requests) => vec![feature(requests.exchange)],
            Work::Own(requests) => features(requests),
            Work::Page(_) => vec![Feature::Pages],
        },
        page: served(job, files).filter(|_| own.protocol.is_none()),
        qlog_dir: None,
        threads: own.threads,
        max_connection_age_ns: own.max_connection_age.map(Span::nanos),
        added_work_ns: Some(own.added_work.nanos()).filter(|work| *work > 0),
        counts: matches!(job.course, Course::Timeline(_)),
        exposition: None,
        transport,
    }
}

/// Results file of the client with this number.
#[must_use]
pub fn results_of(files: &Files, number: u32) -> PathBuf {
    match number {
        0 => files.results.clone(),
        _ => files.results.with_file_name(format!("results{number}.jsonl")),
    }
}

/// The spec of a client with this lifetime, for servers or a service at these addresses and this port.
///
/// # Errors
/// If the cell is not part of the plan that the documents were created for.
pub fn client(
    trial: &Trial,
    cell: &Cell,
    addresses: &Addresses,
    life: &Life,
    port: u16,
    files: &Files,
) -> Result<ClientSpec, RunError> {
    let (job, load) = (&cell.job, cell.job.load.of_one_client());
    // Clients know their servers individually only through a name.
    let (is_headless, resolves) = match job.servers().map(|own| &own.reach) {
        Some(Reach::Headless { resolves_again }) => (true, *resolves_again),
        _ => (false, false),
    };
    let mix = requests::of_cell(job)?;
    let found = life.serving.iter().filter(|_| is_headless);
    let named: Vec<_> = found.filter_map(|number| addresses.servers.get(*number as usize).copied()).collect();
    Ok(ClientSpec {
        contract: CONTRACT_VERSION,
        protocol: job.protocol,
        address: named.first().copied().unwrap_or(addresses.connect),
        addresses: named,
        resolves,
        discovers: job.control_plane().is_some(),
        port,
        via: via(job)?,
        server_name: match (&job.target, job.page().and_then(|page| page.hosts.first())) {
            (Target::Site(site), _) => site.host.clone(),
            (Target::Servers(_), Some(first)) => first.clone(),
            (Target::Servers(_), None) => SERVER_NAME.to_owned(),
        },
        tls: job.protocol.is_secure().then(|| ClientTls {
            trust_anchor: trust_anchor(job, files),
            verify: true,
            key_log: files.key_log.clone(),
            identity: None,
            version: Default::default(),
        }),
        request: match (&job.target, &job.work) {
            (_, Work::Own(_)) => match mix.first().and_then(|request| request.variants.first()) {
                Some(first) => Request { body: None, ..first.clone() },
                None => get("/", Vec::new()),
            },
            (Target::Site(site), _) => get(&site.path, vec![("user-agent".to_owned(), USER_AGENT.to_owned())]),
            (Target::Servers(_), Work::Page(page)) => get(&files.documents.path_of(page), Vec::new()),
            (Target::Servers(_), Work::Requests(requests)) => request(cell, requests, &files.documents)?,
        },
        page: job.page().map(|page| expected(page, addresses)),
        mix,
        connections: load.connections,
        schedule: load.schedule,
        extent: match load.extent {
            Extent::DurationNs(_) => Extent::DurationNs(life.until_ns - life.from_ns),
            requests @ Extent::Requests(_) => requests,
        },
        ramp: Vec::new(),
        warm_up: load.warm_up,
        until_steady: load.until_steady,
        resumption: load.resumption,
        timeouts: load.timeouts,
        seed: trial.seed,
        recording: load.recording,
        results: files.results.clone(),
        qlog_dir: None,
        threads: load.threads,
        exposition: None,
        transport: match job.work {
            Work::Requests(_) | Work::Own(_) => job.transport.clone(),
            // Browsers choose their own transport settings.
            Work::Page(_) => Transport::default(),
        },
    })
}

/// The way to a server that wirelab does not start; `None` if it is direct.
fn via(job: &Job) -> Result<Option<Via>, RunError> {
    let Some(site) = job.site() else { return Ok(None) };
    if let Some(path) = &site.unix_socket {
        // Absolute, because endpoints run in their own folder.
        return Ok(Some(Via::UnixSocket(std::path::absolute(path).unwrap_or_else(|_| path.clone()))));
    }
    let Some(url) = &site.proxy else { return Ok(None) };
    Ok(Some(Via::Proxy(Proxy {
        scheme: url.scheme,
        host: url.host.clone(),
        port: url.port,
        server: site.address,
        credentials: requests::of_proxy(url)?,
    })))
}

/// Folder of the documents that a server delivers; `None` if it generates its responses.
fn document_root(job: &Job, files: &Files) -> Option<PathBuf> {
    let page = match &job.work {
        Work::Requests(requests) if requests.exchange != Exchange::Files => return None,
        Work::Own(_) => return None,
        Work::Requests(_) => None,
        Work::Page(page) => Some(page.name),
    };
    Some(files.documents.root_of(page).to_owned())
}

/// Page features of a server besides files; `None` if the study sets none of them, so that every server is usable.
fn served(job: &Job, files: &Files) -> Option<ServedPage> {
    let page = job.page()?;
    let is_asked = page.early_hints.is_some() || page.priorities.is_some() || page.delay > Span(0);
    is_asked.then(|| ServedPage {
        document: files.documents.path_of(page).split('?').next().unwrap_or_default().to_owned(),
        think_ns: page.delay.nanos(),
        early_hints: if page.early_hints == Some(true) { hints(page.name) } else { Vec::new() },
        priorities: page.priorities,
    })
}

/// Expectations for a page load.
fn expected(page: &LoadedPage, addresses: &Addresses) -> ExpectedPage {
    let files = corpus::files(page.name);
    let is_known = page.name.is_made();
    let requests = |files: usize| is_known.then(|| u32::try_from(files).unwrap_or(u32::MAX));
    let places = corpus::spread(&files, page.hosts.len().max(1));
    let host = |(number, (name, address)): (usize, (&String, &IpAddr))| {
        let own = || files.iter().zip(&places).filter(|(_, place)| **place == number).map(|(file, _)| file.size);
        let body_bytes: Option<u64> = is_known.then(|| own().sum());
        PageHost { name: name.clone(), address: *address, requests: requests(own().count()), body_bytes }
    };
    ExpectedPage {
        requests: requests(files.len()),
        body_bytes: is_known.then(|| files.iter().map(|file| file.size).sum()),
        hosts: page.hosts.iter().zip(&addresses.servers).enumerate().map(host).collect(),
        early_hints: page.early_hints == Some(true),
        har: None,
        film: None,
        netlog_dir: None,
    }
}

/// Certificate that the client trusts. Absolute, because endpoints run in their own folder.
fn trust_anchor(job: &Job, files: &Files) -> Option<PathBuf> {
    match &job.target {
        Target::Site(site) => {
            site.trust_anchor.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()))
        }
        Target::Servers(_) => Some(files.pki.trust_anchor.clone()),
    }
}

/// A request without expected content: for remote pages, whose content is unknown, and for pages in browsers, where
/// one response does not suffice as a check.
fn get(path: &str, headers: Vec<(String, String)>) -> Request {
    Request { method: "GET".to_owned(), path: path.to_owned(), body_size: 0, body: None, headers, expect: None }
}

/// Writes a spec file for an endpoint.
pub(crate) fn write<T: serde::Serialize>(path: &Path, spec: &T) -> Result<(), RunError> {
    let text = serde_json::to_vec_pretty(spec)
        .map_err(|error| RunError::Refused { why: format!("a spec cannot be written as JSON: {error}") })?;
    // Requests of the user may hold secrets.
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(true).write(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(&text)).map_err(RunError::io("cannot write the spec", path))
}

/// Features that a server needs for requests of the user.
fn features(requests: &[WrittenRequest]) -> Vec<Feature> {
    let needs = |path: &str| requests.iter().any(|request| request.path().starts_with(path));
    let all = [("/bytes/", Feature::Bytes), ("/echo", Feature::Echo), ("/delay/", Feature::Delay)];
    all.into_iter().filter(|(path, _)| needs(path)).map(|(_, feature)| feature).collect()
}

/// Feature that a server needs for an exchange.
const fn feature(exchange: Exchange) -> Feature {
    match exchange {
        Exchange::Files => Feature::Files,
        Exchange::Bytes => Feature::Bytes,
        Exchange::Echo => Feature::Echo,
        Exchange::Delay => Feature::Delay,
        Exchange::Redirect => Feature::Redirect,
        Exchange::Heron => Feature::Heron,
    }
}

/// The request of a cell. Clients of raw transports convert the delay in the path to a header field; gRPC clients
/// convert the number.
fn request(cell: &Cell, requests: &Requests, documents: &Documents) -> Result<Request, RunError> {
    let size = requests.response_size.bytes();
    let path = match requests.exchange {
        Exchange::Files => format!("/{}", documents::name(size)),
        Exchange::Bytes => format!("/bytes/{size}"),
        Exchange::Echo => "/echo".to_owned(),
        Exchange::Delay => format!("/delay/{}", requests.delay.nanos() / 1000),
        Exchange::Redirect => "/redirect".to_owned(),
        Exchange::Heron => heron::path(heron::NUMBER),
    };
    let sha256 = match requests.exchange {
        Exchange::Heron => Some(documents::digest_of(&heron::answer(cell.job.protocol, heron::NUMBER))),
        _ => documents.digest(size).map(str::to_owned),
    };
    let sha256 = sha256.ok_or_else(|| RunError::Refused {
        why: format!("the cell `{}` is not in the plan that the run was prepared for", cell.label()),
    })?;
    Ok(Request {
        method: if requests.exchange == Exchange::Echo { "POST" } else { "GET" }.to_owned(),
        path,
        body_size: requests.request_size.bytes(),
        body: None,
        headers: Vec::new(),
        expect: Some(Expect { status: 200, body_size: size, sha256 }),
    })
}

#[cfg(test)]
mod tests {
    use wirelab_model::page::PageName;
    use wirelab_model::protocol::Protocol;
    use wirelab_model::timeline::Lifetimes;
    use wirelab_model::units::Size;

    use super::*;
    use crate::fixture::{cell, plan};

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    const TRIAL: Trial = Trial { number: 0, block: 0, position: 0, cell: 0, seed: 9 };

    fn files(folder: &Path, cell: &Cell) -> Files {
        let plan = plan(vec![cell.clone()]);
        Files {
            pki: Pki::create(
                folder,
                &[ADDRESS],
                cell.job.page().map_or(&[][..], |page| &page.hosts).iter().map(String::as_str),
            )
            .unwrap(),
            documents: Documents::create(folder.join("documents"), &plan).unwrap(),
            results: folder.join("results"),
            key_log: Some(folder.join("keys")),
            folder: folder.to_owned(),
        }
    }

    fn specs(cell: &Cell) -> (ServerSpec, ClientSpec) {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), cell);
        let addresses = Addresses { servers: vec![ADDRESS], connect: ADDRESS };
        let life = &Lifetimes::of(&cell.job).clients[0];
        let own = cell.job.servers().unwrap();
        (
            server(&TRIAL, (&cell.job, own), 0, ADDRESS, &files),
            client(&TRIAL, cell, &addresses, life, 4433, &files).unwrap(),
        )
    }

    #[test]
    fn each_exchange_has_its_request_and_its_feature() {
        for (exchange, method, path, expected, feature) in [
            (Exchange::Files, "GET", "/1024.bin", 1024, Feature::Files),
            (Exchange::Bytes, "GET", "/bytes/1024", 1024, Feature::Bytes),
            (Exchange::Echo, "POST", "/echo", 1024, Feature::Echo),
            (Exchange::Delay, "GET", "/delay/1500", 0, Feature::Delay),
            // Response of a raw transport after a delay.
            (Exchange::Delay, "GET", "/delay/1500", 1, Feature::Delay),
        ] {
            let mut cell = cell();
            let (delay, document) = (Span(1_500_000), Requests::document(Size(expected)));
            cell.job.work = Work::Requests(Requests { exchange, delay, ..document });
            let (server, client) = specs(&cell);
            let expect = client.request.expect.unwrap();
            assert_eq!((client.request.method.as_str(), client.request.path.as_str()), (method, path));
            assert_eq!((expect.body_size, expect.sha256), (expected, documents::digest(expected)));
            assert_eq!(server.features, [feature]);
            assert_eq!(server.document_root.is_some(), exchange == Exchange::Files);
            assert_eq!((client.port, client.seed), (4433, 9));
        }
    }

    #[test]
    fn a_page_is_requested_with_the_types_of_its_files() {
        let mut cell = cell();
        let mut page = LoadedPage::plain(PageName::Small10, Size(0));
        cell.job.work = Work::Page(page.clone());
        let (server, client) = specs(&cell);
        assert_eq!(server.features, [Feature::Pages]);
        assert!(
            server
                .document_root
                .is_some_and(|root| root.join("small-10").join("index.html").ends_with(&client.request.path[1..]))
        );
        assert_eq!(client.page.map(|page| (page.requests, page.early_hints, page.har)), Some((Some(11), false, None)));
        assert_eq!(server.page, None, "every server can");
        // Both levels of a factor use the same server; one of them sends hints.
        for early_hints in [false, true] {
            (page.early_hints, page.delay) = (Some(early_hints), Span(5));
            cell.job.work = Work::Page(page.clone());
            let (server, client) = specs(&cell);
            let served = server.page.unwrap();
            assert_eq!((served.document.as_str(), served.think_ns), ("/small-10/index.html", 5));
            assert_eq!(served.early_hints.is_empty(), !early_hints);
            assert_eq!(client.page.map(|page| page.early_hints), Some(early_hints));
        }
    }

    #[test]
    fn each_host_of_a_page_has_a_server_with_its_name_and_the_client_knows_what_each_has() {
        let mut cell = cell();
        cell.job.work = Work::Page(LoadedPage::plain(PageName::Today, Size(0)));
        cell.job = cell.job.of_hosts(wirelab_model::page::host_names(3));
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), &cell);
        let addresses: Vec<IpAddr> = (2..5).map(|last| IpAddr::from([10, 77, 0, last])).collect();
        for (number, address) in (0..).zip(&addresses) {
            let server = server(&TRIAL, (&cell.job, cell.job.servers().unwrap()), number, *address, &files);
            assert_eq!((&server.server_name, server.port), (&cell.job.page().unwrap().hosts[number as usize], 443));
            assert_eq!((server.address, server.document_root), (*address, None));
            assert!(server.answers.is_some_and(|list| list.is_file()), "{number}");
            assert_eq!(server.tls.unwrap().certificate, files.pki.of(&server.server_name).0);
        }
        let addresses = Addresses { connect: addresses[0], servers: addresses };
        let life = &Lifetimes::of(&cell.job).clients[0];
        let client = client(&TRIAL, &cell, &addresses, life, 443, &files).unwrap();
        assert_eq!((client.server_name.as_str(), client.addresses.len()), ("wirelab.test", 0));
        let page = client.page.unwrap();
        let sum = |of: fn(&PageHost) -> Option<u64>| page.hosts.iter().map(of).sum::<Option<u64>>();
        assert_eq!(sum(|host| host.requests.map(u64::from)), page.requests.map(u64::from));
        assert_eq!(sum(|host| host.body_bytes), page.body_bytes);
        assert_eq!(page.hosts.iter().map(|host| host.address).collect::<Vec<_>>(), addresses.servers);
    }

    #[test]
    fn the_answer_of_heron_is_expected_as_text_or_as_a_message() {
        for (protocol, size, sha256) in [
            (Protocol::H3, 14, documents::digest_of(b"1.414213562373")),
            (Protocol::Grpc, 9, documents::digest_of(&[9, 0xcc, 0x3b, 0x7f, 0x66, 0x9e, 0xa0, 0xf6, 0x3f])),
        ] {
            let mut cell = cell();
            let requests = Requests { exchange: Exchange::Heron, ..Requests::document(Size(size)) };
            (cell.job.protocol, cell.job.work) = (protocol, Work::Requests(requests));
            let (server, client) = specs(&cell);
            assert_eq!((client.request.method.as_str(), client.request.path.as_str()), ("GET", "/heron/2"));
            assert_eq!(client.request.expect, Some(Expect { status: 200, body_size: size, sha256 }));
            assert_eq!(server.features, [Feature::Heron]);
        }
    }

    #[test]
    fn certificates_are_given_exactly_where_the_protocol_has_tls() {
        for protocol in Protocol::ALL {
            let mut cell = cell();
            (cell.job.protocol, cell.job.load.resumption) = (protocol, Resumption::ZeroRtt);
            let (server, client) = specs(&cell);
            assert_eq!((server.tls.is_some(), client.tls.is_some()), (protocol.is_secure(), protocol.is_secure()));
            // The client's secrets suffice to decrypt both directions.
            assert_eq!(client.tls.is_some_and(|tls| tls.key_log.is_some()), protocol.is_secure());
            assert!(server.tls.as_ref().is_none_or(|tls| tls.key_log.is_none()));
            assert!(server.tls.is_none_or(|tls| tls.resumption && tls.early_data));
        }
    }
}
