//! Observes the endpoints of a pod from within it, with the observers that look at processes of one machine everywhere else: where the
//! processes have numbers, and where the kernel shows them to their user.

use std::fs;
use std::io::{self, BufRead};

use wirelab_lab::Role;
use wirelab_model::metric::Values;
use wirelab_observe::{Targets, Window, create};

use super::say;

/// Does what the lines on standard input say, and answers each: `begin` and `end` of the window with an empty line, `values` and the
/// length of the window in nanoseconds, its requests and its bytes, with the values as JSON.
pub(crate) fn observe(role: &str, names: &str, specs: &[&str]) -> io::Result<()> {
    let processes = specs.iter().map(|spec| process(role, spec)).collect::<io::Result<Vec<_>>>()?;
    let targets = if role == Role::Client.word() {
        Targets { clients: Some(processes), ..Targets::default() }
    } else {
        Targets { servers: Some(processes), ..Targets::default() }
    };
    let unknown =
        |name: &str| io::Error::other(format!("there is no observer `{name}`; is the image of another version?"));
    let observers = names.split(',').map(|name| create(name).ok_or_else(|| unknown(name)));
    let mut observers = observers.collect::<io::Result<Vec<_>>>()?;
    say("")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["begin"] => {
                observers.iter_mut().for_each(|observer| observer.begin(&targets));
                say("")?;
            }
            ["end"] => {
                observers.iter_mut().rev().for_each(|observer| observer.end(&targets));
                say("")?;
            }
            ["values", ns, requests, bytes] => {
                let number = |word: &str| word.parse().map_err(|_| io::Error::other(format!("`{word}` is no number")));
                let window = Window { ns: number(ns)?, requests: number(requests)?, bytes: number(bytes)? };
                let values: Values = observers.iter_mut().flat_map(|observer| observer.values(&window)).collect();
                say(&serde_json::to_string(&values)?)?;
            }
            _ => return Err(io::Error::other(format!("the word `{line}` is not known"))),
        }
    }
    Ok(())
}

/// The process that plays this role with this spec. It runs: it has said `ready` before anybody is sent here.
fn process(role: &str, spec: &str) -> io::Result<u32> {
    let mut all = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // One that ends meanwhile has no command line.
    let plays = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_it(&line, role, spec));
    all.find(plays).ok_or_else(|| io::Error::other(format!("no process here plays the {role} of {spec}")))
}

/// Not the agent that started it, which has the same words and more.
fn is_it(command: &[u8], role: &str, spec: &str) -> bool {
    let words: Vec<_> = command.split(|byte| *byte == 0).skip(1).collect();
    words.starts_with(&[&b"endpoint"[..], role.as_bytes(), b"--spec", spec.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_known_by_its_role_and_its_spec_and_its_agent_is_not_it() {
        let is = |command: &[u8]| is_it(command, "client", "/run/client.json");
        assert!(is(b"/wirelab\0endpoint\0client\0--spec\0/run/client.json\0"));
        assert!(!is(b"/wirelab\0endpoint\0client\0--spec\0/run/client1.json\0"));
        assert!(!is(b"/wirelab\0endpoint\0server\0--spec\0/run/client.json\0"));
        assert!(!is(b"/wirelab\0agent\0start\0endpoint\0client\0--spec\0/run/client.json\0"));
        assert!(!is(b""));
    }
}
