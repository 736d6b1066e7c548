//! End-to-end tests with networks, processes or browsers of their own: emulated links, timelines, endpoints that are
//! killed. A test that measures time, or counts what the whole machine does, runs alone; the others run beside each
//! other. Tests that other work on the machine can disturb declare retries.

mod browser_faults;
mod clients;
mod hosts;
mod mesh;
mod metrics;
mod netns;
mod overlay;
mod packets;
mod pages;
mod paths;
mod processors;
mod sites;
mod ssh;
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
        paths::tests(),
        processors::tests(),
        sites::tests(),
        ssh::tests(),
        timeline::tests(),
        transport::tests(),
        xds::tests(),
    ];
    wirelab_testkit::physics::main(files.into_iter().flatten())
}
