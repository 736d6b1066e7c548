//! A build: a program, a service that runs already, or an endpoint.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wirelab_lab::endpoints;
use wirelab_model::endpoint::Endpoint;
use wirelab_model::nearest::did_you_mean;
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::Settings;

use crate::carried;
use crate::failure::{Failure, Result};
use crate::place::program;
use crate::target::Location;

/// One of the two builds.
#[derive(Debug, Clone)]
pub(super) enum Build {
    /// A program that wirelab starts: its command line as words.
    Command(Vec<String>),
    /// The URL of a service that runs already.
    Url(String),
    Endpoint(Box<Endpoint>),
}

impl Build {
    /// Reads the value of `option`, which names it in messages.
    pub(super) fn read(option: &str, text: &str) -> Result<Self> {
        if text.starts_with("http://") || text.starts_with("https://") {
            Location::parse(text)?;
            return Ok(Self::Url(text.to_owned()));
        }
        if !text.trim().contains([' ', '\t', '/', '{']) {
            return match endpoints::find(&program()?, text, carried::endpoints()) {
                Ok(endpoint) => Ok(Self::Endpoint(Box::new(endpoint))),
                Err(error) => Err(Failure::input(format!(
                    "{option}: {error}. A command has a blank or a slash, such as './server --port {{port}}'; a URL begins \
                     with http:// or https://"
                ))),
            };
        }
        let words = shlex::split(text)
            .filter(|words| words.first().is_some_and(|first| !first.is_empty()))
            .ok_or_else(|| Failure::input(format!("{option} '{text}' has no word, or a quote that is not closed")))?;
        check_program(option, &words[0])?;
        Ok(Self::Command(words))
    }

    /// Its kind, in a message.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Command(_) => "a command",
            Self::Url(_) => "a URL",
            Self::Endpoint(_) => "an endpoint",
        }
    }

    /// The settings of its level.
    pub(super) fn settings(&self) -> Settings {
        match self {
            Self::Command(words) => Settings { server_command: Some(words.clone()), ..Settings::default() },
            Self::Url(url) => Settings { site: Some(url.clone()), ..Settings::default() },
            Self::Endpoint(endpoint) => Settings { server: Some(endpoint.name.clone()), ..Settings::default() },
        }
    }

    /// The protocol if the user names none. A program can use TLS only if its command line has the certificate.
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::Command(words) if !words.iter().any(|word| word.contains("{certificate}")) => Protocol::H1c,
            Self::Url(url) if url.starts_with("http://") => Protocol::H1c,
            _ => Protocol::H2,
        }
    }

    /// Whether both start the same program with the same arguments, or are one service. Files are compared by content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Command(one), Self::Command(other)) => same_words((one, Path::new("")), (other, Path::new(""))),
            (Self::Url(one), Self::Url(other)) => match (Location::parse(one), Location::parse(other)) {
                (Ok(one), Ok(other)) => one == other,
                _ => one == other,
            },
            (Self::Endpoint(one), Self::Endpoint(other)) => is_same_endpoint(one, other),
            _ => false,
        }
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => f.write_str(&words.join(" ")),
            Self::Url(url) => f.write_str(url),
            Self::Endpoint(endpoint) => f.write_str(&endpoint.name),
        }
    }
}

/// Refuses a program that does not exist or cannot be executed, before anything is started.
fn check_program(option: &str, program: &str) -> Result {
    let path = Path::new(program);
    if !program.contains('/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return match std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            true => Ok(()),
            false => Err(Failure::input(format!(
                "{option}: no folder of PATH has the program `{program}`; install it, or give its path, such as \
                 ./{program}"
            ))),
        };
    }
    match fs::metadata(path) {
        Err(error) => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let meant = did_you_mean(name, names.iter().map(String::as_str));
            Err(Failure::input(format!("{option}: cannot start `{program}`{meant}: {error}")))
        }
        Ok(facts) if !facts.is_file() || facts.permissions().mode() & 0o111 == 0 => Err(Failure::input(format!(
            "{option}: `{program}` is not an executable file; chmod +x makes it one, and a script may need its \
             interpreter as the first word"
        ))),
        Ok(_) => Ok(()),
    }
}

