//! Arguments of `wirelab serve`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab serve                                 the runs in wirelab-runs, on any free port
  wirelab serve studies/quick/results --port 8000
  wirelab serve --write                         also edit and start studies, and tag runs
  wirelab serve --json                          one line of JSON with the address, for scripts
  ssh -L 8000:127.0.0.1:8000 a.example          the pages of `wirelab serve --port 8000` there

Open the printed address in a browser of this machine. Without --write the pages only read. Ctrl-C ends the server, \
and the run that a page started as Ctrl-C ends `wirelab run`.")]
pub struct ServeArgs {
    /// The folder that contains run folders; may be empty, and may get runs later
    #[arg(value_name = "FOLDER", default_value = "wirelab-runs")]
    pub folder: PathBuf,
    /// The port of 127.0.0.1; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Let the pages tag runs, save study files in the working folder, and start and stop runs there, one at a time. A
    /// study can start any program, so the address then gives the rights of your shell
    #[arg(long)]
    pub write: bool,
    /// Print the address as JSON: {"address": "http://..."}
    #[arg(long)]
    pub json: bool,
}
