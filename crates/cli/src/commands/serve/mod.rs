//! `wirelab serve`: a local web page over a folder of runs.

mod library;
mod runner;
mod workshop;

use std::io::ErrorKind;
use std::sync::Arc;

use wirelab_serve::{Server, Workshop};

use crate::args::ServeArgs;
use crate::commands::serve::library::RunFolders;
use crate::commands::serve::workshop::Desk;
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_document};

/// Serves until Ctrl-C.
pub fn serve(args: &ServeArgs) -> Result {
    if args.write {
        std::fs::create_dir_all(&args.folder)
            .map_err(|error| Failure::input(format!("cannot make the folder {}: {error}", args.folder.display())))?;
    }
    let desk = args.write.then(|| Desk::of(&args.folder)).transpose()?.map(Arc::new);
    let library = match &desk {
        Some(desk) => desk.runs(),
        None => Arc::new(RunFolders::of(&args.folder, None)?),
    };
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
    let served = server.run(library, desk.clone().map(|desk| desk as Arc<dyn Workshop>), &stop);
    if let Some(desk) = desk {
        desk.end();
    }
    served.map_err(|error| Failure::failed(format!("the server failed: {error}")))
}
