//! The commands as a user types them. These tests run side by side, and pass on a machine under full load.

mod analyze;
mod architecture;
mod bad_input;
mod cluster;
mod contract;
mod crowd;
mod fake_lab;
mod gate;
mod helm;
mod image;
mod install;
mod killed;
mod kubernetes;
mod links;
mod load;
mod logs;
mod loopback;
mod lying_clients;
mod page;
mod pages;
mod probe;
mod reference;
mod report_in_browsers;
mod requests;
mod terminal;
mod turned_away;
