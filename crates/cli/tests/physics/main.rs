//! End-to-end tests that need the machine to themselves: emulated links, timelines, browsers that are killed. They run
//! one at a time. Tests that other work on the machine can disturb declare retries.

mod browser_faults;
mod clients;
mod hosts;
mod mesh;
mod metrics;
mod netns;
mod overlay;
mod packets;
mod pages;
mod sites;
mod timeline;
mod transport;
mod xds;

use std::process::ExitCode;

fn main() -> ExitCode {
    let files = [
        browser_faults::tests(),
        clients::tests(),
        hosts::tests(),
        mesh::tests(),
        metrics::tests(),
        netns::tests(),
        overlay::tests(),
        packets::tests(),
        pages::tests(),
        sites::tests(),
        timeline::tests(),
        transport::tests(),
        xds::tests(),
    ];
    wirelab_testkit::physics::main(files.into_iter().flatten())
}
