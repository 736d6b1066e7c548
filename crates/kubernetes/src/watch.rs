//! Watched objects of the cluster: listed once, then updated from the API server's events.
//! `docs/decisions/0003-libraries.md` says why this is not a library's work.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use futures_core::Stream;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;

use crate::cluster::{Cluster, is_outdated};
use wirelab_lab::LabError;

/// Seconds after which the API server ends a watch; it is then renewed.
const LASTING_S: u32 = 60;

/// A watch that lasts longer has lost its connection without an error.
const LONGEST: Duration = Duration::from_secs(LASTING_S as u64 + 10);

/// The minimum time between the starts of two watches, so that a server that ends watches at once is not flooded with
/// requests.
const BETWEEN: Duration = Duration::from_secs(1);

/// The objects to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Only {
    /// Objects with these labels, in selector syntax.
    Labels(String),
    /// The object with this name.
    Name(String),
}

type Events<K> = Pin<Box<dyn Stream<Item = Result<WatchEvent<K>, kube::Error>> + Send>>;

/// The current state of the watched objects, by name.
pub(crate) struct Watch<K> {
    cluster: Arc<Cluster>,
    api: Api<K>,
    /// A description of the objects, for messages.
    what: String,
    only: Only,
    objects: BTreeMap<String, K>,
    /// The cluster's version of `objects`; `None` if they must be listed again.
    version: Option<String>,
    /// The stream of changes; `None` if it must be opened.
    events: Option<Events<K>>,
    /// When the stream was last opened.
    opened: Option<Instant>,
}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> Watch<K> {
    /// Lists the objects.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn begin(cluster: &Arc<Cluster>, api: &Api<K>, what: &str, only: Only) -> Result<Self, LabError> {
        let (cluster, api, what) = (Arc::clone(cluster), api.clone(), what.to_owned());
        let (objects, version, events, opened) = (BTreeMap::new(), None, None, None);
        let mut watch = Self { cluster, api, what, only, objects, version, events, opened };
        watch.list()?;
        Ok(watch)
    }

    /// The objects, as of the latest event read.
    pub(crate) const fn objects(&self) -> &BTreeMap<String, K> {
        &self.objects
    }

    /// Waits until `look` finds something; `None` at the deadline.
    ///
    /// # Errors
    /// If the cluster refuses or does not answer.
    pub(crate) fn find<R>(
        &mut self,
        deadline: Instant,
        look: impl Fn(&BTreeMap<String, K>) -> Option<R>,
    ) -> Result<Option<R>, LabError> {
        loop {
            let found = look(&self.objects);
            if found.is_some() || !self.change(deadline)? {
                return Ok(found);
            }
        }
    }

    /// Waits for changes and applies all that have arrived; returns false if none arrived before the deadline. With a
    /// deadline in the past it applies changes that have already arrived.
    ///
    /// # Errors
    /// If the cluster refuses or does not answer.
    pub(crate) fn change(&mut self, deadline: Instant) -> Result<bool, LabError> {
        let mut has_changed = false;
        loop {
            let Some(events) = &mut self.events else {
                if has_changed {
                    return Ok(true);
                }
                let due = self.opened.map_or_else(Instant::now, |opened| opened + BETWEEN);
                // A back-off. No events are lost: the next watch continues where the last one ended.
                sleep(due.min(deadline).saturating_duration_since(Instant::now()));
                if due > deadline && self.opened.is_some() {
                    return Ok(false);
                }
                has_changed = self.open()?;
                continue;
            };
            let lost = self.opened.map_or(deadline, |opened| opened + LONGEST);
            let until = if has_changed { Instant::now() } else { deadline.min(lost) };
            let event = poll_fn(|context| events.as_mut().poll_next(context));
            match self.cluster.runtime.block_on(async { timeout_at(until.into(), event).await }) {
                Ok(Some(Ok(event))) => has_changed |= self.take(event),
                Ok(None) => self.events = None,
                Ok(Some(Err(_))) => self.list_again(),
                Err(_) if has_changed => return Ok(true),
                Err(_) if lost <= deadline => self.list_again(),
                Err(_) => return Ok(false),
            }
        }
    }

    /// Applies an event; returns whether it changed an object.
    fn take(&mut self, event: WatchEvent<K>) -> bool {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.version = object.resource_version();
                self.objects.insert(object.name_any(), object);
                true
            }
            WatchEvent::Deleted(object) => {
                self.version = object.resource_version();
                self.objects.remove(&object.name_any()).is_some()
            }
            WatchEvent::Bookmark(mark) => {
                self.version = Some(mark.metadata.resource_version);
                false
            }
            // Usually the version is older than the server's history (410 Gone). Listing again resolves every error.
            WatchEvent::Error(_) => {
                self.list_again();
                false
            }
        }
    }

    fn list_again(&mut self) {
        self.events = None;
        self.version = None;
    }

    fn list(&mut self) -> Result<(), LabError> {
        let parameters = match &self.only {
            Only::Labels(labels) => ListParams::default().labels(labels),
            Only::Name(name) => ListParams::default().fields(&by_name(name)),
        };
        let all = self.cluster.ask(&format!("listing {}", self.what), self.api.list(&parameters))?;
        self.version = all.metadata.resource_version;
        self.objects = all.items.into_iter().map(|object| (object.name_any(), object)).collect();
        Ok(())
    }

    /// Opens the stream of changes; lists the objects first if their version is unknown, and then returns true.
    fn open(&mut self) -> Result<bool, LabError> {
        let is_unknown = self.version.is_none();
        if is_unknown {
            self.list()?;
        }
        self.opened = Some(Instant::now());
        let parameters = WatchParams::default().timeout(LASTING_S);
        let parameters = match &self.only {
            Only::Labels(labels) => parameters.labels(labels),
            Only::Name(name) => parameters.fields(&by_name(name)),
        };
        let version = self.version.clone().unwrap_or_default();
        let (attempt, request) = (format!("watching {}", self.what), self.api.watch(&parameters, &version));
        let answer = async {
            match request.await {
                Err(error) if is_outdated(&error) => Ok(None),
                other => other.map(Some),
            }
        };
        match self.cluster.ask(&attempt, answer)? {
            Some(events) => self.events = Some(Box::pin(events)),
            None => self.version = None,
        }
        Ok(is_unknown)
    }
}

