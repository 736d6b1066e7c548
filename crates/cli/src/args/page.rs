//! Arguments of `wirelab page`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wirelab_model::protocol::Protocol;
use wirelab_model::units::Span;

use super::ShowArgs;

/// Arguments of `page`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab page https://example.org/             HTTP/1.1, HTTP/2, HTTP/3 in every installed browser
  wirelab page https://example.org/ --browsers firefox --protocols h2,h3 --loads 10
  wirelab page https://localhost:8443/index.html --ca ca.pem --har loads.har
  wirelab page https://example.org/ --browsers chromium --protocols h2 --loads 1 --save saved.har
  wirelab page https://localhost:8443/index.html --filmstrip films
                                                pictures, and the Speed Index
  wirelab page https://localhost:8443/index.html --loads 1 --keys keys.log --netlog netlog
                                                files for Wireshark and for netlog viewers

Every load is cold, and counts only if every resource used the forced protocol. A host outside this machine and \
private networks gets at most 30 loads in an hour, one at a time, with 5 s between them. docs/pages.md describes the \
measurement and the output of --json.")]
pub struct PageArgs {
    /// The pages, https://
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// The browsers; default: all installed browsers
    #[arg(long, value_enum, value_delimiter = ',')]
    pub browsers: Vec<BrowserArg>,
    /// The HTTP versions to force: h1, h2, h3
    #[arg(long, value_delimiter = ',', default_value = "h1,h2,h3")]
    pub protocols: Vec<Protocol>,
    /// Number of loads of each page in each browser over each version, in random order
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub loads: u32,
    /// Start a new browser for every load, instead of an isolated context in a running browser
    #[arg(long)]
    pub fresh: bool,
    /// The expected number of requests of a page; a load with another number does not count
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
    pub expect: Option<u32>,
    /// Trust this certificate authority (PEM) in addition to the system's; needs certutil
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Deadline of a load
    #[arg(long, default_value = "30 s")]
    pub timeout: Span,
    /// Write every load to this file, as an HTTP Archive (HAR 1.2)
    #[arg(long, value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// Load the page once more in Chromium, and write it with all bodies to this file as an HTTP Archive. A study can
    /// load the file again from its own servers (`--set page=./FILE.har`)
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Film one more load of each page in each browser over each version. Pictures and an overview go to this new
    /// folder, the Speed Index goes to the result. Measured loads are not filmed
    #[arg(long, value_name = "DIR")]
    pub filmstrip: Option<PathBuf>,
    /// Append the secrets of TLS and QUIC to this file, so that Wireshark can decrypt packets (format of
    /// `SSLKEYLOGFILE`). This option, --netlog and --qlog write while pages load, which makes loads slower
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Log the network stack of Chromium (netlog) to this new folder, one file for each start of the browser
    #[arg(long, value_name = "DIR")]
    pub netlog: Option<PathBuf>,
    /// Log the QUIC connections of Firefox (qlog) to this new folder, one file for each connection
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Lift the limits. Use it only for hosts that you may load
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    /// The seed of the random order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// [`wirelab_browser::Browser`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BrowserArg {
    /// Chromium, or Google Chrome
    Chromium,
    /// Firefox, or its extended support release
    Firefox,
}
