//! The pages in docs/tutorial, with the files and the commands that they show.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use wirelab_testkit::lab::trials;
use wirelab_testkit::servers::closed_port;
use wirelab_testkit::{Running, Said, Skip, eventually, only_run, program, root, said, skip, wirelab};

/// A page, and a folder in which a reader follows it.
struct Tutorial {
    text: String,
    folder: TempDir,
}

impl Tutorial {
    #[track_caller]
    fn open(page: &str) -> Self {
        let text = fs::read_to_string(root().join("docs/tutorial").join(page)).unwrap();
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        symlink(program(), folder.path().join("bin/wirelab")).unwrap();
        Self { text, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Saves the block that follows "as `name`".
    #[track_caller]
    fn save(&self, name: &str) {
        let words = format!("as `{name}`");
        let (_, rest) = self.text.split_once(&words).unwrap_or_else(|| panic!("no file is saved {words}"));
        let (_, block) = rest.split_once("\n```").unwrap();
        let (_, lines) = block.split_once('\n').unwrap();
        let (lines, _) = lines.split_once("```\n").unwrap();
        fs::write(self.path().join(name), lines).unwrap();
    }

    /// An indented block, from the line that begins like this.
    #[track_caller]
    fn block(&self, start: &str) -> String {
        let from = self.text.find(&format!("\n    {start}")).unwrap_or_else(|| panic!("no block has `{start}`")) + 1;
        self.text[from..].lines().map_while(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect()
    }

    /// A shell that runs these lines as the reader would, with the arguments that make it short.
    fn shell(&self, lines: &str, more: &str) -> Command {
        let like_a_reader = wirelab(self.path(), &[]);
        let mut command = Command::new("sh");
        command.args(["-ec", &format!("{} {more}", lines.trim_end())]).current_dir(self.path()).stdin(Stdio::null());
        command.envs(like_a_reader.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path().join("bin").display())).env("TOKEN", "letmein");
        command
    }

    #[track_caller]
    fn run(&self, lines: &str, more: &str) -> Said {
        said(self.shell(lines, more).output().unwrap())
    }
}

/// The build cache of this user's Go, if it is 1.22 or later: the service of the tutorial ranges over a number. A cache
/// of the test's own would compile Go's libraries each time.
fn go_cache() -> Option<String> {
    let output = Command::new("go").args(["env", "GOVERSION", "GOCACHE"]).output().ok()?;
    let lines = String::from_utf8(output.stdout).unwrap();
    let (version, cache) = lines.trim().split_once('\n')?;
    let minor: u32 = version.strip_prefix("go1.")?.split('.').next()?.parse().ok()?;
    (minor >= 22).then(|| cache.to_owned())
}

/// Text on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn your_service_answers_and_refuses_as_the_tutorial_says() {
    let tutorial = Tutorial::open("your-service.md");
    tutorial.save("shop.py");
    let port = closed_port().to_string();
    let here = |lines: String| lines.replace("8080", &port);
    let start = here(tutorial.block("python3 shop.py 8080 1 &"));
    let (server, load) = start.split_once(" &\n").unwrap();
    let _server = Running(tutorial.shell(&format!("exec {server}"), "").spawn().unwrap());
    eventually("the shop listens", || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    tutorial.run(load, "").with_status(0);

    let refused = tutorial.run(&here(tutorial.block("wirelab load -n 1000 --body")), "").with_status(1);
    let words = flat(&here(tutorial.block("wirelab: http://localhost:8080/orders")));
    assert!(flat(&refused.err).ends_with(&words), "not `{words}`:\n{}", refused.err);

    let accepted = tutorial.run(&here(tutorial.block("export TOKEN=letmein")), "").with_status(0);
    assert!(!(accepted.out + &accepted.err).contains("letmein"));
}

#[test]
fn your_service_is_compared_as_the_tutorial_says() {
    let tutorial = Tutorial::open("your-service.md");
    for name in ["shop.py", "shop.toml", "users.csv"] {
        tutorial.save(name);
    }
    let commands = tutorial.block("wirelab studies check shop.toml");
    tutorial.run(&commands, "--set blocks.min=3 --set blocks.max=3").with_status(0);
    assert!(only_run(tutorial.path()).join("report.html").exists());
    let said = tutorial.run("wirelab report --full", "").with_status(0);
    for words in ["preliminary", "/orders", "P99"] {
        assert!(said.out.contains(words), "`{words}` is missing in:\n{}", said.out);
    }
}

#[test]
#[ignore = "minutes of processor time in all: make test-slow"]
fn nginx_with_compression_costs_processor_time_as_the_tutorial_says() {
    if !Path::new("/usr/sbin/nginx").exists() {
        let remedy = "apt-get install nginx-light".to_owned();
        return skip(Skip::MissingProgram { program: "nginx".to_owned(), remedy });
    }
    let tutorial = Tutorial::open("fastapi-go-nginx.md");
    for name in ["old.conf", "serve.sh"] {
        tutorial.save(name);
    }
    fs::set_permissions(tutorial.path().join("serve.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = tutorial.run(&tutorial.block("python3 -c"), "").with_status(3);
    for words in ["Requirement not met: Server CPU time per request", "build=head ×"] {
        assert!(said.out.contains(words), "`{words}` is missing in:\n{}", said.out);
    }
    // The answer is compressed in one build only.
    let document = fs::metadata(tutorial.path().join("items.json")).unwrap().len();
    assert!(tutorial.text.contains(&format!("{},{:03} to", document / 1000, document % 1000)), "{document} bytes");
}

#[test]
#[ignore = "minutes of processor time in all: make test-slow"]
fn functions_of_fastapi_are_compared_as_the_tutorial_says() {
    let tutorial = Tutorial::open("fastapi-go-nginx.md");
    tutorial.save("plain.py");
    let commands = tutorial.block("python3 -m venv");
    // The noise of the machine decides the verdict, so the test judges the trials: wirelab has checked each response.
    let said = tutorial.run(&commands, "--set blocks.min=2 --set blocks.max=2 --set 'duration=300 ms'");
    assert!([0, 3].contains(&said.status), "{}{}", said.out, said.err);
    let builds = trials(tutorial.path()).into_iter().map(|(cell, _)| cell["levels"]["build"].to_string());
    assert!(builds.collect::<BTreeSet<_>>().len() >= 2);
}

#[test]
#[ignore = "minutes of processor time in all: make test-slow"]
fn a_slower_build_in_go_is_found_as_the_tutorial_says() {
    let Some(cache) = go_cache() else {
        let remedy = "https://go.dev/doc/install (1.22 or later)".to_owned();
        return skip(Skip::MissingProgram { program: "go".to_owned(), remedy });
    };
    let tutorial = Tutorial::open("fastapi-go-nginx.md");
    for name in ["main.go", "rounds.go"] {
        tutorial.save(name);
    }
    // Thrice the work instead of 5.3 % more, which a short run on any machine finds.
    let short = |lines: String| lines.replace("1053", "3000").replace("'duration=1 s'", "'duration=300 ms'");
    let commands = short(tutorial.block("go mod init shop")).replace("'60 s'", "'20 s'");
    let said = tutorial.run(&format!("export GOCACHE='{cache}'\n{commands}"), "").with_status(3);
    for words in ["Requirement not met: Server CPU time per request", "build=head ×"] {
        assert!(said.out.contains(words), "`{words}` is missing in:\n{}", said.out);
    }
}