/// The field selector of the object with this name.
fn by_name(name: &str) -> String {
    format!("metadata.name={name}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::AtomicBool;
    use std::thread::{JoinHandle, spawn};

    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, Config};
    use serde_json::{Value, json};
    use tokio::runtime::Builder;

    use super::*;

    fn pod(name: &str, version: u32) -> Value {
        let metadata = json!({ "name": name, "resourceVersion": version.to_string() });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata })
    }

    fn list(version: u32, pods: &[Value]) -> String {
        let metadata = json!({ "resourceVersion": version.to_string() });
        json!({ "apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": pods }).to_string()
    }

    fn event(kind: &str, object: &Value) -> String {
        format!("{}\n", json!({ "type": kind, "object": object }))
    }

    fn outdated() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
            "message": "too old resource version",
        })
    }

    /// An answer of the API server: words that the request must contain, status, body. A watch that is the last answer
    /// stays open.
    type Answer = (&'static [&'static str], u16, String);

    /// Starts an API server that gives these answers in order, and a watch on it.
    fn watched<const N: usize>(answers: [Answer; N]) -> (Watch<Pod>, JoinHandle<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = spawn(move || {
            let (mut left, mut last) = (answers.len(), None);
            for (words, status, body) in answers {
                left -= 1;
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                assert!(words.iter().all(|word| request.contains(word)), "{request}: {words:?}");
                while !lines.next().unwrap().unwrap().is_empty() {}
                let length = if left > 0 || status != 200 {
                    format!("content-length: {}\r\n", body.len())
                } else {
                    String::new()
                };
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\n{length}\r\n"
                );
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
                last = Some(stream);
            }
            last.unwrap()
        });
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut config = Config::new(url.parse().unwrap());
        config.root_cert = Some(Vec::new());
        let client = {
            let _entered = runtime.enter();
            Client::try_from(config).unwrap()
        };
        let api = Api::namespaced(client.clone(), "a");
        let cluster = Arc::new(Cluster { client, runtime, version: String::new(), doubt: AtomicBool::new(false) });
        let watch = Watch::begin(&cluster, &api, "the pods", Only::Labels("a=b".to_owned())).unwrap();
        (watch, server)
    }

    fn names(watch: &Watch<Pod>) -> Vec<&str> {
        watch.objects().keys().map(String::as_str).collect()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    const LIST: &[&str] = &["/api/v1/namespaces/a/pods?", "labelSelector=a%3Db"];

    #[test]
    fn what_becomes_of_objects_is_known_from_the_version_of_their_list_on() {
        let events = [event("ADDED", &pod("second", 8)), event("DELETED", &pod("first", 9))].concat();
        let (mut watch, server) = watched([
            (LIST, 200, list(7, &[pod("first", 3)])),
            (&["watch=true", "resourceVersion=7", "labelSelector=a%3Db", "timeoutSeconds=60"], 200, events),
        ]);
        assert_eq!(names(&watch), ["first"]);
        let second =
            watch.find(soon(), |pods| (!pods.contains_key("first")).then(|| pods.keys().cloned().collect::<Vec<_>>()));
        assert_eq!(second.unwrap(), Some(vec!["second".to_owned()]));
        // The connection stays open without events.
        let _open = server.join().unwrap();
        assert!(!watch.change(Instant::now() + Duration::from_millis(50)).unwrap());
        assert_eq!(watch.find(Instant::now(), |pods| pods.get("third").cloned()).unwrap(), None);
    }

    #[test]
    fn a_watch_that_was_ended_goes_on_from_where_it_was() {
        let mark = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "resourceVersion": "20" } });
        let (mut watch, server) = watched([
            (LIST, 200, list(7, &[])),
            (&["watch=true", "resourceVersion=7"], 200, event("BOOKMARK", &mark)),
            (&["watch=true", "resourceVersion=20"], 200, event("ADDED", &pod("late", 21))),
        ]);
        assert!(watch.find(soon(), |pods| pods.get("late").cloned()).unwrap().is_some());
        server.join().unwrap();
    }

    #[test]
    fn where_the_server_has_forgotten_the_version_everything_is_listed_again() {
        for (status, gone) in [(200, event("ERROR", &outdated())), (410, outdated().to_string())] {
            let (mut watch, server) = watched([
                (LIST, 200, list(7, &[pod("first", 3)])),
                (&["watch=true", "resourceVersion=7"], status, gone),
                (LIST, 200, list(30, &[pod("other", 25)])),
                (&["watch=true", "resourceVersion=30"], 200, String::new()),
            ]);
            assert!(watch.change(soon()).unwrap());
            assert_eq!(names(&watch), ["other"], "{status}");
            server.join().unwrap();
        }
    }

    #[test]
    fn a_refusal_says_what_was_attempted() {
        let forbidden = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "pods is forbidden",
        });
        let (mut watch, server) = watched([(LIST, 200, list(7, &[])), (&["watch=true"], 403, forbidden.to_string())]);
        let why = watch.change(soon()).unwrap_err().to_string();
        assert!(why.contains("watching the pods: pods is forbidden") && why.contains("labs rbac"), "{why}");
        server.join().unwrap();
    }
}
