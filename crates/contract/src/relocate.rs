//! Moves the paths of a spec below another folder, for an endpoint on a host that keeps the run's files there.

use std::path::{Path, PathBuf};

use crate::exposition::Exposition;
use crate::spec::{ClientSpec, ClientTls, ControlPlaneSpec, ServerSpec, ServerTls, SidecarSpec};

/// A spec that names files and folders by absolute paths.
pub trait Relocate {
    /// All paths that the spec names.
    fn paths(&mut self) -> Vec<&mut PathBuf>;

    /// Puts every path below `root`.
    fn relocate(&mut self, root: &Path) {
        for path in self.paths() {
            *path = below(root, path);
        }
    }
}

/// The place of a path below `root`.
#[must_use]
pub fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

impl Relocate for ServerSpec {
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        let Self { tls, document_root, answers, qlog_dir, exposition, .. } = self;
        let tls = tls.iter_mut().flat_map(|ServerTls { certificate, key, key_log, .. }| {
            [Some(certificate), Some(key), key_log.as_mut()].into_iter().flatten()
        });
        tls.chain(document_root).chain(answers).chain(qlog_dir).chain(exposition.as_mut().map(socket)).collect()
    }
}

impl Relocate for ClientSpec {
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        let Self { tls, page, results, qlog_dir, exposition, .. } = self;
        let tls = tls.iter_mut().flat_map(|ClientTls { trust_anchor, key_log, identity, .. }| {
            let identity = identity.iter_mut().flat_map(|identity| [&mut identity.certificate, &mut identity.key]);
            identity.chain(trust_anchor).chain(key_log)
        });
        let page = page.iter_mut().flat_map(|page| [&mut page.har, &mut page.film, &mut page.netlog_dir]).flatten();
        tls.chain(page).chain([results]).chain(qlog_dir).chain(exposition.as_mut().map(socket)).collect()
    }
}

impl Relocate for SidecarSpec {
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.upstreams]
    }
}

impl Relocate for ControlPlaneSpec {
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.members]
    }
}

fn socket(exposition: &mut Exposition) -> &mut PathBuf {
    &mut exposition.socket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_a_server_and_a_client_moves() {
        let server = r#"{ "contract": 1, "protocol": "h1", "address": "127.0.0.1", "port": 0, "server_name": "a", "features": [],
            "document_root": "/run/d", "answers": "/run/a", "qlog_dir": "/run/q", "exposition": { "socket": "/run/s", "labels": {} },
            "tls": { "certificate": "/run/c", "key": "/run/k", "key_log": "/run/l", "resumption": false, "early_data": false } }"#;
        let mut server: ServerSpec = serde_json::from_str(server).unwrap();
        server.relocate(Path::new("/tmp/x"));
        let text = serde_json::to_string(&server).unwrap();
        assert_eq!((text.matches("/tmp/x/run/").count(), text.matches("/run/").count()), (7, 7), "{text}");

        let client = r#"{ "contract": 1, "protocol": "h1", "address": "127.0.0.1", "port": 1, "server_name": "a",
            "request": { "method": "GET", "path": "/", "body_size": 0 }, "connections": { "policy": "per_request" },
            "schedule": { "loop": "closed", "workers": 1 }, "extent": { "requests": 1 }, "seed": 1, "recording": "samples",
            "timeouts": { "connect_ns": 1, "request_ns": 1 }, "results": "/run/r", "qlog_dir": "/run/q",
            "tls": { "trust_anchor": "/run/t", "verify": true, "key_log": "/run/l", "identity": { "certificate": "/run/c", "key": "/run/k" } } }"#;
        let mut client: ClientSpec = serde_json::from_str(client).unwrap();
        client.relocate(Path::new("/tmp/x"));
        let text = serde_json::to_string(&client).unwrap();
        assert_eq!((text.matches("/tmp/x/run/").count(), text.matches("/run/").count()), (6, 6), "{text}");
    }
}
