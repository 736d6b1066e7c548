//! `wirelab serve`: a local web page over a folder of runs.

mod library;

use std::io::ErrorKind;

use wirelab_serve::Server;

use crate::args::ServeArgs;
use crate::commands::serve::library::RunFolders;
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_document};

/// Serves until Ctrl-C.
pub fn serve(args: &ServeArgs) -> Result {
    let library = RunFolders::of(&args.folder)?;
    let stop = stop_flag()?;
    let server = Server::bind(args.port).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => "; another program has it. Leave --port out for a free one",
            ErrorKind::PermissionDenied => "; ports below 1024 need root. Leave --port out for a free one",
            _ => "",
        };
        Failure::input(format!("cannot listen on port {} of 127.0.0.1: {error}{remedy}", args.port))
    })?;
    let address = server.address();
    match args.json {
        true => print_document(&format!("{}\n", serde_json::json!({ "address": address })))?,
        false => print(&format!("The runs in {}: {address}\nCtrl-C ends the server.\n", args.folder.display()))?,
    }
    server.run(library, &stop).map_err(|error| Failure::failed(format!("the server failed: {error}")))
}
