//! Cost of observers: a UDP ping-pong between two processes with and without each observer, interleaved.
//!
//!     cargo run --release -p wirelab-observe --example observer_cost -- [OBSERVER...] [ROUNDS]
//!
//! The ping-pong is the worst case for observers that count kernel events: it does nothing but system calls and context
//! switches. Each trial is a process of its own, because some observers leave state in the kernel until wirelab ends.
//! `none` runs twice, as an A/A control.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use wirelab_observe::{OBSERVERS, Targets, create};

const NONE: &str = "none";

/// Exchanges in a trial, and in its warm-up.
const EXCHANGES: u32 = 30_000;
const WARM_UP: u32 = 3_000;

const ROUNDS: usize = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["play-server"] => server(),
        ["play-client", address] => client(address),
        ["play-trial", name] => say(&trial(name).to_string()),
        _ => measure(&arguments),
    }
}

fn measure(arguments: &[&str]) {
    let rounds = arguments.last().and_then(|last| last.parse().ok()).unwrap_or(ROUNDS);
    let mut names: Vec<_> = OBSERVERS.iter().map(|about| about.name).filter(|name| arguments.contains(name)).collect();
    if names.is_empty() {
        names = OBSERVERS.iter().map(|about| about.name).collect();
    }
    names.splice(0..0, [NONE, NONE]);
    let mut times = vec![Vec::new(); names.len()];
    for round in 0..rounds {
        // A Latin square: each observer runs once in each position.
        for place in 0..names.len() {
            let number = (place + round) % names.len();
            let mut child = start(&["play-trial", names[number]]);
            times[number].push(child.line().parse::<f64>().expect("nanoseconds"));
            child.0.wait().expect("a trial that ends");
        }
    }
    println!(
        "{rounds} rounds of {EXCHANGES} exchanges; ns per exchange; ratio to none: of the minima, and per round \
         (median, quartiles)"
    );
    println!("observer              least quartile   median quartile    least   median     quartiles");
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    for (name, own) in names.iter().zip(&times) {
        let ratios = own.iter().zip(&times[0]).map(|(own, none)| own / none).collect();
        let ([low, mid, high], [low_ratio, ratio, high_ratio]) = (quartiles(own.clone()), quartiles(ratios));
        let (fastest, of_least) = (least(own), least(own) / least(&times[0]));
        println!(
            "{name:18} {fastest:8.0} {low:8.0} {mid:8.0} {high:8.0}   {of_least:6.3}   {ratio:6.3} {low_ratio:6.3} \
             {high_ratio:6.3}"
        );
    }
}

fn quartiles(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| numbers[(numbers.len() - 1) * quarter / 4])
}

/// Nanoseconds per exchange.
fn trial(name: &str) -> f64 {
    let mut server = start(&["play-server"]);
    let mut client = start(&["play-client", &server.line()]);
    client.line();
    let (servers, clients) = (Some(vec![server.0.id()]), Some(vec![client.0.id()]));
    let targets = Targets { servers, clients, ..Targets::default() };
    let mut observer = create(name);
    if let Some(observer) = &mut observer {
        observer.begin(&targets);
    }
    client.0.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("a client");
    let time = client.line();
    if let Some(observer) = &mut observer {
        observer.end(&targets);
    }
    for mut process in [server, client] {
        process.0.kill().expect("a child of this process");
        process.0.wait().expect("a child of this process");
    }
    time.parse::<f64>().expect("nanoseconds") / f64::from(EXCHANGES)
}

fn server() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    say(&socket.local_addr().expect("its address").to_string());
    let mut bytes = [0; 64];
    while let Ok((count, from)) = socket.recv_from(&mut bytes) {
        socket.send_to(&bytes[..count], from).expect("a client");
    }
}

fn client(address: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(address).expect("a server");
    let mut bytes = [0; 64];
    let mut exchange = |times: u32| {
        for _ in 0..times {
            socket.send(&bytes[..32]).expect("a server");
            socket.recv(&mut bytes).expect("an answer");
        }
    };
    exchange(WARM_UP);
    say("warm");
    let mut lines = std::io::stdin().lines();
    lines.next();
    let begun = Instant::now();
    exchange(EXCHANGES);
    say(&begun.elapsed().as_nanos().to_string());
    lines.next();
}

fn say(text: &str) {
    println!("{text}");
    std::io::stdout().flush().expect("a reader");
}

struct Process(Child, BufReader<ChildStdout>);

fn start(arguments: &[&str]) -> Process {
    let own = std::env::current_exe().expect("this program");
    let mut child = Command::new(own)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts once more");
    let output = child.stdout.take().expect("a pipe");
    Process(child, BufReader::new(output))
}

impl Process {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("a line of text");
        line.trim().to_owned()
    }
}