/// Whether two endpoints start the same program with the same arguments.
fn is_same_endpoint(base: &Endpoint, head: &Endpoint) -> bool {
    let folder = |endpoint: &Endpoint| endpoint.folder.clone().unwrap_or_default();
    base.environment == head.environment && same_words((&base.command, &folder(base)), (&head.command, &folder(head)))
}

/// Whether two command lines, each relative to a folder, have equal words or words that name equal files.
fn same_words((base, base_folder): (&[String], &Path), (head, head_folder): (&[String], &Path)) -> bool {
    let is_same = |(base, head): (&String, &String)| match (base_folder.join(base), head_folder.join(head)) {
        (base_file, head_file) if base_file.is_file() && head_file.is_file() => same_files(&base_file, &head_file),
        _ => base == head,
    };
    base.len() == head.len() && base.iter().zip(head).all(is_same)
}

/// Whether two files are one, or have the same bytes. Unreadable files differ.
fn same_files(one: &PathBuf, other: &PathBuf) -> bool {
    let (Ok(facts), Ok(other_facts)) = (fs::metadata(one), fs::metadata(other)) else { return false };
    if (facts.dev(), facts.ino()) == (other_facts.dev(), other_facts.ino()) {
        return true;
    }
    if facts.len() != other_facts.len() {
        return false;
    }
    let (Ok(one), Ok(other)) = (File::open(one), File::open(other)) else { return false };
    let mut bytes = BufReader::new(one).bytes().zip(BufReader::new(other).bytes());
    bytes.all(|(one, other)| one.ok().zip(other.ok()).is_some_and(|(one, other)| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        format!("{:?}", Build::read("--head", text).unwrap_err())
    }

    #[test]
    fn a_build_is_a_url_a_command_or_an_endpoint() {
        let kind = |text: &str| Build::read("--base", text).unwrap().kind();
        assert_eq!(kind("http://localhost:1/"), "a URL");
        assert_eq!(kind("/bin/sh"), "a command");
        assert_eq!(kind("sh -c 'exec server {port}'"), "a command");
        assert_eq!(kind("builtin"), "an endpoint");
        assert!(why("bultin").contains("did you mean `builtin`") && why("bultin").contains("{port}"));
        assert!(why("./no-such-server {port}").contains("cannot start"), "{}", why("./no-such-server {port}"));
        assert!(why("no-such-server {port}").contains("PATH"));
        assert!(why("/etc/passwd {port}").contains("chmod +x"));
        assert!(why("sh 'open").contains("not closed"));
        assert!(why("https://").contains("cannot be measured"));
    }

    #[test]
    fn builds_are_the_same_if_their_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (old, copy, new) = (file("old", "print(1)"), file("copy", "print(1)"), file("new", "print(2)"));
        let command = |words: &[&str]| Build::Command(words.iter().map(|word| (*word).to_owned()).collect());
        assert!(command(&["python3", &old, "{port}"]).is_same(&command(&["python3", &copy, "{port}"])));
        assert!(!command(&["python3", &old, "{port}"]).is_same(&command(&["python3", &new, "{port}"])));
        assert!(!command(&["python3", &old, "1"]).is_same(&command(&["python3", &copy, "2"])));
        assert!(!command(&["python3", &old]).is_same(&command(&["python3", &copy, "2"])));
        let url = |url: &str| Build::Url(url.to_owned());
        assert!(url("http://localhost").is_same(&url("http://localhost:80/")));
        assert!(!url("http://localhost/").is_same(&url("http://localhost:81/")));
        let endpoint = |name: &str, text: &str| {
            let own = folder.path().join("endpoints").join(name);
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("server.py"), text).unwrap();
            Build::Endpoint(Box::new(Endpoint {
                name: name.to_owned(),
                command: vec!["python3".to_owned(), "server.py".to_owned()],
                environment: Default::default(),
                folder: Some(own),
                installation: None,
            }))
        };
        assert!(endpoint("a", "print(1)").is_same(&endpoint("b", "print(1)")));
        assert!(!endpoint("a", "print(1)").is_same(&endpoint("b", "print(2)")));
    }
}
