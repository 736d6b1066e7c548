//! A real nginx as the server of a test.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};

use wirelab_testkit::servers::{Place, closed_port};
use wirelab_testkit::{Skip, eventually, skip};

/// nginx in a place, until drop.
pub(crate) struct Nginx(Child);

impl Nginx {
    /// Starts nginx with these lines in its server; `None` if it is not installed.
    #[track_caller]
    pub(crate) fn start(place: &Place, listen: &str, lines: &str) -> Option<(Self, u16)> {
        const PROGRAM: &str = "/usr/sbin/nginx";
        if !Path::new(PROGRAM).exists() {
            let remedy = "apt-get install nginx-light".to_owned();
            skip(Skip::MissingProgram { program: "nginx".to_owned(), remedy });
            return None;
        }
        let (port, folder) = (closed_port(), place.folder().display());
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
            .collect();
        let configuration = format!(
            "daemon off;\nerror_log stderr;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
             server {{\nlisten 127.0.0.1:{port} {listen};\n{lines}\n}}\n}}\n"
        );
        fs::write(place.path("nginx.conf"), configuration).unwrap();
        let mut command = Command::new(PROGRAM);
        let child = command.arg("-p").arg(place.folder()).arg("-c").arg(place.path("nginx.conf")).spawn().unwrap();
        let nginx = Self(child);
        eventually("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some((nginx, port))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master process ends its workers at SIGTERM.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
