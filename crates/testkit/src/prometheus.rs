//! A real Prometheus that scrapes a run, and queries of its data.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Skip, eventually, skip};

const CONFIG: &str = r"
global: { scrape_interval: 500ms, scrape_timeout: 500ms }
scrape_configs:
  - job_name: wirelab
    file_sd_configs: [{ files: [targets.json], refresh_interval: 1s }]
";

/// A Prometheus, killed when dropped.
pub struct Prometheus {
    process: Child,
    address: String,
    folder: TempDir,
    begun: f64,
}

impl Prometheus {
    /// Starts a Prometheus without targets, and waits until it is ready. `None` if the program is missing; the test is
    /// then skipped.
    #[track_caller]
    pub fn start() -> Option<Self> {
        let program = "prometheus";
        if Command::new(program).arg("--version").output().is_err() {
            skip(Skip::MissingProgram { program: program.to_owned(), remedy: "tests/setup.sh".to_owned() });
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("prometheus.yml"), CONFIG).unwrap();
        // Prometheus does not report the port that the kernel chose; this one was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(program)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let prometheus = Self { process, address, folder, begun: now() };
        eventually("Prometheus being ready", || get(&prometheus.address, "/-/ready").is_some_and(|(is, _)| is == 200));
        Some(prometheus)
    }

    /// Adds this address as a target.
    pub fn watch(&self, address: &str) {
        let path = |name: &str| -> PathBuf { self.folder.path().join(name) };
        fs::write(path("targets.json.new"), json!([{ "targets": [address] }]).to_string()).unwrap();
        fs::rename(path("targets.json.new"), path("targets.json")).unwrap();
    }

    /// The current series of an expression, each with its labels and its value.
    pub fn now(&self, expression: &str) -> Vec<(Value, f64)> {
        let said = self.ask("query", &[("query", expression)]);
        let number = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
        said.iter().map(|one| (one["metric"].clone(), number(one))).collect()
    }

    /// The number of series of an expression since the start of this Prometheus.
    pub fn series(&self, expression: &str) -> usize {
        let (start, end) = (self.begun.to_string(), now().to_string());
        self.ask("query_range", &[("query", expression), ("start", &start), ("end", &end), ("step", "0.5")]).len()
    }

    fn ask(&self, what: &str, parameters: &[(&str, &str)]) -> Vec<Value> {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let (status, body) = get(&self.address, &format!("/api/v1/{what}?{query}")).unwrap();
        let said: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &said["status"]), (200, &json!("success")), "{parameters:?}: {said}");
        said["data"]["result"].as_array().unwrap().clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.folder.path().join("log")).unwrap_or_default());
        }
    }
}

/// Status and body of a response; `None` if no server listens.
pub fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // HTTP/1.0, so that the end of the connection is the end of the body.
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Every expression of a Grafana dashboard, with its variables replaced as Grafana does.
pub fn expressions(dashboard: &Path) -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(dashboard).unwrap()).unwrap();
    let mut found = Vec::new();
    collect(&dashboard, &mut found);
    let filled = |text: String| {
        // Grafana replaces the interval by at least four scrapes.
        let text = text.replace("$__rate_interval", "2s");
        ["$study", "$run", "$variant"].iter().fold(text, |text, variable| text.replace(variable, ".*"))
    };
    found.into_iter().map(filled).inspect(|text| assert!(!text.contains('$'), "{text}")).collect()
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(keys) => {
            for (key, value) in keys {
                match (key.as_str(), value.as_str()) {
                    ("expr", Some(text)) => found.push(text.to_owned()),
                    // `label_values(SERIES, LABEL)` is Grafana's own function; the series are Prometheus'.
                    ("definition", Some(text)) => {
                        let inner = text.strip_prefix("label_values(").unwrap().rsplit_once(',').unwrap().0;
                        found.push(inner.to_owned());
                    }
                    _ => collect(value, found),
                }
            }
        }
        _ => {}
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}
