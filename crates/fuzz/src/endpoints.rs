//! What endpoints, programs of users and agents on other hosts say.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use wirelab_agent::{Call, Ended, Piece, Remote, State, Stream, Watcher, measure_path};
use wirelab_endpoint::own_client::output::Patterns;
use wirelab_lab::{LabError, endpoints};
use wirelab_model::totals::Printed;

use crate::Target;
use crate::bytes::{part, pieces, text, texts, with_part};

pub const TARGETS: &[Target] = &[
    Target { name: "endpoint-toml", seeds: manifests, read: manifest },
    Target { name: "own-output", seeds: outputs, read: output },
    Target { name: "agent", seeds: agents, read: agent },
];

fn manifests() -> Vec<Vec<u8>> {
    texts(&[
        include_str!("../../../endpoints/_template/endpoint.toml"),
        "name = \"a\"\ncommand = [\"{installed}/endpoint\"]\nenvironment = { X = \"1\" }\n[install]\nlanguage = \"Go\"\n\
         library = \"net/http 1\"\nset = \"core\"\nneeds = [{ program = \"go\", remedy = \"install Go\" }]\n\
         with = [\"../_go\"]\nsteps = [[\"go\", \"build\"]]\nversion_steps = [[\"go\", \"get\", \"a@{version}\"]]\n",
    ])
}

fn manifest(input: &[u8]) {
    let (text, path) = (text(input), Path::new("endpoint.toml"));
    let _ = endpoints::parse(&text, path, "a", None);
    let _ = endpoints::parse(&text, path, "a", Some("1.2"));
}

fn outputs() -> Vec<Vec<u8>> {
    texts(&["  50%  635.91us\n  90% 1.5 ms\n1000 requests in 2.5s, failed: 3\n", "50% 1e300secs\n-1 requests"])
}

fn output(input: &[u8]) {
    let text = text(input);
    for (value, pattern) in [
        (Printed::ResponseMedian, r"50%\s+(\S+)"),
        (Printed::ResponseP90, r"90%\s+([0-9.]+ \S+)"),
        (Printed::ResponseMean, r"mean (?<ms>\S+)"),
        (Printed::Requests, r"(\S+) requests"),
    ] {
        thread_local!(static KNOWN: std::cell::RefCell<Vec<(Printed, Patterns)>> = const { std::cell::RefCell::new(Vec::new()) });
        KNOWN.with_borrow_mut(|known| {
            if !known.iter().any(|(one, _)| *one == value) {
                let patterns = Patterns::new(&[(value, pattern.to_owned())].into()).expect("the pattern is valid");
                known.push((value, patterns));
            }
            let (_, patterns) = known.iter().find(|(one, _)| *one == value).expect("it was added");
            let _ = patterns.read(&text).map_err(|error| error.to_string());
        });
    }
}

fn agents() -> Vec<Vec<u8>> {
    let values = "ok\n{\"cpu_client\":1.5,\"cpu_server\":null}\n";
    let meeting = "{\"port\":7,\"token\":[1,2]}\n{\"round_trip\":{\"missing\":\"lab\"}}\n";
    [values, meeting].map(|text| with_part(&[5], text.as_bytes())).to_vec()
}

/// A host whose agent says these pieces to every command.
struct Host<'a>(&'a [u8], &'a [u8]);

struct Said(std::vec::IntoIter<Vec<u8>>);

impl Remote for Host<'_> {
    fn name(&self) -> &str {
        "the host"
    }

    fn run(&self, _: &[&str]) -> Result<Box<dyn Stream>, LabError> {
        let said: Vec<_> = pieces(self.1, self.0).map(<[u8]>::to_vec).collect();
        Ok(Box::new(Said(said.into_iter())))
    }

    fn state(&self, _: Duration) -> State {
        State::Works("it answers".to_owned())
    }

    fn doubt(&self) {}

    fn remedy(&self, endpoint: &str) -> String {
        format!("install {endpoint}")
    }
}

impl Stream for Said {
    fn read(&mut self, _: Instant) -> Piece {
        self.0.next().map_or(Piece::Ended(Ended::Code(0)), Piece::Bytes)
    }

    fn write(&self, _: Vec<u8>) -> bool {
        true
    }

    fn close(&mut self) {}

    fn stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        Some(Box::new(io::empty()))
    }
}

fn agent(input: &[u8]) {
    let Some((sizes, said)) = part(input) else { return };
    let (host, deadline) = (Host(sizes, said), Instant::now() + Duration::from_secs(1));
    let mut watcher = Watcher::start(&host, &["observe"], [].into_iter()).expect("the host runs every command");
    watcher.acknowledge(deadline);
    let _ = watcher.values(deadline);
    let stream = host.run(&[]).expect("the host runs every command");
    let answer = Call::over(stream, "a call".to_owned(), Vec::new()).answer(deadline);
    assert_eq!(answer.ok().flatten().as_deref(), Some(said), "an answer is not what the agent said");
    let _ = measure_path(&host, &host, [127, 0, 0, 1].into(), None);
}
