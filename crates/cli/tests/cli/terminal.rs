//! wirelab in a shell: signals, an unwritable standard error, completions and manual pages.

use std::fs::{self, File, read_dir, read_to_string};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::tempdir;
use wirelab_testkit::{Said, eventually, program, run, said, wirelab};

/// Three blocks of four trials of 20 ms.
const RUN: &[&str] = &[
    "run",
    "quick",
    "--set",
    "protocol=h1,h2",
    "--set",
    "payload=1 KiB",
    "--set",
    "duration=20 ms",
    "--set",
    "blocks.min=3",
    "--set",
    "blocks.max=3",
];

#[test]
fn a_full_or_closed_standard_error_ends_no_command() {
    let folder = tempdir().unwrap();
    let with_stderr = |args: &[&str], stderr: Stdio| {
        said(
            wirelab(folder.path(), args)
                .stdout(Stdio::piped())
                .stderr(stderr)
                .spawn()
                .unwrap()
                .wait_with_output()
                .unwrap(),
        )
    };
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for stderr in [&full as &dyn Fn() -> Stdio, &closed] {
        with_stderr(&["run", "quik"], stderr()).with_status(2);
        // A run prints progress lines.
        let run = ["run", "null", "--preset", "smoke", "--lab", "fake"];
        assert!(with_stderr(&run, stderr()).with_status(0).out.contains("report.html"));
    }
}

/// Sends SIGHUP to a run that has measured a few trials, and waits for its end.
#[track_caller]
fn hang_up(folder: &Path, child: Child) -> Said {
    let lines = || {
        let runs = read_dir(folder.join("wirelab-runs")).ok()?;
        Some(read_to_string(runs.flatten().next()?.path().join("journal.jsonl")).ok()?.lines().count())
    };
    eventually("a few trials", || lines().is_some_and(|lines| lines > 3));
    let status = Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    said(child.wait_with_output().unwrap())
}

/// The run, started by another program.
fn through(starter: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(starter);
    command.args(arguments).arg(wirelab(folder, RUN).get_program()).args(RUN).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_hang_up_interrupts_a_run_unless_nohup_started_it() {
    let folder = tempdir().unwrap();
    // Whatever started the tests may ignore the signal, as nohup does.
    let child = through("env", &["--default-signal=HUP"], folder.path()).spawn().unwrap();
    hang_up(folder.path(), child).with_status(130).complains(&["interrupted", "wirelab resume"]);

    let folder = tempdir().unwrap();
    let said = hang_up(folder.path(), through("nohup", &[], folder.path()).spawn().unwrap()).with_status(0);
    assert!(said.out.contains("report.html"), "{}", said.out);
}

#[test]
fn bash_completes_commands_studies_endpoints_and_settings() {
    let folder = tempdir().unwrap();
    let script = run(folder.path(), &["completions", "bash"]).with_status(0).out;
    fs::write(folder.path().join("my-study.toml"), "").unwrap();
    fs::create_dir_all(folder.path().join("endpoints/mine")).unwrap();
    fs::write(folder.path().join("endpoints/mine/endpoint.toml"), "name = 'mine'\ncommand = ['true']\n").unwrap();
    let path = format!("{}:{}", program().parent().unwrap().display(), std::env::var("PATH").unwrap());
    let completed = |words: &[&str]| {
        let call = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; _clap_complete_wirelab wirelab '{}'; echo \"${{COMPREPLY[@]}}\"",
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
            words.len() - 1,
            words[words.len() - 1]
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &call]).current_dir(folder.path()).env("PATH", &path).env("WIRELAB_CARRIED", "off");
        said(bash.output().unwrap()).with_status(0).out.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(completed(&["wirelab", "run", "qu"]), ["quick"]);
    assert_eq!(completed(&["wirelab", "labs", "measure", "cond"]), ["conditions"]);
    assert_eq!(completed(&["wirelab", "run", "my"]), ["my-study.toml"]);
    assert_eq!(completed(&["wirelab", "endpoints", "check", "mi"]), ["mine"]);
    assert_eq!(completed(&["wirelab", "ab", "--base", "buil"]), ["builtin"]);
    assert_eq!(completed(&["wirelab", "run", "quick", "--set", "payl"]), ["payload="]);
    assert_eq!(completed(&["wirelab", "run", "quick", "--lab", "loop"]), ["loopback"]);
    assert_eq!(completed(&["wirelab", "studies", "sh"]), ["show"]);
    let commands = completed(&["wirelab", ""]);
    assert!(commands.contains(&"resume".to_owned()), "{commands:?}");
    for internal in ["guard", "fabric", "witness", "agent", "reference"] {
        assert!(!commands.contains(&internal.to_owned()), "{commands:?}");
        assert!(completed(&["wirelab", &internal[..3]]).is_empty(), "{internal}");
    }
}

#[test]
fn every_shell_has_a_script() {
    let folder = tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = run(folder.path(), &["completions", shell]).with_status(0).out;
        assert!(text.contains("WIRELAB_COMPLETE"), "{shell}: {text}");
    }
}

#[test]
fn manual_pages_have_synopses_with_values_and_a_section_of_examples() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["man", "--out", "man"]).with_status(0);
    let mut pages = 0;
    for entry in read_dir(folder.path().join("man")).unwrap() {
        let path = entry.unwrap().path();
        let text = read_to_string(&path).unwrap();
        assert!(text.contains("\n.SH EXAMPLES\n"), "{}: {text}", path.display());
        assert!(!text.contains("EXTRA"), "{}: {text}", path.display());
        // Every page that this one refers to exists.
        for name in text.lines().filter_map(|line| line.strip_suffix("(1)")) {
            let name = name.replace('\\', "");
            assert!(folder.path().join(format!("man/{name}.1")).is_file(), "{name} in {}", path.display());
        }
        pages += 1;
    }
    assert!(pages > 20, "{pages} pages");
    let page = |words: &[&str]| run(folder.path(), &[&["man"], words].concat()).with_status(0).out;
    let of_run = page(&["run"]);
    for synopsis in
        [r"[\fB\-\-preset\fR \fINAME\fR]", r"[\fB\-\-set\fR \fIKEY=VALUE[,VALUE]\fR]...", "\n\\fISTUDY\\fR\n"]
    {
        assert!(of_run.contains(synopsis), "{synopsis}: {of_run}");
    }
    assert_eq!(
        page(&["endpoints", "install"]),
        read_to_string(folder.path().join("man/wirelab-endpoints-install.1")).unwrap()
    );
    assert!(page(&[]).contains("\n.SH EXIT STATUS\n"));
    run(folder.path(), &["man", "rum"]).with_status(2).complains(&["no command `rum`", "did you mean `run`"]);
}
